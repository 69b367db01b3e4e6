//! `contexture compact`: what is older is stood for by a manifest.
//!
//! A summary stands before it where a file has one, or a model is asked for it; then there is none without it.

use std::ops::Range;
use std::sync::Arc;

use clap::Args;
use contexture::compile::Target;
use contexture::engine::{
    CompactOptions, CompactSpan, CompactionDraft, Compactor, GivenSummary, ModelCompactor,
};
use contexture::{Catalogue, Conversation, Format};
use contexture_api::CompactionDocument;
use owo_colors::OwoColorize as _;

use crate::chat::AnswerArguments;
use crate::database;
use crate::input::InputSource;
use crate::options::default_model;
use crate::options::globals::Globals;
use crate::options::node_ref::resolve_node_ref;
use crate::options::parse_values::{parse_tokens, target_format};
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::{count_with_noun, group_thousands, printable_lines, short_id};
use crate::output::write;

/// Put a manifest in the place of a conversation's older part
///
/// Files, commands, errors, identifiers and figures of that part stand in the manifest; the messages stay
/// and come back with `uncompact`. A summary goes before it: your own, or one that a model writes. Where that
/// fails, nothing is changed.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture compact support-42 --dry-run
  contexture compact support-42 --window 32k
  contexture compact support-42 --span 51c2..9f3a --summary summary.txt
  contexture compact support-42 --model anthropic/claude-haiku-4-5
  contexture compact support-42 --model qwen3-32b --base-url http://localhost:8000/v1
  contexture uncompact support-42 a01f")]
pub(crate) struct Arguments {
    /// The conversation
    conversation: String,
    /// From one message to another, by their ids; default: what no longer fits, else the older half
    #[arg(long, value_name = "ID..ID", value_parser = parse_span)]
    span: Option<Range<String>>,
    /// A file with a summary to stand before the manifest; `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "base_url", "script", "replay"])]
    summary: Option<String>,
    /// The model that writes a summary: claude-haiku-4-5, openai/gpt-5.4; keys are those of `run`
    #[arg(long, short)]
    model: Option<String>,
    #[command(flatten)]
    answer: AnswerArguments,
    /// The format of the requests it is made for; default: that of the model
    #[arg(long, value_parser = target_format())]
    to: Option<Format>,
    /// The model it is made for, whose window and tokens count, or a format; default: the model of the newest answer
    #[arg(long = "for", value_name = "MODEL")]
    made_for: Option<String>,
    /// Tokens the model can hold; default: the model's
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    window: Option<u64>,
    /// How much of the window stays as it is, in per cent; at most half of the history
    #[arg(long, value_name = "PERCENT", default_value = "40", value_parser = clap::value_parser!(u8).range(0..=100))]
    keep: u8,
    /// The branch; default: the active one
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,
    /// Show what would be stored, and store nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation or message, nothing to compact, the span cuts through another, or the model that is
/// asked writes no summary.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let branch = arguments.branch.as_deref();
    let mut chat = database::open_conversation(globals, &arguments.conversation, branch).await?;
    let mut options = build_options(arguments, &chat).await?;
    // A script or an address says as clearly as a model's name that one is to be asked.
    let asked = arguments.model.is_some() || !arguments.answer.is_empty();
    if asked {
        options.compactor = build_model_compactor(arguments, &mut chat, globals).await?;
    }
    let target = reader_target(arguments, &chat).await?;
    let draft = chat.draft_compaction(&target, &options).await?;
    // The library goes on with the manifest alone. Who asked for a summary is told instead, before
    // anything is stored.
    if let Some(why) = draft.failure.as_ref().filter(|_| asked) {
        let message = format!("no summary: {why}");
        return Err(Failure::new(Exit::Model, "no_summary", message).with_hint(
            "nothing was changed; try again or name another model; without --model the manifest stands alone",
        ));
    }
    if arguments.dry_run {
        print_compaction(&draft, None, globals)?;
        if !globals.json {
            write::print_text(&printable_lines(&(draft.summary.join("\n\n") + "\n")))?;
        }
        return Ok(Exit::Done);
    }
    let stored = chat.store_compaction(draft).await?;
    print_compaction(&stored.draft, Some(stored.node.to_string()), globals)?;
    Ok(Exit::Done)
}

/// The model that reads the compacted history.
async fn reader_target(arguments: &Arguments, chat: &Conversation) -> Outcome<Target> {
    let named = arguments.made_for.as_deref();
    // `--for anthropic` means what `--to anthropic` says: other commands take formats there.
    let format = named.and_then(target_format_of);
    let named = named.filter(|_| format.is_none());
    let own = default_model::load_last_model(chat).await?;
    let format = arguments
        .to
        .or(format)
        .unwrap_or_else(|| match (named, &own) {
            (Some(named), _) => provider_format(named),
            (None, Some((_, format))) => *format,
            (None, None) => Format::DEFAULT_TARGET,
        });
    let own = match named {
        Some(_) => None,
        None => default_model::load_last_model_for(chat, format).await?,
    };
    let model = default_model::choose_model(named, own.as_deref(), Some(format), format);
    let target = Target::new(format, model);
    Ok(match arguments.window {
        Some(window) => target.window(window),
        None => target,
    })
}

fn target_format_of(name: &str) -> Option<Format> {
    let mut formats = Format::PROVIDERS.into_iter();
    formats.find(|format| format.as_str() == name)
}

/// The format of a model's provider; of one that is not known that of the default target, whose error names it.
fn provider_format(model: &str) -> Format {
    let spec = Catalogue::builtin().resolve(model);
    spec.map_or(Format::DEFAULT_TARGET, |spec| {
        Format::of_provider(&spec.provider)
    })
}

async fn build_options(arguments: &Arguments, chat: &Conversation) -> Outcome<CompactOptions> {
    let mut options = CompactOptions {
        retained_percent: arguments.keep,
        ..CompactOptions::default()
    };
    if let Some(span) = &arguments.span {
        // A message is all of its nodes: from its first, to its last.
        let first = resolve_node_ref(chat, &span.start).await?.first_node();
        let last = resolve_node_ref(chat, &span.end).await?.last_node();
        if let (Some(first), Some(last)) = (first, last) {
            options.span = CompactSpan::Nodes { first, last };
        }
    }
    if let Some(summary) = &arguments.summary {
        let text = InputSource::or_stdin(Some(summary)).read_text()?;
        let summary = GivenSummary::new(text.trim());
        options.compactor =
            Arc::new(summary.ok_or_else(|| Failure::usage("the summary is empty"))?);
    }
    Ok(options)
}

/// The model that writes the summary; the conversation is opened again among models that have it.
async fn build_model_compactor(
    arguments: &Arguments,
    chat: &mut Conversation,
    globals: &Globals,
) -> Outcome<Arc<dyn Compactor>> {
    let (answer, named) = (&arguments.answer, arguments.model.as_deref());
    let format = answer.resolve_format(None, named)?;
    let model = answer.build_model(format)?;
    if let Some(catalogue) = answer.catalogue_with_model(format, named, None, globals) {
        // The compactor counts and compiles by the conversation's engine, which must know the
        // model.
        *chat = database::reopen_with_catalogue(chat, catalogue).await?;
    }
    let target = Target::new(
        format,
        default_model::choose_model(named, None, None, format),
    );
    Ok(Arc::new(ModelCompactor::new(model, target)))
}

/// Tells what a compaction stands for; one without a node would only do so.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn print_compaction(
    draft: &CompactionDraft,
    node: Option<String>,
    globals: &Globals,
) -> Outcome<()> {
    if globals.json {
        return write::print_json(&CompactionDocument::new(draft, node));
    }
    if globals.quiet {
        return Ok(());
    }
    let name = match &node {
        Some(node) => format!("compaction {}", short_id(node).magenta()),
        None => "a compaction".to_owned(),
    };
    let items = count_with_noun(draft.items as u64, "item");
    let verb = if node.is_some() {
        "stands"
    } else {
        "would stand"
    };
    write::print_sentence(&format!(
        "{name} {verb} for {items}, {} to {}: {} → {} tokens\n",
        short_id(&draft.first.to_string()),
        short_id(&draft.last.to_string()),
        group_thousands(draft.tokens),
        group_thousands(draft.summary_tokens),
    ))
}

fn parse_span(text: &str) -> Result<Range<String>, String> {
    match text.split_once("..") {
        Some((first, last)) if !first.is_empty() && !last.is_empty() => {
            Ok(first.to_owned()..last.to_owned())
        }
        _ => Err("expected two ids, ID..ID".to_owned()),
    }
}
