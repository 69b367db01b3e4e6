//! The `contexture` command: sessions in, payloads out.
//!
//! It reads arguments, calls the library and shows what came of it. Results go to standard output
//! and nothing else does; reports, progress and errors go to standard error. What happens is decided
//! in the libraries; here is only how it is asked for and how it looks.

mod again;
mod ago;
mod arguments;
mod commands;
mod database;
mod exit;
mod explain;
mod failure;
mod globals;
mod input;
mod layering;
mod logs;
mod models;
mod order;
mod place;
mod portable;
mod printable;
mod say;
mod session;
mod skill_folders;
mod stream;
mod talk;
mod target;
mod terminal;
mod view;
mod wait;
mod words;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::arguments::{Command, CommandLine};
use crate::commands::pin::Deed;
use crate::commands::{
    backup, branch, chat, checkpoint, compact, compile, completions, conversations, convert, count,
    delete, diff, doctor, export, gc, import, keys, log, mcp, memory, migrate, pin, read, render,
    replay, restore, resume, rewind, run as turn, runs, search, serve, show, skills, stats,
    uncompact, verify,
};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::wait::{for_it, for_many};

fn main() -> ExitCode {
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) => return refuse(&error),
    };
    line.globals.color.apply();
    let exit = match run(&line) {
        Ok(exit) => exit,
        // Whoever read the output has seen enough: `contexture … | head`.
        Err(failure) if failure.is_closed_pipe() => Exit::Done,
        Err(failure) => {
            say::failure(&failure, line.globals.json);
            failure.exit
        }
    };
    exit.into()
}

/// Help and version, or what is wrong with the command line.
fn refuse(error: &clap::Error) -> ExitCode {
    let as_json = std::env::args_os().any(|argument| argument == "--json");
    if !error.use_stderr() || !as_json {
        // A closed pipe is all that can go wrong here.
        let _ = error.print();
        return if error.use_stderr() {
            Exit::Usage
        } else {
            Exit::Done
        }
        .into();
    }
    let text = error.render().to_string();
    let said = text.lines().take_while(|line| !line.starts_with("Usage:"));
    let said: Vec<&str> = said
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let message = said.join("; ");
    let failure = Failure::usage(message.strip_prefix("error: ").unwrap_or(&message));
    say::failure(&failure, true);
    Exit::Usage.into()
}

fn run(line: &CommandLine) -> Outcome {
    let globals = &line.globals;
    match &line.command {
        Command::Import(arguments) => for_it(import::run(arguments, globals)),
        Command::Conversations(arguments) => for_it(conversations::run(arguments, globals)),
        Command::Log(arguments) => for_it(log::run(arguments, globals)),
        Command::Show(arguments) => for_it(show::run(arguments, globals)),
        Command::Search(arguments) => for_it(search::run(arguments, globals)),
        Command::Read(arguments) => for_it(read::run(arguments, globals)),
        Command::Branch(arguments) => for_it(branch::run(arguments, globals)),
        Command::Rewind(arguments) => for_it(rewind::run(arguments, globals)),
        Command::Checkpoint(arguments) => for_it(checkpoint::run(arguments, globals)),
        Command::Restore(arguments) => for_it(restore::run(arguments, globals)),
        Command::Compact(arguments) => for_it(compact::run(arguments, globals)),
        Command::Uncompact(arguments) => for_it(uncompact::run(arguments, globals)),
        Command::Replay(arguments) => for_it(replay::run(arguments, globals)),
        Command::Pin(arguments) => for_it(pin::run(arguments, Deed::Pin, globals)),
        Command::Unpin(arguments) => for_it(pin::run(arguments, Deed::Unpin, globals)),
        Command::Run(arguments) => for_it(turn::run(arguments, globals)),
        Command::Chat(arguments) => for_it(chat::run(arguments, globals)),
        Command::Runs(arguments) => for_it(runs::run(arguments, globals)),
        Command::Resume(arguments) => for_it(resume::run(arguments, globals)),
        Command::Memory(arguments) => for_it(memory::run(arguments, globals)),
        Command::Skills(arguments) => skills::run(arguments, globals),
        Command::Compile(arguments) => compile::run(arguments, globals),
        Command::Explain(arguments) => commands::explain::run(arguments, globals),
        Command::Convert(arguments) => convert::run(arguments, globals),
        Command::Diff(arguments) => diff::run(arguments, globals),
        Command::Render(arguments) => render::run(arguments, globals),
        Command::Count(arguments) => count::run(arguments, globals),
        Command::Export(arguments) => for_it(export::run(arguments, globals)),
        Command::Serve(arguments) => for_many(serve::run(arguments, globals)),
        Command::Keys(arguments) => keys::run(arguments, globals),
        Command::Mcp(arguments) => for_it(mcp::run(arguments, globals)),
        Command::Migrate(arguments) => for_it(migrate::run(arguments, globals)),
        Command::Delete(arguments) => for_it(delete::run(arguments, globals)),
        Command::Backup(arguments) => for_it(backup::run(arguments, globals)),
        Command::Verify(arguments) => for_it(verify::run(arguments, globals)),
        Command::Stats(arguments) => for_it(stats::run(arguments, globals)),
        Command::Gc(arguments) => for_it(gc::run(arguments, globals)),
        Command::Doctor(arguments) => for_it(doctor::run(arguments, globals)),
        Command::Completions(arguments) => completions::run(arguments, CommandLine::command()),
    }
}
