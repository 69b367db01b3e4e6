//! `contexture count`: how many tokens a text has.

use clap::Args;
use contexture::Catalogue;
use contexture::sessions::detect_format;
use contexture::tokens::{Encoding, TokenCount, TokenCounter, counter_for};
use contexture_api::CountDocument;
use serde::Serialize;

use crate::input::InputSource;
use crate::jsonl;
use crate::options::globals::Globals;
use crate::output::error_messages::not_json;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::{display_width, group_thousands, pad_left};
use crate::output::write;

/// Count the tokens of texts
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture count README.md docs/*.md
  git diff | contexture count --model claude-sonnet-5
  echo '\"Hello, world!\"' | contexture count --encoding o200k_base --jsonl

The text is counted as it is. Of a session that is more than a model reads: `explain` counts that.

Exact for o200k_base and cl100k_base; an estimate with bounds for the others.
With --jsonl, one JSON string a line; each gives {\"tokens\": n, \"exact\": true}, or
{\"tokens\": n, \"exact\": false, \"low\": n, \"high\": n}.")]
pub(crate) struct Arguments {
    /// Text files; `-` or nothing: standard input
    files: Vec<String>,
    /// How text is cut into tokens: o200k_base, cl100k_base, claude-v1, claude-v2, gemma3, gemma4
    #[arg(long, short, value_name = "ENCODING", conflicts_with = "model")]
    encoding: Option<String>,
    /// The encoding of this model
    #[arg(long, short, value_name = "MODEL")]
    model: Option<String>,
    /// One JSON string a line in, one JSON document a line out
    #[arg(long)]
    jsonl: bool,
}

/// Runs the command.
///
/// # Errors
/// An unknown encoding or model, or a file that cannot be read. What was counted before is shown.
pub(crate) fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let encoding = resolve_encoding(arguments)?;
    let counter = counter_for(encoding);
    if arguments.jsonl {
        return count_lines(arguments, counter);
    }
    let mut rows: Vec<(InputSource, TokenCount)> = Vec::new();
    for source in input_sources(arguments) {
        let text = source.read_text()?;
        let count = counter.count(&text);
        if !globals.json && !globals.quiet {
            hint_at_session(&source, &text);
        }
        rows.push((source, count));
    }
    let total: TokenCount = rows.iter().map(|(_, count)| *count).sum();
    if globals.json {
        let files = rows.iter();
        write::print_json(&FilesDocument {
            total: total.into(),
            encoding: encoding.name(),
            files: files
                .map(|(source, count)| FileDocument::new(source, *count))
                .collect(),
        })?;
    } else {
        write::print_text(&count_table(&rows, total))?;
        if !total.is_exact() && !globals.quiet {
            write::print_note(&format!(
                "estimates: the vocabulary of {} is not public; the provider counts between the two figures behind\n",
                encoding.name()
            ));
        }
    }
    Ok(Exit::Done)
}

/// Says that the text of a session is not what a model reads of it.
fn hint_at_session(source: &InputSource, text: &str) {
    let InputSource::File(path) = source else {
        return;
    };
    // Detection reads the whole text; what does not begin as JSON is no session.
    if !text.trim_start().starts_with(['{', '[']) {
        return;
    }
    let name = source.file_name().unwrap_or_default();
    let Ok(found) = detect_format(text, &name) else {
        return;
    };
    write::print_note(&format!(
        "{source} is {}: this counts its text; `contexture explain {} --to anthropic` counts what a model reads of it\n",
        found.format,
        path.display()
    ));
}

/// The files that are named, else standard input.
fn input_sources(arguments: &Arguments) -> Vec<InputSource> {
    if arguments.files.is_empty() {
        return vec![InputSource::Stdin];
    }
    let names = arguments.files.iter();
    names.map(|name| InputSource::from(name.as_str())).collect()
}

fn resolve_encoding(arguments: &Arguments) -> Outcome<Encoding> {
    if let Some(model) = &arguments.model {
        return Ok(Catalogue::builtin().resolve(model)?.encoding);
    }
    match &arguments.encoding {
        None => Ok(Encoding::O200kBase),
        Some(name) => name.parse().map_err(|_| {
            let known = Encoding::NAMES.join(", ");
            let failure = Failure::usage(format!("unknown encoding {name:?}"));
            failure
                .with_note(format!("known: {known}"))
                .with_hint("for the encoding of a model: --model NAME")
        }),
    }
}

fn count_lines(arguments: &Arguments, counter: &dyn TokenCounter) -> Outcome {
    let source = match arguments.files.as_slice() {
        [] => InputSource::Stdin,
        [one] => InputSource::from(one.as_str()),
        _ => return Err(Failure::usage("--jsonl reads one file, or standard input")),
    };
    jsonl::answer_lines(&mut source.open_reader()?, |line| {
        let text: String = serde_json::from_str(line).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => {
                Failure::bad_input("not_a_string", "expected a JSON string")
            }
            _ => not_json(&error),
        })?;
        serde_json::to_string(&CountDocument::from(counter.count(&text)))
            .map_err(|error| Failure::new(Exit::Fault, "output", error.to_string()))
    })
}

/// Files and their sum.
#[derive(Serialize)]
struct FilesDocument {
    #[serde(flatten)]
    total: CountDocument,
    encoding: &'static str,
    files: Vec<FileDocument>,
}

#[derive(Serialize)]
struct FileDocument {
    file: String,
    #[serde(flatten)]
    count: CountDocument,
}

impl FileDocument {
    fn new(source: &InputSource, count: TokenCount) -> Self {
        let file = match source {
            InputSource::Stdin => "-".to_owned(),
            InputSource::File(path) => path.to_string_lossy().into_owned(),
        };
        let count = count.into();
        Self { file, count }
    }
}

fn format_figure(count: TokenCount) -> String {
    let about = if count.is_exact() { "" } else { "~" };
    format!("{about}{}", group_thousands(count.count))
}

/// Nothing for an exact count.
fn format_bounds(count: TokenCount) -> String {
    match count.is_exact() {
        true => String::new(),
        false => format!(
            "  ({} … {})",
            group_thousands(count.low),
            group_thousands(count.high)
        ),
    }
}

/// Right-aligned figures, as `wc` has them; the bounds of an estimate behind.
fn count_table(rows: &[(InputSource, TokenCount)], total: TokenCount) -> String {
    // The total is the largest, so it sets the width.
    let wide = display_width(&format_figure(total));
    let mut out = String::new();
    let mut line = |name: &str, count: &TokenCount| {
        out.push_str(&pad_left(&format_figure(*count), wide));
        out.push_str(name);
        out.push_str(&format_bounds(*count));
        out.push('\n');
    };
    match rows {
        [(InputSource::Stdin, count)] => line("", count),
        rows => {
            for (source, count) in rows {
                let name = match source {
                    InputSource::Stdin => "-".to_owned(),
                    InputSource::File(path) => path.display().to_string(),
                };
                line(&format!("  {name}"), count);
            }
            if rows.len() > 1 {
                line("  total", &total);
            }
        }
    }
    out
}
