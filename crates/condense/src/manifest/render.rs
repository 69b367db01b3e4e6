//! A manifest as text of bounded size.
//!
//! Files are always included. The rest is chosen in a fixed order of usefulness, in most lists the newest entries
//! first, and the last line says how many entries are left out. Every entry is one line or one word of a line, so none
//! can pass for a heading.

use std::collections::BTreeSet;
use std::fmt;

use contexture_tokens::TokenCounter;

use crate::manifest::data::Manifest;
use crate::manifest::sections::{
    EntryCandidate, EntryFilter, EntryLayout, Section, USEFUL, entry_candidates, is_informative,
    quote_if_needed, sections_in_order,
};
use contexture_text::fact_words::{extract_facts, normalize_value};

/// Maximum size of the text. Files are included even if they alone exceed it.
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
    /// Number of entries that were left out.
    pub omitted: usize,
}

impl Manifest {
    /// Renders the manifest within a budget.
    #[must_use]
    pub fn render(&self, allowance: TextBudget<'_>) -> ManifestText {
        // Token counts of the pieces do not add up exactly to that of the whole text, so an excess is reserved and the
        // selection repeated.
        let mut spare = 0;
        for _ in 0..ATTEMPTS {
            let choice = ManifestSelection::select_entries(self, allowance, spare);
            let text = choice.selected_text();
            let over = choice.budget_excess(&text.text);
            if over == 0 {
                return text;
            }
            // Only the excess is reserved, so the next attempt stays close to the budget.
            spare += over;
        }
        ManifestSelection::select_entries(self, allowance, u64::MAX).selected_text()
    }
}

impl fmt::Display for Manifest {
    /// The whole manifest as text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(TextBudget::Unlimited).text)
    }
}

/// Maximum number of selections; after that, files only.
const ATTEMPTS: usize = 4;

/// Entries selected for the text.
struct ManifestSelection<'a> {
    manifest: &'a Manifest,
    budget: TextBudget<'a>,
    remaining: u64,
    candidates: Vec<EntryCandidate>,
    /// Lists and groups whose headings are included in the cost.
    written_headings: BTreeSet<(Section, Option<usize>)>,
    /// Words and values selected.
    mentioned: BTreeSet<String>,
    /// Words in the selected lines.
    in_lines: BTreeSet<String>,
}

impl<'a> ManifestSelection<'a> {
    /// Selects entries, leaving `spare` of the budget unused.
    fn select_entries(manifest: &'a Manifest, allowance: TextBudget<'a>, spare: u64) -> Self {
        let mut choice = Self {
            manifest,
            budget: allowance,
            remaining: match allowance {
                TextBudget::Unlimited => u64::MAX,
                TextBudget::Bytes(most) | TextBudget::Tokens(most, _) => most.saturating_sub(spare),
            },
            candidates: Vec::new(),
            written_headings: BTreeSet::new(),
            mentioned: BTreeSet::new(),
            in_lines: BTreeSet::new(),
        };
        let frame = choice.text_cost(&format!(
            "{}\n{}\n",
            choice.title_line(),
            omission_line(999)
        ));
        choice.remaining = choice.remaining.saturating_sub(frame);
        choice.candidates = entry_candidates(manifest, &choice.groups_without_names());
        for (section, which) in USEFUL {
            choice.select_section(*section, *which);
        }
        choice
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

    /// Returns the groups whose names are left out because the values would not fit otherwise, those with the fewest
    /// values first. A value without its name can still be searched for, one that is left out cannot.
    fn groups_without_names(&self) -> BTreeSet<usize> {
        let mut unnamed = BTreeSet::new();
        if matches!(self.budget, TextBudget::Unlimited) {
            return unnamed;
        }
        let mut names = Vec::new();
        // Estimated before anything is selected: names are dropped only as far as the values would not fit otherwise.
        let mut needed = 0;
        for (group, named) in self.manifest.named.iter().enumerate() {
            let values = named.values.iter().filter(|text| is_informative(text));
            let (count, cost) = values.fold((0_usize, 0), |(count, cost), text| {
                (
                    count + 1,
                    cost + self.text_cost(&format!(" {}", quote_if_needed(text))),
                )
            });
            if count > 0 {
                let name = self.text_cost(&format!(" {}:\n", quote_if_needed(&named.name)));
                needed += cost + name;
                names.push((count, std::cmp::Reverse(group), name));
            }
        }
        for list in [
            &self.manifest.identifiers,
            &self.manifest.paths,
            &self.manifest.numbers,
        ] {
            needed += list
                .iter()
                .map(|word| self.text_cost(&format!(" {word}")))
                .sum::<u64>();
        }
        // Fewest values first: such a name costs the most per value.
        names.sort_unstable();
        for (_, group, name) in names {
            if needed <= self.remaining {
                break;
            }
            needed = needed.saturating_sub(name);
            unnamed.insert(group.0);
        }
        unnamed
    }

    fn title_line(&self) -> String {
        format!("Earlier here ({} items):", self.manifest.items)
    }

    fn text_cost(&self, text: &str) -> u64 {
        match self.budget {
            TextBudget::Unlimited => 0,
            TextBudget::Bytes(_) => text.len() as u64,
            TextBudget::Tokens(_, counter) => counter.count(text).count,
        }
    }

    /// Selects the entries of a list that fit.
    fn select_section(&mut self, section: Section, which: EntryFilter) {
        let mut order = self.unselected_entries(section);
        if section != Section::Files {
            // Newest first: what happened last matters most for continuing. Files stay in the order of their first use.
            order.reverse();
        }
        if section == Section::Asked {
            // The first message usually states the goal, so it comes first.
            let one = order.len().min(1);
            order.rotate_right(one);
        }
        for at in order {
            let Some(one) = self.candidates.get(at) else {
                continue;
            };
            let same = normalize_value(&one.text);
            // One mention is enough: the room goes to what is new.
            let said = self.mentioned.contains(same) || self.in_lines.contains(same);
            if said && which == EntryFilter::New {
                let unnamed = section.layout() == EntryLayout::Words;
                if let Some(one) = self.candidates.get_mut(at) {
                    one.is_mentioned = unnamed;
                }
                continue;
            }
            let cost = self.entry_cost(one);
            // Smaller entries of the same list may still fit.
            if cost > self.remaining && section != Section::Files {
                continue;
            }
            self.remaining = self.remaining.saturating_sub(cost);
            self.select_entry(at);
        }
    }

    /// Selects an entry, and records the words it mentions.
    fn select_entry(&mut self, at: usize) {
        let Some(one) = self.candidates.get_mut(at) else {
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

    /// Returns the entries of a list that are not selected yet, in their order.
    fn unselected_entries(&self, section: Section) -> Vec<usize> {
        let open =
            |one: &EntryCandidate| one.section == section && !one.is_selected && !one.is_mentioned;
        let entries = self.candidates.iter().enumerate();
        entries
            .filter(|(_, one)| open(one))
            .map(|(at, _)| at)
            .collect()
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
            cost += self.text_cost(&format!(" {}:\n", self.group_name(section, one.group)));
        }
        if !self.written_headings.contains(&(section, None)) {
            cost += self.text_cost(&format!("{}:\n", section.heading()));
        }
        cost
    }

    fn group_name(&self, section: Section, group: usize) -> String {
        match self.manifest.named.get(group) {
            Some(named) if section.layout() == EntryLayout::Groups => quote_if_needed(&named.name),
            _ => String::new(),
        }
    }

    /// Writes a list and its heading; nothing if no entry was selected.
    fn push_section_lines(&self, section: Section, lines: &mut Vec<String>) {
        // A word in a line that was selected after it does not need to be listed.
        let listed = |one: &&EntryCandidate| {
            section.layout() != EntryLayout::Words
                || !self.in_lines.contains(normalize_value(&one.text))
        };
        let mine = |one: &&EntryCandidate| one.section == section && one.is_selected;
        let taken: Vec<&EntryCandidate> =
            self.candidates.iter().filter(mine).filter(listed).collect();
        if taken.is_empty() {
            return;
        }
        let heading = format!("{}:", section.heading());
        match section.layout() {
            EntryLayout::Words => lines.push(format!("{heading} {}", join_entries(&taken))),
            EntryLayout::Lines => {
                lines.push(heading);
                lines.extend(taken.iter().map(|one| format!(" {}", one.text)));
            }
            EntryLayout::Groups => {
                lines.push(heading);
                for group in taken.chunk_by(|a, b| a.group == b.group) {
                    let at = group.first().map_or(0, |one| one.group);
                    let name = self.group_name(section, at);
                    lines.push(format!(" {name}: {}", join_entries(group)));
                }
            }
        }
    }

    fn selected_text(&self) -> ManifestText {
        let mut lines = vec![self.title_line()];
        // Written in a fixed order, independent of the order of selection, so that readers find each list in the same
        // place.
        for section in sections_in_order() {
            self.push_section_lines(section, &mut lines);
        }
        let omitted = self
            .candidates
            .iter()
            .filter(|one| !one.is_selected && !one.is_mentioned)
            .count();
        if omitted > 0 {
            lines.push(omission_line(omitted));
        }
        ManifestText {
            text: lines.join("\n"),
            omitted,
        }
    }
}

fn join_entries(entries: &[&EntryCandidate]) -> String {
    let texts: Vec<&str> = entries.iter().map(|one| one.text.as_str()).collect();
    texts.join(" ")
}

fn omission_line(entries: usize) -> String {
    format!("Left out: {entries} entries.")
}

#[cfg(test)]
mod tests {
    use contexture_ir::{FunctionCall, FunctionCallOutput, Item, Message, Output, Role};

    use super::*;
    use crate::manifest::data::CoveredItem;

    fn manifest(items: &[Item]) -> Manifest {
        let covered: Vec<CoveredItem<'_>> = items
            .iter()
            .enumerate()
            .map(|(index, item)| CoveredItem {
                index,
                item,
                hash: None,
            })
            .collect();
        Manifest::from_items(&covered)
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
Files:
 src/lib.rs (read)
 old.txt (removed)
Commands:
 rm old.txt; make test → exit 3
Errors:
 error: no such order #W77
Decided:
 assistant: I'll refund it.
Values:
 order_id: W8342
 price: 523
 paid: 2024-05-25
URLs: https://a.example/r/1";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_least_useful_goes_first_and_files_never() {
        let manifest = manifest(&session());
        let whole = manifest.to_string();
        let mut omitted = 0;
        for most in (0..=whole.len() as u64 + 40).rev() {
            let told = manifest.render(TextBudget::Bytes(most));
            assert!(told.text.contains(" old.txt (removed)"), "{most}");
            assert!(told.omitted >= omitted, "{most}");
            let files_alone = told.text.lines().count() <= 5;
            assert!(
                told.text.len() as u64 <= most || files_alone,
                "{most}: {}",
                told.text
            );
            omitted = told.omitted;
        }
        let little = manifest.render(TextBudget::Bytes(240)).text;
        assert!(
            little.contains("#W77") && !little.contains("I'll refund"),
            "{little}"
        );
        assert!(little.ends_with(" entries."), "{little}");
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
            headings.iter().all(
                |line| ["Earlier here (3 items):", "The user said:", "Values:"].contains(line)
                    || line.starts_with("Paths mentioned: ")
            ),
            "{text}"
        );
    }
}
