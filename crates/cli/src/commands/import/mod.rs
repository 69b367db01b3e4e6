//! `contexture import`: session files become conversations.

mod deepagents;
mod progress;
mod report;
mod run;
mod sessions;

use self::progress::ImportProgress;
use self::report::{ImportReport, PassedOver, PassedOverFiles};
use self::run::{ImportRules, ImportRun};
use self::sessions::ReadSessions;
use crate::conversation_lines;
use crate::database;
use crate::input::InputSource;
use crate::input_folder::{InputFile, expand_folders, may_hold_session};
use crate::options::globals::Globals;
use crate::options::parse_values::session_format;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use clap::Args;

/// Keep session files as conversations
///
/// Importing a file again stores nothing twice; a session that grew gets what is new. A log with an
/// id of its own is known again by it; for others name the conversation: the file goes on from what
/// both say, and where it says something else, on a new branch.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture import examples/marshmallow-1867.traj
  contexture import ~/.claude/projects --keep-going
  contexture import chat.json --conversation support-42 --resource ada@example.org
  contexture import - --format openai-chat < chat.json
  contexture import chats.db --keep-going

Formats: openai-chat, openai-responses, anthropic, gemini, ui, items, swe-agent, tau-bench,
claude-code, codex; deepagents, a SQLite database that @deepagents/context made; and contexture,
whole conversations as `export --to contexture` writes them. A file with several sessions becomes
several conversations. Of a folder everything is imported that holds a session, whatever its name,
in the folders in it too; files that hold none are counted. Chats of a database belong to their
users, unless --owner says to whom.")]
pub(crate) struct Arguments {
    /// Files or folders; `-`: standard input
    #[arg(required = true)]
    files: Vec<String>,
    /// The format of the files; default: detected
    #[arg(long, short, visible_alias = "from", value_parser = session_format())]
    format: Option<String>,
    /// The conversation's id, for a file with one session; default: made from the session's own
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// What the conversations are about, an end user say: `memory`, `search` and others take it too
    #[arg(long, value_name = "RESOURCE")]
    resource: Option<String>,
    /// Store what can be read and list the rest, instead of stopping at the first error
    #[arg(long)]
    keep_going: bool,
    /// List the files of folders that hold no session, and why
    #[arg(long)]
    verbose: bool,
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be read, or a conversation that cannot be stored; with `--keep-going` these are
/// listed, and the command ends with [`Exit::Findings`].
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let files = expand_folders(&arguments.files)?;
    let bytes = files.iter().map(InputFile::byte_count).sum();
    let mut run = ImportRun {
        rules: ImportRules {
            format: arguments.format.as_deref(),
            conversation: arguments.conversation.as_deref(),
            resource: arguments.resource.as_deref(),
            keep_going: arguments.keep_going,
            is_only_file: files.len() == 1,
            owner: globals.explicit_owner()?,
        },
        globals,
        engine: None,
        read: ReadSessions::default(),
        report: ImportReport::default(),
        progress: ImportProgress::new(globals, bytes),
    };
    for file in &files {
        match run.import_file(file).await {
            Ok(()) => {}
            // A wrong command line is wrong for every file.
            Err(failure) if arguments.keep_going && failure.exit != Exit::Usage => {
                run.report.failed.push(failure);
            }
            Err(failure) => return Err(failure),
        }
    }
    run.store_read_sessions().await?;
    run.progress.finish();
    // A wrong folder would otherwise look like one that was imported.
    if let Some(failure) = run.report.only_passed_over(&arguments.files) {
        return Err(failure);
    }
    let listing = match arguments.verbose {
        true => PassedOverFiles::List,
        false => PassedOverFiles::Count,
    };
    report::print_report(&run.report, listing, globals)?;
    Ok(run.report.exit_code())
}

impl ImportRun<'_> {
    /// Imports a file; one that was found in a folder and holds no session is only noted.
    async fn import_file(&mut self, file: &InputFile) -> Outcome<()> {
        if let (true, InputSource::File(path)) = (file.is_found, &file.source)
            && !may_hold_session(path)
        {
            self.pass_over(file, "neither JSON nor a database".to_owned());
            return Ok(());
        }
        match self.import_source(file).await {
            Err(failure) if file.is_found && is_no_session(&failure) => {
                self.pass_over(file, failure.message);
                Ok(())
            }
            done => done,
        }
    }

    fn pass_over(&mut self, file: &InputFile, why: String) {
        self.progress.advance(file.byte_count());
        let file = file.source.to_string();
        self.report.passed_over.push(PassedOver { file, why });
    }

    async fn import_source(&mut self, file: &InputFile) -> Outcome<()> {
        let source = &file.source;
        // What cannot be read is told of below.
        if let Ok(Some(mut lines)) = conversation_lines::open_if_portable(source) {
            self.store_read_sessions().await?;
            let kept = [
                (self.rules.conversation, "--conversation", "ids"),
                (self.rules.resource, "--resource", "resources"),
            ];
            if let Some((_, option, what)) = kept.iter().find(|(said, ..)| said.is_some()) {
                let message = format!("{source}: whole conversations keep their {what}");
                return Err(Failure::usage(message).with_hint(format!("leave out {option}")));
            }
            let owner = database::resolve_owner(self.globals)?;
            let engine = self.open_engine().await?;
            let store = &**engine.store();
            let kept = conversation_lines::import_conversations(store, &owner, source, &mut *lines)
                .await?;
            self.report.imported_files.push(kept);
            self.progress.advance(file.byte_count());
            return Ok(());
        }
        if let Some(path) = deepagents::detect_database(source, self.rules.format) {
            self.store_read_sessions().await?;
            return self.import_chats(source, path).await;
        }
        match sessions::read_sessions(source, &self.rules) {
            Ok(read) => self.keep_sessions(source, read).await,
            // What was read before it is stored.
            Err(failure) if !(file.is_found && is_no_session(&failure)) => {
                self.store_read_sessions().await?;
                Err(self.report.with_stored_count(failure))
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Whether a file is well and holds no session: another document, another program's database, no text.
fn is_no_session(failure: &Failure) -> bool {
    let kinds = [
        "not_json",
        "not_text",
        "unknown_format",
        "wrong_format",
        "no_items",
        deepagents::OTHER_DATABASE,
    ];
    kinds.contains(&failure.kind)
}
