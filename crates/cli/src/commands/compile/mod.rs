//! `contexture compile`: a provider's request, under a token budget.

mod line;
mod product;
mod view;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use contexture::Format;
use contexture::compile::{Contribution, Report, Width, render_table};
use contexture::engine::PrepareOptions;
use contexture::ir::{Fragment, Raw, parse_fragments};
use contexture::render;

use crate::commands::compile::line::{Defaults, answer};
use crate::commands::compile::product::Product;
use crate::commands::compile::view::{of_conversation, of_transcript};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::globals::Globals;
use crate::input::Source;
use crate::order::Order;
use crate::printable::lines;
use crate::view::ViewArguments;
use crate::words::{render_format, session_format, target_format, tokens};
use crate::{database, say, session, stream, terminal};

/// Compile a conversation or a session file into a provider's request, under a token budget
///
/// The request goes to standard output, the report to standard error. A request that cannot fit is
/// refused, with what is required and how many tokens it takes.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture compile examples/marshmallow-1867.traj --to anthropic --window 16k > payload.json
  contexture compile support-42 --to openai-responses --model gpt-5.4 --system prompt.json
  contexture compile session.jsonl --to gemini --report json 2> report.json
  contexture compile --jsonl < requests.jsonl

Without --model: the model the document was written for, if it is in the same format; else
claude-sonnet-5 (anthropic, ui), gpt-5.4 (openai-chat, openai-responses), gemini-3.5-flash
(gemini). `--to ui` gives {\"system\", \"messages\"}, the messages that fit the model.

With --jsonl, a line is {\"from\", \"input\", \"to\", \"model\", \"window\", \"reserve\", \"system\": [fragments]}
and gives {\"payload\": …, \"report\": …}. What a line does not say is taken from the options.")]
pub(crate) struct Arguments {
    /// A session file, `-` for standard input, or the id of a conversation
    #[arg(required_unless_present = "jsonl")]
    source: Option<String>,
    /// The format of the request
    #[arg(long, value_parser = target_format(), required_unless_present = "jsonl")]
    to: Option<Format>,
    /// The format of the file; default: detected
    #[arg(long, value_parser = session_format())]
    from: Option<String>,
    /// The model
    #[arg(long, short)]
    model: Option<String>,
    /// Tokens the model can hold, its answer included: 16000, 16k; default: the model's
    #[arg(long, value_name = "TOKENS", value_parser = tokens)]
    window: Option<u64>,
    /// Tokens kept free for the answer; default: the document's output limit, else an eighth of
    /// the window, at most what the model can write
    #[arg(long, value_name = "TOKENS", value_parser = tokens)]
    reserve: Option<u64>,
    /// A top-level field of the request, as JSON: `--param temperature=0`; objects are merged
    #[arg(long = "param", value_name = "KEY=JSON", value_parser = param)]
    params: Vec<(String, Raw)>,
    /// A file of fragments for the system prompt
    #[arg(long, value_name = "FILE")]
    system: Option<PathBuf>,
    /// The format those fragments are rendered in
    #[arg(long, value_parser = render_format(), default_value = "xml")]
    renderer: render::Format,
    /// The conversation's branch; default: the active one
    #[arg(long)]
    branch: Option<String>,
    /// Which session of a file that holds several, from 1
    #[arg(long, value_name = "NUMBER")]
    session: Option<usize>,
    /// Write the request to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How the report is written to standard error; default: a table, JSON with --json
    #[arg(long, value_enum, value_name = "FORM")]
    report: Option<Form>,
    #[command(flatten)]
    view: ViewArguments,
    /// One JSON document a line in, one a line out
    #[arg(long, conflicts_with_all = ["branch", "session", "output", "report"])]
    jsonl: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Table,
    Json,
    None,
}

/// Runs the command.
///
/// # Errors
/// The source cannot be read, the model is not known, or the compiler refuses.
pub(crate) fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let order = order(arguments)?;
    if arguments.jsonl {
        let source = Source::or_stdin(arguments.source.as_deref());
        let defaults = Defaults {
            order,
            from: arguments.from.clone(),
            to: arguments.to,
        };
        return stream::serve(&mut source.open()?, |line| answer(line, &defaults));
    }
    let name = arguments.source.as_deref().unwrap_or("-");
    let (title, result) = match file(arguments, name)? {
        Some(source) => {
            let opened = session::one(&source, arguments.from.as_deref(), arguments.session)?;
            let result = of_transcript(&order, &opened.transcript, opened.written_in)?;
            (
                source.stem().unwrap_or_else(|| "standard input".to_owned()),
                result,
            )
        }
        None => (name.to_owned(), stored(arguments, globals, name, &order)?),
    };
    write(arguments, &result.payload)?;
    report(arguments, globals, &title, &result.report)?;
    Ok(Exit::Done)
}

fn order(arguments: &Arguments) -> Outcome<Order> {
    let system: Vec<Fragment> = match &arguments.system {
        None => Vec::new(),
        Some(path) => {
            let source = Source::File(path.clone());
            let text = source.read()?;
            parse_fragments(&text).map_err(|error| Failure::from(error).of(&source))?
        }
    };
    Ok(Order {
        to: arguments.to.unwrap_or(Format::Anthropic),
        model: arguments.model.clone(),
        window: arguments.window,
        reserve: arguments.reserve,
        params: arguments.params.clone(),
        system,
        renderer: Arc::from(arguments.renderer.renderer(render::Grouping::Off)),
        view: arguments.view.clone(),
    })
}

/// The file that is meant, if it is one and not a conversation.
fn file(arguments: &Arguments, name: &str) -> Outcome<Option<Source>> {
    let source = Source::from(name);
    let Source::File(path) = &source else {
        return Ok(Some(source));
    };
    if arguments.branch.is_some() {
        return Ok(None);
    }
    if path.exists() {
        return Ok(Some(source));
    }
    // What has a directory or a known ending is a file that is missing, not a conversation.
    let ending = path
        .extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default();
    let looks_like_a_file =
        name.contains(['/', '\\']) || ["json", "jsonl", "traj", "txt"].contains(&ending);
    if looks_like_a_file || arguments.from.is_some() {
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(crate::input::unreadable(path, &missing));
    }
    Ok(None)
}

fn stored(arguments: &Arguments, globals: &Globals, name: &str, order: &Order) -> Outcome<Product> {
    let branch = arguments.branch.as_deref();
    crate::wait::for_it(async {
        let chat = database::conversation(globals, name, branch)
            .await
            .map_err(|failure| {
                if failure.exit == Exit::NotFound && branch.is_none() {
                    failure.note(format!("and there is no file `{name}` either"))
                } else {
                    failure
                }
            })?;
        let also: Vec<Contribution> = order.said().into_iter().collect();
        let target = order.target(None, None)?;
        if order.view.compacts() {
            chat.prepare(&target, &PrepareOptions::default()).await?;
        }
        let call = chat.compile_with(&target, &also).await?;
        of_conversation(&chat, order, call).await
    })
}

fn write(arguments: &Arguments, payload: &str) -> Outcome<()> {
    let Some(path) = &arguments.output else {
        return say::raw(payload);
    };
    fs::write(path, format!("{payload}\n")).map_err(|error| {
        let message = format!("cannot write `{}`: {error}", path.display());
        Failure::new(Exit::Stream, "write", message)
            .hint("name a file in a directory that exists and that you may write to")
    })
}

fn report(arguments: &Arguments, globals: &Globals, title: &str, report: &Report) -> Outcome<()> {
    let form = match arguments.report {
        Some(form) => form,
        None if globals.json => Form::Json,
        None if globals.quiet => Form::None,
        None => Form::Table,
    };
    match form {
        Form::None => {}
        Form::Json => {
            let text = serde_json::to_string(report)
                .map_err(|error| Failure::new(Exit::Fault, "report", error.to_string()))?;
            say::aside(&format!("{text}\n"));
        }
        Form::Table => {
            let table = render_table(report, Width(terminal::columns(120)));
            say::aside(&format!("\n  {}\n\n{table}", lines(title)));
        }
    }
    Ok(())
}

/// `key=json`.
fn param(text: &str) -> Result<(String, Raw), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or("expected KEY=JSON, for instance temperature=0")?;
    let raw = Raw::parse(value).map_err(|_| {
        format!("the value of `{name}` is not JSON: text needs quotes, {name}='\"{value}\"'")
    })?;
    Ok((name.to_owned(), raw))
}
