//! Hostile random trees, others in every run.

use std::collections::BTreeSet;

use contexture_ir::{Fragment, FragmentData};
use serde_json::{Number, Value, json};

/// What could end a string, tag, table, bullet, fence or line somewhere.
const TOKENS: [&str; 64] = [
    "a",
    "b",
    "word",
    "two words",
    "Ünïcode",
    "名前",
    "🚀",
    "👩‍👩‍👧",
    "e\u{301}",
    "\u{301}",
    "\u{202e}",
    "\u{feff}",
    "\u{a0}",
    "\u{85}",
    "\u{2028}",
    "\u{2029}",
    "\u{fffe}",
    "\u{ffff}",
    "\0",
    "\u{1}",
    "\u{b}",
    "\u{c}",
    "\u{1b}[31m",
    "\u{7f}",
    "\n",
    "\n\n",
    "\r",
    "\r\n",
    "\t",
    " ",
    "  ",
    "    ",
    "<",
    ">",
    "&",
    "\"",
    "'",
    "]]>",
    "<!--",
    "-->",
    "</a>",
    "<b>",
    "&amp;",
    "`",
    "```",
    "~~~",
    "# ",
    "## x",
    "- ",
    "* ",
    "1. ",
    "> ",
    "|",
    "---",
    "===",
    ":",
    ": ",
    "[x]: y",
    "\\",
    "_x0041_",
    "#",
    "%",
    "true",
    "null",
];

/// Words whole formats read as something other than a text.
const WHOLES: [&str; 28] = [
    "",
    "no",
    "yes",
    "on",
    "~",
    "null",
    "true",
    "1e3",
    "0x1f",
    "010",
    "1_000",
    ".inf",
    "-.inf",
    "NaN",
    "2024-01-01",
    "1:30",
    "-",
    "- a",
    "=",
    "<<",
    "!!str",
    "&a",
    "*a",
    "{}",
    "[]",
    "__proto__",
    "name",
    "---",
];

/// A small generator (xorshift64*), seeded.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from((self.next() >> 33) % limit as u64).unwrap()
    }

    pub(crate) fn text(&mut self) -> String {
        match self.below(100) {
            0..25 => WHOLES[self.below(WHOLES.len())].to_owned(),
            25..99 => (0..=self.below(7))
                .map(|_| TOKENS[self.below(TOKENS.len())])
                .collect(),
            _ => TOKENS[self.below(TOKENS.len())].repeat(self.below(2000)),
        }
    }

    fn number(&mut self) -> Number {
        match self.below(6) {
            0 => Number::from(self.next()),
            1 => Number::from(self.next().cast_signed()),
            2 => Number::from(self.below(1000)),
            3 => [i64::MIN, i64::MAX, -1, 0][self.below(4)].into(),
            4 => Number::from_f64(
                [0.0, -0.0, 1.0, 1e21, 1e-7, 1.5e300, 5e-324, f64::MAX][self.below(8)],
            )
            .unwrap(),
            _ => Number::from_f64(f64::from_bits(self.next())).unwrap_or_else(|| Number::from(7)),
        }
    }

    fn data(&mut self, depth: usize, budget: &mut usize) -> FragmentData {
        *budget = budget.saturating_sub(1);
        let kinds = if depth == 0 || *budget == 0 { 6 } else { 12 };
        match self.below(kinds) {
            0 => FragmentData::Null,
            1 => FragmentData::Bool(self.below(2) == 0),
            2 => FragmentData::Number(self.number()),
            3..6 => FragmentData::Text(self.text()),
            6..8 => (0..self.below(5))
                .map(|_| self.data(depth - 1, budget))
                .collect(),
            8..10 => {
                // Entries a fragment could be mistaken for are told apart on reading, not here.
                let key = |key: String| if key == "name" { "nom".to_owned() } else { key };
                contexture_ir::object(
                    (0..self.below(5)).map(|_| (key(self.text()), self.data(depth - 1, budget))),
                )
            }
            _ => self.fragment(depth - 1, budget).into(),
        }
    }

    fn fragment(&mut self, depth: usize, budget: &mut usize) -> Fragment {
        let name = if self.below(2) == 0 {
            self.text()
        } else {
            "hint".to_owned()
        };
        Fragment::new(name, self.data(depth, budget))
    }

    /// A list of fragments; now and then a deep one.
    pub(crate) fn fragments(&mut self) -> Vec<Fragment> {
        let (depth, mut budget) = if self.below(50) == 0 {
            (60, 90)
        } else {
            (6, 40)
        };
        (0..self.below(4))
            .map(|_| self.fragment(depth, &mut budget))
            .collect()
    }
}

/// The same fragments without anything that is null: what TOML and TOON can hold.
pub(crate) fn without_nulls(fragments: &[Fragment]) -> Vec<Fragment> {
    fragments.iter().filter_map(strip).collect()
}

fn strip(fragment: &Fragment) -> Option<Fragment> {
    Some(Fragment::new(
        fragment.name.clone(),
        strip_data(fragment.data().unwrap())?,
    ))
}

fn strip_data(data: &FragmentData) -> Option<FragmentData> {
    Some(match data {
        FragmentData::Null => return None,
        FragmentData::Array(items) => items.iter().filter_map(strip_data).collect(),
        FragmentData::Object(entries) => contexture_ir::object(
            entries
                .iter()
                .filter_map(|(key, value)| Some((key.as_str(), strip_data(value)?))),
        ),
        FragmentData::Fragment(inner) => strip(inner)?.into(),
        leaf => leaf.clone(),
    })
}

/// The documented form of a list, written down a second time: a fragment is an object of one entry;
/// the list is one object if all names differ, else an array.
pub(crate) fn keyed(fragments: &[Fragment]) -> Value {
    let entries: Vec<_> = fragments
        .iter()
        .map(|f| (f.name.clone(), keyed_data(f.data().unwrap())))
        .collect();
    let distinct: BTreeSet<_> = entries.iter().map(|(name, _)| name).collect();
    if distinct.len() == entries.len() {
        return Value::Object(entries.into_iter().collect());
    }
    entries
        .into_iter()
        .map(|(name, data)| json!({ name: data }))
        .collect()
}

fn keyed_data(data: &FragmentData) -> Value {
    match data {
        FragmentData::Array(items) => items.iter().map(keyed_data).collect(),
        FragmentData::Object(entries) => entries
            .iter()
            .map(|(key, value)| (key.clone(), keyed_data(value)))
            .collect(),
        FragmentData::Fragment(inner) => json!({ &inner.name: keyed_data(inner.data().unwrap()) }),
        leaf => leaf.to_json().unwrap(),
    }
}
