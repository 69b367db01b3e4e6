//! Databases of `@deepagents/context`: chat by chat, never whole in memory.

use std::path::Path;
use std::sync::Arc;

use contexture::sessions::{ReadOptions, Session, SessionFormat, read_sessions};
use contexture::store::Error as StoreError;
use contexture::store_sqlite::{DeepAgentsFile, is_sqlite};

use crate::commands::import::run::ImportRun;
use crate::commands::import::sessions::MAX_CONCURRENT_IMPORTS;
use crate::input::InputSource;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};

/// The kind of failure of a database that holds something else.
pub(super) const OTHER_DATABASE: &str = "other_database";

/// Chats of more JSON than this are not gathered further before they are stored.
const MAX_BATCH_BYTES: usize = 16 << 20;

/// The file, if it is a SQLite database and was not said to be something else.
pub(super) fn detect_database<'s>(
    source: &'s InputSource,
    format: Option<&str>,
) -> Option<&'s Path> {
    let InputSource::File(path) = source else {
        return None;
    };
    let may_be = format.is_none_or(|format| format == SessionFormat::DeepAgents.as_str());
    // What cannot be read is told of by whoever reads it.
    let is = may_be && is_sqlite(path).unwrap_or(false);
    is.then_some(path)
}

impl ImportRun<'_> {
    /// Stores the chats of a database.
    pub(super) async fn import_chats(&mut self, source: &InputSource, path: &Path) -> Outcome<()> {
        let unreadable = |error| unreadable_database(error, source);
        let mut file = DeepAgentsFile::open(path).map_err(unreadable)?;
        let count = file.chat_count().map_err(unreadable)?;
        self.rules.check_count(count)?;
        loop {
            let (mut sessions, mut bytes) = (Vec::new(), 0);
            let mut failed = None;
            let mut ended = false;
            // A batch ends by number or by size, whichever comes first: chats may be long.
            while sessions.len() < MAX_CONCURRENT_IMPORTS
                && bytes < MAX_BATCH_BYTES
                && failed.is_none()
                && !ended
            {
                let read = match file.next_chat() {
                    Ok(Some(chat)) => {
                        bytes += chat.len();
                        self.parse_chat(source, &chat)
                    }
                    Ok(None) => {
                        ended = true;
                        continue;
                    }
                    Err(error) => Err(unreadable(error)),
                };
                match read {
                    Ok(read) => sessions.extend(read),
                    Err(failure) if self.rules.keep_going => self.report.failed.push(failure),
                    Err(failure) => failed = Some(failure),
                }
            }
            // Also after a failure: what was read before it is stored.
            if !sessions.is_empty() {
                let source = Arc::new(source.clone());
                let sessions = sessions.into_iter().map(|one| (Arc::clone(&source), one));
                self.store_sessions(sessions.collect(), bytes as u64)
                    .await?;
            }
            match failed {
                Some(failure) => return Err(self.report.with_stored_count(failure)),
                None if ended => return Ok(()),
                None => {}
            }
        }
    }

    fn parse_chat(&self, source: &InputSource, chat: &str) -> Outcome<Vec<Session>> {
        let options = ReadOptions {
            keep_going: self.rules.keep_going,
            ..ReadOptions::default()
        };
        read_sessions(SessionFormat::DeepAgents, chat, &options)
            .map_err(|error| Failure::from(error).with_context(source))
    }
}

fn unreadable_database(error: StoreError, source: &InputSource) -> Failure {
    let other = matches!(error, StoreError::Invalid { .. });
    let failure = Failure::from(error).with_context(source);
    if other {
        return Failure {
            exit: Exit::BadInput,
            kind: OTHER_DATABASE,
            ..failure
        }
        .with_hint("a database of our own is named by --db; `contexture export --all` writes what can be imported");
    }
    Failure {
        exit: Exit::Stream,
        ..failure
    }
    .with_hint(
        "close the program that writes to it, or import a copy that SQLite's `.recover` made",
    )
}
