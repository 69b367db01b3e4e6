//! Writing sessions.

use contexture_wire::Format;

use crate::error::SessionError;
use crate::format::SessionFormat;
use crate::session::Session;
use crate::{claude, codex, document, swe, tau, ui};

/// Writes a session: in the format it was read from the same JSON values, with nodes added since
/// behind them; in another wire format its main path as messages.
///
/// # Errors
/// [`SessionError::CannotWrite`] for a log format other than the session's own;
/// [`SessionError::Metadata`] if the metadata is not what reading made.
pub fn write_session(format: SessionFormat, session: &Session) -> Result<String, SessionError> {
    match format {
        SessionFormat::Wire(Format::Ui) if session.format == format => ui::write_session(session),
        SessionFormat::Wire(Format::Ui) if session.format == SessionFormat::DeepAgents => {
            Ok(ui::write_path(session))
        }
        SessionFormat::Wire(wire) => document::write_session(wire, session),
        SessionFormat::DeepAgents => Err(SessionError::OnlyRead {
            format: format.as_str(),
        }),
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
