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

mod canonical;
mod chain;
mod digest;
mod error;
mod fragment;
mod id;
mod item;
mod meaning;
mod origin;
mod part;
mod raw;
mod redact;
mod tool;
mod transcript;
mod ui_message;
mod usage;

pub use canonical::canonical_json;
pub use chain::{CHAIN_VERSION, HistoryHash, HistoryHasher};
pub use digest::{concat_hashes, finish_content_hash, hex};
pub use error::{Error, excerpt};
pub use fragment::{
    Analogy, Body, Children, Clarification, Codec, CodecError, Example, Explanation, Fragment,
    FragmentData, FragmentError, FragmentRegistry, FragmentType, Guardrail, Identity, MAX_DEPTH,
    MessageInput, Persona, Policy, Principle, StyleGuide, Workflow, alias, analogy, assistant,
    assistant_text, clarification, correction, example, explain, fragment, fragments_from_value,
    from_serialized, glossary, guardrail, hint, identity, last_assistant_message, message, object,
    parse_fragments, parse_fragments_with, persona, policy, preference, principle, quirk, role,
    style_guide, term, to_message_fragment, to_serialized, user, workflow,
};
pub use id::{
    BranchName, CheckpointName, ContentHash, ConversationId, MessageId, NodeId, Owner, PathHash,
    ResponseId, RunId, StreamId,
};
pub use item::{
    Compaction, Extension, FunctionCall, FunctionCallOutput, Item, Message, Output, Reasoning,
    Role, Status,
};
pub use meaning::{MEANING_VERSION, meaning_hash};
pub use origin::{Audience, Origin};
pub use part::{ExtensionPart, FilePart, ImagePart, Part, TextPart};
pub use raw::{Extra, Fields, Raw, quote_json};
pub use redact::{REDACTED, tombstone_json};
pub use tool::{FunctionTool, ProviderTool, ToolChoice, ToolDefinition};
pub use transcript::{
    FinishReason, ReasoningOptions, RequestOptions, ResponseFormat, ResponseInfo, Transcript,
};
pub use ui_message::{UiMessage, UiRole, text_part};
pub use usage::Usage;
