//! `[models."<name>"]`: models that the catalogue does not know: local ones, fine-tunes, deployments under names of their own.

use std::collections::BTreeMap;

use contexture::catalogue::ModelSpec;
use contexture::{Catalogue, EngineError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A model that the catalogue does not know, or knows otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a table, such as [models.\"qwen3-coder:30b\"] window = 32768"
)]
pub struct ModelConfig {
    /// Tokens of its window, the answer included; at least 1,000. Default: that of `like`; without one it must be said.
    pub window: Option<u64>,
    /// Name of a known model that it is like: its tokens are counted so, and it has its prices and abilities. Default: none;
    /// tokens are estimates, and no price is known.
    pub like: Option<String>,
}

impl ModelConfig {
    /// Returns what is known of the model of this name.
    ///
    /// # Errors
    /// `like` names no known model; `None` where neither says a window.
    pub(super) fn model_spec(
        &self,
        name: &str,
        known: &Catalogue,
    ) -> Result<Option<ModelSpec>, EngineError> {
        let Some(like) = &self.like else {
            return Ok(self
                .window
                .map(|window| ModelSpec::of_unknown(name, window)));
        };
        let mut spec = known.resolve(like)?.clone();
        name.clone_into(&mut spec.id);
        spec.aliases.clear();
        spec.context_window = self.window.unwrap_or(spec.context_window);
        Ok(Some(spec))
    }
}

/// Returns a catalogue with these models too. What cannot be described was refused when the configuration was read.
pub(crate) fn extend_catalogue(
    known: &Catalogue,
    models: &BTreeMap<String, ModelConfig>,
) -> Catalogue {
    let specs = models
        .iter()
        .filter_map(|(name, model)| model.model_spec(name, known).ok().flatten());
    specs.fold(known.clone(), |known, spec| known.with_model(spec))
}
