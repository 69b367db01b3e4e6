//! `contexture render`: fragments to text.

use clap::{Args, ValueEnum};
use contexture::ir::{Fragment, parse_fragments};
use contexture::render::{Format, Grouping, Renderer};
use serde_json::json;

use crate::input::InputSource;
use crate::jsonl;
use crate::options::globals::Globals;
use crate::options::parse_values::render_format;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::write;

/// Render fragments to the text a model reads
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture render examples/support.json
  contexture render --format markdown --group < fragments.json
  echo '{\"fragments\":[{\"name\":\"hint\",\"data\":\"Be brief.\"}]}' | contexture render --jsonl

Input: [fragment, …] or {\"fragments\": [fragment, …]}; a fragment is
{\"name\", \"data\"} or a serialised one, {\"type\": \"hint\", \"text\": …}.
With --jsonl, one such document a line; each gives {\"output\": \"…\"}.")]
pub(crate) struct Arguments {
    /// A file of fragments in JSON; `-` or nothing: standard input
    file: Option<String>,
    /// The text's format
    #[arg(long, short, value_parser = render_format(), default_value = "xml")]
    format: Format,
    /// Gather fragments of one name under its plural: among the children of a fragment, or
    /// `--group=everywhere` in the list itself, too
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "children", value_name = "WHERE")]
    group: Option<GroupArgument>,
    /// One JSON document a line in, one a line out
    #[arg(long)]
    jsonl: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum GroupArgument {
    Children,
    Everywhere,
}

/// Runs the command.
///
/// # Errors
/// The input cannot be read, or is not fragments.
pub(crate) fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let grouping = match arguments.group {
        None => Grouping::Off,
        Some(GroupArgument::Children) => Grouping::Children,
        Some(GroupArgument::Everywhere) => Grouping::Everywhere,
    };
    let renderer = arguments.format.renderer(grouping);
    let source = InputSource::or_stdin(arguments.file.as_deref());
    if arguments.jsonl {
        return jsonl::answer_lines(&mut source.open_reader()?, |line| {
            // No name of a file here: the answer stands at the place of its line.
            let output = render_fragments(&*renderer, &parse_fragments(line)?)?;
            Ok(json!({ "output": output }).to_string())
        });
    }
    let text = source.read_text()?;
    let fragments =
        parse_fragments(&text).map_err(|error| Failure::from(error).with_context(&source))?;
    let output = render_fragments(&*renderer, &fragments)?;
    if globals.json {
        write::print_json(&json!({ "output": output }))?;
    } else {
        write::print_text(&output)?;
    }
    Ok(Exit::Done)
}

fn render_fragments(renderer: &dyn Renderer, fragments: &[Fragment]) -> Outcome<String> {
    Ok(renderer.render(fragments)?)
}
