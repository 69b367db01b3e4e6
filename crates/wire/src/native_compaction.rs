//! Compaction by the provider itself, asked for in a request.
//!
//! The parameter goes into the request as it is. What comes back is a compaction item of the answer, opaque or not. A store
//! makes it stand for the items it is about; without one it is an item like any other, beside them.
//!
//! Not here: the endpoints that compact on demand, and the headers (a client's business; [`NativeCompaction::beta_header`]
//! says which).

use contexture_ir::Raw;
use serde::Serialize;

use crate::continue_request::CONTEXT_EDITS;

/// A provider's own compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NativeCompaction {
    /// Anthropic's, by a threshold.
    Anthropic {
        /// From so many input tokens on; `None`: the provider's default. It takes no less than 50,000.
        trigger: Option<u64>,
        /// What its summariser is told instead of its own prompt.
        instructions: Option<String>,
    },
    /// OpenAI's, of Responses.
    OpenAiResponses {
        /// From so many tokens on; `None`: the provider's default.
        threshold: Option<u64>,
    },
}

impl NativeCompaction {
    /// The top-level field of a request that asks for it, and its value.
    #[must_use]
    pub fn request_param(&self) -> (&'static str, Raw) {
        let value = match self {
            Self::Anthropic {
                trigger,
                instructions,
            } => Raw::from_value(&ContextEdits {
                edits: [ContextEdit {
                    kind: "compact_20260112",
                    trigger: trigger.map(|value| InputTokens {
                        kind: "input_tokens",
                        value,
                    }),
                    instructions: instructions.as_deref(),
                }],
            }),
            Self::OpenAiResponses { threshold } => Raw::from_value(&[Threshold {
                kind: "compaction",
                compact_threshold: *threshold,
            }]),
        };
        let value = value.unwrap_or_else(|_| Raw::null());
        (CONTEXT_EDITS, value)
    }

    /// The word of the provider's header for features in trial that a client must send with it.
    #[must_use]
    pub const fn beta_header(&self) -> Option<&'static str> {
        match self {
            Self::Anthropic { .. } => Some("compact-2026-01-12"),
            Self::OpenAiResponses { .. } => None,
        }
    }
}

#[derive(Serialize)]
struct ContextEdits<'a> {
    edits: [ContextEdit<'a>; 1],
}

#[derive(Serialize)]
struct ContextEdit<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<InputTokens>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
}

#[derive(Serialize)]
struct InputTokens {
    #[serde(rename = "type")]
    kind: &'static str,
    value: u64,
}

#[derive(Serialize)]
struct Threshold {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    compact_threshold: Option<u64>,
}
