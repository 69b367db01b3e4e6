//! OpenAI's two formats: Chat Completions and Responses.
//!
//! Both are spoken by one provider, have the same options, tools and usage and differ in how a history is arranged:
//!
//! | | Chat Completions | Responses |
//! |---|---|---|
//! | history | `messages`, one per turn | `input`, one item per thing said or done |
//! | answer | `choices[].message` | `output` |
//! | instructions | leading `system` or `developer` messages | `instructions` |
//! | calls | inside the assistant's message | items of their own |
//! | reasoning | none; hosts have fields for it | items, sealed for the provider |
//! | members of a custom tool | in an object named like the type | beside the type |
//! | call ids | at most 40 bytes | at most 64 bytes |
//! | ids of items | none | unique within a request |
//! | who may begin and end a history | anyone | anyone |
//!
//! What is equal stands once, in `shared`: options and tools of both formats, the shapes of custom
//! tools and citations that only differ in nesting, and helpers for fields with prefixed names. The
//! cache markers of the two differ only in which blocks can carry one.
//!
//! A document of one format that is written in the other keeps the options that both have
//! (`shared::options`); the other format's own fields become losses. Between the two formats that is
//! common: a program that used Chat moves to Responses with its stored history.
//!
//! Members of nested objects (`text`, `reasoning`, a choice, an answer's message) that items have no
//! field for are stored flat under a prefixed name, `text.verbosity` say, so that a report names each
//! of them and the other format can find those it knows.
//!
//! `chat` and `responses` use `shared` and do not know each other: what one of them has to read of
//! the other's (custom tools, citations, common options) is in `shared`.
//!
//! Not here: the many hosts that are compatible with Chat. What they add is kept as the item's own
//! fields, and written back only in the format it came in.

mod chat;
mod responses;
mod shared;

pub(crate) use self::chat::Chat;
pub(crate) use self::responses::Responses;
