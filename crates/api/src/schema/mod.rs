//! Schemas of what documents carry as strings and raw JSON: closed lists of names, and the shapes of items, messages and
//! fragments.
//!
//! Each type here exists for its schema alone; documents name it as their `value_type`. Lists come from the code that
//! writes the names, so that a name which is added there is described here too. Shapes say what every item or message has,
//! and leave room for members that this version does not know.

mod names;
mod shapes;

pub use names::{
    AnsweredBySchema, DeltaKindSchema, EncodingSchema, EventKindSchema, FormatSchema,
    ItemKindSchema, ItemRoleSchema, ItemStatusSchema, LossKindSchema, NoteOutcomeSchema,
    NoteResultSchema, OriginSchema, ProviderFormatSchema, RenderFormatSchema, RepairKindSchema,
    RunStatusSchema, SessionFormatSchema, TreeRoleSchema, UiRoleSchema,
};
pub use shapes::{BytesSchema, FragmentSchema, UiMessageSchema};
pub(crate) use shapes::{ItemSchema, MessageInputSchema, SystemPromptSchema};
