//! The entries that may stand in a manifest's text: their lists, which of them are the most useful, and how
//! each is written.
//!
//! Not here: which of them fit ([`super::render`]).

use std::collections::BTreeSet;

use contexture_ir::quote;

use super::manifest::{CommandEntry, Entry, FileEntry, Manifest, Speaker};
use super::words::{Kind, kind};

/// The lists, in the order they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section {
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

/// What is taken, the most useful first.
pub(super) const USEFUL: &[(Section, Which)] = &[
    (Section::Files, Which::All),
    (Section::Open, Which::All),
    (Section::Errors, Which::All),
    (Section::Values, Which::New),
    (Section::Identifiers, Which::New),
    (Section::Paths, Which::New),
    (Section::Numbers, Which::New),
    (Section::Urls, Which::New),
    (Section::Asked, Which::All),
    (Section::Commands, Which::All),
    (Section::Decisions, Which::All),
    (Section::Links, Which::All),
    (Section::Values, Which::All),
    (Section::Notes, Which::All),
];

/// Which entries of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// All that are not taken yet, the newest first.
    All,
    /// Those that no entry taken so far says.
    New,
}

/// How the entries of a list stand beside each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A line each.
    Lines,
    /// A line a group, which has a name.
    Groups,
    /// One line of words.
    Words,
}

impl Section {
    pub(super) const fn heading(self) -> &'static str {
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

    pub(super) const fn shape(self) -> Shape {
        match self {
            Self::Values | Self::Notes => Shape::Groups,
            Self::Identifiers | Self::Numbers | Self::Paths | Self::Urls => Shape::Words,
            _ => Shape::Lines,
        }
    }
}

/// One entry that may stand in the text.
pub(super) struct Candidate {
    pub(super) section: Section,
    /// The name it stands under; empty for none.
    pub(super) group: usize,
    pub(super) text: String,
    pub(super) taken: bool,
    /// Whether it needs no place, because a line that was taken says it.
    pub(super) said: bool,
}

pub(super) fn in_order() -> impl Iterator<Item = Section> {
    let sections: BTreeSet<Section> = USEFUL.iter().map(|(section, _)| *section).collect();
    sections.into_iter()
}

pub(super) fn candidates(manifest: &Manifest, unnamed: &BTreeSet<usize>) -> Vec<Candidate> {
    let mut all = Vec::new();
    let mut add = |section, group, text: String| {
        all.push(Candidate {
            section,
            group,
            text,
            taken: false,
            said: false,
        });
    };
    manifest
        .asked
        .iter()
        .for_each(|entry| add(Section::Asked, 0, line(entry)));
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
        .for_each(|entry| add(Section::Errors, 0, line(entry)));
    for decision in &manifest.decisions {
        let by = match decision.by {
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
        };
        add(
            Section::Decisions,
            0,
            format!("{by}: {}", line(&decision.said)),
        );
    }
    manifest
        .open
        .iter()
        .for_each(|entry| add(Section::Open, 0, line(entry)));
    for (group, named) in manifest.named.iter().enumerate() {
        for text in &named.values {
            match (is_telling(text), unnamed.contains(&group)) {
                (false, _) => add(Section::Notes, group, value(text)),
                (true, false) => add(Section::Values, group, value(text)),
                (true, true) if kind(text) == Some(Kind::Number) => {
                    add(Section::Numbers, 0, value(text))
                }
                (true, true) => add(Section::Identifiers, 0, value(text)),
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

fn line(entry: &Entry) -> String {
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

/// Whether a value tells one thing from others: it has digits, or is an address.
pub(super) fn is_telling(text: &str) -> bool {
    text.contains('@') || text.len() > 1 && text.bytes().any(|byte| byte.is_ascii_digit())
}

/// A name or a value: one word, quoted where its end could be mistaken.
pub(super) fn value(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || c == '"';
    if text.is_empty() || text.contains(ends) {
        quote(text)
    } else {
        text.to_owned()
    }
}
