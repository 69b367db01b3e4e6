//! Reading a log of a known format.

use contexture_wire::Format;
use serde::de::IgnoredAny;

use crate::error::SessionError;
use crate::format::SessionFormat;
use crate::session::{ReadOptions, Session};
use crate::sift::skip_bad_messages;
use crate::{claude, codex, deepagents, document, swe, tau, ui};

/// Reads every session of a log.
///
/// # Errors
/// [`SessionError::NotJson`] and [`SessionError::WrongShape`] for a text that is no log of the format;
/// [`SessionError::Record`] names the first record that cannot be read, unless
/// [`ReadOptions::keep_going`]; [`SessionError::Wire`] for documents of wire formats, whose messages are
/// their records.
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
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match format {
        SessionFormat::ClaudeCode => return Ok(vec![claude::read_session(text, options)?]),
        SessionFormat::Codex => return Ok(vec![codex::read_session(text, options)?]),
        _ => check_json(text)?,
    }
    match format {
        SessionFormat::TauBench => tau::read_sessions(text, options),
        SessionFormat::SweAgent => Ok(vec![swe::read_session(text, options)?]),
        SessionFormat::DeepAgents => Ok(vec![deepagents::read_session(text, options)?]),
        SessionFormat::Wire(format) => Ok(vec![read_document(format, text, options)?]),
        SessionFormat::ClaudeCode | SessionFormat::Codex => Ok(Vec::new()),
    }
}

fn read_document(
    format: Format,
    text: &str,
    options: &ReadOptions<'_>,
) -> Result<Session, SessionError> {
    let whole = |text: &str| match format {
        Format::Ui => ui::read_session(text),
        format => document::read_session(format, text),
    };
    let error = match whole(text) {
        Err(error) if options.keep_going => error,
        read => return read,
    };
    let Some((rest, skipped)) = skip_bad_messages(text, |message| whole(message).err()) else {
        return Err(error);
    };
    Ok(Session {
        skipped,
        ..whole(&rest)?
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
