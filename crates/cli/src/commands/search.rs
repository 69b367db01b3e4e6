//! `contexture search`: what was said, found by its words.

use std::fmt::Write as _;

use clap::Args;
use contexture::ir::{BranchName, NodeId};
use contexture::store::{
    EntityKind, Error as StoreError, HiddenContent, MatchMode, PathEnd, SearchCoverage,
    SearchCursor, SearchRequest, SearchScope, Snippet,
};
use contexture::{Conversation, Engine};
use contexture_api::operations::{
    FoundItems, MAX_NEARBY, TypedSearch, encode_hit_cursor, has_only_signs, parse_hit_cursor,
    search_typed,
};
use contexture_api::{ItemKind, NearbyItemDocument};
use owo_colors::OwoColorize as _;

use crate::database::{self, WhenMissing};
use crate::options::globals::Globals;
use crate::options::node_ref::resolve_node_ref;
use crate::options::parse_values;
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::printable::{LongWords, count_with_noun, one_line, wrap_words};
use crate::output::relative_time::{now_ms, relative_time};
use crate::output::table::{Column, format_table};
use crate::output::terminal::{Stream, column_count, terminal_columns};
use crate::output::write;

/// Digits of a node's id: enough to be the only one.
const ID_DIGITS: usize = 8;

/// Find what was said: messages, calls, outputs, summaries
#[derive(Debug, Args)]
#[command(after_long_help = "\
Any word will do, best first; case, accents and endings do not count.

  who ordered gloves        a question: its words, and what stands beside them
  \"refund the gloves\"       required, side by side; in a shell, '\"refund the gloves\"'
  glov*                     words that begin so
  gloves -hats              without this word; in a shell after --
  gloves from:user          only from users; also assistant, call, output, instruction
  gloves after:2026-05      from then on; before:2026-05-03: until then (UTC)

Nothing else means anything: any text is a query.

Examples:
  contexture search when did the gloves arrive
  contexture search refund gloves --all-words
  contexture search '\"order arrived\" W8*' --conversation support-42
  contexture search which office -C 1 --conversation support-42
  contexture search which office --conversation support-42 --at 3f9a
  contexture search error --kind output -n 5 --json | jq -r '.hits[].snippet.text'

`contexture show CONVERSATION ID` shows a hit whole.")]
pub(crate) struct Arguments {
    /// What to look for
    #[arg(required = true)]
    query: Vec<String>,
    /// All words must be there, as they are typed
    #[arg(long)]
    all_words: bool,
    /// In this conversation only
    #[arg(long, short, value_name = "CONVERSATION")]
    conversation: Option<String>,
    /// On the path of this branch only
    #[arg(long, value_name = "BRANCH", requires = "conversation")]
    branch: Option<String>,
    /// Only what stands on the path to this item, and what was so then first
    #[arg(
        long,
        value_name = "ID",
        requires = "conversation",
        conflicts_with = "branch"
    )]
    at: Option<String>,
    /// In conversations of this resource only
    #[arg(long, value_name = "RESOURCE", conflicts_with = "conversation")]
    resource: Option<String>,
    /// Items of this kind only; may be repeated
    #[arg(long = "kind", value_parser = parse_values::item_kind(), value_name = "KIND")]
    kinds: Vec<ItemKind>,
    /// Also what is not meant for people to see
    #[arg(long)]
    hidden: bool,
    /// Also so many items before and after each hit
    #[arg(long, short = 'C', value_name = "NUMBER", default_value = "0", value_parser = clap::value_parser!(u64).range(0..=MAX_NEARBY))]
    around: u64,
    /// At most so many
    #[arg(long, short = 'n', value_name = "NUMBER", default_value = "20")]
    limit: usize,
    /// The next page: what the page before gave as `next`
    #[arg(long, value_name = "CURSOR", value_parser = parse_cursor)]
    after: Option<SearchCursor>,
}

fn parse_cursor(text: &str) -> Result<SearchCursor, String> {
    parse_hit_cursor(text).ok_or_else(|| "expected `next` of the page before, as it is".to_owned())
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation or branch, or the database cannot be read.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let query = arguments.query.join(" ");
    let (engine, scope) = open_scope(arguments, globals).await?;
    let request = SearchRequest {
        words: if arguments.all_words {
            MatchMode::All
        } else {
            MatchMode::Any
        },
        kinds: arguments
            .kinds
            .iter()
            .map(|kind| kind.node_kind())
            .collect(),
        hidden: if arguments.hidden {
            HiddenContent::Include
        } else {
            HiddenContent::LeaveOut
        },
        limit: arguments.limit,
        after: arguments.after.clone(),
        ..SearchRequest::new(query.clone(), scope)
    };
    let owner = database::resolve_owner(globals)?;
    let asked = TypedSearch {
        request,
        nearby: arguments.around,
    };
    let found = search_typed(&engine, &owner, asked).await?;
    if globals.json {
        let next = found.page.next.as_ref().map(encode_hit_cursor);
        write::print_json(&found.into_document(next))?;
    } else {
        write::print_styled(&format_hits(&found))?;
        if !globals.quiet {
            print_search_note(&found, &query);
        }
    }
    Ok(Exit::Done)
}

/// Opens the database, and tells which part of it is searched.
async fn open_scope(arguments: &Arguments, globals: &Globals) -> Outcome<(Engine, SearchScope)> {
    if let Some(id) = &arguments.conversation {
        let branch = arguments.branch.as_deref();
        let chat = database::open_conversation(globals, id, branch).await?;
        let at = match (&arguments.at, branch) {
            (Some(at), _) => Some(PathEnd::Node(resolve_last_node(&chat, at).await?)),
            (None, Some(branch)) => {
                let branch = BranchName::new(branch).map_err(contexture::EngineError::from)?;
                Some(PathEnd::Branch(branch))
            }
            (None, None) => None,
        };
        let conversation = chat.id().clone();
        let scope = match at {
            Some(at) => SearchScope::Path { conversation, at },
            None => SearchScope::Conversation(conversation),
        };
        return Ok((chat.engine().clone(), scope));
    }
    let scope = match &arguments.resource {
        Some(resource) => SearchScope::Resource(resource.clone()),
        None => SearchScope::Owner,
    };
    let engine = database::open_engine(globals, WhenMissing::Refuse).await?;
    Ok((engine, scope))
}

/// The node that a name names; of a message its last.
async fn resolve_last_node(chat: &Conversation, name: &str) -> Outcome<NodeId> {
    let last = resolve_node_ref(chat, name).await?.last_node();
    last.ok_or_else(|| StoreError::not_found(EntityKind::Message, name).into())
}

fn print_search_note(found: &FoundItems, query: &str) {
    let (page, apart) = (&found.page, &found.apart);
    let count = page.hits.len();
    // Else it would look as if such words had never been said.
    if has_only_signs(query) {
        write::print_note("nothing to look for: the query has signs only, no word\n");
    } else if count == 0 && !apart.is_empty() {
        let apart = apart.iter().map(|one| format!("{} {}", one.word, one.hits));
        let apart: Vec<String> = apart.collect();
        write::print_note(&format!(
            "nothing found with all words; apart: {}. Without --all-words any word will do\n",
            apart.join(", ")
        ));
    } else if count == 0 {
        write::print_note("nothing found\n");
    } else if page.next.is_some() {
        let shown = count_with_noun(count as u64, "hit");
        write::print_note(&format!("{shown}, and there are more: -n NUMBER\n"));
    }
    if let Some(progress) = &page.indexing {
        write::print_note(&format!(
            "texts are being indexed, {} of {} so far; of the others only what is new was looked at. \
             `contexture migrate` finishes it\n",
            progress.indexed,
            count_with_noun(progress.conversations, "conversation")
        ));
    }
    if page.coverage == SearchCoverage::Newest {
        write::print_note(
            "only the newest of what may fit was looked at; say more to reach the rest\n",
        );
    }
}

/// The line above a snippet: the conversation, the node, the kind and the age.
const COLUMNS: [Column; 4] = [
    Column::id("").with_paint(|conversation| conversation.bold().to_string()),
    Column::id("").with_paint(|node| node.cyan().to_string()),
    Column::word("").with_paint(|kind| kind.dimmed().to_string()),
    Column::word("").with_paint(|age| age.dimmed().to_string()),
];

fn format_hits(found: &FoundItems) -> String {
    let now = now_ms();
    // Without a terminal a snippet is one line, for programs that read lines.
    let columns = terminal_columns(Stream::Output);
    let mut out = String::new();
    for (place, hit) in found.page.hits.iter().enumerate() {
        let nearby = found.nearby.get(place);
        let id = hit.node.to_string();
        let row = vec![
            hit.conversation.to_string(),
            id.get(..ID_DIGITS).unwrap_or(&id).to_owned(),
            hit.kind.as_str().to_owned(),
            relative_time(hit.created_ms, now),
        ];
        out.push_str(&format_table(
            &COLUMNS,
            &[row],
            column_count(Stream::Output),
        ));
        let mut snippet = String::new();
        if let Some(nearby) = nearby {
            push_nearby_items(&mut snippet, &nearby.before);
        }
        let _ = writeln!(snippet, "  {}", format_snippet(&hit.snippet));
        if let Some(newer) = &hit.replaced {
            let id = newer.node.to_string();
            let id = id.get(..ID_DIGITS).unwrap_or(&id);
            let until = relative_time(newer.created_ms, now);
            let _ = writeln!(snippet, "  so until {until}, replaced by {id}");
        }
        if let Some(nearby) = nearby {
            push_nearby_items(&mut snippet, &nearby.after);
        }
        out.push_str(&match columns {
            Some(columns) => wrap_words(&snippet, columns, 2, LongWords::Break),
            None => snippet,
        });
    }
    out
}

/// Items beside a hit, a line each.
fn push_nearby_items(out: &mut String, items: &[NearbyItemDocument]) {
    for item in items {
        let line = format!("  | {}: {}", item.kind, one_line(&item.text));
        let _ = writeln!(out, "{}", line.dimmed());
    }
}

/// The snippet on one line, its matches marked by colour.
fn format_snippet(snippet: &Snippet) -> String {
    let piece = |from: usize, to: usize| {
        let text = snippet.text.get(from..to).unwrap_or_default();
        let mut out = one_line(text);
        // White space at the ends parts words from matches.
        if text.starts_with(char::is_whitespace) {
            out.insert(0, ' ');
        }
        if text.ends_with(char::is_whitespace) && out != " " {
            out.push(' ');
        }
        out
    };
    let mut out = String::new();
    let mut at = 0;
    for place in &snippet.matches {
        out.push_str(&piece(at, place.start));
        let _ = write!(out, "{}", piece(place.start, place.end).yellow().bold());
        at = place.end;
    }
    out.push_str(&piece(at, snippet.text.len()));
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_is_one_line() {
        let snippet = Snippet {
            text: "…a\n\n b \u{1b}[31m c\tb\n".to_owned(),
            matches: vec![7..8, 17..18],
        };
        anstream::ColorChoice::Never.write_global();
        let plain = anstream::adapter::strip_str(&format_snippet(&snippet)).to_string();
        assert_eq!(plain, "…a b [31m c b");
    }
}
