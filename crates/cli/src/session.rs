//! Session files: which format, which session.

use contexture::Format;
use contexture::ir::Transcript;
use contexture::wire::lift;

use crate::failure::{Failure, Outcome};
use crate::input::Source;

/// A session, read.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    /// What it says.
    pub(crate) transcript: Transcript,
    /// The format whose requests it holds, if it is one of ours.
    pub(crate) written_in: Option<Format>,
}

/// Reads one session of a file.
///
/// # Errors
/// The file cannot be read, is not of its format, or holds several and none was chosen.
pub(crate) fn one(source: &Source, from: Option<&str>, number: Option<usize>) -> Outcome<Opened> {
    let text = source.read()?;
    parse(&text, from, number).map_err(|failure| failure.of(source))
}

/// Reads one session of a text.
///
/// # Errors
/// As [`one`].
pub(crate) fn parse(text: &str, from: Option<&str>, _number: Option<usize>) -> Outcome<Opened> {
    let format = match from {
        Some(name) => name
            .parse::<Format>()
            .map_err(|error| Failure::usage(error.to_string()))?,
        None => detect(text)?,
    };
    let lifted = lift(format, text)?;
    Ok(Opened {
        transcript: lifted.transcript,
        written_in: Some(format),
    })
}

/// The format of a document.
///
/// # Errors
/// It is none that we read.
pub(crate) fn detect(text: &str) -> Outcome<Format> {
    contexture::wire::detect(text).ok_or_else(|| {
        Failure::bad_input(
            "unknown_format",
            "the format is not to be told from the document",
        )
        .hint("name it: --from openai-chat|openai-responses|anthropic|gemini|ui|items")
    })
}
