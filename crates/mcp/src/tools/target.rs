//! Which model is meant, and how it is spoken to.

use contexture::{EngineError, Format, Target};

use crate::tool_context::ToolContext;
use crate::tool_error::ToolError;

/// What was said of a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModelTarget<'a> {
    /// Its name.
    pub(super) model: &'a str,
    /// The format of its requests; `None`: its provider's own.
    pub(super) format: Option<&'a str>,
    /// Tokens it can hold; `None`: as is known of it.
    pub(super) window: Option<u64>,
    /// Tokens kept free for the answer; `None`: the usual.
    pub(super) reserve: Option<u64>,
}

impl ModelTarget<'_> {
    /// The target that is meant.
    pub(super) fn resolve_target(&self, context: &ToolContext) -> Result<Target, ToolError> {
        let spec = context.engine.catalogue().resolve(self.model);
        let spec = spec.map_err(EngineError::from)?;
        let format = match self.format {
            Some(name) => parse_provider_format(name)?,
            None => Format::of_provider(&spec.provider),
        };
        let mut target = Target::new(format, self.model);
        if let Some(window) = self.window {
            target = target.window(window);
        }
        if let Some(reserve) = self.reserve {
            target = target.reserve(reserve);
        }
        Ok(target)
    }
}

fn parse_provider_format(name: &str) -> Result<Format, ToolError> {
    let mut known = Format::PROVIDERS.into_iter();
    known.find(|format| format.as_str() == name).ok_or_else(|| {
        let names = Format::PROVIDERS.map(Format::as_str).join(", ");
        ToolError::invalid_arguments(format!("no format {name:?}: expected one of {names}"))
    })
}
