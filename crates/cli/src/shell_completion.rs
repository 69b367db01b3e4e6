//! What a shell is told when somebody presses the key for completion.
//!
//! The script of `contexture completions` runs the program with [`VARIABLE`] set and the words that were typed. Commands,
//! options and their values come from the command line's description; conversations and branches are looked up in the
//! database that the typed words or the environment name. A completion never complains, never makes a database, and gives
//! up after [`PATIENCE`]: a person waits for it with a hand on the keyboard.

use std::env;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::{Arg, ArgMatches, Command, ValueHint};
use clap_complete::Shell;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use clap_complete::env::{CompleteEnv, Shells};
use contexture::store::ListConversations;

use crate::database::{self, WhenMissing};
use crate::options::globals::{Color, Globals};
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::{clip_to_width, one_line};
use crate::runtime::block_on;

/// Names the shell that asks. Not the usual `COMPLETE`, which may mean something to another program.
const VARIABLE: &str = "CONTEXTURE_COMPLETE";
/// Conversations are read so many at a time,
const PAGE: usize = 500;
/// and at most so many times: the newest are those that people mean, and a list of all takes too long.
const PAGES: usize = 8;
/// More than a person looks through.
const SHOWN: usize = 100;
/// A database that does not answer by then, one behind a network say, is not waited for.
const PATIENCE: Duration = Duration::from_millis(500);
/// Columns of a title beside a conversation.
const TITLE_COLUMNS: usize = 48;

/// Makes the description of the command line.
pub(crate) type DescribeCommandLine = fn() -> Command;

/// Something that may stand at the place that is completed.
struct KnownName {
    name: String,
    /// What it is, for shells that show it.
    about: Option<String>,
}

/// What the typed words say of the database and of the conversation in it.
struct TypedLine {
    globals: Globals,
    conversation: Option<String>,
}

/// Answers a shell that asks for completions; `None` if the program runs for another reason.
pub(crate) fn answer_shell(describe: DescribeCommandLine) -> Option<ExitCode> {
    let completer = CompleteEnv::with_factory(|| add_completers(describe(), "", describe));
    let folder = env::current_dir().ok();
    match completer
        .var(VARIABLE)
        .try_complete(env::args_os(), folder.as_deref())
    {
        Ok(false) => None,
        Ok(true) => Some(Exit::Done.into()),
        // An unknown shell, or nobody who reads.
        Err(_) => Some(Exit::Usage.into()),
    }
}

/// Returns the script that makes a shell ask.
///
/// # Errors
/// The shell is not among those that can ask.
pub(crate) fn registration_script(shell: Shell) -> Outcome<String> {
    let name = shell.to_string();
    let unknown = || Failure::usage(format!("there are no completions for {name}"));
    let shells = Shells::builtins();
    let completer = shells.completer(&name).ok_or_else(unknown)?;
    let program = "contexture";
    let mut script = Vec::new();
    // Found on the path when asked, so that the script outlives a move of the program.
    let written = completer.write_registration(VARIABLE, program, program, program, &mut script);
    written.map_err(|_| unknown())?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Adds to each argument what may stand there, in the command and in those below it. By names, so that a new command's
/// `conversation` is completed without a line of its own.
fn add_completers(command: Command, parent: &str, describe: DescribeCommandLine) -> Command {
    let name = command.get_name().to_owned();
    // Their second argument has the name of what it names.
    let names_branch = parent == "branch" && matches!(name.as_str(), "switch" | "delete");
    let command = command.mut_args(|arg| match arg.get_id().as_str() {
        "conversation" => arg.add(ArgValueCompleter::new(move |typed: &OsStr| {
            complete_conversation(describe, typed)
        })),
        "source" => arg.add(ArgValueCompleter::new(move |typed: &OsStr| {
            let mut found = complete_conversation(describe, typed);
            found.extend(PathCompleter::file().stdio().complete(typed));
            found
        })),
        "name" if names_branch => add_branch_completer(arg, describe),
        "branch" => add_branch_completer(arg, describe),
        _ if is_named(&arg, "BRANCH") => add_branch_completer(arg, describe),
        "file" | "files" | "first" | "second" => arg.value_hint(ValueHint::FilePath),
        _ if is_named(&arg, "FILE") => arg.value_hint(ValueHint::FilePath),
        _ => arg,
    });
    command.mut_subcommands(|below| add_completers(below, &name, describe))
}

fn is_named(arg: &Arg, value: &str) -> bool {
    let names = arg.get_value_names().unwrap_or_default();
    names.iter().any(|name| name == value)
}

fn add_branch_completer(arg: Arg, describe: DescribeCommandLine) -> Arg {
    arg.add(ArgValueCompleter::new(move |typed: &OsStr| {
        complete_branch(describe, typed)
    }))
}

fn complete_conversation(describe: DescribeCommandLine, typed: &OsStr) -> Vec<CompletionCandidate> {
    look_up(describe, typed, |line, typed| {
        block_on(list_conversations(&line, &typed))
    })
}

fn complete_branch(describe: DescribeCommandLine, typed: &OsStr) -> Vec<CompletionCandidate> {
    look_up(describe, typed, |line, typed| {
        block_on(list_branches(&line, &typed))
    })
}

/// Runs a look-up for as long as a person waits; whatever goes wrong, nothing was found.
fn look_up(
    describe: DescribeCommandLine,
    typed: &OsStr,
    work: fn(TypedLine, String) -> Outcome<Vec<KnownName>>,
) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str().map(str::to_owned) else {
        return Vec::new();
    };
    let words: Vec<OsString> = env::args_os().collect();
    let (sender, receiver) = mpsc::channel();
    // A connection cannot be told to hurry. What is not there in time ends with the program.
    thread::spawn(move || {
        let line = read_typed_line(describe, words);
        // The receiver may have given up.
        let _ = sender.send(work(line, typed));
    });
    let found = receiver.recv_timeout(PATIENCE);
    let found = found.unwrap_or(Ok(Vec::new())).unwrap_or_default();
    let candidates = found.into_iter().enumerate().map(|(index, known)| {
        CompletionCandidate::new(known.name)
            .help(known.about.map(Into::into))
            // As the look-up has them: the newest first.
            .display_order(Some(index))
    });
    candidates.collect()
}

/// What the words behind `--` say so far. The line is not finished, so errors in it say nothing.
fn read_typed_line(describe: DescribeCommandLine, words: Vec<OsString>) -> TypedLine {
    let words = words.into_iter().skip_while(|word| word != "--").skip(1);
    let matches = describe().ignore_errors(true).try_get_matches_from(words);
    let matches = matches.unwrap_or_default();
    let read = |name: &str, variable: &str| {
        // An unfinished line may end before the environment was looked at.
        read_argument(&matches, name).or_else(|| env::var(variable).ok())
    };
    let mut innermost = &matches;
    while let Some((_, below)) = innermost.subcommand() {
        innermost = below;
    }
    TypedLine {
        globals: Globals {
            db: read("db", "CONTEXTURE_DB"),
            owner: read("owner", "CONTEXTURE_OWNER"),
            json: false,
            color: Color::Never,
            quiet: true,
        },
        conversation: read_argument(innermost, "conversation"),
    }
}

fn read_argument(matches: &ArgMatches, name: &str) -> Option<String> {
    // The error is that this command has no such argument.
    matches.try_get_one::<String>(name).ok().flatten().cloned()
}

async fn list_conversations(line: &TypedLine, typed: &str) -> Outcome<Vec<KnownName>> {
    let engine = database::open_engine(&line.globals, WhenMissing::Refuse).await?;
    let owner = database::resolve_owner(&line.globals)?;
    let mut list = ListConversations {
        limit: Some(PAGE),
        ..ListConversations::default()
    };
    let mut found = Vec::new();
    for _ in 0..PAGES {
        let page = engine.list_conversations(&owner, list.clone()).await?;
        let begun = page.conversations.into_iter();
        let begun = begun.filter(|conversation| conversation.id.as_str().starts_with(typed));
        found.extend(begun.map(|conversation| {
            KnownName {
                name: conversation.id.as_str().to_owned(),
                about: conversation
                    .title
                    .map(|title| clip_to_width(&one_line(&title), TITLE_COLUMNS)),
            }
        }));
        list.after = page.next;
        if list.after.is_none() || found.len() >= SHOWN {
            break;
        }
    }
    found.truncate(SHOWN);
    Ok(found)
}

async fn list_branches(line: &TypedLine, typed: &str) -> Outcome<Vec<KnownName>> {
    let Some(id) = &line.conversation else {
        return Ok(Vec::new());
    };
    let engine = database::open_engine(&line.globals, WhenMissing::Refuse).await?;
    let owner = database::resolve_owner(&line.globals)?;
    // By its whole id: the beginning of one would have to be looked for among all.
    let chat = engine.conversation(id).owner(owner.as_str());
    let refs = chat.open_existing().await?.refs().await?;
    let names = refs
        .branches
        .into_iter()
        .map(|branch| branch.name.as_str().to_owned());
    let begun = names.filter(|name| name.starts_with(typed)).take(SHOWN);
    Ok(begun.map(|name| KnownName { name, about: None }).collect())
}
