//! `contexture convert`: a document of one format as one of another.

use clap::Args;
use contexture::compile::{Converted, Converter};
use contexture::{Catalogue, Format};
use contexture_server::documents::ConvertedDocument;
use owo_colors::OwoColorize as _;

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::globals::Globals;
use crate::input::Source;
use crate::words::wire_format;
use crate::{say, session, stream};

/// Convert a request, a response or a list of messages to another format
///
/// What the other format cannot say is listed on standard error, never dropped silently. To the same
/// format a document stays as it is.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture convert request.json --from openai-chat --to anthropic > anthropic.json
  contexture convert --to ui < messages.json
  contexture convert session.json --to openai-chat --repair
  contexture convert --from anthropic --to gemini --jsonl < requests.jsonl

With --jsonl, one document a line; each gives {\"output\": …, \"losses\": [{\"path\", \"what\", \"why\"}]}.")]
pub(crate) struct Arguments {
    /// A file in JSON; `-` or nothing: standard input
    file: Option<String>,
    /// The document's format; default: detected
    #[arg(long, value_parser = wire_format())]
    from: Option<Format>,
    /// The format to write
    #[arg(long, value_parser = wire_format())]
    to: Format,
    /// The model it is for, where models of one format differ
    #[arg(long, short)]
    model: Option<String>,
    /// Make the history one that a provider accepts: every call one output, legal roles
    #[arg(long)]
    repair: bool,
    /// One JSON document a line in, one a line out
    #[arg(long)]
    jsonl: bool,
}

/// Runs the command.
///
/// # Errors
/// The input cannot be read or is not of its format, or the model is not known.
pub(crate) fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let converter = converter(arguments)?;
    let source = Source::or_stdin(arguments.file.as_deref());
    if arguments.jsonl {
        return stream::serve(&mut source.open()?, |line| {
            let converted = document(convert(arguments, &converter, line)?)?;
            serde_json::to_string(&converted)
                .map_err(|error| Failure::new(Exit::Fault, "output", error.to_string()))
        });
    }
    let text = source.read()?;
    let converted = convert(arguments, &converter, &text).map_err(|failure| failure.of(&source))?;
    if globals.json {
        say::json(&document(converted)?)?;
    } else {
        say::raw(&converted.json)?;
        if !globals.quiet {
            report(&converted);
        }
    }
    Ok(Exit::Done)
}

fn converter(arguments: &Arguments) -> Outcome<Converter<'_>> {
    let mut converter = Converter::new(Catalogue::builtin(), arguments.to);
    if let Some(model) = &arguments.model {
        converter = converter.model(model)?;
    }
    if arguments.repair {
        converter = converter.repairing();
    }
    Ok(converter)
}

fn convert(arguments: &Arguments, converter: &Converter<'_>, text: &str) -> Outcome<Converted> {
    let from = match arguments.from {
        Some(format) => format,
        None => session::document_format(text, arguments.file.as_deref().unwrap_or_default())?,
    };
    Ok(converter.convert(from, text)?)
}

fn document(converted: Converted) -> Outcome<ConvertedDocument> {
    ConvertedDocument::try_from(converted)
        .map_err(|error| Failure::new(Exit::Fault, "output", error.to_string()))
}

fn report(converted: &Converted) {
    let mut out = String::new();
    for repair in converted.repairs.iter().flatten() {
        out.push_str(&format!(
            "{} items[{}]: {}\n",
            "repaired".cyan(),
            repair.index,
            repair.what
        ));
    }
    for loss in &converted.losses {
        out.push_str(&format!("{} {loss}\n", "lost".yellow()));
    }
    say::aside(&out);
}
