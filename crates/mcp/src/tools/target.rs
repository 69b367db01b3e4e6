//! Resolves the model that a tool's arguments name, and how it is called.

use contexture::engine::LastTarget;
use contexture::{Conversation, EngineError, Format, Target};

use crate::tool_context::ToolContext;
use crate::tool_error::ToolError;

/// The arguments of a tool that say which model is meant.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModelTarget<'a> {
    /// The model's name; `None`: the model of the conversation's newest answer.
    pub(super) model: Option<&'a str>,
    /// The format of its requests; `None`: without a model's name that of the newest answer, else that of its provider.
    pub(super) format: Option<&'a str>,
    /// The size of its context window in tokens; `None`: that of the catalogue.
    pub(super) window: Option<u64>,
    /// Tokens kept free for the answer; `None`: the default.
    pub(super) reserve: Option<u64>,
}

impl ModelTarget<'_> {
    /// Makes a compile target of the arguments, for a conversation.
    pub(super) async fn resolve_target(
        &self,
        context: &ToolContext,
        chat: &Conversation,
    ) -> Result<Target, ToolError> {
        let target = match self.model {
            Some(model) => LastTarget {
                model: model.to_owned(),
                format: None,
            },
            None => chat.last_target().await?.ok_or_else(|| {
                let message = "`model` is missing, and no answer of the conversation names one";
                ToolError::invalid_arguments(message.to_owned())
                    .with_hint("name the model that will answer")
            })?,
        };
        let catalogue = context.engine.catalogue();
        // An unknown model is refused here, with the names of those like it.
        catalogue
            .resolve(&target.model)
            .map_err(EngineError::from)?;
        let format = match self.format {
            Some(name) => parse_provider_format(name)?,
            None => target.request_format(catalogue),
        };
        let mut target = Target::new(format, target.model);
        if let Some(window) = self.window {
            target = target.window(window);
        }
        if let Some(reserve) = self.reserve {
            target = target.reserve(reserve);
        }
        Ok(target)
    }
}

/// Parses the name of a provider's format.
pub(super) fn parse_provider_format(name: &str) -> Result<Format, ToolError> {
    let mut known = Format::PROVIDERS.into_iter();
    known.find(|format| format.as_str() == name).ok_or_else(|| {
        let names = Format::PROVIDERS.map(Format::as_str).join(", ");
        ToolError::invalid_arguments(format!("no format {name:?}: expected one of {names}"))
    })
}
