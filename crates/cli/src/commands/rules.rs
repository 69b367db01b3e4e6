//! `contexture rules`: what the user of a conversation asked to hold from then on.

use clap::Args;
use contexture_api::RulesDocument;
use serde_json::json;

use crate::database;
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::write;

/// List, drop and restore what the user asked to hold from then on
///
/// Sentences such as "never push to main" or "I am allergic to nuts" hold until the user takes them back. Once their messages are
/// out of view they are quoted at the start of the history.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture rules support-42
  contexture rules support-42 --drop 01a2….9f3c1b77
  contexture rules support-42 --restore 01a2….9f3c1b77")]
pub(crate) struct Arguments {
    /// The conversation
    conversation: String,
    /// Drop the rule with this id: it is not quoted any more
    #[arg(long, value_name = "RULE")]
    drop: Option<String>,
    /// Put a dropped rule into force again
    #[arg(long, value_name = "RULE", conflicts_with = "drop")]
    restore: Option<String>,
    /// The branch; default: the active one
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation or rule.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let branch = arguments.branch.as_deref();
    let chat = database::open_conversation(globals, &arguments.conversation, branch).await?;
    let change = match (&arguments.drop, &arguments.restore) {
        (Some(rule), _) => Some(("dropped", rule, chat.drop_rule(rule).await?)),
        (None, Some(rule)) => Some(("restored", rule, chat.restore_rule(rule).await?)),
        (None, None) => None,
    };
    match change {
        Some((word, rule, changed)) => print_change(word, rule, changed, globals)?,
        None => print_rules(&RulesDocument::of_rules(&chat.rules().await?), globals)?,
    }
    Ok(Exit::Done)
}

fn print_change(word: &str, rule: &str, changed: bool, globals: &Globals) -> Outcome<()> {
    if globals.json {
        return write::print_json(&json!({ "rule": rule, word: changed }));
    }
    match changed {
        _ if globals.quiet => Ok(()),
        true => write::print_sentence(&format!("{word} {rule}\n")),
        false => write::print_sentence(&format!("{rule} was not changed\n")),
    }
}

fn print_rules(rules: &RulesDocument, globals: &Globals) -> Outcome<()> {
    if globals.json {
        return write::print_json(rules);
    }
    if rules.rules.is_empty() {
        return write::print_sentence("no rules\n");
    }
    let lines = rules.rules.iter().map(|rule| {
        let dropped = if rule.dropped { "  (dropped)" } else { "" };
        format!(
            "{}  turn {}{dropped}\n    {}\n",
            rule.id, rule.turn, rule.text
        )
    });
    write::print_sentence(&lines.collect::<String>())
}
