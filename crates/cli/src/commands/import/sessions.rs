//! Reading the sessions of a file, and storing several at a time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use contexture::engine::{Engine, ImportOptions, Imported};
use contexture::sessions::{ReadOptions, Session};
use tokio::task::JoinSet;

use crate::commands::import::report::StoredSession;
use crate::commands::import::run::{ImportRules, ImportRun};
use crate::input::InputSource;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::session::resolve_format;

/// Sessions that are stored at the same time: the database commits what waits together.
pub(super) const MAX_CONCURRENT_IMPORTS: usize = 256;

/// How often progress is shown.
const TICK: Duration = Duration::from_millis(100);

/// Sessions and bytes of files that are read before they are stored together.
const MAX_READ_SESSIONS: usize = 1024;
const MAX_READ_BYTES: usize = 16 << 20;

/// A session, and the file that it came from.
pub(super) type SourcedSession = (Arc<InputSource>, Session);

/// Sessions that were read and are not stored yet, each of another conversation.
#[derive(Default)]
pub(super) struct ReadSessions {
    sessions: Vec<SourcedSession>,
    bytes: usize,
    /// What makes the ids of their conversations.
    names: BTreeSet<String>,
}

/// The sessions of a file that is read whole, and its length.
pub(super) struct SessionFile {
    sessions: Vec<Session>,
    bytes: usize,
}

/// Reads the sessions of a file.
pub(super) fn read_sessions(source: &InputSource, rules: &ImportRules<'_>) -> Outcome<SessionFile> {
    let text = source.read_text()?;
    let name = source.file_name().unwrap_or_default();
    let of = |failure: Failure| failure.with_context(source);
    let format = resolve_format(&text, rules.format, &name).map_err(of)?;
    let options = ReadOptions {
        keep_going: rules.keep_going,
        source_name: &name,
    };
    let sessions = contexture::sessions::read_sessions(format, &text, &options);
    Ok(SessionFile {
        sessions: sessions.map_err(|error| of(error.into()))?,
        bytes: text.len(),
    })
}

impl ImportRun<'_> {
    /// Takes the sessions of a file, to be stored together with those of other files: commits are shared, and a folder
    /// of a hundred thousand files is stored as quickly as one file with as many sessions.
    pub(super) async fn keep_sessions(
        &mut self,
        source: &InputSource,
        file: SessionFile,
    ) -> Outcome<()> {
        self.rules.check_count(file.sessions.len() as u64)?;
        let source = Arc::new(source.clone());
        for session in file.sessions {
            let own = session.info.conversation.as_ref();
            let name = own.unwrap_or(&session.source_id).clone();
            // A session that goes on with another one comes after it.
            if self.read.names.contains(&name) {
                self.store_read_sessions().await?;
            }
            self.read.names.insert(name);
            self.read.sessions.push((Arc::clone(&source), session));
        }
        self.read.bytes += file.bytes;
        if self.read.sessions.len() >= MAX_READ_SESSIONS || self.read.bytes >= MAX_READ_BYTES {
            self.store_read_sessions().await?;
        }
        Ok(())
    }

    /// Stores what was read and is not stored yet.
    pub(super) async fn store_read_sessions(&mut self) -> Outcome<()> {
        let read = std::mem::take(&mut self.read);
        if read.sessions.is_empty() {
            return Ok(());
        }
        self.store_sessions(read.sessions, read.bytes as u64).await
    }

    /// Stores sessions of so many bytes, several at a time; the harvest has them in their own order.
    pub(super) async fn store_sessions(
        &mut self,
        sessions: Vec<SourcedSession>,
        bytes: u64,
    ) -> Outcome<()> {
        for (source, session) in &sessions {
            for skipped in &session.skipped {
                let line = format!("{source} record {}: {}", skipped.number, skipped.what);
                self.report.skipped.push(line);
            }
        }
        let imported = self.import_concurrently(sessions, bytes).await?;
        self.progress.advance(bytes);
        let mut first = None;
        for (session, imported) in imported {
            match imported {
                Ok(imported) => self
                    .report
                    .imported
                    .push(StoredSession::new(&session, imported)),
                Err(failure) if self.rules.keep_going => self.report.failed.push(failure),
                Err(failure) => first = first.or(Some(failure)),
            }
        }
        match first {
            Some(failure) => Err(self.report.with_stored_count(failure)),
            None => Ok(()),
        }
    }

    /// Imports sessions, several at a time, and returns them in their own order. Without `keep_going` none is begun after
    /// the first failure.
    async fn import_concurrently(
        &mut self,
        sessions: Vec<SourcedSession>,
        bytes: u64,
    ) -> Outcome<Vec<(Arc<Session>, Outcome<Imported>)>> {
        let engine = self.open_engine().await?;
        let items = sessions
            .iter()
            .map(|(_, session)| session.tree.len() as u64);
        let items: u64 = items.sum();
        let stored_items: Arc<AtomicU64> = Arc::default();
        // One session may be a whole import, so what it has stored is looked at while it goes on.
        let mut ticks = tokio::time::interval(TICK);
        let mut waiting = sessions.into_iter().enumerate();
        let mut running = JoinSet::new();
        let mut done: Vec<(usize, Arc<Session>, Outcome<Imported>)> = Vec::new();
        let mut stop = false;
        loop {
            while running.len() < MAX_CONCURRENT_IMPORTS && !stop {
                let Some((index, (source, session))) = waiting.next() else {
                    break;
                };
                let session = Arc::new(session);
                let options = self.rules.import_options(&session);
                let options = options.map(|options| ImportOptions {
                    stored_items: Arc::clone(&stored_items),
                    ..options
                });
                let engine = engine.clone();
                running.spawn(async move {
                    let imported = import_session(&engine, &session, options).await;
                    let imported = imported.map_err(|failure| failure.with_context(source));
                    (index, session, imported)
                });
            }
            let finished = tokio::select! {
                finished = running.join_next() => finished,
                _ = ticks.tick() => {
                    let stored = stored_items.load(Ordering::Relaxed);
                    self.progress.show_share(bytes, stored, items);
                    continue;
                }
            };
            let Some(finished) = finished else {
                break;
            };
            let (index, session, imported) = finished.map_err(|error| {
                let message = format!("an import ended early: {error}");
                Failure::new(Exit::Fault, "import", message)
            })?;
            // Those that run are waited for: they may be stored already.
            stop |= imported.is_err() && !self.rules.keep_going;
            done.push((index, session, imported));
        }
        // They end in any order; the report has that of the file.
        done.sort_by_key(|(index, ..)| *index);
        let in_order = done
            .into_iter()
            .map(|(_, session, imported)| (session, imported));
        Ok(in_order.collect())
    }
}

async fn import_session(
    engine: &Engine,
    session: &Session,
    options: Outcome<ImportOptions>,
) -> Outcome<Imported> {
    Ok(engine.import(session, &options?).await?)
}
