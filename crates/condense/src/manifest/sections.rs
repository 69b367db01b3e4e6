//! The candidate entries of a manifest's text: their lists, the usefulness of each list, and how each is written.
//!
//! Not here: which of them fit ([`crate::manifest::render`]).

use std::collections::BTreeSet;

use contexture_ir::quote_json;

use crate::manifest::data::{CommandEntry, FileEntry, Manifest, ManifestEntry, Speaker};
use contexture_text::fact_words::{FactKind, classify_word};

/// The lists, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    Asked,
    Files,
    Commands,
    Errors,
    Decisions,
    Open,
    Values,
    Identifiers,
    Numbers,
    Paths,
    Urls,
    Notes,
    Links,
}

/// The lists in the order of selection, the most useful first.
pub(crate) const USEFUL: &[(Section, EntryFilter)] = &[
    (Section::Files, EntryFilter::All),
    (Section::Open, EntryFilter::All),
    (Section::Errors, EntryFilter::All),
    (Section::Values, EntryFilter::New),
    (Section::Identifiers, EntryFilter::New),
    (Section::Paths, EntryFilter::New),
    (Section::Numbers, EntryFilter::New),
    (Section::Urls, EntryFilter::New),
    (Section::Asked, EntryFilter::All),
    (Section::Commands, EntryFilter::All),
    (Section::Decisions, EntryFilter::All),
    (Section::Links, EntryFilter::All),
    (Section::Values, EntryFilter::All),
    (Section::Notes, EntryFilter::All),
];

/// Which entries of a list are selected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryFilter {
    /// All entries that are not selected yet.
    All,
    /// Only entries that no selected entry mentions.
    New,
}

/// How the entries of a list are laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryLayout {
    /// One line per entry.
    Lines,
    /// One line per group, which has a name.
    Groups,
    /// One line of words.
    Words,
}

impl Section {
    pub(crate) const fn heading(self) -> &'static str {
        match self {
            Self::Asked => "The user said",
            Self::Files => "Files",
            Self::Commands => "Commands",
            Self::Errors => "Errors",
            Self::Decisions => "Decided",
            Self::Open => "Open",
            Self::Values => "Values",
            Self::Identifiers => "Identifiers",
            Self::Numbers => "Numbers",
            Self::Paths => "Paths mentioned",
            Self::Urls => "URLs",
            Self::Notes => "Other values",
            Self::Links => "Outputs that can be read again",
        }
    }

    pub(crate) const fn layout(self) -> EntryLayout {
        match self {
            Self::Values | Self::Notes => EntryLayout::Groups,
            Self::Identifiers | Self::Numbers | Self::Paths | Self::Urls => EntryLayout::Words,
            _ => EntryLayout::Lines,
        }
    }
}

/// A candidate entry for the text.
pub(crate) struct EntryCandidate {
    pub(crate) section: Section,
    /// Index of its name in [`Manifest::named`]; 0 in lists without names.
    pub(crate) group: usize,
    pub(crate) text: String,
    pub(crate) is_selected: bool,
    /// Whether it can be omitted, because a selected entry mentions it.
    pub(crate) is_mentioned: bool,
}

pub(crate) fn sections_in_order() -> impl Iterator<Item = Section> {
    let sections: BTreeSet<Section> = USEFUL.iter().map(|(section, _)| *section).collect();
    sections.into_iter()
}

pub(crate) fn entry_candidates(
    manifest: &Manifest,
    unnamed: &BTreeSet<usize>,
) -> Vec<EntryCandidate> {
    let mut all = Vec::new();
    let mut add = |section, group, text: String| {
        all.push(EntryCandidate {
            section,
            group,
            text,
            is_selected: false,
            is_mentioned: false,
        });
    };
    manifest
        .asked
        .iter()
        .for_each(|entry| add(Section::Asked, 0, entry_line(entry)));
    manifest
        .files
        .iter()
        .for_each(|file| add(Section::Files, 0, file_line(file)));
    manifest
        .commands
        .iter()
        .for_each(|command| add(Section::Commands, 0, command_line(command)));
    manifest
        .errors
        .iter()
        .for_each(|entry| add(Section::Errors, 0, entry_line(entry)));
    for decision in &manifest.decisions {
        let by = match decision.by {
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
        };
        add(
            Section::Decisions,
            0,
            format!("{by}: {}", entry_line(&decision.statement)),
        );
    }
    manifest
        .open
        .iter()
        .for_each(|entry| add(Section::Open, 0, entry_line(entry)));
    for (group, named) in manifest.named.iter().enumerate() {
        for text in &named.values {
            // Plain words are notes: without their name they mean little.
            match (is_informative(text), unnamed.contains(&group)) {
                (false, _) => add(Section::Notes, group, quote_if_needed(text)),
                (true, false) => add(Section::Values, group, quote_if_needed(text)),
                (true, true) if classify_word(text) == Some(FactKind::Number) => {
                    add(Section::Numbers, 0, quote_if_needed(text))
                }
                (true, true) => add(Section::Identifiers, 0, quote_if_needed(text)),
            }
        }
    }
    for (section, words) in [
        (Section::Identifiers, &manifest.identifiers),
        (Section::Numbers, &manifest.numbers),
        (Section::Paths, &manifest.paths),
        (Section::Urls, &manifest.urls),
    ] {
        words.iter().for_each(|word| add(section, 0, word.clone()));
    }
    for link in &manifest.links {
        add(
            Section::Links,
            0,
            format!("{} {}, {} bytes", link.link, link.tool, link.bytes),
        );
    }
    all
}

fn entry_line(entry: &ManifestEntry) -> String {
    match entry.times {
        0 | 1 => entry.text.clone(),
        times => format!("{} (×{times})", entry.text),
    }
}

fn file_line(file: &FileEntry) -> String {
    let counts = [
        ("read", file.read),
        ("edited", file.written),
        ("removed", file.removed),
    ];
    let done: Vec<String> = counts
        .iter()
        .filter(|(_, times)| *times > 0)
        .map(|(verb, times)| match times {
            1 => (*verb).to_owned(),
            times => format!("{verb} ×{times}"),
        })
        .collect();
    format!("{} ({})", file.path, done.join(", "))
}

fn command_line(command: &CommandEntry) -> String {
    let end = match (command.exit, command.failed) {
        (Some(code), _) => format!(" → exit {code}"),
        (None, true) => " → error".to_owned(),
        (None, false) => String::new(),
    };
    let times = match command.times {
        0 | 1 => String::new(),
        times => format!(" (×{times})"),
    };
    format!("{}{end}{times}", command.command)
}

/// Whether a value is distinctive: it has digits, or is an address.
pub(crate) fn is_informative(text: &str) -> bool {
    text.contains('@') || text.len() > 1 && text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Formats a name or a value as one word, quoted if its end would be ambiguous.
pub(crate) fn quote_if_needed(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || c == '"';
    if text.is_empty() || text.contains(ends) {
        quote_json(text)
    } else {
        text.to_owned()
    }
}
