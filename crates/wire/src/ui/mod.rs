//! UI messages of the AI SDK: checked, read into items, folded from items.
//!
//! [`lift_message`] and [`fold`] are inverse: for every message that [`validate`] accepts, folding
//! its items gives back the same message as a JSON value, fields that the SDK does not know included if they are
//! [wanted](UnknownFields). A UI message is a view and never stored.
//! Written for version 7 of the SDK; messages of versions 5 and 6 are read as well.
//!
//! What only UI messages can say stands in an item's `ctx:wire` under `ui`; names beginning with `~`
//! are hints about a form that another writer may choose differently. Parts without an item are
//! extension items: `ctx:part` (`{"type","part"}`), `ctx:approval` (`{"type","call_id","approval"}`,
//! the last one of a call wins) and, where role or metadata do not follow from the items,
//! `ctx:message` (`{"type","role","metadata"?}`). In documents, where items carry no message id,
//! every message begins with a `ctx:message` that also has `id` and `items`, the number of items
//! that follow and belong to it.
//!
//! Reading checks first (`schema`, `validate`, `validate_part`) and lifts then, so that lifting never
//! meets a part that the SDK would refuse.
//!
//! Not here: streams of UI message chunks, tools' schemas.

mod compaction;
mod fold;
mod lift;
mod losses;
mod media;
mod message_builder;
mod messages;
mod metadata;
mod reasoning;
mod reminders;
mod schema;
mod spec;
mod text;
mod tool;
mod ui_only_fields;
mod unknown_fields;
mod validate;
mod validate_part;

use messages::{lift, lower};

pub use fold::{Extensions, FoldAudience, FoldItem, FoldOptions, Folder, fold};
pub use lift::{LiftedMessage, lift_message};
pub use reminders::strip_reminders;
pub(crate) use spec::Ui;
pub use unknown_fields::UnknownFields;
pub(crate) use unknown_fields::report_message_fields;
pub use validate::{validate, validate_json};
