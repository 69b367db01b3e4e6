//! `contexture conversations`: what is kept.

use std::fmt::Write as _;

use clap::Args;
use contexture::store::{Conversation, ListConversations};
use contexture_server::documents::{ConversationDocument, ConversationsDocument};
use owo_colors::OwoColorize as _;

use crate::ago::{ago, now_ms};
use crate::database::{self, Missing};
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::globals::Globals;
use crate::printable::{clip, counted, one_line, pad, pad_left, width};
use crate::say;

/// The most columns a title takes.
const TITLE: usize = 48;

/// List the conversations, most recently changed first
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture conversations
  contexture conversations -n 1000 --json | jq -r '.conversations[].id'")]
pub(crate) struct Arguments {
    /// At most so many
    #[arg(long, short = 'n', value_name = "NUMBER", default_value = "100")]
    limit: usize,
    /// Only those of this resource
    #[arg(long, value_name = "RESOURCE")]
    resource: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// The database cannot be read.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let engine = database::open(globals, Missing::Refuse).await?;
    let owner = database::owner(globals)?;
    let mut list = ListConversations {
        resource: arguments.resource.clone(),
        ..ListConversations::default()
    };
    let mut found: Vec<Conversation> = Vec::new();
    let more = loop {
        let left = arguments.limit.saturating_sub(found.len());
        list.limit = Some(left.clamp(1, 500));
        let page = engine.conversations(&owner, list.clone()).await?;
        found.extend(page.conversations.into_iter().take(left));
        match page.next {
            Some(next) if found.len() < arguments.limit => list.after = Some(next),
            next => break next.is_some(),
        }
    };
    if globals.json {
        let conversations = found.iter().map(ConversationDocument::from).collect();
        say::json(&ConversationsDocument {
            conversations,
            more,
            next: None,
        })?;
    } else {
        say::styled(&table(&found))?;
        if !globals.quiet {
            note(&found, more);
        }
    }
    Ok(Exit::Done)
}

fn note(found: &[Conversation], more: bool) {
    if found.is_empty() {
        say::aside("no conversations; `contexture import FILE` keeps a session\n");
    } else if more {
        let shown = counted(found.len() as u64, "conversation");
        say::aside(&format!("{shown}, and there are more: -n NUMBER\n"));
    }
}

fn table(found: &[Conversation]) -> String {
    let now = now_ms();
    let rows: Vec<[String; 5]> = found
        .iter()
        .map(|conversation| {
            let title = one_line(conversation.title.as_deref().unwrap_or_default());
            let branches = match conversation.branches {
                0 | 1 => String::new(),
                more => format!("{more} branches"),
            };
            [
                conversation.id.to_string(),
                counted(conversation.messages, "message"),
                branches,
                ago(conversation.updated_ms, now),
                clip(&title, TITLE),
            ]
        })
        .collect();
    let wide = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        cells.map(|cell| width(cell)).max().unwrap_or(0)
    };
    let (ids, messages, branches, times) = (wide(0), wide(1), wide(2), wide(3));
    let mut out = String::new();
    for [id, count, branch, time, title] in &rows {
        let mut row = format!("{}  {}", pad(id, ids).bold(), pad_left(count, messages));
        if branches > 0 {
            let _ = write!(row, "  {}", pad_left(branch, branches));
        }
        let _ = write!(row, "  {}  {title}", pad_left(time, times).dimmed());
        let _ = writeln!(out, "{}", row.trim_end());
    }
    out
}
