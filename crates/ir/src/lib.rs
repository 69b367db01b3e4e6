//! The vocabulary every other Contexture crate shares.
//!
//! An [`Item`] is one thing that happened in a conversation; its [`Part`]s are what it says. Shapes
//! follow the Open Responses specification in snake_case; what this version does not know survives
//! as JSON text ([`Raw`], [`Extra`]). A [`Transcript`] is a request or a response without a
//! provider's accent.
//!
//! Not here: provider formats (`contexture-wire`), rendering (`contexture-render`), storage, clocks,
//! randomness. Ids are made by callers.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod cancel;
mod error;
mod fragment;
mod hash;
mod id;
mod item;
mod origin;
mod raw;
mod surrogates;
mod tombstone;
mod tool;
mod transcript;
mod ui_message;

pub use cancel::{Cancel, CancelOnDrop, Cancelled};
pub use contexture_text::truncate_chars;
pub use error::Error;
pub use fragment::{
    Analogy, Body, Children, Clarification, Codec, CodecError, Example, Explanation, Fragment,
    FragmentData, FragmentError, FragmentRegistry, FragmentType, Guardrail, Identity, MAX_DEPTH,
    MessageInput, Persona, Policy, Principle, StyleGuide, Workflow, alias, analogy, assistant,
    assistant_text, clarification, correction, example, explain, fragment, fragments_from_value,
    from_serialized, glossary, guardrail, hint, identity, last_assistant_message, message, object,
    parse_fragments, parse_fragments_with, persona, policy, preference, principle, quirk, role,
    style_guide, term, to_message_fragment, to_serialized, user, workflow,
};
pub use hash::{
    CHAIN_VERSION, HistoryHash, HistoryHasher, MEANING_VERSION, canonical_json, concat_hashes,
    finish_content_hash, hex, meaning_hash,
};
pub use id::{
    BranchName, CallId, CheckpointName, ContentHash, ConversationId, MessageId, NodeId, Owner,
    PathHash, ProcessId, ResponseId, RunId, StreamId,
};
pub use item::{
    Compaction, Extension, ExtensionPart, FilePart, FunctionCall, FunctionCallOutput, ImagePart,
    Item, Message, Output, Part, Reasoning, Role, Status, TextPart,
};
pub use origin::{Audience, Origin};
pub use raw::{DAMAGED, Extra, Fields, REPEATED, Raw, is_beyond_f64, quote_json, slice_range};
pub use surrogates::replace_lone_surrogates;
pub use tombstone::{REDACTED, tombstone_json};
pub use tool::{FunctionTool, ProviderTool, ToolChoice, ToolDefinition};
pub use transcript::{
    FinishReason, ReasoningOptions, RequestOptions, ResponseFormat, ResponseInfo, Transcript, Usage,
};
pub use ui_message::{UiMessage, UiRole, text_part};
