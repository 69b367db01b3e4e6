//! `contexture log`: a conversation's tree, drawn.

use std::fmt::Write as _;

use clap::Args;
use contexture::engine::item;
use contexture::engine::tree::{
    Covered, Entries, Entry, Row, Summary, Tree, first, load, rows, shorten,
};
use contexture::ir::NodeId;
use contexture::tokens::{Encoding, counter_for};
use contexture_server::documents::LogDocument;
use owo_colors::OwoColorize as _;

use crate::ago::{ago, now_ms};
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::globals::Globals;
use crate::printable::{clip, counted, grouped, pad, pad_left, width};
use crate::{database, say, terminal};

/// The most columns that names of branches and checkpoints take.
const LABELS: usize = 28;
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
    let chat = database::conversation(globals, &arguments.conversation, None).await?;
    let tree = load(&chat).await?;
    let entries = Entries::of(&tree);
    let covers = chat.compactions().await?;
    let covered = Covered::of(&covers, &tree, &entries);
    let mut all = rows(&entries);
    if !arguments.all {
        if !globals.json {
            all = shorten(covered.fold(all, &entries), &entries);
        }
        all = first(&all, &entries, arguments.limit);
    }
    if globals.json {
        let document = LogDocument::new(chat.id(), &tree, &entries, &all, &covers);
        say::json(&document?)?;
    } else {
        say::styled(&drawing(&tree, &entries, &all, &covered)?)?;
    }
    Ok(Exit::Done)
}

fn id_of(entry: &Entry, digits: usize) -> String {
    let id = entry
        .head()
        .map(|node| node.id.to_string())
        .unwrap_or_default();
    id.get(..digits).unwrap_or(&id).to_owned()
}

/// One row, before its columns are aligned.
struct Line {
    graph: String,
    label: String,
    id: String,
    role: &'static str,
    text: String,
    figures: [String; 3],
    mark: Mark,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Active,
    Entry,
    Other,
}

fn drawing(tree: &Tree, entries: &Entries, rows: &[Row], covered: &Covered) -> Outcome<String> {
    let counter = counter_for(Encoding::O200kBase);
    let (digits, now) = (tree.id_digits(), now_ms());
    let mut lines = Vec::new();
    for row in rows {
        lines.push(match row {
            Row::Entry { lane, entry } => match entries.0.get(*entry) {
                Some(entry) => entry_line(entry, *lane, &Summary::of(entry, counter)?, digits, now),
                None => continue,
            },
            Row::Join { lane } => graph_line(format!("{}├─╯", "│ ".repeat(*lane)), String::new()),
            Row::Elided { lane, entries } => graph_line(
                format!("{}⋮", "│ ".repeat(*lane)),
                counted(*entries as u64, "message"),
            ),
            Row::Covered {
                lane,
                entry,
                entries: count,
            } => graph_line(
                format!("{}⋮", "│ ".repeat(*lane)),
                stood_for(covered.by(*entry), *count, (tree, entries, covered), digits)?,
            ),
            Row::Hidden { entries, heads } => graph_line("⋮".to_owned(), beyond(*entries, *heads)),
            Row::Gap => graph_line(String::new(), String::new()),
        });
    }
    let mut out = String::new();
    for branch in tree
        .refs
        .branches
        .iter()
        .filter(|branch| branch.head.is_none())
    {
        let mark = if branch.active { "@" } else { "○" };
        let _ = writeln!(out, "{mark}  {}  (empty)", branch.name.as_str().green());
    }
    align(&lines, &mut out);
    Ok(out)
}

/// How many messages a compaction stands for, and what that saves.
fn stood_for(
    compaction: Option<NodeId>,
    count: usize,
    (tree, entries, covered): (&Tree, &Entries, &Covered),
    digits: usize,
) -> Outcome<String> {
    let counter = counter_for(Encoding::O200kBase);
    let id = compaction.map(|id| id.to_string()).unwrap_or_default();
    let mut tokens = 0;
    for (place, entry) in entries.0.iter().enumerate() {
        if covered.by(place) == compaction {
            tokens += Summary::of(entry, counter)?.tokens;
        }
    }
    let node = compaction.and_then(|id| tree.nodes.get(*tree.places.get(&id)?));
    let after = node.map(|node| item(node)).transpose()?;
    let after = after.map_or(0, |item| counter.count(&item.text()).count);
    Ok(format!(
        "{} (↳ covered by compaction {}: {} → {} tok)",
        counted(count as u64, "message"),
        id.get(..digits).unwrap_or(&id),
        grouped(tokens),
        grouped(after)
    ))
}

/// What is beyond the limit.
fn beyond(entries: usize, heads: usize) -> String {
    let mut text = format!("{} more", counted(entries as u64, "message"));
    if heads > 0 {
        let _ = write!(
            text,
            ", {} of them where a branch ends",
            grouped(heads as u64)
        );
    }
    text + "; --all shows them"
}

fn graph_line(graph: String, text: String) -> Line {
    Line {
        graph,
        label: String::new(),
        id: String::new(),
        role: "",
        text,
        figures: Default::default(),
        mark: Mark::Other,
    }
}

fn entry_line(entry: &Entry, lane: usize, said: &Summary, digits: usize, now: i64) -> Line {
    let mark = if entry.active { "@" } else { "○" };
    let checkpoints = entry.checkpoints.iter().map(|name| format!("◆ {name}"));
    let labels: Vec<String> = entry.branches.iter().cloned().chain(checkpoints).collect();
    let calls = match entry.calls() {
        0 => String::new(),
        calls => counted(calls, "call"),
    };
    let created = entry.head().map_or(now, |node| node.created_ms);
    Line {
        graph: format!("{}{mark}", "│ ".repeat(lane)),
        label: clip(&labels.join(" "), LABELS),
        id: id_of(entry, digits),
        role: entry.role(),
        text: said.text.clone(),
        figures: [
            ago(created, now),
            calls,
            format!("{} tok", grouped(said.tokens)),
        ],
        mark: if entry.active {
            Mark::Active
        } else {
            Mark::Entry
        },
    }
}

/// Sets the columns: graph, names, id, role, text, time, calls, tokens.
fn align(lines: &[Line], out: &mut String) {
    let widest = |of: &dyn Fn(&Line) -> usize| lines.iter().map(of).max().unwrap_or(0);
    let graph = widest(&|line| {
        if line.mark == Mark::Other {
            0
        } else {
            width(&line.graph)
        }
    });
    let label = widest(&|line| width(&line.label));
    let id = widest(&|line| line.id.len());
    let role = widest(&|line| line.role.len());
    let figures: Vec<usize> = (0..3)
        .map(|at| widest(&|line| line.figures.get(at).map_or(0, |text| width(text))))
        .collect();
    let right: usize = figures.iter().map(|figure| figure + 2).sum();
    let fixed = graph + label + id + role + right + 8;
    let text = terminal::columns(PLAIN_WIDTH).saturating_sub(fixed).max(20);
    for line in lines {
        if line.mark == Mark::Other {
            let row = format!("{}  {}", line.graph, line.text.dimmed());
            let row = if line.text.is_empty() {
                line.graph.clone()
            } else {
                row
            };
            let _ = writeln!(out, "{}", row.trim_end());
            continue;
        }
        let graph = pad(&line.graph, graph);
        let graph = match line.mark {
            Mark::Active => graph.replace('@', &"@".green().bold().to_string()),
            _ => graph,
        };
        let names = pad(&line.label, label);
        let mut row = format!("{graph}  ");
        if label > 0 {
            let _ = write!(row, "{}  ", names.green());
        }
        let _ = write!(
            row,
            "{}  {}  ",
            pad(&line.id, id).magenta(),
            pad(line.role, role).cyan()
        );
        let _ = write!(row, "{}", pad(&clip(&line.text, text), text));
        for (figure, wide) in line
            .figures
            .iter()
            .zip(&figures)
            .filter(|(_, wide)| **wide > 0)
        {
            let _ = write!(row, "  {}", pad_left(figure, *wide).dimmed());
        }
        out.push_str(row.trim_end());
        out.push('\n');
    }
}
