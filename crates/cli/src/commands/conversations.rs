//! `contexture conversations`: what is kept.

use std::fmt::Write as _;

use clap::Args;
use contexture::Engine;
use contexture::catalogue::Money;
use contexture::engine::ConversationOverview;
use contexture::ir::Owner;
use contexture::store::{Conversation, ListConversations};
use contexture_api::{ConversationDocument, ConversationsDocument};
use owo_colors::OwoColorize as _;

use crate::database::{self, WhenMissing};
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::printable::{
    clip_to_width, count_with_noun, display_width, one_line, pad_left, pad_right,
};
use crate::output::relative_time::{now_ms, relative_time};
use crate::output::write;

/// The most columns a title takes.
const TITLE_COLUMNS: usize = 48;

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
    let engine = database::open_engine(globals, WhenMissing::Refuse).await?;
    let owner = database::resolve_owner(globals)?;
    let (found, more) = list_up_to_limit(&engine, &owner, arguments).await?;
    let overviews = engine.conversation_overviews(&owner, &found).await?;
    if globals.json {
        let both = found.iter().zip(&overviews);
        let document = |(one, overview)| ConversationDocument::from(one).with_overview(overview);
        let conversations = both.map(document).collect();
        write::print_json(&ConversationsDocument {
            conversations,
            more,
            // The command goes through all pages itself; there is no cursor to hand back.
            next: None,
        })?;
    } else {
        write::print_styled(&conversation_table(&found, &overviews))?;
        if !globals.quiet {
            print_list_note(&found, more);
        }
    }
    Ok(Exit::Done)
}

/// Conversations page by page, and whether there are more than the limit.
async fn list_up_to_limit(
    engine: &Engine,
    owner: &Owner,
    arguments: &Arguments,
) -> Outcome<(Vec<Conversation>, bool)> {
    let mut list = ListConversations {
        resource: arguments.resource.clone(),
        ..ListConversations::default()
    };
    let mut found: Vec<Conversation> = Vec::new();
    loop {
        let left = arguments.limit.saturating_sub(found.len());
        // Never for 0, which is no page; `take` below keeps to the limit all the same.
        list.limit = Some(left.clamp(1, 500));
        let page = engine.list_conversations(owner, list.clone()).await?;
        found.extend(page.conversations.into_iter().take(left));
        match page.next {
            Some(next) if found.len() < arguments.limit => list.after = Some(next),
            next => return Ok((found, next.is_some())),
        }
    }
}

fn print_list_note(found: &[Conversation], more: bool) {
    if found.is_empty() {
        write::print_stderr("no conversations; `contexture import FILE` keeps a session\n");
    } else if more {
        let shown = count_with_noun(found.len() as u64, "conversation");
        write::print_stderr(&format!("{shown}, and there are more: -n NUMBER\n"));
    }
}

/// Its id, messages, branches, cost, age and title, or how it begins if it has none.
fn conversation_cells(
    conversation: &Conversation,
    overview: &ConversationOverview,
    now: i64,
) -> [String; 6] {
    let title = conversation
        .title
        .as_deref()
        .or(overview.preview.as_deref());
    let title = one_line(title.unwrap_or_default());
    let cost = match overview.calls.sum.pico_dollars {
        0 => String::new(),
        pico => Money::from_pico_dollars(pico).to_rounded_string(),
    };
    let branches = match conversation.branches {
        0 | 1 => String::new(),
        more => format!("{more} branches"),
    };
    [
        conversation.id.to_string(),
        count_with_noun(conversation.messages, "message"),
        branches,
        cost,
        relative_time(conversation.updated_ms, now),
        clip_to_width(&title, TITLE_COLUMNS),
    ]
}

fn conversation_table(found: &[Conversation], overviews: &[ConversationOverview]) -> String {
    let now = now_ms();
    let both = found.iter().zip(overviews);
    let rows = both.map(|(one, overview)| conversation_cells(one, overview, now));
    let rows: Vec<[String; 6]> = rows.collect();
    let wide = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        cells.map(|cell| display_width(cell)).max().unwrap_or(0)
    };
    let (ids, messages, branches, costs, times) = (wide(0), wide(1), wide(2), wide(3), wide(4));
    let mut out = String::new();
    for [id, count, branch, cost, time, title] in &rows {
        let mut row = format!(
            "{}  {}",
            pad_right(id, ids).bold(),
            pad_left(count, messages)
        );
        // The column is left out where no conversation has more than one branch.
        if branches > 0 {
            let _ = write!(row, "  {}", pad_left(branch, branches));
        }
        // So is that of costs where no call of a model is recorded.
        if costs > 0 {
            let _ = write!(row, "  {}", pad_left(cost, costs));
        }
        let _ = write!(row, "  {}  {title}", pad_left(time, times).dimmed());
        let _ = writeln!(out, "{}", row.trim_end());
    }
    out
}
