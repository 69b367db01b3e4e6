//! An import under way: what was said, and what came of it so far.

use contexture::engine::ImportOptions;
use contexture::ir::ConversationId;
use contexture::sessions::Session;
use contexture::{Engine, Owner};

use crate::commands::import::progress::ImportProgress;
use crate::commands::import::report::ImportReport;
use crate::commands::import::sessions::ReadSessions;
use crate::database::{self, WhenMissing};
use crate::options::globals::Globals;
use crate::output::failure::{Failure, Outcome};

/// The command under way.
pub(super) struct ImportRun<'a> {
    pub(super) rules: ImportRules<'a>,
    pub(super) globals: &'a Globals,
    /// Not before there is something to store: a wrong file must not make a database.
    pub(super) engine: Option<Engine>,
    /// Of files that hold a few sessions each, to be stored together.
    pub(super) read: ReadSessions,
    pub(super) report: ImportReport,
    pub(super) progress: ImportProgress,
}

/// What the command line says of all files.
pub(super) struct ImportRules<'a> {
    pub(super) format: Option<&'a str>,
    pub(super) conversation: Option<&'a str>,
    pub(super) resource: Option<&'a str>,
    pub(super) keep_going: bool,
    /// Whether there is one file.
    pub(super) is_only_file: bool,
    /// Whose all conversations are, if that was said.
    pub(super) owner: Option<Owner>,
}

impl ImportRules<'_> {
    /// Refuses one id for several sessions.
    pub(super) fn check_count(&self, sessions: u64) -> Outcome<()> {
        if self.conversation.is_some() && (sessions > 1 || !self.is_only_file) {
            let message = "--conversation names one conversation, and there are several sessions";
            return Err(
                Failure::usage(message).with_hint("leave it out: each gets an id of its own")
            );
        }
        Ok(())
    }

    pub(super) fn import_options(&self, session: &Session) -> Outcome<ImportOptions> {
        let own = || {
            let Some(own) = &session.info.owner else {
                return Ok(Owner::local());
            };
            Owner::new(own).map_err(|error| {
                Failure::from(error)
                    .with_context(format!("session {:?}", session.source_id))
                    .with_hint("name an owner for all of them: --owner NAME")
            })
        };
        Ok(ImportOptions {
            owner: self.owner.clone().map_or_else(own, Ok)?,
            conversation: self.conversation.map(ConversationId::new).transpose()?,
            resource: self.resource.map(str::to_owned),
            ..ImportOptions::default()
        })
    }
}

impl ImportRun<'_> {
    /// The engine, opened once.
    pub(super) async fn open_engine(&mut self) -> Outcome<Engine> {
        match &self.engine {
            Some(engine) => Ok(engine.clone()),
            None => {
                // Not before there is something to store: a file that cannot be read makes no
                // database.
                let engine = database::open_engine(self.globals, WhenMissing::Create).await?;
                Ok(self.engine.insert(engine).clone())
            }
        }
    }
}
