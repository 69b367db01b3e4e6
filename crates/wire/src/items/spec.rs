//! What is special about our own document format: little, because nobody's model reads it.

use contexture_ir::{Cancel, Fields, Transcript};

use super::{lift, lower, write};
use crate::model::chunk::{Chunk, Dialect, Envelope};
use crate::model::conversion::{DocumentKind, Lifted, Lowered};
use crate::model::error::WireError;
use crate::model::evidence::Evidence;
use crate::model::format::Format;
use crate::model::json::string_field;
use crate::model::paired_item::RoleRun;
use crate::spec::{FormatHosts, FormatSpec, Identity};

const IDENTITY: Identity = Identity {
    catalogue_provider: None,
    // Telemetry has no name for it; the name of the most common provider stands in.
    // Requests of this format are written by a program's own adapter.
    otel_provider: "custom",
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

/// The implementation of [`FormatSpec`] for Contexture's own document format.
#[derive(Debug)]
pub(crate) struct Items;

impl FormatSpec for Items {
    fn format(&self) -> Format {
        Format::Items
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

    // A whole document is written in one go, whatever its kind; an envelope and runs are for compilers.
    fn encode_document(&self, kind: DocumentKind, transcript: &Transcript) -> Option<Lowered> {
        Some(lower(kind, transcript))
    }

    fn encode_envelope(&self, _dialect: &Dialect, request: &Transcript) -> Envelope {
        write::encode_envelope(request)
    }

    fn encode_run(&self, _dialect: &Dialect, run: &RoleRun<'_, '_>) -> Chunk {
        write::encode_run(run)
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
    string_field(message, "type")
        .is_some_and(|kind| ITEM_TYPES.contains(&kind.as_str()) || kind.contains(':'))
}

#[cfg(test)]
mod tests {
    use contexture_ir::{FunctionCall, FunctionCallOutput, Item, Message, Output, Raw, Role};

    use super::*;
    use crate::document::{lower as lower_document, lower_envelope, lower_run};
    use crate::model::paired_item::paired_items;
    use crate::turns::role_runs;

    fn transcript(items: Vec<Item>) -> Transcript {
        Transcript {
            model: Some("m".to_owned()),
            instructions: vec![Message::text(Role::System, "\"items\":[]")],
            items,
            ..Transcript::default()
        }
    }

    /// The document, put together from an envelope and its runs.
    fn assemble_runs(request: &Transcript, rename: Option<&str>) -> String {
        let dialect = Dialect::of(Format::Items);
        let mut entries = paired_items(&request.items);
        for entry in &mut entries {
            entry.call_id = rename;
        }
        let runs = role_runs(&entries, Format::Items);
        let chunks: Vec<String> = runs
            .iter()
            .map(|run| lower_run(&dialect, run).json)
            .collect();
        lower_envelope(&dialect, request).assemble(chunks.iter().map(String::as_str))
    }

    #[test]
    fn envelope_and_runs_assemble_to_the_whole_document() {
        let items = vec![
            Message::text(Role::User, "Weather?").into(),
            FunctionCall::new("call_1", "weather", "{}").into(),
            FunctionCallOutput::new("call_1", Output::Text("Sunny.".to_owned())).into(),
        ];
        let mut full = transcript(items);
        full.extra.set("seed", Raw::parse("7").unwrap());
        for request in [Transcript::default(), transcript(Vec::new()), full] {
            let whole =
                lower_document(&Dialect::of(Format::Items), DocumentKind::Request, &request).json;
            assert_eq!(assemble_runs(&request, None), whole);
        }
    }

    #[test]
    fn renamed_calls_are_written_under_their_new_id() {
        let items = vec![
            FunctionCall::new("call_1", "weather", "{}").into(),
            FunctionCallOutput::new("call_1", Output::Text("Sunny.".to_owned())).into(),
        ];
        let json = assemble_runs(&transcript(items), Some("other"));
        assert_eq!(json.matches(r#""call_id":"other""#).count(), 2, "{json}");
    }
}
