//! `contexture compile`: builds a provider's request under a token budget.

mod compile_output;
mod line;
pub(crate) mod source;
mod view;

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use contexture::Format;
use contexture::compile::{Report, Scratch, Width, render_table};

use crate::commands::compile::line::{LineDefaults, compile_line};
use crate::commands::compile::source::{IncludeItems, SourceArguments};
use crate::input::InputSource;
use crate::jsonl;
use crate::options::globals::Globals;
use crate::options::history::ViewArguments;
use crate::options::parse_values::target_format;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::{clip_to_width, one_line};
use crate::output::terminal::{Stream, column_count};
use crate::output::write;

/// Compile a conversation or a session file into a provider's request, under a token budget
///
/// The request goes to standard output, the report to standard error. A request that cannot fit is
/// refused, with what is required and how many tokens it takes.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture compile examples/marshmallow-1867.traj --to anthropic --window 16k > payload.json
  contexture compile support-42 --to openai-responses --model gpt-5.4 --system prompt.json
  contexture compile support-42 --to anthropic --skills .agents/skills --memory
  contexture compile session.jsonl --to gemini --report json 2> report.json
  contexture compile --jsonl < requests.jsonl

Without --model: the model the document was written for, if it is in the same format; of a
conversation the model of its newest answer, if it takes that format; else claude-sonnet-5
(anthropic, ui), gpt-5.4 (openai-chat, openai-responses), gemini-3.5-flash
(gemini). One that is not known (`contexture doctor --models`) needs --window; its tokens are
estimates. `--to ui` gives {\"system\", \"messages\"}, the messages that fit the model.

With --jsonl, a line is {\"from\", \"input\", \"to\", \"model\", \"window\", \"reserve\", \"system\": [fragments]}
and gives {\"payload\": …, \"report\": …}. What a line does not say is taken from the options.
A line with \"messages\" is what `POST /api/v1/compile` takes: tools, a policy, and the \"plan\" that the
line before gave; it gives the same too.")]
pub(crate) struct Arguments {
    /// A session file, `-` for standard input, or the id of a conversation
    #[arg(required_unless_present = "jsonl")]
    source: Option<String>,
    /// The format of the request
    #[arg(long, value_parser = target_format(), required_unless_present = "jsonl")]
    to: Option<Format>,
    #[command(flatten)]
    subject: SourceArguments,
    /// Write the request to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How the report is written to standard error; default: a table, JSON with --json
    #[arg(long, value_enum, value_name = "FORM")]
    report: Option<ReportFormat>,
    #[command(flatten)]
    view: ViewArguments,
    /// One JSON document a line in, one a line out
    #[arg(long, conflicts_with_all = ["branch", "session", "output", "report", "skills", "memory"])]
    jsonl: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    Table,
    Json,
    None,
}

/// Runs the command.
///
/// # Errors
/// The source cannot be read, the model is not known, or the compiler refuses.
pub(crate) fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let order = arguments
        .subject
        .compile_settings(arguments.to, &arguments.view)?;
    if arguments.jsonl {
        let source = InputSource::or_stdin(arguments.source.as_deref());
        let defaults = LineDefaults {
            settings: order,
            from: arguments.subject.from.clone(),
            to: arguments.to,
        };
        let mut scratch = Scratch::new();
        return jsonl::answer_lines(&mut source.open_reader()?, |line| {
            compile_line(line, &defaults, &mut scratch)
        });
    }
    let name = arguments.source.as_deref().unwrap_or("-");
    let compiled = arguments
        .subject
        .compile_source(name, &order, IncludeItems::No, globals)?;
    // The payload first: a report about something that could not be written would mislead.
    write_payload(arguments, &compiled.output.payload)?;
    print_report(arguments, globals, &compiled.title, &compiled.output.report)?;
    Ok(Exit::Done)
}

fn write_payload(arguments: &Arguments, payload: &str) -> Outcome<()> {
    let Some(path) = &arguments.output else {
        return write::print_text(payload);
    };
    fs::write(path, format!("{payload}\n")).map_err(|error| {
        let message = format!("cannot write `{}`: {error}", path.display());
        Failure::new(Exit::Stream, "write", message)
            .with_hint("name a file in a directory that exists and that you may write to")
    })
}

fn print_report(
    arguments: &Arguments,
    globals: &Globals,
    title: &str,
    report: &Report,
) -> Outcome<()> {
    let form = match arguments.report {
        Some(form) => form,
        // The report goes to standard error in every form: standard output holds only the payload.
        None if globals.json => ReportFormat::Json,
        None if globals.quiet => ReportFormat::None,
        None => ReportFormat::Table,
    };
    match form {
        ReportFormat::None => {}
        ReportFormat::Json => {
            let text = serde_json::to_string(report)
                .map_err(|error| Failure::new(Exit::Fault, "report", error.to_string()))?;
            write::print_stderr(&format!("{text}\n"));
        }
        ReportFormat::Table => {
            let columns = column_count(Stream::Error);
            let table = render_table(report, Width(columns));
            let title = clip_to_width(&one_line(title), columns - 2);
            write::print_stderr(&format!("\n  {title}\n\n{table}"));
        }
    }
    Ok(())
}
