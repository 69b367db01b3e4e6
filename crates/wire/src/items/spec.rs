//! What is special about our own document format: little, because nobody's model reads it.

use contexture_ir::{Fields, Transcript};

use super::{lift, lower};
use crate::model::conversion::{DocumentKind, Lifted, Lowered};
use crate::model::error::WireError;
use crate::model::evidence::{Evidence, text_member};
use crate::model::format::Format;
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

/// The types of items; Responses has the same ones, so that its bare arrays read as items.
const ITEM_TYPES: &[&str] = &[
    "message",
    "function_call",
    "function_call_output",
    "reasoning",
    "compaction",
];

/// Our own document format.
#[derive(Debug)]
pub(crate) struct Items;

impl FormatSpec for Items {
    fn format(&self) -> Format {
        Format::Items
    }

    fn identity(&self) -> &'static Identity {
        &IDENTITY
    }

    fn parse(&self, json: &str) -> Result<Lifted, WireError> {
        lift(json)
    }

    fn encode_response(&self, response: &Transcript) -> Lowered {
        lower(DocumentKind::Response, response)
    }

    // No envelope and no runs: a document is written in one go, whatever its kind.
    fn encode_document(&self, kind: DocumentKind, transcript: &Transcript) -> Option<Lowered> {
        Some(lower(kind, transcript))
    }

    fn detect_object(&self, object: &Fields<'_>) -> Option<Evidence> {
        object.get(&["items"]).is_some().then_some(Evidence::new(
            Evidence::OWN_MEMBER + 1,
            "an object with `items`",
        ))
    }

    fn detect_messages(&self, messages: &[Fields<'_>]) -> Option<Evidence> {
        messages.iter().any(has_item_type).then_some(Evidence::new(
            Evidence::SHARED_MEMBER,
            "an array of items: objects with an item's `type`",
        ))
    }
}

fn has_item_type(message: &Fields<'_>) -> bool {
    // A colon marks an extension of ours, whatever its slug.
    text_member(message, "type")
        .is_some_and(|kind| ITEM_TYPES.contains(&kind.as_str()) || kind.contains(':'))
}
