//! Import of other programs' sessions: their logs and requests become conversations.

use contexture::engine::ImportOptions;
use contexture::sessions::{ReadOptions, SessionFormat, detect_format, read_sessions};
use contexture::{Engine, EngineError};
use futures_util::future::join_all;

use crate::documents::{SessionDocument, SessionsDocument};
use crate::operations::OperationError;

/// Largest number of sessions that are imported at a time.
const MAX_CONCURRENT_IMPORTS: usize = 256;

/// How a text with sessions is read, and where they go.
#[derive(Clone, Debug, Default)]
pub struct SessionImport {
    /// Name of the format: a program's log, or a provider's request. Default: detected.
    pub format: Option<String>,
    /// Name of the file, which decides where the text alone does not. Default: none.
    pub name: Option<String>,
    /// Whether records that cannot be read are left out and listed, instead of refusing all. Default: no.
    pub keep_going: bool,
    /// The owner; and the conversation and its resource, for one session.
    pub options: ImportOptions,
}

/// Imports sessions of other programs as conversations. A session that comes again is not stored twice; one that grew is extended.
///
/// Each session is stored completely or not at all; those before one that is refused stay, and some after it may be stored as well.
///
/// # Errors
/// The text has no known format, several sessions are to become one conversation, or the engine's.
pub async fn import_sessions(
    engine: &Engine,
    text: &str,
    import: &SessionImport,
) -> Result<SessionsDocument, OperationError> {
    let name = import.name.as_deref().unwrap_or_default();
    let format = match &import.format {
        Some(format) => format.parse::<SessionFormat>(),
        None => detect_format(text, name).map(|detected| detected.format),
    };
    let format = format.map_err(EngineError::from)?;
    let reading = ReadOptions {
        keep_going: import.keep_going,
        source_name: name,
    };
    let sessions = read_sessions(format, text, &reading).map_err(EngineError::from)?;
    if import.options.conversation.is_some() && sessions.len() > 1 {
        let detail = format!("names one, and there are {} sessions", sessions.len());
        return Err(OperationError::member("conversation", detail));
    }
    let mut document = SessionsDocument {
        imported: Vec::with_capacity(sessions.len()),
        skipped: Vec::new(),
    };
    // Several at a time, as the database commits together what waits for it. All of a group end before a failure is told:
    // what is imported stays, and sending all again adds only the rest.
    for group in sessions.chunks(MAX_CONCURRENT_IMPORTS) {
        let imports = group
            .iter()
            .map(|session| engine.import(session, &import.options));
        for (session, imported) in group.iter().zip(join_all(imports).await) {
            let records = session.skipped.iter();
            document
                .skipped
                .extend(records.map(|record| format!("record {}: {}", record.number, record.what)));
            let session = SessionDocument::new(session.format, &session.source_id, &imported?);
            document.imported.push(session);
        }
    }
    Ok(document)
}
