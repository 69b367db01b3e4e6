//! `state` and `guardrails`: what a policy says itself, behind the history.

use std::borrow::Cow;

use contexture::catalogue::Capabilities;
use contexture::compile::{Contribution, GuardrailError, Guardrails, Placement, StateError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa::openapi::{ObjectBuilder, RefOr, schema::AdditionalProperties};

use crate::policy::PolicyConfig;

/// What is so now: any table, written as data behind the history, so that no value breaks out of its place.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct StateConfig(pub Map<String, Value>);

/// How the model is to answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema, ToSchema)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a table, such as guardrails = { output_tag = \"answer\" }"
)]
#[schema(as = Guardrails)]
pub struct GuardrailsConfig {
    /// The whole answer is to stand in an XML element of this name. Default: in none.
    pub output_tag: Option<String>,
    /// A rule for the form of the answer, in words. Default: none.
    pub format: Option<String>,
    /// How the answer is to begin. Models that continue a given beginning get it as such, others are told. Default: as it
    /// likes.
    pub prefill: Option<String>,
}

impl GuardrailsConfig {
    /// Returns whether it says nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.output_tag.is_none() && self.format.is_none() && self.prefill.is_none()
    }

    /// Returns it as the compiler takes it.
    #[must_use]
    pub fn guardrails(&self) -> Guardrails {
        Guardrails {
            output_tag: self.output_tag.clone(),
            format: self.format.clone(),
            prefill: self.prefill.clone(),
        }
    }
}

impl PolicyConfig {
    /// Returns what it says beside a conversation to a model with these capabilities: state, then guardrails.
    ///
    /// # Errors
    /// The state cannot be rendered, or the tag of an answer is no name of an element.
    pub fn contributions(
        &self,
        capabilities: &Capabilities,
    ) -> Result<Vec<Contribution>, PolicyWordsError> {
        let state = self.state.as_ref();
        let state = state.map(|state| Contribution::state(&state.0, Placement::Tail));
        let mut said: Vec<Contribution> = state.transpose()?.into_iter().collect();
        let rules = self.guardrails.guardrails();
        said.extend(rules.build_contributions(capabilities)?);
        Ok(said)
    }
}

/// Why what a policy says cannot be said.
#[derive(Debug, thiserror::Error)]
pub enum PolicyWordsError {
    /// The state is not data.
    #[error("state: {0}")]
    State(#[from] StateError),
    /// The guardrails cannot be followed.
    #[error("guardrails: {0}")]
    Guardrails(#[from] GuardrailError),
}

const STATE: &str =
    "What is so now: any table, written as data behind the history with every call.";

impl JsonSchema for StateConfig {
    fn schema_name() -> Cow<'static, str> {
        "State".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "description": STATE })
    }
}

impl utoipa::PartialSchema for StateConfig {
    fn schema() -> RefOr<utoipa::openapi::Schema> {
        let any = AdditionalProperties::FreeForm(true);
        let object = ObjectBuilder::new().additional_properties(Some(any));
        object.description(Some(STATE)).into()
    }
}

impl ToSchema for StateConfig {
    fn name() -> Cow<'static, str> {
        "State".into()
    }
}
