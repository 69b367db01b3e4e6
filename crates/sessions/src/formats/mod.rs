//! The log formats: one module reads and writes each, and this one picks it.
//!
//! | Module | Log |
//! |---|---|
//! | `atif` | a trajectory in the Agent Trajectory Interchange Format |
//! | `claude` | Claude Code's transcript, one JSON record a line |
//! | `codex` | Codex's rollout, one JSON record a line; `codex_events` finds messages that stand in events alone |
//! | `deepagents` | a chat of `@deepagents/context`, rows of its tables in one object |
//! | `swe` | a trajectory of SWE-agent |
//! | `tau` | results of tau-bench, several sessions in one array |
//! | `ui` | messages of the AI SDK's UI |
//! | `request_body` | a request body or message array of a provider's wire format |
//!
//! Invariant: what a format reads it writes back as the same JSON values, unknown fields included. Not here: which
//! format a text has (`detect`), and what the formats share (`lines`, `kept_records`, `session`).

mod atif;
mod claude;
mod codex;
mod codex_events;
mod deepagents;
mod request_body;
mod swe;
mod tau;
mod ui;

use contexture_ir::{Item, Message};
use contexture_wire::Format;
use serde::de::IgnoredAny;

use crate::error::SessionError;
use crate::format::SessionFormat;
use crate::session::{ReadOptions, Session};
use crate::skip_bad_messages::skip_bad_messages;

/// Reads every session of a log.
///
/// # Errors
/// [`SessionError::NotJson`] and [`SessionError::WrongShape`] for a text that is no log of the format;
/// [`SessionError::Record`] names the first record that cannot be read, unless
/// [`ReadOptions::keep_going`] (a line of JSON that is not understood is no such record: it is in
/// [`Session::skipped`]); [`SessionError::Wire`] for documents of wire formats, whose messages are
/// their records; [`SessionError::NoItems`] for a log in which nothing is said, messages
/// without content among them.
///
/// ```
/// use contexture_sessions::{ReadOptions, SessionFormat, detect_format, read_sessions, write_session};
/// let log = r#"[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]"#;
/// let format = detect_format(log, "chat.json")?.format;
/// let sessions = read_sessions(format, log, &ReadOptions::default())?;
/// assert_eq!(sessions[0].tree.len(), 2);
/// assert_eq!(write_session(format, &sessions[0])?, log);
/// # Ok::<(), contexture_sessions::SessionError>(())
/// ```
pub fn read_sessions(
    format: SessionFormat,
    text: &str,
    options: &ReadOptions<'_>,
) -> Result<Vec<Session>, SessionError> {
    // Editors on Windows prepend a byte order mark, which no JSON parser takes.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let sessions = match format {
        // Logs of lines are not one JSON document.
        SessionFormat::ClaudeCode => vec![claude::read_session(text, options)?],
        SessionFormat::Codex => vec![codex::read_session(text, options)?],
        document => {
            check_json(text)?;
            read_json_sessions(document, text, options)?
        }
    };
    // A chat of `@deepagents/context` is one even before anything is said in it: it has an owner and branches.
    match format == SessionFormat::DeepAgents || sessions.iter().any(is_anything_said) {
        true => Ok(sessions),
        // Success would hide that the log was not understood.
        false => Err(SessionError::NoItems {
            format: format.as_str(),
        }),
    }
}

/// Whether something was read of a session's messages. Messages without content are what another program's look like, which
/// has its texts under other names.
fn is_anything_said(session: &Session) -> bool {
    let has_content = |message: &Message| {
        let mut parts = message.content.iter();
        parts.any(|part| part.as_text().is_none_or(|text| !text.is_empty()))
    };
    let items = session.tree.iter().map(|node| &node.item);
    session.instructions.iter().any(has_content)
        || items.into_iter().any(|item| match item {
            Item::Message(message) => has_content(message),
            _ => true,
        })
}

fn read_json_sessions(
    format: SessionFormat,
    text: &str,
    options: &ReadOptions<'_>,
) -> Result<Vec<Session>, SessionError> {
    Ok(match format {
        SessionFormat::TauBench => tau::read_sessions(text, options)?,
        SessionFormat::SweAgent => vec![swe::read_session(text, options)?],
        SessionFormat::Atif => vec![atif::read_session(text, options)?],
        SessionFormat::DeepAgents => vec![deepagents::read_session(text, options)?],
        SessionFormat::Wire(format) => vec![read_document(format, text, options)?],
        SessionFormat::ClaudeCode | SessionFormat::Codex => Vec::new(),
    })
}

fn read_document(
    format: Format,
    text: &str,
    options: &ReadOptions<'_>,
) -> Result<Session, SessionError> {
    let read_all = |text: &str| match format {
        Format::Ui => ui::read_session(text),
        format => request_body::read_session(format, text),
    };
    // Read as a whole first. Reading each message alone is slower and loses what spans messages.
    let error = match read_all(text) {
        Err(error) if options.keep_going => error,
        read => return read,
    };
    // No single message is at fault, so the document as such is, and its own error is the one to report.
    let Some((rest, skipped)) = skip_bad_messages(text, |message| read_all(message).err()) else {
        return Err(error);
    };
    Ok(Session {
        skipped,
        ..read_all(&rest)?
    })
}

fn check_json(text: &str) -> Result<(), SessionError> {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Ok(()),
        Err(source) => Err(SessionError::NotJson {
            line: source.line(),
            column: source.column(),
            source,
        }),
    }
}

/// Writes a session: in the format it was read from the same JSON values, with nodes added since
/// behind them; in another wire format its main path as messages, as a trajectory (ATIF) its main path as steps.
///
/// # Errors
/// [`SessionError::CannotWrite`] for a log format other than the session's own;
/// [`SessionError::Metadata`] if the metadata is not what reading made.
pub fn write_session(format: SessionFormat, session: &Session) -> Result<String, SessionError> {
    match format {
        SessionFormat::Wire(Format::Ui) if session.format == format => ui::write_session(session),
        // A chat of the package holds UI messages under their own ids, which the general path would lose.
        SessionFormat::Wire(Format::Ui) if session.format == SessionFormat::DeepAgents => {
            Ok(ui::write_path(session))
        }
        SessionFormat::Wire(wire) => request_body::write_session(wire, session),
        SessionFormat::Atif => atif::write_session(session),
        SessionFormat::DeepAgents => Err(SessionError::OnlyRead {
            format: format.as_str(),
        }),
        // Records of one log mean nothing in another. A wire format takes any session.
        other if other != session.format => Err(SessionError::CannotWrite {
            from: session.format.as_str(),
            to: other.as_str(),
        }),
        SessionFormat::TauBench => tau::write_session(session),
        SessionFormat::SweAgent => swe::write_session(session),
        SessionFormat::ClaudeCode => claude::write_session(session),
        SessionFormat::Codex => codex::write_session(session),
    }
}

/// Writes the sessions of one file: an array for formats whose files hold several, each by itself
/// otherwise, one a line.
///
/// # Errors
/// As [`write_session`](write_session()).
pub fn write_sessions(format: SessionFormat, sessions: &[Session]) -> Result<String, SessionError> {
    let texts: Result<Vec<String>, SessionError> = sessions
        .iter()
        .map(|session| write_session(format, session))
        .collect();
    let texts = texts?;
    Ok(match format {
        SessionFormat::TauBench => format!("[{}]", texts.join(",")),
        _ => texts.join("\n"),
    })
}
