//! `contexture log`: a conversation's tree, drawn.

use std::fmt::Write as _;

use clap::Args;
use contexture::engine::parse_node_item;
use contexture::engine::tree::{
    ConversationTree, CoveredEntries, EntrySummary, TreeEntries, TreeEntry, TreeRow,
    elide_long_stretches, first_entries, layout_rows, load_tree,
};
use contexture::ir::NodeId;
use contexture::tokens::{Encoding, counter_for};
use contexture_api::LogDocument;
use owo_colors::OwoColorize as _;

use crate::database;
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::printable::{clip_to_width, count_with_noun, display_width, group_thousands};
use crate::output::relative_time::{now_ms, relative_time};
use crate::output::table::{Column, TableLayout};
use crate::output::terminal::{Stream, terminal_columns};
use crate::output::write;

/// The most columns that names of branches and checkpoints take.
const LABEL_COLUMNS: usize = 28;
/// The width of a drawing that goes to a file or a program.
const PLAIN_WIDTH: usize = 100;

/// Draw a conversation: messages, branches, checkpoints
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture log support-42
  contexture log support-42 --all | less
  contexture log support-42 --json | jq '.entries[].text'

@ is where the active branch ends, ○ any other message, ◆ a checkpoint; a message that is pinned
on the active branch says so. A message has the id of its newest item, as short as it is unique;
`show` and `rewind` take it so. Tokens are those of the message's text in o200k_base.

What only changes the state of a conversation (a pin, a run, options) is no message; --state
lists it too.")]
pub(crate) struct Arguments {
    /// The conversation
    conversation: String,
    /// Everything: long straight stretches are not shortened, and there is no limit
    #[arg(long, short)]
    all: bool,
    /// Also what only changes state, a row each: pins, runs, options
    #[arg(long)]
    state: bool,
    /// At most so many messages; the one where the active branch ends is always among them
    #[arg(
        long,
        short = 'n',
        value_name = "NUMBER",
        default_value = "50",
        conflicts_with = "all"
    )]
    limit: usize,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation, or the database cannot be read.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let chat = database::open_conversation(globals, &arguments.conversation, None).await?;
    let tree = load_tree(&chat).await?;
    let mut entries = TreeEntries::from_tree(&tree);
    if !arguments.state {
        entries = entries.without_state_rows();
    }
    entries.mark_pinned(&chat.pins().await?);
    let covers = chat.compactions().await?;
    let covered = CoveredEntries::from_covers(&covers, &tree, &entries);
    let mut all = layout_rows(&entries);
    if !arguments.all {
        if !globals.json {
            // For people only; a program gets every entry within the limit.
            all = elide_long_stretches(covered.fold_rows(all, &entries), &entries);
        }
        all = first_entries(&all, &entries, arguments.limit);
    }
    if globals.json {
        let document = LogDocument::new(chat.id(), &tree, &entries, &all, &covers);
        write::print_json(&document?)?;
    } else {
        write::print_styled(&draw_log(&tree, &entries, &all, &covered)?)?;
    }
    Ok(Exit::Done)
}

fn short_entry_id(entry: &TreeEntry, digits: usize) -> String {
    let id = entry
        .head()
        .map(|node| node.id.to_string())
        .unwrap_or_default();
    id.get(..digits).unwrap_or(&id).to_owned()
}

/// One row, before its columns are fitted.
enum LogLine {
    /// A message: a cell for each of [`COLUMNS`].
    Entry(Vec<String>),
    /// What stands between messages: the graph, and what is said there.
    Other { graph: String, text: String },
}

/// How a message is laid out: graph, names, id, role, text, age, calls, tokens. On a narrow terminal the text and the names
/// are shortened, then the figures go.
const COLUMNS: [Column; 8] = [
    Column::words("", 12)
        .with_rank(7)
        .with_paint(|graph| graph.replace('@', &"@".green().bold().to_string())),
    Column::words("", 8)
        .with_rank(4)
        .with_paint(|names| names.green().to_string()),
    Column::word("")
        .with_rank(6)
        .with_paint(|id| id.magenta().to_string()),
    Column::word("")
        .with_rank(3)
        .with_paint(|role| role.cyan().to_string()),
    Column::words("", 16).with_rank(5),
    Column::figure("")
        .with_rank(2)
        .with_paint(|age| age.dimmed().to_string()),
    Column::figure("").with_paint(|calls| calls.dimmed().to_string()),
    Column::figure("")
        .with_rank(1)
        .with_paint(|tokens| tokens.dimmed().to_string()),
];

fn draw_log(
    tree: &ConversationTree,
    entries: &TreeEntries,
    rows: &[TreeRow],
    covered: &CoveredEntries,
) -> Outcome<String> {
    // One time for all lines: ages are compared with one another.
    let now = now_ms();
    // Sorts all ids of the tree: once for the log, not once for each line.
    let digits = tree.id_digits();
    let mut lines = Vec::new();
    for row in rows {
        lines.extend(row_line(row, (tree, entries, covered), digits, now)?);
    }
    let mut out = String::new();
    push_empty_branches(tree, &mut out);
    push_lines(&lines, &mut out);
    Ok(out)
}

fn push_lines(lines: &[LogLine], out: &mut String) {
    let width = terminal_columns(Stream::Output).unwrap_or(PLAIN_WIDTH);
    let cells = lines.iter().filter_map(|line| match line {
        LogLine::Entry(cells) => Some(cells.clone()),
        LogLine::Other { .. } => None,
    });
    let cells: Vec<Vec<String>> = cells.collect();
    let layout = TableLayout::measure(&COLUMNS, &cells, width);
    for line in lines {
        let row = match line {
            LogLine::Entry(cells) => layout.format_row(cells),
            LogLine::Other { graph, text } if text.is_empty() => graph.clone(),
            LogLine::Other { graph, text } => {
                let graph = clip_to_width(graph, width / 2);
                let room = width - display_width(&graph) - 2;
                format!("{graph}  {}", clip_to_width(text, room).dimmed())
            }
        };
        let _ = writeln!(out, "{}", row.trim_end());
    }
}

/// One line for each branch without a message: it has no place in the tree.
fn push_empty_branches(tree: &ConversationTree, out: &mut String) {
    let branches = tree.refs.branches.iter();
    for branch in branches.filter(|branch| branch.head.is_none()) {
        let mark = if branch.active { "@" } else { "○" };
        let name = clip_to_width(branch.name.as_str(), LABEL_COLUMNS);
        let _ = writeln!(out, "{mark}  {}  (empty)", name.green());
    }
}

/// The line of a row; `None` where its entry is not among those that were read.
fn row_line(
    row: &TreeRow,
    (tree, entries, covered): (&ConversationTree, &TreeEntries, &CoveredEntries),
    digits: usize,
    now: i64,
) -> Outcome<Option<LogLine>> {
    let graph = row.graph(entries);
    Ok(Some(match row {
        TreeRow::Entry { entry, .. } => {
            let Some(entry) = entries.0.get(*entry) else {
                return Ok(None);
            };
            let summary = EntrySummary::from_entry(entry, counter_for(Encoding::O200kBase))?;
            LogLine::Entry(entry_cells(entry, graph, &summary, digits, now))
        }
        TreeRow::Join { .. } | TreeRow::Gap => graph_line(graph, String::new()),
        TreeRow::Elided { entries, .. } => {
            graph_line(graph, count_with_noun(*entries as u64, "message"))
        }
        TreeRow::Covered {
            entry,
            entries: count,
            ..
        } => {
            let compaction = covered.covering_compaction(*entry);
            let text = describe_covered(compaction, *count, (tree, entries, covered), digits)?;
            graph_line(graph, text)
        }
        TreeRow::Hidden { entries, heads } => graph_line(graph, describe_hidden(*entries, *heads)),
    }))
}

/// How many messages a compaction stands for, and what that saves.
fn describe_covered(
    compaction: Option<NodeId>,
    count: usize,
    (tree, entries, covered): (&ConversationTree, &TreeEntries, &CoveredEntries),
    digits: usize,
) -> Outcome<String> {
    let counter = counter_for(Encoding::O200kBase);
    let id = compaction.map(|id| id.to_string()).unwrap_or_default();
    let mut tokens = 0;
    for (place, entry) in entries.0.iter().enumerate() {
        if covered.covering_compaction(place) == compaction {
            tokens += EntrySummary::from_entry(entry, counter)?.tokens;
        }
    }
    let node = compaction.and_then(|id| tree.nodes.get(*tree.positions.get(&id)?));
    let after = node.map(|node| parse_node_item(node)).transpose()?;
    let after = after.map_or(0, |item| counter.count(&item.text()).count);
    Ok(format!(
        "{} (↳ covered by compaction {}: {} → {} tok)",
        count_with_noun(count as u64, "message"),
        id.get(..digits).unwrap_or(&id),
        group_thousands(tokens),
        group_thousands(after)
    ))
}

/// What is beyond the limit.
fn describe_hidden(entries: usize, heads: usize) -> String {
    let mut text = format!("{} more", count_with_noun(entries as u64, "message"));
    if heads > 0 {
        let _ = write!(
            text,
            ", {} of them where a branch ends",
            group_thousands(heads as u64)
        );
    }
    text + "; --all shows them"
}

fn graph_line(graph: String, text: String) -> LogLine {
    LogLine::Other { graph, text }
}

fn entry_cells(
    entry: &TreeEntry,
    graph: String,
    said: &EntrySummary,
    digits: usize,
    now: i64,
) -> Vec<String> {
    let created = entry.head().map_or(now, |node| node.created_ms);
    let calls = match entry.call_count() {
        0 => String::new(),
        calls => count_with_noun(calls, "call"),
    };
    vec![
        graph,
        // Its beginning: that it is pinned comes before the names.
        clip_to_width(&entry.labels(), LABEL_COLUMNS),
        short_entry_id(entry, digits),
        entry.role().to_owned(),
        said.text.clone(),
        relative_time(created, now),
        calls,
        format!("{} tok", group_thousands(said.tokens)),
    ]
}
