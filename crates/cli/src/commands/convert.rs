//! `contexture convert`: a document of one format as one of another.

use clap::Args;
use contexture::compile::{Converted, Converter};
use contexture::{Catalogue, Format};
use contexture_api::ConvertedDocument;
use owo_colors::OwoColorize as _;

use crate::input::InputSource;
use crate::jsonl;
use crate::options::globals::Globals;
use crate::options::parse_values::wire_format;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::write;
use crate::session;

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
    let converter = build_converter(arguments)?;
    let source = InputSource::or_stdin(arguments.file.as_deref());
    if arguments.jsonl {
        return jsonl::answer_lines(&mut source.open_reader()?, |line| {
            let converted = to_document(convert_text(arguments, &converter, line)?)?;
            serde_json::to_string(&converted)
                .map_err(|error| Failure::new(Exit::Fault, "output", error.to_string()))
        });
    }
    let text = source.read_text()?;
    let converted = convert_text(arguments, &converter, &text)
        .map_err(|failure| failure.with_context(&source))?;
    if globals.json {
        write::print_json(&to_document(converted)?)?;
    } else {
        write::print_text(&converted.json)?;
        if !globals.quiet {
            // On standard error, so that the result can be piped on.
            print_losses(&converted);
        }
    }
    Ok(Exit::Done)
}

fn build_converter(arguments: &Arguments) -> Outcome<Converter<'_>> {
    let mut converter = Converter::new(Catalogue::builtin(), arguments.to);
    if let Some(model) = &arguments.model {
        converter = converter.for_model(model)?;
    }
    if arguments.repair {
        converter = converter.with_repairs();
    }
    Ok(converter)
}

fn convert_text(
    arguments: &Arguments,
    converter: &Converter<'_>,
    text: &str,
) -> Outcome<Converted> {
    let from = match arguments.from {
        Some(format) => format,
        None => session::document_format(text, arguments.file.as_deref().unwrap_or_default())?,
    };
    Ok(converter.convert(from, text)?)
}

fn to_document(converted: Converted) -> Outcome<ConvertedDocument> {
    ConvertedDocument::try_from(converted)
        .map_err(|error| Failure::new(Exit::Fault, "output", error.to_string()))
}

fn print_losses(converted: &Converted) {
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
    write::print_note(&out);
}
