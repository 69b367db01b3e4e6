//! Lists of names, as schemas.

use std::borrow::Cow;

use contexture::engine::tree::TreeEntry;
use contexture::ir::{Origin, Role, Status, UiRole};
use contexture::layers::builtin::memory::EditResult;
use contexture::runs::RunStatus;
use contexture::sessions::SessionFormat;
use contexture::store::NodeKind;
use contexture::tokens::Encoding;
use contexture::wire::{IssueKind, LossKind};
use contexture::{Format, render};
use utoipa::openapi::{Object, ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// The kinds of events: the words that `EventDocument` gives to what the store knows.
const EVENT_KINDS: [&str; 14] = [
    "created",
    "updated",
    "appended",
    "branch_created",
    "branch_activated",
    "branch_renamed",
    "branch_deleted",
    "branch_moved",
    "branch_claimed",
    "checkpoint_set",
    "checkpoint_deleted",
    "node_redacted",
    "bytes_redacted",
    "other",
];

/// What one of several operations on notes does: what a write does, and what is read or gone.
const NOTE_RESULTS: [&str; 5] = [
    "found",
    EditResult::Created.as_str(),
    EditResult::Updated.as_str(),
    EditResult::Unchanged.as_str(),
    "deleted",
];

/// The kinds of pieces of an answer: the names of the stream events that `DeltaDocument` takes.
const DELTA_KINDS: [&str; 11] = [
    "response.created",
    "response.output_item.added",
    "response.output_text.delta",
    "response.reasoning.delta",
    "response.reasoning_summary_text.delta",
    "response.refusal.delta",
    "response.function_call_arguments.delta",
    "response.output_item.done",
    "response.completed",
    "response.incomplete",
    "response.failed",
];

/// Defines the schemas of lists of names: the type, the name in the description of the API, and where the list is.
macro_rules! name_schemas {
    ($($(#[doc = $text:literal])+ $schema:ident($name:literal) = $names:expr;)+) => {$(
        $(#[doc = $text])+
        #[derive(Clone, Copy, Debug)]
        pub enum $schema {}

        impl PartialSchema for $schema {
            fn schema() -> RefOr<Schema> {
                let text = concat!($($text),+).trim_start();
                Schema::Object(names_schema($names, text)).into()
            }
        }

        impl ToSchema for $schema {
            fn name() -> Cow<'static, str> {
                $name.into()
            }
        }
    )+};
}

name_schemas! {
    /// Kind of an item.
    ItemKindSchema("ItemKind") = NodeKind::ALL.map(NodeKind::as_str);
    /// Producer of an item.
    OriginSchema("Origin") = Origin::ALL.map(Origin::as_str);
    /// Speaker of a message.
    ItemRoleSchema("ItemRole") = Role::ALL.map(Role::as_str);
    /// State of an item's generation; an item without one is complete.
    ItemStatusSchema("ItemStatus") = Status::ALL.map(Status::as_str);
    /// Speaker of a message in a user interface.
    UiRoleSchema("UiRole") = UiRole::ALL.map(UiRole::as_str);
    /// Role of a message in the tree.
    TreeRoleSchema("TreeRole") = TreeEntry::ROLES;
    /// Kind of a change of a conversation; `other` if this version does not know it.
    EventKindSchema("EventKind") = EVENT_KINDS;
    /// Kind of a piece of an answer.
    DeltaKindSchema("DeltaKind") = DELTA_KINDS;
    /// Who answers a call of a tool.
    AnsweredBySchema("AnsweredBy") = ["caller", "server"];
    /// Status of a run.
    RunStatusSchema("RunStatus") = RunStatus::ALL.map(RunStatus::as_str);
    /// Outcome of a write to a note.
    NoteOutcomeSchema("NoteOutcome") = EditResult::ALL.map(EditResult::as_str);
    /// What one of several operations on notes did.
    NoteResultSchema("NoteResult") = NOTE_RESULTS;
    /// Format of conversations.
    FormatSchema("Format") = Format::ALL.map(Format::as_str);
    /// Format of requests that providers of models accept.
    ProviderFormatSchema("ProviderFormat") = Format::PROVIDERS.map(Format::as_str);
    /// Format of a session: of conversations, or of a program's log.
    SessionFormatSchema("SessionFormat") = SessionFormat::ALL.map(SessionFormat::as_str);
    /// Format of rendered fragments.
    RenderFormatSchema("RenderFormat") = render::Format::ALL.map(render::Format::as_str);
    /// Encoding that tokens are counted in.
    EncodingSchema("Encoding") = Encoding::NAMES;
    /// Kind of content that a format cannot express.
    LossKindSchema("LossKind") = LossKind::ALL.map(LossKind::as_str);
    /// Kind of a problem that was repaired in a history.
    RepairKindSchema("RepairKind") = IssueKind::ALL.map(IssueKind::as_str);
}

/// Returns the schema of a string that is one of these names.
pub(super) fn names_schema<const N: usize>(names: [&str; N], description: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(names))
        .description(Some(description))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_names_is_the_codes_own() {
        let schema = serde_json::to_value(OriginSchema::schema()).unwrap();
        let expected = serde_json::json!({
            "type": "string", "description": "Producer of an item.",
            "enum": ["user", "model", "tool", "layer", "system", "import"],
        });
        assert_eq!(schema, expected);
        assert_eq!(OriginSchema::name(), "Origin");
    }
}
