//! Session files: which format, which session.

use contexture::Format;
use contexture::ir::Transcript;
use contexture::sessions::{
    ReadOptions, Session, SessionFormat, Skipped, detect_format, read_sessions,
};
use contexture::wire::lift;

use crate::input::InputSource;
use crate::output::failure::{Failure, Outcome};
use crate::output::write;

/// A session, read.
#[derive(Clone, Debug)]
pub(crate) struct ParsedSession {
    /// What it says.
    pub(crate) transcript: Transcript,
    /// The format whose requests it holds, if it is one of ours.
    pub(crate) written_in: Option<Format>,
}

/// What a text is said to be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SessionHints<'a> {
    /// The format, if it was named.
    pub(crate) from: Option<&'a str>,
    /// The file's name, which breaks ties.
    pub(crate) name: &'a str,
    /// Which session of several, from 1.
    pub(crate) number: Option<usize>,
}

/// Reads one session of a file.
///
/// # Errors
/// The file cannot be read, is not of its format, or holds several and none was chosen.
pub(crate) fn read_session(
    source: &InputSource,
    from: Option<&str>,
    number: Option<usize>,
) -> Outcome<ParsedSession> {
    let text = source.read_text()?;
    let name = source.file_name().unwrap_or_default();
    parse_session(
        &text,
        &SessionHints {
            from,
            name: &name,
            number,
        },
    )
    .map_err(|failure| failure.with_context(source))
}

/// Reads one session of a text.
///
/// # Errors
/// As [`read_session`].
pub(crate) fn parse_session(text: &str, said: &SessionHints<'_>) -> Outcome<ParsedSession> {
    let format = resolve_format(text, said.from, said.name)?;
    if let SessionFormat::Wire(format) = format {
        // By itself a request says more than a session: tools, options, the model.
        let transcript = lift(format, text)?.transcript;
        return Ok(ParsedSession {
            transcript,
            written_in: Some(format),
        });
    }
    let options = ReadOptions {
        source_name: said.name,
        ..ReadOptions::default()
    };
    let session = choose_session(read_sessions(format, text, &options)?, said.number)?;
    for skipped in &session.skipped {
        let Skipped { number, what } = skipped;
        write::print_warning(&format!("left out: record {number}: {what}"));
    }
    // A session may have several ends; the first one is shown where none can be chosen.
    let transcript = session.heads.first().map(|head| session.transcript(head));
    Ok(ParsedSession {
        transcript: transcript.unwrap_or_default(),
        written_in: None,
    })
}

/// The format that is named, else the one the text shows.
///
/// # Errors
/// The name is no format's, or the text is of none that is known.
pub(crate) fn resolve_format(text: &str, from: Option<&str>, name: &str) -> Outcome<SessionFormat> {
    match from {
        Some(name) => Ok(name.parse::<SessionFormat>()?),
        None => Ok(detect_format(text, name)?.format),
    }
}

/// The format of a document that is to be converted.
///
/// # Errors
/// As [`resolve_format()`], or it is a log, which holds more than a document.
pub(crate) fn document_format(text: &str, name: &str) -> Outcome<Format> {
    match resolve_format(text, None, name)? {
        SessionFormat::Wire(format) => Ok(format),
        log => Err(Failure::bad_input(
            "wrong_format",
            format!("a log of format {log}, expected a request, a response or a list of messages"),
        )
        .with_hint(
            "`contexture import` keeps logs, `contexture export --to` writes them in other formats",
        )),
    }
}

fn choose_session(mut sessions: Vec<Session>, number: Option<usize>) -> Outcome<Session> {
    let many = sessions.len();
    let index = match (number, many) {
        // People count from 1; a zero leads to the error below.
        (Some(number), _) => number.checked_sub(1),
        (None, 1) => Some(0),
        (None, _) => {
            let message = format!("it holds {many} sessions, and none was chosen");
            return Err(
                Failure::usage(message).with_hint(format!("choose one: --session 1 … {many}"))
            );
        }
    };
    match index.filter(|index| *index < many) {
        // The others are dropped, so their order no longer matters.
        Some(index) => Ok(sessions.swap_remove(index)),
        None => {
            let message = format!("it holds {many} sessions, there is no other");
            Err(Failure::usage(message).with_hint(format!("--session 1 … {many}")))
        }
    }
}
