//! The `contexture` command: sessions in, payloads out.
//!
//! It reads arguments, calls the library and shows what came of it. Results go to standard output
//! and nothing else does; reports, progress and errors go to standard error. What happens is decided
//! in the libraries; here is only how it is asked for and how it looks.

mod arguments;
mod chat;
mod commands;
mod conversation_lines;
mod database;
mod input;
mod input_folder;
mod jsonl;
#[cfg(feature = "serve")]
mod logs;
mod options;
mod output;
mod runtime;
mod session;
mod shell_completion;
mod skill_folders;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::arguments::{Command, CommandLine};
use crate::commands::pin::PinAction;
use crate::commands::{
    backup, branch, calls, cancel, chat as chat_command, checkpoint, compact, compile, completions,
    conversations, convert, count, delete, diff, doctor, export, gc, import, log, man, mcp, memory,
    migrate, pin, prune, read, render, replay, report, restore, resume, rewind, rules, run as turn,
    runs, search, show, skills, stats, uncompact, verify,
};
#[cfg(feature = "serve")]
use crate::commands::{keys, serve, ui};
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::runtime::block_on;
#[cfg(feature = "serve")]
use crate::runtime::block_on_pool;

/// Gives memory back to the system after a peak. The system's own allocator keeps a gigabyte after a few large requests.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Starts the process anew with an allocator that gives memory back when it becomes free. Returns where that is so already,
/// or cannot be.
///
/// Without it, memory goes back when the thread that had it asks for more, and after a peak a server's threads have nothing
/// to do. The allocator reads its options from the environment, before `main`. Who has set this one keeps it.
#[cfg(all(unix, feature = "serve"))]
fn restart_to_give_memory_back() {
    use std::os::unix::process::CommandExt as _;

    const OPTION: &str = "MIMALLOC_PURGE_DELAY";
    let mut arguments = std::env::args_os();
    let (Ok(program), Some(name)) = (std::env::current_exe(), arguments.next()) else {
        return;
    };
    if std::env::var_os(OPTION).is_none() {
        let mut command = std::process::Command::new(program);
        command.arg0(name).args(arguments).env(OPTION, "0");
        // It returns only if it failed; then memory goes back later.
        let _ = command.exec();
    }
}

fn main() -> ExitCode {
    // Before all else: a shell that asks has not finished the line, and wants its answer alone on standard output.
    if let Some(exit) = shell_completion::answer_shell(CommandLine::command) {
        return exit;
    }
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) => return report_parse_error(&error),
    };
    // Before anything is written: the choice is global.
    line.globals.color.apply_globally();
    let exit = match run_command(&line) {
        Ok(exit) => exit,
        // Whoever read the output has seen enough: `contexture … | head`.
        Err(failure) if failure.is_closed_pipe() => Exit::Done,
        Err(failure) => {
            crate::output::write::print_failure(&failure, line.globals.json);
            failure.exit
        }
    };
    exit.into()
}

/// Help and version, or what is wrong with the command line.
fn report_parse_error(error: &clap::Error) -> ExitCode {
    // The command line could not be parsed, so the option is looked for by its bare word.
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
    // Behind this line stands help for people, which a program has no use for.
    let said = text.lines().take_while(|line| !line.starts_with("Usage:"));
    let said: Vec<&str> = said
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let message = said.join("; ");
    let failure = Failure::usage(message.strip_prefix("error: ").unwrap_or(&message));
    crate::output::write::print_failure(&failure, true);
    Exit::Usage.into()
}

fn run_command(line: &CommandLine) -> Outcome {
    let globals = &line.globals;
    match &line.command {
        Command::Import(arguments) => block_on(import::run(arguments, globals)),
        Command::Conversations(arguments) => block_on(conversations::run(arguments, globals)),
        Command::Log(arguments) => block_on(log::run(arguments, globals)),
        Command::Show(arguments) => block_on(show::run(arguments, globals)),
        Command::Search(arguments) => block_on(search::run(arguments, globals)),
        Command::Read(arguments) => block_on(read::run(arguments, globals)),
        Command::Branch(arguments) => block_on(branch::run(arguments, globals)),
        Command::Rewind(arguments) => block_on(rewind::run(arguments, globals)),
        Command::Checkpoint(arguments) => block_on(checkpoint::run(arguments, globals)),
        Command::Restore(arguments) => block_on(restore::run(arguments, globals)),
        Command::Compact(arguments) => block_on(compact::run(arguments, globals)),
        Command::Uncompact(arguments) => block_on(uncompact::run(arguments, globals)),
        Command::Replay(arguments) => block_on(replay::run(arguments, globals)),
        Command::Pin(arguments) => block_on(pin::run(arguments, PinAction::Pin, globals)),
        Command::Rules(arguments) => block_on(rules::run(arguments, globals)),
        Command::Unpin(arguments) => block_on(pin::run(arguments, PinAction::Unpin, globals)),
        Command::Run(arguments) => block_on(turn::run(arguments, globals)),
        Command::Chat(arguments) => block_on(chat_command::run(arguments, globals)),
        Command::Runs(arguments) => block_on(runs::run(arguments, globals)),
        Command::Resume(arguments) => block_on(resume::run(arguments, globals)),
        Command::Cancel(arguments) => block_on(cancel::run(arguments, globals)),
        Command::Memory(arguments) => block_on(memory::run(arguments, globals)),
        Command::Skills(arguments) => skills::run(arguments, globals),
        Command::Compile(arguments) => compile::run(arguments, globals),
        Command::Explain(arguments) => commands::explain::run(arguments, globals),
        Command::Report(arguments) => block_on(report::run(arguments, globals)),
        Command::Convert(arguments) => convert::run(arguments, globals),
        Command::Diff(arguments) => diff::run(arguments, globals),
        Command::Render(arguments) => render::run(arguments, globals),
        Command::Count(arguments) => count::run(arguments, globals),
        Command::Export(arguments) => block_on(export::run(arguments, globals)),
        #[cfg(feature = "serve")]
        Command::Serve(arguments) => {
            #[cfg(unix)]
            restart_to_give_memory_back();
            block_on_pool(serve::run(arguments, globals))
        }
        #[cfg(feature = "serve")]
        Command::Ui(arguments) => block_on_pool(ui::run(arguments, globals)),
        #[cfg(feature = "serve")]
        Command::Keys(arguments) => keys::run(arguments, globals),
        Command::Mcp(arguments) => block_on(mcp::run(arguments, globals)),
        Command::Migrate(arguments) => block_on(migrate::run(arguments, globals)),
        Command::Delete(arguments) => block_on(delete::run(arguments, globals)),
        Command::Backup(arguments) => block_on(backup::run(arguments, globals)),
        Command::Verify(arguments) => block_on(verify::run(arguments, globals)),
        Command::Stats(arguments) => block_on(stats::run(arguments, globals)),
        Command::Calls(arguments) => block_on(calls::run(arguments, globals)),
        Command::Usage(arguments) => block_on(calls::run_usage(arguments, globals)),
        Command::Gc(arguments) => block_on(gc::run(arguments, globals)),
        Command::Prune(arguments) => block_on(prune::run(arguments, globals)),
        Command::Doctor(arguments) => block_on(doctor::run(arguments, globals)),
        Command::Completions(arguments) => completions::run(arguments),
        Command::Man(arguments) => man::run(arguments, CommandLine::command()),
    }
}
