//! What is special about UI messages of the AI SDK: little, because nobody's model reads it.

use contexture_ir::{Cancel, Fields, Transcript};

use super::{lift, lower};
use crate::model::conversion::{DocumentKind, Lifted, Lowered};
use crate::model::error::WireError;
use crate::model::evidence::{Evidence, member_objects};
use crate::model::format::Format;
use crate::model::json::string_field;
use crate::spec::{FormatHosts, FormatSpec, Identity};

const IDENTITY: Identity = Identity {
    catalogue_provider: None,
    // Telemetry has no name for it; the name of the most common provider stands in.
    otel_provider: "openai",
    extension_slug: "ctx",
    bare_extensions: false,
    opaque_maker: Some("ctx"),
    hosts: FormatHosts::Any,
};

/// The implementation of [`FormatSpec`] for UI messages of the AI SDK.
#[derive(Debug)]
pub(crate) struct Ui;

impl FormatSpec for Ui {
    fn format(&self) -> Format {
        Format::Ui
    }

    fn identity(&self) -> &'static Identity {
        &IDENTITY
    }

    fn parse(&self, json: &str, cancel: Option<&Cancel>) -> Result<Lifted, WireError> {
        lift(json, cancel)
    }

    fn encode_response(&self, response: &Transcript) -> Lowered {
        lower(DocumentKind::Response, response)
    }

    // No envelope and no runs: a document is written in one go, whatever its kind.
    fn encode_document(&self, kind: DocumentKind, transcript: &Transcript) -> Option<Lowered> {
        Some(lower(kind, transcript))
    }

    fn detect_object(&self, object: &Fields<'_>) -> Option<Evidence> {
        let has = |name: &str| object.get(&[name]).is_some();
        (has("role") && has("parts")).then_some(Evidence::new(
            Evidence::SHARED_MEMBER - 1,
            "a message with `parts`",
        ))
    }

    fn detect_messages(&self, messages: &[Fields<'_>]) -> Option<Evidence> {
        let first = messages.first()?;
        first.get(&["role"])?;
        first.get(&["parts"])?;
        // Gemini's parts have no `type` and its contents no `id`; one of either makes them UI messages.
        (first.get(&["id"]).is_some() || messages.iter().any(has_typed_parts)).then_some(
            Evidence::new(
                Evidence::OWN_MEMBER,
                "messages with `parts` that have a `type`",
            ),
        )
    }
}

fn has_typed_parts(message: &Fields<'_>) -> bool {
    let parts = member_objects(message, "parts");
    parts
        .iter()
        .any(|part| string_field(part, "type").is_some())
}
