//! The command line.

use clap::{Parser, Subcommand};

use crate::commands::{
    backup, branch, calls, cancel, chat, checkpoint, compact, compile, completions, conversations,
    convert, count, delete, diff, doctor, explain, export, gc, import, log, man, mcp, memory,
    migrate, pin, prune, read, render, replay, report, restore, resume, rewind, rules, run, runs,
    search, show, skills, stats, uncompact, verify,
};
#[cfg(feature = "serve")]
use crate::commands::{keys, serve, ui};
use crate::options::globals::Globals;
use crate::output::exit::Exit;

/// A context engine for LLM agents: keeps what happened, compiles what the model sees
#[derive(Debug, Parser)]
#[command(
    name = "contexture",
    version,
    max_term_width = 100,
    after_help = "`contexture help COMMAND` says more, with examples.",
    after_long_help = Exit::HELP,
    subcommand_required = true,
    arg_required_else_help = true,
    infer_subcommands = false
)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Import(import::Arguments),
    Conversations(conversations::Arguments),
    Log(log::Arguments),
    Show(show::Arguments),
    Search(search::Arguments),
    Read(read::Arguments),
    Branch(branch::Arguments),
    Rewind(rewind::Arguments),
    Checkpoint(checkpoint::Arguments),
    Restore(restore::Arguments),
    Compact(compact::Arguments),
    Uncompact(uncompact::Arguments),
    Pin(pin::Arguments),
    /// Take a pin back
    Unpin(pin::Arguments),
    Rules(rules::Arguments),
    Run(run::Arguments),
    Chat(chat::Arguments),
    Runs(runs::Arguments),
    Resume(resume::Arguments),
    Cancel(cancel::Arguments),
    Memory(memory::Arguments),
    Skills(skills::Arguments),
    Compile(compile::Arguments),
    Replay(replay::Arguments),
    Explain(explain::Arguments),
    Report(report::Arguments),
    Convert(convert::Arguments),
    Diff(diff::Arguments),
    Render(render::Arguments),
    Count(count::Arguments),
    Export(export::Arguments),
    #[cfg(feature = "serve")]
    Serve(serve::Arguments),
    #[cfg(feature = "serve")]
    Ui(ui::Arguments),
    #[cfg(feature = "serve")]
    Keys(keys::Arguments),
    Mcp(mcp::Arguments),
    Migrate(migrate::Arguments),
    Delete(delete::Arguments),
    Backup(backup::Arguments),
    Verify(verify::Arguments),
    Stats(stats::Arguments),
    Calls(calls::Arguments),
    Usage(calls::UsageArguments),
    Gc(gc::Arguments),
    Prune(prune::Arguments),
    Doctor(doctor::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}
