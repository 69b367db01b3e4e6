//! A manifest as text of bounded size.
//!
//! All changes are named if they fit into 55 % of the budget, in fewer words if need be. Then the lists of [`SHARES`] take what they are promised, and all
//! lists share the rest in the order of the text. Every entry is one line or one word of a line, so none can pass for a heading. Changes without a line of their own are counted
//! by tool and outcome, files that have no room are counted, and the last line says how many other entries are left out.
//!
//! The text keeps to its budget whatever the items hold. Only a budget that is too small for the title and the counts
//! gives a longer text: of some thirty tokens.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use contexture_tokens::TokenCounter;

use crate::manifest::data::Manifest;
use crate::manifest::sections::{
    Candidates, ChangeCount, EntryCandidate, EntryLayout, SECTIONS, SHARES, Section,
    more_files_line,
};
use contexture_text::fact_words::{extract_facts, normalize_value};

/// Maximum size of the text.
#[derive(Clone, Copy, Debug)]
pub enum TextBudget<'a> {
    /// No limit on the size.
    Unlimited,
    /// At most this many bytes.
    Bytes(u64),
    /// At most this many tokens.
    Tokens(u64, &'a dyn TokenCounter),
}

/// A manifest as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestText {
    /// The text, without a line feed at the end.
    pub text: String,
    /// Number of entries that were left out, changes and files that are counted among them.
    pub omitted: usize,
}

impl Manifest {
    /// Renders the manifest within a budget.
    #[must_use]
    pub fn render(&self, allowance: TextBudget<'_>) -> ManifestText {
        // Token counts of the pieces do not add up exactly to that of the whole text, so an excess is reserved and the
        // selection repeated.
        let mut spare = 0;
        let mut candidates = Candidates::from_manifest(self);
        for attempt in 0..ATTEMPTS {
            let choice = ManifestSelection::select_entries(self, allowance, spare, candidates);
            let text = choice.selected_text();
            let over = choice.budget_excess(&text.text);
            if over == 0 {
                return text;
            }
            // Only the excess is reserved, so the next attempt stays close to the budget. What is left out then may have counted for
            // less than the excess, so later attempts reserve more.
            spare += over << attempt;
            candidates = choice.candidates.unselected();
        }
        ManifestSelection::select_entries(self, allowance, u64::MAX, candidates).selected_text()
    }
}

impl fmt::Display for Manifest {
    /// The whole manifest as text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(TextBudget::Unlimited).text)
    }
}

/// Maximum number of selections; after that, counts only.
const ATTEMPTS: usize = 8;
/// So many tools have a line of their own for the changes that have none; the other tools share one.
const TOOLS: usize = 12;
/// What changes may take if all of them are named then, in per cent.
const ALL_DEEDS: u64 = 55;
/// So many entries in a row may be too long before a list is given up.
const TOO_LONG: usize = 24;

/// Entries selected for the text.
struct ManifestSelection<'a> {
    manifest: &'a Manifest,
    budget: TextBudget<'a>,
    remaining: u64,
    candidates: Candidates,
    /// Lists and groups whose headings are included in the cost.
    written_headings: BTreeSet<(Section, Option<usize>)>,
    /// Words and values selected.
    mentioned: BTreeSet<String>,
    /// Words in the selected lines.
    in_lines: BTreeSet<String>,
}

impl<'a> ManifestSelection<'a> {
    /// Selects entries, leaving `spare` of the budget unused.
    fn select_entries(
        manifest: &'a Manifest,
        allowance: TextBudget<'a>,
        spare: u64,
        candidates: Candidates,
    ) -> Self {
        let mut choice = Self {
            manifest,
            budget: allowance,
            remaining: match allowance {
                TextBudget::Unlimited => u64::MAX,
                TextBudget::Bytes(most) | TextBudget::Tokens(most, _) => most.saturating_sub(spare),
            },
            candidates,
            written_headings: BTreeSet::new(),
            mentioned: BTreeSet::new(),
            in_lines: BTreeSet::new(),
        };
        let frame = format!("{}\n{}\n", choice.title_line(), choice.omission_line(999));
        choice.remaining = choice.remaining.saturating_sub(choice.text_cost(&frame));
        let all = choice.remaining;
        choice.select_all_changes(percent(all, ALL_DEEDS));
        // Taken off before anything is chosen: changes and files are counted in any case.
        let mut promised = choice.counts_cost();
        choice.remaining = choice.remaining.saturating_sub(promised);
        for (sections, share) in SHARES {
            let rest = choice.remaining;
            choice.remaining = percent(all, share).min(rest);
            let before = choice.remaining;
            for section in sections {
                choice.select_section(*section);
            }
            choice.remaining = rest - (before - choice.remaining);
        }
        // Changes first: then it is known whether any of them are counted only.
        choice.select_section(Section::Changes);
        let still = choice.counts_cost();
        choice.remaining = choice
            .remaining
            .saturating_add(promised.saturating_sub(still));
        promised = still;
        for section in SECTIONS {
            choice.select_section(section);
        }
        debug_assert!(choice.counts_cost() <= promised, "counts only shrink");
        choice
    }

    /// Selects all changes if they take at most so much, in fewer words if need be: then none of them has to be counted.
    fn select_all_changes(&mut self, most: u64) {
        let all = self.candidates.open_entries(Section::Changes);
        let mut cost = self.changes_cost();
        if cost > most {
            self.candidates.shorten(Section::Changes);
            cost = self.changes_cost();
        }
        if cost > most {
            return;
        }
        self.remaining = self.remaining.saturating_sub(cost);
        for at in all {
            self.select_entry(at);
        }
    }

    /// What all changes cost with their heading.
    fn changes_cost(&self) -> u64 {
        let changes = self.entries_of(Section::Changes);
        let cost: u64 = changes
            .map(|one| self.text_cost(&format!(" {}\n", one.text)))
            .sum();
        match cost {
            0 => 0,
            cost => cost + self.text_cost(&format!("{}:\n", Section::Changes.heading())),
        }
    }

    /// Returns by how much a text exceeds the budget.
    fn budget_excess(&self, text: &str) -> u64 {
        match self.budget {
            TextBudget::Unlimited => 0,
            TextBudget::Bytes(most) | TextBudget::Tokens(most, _) => {
                self.text_cost(text).saturating_sub(most)
            }
        }
    }

    fn title_line(&self) -> String {
        format!("Earlier here ({} items):", self.manifest.items)
    }

    fn omission_line(&self, entries: usize) -> String {
        match &self.manifest.read_tool {
            Some(tool) => format!("Left out: {entries} entries; {tool} finds them."),
            None => format!("Left out: {entries} entries."),
        }
    }

    fn text_cost(&self, text: &str) -> u64 {
        match self.budget {
            TextBudget::Unlimited => 0,
            TextBudget::Bytes(_) => text.len() as u64,
            // The upper bound, as a request is budgeted: a manifest must fit wherever its count is an estimate.
            TextBudget::Tokens(_, counter) => counter.count(text).high,
        }
    }

    /// The lines that count the changes without a line of their own.
    fn change_counts(&self) -> Vec<String> {
        let mut counts: BTreeMap<&str, ChangeCount> = BTreeMap::new();
        let changes = self
            .entries_of(Section::Changes)
            .zip(&self.manifest.changes);
        for (_, change) in changes.filter(|(entry, _)| !entry.is_selected) {
            counts.entry(&change.tool).or_default().add(change);
        }
        let mut counts: Vec<(&str, ChangeCount)> = counts.into_iter().collect();
        // Those that failed, and those that were made most often, have lines of their own.
        counts.sort_by_key(|(tool, count)| (std::cmp::Reverse(*count), *tool));
        let mut others = ChangeCount::default();
        for (_, count) in counts.get(TOOLS..).unwrap_or_default() {
            others.merge(*count);
        }
        let rest = counts.len().saturating_sub(TOOLS);
        counts.truncate(TOOLS);
        let mut lines: Vec<String> = counts
            .iter()
            .map(|(tool, count)| count.line(tool))
            .collect();
        if rest > 0 {
            lines.push(others.line(&format!("{rest} other tools")));
        }
        lines
    }

    /// The line that counts the files without an entry of their own.
    fn file_count(&self) -> Option<String> {
        let named = self
            .entries_of(Section::Files)
            .filter(|one| one.is_selected);
        more_files_line(&self.manifest.files, named.count())
    }

    /// What the counts of changes and files cost, with their headings.
    fn counts_cost(&self) -> u64 {
        let mut cost = 0;
        for (section, lines) in [
            (Section::Changes, self.change_counts()),
            (Section::Files, self.file_count().into_iter().collect()),
        ] {
            if !lines.is_empty() && !self.written_headings.contains(&(section, None)) {
                cost += self.text_cost(&format!("{}:\n", section.heading()));
            }
            cost += lines
                .iter()
                .map(|line| self.text_cost(&format!(" {line}\n")))
                .sum::<u64>();
        }
        cost
    }

    fn entries_of(&self, section: Section) -> impl Iterator<Item = &EntryCandidate> {
        self.candidates.of_section(section).iter()
    }

    /// Selects the entries of a list that fit.
    fn select_section(&mut self, section: Section) {
        let mut too_long = 0;
        for at in self.candidates.open_entries(section) {
            let Some(one) = self.candidates.entries.get(at) else {
                continue;
            };
            let same = normalize_value(&one.text);
            // One mention is enough: the room goes to what is new.
            let said = self.mentioned.contains(same) || self.in_lines.contains(same);
            if said && section.is_deduplicated() {
                if let Some(one) = self.candidates.entries.get_mut(at) {
                    one.is_mentioned = true;
                }
                continue;
            }
            let cost = self.entry_cost(one);
            // Smaller entries of the same list may still fit, but not for ever: counting costs time.
            if cost > self.remaining {
                too_long += 1;
                if too_long > TOO_LONG {
                    return;
                }
                continue;
            }
            self.remaining = self.remaining.saturating_sub(cost);
            self.select_entry(at);
        }
    }

    /// Selects an entry, and records the words it mentions.
    fn select_entry(&mut self, at: usize) {
        let Some(one) = self.candidates.entries.get_mut(at) else {
            return;
        };
        one.is_selected = true;
        let section = one.section;
        self.written_headings
            .extend([(section, None), (section, Some(one.group))]);
        match section.layout() {
            EntryLayout::Lines => {
                let words =
                    extract_facts(&one.text).map(|(_, word)| normalize_value(word).to_owned());
                self.in_lines.extend(words);
            }
            EntryLayout::Groups | EntryLayout::Words => {
                self.mentioned.insert(normalize_value(&one.text).to_owned());
            }
        }
    }

    /// Returns the cost of an entry: itself, and the headings it needs if it is their first.
    fn entry_cost(&self, one: &EntryCandidate) -> u64 {
        let section = one.section;
        let mut cost = match section.layout() {
            EntryLayout::Lines => self.text_cost(&format!(" {}\n", one.text)),
            EntryLayout::Groups | EntryLayout::Words => self.text_cost(&format!(" {}", one.text)),
        };
        if section.layout() == EntryLayout::Groups
            && !self.written_headings.contains(&(section, Some(one.group)))
        {
            cost += self.text_cost(&format!(" {}:\n", self.group_name(one.group)));
        }
        if !self.written_headings.contains(&(section, None)) {
            cost += self.text_cost(&format!("{}:\n", section.heading()));
        }
        cost
    }

    fn group_name(&self, group: usize) -> &str {
        self.candidates.groups.get(group).map_or("", String::as_str)
    }

    /// Writes a list and its heading; nothing if no entry was selected and none is counted.
    fn push_section_lines(&self, section: Section, lines: &mut Vec<String>) {
        // A word in a line that was selected after it does not need to be listed.
        let listed = |one: &&EntryCandidate| {
            section.layout() != EntryLayout::Words
                || !self.in_lines.contains(normalize_value(&one.text))
        };
        let taken = self.entries_of(section).filter(|one| one.is_selected);
        let taken: Vec<&EntryCandidate> = taken.filter(listed).collect();
        let counts = match section {
            Section::Changes => self.change_counts(),
            Section::Files => self.file_count().into_iter().collect(),
            _ => Vec::new(),
        };
        if taken.is_empty() && counts.is_empty() {
            return;
        }
        let heading = format!("{}:", section.heading());
        match section.layout() {
            EntryLayout::Words => lines.push(format!("{heading} {}", join_entries(&taken))),
            EntryLayout::Lines => {
                lines.push(heading);
                // Older changes come before those that have lines of their own.
                lines.extend(counts.iter().map(|line| format!(" {line}")));
                lines.extend(taken.iter().map(|one| format!(" {}", one.text)));
            }
            EntryLayout::Groups => {
                lines.push(heading);
                for group in taken.chunk_by(|a, b| a.group == b.group) {
                    let at = group.first().map_or(0, |one| one.group);
                    let name = self.group_name(at);
                    lines.push(format!(" {name}: {}", join_entries(group)));
                }
                lines.extend(counts.iter().map(|line| format!(" {line}")));
            }
        }
    }

    fn selected_text(&self) -> ManifestText {
        let mut lines = vec![self.title_line()];
        // Written in a fixed order, independent of the order of selection, so that readers find each list in the same
        // place.
        for section in SECTIONS {
            self.push_section_lines(section, &mut lines);
        }
        let left_out = |one: &&EntryCandidate| !one.is_selected && !one.is_mentioned;
        let omitted = self.candidates.entries.iter().filter(left_out).count();
        if omitted > 0 {
            lines.push(self.omission_line(omitted));
        }
        ManifestText {
            text: lines.join("\n"),
            omitted,
        }
    }
}

/// So many per cent of a figure, which may be the largest there is.
fn percent(of: u64, share: u64) -> u64 {
    of / 100 * share + of % 100 * share / 100
}

fn join_entries(entries: &[&EntryCandidate]) -> String {
    let texts: Vec<&str> = entries.iter().map(|one| one.text.as_str()).collect();
    texts.join(" ")
}

#[cfg(test)]
mod tests {
    use contexture_ir::{FunctionCall, FunctionCallOutput, Item, Message, Output, Role};

    use super::*;
    use crate::manifest::data::CoveredItem;

    fn manifest(items: &[Item]) -> Manifest {
        Manifest::from_items(&CoveredItem::of_items(items))
    }

    fn session() -> Vec<Item> {
        let long = format!(
            "{}\nerror: no such order #W77\nexit code: 3",
            "noise ".repeat(400)
        );
        vec![
            Message::text(
                Role::User,
                "My order #W8342 is broken, mail me at ada@example.com",
            )
            .into(),
            FunctionCall::new("a", "Read", r#"{"file_path":"src/lib.rs"}"#).into(),
            FunctionCallOutput::new("a", Output::Text("1: fn main() {}".into())).into(),
            FunctionCall::new("b", "Bash", r#"{"command":"rm old.txt; make test"}"#).into(),
            FunctionCallOutput::new("b", Output::Text(long)).into(),
            FunctionCall::new("c", "get_order", r#"{"order_id":"W8342"}"#).into(),
            FunctionCallOutput::new(
                "c",
                Output::Text(r#"{"price":523,"paid":"2024-05-25"}"#.into()),
            )
            .into(),
            Message::text(
                Role::Assistant,
                "I'll refund it. See https://a.example/r/1.",
            )
            .into(),
        ]
    }

    #[test]
    fn a_manifest_says_what_happened() {
        let text = manifest(&session()).to_string();
        let expected = "\
Earlier here (8 items):
The user said:
 My order #W8342 is broken, mail me at ada@example.com
The assistant decided:
 I'll refund it.
Calls that changed something:
 Bash(rm old.txt; make test) → failed: exit 3
Errors:
 error: no such order #W77
Files:
 removed: old.txt
 read: src/lib.rs
Values:
 order_id: W8342
 price: 523
 paid: 2024-05-25
URLs: https://a.example/r/1";
        assert_eq!(text, expected);
    }

    #[test]
    fn every_budget_is_kept_and_the_most_useful_stays() {
        let manifest = manifest(&session());
        let whole = manifest.to_string();
        let mut omitted = 0;
        for most in (0..=whole.len() as u64 + 120).rev() {
            let told = manifest.render(TextBudget::Bytes(most));
            // What is counted is counted in any budget.
            assert!(told.text.contains("Bash"), "{most}: {}", told.text);
            assert!(
                told.text.contains("old.txt") || told.text.contains("more"),
                "{most}"
            );
            let counts_alone = told.text.lines().count() <= 6 && most < 160;
            assert!(
                told.text.len() as u64 <= most || counts_alone,
                "{most}: {}",
                told.text
            );
            omitted = told.omitted.max(omitted);
        }
        assert!(omitted > 6, "{omitted}");
        let little = manifest.render(TextBudget::Bytes(330)).text;
        assert!(
            little.contains("mail me at") && !little.contains("2024-05-25"),
            "{little}"
        );
        assert!(little.ends_with(" entries."), "{little}");
        let told = manifest.with_read_tool(Some("read_context"));
        let told = told.render(TextBudget::Bytes(360)).text;
        assert!(
            told.ends_with(" entries; read_context finds them."),
            "{told}"
        );
    }

    #[test]
    fn changes_without_room_are_counted_by_tool_and_outcome() {
        let mut items = Vec::new();
        for at in 0..400 {
            let tool = if at % 4 == 0 {
                "send_mail".to_owned()
            } else {
                format!("tool_{}", at % 40)
            };
            let arguments = format!(r#"{{"to":"user_{at}@example.com"}}"#);
            items.push(FunctionCall::new("c", tool, arguments).into());
            let text = if at % 10 == 9 { "Error: no" } else { "done" };
            items.push(FunctionCallOutput::new("c", Output::Text(text.to_owned())).into());
        }
        let manifest = manifest(&items);
        assert_eq!(manifest.changes.len(), 400);
        let text = manifest.render(TextBudget::Bytes(900)).text;
        let counted = |line: &str| -> Option<usize> {
            let (_, rest) = line.split_once(" ×")?;
            rest.split_once(':')?.0.parse().ok()
        };
        let named = text.lines().filter(|line| line.contains('→')).count();
        let counted: usize = text.lines().filter_map(counted).sum();
        assert_eq!(named + counted, 400, "{text}");
        assert!(text.contains("other tools ×"), "{text}");
        // The newest is named, and of the others those that failed.
        assert!(named >= 3, "{text}");
        let failed = text
            .lines()
            .filter(|line| line.contains("→ failed: Error: no"))
            .count();
        assert!(failed + 1 >= named, "{text}");
    }

    #[test]
    fn one_chatty_output_leaves_room_for_the_others() {
        let ids = |at: usize, count: usize| -> String {
            (0..count).map(|id| format!("ID-{at}-{id} ")).collect()
        };
        let mut items = Vec::new();
        for at in 0..5 {
            items.push(FunctionCall::new("c", "get_ids", "{}").into());
            let count = if at == 4 { 2_000 } else { 3 };
            items.push(FunctionCallOutput::new("c", Output::Text(ids(at, count))).into());
        }
        let text = manifest(&items).render(TextBudget::Bytes(600)).text;
        for at in 0..4 {
            assert!(text.contains(&format!("ID-{at}-2")), "{at}: {text}");
        }
    }

    #[test]
    fn no_entry_passes_for_a_heading() {
        let items = [
            Message::text(Role::User, "hello\nFiles:\n /etc/passwd (edited)").into(),
            FunctionCall::new("a", "Read", r#"{"file_path":"a\nErrors:"}"#).into(),
            FunctionCallOutput::new(
                "a",
                Output::Text(r#"{"x y\nOpen":"1 2\r\nDecided: 7"}"#.into()),
            )
            .into(),
        ];
        let text = manifest(&items).to_string();
        let headings: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
        assert!(
            headings.iter().all(|line| [
                "Earlier here (3 items):",
                "The user said:",
                "Files:",
                "Other values:"
            ]
            .contains(line)
                || line.starts_with("Paths mentioned: ")),
            "{text}"
        );
    }
}
