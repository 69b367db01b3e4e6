//! `contexture convert`: a document of one format as one of another.

use clap::Args;
use contexture::ir::Transcript;
use contexture::wire::{Dialect, Issue, Loss, RepairRules, lift, lower, repair};
use contexture::{Catalogue, Format, Item, ModelSpec};
use owo_colors::OwoColorize as _;
use serde::Serialize;
use serde_json::value::RawValue;

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

/// What came of a document.
#[derive(Serialize)]
struct Converted {
    output: Box<RawValue>,
    losses: Vec<Loss>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repairs: Option<Vec<Repair>>,
}

#[derive(Serialize)]
struct Repair {
    index: usize,
    what: &'static str,
    why: String,
}

/// Runs the command.
///
/// # Errors
/// The input cannot be read or is not of its format, or the model is not known.
pub(crate) fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let target = target(arguments)?;
    let source = Source::or_stdin(arguments.file.as_deref());
    if arguments.jsonl {
        return stream::serve(&mut source.open()?, |line| {
            let converted = convert(arguments, &target, line)?;
            serde_json::to_string(&converted)
                .map_err(|error| Failure::new(Exit::Fault, "output", error.to_string()))
        });
    }
    let text = source.read()?;
    let converted = convert(arguments, &target, &text).map_err(|failure| failure.of(&source))?;
    if globals.json {
        say::json(&converted)?;
    } else {
        say::raw(converted.output.get())?;
        if !globals.quiet {
            report(&converted);
        }
    }
    Ok(Exit::Done)
}

/// What the format, and the model if one is named, can read.
fn target(arguments: &Arguments) -> Outcome<(Dialect, RepairRules)> {
    let mut target = (
        Dialect::of(arguments.to),
        RepairRules::for_format(arguments.to),
    );
    if let Some(model) = &arguments.model {
        for_model(&mut target, Catalogue::builtin().resolve(model)?);
    }
    Ok(target)
}

/// As [`target`], where the document itself says more: it names its model, or it is of the target's
/// format, and then what stands in it may stand there.
fn target_of(
    arguments: &Arguments,
    from: Format,
    document: &Transcript,
    target: &(Dialect, RepairRules),
) -> (Dialect, RepairRules) {
    let mut target = *target;
    if from == arguments.to {
        target.0.mid_system = true;
    }
    if let (None, Some(model)) = (&arguments.model, &document.model)
        && let Ok(spec) = Catalogue::builtin().resolve(model)
    {
        for_model(&mut target, spec);
    }
    target
}

fn for_model((dialect, rules): &mut (Dialect, RepairRules), spec: &ModelSpec) {
    dialect.mid_system |= spec.capabilities.mid_conversation_system;
    dialect.signed_calls = spec.capabilities.signed_calls;
    rules.user_last &= !spec.capabilities.prefill;
}

fn convert(
    arguments: &Arguments,
    target: &(Dialect, RepairRules),
    text: &str,
) -> Outcome<Converted> {
    let from = match arguments.from {
        Some(format) => format,
        None => session::document_format(text, arguments.file.as_deref().unwrap_or_default())?,
    };
    let mut lifted = lift(from, text)?;
    if let Some(model) = &arguments.model {
        lifted.transcript.model = Some(model.clone());
    }
    let (dialect, rules) = target_of(arguments, from, &lifted.transcript, target);
    let mut losses = lifted.losses;
    let repairs = arguments.repair.then(|| {
        let (items, repairs) = repaired(&lifted.transcript.items, &rules);
        lifted.transcript.items = items;
        repairs
    });
    let lowered = lower(&dialect, lifted.kind, &lifted.transcript);
    losses.extend(lowered.losses);
    let output = RawValue::from_string(lowered.json)
        .map_err(|error| Failure::new(Exit::Fault, "output", error.to_string()))?;
    Ok(Converted {
        output,
        losses,
        repairs,
    })
}

/// The items, mended; ids that had to change are changed in the items.
fn repaired(items: &[Item], rules: &RepairRules) -> (Vec<Item>, Vec<Repair>) {
    let mended = repair(&items.iter().collect::<Vec<_>>(), rules);
    let issues = mended
        .issues
        .into_iter()
        .map(|Issue { kind, index, what }| Repair {
            index,
            what: kind.as_str(),
            why: what,
        });
    let issues = issues.collect();
    let items = mended.items.into_iter().map(|entry| {
        let mut item = entry.item.into_owned();
        match (&mut item, entry.call_id) {
            (Item::FunctionCall(call), Some(id)) => call.call_id = id,
            (Item::FunctionCallOutput(output), Some(id)) => output.call_id = id,
            _ => {}
        }
        item
    });
    (items.collect(), issues)
}

fn report(converted: &Converted) {
    let mut out = String::new();
    for repair in converted.repairs.iter().flatten() {
        out.push_str(&format!(
            "{} items[{}]: {}\n",
            "repaired".cyan(),
            repair.index,
            repair.why
        ));
    }
    for loss in &converted.losses {
        out.push_str(&format!("{} {loss}\n", "lost".yellow()));
    }
    say::aside(&out);
}
