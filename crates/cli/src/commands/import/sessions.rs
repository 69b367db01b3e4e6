//! Reading the sessions of a file, and storing several at a time.

use std::sync::Arc;

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
pub(super) const MAX_CONCURRENT_IMPORTS: usize = 64;

/// The sessions of a file that is read whole.
pub(super) fn read_sessions(
    source: &InputSource,
    rules: &ImportRules<'_>,
) -> Outcome<Vec<Session>> {
    let text = source.read_text()?;
    let name = source.file_name().unwrap_or_default();
    let of = |failure: Failure| failure.with_context(source);
    let format = resolve_format(&text, rules.format, &name).map_err(of)?;
    let options = ReadOptions {
        keep_going: rules.keep_going,
        source_name: &name,
    };
    contexture::sessions::read_sessions(format, &text, &options).map_err(|error| of(error.into()))
}

impl ImportRun<'_> {
    /// Stores sessions, several at a time; the harvest has them in their own order.
    pub(super) async fn store_sessions(
        &mut self,
        source: &InputSource,
        sessions: Vec<Session>,
    ) -> Outcome<()> {
        for skipped in sessions.iter().flat_map(|session| &session.skipped) {
            let line = format!("{source} record {}: {}", skipped.number, skipped.what);
            self.report.skipped.push(line);
        }
        self.progress.add_sessions(sessions.len());
        let imported = self.import_concurrently(source, sessions).await?;
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
        source: &InputSource,
        sessions: Vec<Session>,
    ) -> Outcome<Vec<(Arc<Session>, Outcome<Imported>)>> {
        let engine = self.open_engine().await?;
        let mut waiting = sessions.into_iter().map(Arc::new).enumerate();
        let mut running = JoinSet::new();
        let mut done: Vec<(usize, Arc<Session>, Outcome<Imported>)> = Vec::new();
        let mut stop = false;
        loop {
            while running.len() < MAX_CONCURRENT_IMPORTS && !stop {
                let Some((index, session)) = waiting.next() else {
                    break;
                };
                let options = self.rules.import_options(&session);
                let engine = engine.clone();
                running.spawn(async move {
                    let imported = import_session(&engine, &session, options).await;
                    (index, session, imported)
                });
            }
            let Some(finished) = running.join_next().await else {
                break;
            };
            let (index, session, imported) = finished.map_err(|error| {
                let message = format!("an import ended early: {error}");
                Failure::new(Exit::Fault, "import", message)
            })?;
            let imported = imported.map_err(|failure: Failure| failure.with_context(source));
            // Those that run are waited for: they may be stored already.
            stop |= imported.is_err() && !self.rules.keep_going;
            done.push((index, session, imported));
            self.progress.advance();
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
