//! `contexture conversations`: what is kept.

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
use crate::output::printable::count_with_noun;
use crate::output::relative_time::{now_ms, relative_time};
use crate::output::table::Column;
use crate::output::write;

/// How the list is laid out. What the conversation is about goes last.
const COLUMNS: [Column; 6] = [
    Column::id("").with_paint(|id| id.bold().to_string()),
    Column::figure("").with_rank(3),
    Column::figure(""),
    Column::figure("").with_rank(1),
    Column::figure("")
        .with_rank(2)
        .with_paint(|age| age.dimmed().to_string()),
    Column::words("", 12).with_rank(4),
];

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
            // Pages that end early are continued.
            complete: true,
            // The command goes through all pages itself; there is no cursor to hand back.
            next: None,
        })?;
    } else {
        let now = now_ms();
        let both = found.iter().zip(&overviews);
        let rows = both.map(|(one, overview)| conversation_row(one, overview, now));
        write::print_table(&COLUMNS, &rows.collect::<Vec<_>>())?;
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
        write::print_note("no conversations; `contexture import FILE` keeps a session\n");
    } else if more {
        let shown = count_with_noun(found.len() as u64, "conversation");
        write::print_note(&format!("{shown}, and there are more: -n NUMBER\n"));
    }
}

/// Its id, messages, branches, cost, age and title, or how it begins if it has none.
fn conversation_row(
    conversation: &Conversation,
    overview: &ConversationOverview,
    now: i64,
) -> Vec<String> {
    let title = conversation
        .title
        .as_deref()
        .or(overview.preview.as_deref());
    let cost = match overview.calls.sum.pico_dollars {
        // The column is left out where no call of a model is recorded.
        0 => String::new(),
        pico => Money::from_pico_dollars(pico).to_rounded_string(),
    };
    let branches = match conversation.branches {
        0 | 1 => String::new(),
        more => format!("{more} branches"),
    };
    vec![
        conversation.id.to_string(),
        count_with_noun(conversation.messages, "message"),
        branches,
        cost,
        relative_time(conversation.updated_ms, now),
        title.unwrap_or_default().to_owned(),
    ]
}
