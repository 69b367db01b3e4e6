//! What came of an import, as a table or JSON.

use std::fmt::Write as _;

use contexture::engine::{Imported, Parted};
use contexture::sessions::{Session, SessionFormat};
use contexture_server::documents::SessionDocument;
use owo_colors::OwoColorize as _;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::globals::Globals;
use crate::portable::{self, Whole};
use crate::printable::{clip, counted, one_line, pad, width};
use crate::say;

/// The most columns a title takes.
const TITLE: usize = 60;

/// What came of all files.
#[derive(Default)]
pub(super) struct Harvest {
    pub(super) imported: Vec<Kept>,
    /// Whole conversations, of files that `export --to contexture` wrote.
    pub(super) whole: Vec<Whole>,
    pub(super) skipped: Vec<String>,
    pub(super) failed: Vec<Failure>,
}

/// A session that was stored; not the session itself, of which there may be many.
pub(super) struct Kept {
    format: SessionFormat,
    source: String,
    /// Whether anything stands before its items.
    instructed: bool,
    imported: Imported,
}

impl Kept {
    pub(super) fn new(session: &Session, imported: Imported) -> Self {
        Self {
            format: session.format,
            source: session.source_id.clone(),
            instructed: !session.instructions.is_empty(),
            imported,
        }
    }
}

impl Harvest {
    /// How the command ends.
    pub(super) fn exit(&self) -> Exit {
        if self.failed.is_empty() && self.skipped.is_empty() {
            Exit::Done
        } else {
            Exit::Findings
        }
    }

    /// The failure, and what was stored before it.
    pub(super) fn stopped(&self, failure: Failure) -> Failure {
        match self.imported.len() as u64 {
            0 => failure.note("nothing was stored"),
            stored => failure.note(format!("{} stored before", counted(stored, "conversation"))),
        }
    }
}

/// Says what came of it.
///
/// # Errors
/// The output cannot be written.
pub(super) fn report(harvest: &Harvest, globals: &Globals) -> Outcome<()> {
    if globals.json {
        say::json(&document(harvest))?;
    } else if !globals.quiet {
        say::styled(&table(harvest))?;
    }
    if !globals.json {
        for kept in &harvest.imported {
            if let Some(parted) = &kept.imported.parted {
                say::warning(&went_another_way(&kept.imported, parted));
            }
        }
        for failure in &harvest.failed {
            say::failure(failure, false);
        }
        for skipped in &harvest.skipped {
            say::warning(&format!("left out: {skipped}"));
        }
    }
    Ok(())
}

fn went_another_way(imported: &Imported, parted: &Parted) -> String {
    let Parted { branch, shared } = parted;
    let id = &imported.conversation;
    let rest = imported.nodes.saturating_sub(*shared) as u64;
    format!(
        "{id} went another way after {}: the file's other {} on the new branch `{branch}`, now the \
         active one; `contexture log {id}` shows both",
        counted(*shared as u64, "item"),
        if rest == 1 {
            "one is".to_owned()
        } else {
            format!("{rest} are")
        },
    )
}

fn document(harvest: &Harvest) -> Value {
    let imported = harvest.imported.iter().map(|kept| {
        json!(SessionDocument::new(
            kept.format,
            &kept.source,
            &kept.imported
        ))
    });
    let whole = harvest.whole.iter().flat_map(|whole| &whole.conversations);
    let whole = whole.map(|whole| {
        json!({
            "conversation": whole.id.as_str(), "format": portable::NAME, "items": whole.nodes,
            "new": whole.nodes, "branches": whole.branches, "blobs": whole.blobs,
        })
    });
    let failed = harvest.failed.iter().map(|failure| failure.to_json());
    json!({
        "imported": imported.chain(whole).collect::<Vec<_>>(),
        "values": values(harvest).0,
        "skipped": harvest.skipped,
        "failed": failed.collect::<Vec<_>>(),
    })
}

/// How many values outside conversations there were, and how many were not there before.
fn values(harvest: &Harvest) -> (u64, u64) {
    let all = harvest.whole.iter().flat_map(|whole| &whole.values);
    all.fold((0, 0), |(values, new), one| {
        (values + one.values, new + one.new)
    })
}

fn table(harvest: &Harvest) -> String {
    let ids = harvest
        .imported
        .iter()
        .map(|kept| width(kept.imported.conversation.as_str()));
    let wide = ids.max().unwrap_or(0);
    let mut out = String::new();
    for whole in harvest.whole.iter().flat_map(|whole| &whole.conversations) {
        let count = counted(whole.nodes, "item");
        let branches = match whole.branches {
            0 | 1 => String::new(),
            many => format!(", {many} branches"),
        };
        let _ = writeln!(out, "{}  {count}{branches}", whole.id.as_str().bold());
    }
    if let (values @ 1.., new) = values(harvest) {
        let _ = writeln!(out, "{}, {new} new", counted(values, "value"));
    }
    for kept in &harvest.imported {
        let imported = &kept.imported;
        let count = match (imported.new, imported.nodes) {
            (_, 0) if !kept.instructed => "nothing but its records".to_owned(),
            (_, 0) => "instructions only".to_owned(),
            (0, nodes) => format!("{}, nothing new", counted(nodes as u64, "item")),
            (new, nodes) if new < nodes => format!("added {new}, known {}", nodes - new),
            (_, nodes) => counted(nodes as u64, "item"),
        };
        let branches = match imported.branches {
            0 | 1 => String::new(),
            many => format!(", {many} branches"),
        };
        let title = clip(
            &one_line(imported.title.as_deref().unwrap_or_default()),
            TITLE,
        );
        let id = pad(imported.conversation.as_str(), wide);
        let _ = writeln!(out, "{}  {count}{branches}  {}", id.bold(), title.dimmed());
    }
    out
}
