//! What came of an import, as a table or JSON.

use contexture::engine::{DivergedSession, Imported};
use contexture::sessions::{Session, SessionFormat};
use contexture::store::ImportedAll;
use contexture_api::SessionDocument;
use owo_colors::OwoColorize as _;
use serde_json::{Value, json};

use crate::conversation_lines;
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::{count_with_noun, printable_lines};
use crate::output::table::Column;
use crate::output::write;

/// What came of all files.
#[derive(Default)]
pub(super) struct ImportReport {
    pub(super) imported: Vec<StoredSession>,
    /// Whole conversations, of files that `export --to contexture` wrote.
    pub(super) imported_files: Vec<ImportedAll>,
    pub(super) skipped: Vec<String>,
    pub(super) failed: Vec<Failure>,
    pub(super) passed_over: Vec<PassedOver>,
}

/// A file of a folder that holds no session.
pub(super) struct PassedOver {
    pub(super) file: String,
    pub(super) why: String,
}

/// How much is said of such files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PassedOverFiles {
    Count,
    List,
}

/// A session that was stored; not the session itself, of which there may be many.
pub(super) struct StoredSession {
    format: SessionFormat,
    source: String,
    /// Whether anything stands before its items.
    has_instructions: bool,
    imported: Imported,
}

impl StoredSession {
    pub(super) fn new(session: &Session, imported: Imported) -> Self {
        Self {
            format: session.format,
            source: session.source_id.clone(),
            has_instructions: !session.instructions.is_empty(),
            imported,
        }
    }
}

impl ImportReport {
    /// How the command ends.
    pub(super) fn exit_code(&self) -> Exit {
        if self.failed.is_empty() && self.skipped.is_empty() {
            Exit::Done
        } else {
            Exit::Findings
        }
    }

    /// The failure of an import that found files and no session.
    pub(super) fn only_passed_over(&self, names: &[String]) -> Option<Failure> {
        let found = self.imported.len() + self.imported_files.len() + self.failed.len();
        let files = count_with_noun(self.passed_over.len() as u64, "file");
        (found == 0).then(|| {
            let message = format!("no session in {}: {files} looked at", names.join(", "));
            Failure::bad_input("no_session", message).with_hint(
                "`contexture help import` lists the formats that are known by their content",
            )
        })
    }

    /// The failure, and what was stored before it.
    pub(super) fn with_stored_count(&self, failure: Failure) -> Failure {
        match self.imported.len() as u64 {
            0 => failure.with_note("nothing was stored"),
            stored => failure.with_note(format!(
                "{} stored before",
                count_with_noun(stored, "conversation")
            )),
        }
    }
}

/// Says what came of it.
///
/// # Errors
/// The output cannot be written.
pub(super) fn print_report(
    harvest: &ImportReport,
    listing: PassedOverFiles,
    globals: &Globals,
) -> Outcome<()> {
    if globals.json {
        write::print_json(&report_document(harvest))?;
    } else if !globals.quiet {
        write::print_table(&COLUMNS, &import_rows(harvest))?;
        if let (values @ 1.., new) = count_values(harvest) {
            let values = count_with_noun(values, "value");
            write::print_sentence(&format!("{values}, {new} new\n"))?;
        }
    }
    if !globals.json {
        for kept in &harvest.imported {
            if let Some(parted) = &kept.imported.diverged {
                write::print_warning(&diverged_warning(&kept.imported, parted));
            }
        }
        for failure in &harvest.failed {
            write::print_failure(failure, false);
        }
        for skipped in &harvest.skipped {
            write::print_warning(&format!("left out: {skipped}"));
        }
        if !globals.quiet {
            print_passed_over(&harvest.passed_over, listing);
        }
    }
    Ok(())
}

fn print_passed_over(files: &[PassedOver], listing: PassedOverFiles) {
    if files.is_empty() {
        return;
    }
    if listing == PassedOverFiles::List {
        for PassedOver { file, why } in files {
            write::print_note(&printable_lines(&format!("no session: {file}: {why}\n")));
        }
    }
    let more = match listing {
        PassedOverFiles::List => "",
        PassedOverFiles::Count => "; --verbose lists them",
    };
    let many = count_with_noun(files.len() as u64, "file");
    write::print_note(&format!("{many} held no session{more}\n"));
}

fn diverged_warning(imported: &Imported, parted: &DivergedSession) -> String {
    let DivergedSession { branch, shared } = parted;
    let id = &imported.conversation;
    let rest = imported.nodes.saturating_sub(*shared) as u64;
    format!(
        "{id} went another way after {}: the file's other {} on the new branch `{branch}`, now the \
         active one; `contexture log {id}` shows both",
        count_with_noun(*shared as u64, "item"),
        if rest == 1 {
            "one is".to_owned()
        } else {
            format!("{rest} are")
        },
    )
}

fn report_document(harvest: &ImportReport) -> Value {
    let imported = harvest.imported.iter().map(|kept| {
        json!(SessionDocument::new(
            kept.format,
            &kept.source,
            &kept.imported
        ))
    });
    let whole = harvest
        .imported_files
        .iter()
        .flat_map(|whole| &whole.conversations);
    let whole = whole.map(|whole| {
        json!({
            "conversation": whole.id.as_str(), "format": conversation_lines::FORMAT_NAME, "items": whole.nodes,
            "new": whole.nodes, "branches": whole.branches, "blobs": whole.blobs,
        })
    });
    let passed_over = harvest.passed_over.iter();
    let passed_over = passed_over.map(|one| json!({ "file": one.file, "why": one.why }));
    let failed = harvest.failed.iter().map(|failure| failure.to_json());
    json!({
        "imported": imported.chain(whole).collect::<Vec<_>>(),
        "values": count_values(harvest).0,
        "skipped": harvest.skipped,
        "failed": failed.collect::<Vec<_>>(),
        "passed_over": passed_over.collect::<Vec<_>>(),
    })
}

/// How many values outside conversations there were, and how many were not there before.
fn count_values(harvest: &ImportReport) -> (u64, u64) {
    let all = harvest
        .imported_files
        .iter()
        .flat_map(|whole| &whole.values);
    all.fold((0, 0), |(values, new), one| {
        (values + one.values, new + one.new)
    })
}

/// How many items a session has, and how many of them are new.
fn describe_items(stored: &StoredSession) -> String {
    match (stored.imported.new_nodes, stored.imported.nodes) {
        (_, 0) if !stored.has_instructions => "nothing but its records".to_owned(),
        (_, 0) => "instructions only".to_owned(),
        // Importing the same file again is usual and no error.
        (0, nodes) => format!("{}, nothing new", count_with_noun(nodes as u64, "item")),
        // A session that went on since the last import.
        (new, nodes) if new < nodes => format!("added {new}, known {}", nodes - new),
        (_, nodes) => count_with_noun(nodes as u64, "item"),
    }
}

/// One branch is usual and not told.
fn describe_branches(count: u64) -> String {
    match count {
        0 | 1 => String::new(),
        many => format!(", {many} branches"),
    }
}

/// How the list is laid out: the conversation, its items, its title.
const COLUMNS: [Column; 3] = [
    Column::id("").with_paint(|id| id.bold().to_string()),
    Column::word("").with_rank(1),
    Column::words("", 12).with_paint(|title| title.dimmed().to_string()),
];

fn import_row(kept: &StoredSession) -> Vec<String> {
    let imported = &kept.imported;
    let count = describe_items(kept);
    let branches = describe_branches(imported.branches as u64);
    vec![
        imported.conversation.to_string(),
        count + &branches,
        imported.title.clone().unwrap_or_default(),
    ]
}

fn import_rows(harvest: &ImportReport) -> Vec<Vec<String>> {
    let files = harvest.imported_files.iter();
    let whole = files.flat_map(|file| &file.conversations).map(|whole| {
        let count = count_with_noun(whole.nodes, "item");
        let count = count + &describe_branches(whole.branches);
        vec![whole.id.to_string(), count]
    });
    whole
        .chain(harvest.imported.iter().map(import_row))
        .collect()
}
