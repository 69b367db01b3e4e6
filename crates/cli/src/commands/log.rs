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
use crate::output::printable::{
    clip_to_width, count_with_noun, display_width, group_thousands, pad_left, pad_right,
};
use crate::output::relative_time::{now_ms, relative_time};
use crate::output::terminal;
use crate::output::write;

/// The most columns that names of branches and checkpoints take.
const LABEL_COLUMNS: usize = 28;
/// The width of a drawing that does not go to a terminal.
const PLAIN_WIDTH: usize = 100;

/// Draw a conversation: messages, branches, checkpoints
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture log support-42
  contexture log support-42 --all | less
  contexture log support-42 --json | jq '.entries[].text'

@ is where the active branch ends, ○ any other message, ◆ a checkpoint. A message has the id of
its newest item, as short as it is unique; `show` and `rewind` take it so. Tokens are those of
the message's text in o200k_base.")]
pub(crate) struct Arguments {
    /// The conversation
    conversation: String,
    /// Everything: long straight stretches are not shortened, and there is no limit
    #[arg(long, short)]
    all: bool,
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
    let entries = TreeEntries::from_tree(&tree);
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

/// One row, before its columns are aligned.
struct LogLine {
    graph: String,
    label: String,
    id: String,
    role: &'static str,
    text: String,
    figures: [String; 3],
    mark: LineMark,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineMark {
    Active,
    Entry,
    Other,
}

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
    let columns = ColumnWidths::measure(&lines);
    for line in &lines {
        columns.push_line(line, &mut out);
    }
    Ok(out)
}

/// One line for each branch without a message: it has no place in the tree.
fn push_empty_branches(tree: &ConversationTree, out: &mut String) {
    let branches = tree.refs.branches.iter();
    for branch in branches.filter(|branch| branch.head.is_none()) {
        let mark = if branch.active { "@" } else { "○" };
        let _ = writeln!(out, "{mark}  {}  (empty)", branch.name.as_str().green());
    }
}

/// The line of a row; `None` where its entry is not among those that were read.
fn row_line(
    row: &TreeRow,
    (tree, entries, covered): (&ConversationTree, &TreeEntries, &CoveredEntries),
    digits: usize,
    now: i64,
) -> Outcome<Option<LogLine>> {
    let folded = |lane: &usize| format!("{}⋮", "│ ".repeat(*lane));
    Ok(Some(match row {
        TreeRow::Entry { lane, entry } => {
            let Some(entry) = entries.0.get(*entry) else {
                return Ok(None);
            };
            let summary = EntrySummary::from_entry(entry, counter_for(Encoding::O200kBase))?;
            entry_line(entry, *lane, &summary, digits, now)
        }
        TreeRow::Join { lane } => graph_line(format!("{}├─╯", "│ ".repeat(*lane)), String::new()),
        TreeRow::Elided { lane, entries } => {
            graph_line(folded(lane), count_with_noun(*entries as u64, "message"))
        }
        TreeRow::Covered {
            lane,
            entry,
            entries: count,
        } => {
            let compaction = covered.covering_compaction(*entry);
            let text = describe_covered(compaction, *count, (tree, entries, covered), digits)?;
            graph_line(folded(lane), text)
        }
        TreeRow::Hidden { entries, heads } => {
            graph_line("⋮".to_owned(), describe_hidden(*entries, *heads))
        }
        TreeRow::Gap => graph_line(String::new(), String::new()),
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
    LogLine {
        graph,
        label: String::new(),
        id: String::new(),
        role: "",
        text,
        figures: Default::default(),
        mark: LineMark::Other,
    }
}

fn entry_line(
    entry: &TreeEntry,
    lane: usize,
    said: &EntrySummary,
    digits: usize,
    now: i64,
) -> LogLine {
    let mark = if entry.active { "@" } else { "○" };
    let checkpoints = entry.checkpoints.iter().map(|name| format!("◆ {name}"));
    let labels: Vec<String> = entry.branches.iter().cloned().chain(checkpoints).collect();
    LogLine {
        graph: format!("{}{mark}", "│ ".repeat(lane)),
        label: clip_to_width(&labels.join(" "), LABEL_COLUMNS),
        id: short_entry_id(entry, digits),
        role: entry.role(),
        text: said.text.clone(),
        figures: entry_figures(entry, said, now),
        mark: if entry.active {
            LineMark::Active
        } else {
            LineMark::Entry
        },
    }
}

/// Its age, its calls and its tokens.
fn entry_figures(entry: &TreeEntry, said: &EntrySummary, now: i64) -> [String; 3] {
    let created = entry.head().map_or(now, |node| node.created_ms);
    let calls = match entry.call_count() {
        0 => String::new(),
        calls => count_with_noun(calls, "call"),
    };
    let tokens = format!("{} tok", group_thousands(said.tokens));
    [relative_time(created, now), calls, tokens]
}

/// Widths of the columns in characters: graph, names, id, role, text, and the figures (time, calls, tokens).
struct ColumnWidths {
    graph: usize,
    label: usize,
    id: usize,
    role: usize,
    text: usize,
    figures: Vec<usize>,
}

impl ColumnWidths {
    /// The widths that hold these lines; the text takes what the others leave.
    fn measure(lines: &[LogLine]) -> Self {
        let widest = |of: &dyn Fn(&LogLine) -> usize| lines.iter().map(of).max().unwrap_or(0);
        let graph = widest(&|line| {
            if line.mark == LineMark::Other {
                0
            } else {
                display_width(&line.graph)
            }
        });
        let label = widest(&|line| display_width(&line.label));
        let id = widest(&|line| line.id.len());
        let role = widest(&|line| line.role.len());
        let figures: Vec<usize> = (0..3)
            .map(|at| widest(&|line| line.figures.get(at).map_or(0, |text| display_width(text))))
            .collect();
        let right: usize = figures.iter().map(|figure| figure + 2).sum();
        // The eight are the spaces between the columns.
        let fixed = graph + label + id + role + right + 8;
        Self {
            graph,
            label,
            id,
            role,
            text: terminal::column_count(PLAIN_WIDTH)
                .saturating_sub(fixed)
                .max(20),
            figures,
        }
    }

    fn push_line(&self, line: &LogLine, out: &mut String) {
        let row = match line.mark {
            LineMark::Other if line.text.is_empty() => line.graph.clone(),
            LineMark::Other => format!("{}  {}", line.graph, line.text.dimmed()),
            LineMark::Active | LineMark::Entry => self.entry_row(line),
        };
        let _ = writeln!(out, "{}", row.trim_end());
    }

    fn entry_row(&self, line: &LogLine) -> String {
        let graph = pad_right(&line.graph, self.graph);
        let graph = match line.mark {
            // Coloured after padding: colour codes have no width.
            LineMark::Active => graph.replace('@', &"@".green().bold().to_string()),
            _ => graph,
        };
        let mut row = format!("{graph}  ");
        if self.label > 0 {
            let _ = write!(row, "{}  ", pad_right(&line.label, self.label).green());
        }
        let _ = write!(
            row,
            "{}  {}  {}",
            pad_right(&line.id, self.id).magenta(),
            pad_right(line.role, self.role).cyan(),
            pad_right(&clip_to_width(&line.text, self.text), self.text)
        );
        let figures = line.figures.iter().zip(&self.figures);
        // A column without a figure in any line is left out.
        for (figure, wide) in figures.filter(|(_, wide)| **wide > 0) {
            let _ = write!(row, "  {}", pad_left(figure, *wide).dimmed());
        }
        row
    }
}
