//! `contexture count`: how many tokens a text has.

use clap::Args;
use contexture::Catalogue;
use contexture::tokens::{Encoding, TokenCount, TokenCounter, counter_for};
use contexture_server::documents::CountDocument;
use serde::Serialize;

use crate::exit::Exit;
use crate::explain::not_json;
use crate::failure::{Failure, Outcome};
use crate::globals::Globals;
use crate::input::Source;
use crate::printable::{grouped, pad_left, width};
use crate::{say, stream};

/// Count the tokens of texts
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture count README.md docs/*.md
  git diff | contexture count --model claude-sonnet-5
  echo '\"Hello, world!\"' | contexture count --encoding o200k_base --jsonl

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
    let encoding = encoding(arguments)?;
    let counter = counter_for(encoding);
    if arguments.jsonl {
        return lines(arguments, counter);
    }
    let mut rows: Vec<(Source, TokenCount)> = Vec::new();
    let names = if arguments.files.is_empty() {
        vec!["-".to_owned()]
    } else {
        arguments.files.clone()
    };
    for name in &names {
        let source = Source::from(name.as_str());
        let text = source.read()?;
        let count = counter.count(&text);
        rows.push((source, count));
    }
    let total: TokenCount = rows.iter().map(|(_, count)| *count).sum();
    if globals.json {
        let files = rows.iter();
        say::json(&FilesDocument {
            total: total.into(),
            encoding: encoding.name(),
            files: files
                .map(|(source, count)| FileDocument::new(source, *count))
                .collect(),
        })?;
    } else {
        say::raw(&table(&rows, total))?;
    }
    Ok(Exit::Done)
}

fn encoding(arguments: &Arguments) -> Outcome<Encoding> {
    if let Some(model) = &arguments.model {
        return Ok(Catalogue::builtin().resolve(model)?.encoding);
    }
    match &arguments.encoding {
        None => Ok(Encoding::O200kBase),
        Some(name) => name.parse().map_err(|_| {
            let known = Encoding::NAMES.join(", ");
            let failure = Failure::usage(format!("unknown encoding {name:?}"));
            failure
                .note(format!("known: {known}"))
                .hint("for the encoding of a model: --model NAME")
        }),
    }
}

fn lines(arguments: &Arguments, counter: &dyn TokenCounter) -> Outcome {
    let source = match arguments.files.as_slice() {
        [] => Source::Stdin,
        [one] => Source::from(one.as_str()),
        _ => return Err(Failure::usage("--jsonl reads one file, or standard input")),
    };
    stream::serve(&mut source.open()?, |line| {
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
    fn new(source: &Source, count: TokenCount) -> Self {
        let file = match source {
            Source::Stdin => "-".to_owned(),
            Source::File(path) => path.to_string_lossy().into_owned(),
        };
        let count = count.into();
        Self { file, count }
    }
}

/// Right-aligned figures, as `wc` has them; the bounds of an estimate behind.
fn table(rows: &[(Source, TokenCount)], total: TokenCount) -> String {
    let figure = |count: &TokenCount| {
        let about = if count.is_exact() { "" } else { "~" };
        format!("{about}{}", grouped(count.count))
    };
    let bounds = |count: &TokenCount| match count.is_exact() {
        true => String::new(),
        false => format!("  ({} … {})", grouped(count.low), grouped(count.high)),
    };
    let wide = width(&figure(&total));
    let mut out = String::new();
    let mut line = |name: &str, count: &TokenCount| {
        out.push_str(&pad_left(&figure(count), wide));
        out.push_str(name);
        out.push_str(&bounds(count));
        out.push('\n');
    };
    match rows {
        [(Source::Stdin, count)] => line("", count),
        rows => {
            for (source, count) in rows {
                let name = match source {
                    Source::Stdin => "-".to_owned(),
                    Source::File(path) => path.display().to_string(),
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
