//! Fragments: named trees of data that a renderer turns into text.
//!
//! A [`Fragment`] is something an application tells the model besides the conversation: a role, a
//! hint, a term, a rule. It is data, so it can be rendered as XML for one model and Markdown for
//! another, stored, compared and explained. Fragments that carry a message ([`Body::Message`]) are
//! not rendered: they become part of the history.
//!
//! Trees are at most [`MAX_DEPTH`] levels deep wherever they cross a boundary (parsing, JSON,
//! rendering); a deeper one is an error, never a stack overflow.
//!
//! Not here: rendering as text (`contexture-render`), time, storage, models, randomness. A new
//! message has an empty id; whoever stores the message assigns one.

mod builtin_types;
mod convert;
mod error;
mod example_builders;
mod json;
mod message_builders;
mod parse;
mod registry;
mod rule_builders;
mod tree;

pub use convert::{Children, object};
pub use error::FragmentError;
pub use example_builders::{
    Analogy, Example, Policy, Principle, Workflow, analogy, example, glossary, policy, principle,
    workflow,
};
pub use message_builders::{
    MessageInput, assistant, assistant_text, last_assistant_message, message, to_message_fragment,
    user,
};
pub use parse::{fragments_from_value, parse_fragments, parse_fragments_with};
pub use registry::{FragmentRegistry, FragmentType, from_serialized, to_serialized};
pub use rule_builders::{Clarification, Explanation, Guardrail, Identity, Persona, StyleGuide};
pub use rule_builders::{
    alias, clarification, correction, explain, fragment, guardrail, hint, identity, persona,
    preference, quirk, role, style_guide, term,
};
pub use tree::{Body, Codec, CodecError, Fragment, FragmentData, MAX_DEPTH};
