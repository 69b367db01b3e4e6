//! A manifest as text of bounded size.
//!
//! Files always stand in it. What else fits is taken in a fixed order of usefulness, the newest entries of
//! a list first, and the last line says how many are left out. Every entry is one line or one
//! word of a line, so none can pass for a heading.

use std::collections::BTreeSet;
use std::fmt;

use contexture_tokens::TokenCounter;

use super::entries::{
    Candidate, Section, Shape, USEFUL, Which, candidates, in_order, is_telling, value,
};
use super::manifest::Manifest;
use super::words::{essence, words};

/// How large the text may be. Files stand in it even if they alone are larger.
#[derive(Clone, Copy, Debug)]
pub enum Allowance<'a> {
    /// As large as it is.
    Unlimited,
    /// So many bytes.
    Bytes(u64),
    /// So many tokens.
    Tokens(u64, &'a dyn TokenCounter),
}

/// A manifest as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestText {
    /// The text, lines without an end.
    pub text: String,
    /// How many entries are left out.
    pub omitted: usize,
}

impl Manifest {
    /// The manifest as a text that fits the allowance.
    #[must_use]
    pub fn render(&self, allowance: Allowance<'_>) -> ManifestText {
        // What pieces weigh alone is not quite what they weigh together: what is too much is taken off.
        let mut spare = 0;
        for _ in 0..ATTEMPTS {
            let choice = Choice::made(self, allowance, spare);
            let text = choice.text();
            let over = choice.over(&text.text);
            if over == 0 {
                return text;
            }
            spare += over;
        }
        Choice::made(self, allowance, u64::MAX).text()
    }
}

impl fmt::Display for Manifest {
    /// The whole manifest as text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Allowance::Unlimited).text)
    }
}

/// How often a text that is too large is made anew.
const ATTEMPTS: usize = 4;

/// What of a manifest is taken.
struct Choice<'a> {
    manifest: &'a Manifest,
    allowance: Allowance<'a>,
    left: u64,
    candidates: Vec<Candidate>,
    /// The lists and the groups whose names are paid for.
    opened: BTreeSet<(Section, Option<usize>)>,
    /// The words and values taken.
    said: BTreeSet<String>,
    /// The words of the lines taken.
    in_lines: BTreeSet<String>,
}

impl<'a> Choice<'a> {
    /// What is taken if so much of the allowance is left alone.
    fn made(manifest: &'a Manifest, allowance: Allowance<'a>, spare: u64) -> Self {
        let mut choice = Self {
            manifest,
            allowance,
            left: match allowance {
                Allowance::Unlimited => u64::MAX,
                Allowance::Bytes(most) | Allowance::Tokens(most, _) => most.saturating_sub(spare),
            },
            candidates: Vec::new(),
            opened: BTreeSet::new(),
            said: BTreeSet::new(),
            in_lines: BTreeSet::new(),
        };
        let frame = choice.weigh(&format!("{}\n{}\n", choice.title(), left_out(999)));
        choice.left = choice.left.saturating_sub(frame);
        choice.candidates = candidates(manifest, &choice.unnamed());
        for (section, which) in USEFUL {
            choice.take(*section, *which);
        }
        choice
    }

    /// How much a text is above the allowance.
    fn over(&self, text: &str) -> u64 {
        match self.allowance {
            Allowance::Unlimited => 0,
            Allowance::Bytes(most) | Allowance::Tokens(most, _) => {
                self.weigh(text).saturating_sub(most)
            }
        }
    }

    /// The names that the values have to do without, because with them not all would fit: those of the
    /// fewest values first. A value without a name can still be searched for, one left out cannot.
    fn unnamed(&self) -> BTreeSet<usize> {
        let mut unnamed = BTreeSet::new();
        if matches!(self.allowance, Allowance::Unlimited) {
            return unnamed;
        }
        let mut names = Vec::new();
        let mut needed = 0;
        for (group, named) in self.manifest.named.iter().enumerate() {
            let values = named.values.iter().filter(|text| is_telling(text));
            let (count, cost) = values.fold((0_usize, 0), |(count, cost), text| {
                (count + 1, cost + self.weigh(&format!(" {}", value(text))))
            });
            if count > 0 {
                let name = self.weigh(&format!(" {}:\n", value(&named.name)));
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
                .map(|word| self.weigh(&format!(" {word}")))
                .sum::<u64>();
        }
        names.sort_unstable();
        for (_, group, name) in names {
            if needed <= self.left {
                break;
            }
            needed = needed.saturating_sub(name);
            unnamed.insert(group.0);
        }
        unnamed
    }

    fn title(&self) -> String {
        format!("Earlier here ({} items):", self.manifest.items)
    }

    fn weigh(&self, text: &str) -> u64 {
        match self.allowance {
            Allowance::Unlimited => 0,
            Allowance::Bytes(_) => text.len() as u64,
            Allowance::Tokens(_, counter) => counter.count(text).count,
        }
    }

    /// Takes of a list what fits.
    fn take(&mut self, section: Section, which: Which) {
        let mut order = self.order(section);
        if section != Section::Files {
            order.reverse();
        }
        if section == Section::Asked {
            // The first says what it is all about.
            let one = order.len().min(1);
            order.rotate_right(one);
        }
        for at in order {
            let Some(one) = self.candidates.get(at) else {
                continue;
            };
            let same = essence(&one.text);
            let said = self.said.contains(same) || self.in_lines.contains(same);
            if said && which == Which::New {
                let unnamed = section.shape() == Shape::Words;
                if let Some(one) = self.candidates.get_mut(at) {
                    one.said = unnamed;
                }
                continue;
            }
            let cost = self.cost(one);
            if cost > self.left && section != Section::Files {
                continue;
            }
            self.left = self.left.saturating_sub(cost);
            self.opened
                .extend([(section, None), (section, Some(one.group))]);
            match section.shape() {
                Shape::Lines => {
                    let words = words(&one.text).map(|(_, word)| essence(word).to_owned());
                    self.in_lines.extend(words);
                }
                Shape::Groups | Shape::Words => {
                    self.said.insert(essence(&one.text).to_owned());
                }
            }
            if let Some(one) = self.candidates.get_mut(at) {
                one.taken = true;
            }
        }
    }

    /// The entries of a list that are not taken yet, in their order.
    fn order(&self, section: Section) -> Vec<usize> {
        let open = |one: &Candidate| one.section == section && !one.taken && !one.said;
        let entries = self.candidates.iter().enumerate();
        entries
            .filter(|(_, one)| open(one))
            .map(|(at, _)| at)
            .collect()
    }

    /// What an entry adds to the text: itself, and the names it stands under if it is their first.
    fn cost(&self, one: &Candidate) -> u64 {
        let section = one.section;
        let mut cost = match section.shape() {
            Shape::Lines => self.weigh(&format!(" {}\n", one.text)),
            Shape::Groups | Shape::Words => self.weigh(&format!(" {}", one.text)),
        };
        if section.shape() == Shape::Groups && !self.opened.contains(&(section, Some(one.group))) {
            cost += self.weigh(&format!(" {}:\n", self.group_name(section, one.group)));
        }
        if !self.opened.contains(&(section, None)) {
            cost += self.weigh(&format!("{}:\n", section.heading()));
        }
        cost
    }

    fn group_name(&self, section: Section, group: usize) -> String {
        match self.manifest.named.get(group) {
            Some(named) if section.shape() == Shape::Groups => value(&named.name),
            _ => String::new(),
        }
    }

    fn text(&self) -> ManifestText {
        let mut lines = vec![self.title()];
        for section in in_order() {
            // A word that a line says, taken after it, needs no list.
            let listed = |one: &&Candidate| {
                section.shape() != Shape::Words || !self.in_lines.contains(essence(&one.text))
            };
            let mine = |one: &&Candidate| one.section == section && one.taken;
            let taken: Vec<&Candidate> =
                self.candidates.iter().filter(mine).filter(listed).collect();
            if taken.is_empty() {
                continue;
            }
            let heading = format!("{}:", section.heading());
            let joined = |some: &[&Candidate]| {
                let texts: Vec<&str> = some.iter().map(|one| one.text.as_str()).collect();
                texts.join(" ")
            };
            match section.shape() {
                Shape::Words => lines.push(format!("{heading} {}", joined(&taken))),
                Shape::Lines => {
                    lines.push(heading);
                    lines.extend(taken.iter().map(|one| format!(" {}", one.text)));
                }
                Shape::Groups => {
                    lines.push(heading);
                    for group in taken.chunk_by(|a, b| a.group == b.group) {
                        let at = group.first().map_or(0, |one| one.group);
                        let name = self.group_name(section, at);
                        lines.push(format!(" {name}: {}", joined(group)));
                    }
                }
            }
        }
        let omitted = self
            .candidates
            .iter()
            .filter(|one| !one.taken && !one.said)
            .count();
        if omitted > 0 {
            lines.push(left_out(omitted));
        }
        ManifestText {
            text: lines.join("\n"),
            omitted,
        }
    }
}

fn left_out(entries: usize) -> String {
    format!("Left out: {entries} entries.")
}

#[cfg(test)]
mod tests {
    use contexture_ir::{FunctionCall, FunctionCallOutput, Item, Message, Output, Role};

    use super::*;
    use crate::compaction::manifest::Covered;

    fn manifest(items: &[Item]) -> Manifest {
        let covered: Vec<Covered<'_>> = items
            .iter()
            .enumerate()
            .map(|(index, item)| Covered {
                index,
                item,
                hash: None,
            })
            .collect();
        Manifest::of(&covered)
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
            let told = manifest.render(Allowance::Bytes(most));
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
        let little = manifest.render(Allowance::Bytes(240)).text;
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
