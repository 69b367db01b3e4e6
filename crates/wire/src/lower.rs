//! Which format's writer lowers a run or an envelope.

use contexture_ir::Transcript;

use crate::chunk::{Chunk, Dialect, Envelope};
use crate::entry::RoleRun;
use crate::format::Format;
use crate::mark::markers;
use crate::{anthropic, gemini, openai_chat, openai_responses};

/// Lowers one run for a provider's format; `Ui` and `Items` have no runs and give an empty chunk.
#[must_use]
pub fn lower_run(dialect: &Dialect, run: &RoleRun<'_, '_>) -> Chunk {
    let mut chunk = match dialect.format {
        Format::OpenAiChat => openai_chat::lower_run(dialect, run),
        Format::OpenAiResponses => openai_responses::lower_run(dialect, run),
        Format::Anthropic => anthropic::lower_run(dialect, run),
        Format::Gemini => gemini::lower_run(dialect, run),
        Format::Ui | Format::Items => Chunk::default(),
    };
    chunk.facts.marks = markers(dialect.format, &chunk.json);
    chunk
}

/// Lowers everything of a request but its history; `Ui` and `Items` give an empty envelope.
#[must_use]
pub fn lower_envelope(dialect: &Dialect, request: &Transcript) -> Envelope {
    match dialect.format {
        Format::OpenAiChat => openai_chat::lower_envelope(dialect, request),
        Format::OpenAiResponses => openai_responses::lower_envelope(dialect, request),
        Format::Anthropic => anthropic::lower_envelope(dialect, request),
        Format::Gemini => gemini::lower_envelope(dialect, request),
        Format::Ui | Format::Items => Envelope::default(),
    }
}
