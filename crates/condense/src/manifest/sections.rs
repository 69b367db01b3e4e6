//! The candidate entries of a manifest's text: their lists, how each is written, and in which order those of a list are
//! chosen.
//!
//! Not here: which of them fit ([`crate::manifest::render`]).

use std::cmp::Reverse;
use std::ops::Range;

use contexture_ir::quote_json;

use crate::manifest::data::{
    ChangeOutcome, ChangingCall, CommandEntry, Fact, FileEntry, Manifest, ManifestEntry,
    NamedValues, SentenceKind,
};
use contexture_text::fact_words::{FactKind, classify_word};
use contexture_text::one_line_title;

/// The lists, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    Said,
    Decisions,
    Changes,
    Open,
    Errors,
    Files,
    Values,
    Identifiers,
    Paths,
    Urls,
    Commands,
    Numbers,
    Links,
    Notes,
}

/// The lists in the order in which they are written, and in which they share what nobody was promised; changes come before
/// the rest of the words there.
pub(crate) const SECTIONS: [Section; 14] = [
    Section::Said,
    Section::Decisions,
    Section::Changes,
    Section::Open,
    Section::Errors,
    Section::Files,
    Section::Values,
    Section::Identifiers,
    Section::Paths,
    Section::Urls,
    Section::Commands,
    Section::Numbers,
    Section::Links,
    Section::Notes,
];

/// What lists may take of the budget before any other takes more than its own, in per cent.
pub(crate) const SHARES: [(&[Section], u64); 5] = [
    (&[Section::Said, Section::Decisions], 40),
    (&[Section::Changes], 25),
    (&[Section::Open, Section::Errors], 10),
    (&[Section::Files], 10),
    (
        &[
            Section::Values,
            Section::Identifiers,
            Section::Paths,
            Section::Urls,
        ],
        15,
    ),
];

/// Maximum length of the argument in the short form of a change, in characters.
const SHORT_ARGUMENT: usize = 48;

/// A group of files: its name, and how often that was done to a file.
type FileGroup = (&'static str, fn(&FileEntry) -> usize);

/// The groups of files. A file is in the first that counts it.
const FILE_GROUPS: [FileGroup; 4] = [
    ("edited", |file| file.written),
    ("removed", |file| file.removed),
    ("edit failed", |file| file.failed),
    // How often is told of changes only.
    READ_FILES,
];

/// The group of files that nothing was done to.
const READ_FILES: FileGroup = ("read", |_| 1);

/// One output gives so many entries before the next one gives any more.
const OF_ONE_ITEM: usize = 4;

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
            Self::Said => "The user said",
            Self::Decisions => "The assistant decided",
            Self::Changes => "Calls that changed something",
            Self::Open => "Open",
            Self::Errors => "Errors",
            Self::Files => "Files",
            Self::Values => "Values",
            Self::Identifiers => "Identifiers",
            Self::Paths => "Paths mentioned",
            Self::Urls => "URLs",
            Self::Commands => "Commands",
            Self::Numbers => "Numbers",
            Self::Links => "Outputs that can be read again",
            Self::Notes => "Other values",
        }
    }

    pub(crate) const fn layout(self) -> EntryLayout {
        match self {
            Self::Files | Self::Values | Self::Numbers | Self::Notes => EntryLayout::Groups,
            Self::Identifiers | Self::Paths | Self::Urls => EntryLayout::Words,
            _ => EntryLayout::Lines,
        }
    }

    /// Whether an entry is left out that another line mentions.
    pub(crate) const fn is_deduplicated(self) -> bool {
        matches!(
            self,
            Self::Values | Self::Identifiers | Self::Numbers | Self::Paths | Self::Urls
        )
    }
}

/// A candidate entry for the text.
pub(crate) struct EntryCandidate {
    pub(crate) section: Section,
    /// Index of its name in [`Candidates::groups`]; 0 in lists without names.
    pub(crate) group: usize,
    pub(crate) text: String,
    /// The same in fewer words, for where not all have room; `None`: there is no shorter form.
    short: Option<String>,
    /// The order in which entries of a list are chosen, the lowest first.
    rank: Rank,
    pub(crate) is_selected: bool,
    /// Whether it can be left out, because a selected entry mentions it.
    pub(crate) is_mentioned: bool,
}

/// The lowest is chosen first: by what it is, then by how many of its item came before, then by how new it is.
type Rank = (usize, usize, Reverse<usize>);

/// All candidates, in the order of the text: those of a list stand side by side.
#[derive(Default)]
pub(crate) struct Candidates {
    pub(crate) entries: Vec<EntryCandidate>,
    /// The names of groups.
    pub(crate) groups: Vec<String>,
}

impl Candidates {
    pub(crate) fn from_manifest(manifest: &Manifest) -> Self {
        let mut all = Self::default();
        for statement in &manifest.user_sentences {
            let (entry, kind) = (&statement.entry, statement.kind);
            let rank = match kind {
                SentenceKind::Holds | SentenceKind::Rule => 0,
                SentenceKind::Passes => 1,
                SentenceKind::Repeats => 2,
            };
            all.add(
                Section::Said,
                0,
                entry_line(entry),
                (rank, 0, Reverse(entry.index)),
            );
        }
        all.add_lines(Section::Decisions, &manifest.decisions);
        all.add_changes(&manifest.changes);
        all.add_lines(Section::Open, &manifest.open);
        all.add_lines(Section::Errors, &manifest.errors);
        all.add_files(&manifest.files);
        all.add_named(&manifest.named);
        for (section, facts) in [
            (Section::Identifiers, &manifest.identifiers),
            (Section::Paths, &manifest.paths),
            (Section::Urls, &manifest.urls),
        ] {
            let mut taken = OfItem::default();
            for fact in facts {
                all.add(
                    section,
                    0,
                    fact.text.clone(),
                    (0, taken.next(fact.index), Reverse(fact.index)),
                );
            }
        }
        for command in &manifest.commands {
            let rank = (0, 0, Reverse(command.index));
            all.add(Section::Commands, 0, command_line(command), rank);
        }
        all.add_groups(Section::Numbers, &manifest.numbers, &|_| true);
        for link in &manifest.links {
            let text = format!("{} {}, {} bytes", link.link, link.tool, link.bytes);
            all.add(Section::Links, 0, text, (0, 0, Reverse(link.index)));
        }
        // Plain words say little, even with their names.
        all.add_groups(Section::Notes, &manifest.named, &|text| {
            !is_informative(text)
        });
        debug_assert!(
            all.entries.is_sorted_by_key(|one| one.section),
            "the lists are in order"
        );
        all
    }

    fn add(&mut self, section: Section, group: usize, text: String, rank: Rank) {
        self.entries.push(EntryCandidate {
            section,
            group,
            text,
            short: None,
            rank,
            is_selected: false,
            is_mentioned: false,
        });
    }

    fn add_lines(&mut self, section: Section, entries: &[ManifestEntry]) {
        let mut taken = OfItem::default();
        for entry in entries {
            let rank = (0, taken.next(entry.index), Reverse(entry.index));
            self.add(section, 0, entry_line(entry), rank);
        }
    }

    /// The newest change comes first, then those that failed, then the others.
    fn add_changes(&mut self, changes: &[ChangingCall]) {
        let newest = changes.iter().map(|change| change.index).max();
        for change in changes {
            let rank = match change.outcome {
                _ if Some(change.index) == newest => 0,
                ChangeOutcome::Failed | ChangeOutcome::Unanswered => 1,
                ChangeOutcome::Ok => 2,
            };
            self.add(
                Section::Changes,
                0,
                change_line(change),
                (rank, 0, Reverse(change.index)),
            );
            if let Some(entry) = self.entries.last_mut() {
                entry.short = Some(short_change_line(change));
            }
        }
    }

    /// Changed files come before those that were read, recent ones before old ones.
    fn add_files(&mut self, files: &[FileEntry]) {
        for (at, (name, count_times)) in FILE_GROUPS.into_iter().enumerate() {
            let group = self.add_group(name);
            let mine = files.iter().filter(|file| file_group(file) == Some(at));
            for file in mine {
                let times = count_times(file);
                let times = if times > 1 {
                    format!(" ×{times}")
                } else {
                    String::new()
                };
                let text = format!("{}{times}", quote_if_needed(&file.path));
                let order = (usize::from(name == READ_FILES.0), 0, Reverse(file.index));
                self.add(Section::Files, group, text, order);
            }
        }
    }

    /// Values that are identifiers come before numbers.
    fn add_named(&mut self, named: &[NamedValues]) {
        self.add_groups(Section::Values, named, &is_informative);
    }

    fn add_groups(
        &mut self,
        section: Section,
        named: &[NamedValues],
        is_wanted: &dyn Fn(&str) -> bool,
    ) {
        let mut taken = OfItem::default();
        for values in named {
            let wanted = || values.values.iter().filter(|fact| is_wanted(&fact.text));
            if wanted().next().is_none() {
                continue;
            }
            let group = self.add_group(&quote_if_needed(&values.name));
            for Fact { index, text } in wanted() {
                let is_number = classify_word(text) == Some(FactKind::Number);
                let rank = (usize::from(is_number), taken.next(*index), Reverse(*index));
                self.add(section, group, quote_if_needed(text), rank);
            }
        }
    }

    fn add_group(&mut self, name: &str) -> usize {
        self.groups.push(name.to_owned());
        self.groups.len() - 1
    }

    /// The same candidates, none of them chosen.
    pub(crate) fn unselected(mut self) -> Self {
        for one in &mut self.entries {
            one.is_selected = false;
            one.is_mentioned = false;
        }
        self
    }

    /// Writes the entries of a list in fewer words.
    pub(crate) fn shorten(&mut self, section: Section) {
        let range = self.range_of(section);
        for one in self.entries.get_mut(range).unwrap_or_default() {
            if let Some(short) = one.short.take() {
                one.text = short;
            }
        }
    }

    /// Where the entries of a list stand.
    fn range_of(&self, section: Section) -> Range<usize> {
        let first = self.entries.partition_point(|one| one.section < section);
        let end = self.entries.partition_point(|one| one.section <= section);
        first..end
    }

    /// The entries of a list.
    pub(crate) fn of_section(&self, section: Section) -> &[EntryCandidate] {
        self.entries.get(self.range_of(section)).unwrap_or_default()
    }

    /// The entries of a list that are not chosen yet, in the order in which they are.
    pub(crate) fn open_entries(&self, section: Section) -> Vec<usize> {
        let first = self.range_of(section).start;
        let entries = (first..).zip(self.of_section(section));
        let open = entries.filter(|(_, one)| !one.is_selected && !one.is_mentioned);
        let mut order: Vec<(Rank, usize)> = open.map(|(at, one)| (one.rank, at)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, at)| at).collect()
    }
}

/// How many entries an item gave so far, in steps of [`OF_ONE_ITEM`]: one chatty output must not crowd out the others.
#[derive(Default)]
struct OfItem(std::collections::BTreeMap<usize, usize>);

impl OfItem {
    fn next(&mut self, index: usize) -> usize {
        let taken = self.0.entry(index).or_default();
        *taken += 1;
        (*taken - 1) / OF_ONE_ITEM
    }
}

/// The index of the group in [`FILE_GROUPS`] that a file is listed in.
fn file_group(file: &FileEntry) -> Option<usize> {
    FILE_GROUPS
        .iter()
        .position(|(_, count_times)| count_times(file) > 0)
}

/// Files that have no room, as one line.
pub(crate) fn more_files_line(files: &[FileEntry], named: usize) -> Option<String> {
    let more = files.len().checked_sub(named).filter(|more| *more > 0)?;
    Some(format!("{more} more"))
}

fn entry_line(entry: &ManifestEntry) -> String {
    match entry.times {
        0 | 1 => entry.text.clone(),
        times => format!("{} (×{times})", entry.text),
    }
}

fn change_line(change: &ChangingCall) -> String {
    change_line_with(change, &change.arguments, change.reason.as_deref())
}

/// A change by its most telling argument alone.
fn short_change_line(change: &ChangingCall) -> String {
    // A command is its own argument; of others an identifier stands without its name.
    let mut arguments = change.arguments.split(", ");
    let telling = arguments.clone().find(|one| !one.contains('='));
    let argument = telling.or_else(|| arguments.next()).unwrap_or_default();
    let argument = one_line_title(argument, SHORT_ARGUMENT);
    let reason = change.reason.as_deref();
    let reason = reason.map(|reason| one_line_title(reason, SHORT_ARGUMENT));
    change_line_with(change, &argument, reason.as_deref())
}

fn change_line_with(change: &ChangingCall, arguments: &str, reason: Option<&str>) -> String {
    let returned = change.returned.join(" ");
    let outcome = match (change.outcome, reason) {
        (ChangeOutcome::Ok, _) if returned.is_empty() => "ok".to_owned(),
        (ChangeOutcome::Ok, _) => format!("{returned} ok"),
        (ChangeOutcome::Failed, Some(reason)) => format!("failed: {reason}"),
        (ChangeOutcome::Failed, None) => "failed".to_owned(),
        (ChangeOutcome::Unanswered, _) => "no output".to_owned(),
    };
    let times = match change.times {
        0 | 1 => String::new(),
        times => format!(" (×{times})"),
    };
    format!("{}({arguments}) → {outcome}{times}", change.tool)
}

/// How many changes have no line of their own, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChangeCount {
    pub(crate) failed: usize,
    pub(crate) unanswered: usize,
    pub(crate) all: usize,
}

impl ChangeCount {
    pub(crate) fn add(&mut self, change: &ChangingCall) {
        self.all += change.times;
        match change.outcome {
            ChangeOutcome::Ok => {}
            ChangeOutcome::Failed => self.failed += change.times,
            ChangeOutcome::Unanswered => self.unanswered += change.times,
        }
    }

    pub(crate) const fn merge(&mut self, other: Self) {
        self.failed += other.failed;
        self.unanswered += other.unanswered;
        self.all += other.all;
    }

    /// The line that stands for them: `book_reservation ×48: 41 ok, 7 failed`.
    pub(crate) fn line(self, tool: &str) -> String {
        let ok = self.all - self.failed - self.unanswered;
        let counts = [
            (ok, "ok"),
            (self.failed, "failed"),
            (self.unanswered, "without output"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        format!("{tool} ×{}: {}", self.all, counts.join(", "))
    }
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

/// Whether a value is distinctive: one word with digits, or an address.
pub(crate) fn is_informative(text: &str) -> bool {
    let has_digits = text.len() > 1 && text.bytes().any(|byte| byte.is_ascii_digit());
    (text.contains('@') || has_digits) && !text.contains(char::is_whitespace)
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
