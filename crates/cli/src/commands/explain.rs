//! `contexture explain`: what a compile would send, what it would leave out, and why.

use std::path::{Path, PathBuf};

use clap::Args;
use contexture::Format;
use contexture::catalogue::Catalogue;
use contexture::compile::{
    ItemVerdict, Report, Target, Width, explain_items, render_html_with, render_table,
};
use contexture::tokens::counter_for;
use contexture_api::operations::build_page_items;
use serde_json::json;

use crate::commands::compile::source::{CompiledSource, IncludeItems, SourceArguments};
use crate::options::globals::Globals;
use crate::options::history::ViewArguments;
use crate::options::parse_values::target_format;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::{clip_to_width, group_thousands, one_line};
use crate::output::table::Column;
use crate::output::terminal::{Stream, column_count};
use crate::output::write;

/// Explain what a compile sends and what it leaves out, without the request itself
///
/// The report goes to standard output: a table, JSON with --json, or with --html one page with a
/// picture of the window.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture explain examples/marshmallow-1867.traj --to anthropic --window 16k
  contexture explain support-42 --to openai-responses --html window.html
  contexture explain session.jsonl --to gemini --window 32k --items

The options and what they mean without being given are those of `compile`.")]
pub(crate) struct Arguments {
    /// A session file, `-` for standard input, or the id of a conversation
    source: String,
    /// The format of the request
    #[arg(long, value_parser = target_format())]
    to: Format,
    #[command(flatten)]
    subject: SourceArguments,
    /// Write one HTML page instead of the table; `-`: to standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also each item that is left out or shown otherwise than it is, a line apiece
    #[arg(long)]
    items: bool,
    #[command(flatten)]
    view: ViewArguments,
}

/// Runs the command.
///
/// # Errors
/// The source cannot be read, the model is not known, the compiler refuses, or the page cannot be
/// written.
pub(crate) fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let order = arguments
        .subject
        .compile_settings(Some(arguments.to), &arguments.view)?;
    // A page shows the texts.
    let wanted = match arguments.items || arguments.html.is_some() {
        true => IncludeItems::Yes,
        false => IncludeItems::No,
    };
    let subject = arguments
        .subject
        .compile_source(&arguments.source, &order, wanted, globals)?;
    let report = &subject.output.report;
    let verdicts = match wanted {
        IncludeItems::Yes => Some(compute_verdicts(&subject, &order.catalogue())?),
        IncludeItems::No => None,
    };
    if let (Some(path), Some(verdicts)) = (&arguments.html, &verdicts) {
        let payload = &subject.output.payload;
        let items = build_page_items(report, &subject.path, verdicts, payload)?;
        write::write_page(path, &render_html_with(report, &subject.title, &items))?;
    }
    let items = verdicts.filter(|_| arguments.items);
    match (&arguments.html, globals.json) {
        // The page has standard output for itself.
        (_, true) if arguments.html.as_deref() != Some(Path::new("-")) => {
            print_json_report(report, items.as_deref())?;
        }
        (None, _) => {
            let columns = column_count(Stream::Output);
            let table = render_table(report, Width(columns));
            let title = clip_to_width(&one_line(&subject.title), columns - 2);
            write::print_styled(&format!("\n  {title}\n\n{table}"))?;
            if let Some(items) = items {
                write::print_styled("\n")?;
                let rows: Vec<_> = items.iter().map(verdict_row).collect();
                write::print_table(&COLUMNS, &rows)?;
            }
        }
        (Some(_), _) => {}
    }
    Ok(Exit::Done)
}

fn compute_verdicts(subject: &CompiledSource, catalogue: &Catalogue) -> Outcome<Vec<ItemVerdict>> {
    let report = &subject.output.report;
    let spec = catalogue.resolve(&report.target.model)?;
    let format: Format = report
        .target
        .format
        .parse()
        .map_err(|_| Failure::usage("the report names no format"))?;
    let request = Target::new(format, &report.target.model).build_request(catalogue)?;
    let counter = counter_for(spec.encoding);
    Ok(explain_items(report, &subject.path, &request, counter))
}

fn print_json_report(report: &Report, items: Option<&[ItemVerdict]>) -> Outcome<()> {
    match items {
        None => write::print_json(report),
        Some(items) => write::print_json(&json!({ "report": report, "items": items })),
    }
}

/// How the items are laid out: number, kind, tokens, tokens as shown, verdict, link, rule.
const COLUMNS: [Column; 7] = [
    Column::figure("").with_rank(5),
    Column::word("").with_rank(4),
    Column::figure("").with_rank(3),
    Column::word("").with_rank(3),
    Column::word("").with_rank(2),
    Column::id(""),
    Column::words("", 12),
];

fn verdict_row(one: &ItemVerdict) -> Vec<String> {
    vec![
        one.index.to_string(),
        one.kind.to_owned(),
        group_thousands(one.tokens),
        format!("→ {}", group_thousands(one.shown)),
        one.verdict.to_owned(),
        one.link.to_string(),
        one.rule.to_string(),
    ]
}
