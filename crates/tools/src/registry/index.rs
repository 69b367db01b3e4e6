//! Tools ranked by how well they fit a task: BM25 over names, tags, descriptions and parameters.
//!
//! A tool's document is a bag of weighted words: its name counts three times, tags twice, the description and the names
//! of parameters once, their descriptions half. A namespace is one document made of all its tools, for it is offered as
//! one. Scores are made of additions, multiplications and divisions of doubles only, in a fixed order, so that every
//! machine ranks alike.
//!
//! Not here: how text is cut ([`contexture_text::for_each_identifier_word`]), how many tools are kept
//! ([`crate::offer::Criterion`]).

use std::collections::BTreeMap;

use contexture_ir::Fields;

use crate::names::{Name, ToolId};
use crate::registry::tool::{Tool, ToolGroup};
use contexture_text::for_each_identifier_word;

/// Saturation of repeated words: the usual value.
const K1: f64 = 1.2;
/// How much length counts against a document. Less than the usual 0.75: a long schema is no sign of vagueness.
const B: f64 = 0.4;

const NAME: f64 = 3.0;
const TAG: f64 = 2.0;
const TEXT: f64 = 1.0;
const DETAIL: f64 = 0.5;

/// How deep the parameters of a schema are read.
const PARAMETER_DEPTH: usize = 4;

/// What is ranked: a flat tool, or a namespace as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IndexedUnit {
    /// A flat tool.
    Tool(ToolId),
    /// All tools of a namespace.
    Namespace(Name),
}

/// A unit and how well it fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked<'i> {
    /// What was ranked.
    pub unit: &'i IndexedUnit,
    /// Its score; 0 if it shares no word with the task.
    pub score: f64,
}

/// The words of a registry's tools.
#[derive(Debug)]
pub struct Index {
    units: Vec<IndexedUnit>,
    numbers: BTreeMap<IndexedUnit, usize>,
    /// `K1 × (1 − B + B × length / mean length)` by unit.
    norms: Vec<f64>,
    /// Where in `postings` a word's are.
    words: BTreeMap<Box<str>, TermPostings>,
    postings: Vec<Posting>,
}

#[derive(Clone, Copy, Debug)]
struct TermPostings {
    rarity: f64,
    from: usize,
    to: usize,
}

#[derive(Clone, Copy, Debug)]
struct Posting {
    unit: u32,
    weight: f64,
}

impl Index {
    /// The index of these documents. Their order is that of the units' numbers and decides between equal scores.
    pub(crate) fn from_documents<'t>(documents: impl Iterator<Item = IndexDocument<'t>>) -> Self {
        let (units, bags) = documents.map(IndexDocument::into_weighted_terms).unzip();
        Self::from_bags(units, bags)
    }

    // Sums run in the order of units and words, both sorted: floating point must add up alike on every machine.
    fn from_bags(units: Vec<IndexedUnit>, bags: Vec<TermWeights>) -> Self {
        // At least one, so that an empty registry divides by nothing.
        let count = units.len().max(1) as f64;
        let lengths: Vec<f64> = bags.iter().map(TermWeights::total_weight).collect();
        // A mean below one would make every length look huge; tools without words have none.
        let mean = (lengths.iter().sum::<f64>() / count).max(1.0);
        let norms = lengths
            .iter()
            .map(|length| K1 * (1.0 - B + B * length / mean));
        let norms = norms.collect();
        // A sorted map and not a hash map: postings are laid out in its order.
        let mut by_word: BTreeMap<Box<str>, Vec<Posting>> = BTreeMap::new();
        for (unit, bag) in bags.into_iter().enumerate() {
            let unit = u32::try_from(unit).unwrap_or(u32::MAX);
            for (word, weight) in bag.0 {
                let posting = Posting { unit, weight };
                by_word.entry(word).or_default().push(posting);
            }
        }
        let mut postings = Vec::new();
        let mut words = BTreeMap::new();
        for (word, list) in by_word {
            let from = postings.len();
            let holders = list.len() as f64;
            postings.extend(list);
            // BM25's inverse document frequency with 1 added inside, so that a word in most tools still counts
            // a little.
            let rarity = log2(1.0 + (count - holders + 0.5) / (holders + 0.5));
            let to = postings.len();
            words.insert(word, TermPostings { rarity, from, to });
        }
        Self {
            numbers: units.iter().cloned().zip(0..).collect(),
            units,
            norms,
            words,
            postings,
        }
    }

    /// How many units there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether there is nothing to rank.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// The `limit` units that fit `task` best, best first; equal scores by lower-cased name, tools before namespaces.
    /// Units that share no word with the task come last, with score 0.
    #[must_use]
    pub fn rank_units(&self, task: &str, limit: usize) -> Vec<Ranked<'_>> {
        let ranked = |(score, number): (f64, usize)| {
            let unit = self.units.get(number)?;
            Some(Ranked { unit, score })
        };
        let best = self.best_units(task, limit);
        best.into_iter().filter_map(ranked).collect()
    }

    /// Scores and numbers of the best units, best first. Units are numbered flat functions first, in the registry's
    /// order, then namespaces.
    pub(crate) fn best_units(&self, task: &str, limit: usize) -> Vec<(f64, usize)> {
        // Every unit gets a score, since those that share no word fill up the end of the selection.
        let scores = self.unit_scores(task);
        let mut order: Vec<(f64, usize)> = scores.into_iter().zip(0..).collect();
        // `total_cmp` orders every double, and the number breaks ties by name.
        let best_first =
            |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if limit < order.len() {
            if limit > 0 {
                // Selecting before sorting keeps a thousand tools linear; only what is offered is sorted.
                order.select_nth_unstable_by(limit - 1, best_first);
            }
            order.truncate(limit);
        }
        order.sort_unstable_by(best_first);
        order
    }

    /// The number of a unit.
    pub(crate) fn unit_number(&self, unit: &IndexedUnit) -> Option<usize> {
        self.numbers.get(unit).copied()
    }

    fn unit_scores(&self, task: &str) -> Vec<f64> {
        let mut scores = vec![0.0; self.units.len()];
        let mut asked: Vec<TermPostings> = Vec::new();
        for_each_identifier_word(task, |word| asked.extend(self.words.get(word)));
        // A word that the task repeats counts once: tasks are prose.
        asked.sort_unstable_by_key(|word| word.from);
        asked.dedup_by_key(|word| word.from);
        for word in asked {
            for posting in self.postings.get(word.from..word.to).unwrap_or_default() {
                let unit = posting.unit as usize;
                if let (Some(score), Some(norm)) = (scores.get_mut(unit), self.norms.get(unit)) {
                    let weight = posting.weight;
                    *score += word.rarity * (weight * (K1 + 1.0) / (weight + norm));
                }
            }
        }
        scores
    }
}

/// What is ranked as one.
pub(crate) enum IndexDocument<'t> {
    /// A flat tool.
    Tool(&'t Tool),
    /// A namespace and its tools.
    Namespace(&'t ToolGroup, Vec<&'t Tool>),
}

impl IndexDocument<'_> {
    fn into_weighted_terms(self) -> (IndexedUnit, TermWeights) {
        let mut bag = TermWeights::default();
        let unit = match self {
            Self::Tool(tool) => {
                bag.add_tool(tool);
                IndexedUnit::Tool(tool.id())
            }
            Self::Namespace(group, tools) => {
                // The group's own words weigh as a tool's: a task that names the service must find it.
                bag.add_text(group.name.as_str(), NAME);
                bag.add_text(&group.description, TEXT);
                tools.into_iter().for_each(|tool| bag.add_tool(tool));
                IndexedUnit::Namespace(group.name.clone())
            }
        };
        (unit, bag)
    }
}

/// Words and their weights.
#[derive(Default)]
struct TermWeights(BTreeMap<Box<str>, f64>);

impl TermWeights {
    fn total_weight(&self) -> f64 {
        self.0.values().sum()
    }

    fn add_text(&mut self, text: &str, weight: f64) {
        for_each_identifier_word(text, |word| match self.0.get_mut(word) {
            Some(sum) => *sum += weight,
            None => drop(self.0.insert(word.into(), weight)),
        });
    }

    fn add_tool(&mut self, tool: &Tool) {
        self.add_text(tool.definition.name(), NAME);
        for tag in &tool.tags {
            self.add_text(tag, TAG);
        }
        // A provider's own tool has no description and no schema of ours.
        let Some(function) = tool.as_function() else {
            return;
        };
        self.add_text(function.description.as_deref().unwrap_or_default(), TEXT);
        if let Some(schema) = &function.parameters {
            self.add_parameters(schema.get(), PARAMETER_DEPTH);
        }
    }

    /// Names and descriptions of a schema's properties, and of theirs.
    fn add_parameters(&mut self, schema: &str, depth: usize) {
        // Depth is bounded: the words of a deep parameter say little about what a tool is for.
        let (Some(depth), Ok(schema)) = (depth.checked_sub(1), Fields::parse(schema)) else {
            return;
        };
        // A list's element is described under `items`, so its properties count as the list's.
        if let Some(items) = schema.get(&["items"]) {
            self.add_parameters(items.get(), depth);
        }
        let Some(Ok(properties)) = schema.get(&["properties"]).map(|p| Fields::parse(p.get()))
        else {
            return;
        };
        for (name, property) in properties.iter() {
            self.add_text(name, TEXT);
            let described = Fields::parse(property.get());
            let described = described.ok().and_then(|fields| {
                let text = fields.get(&["description"])?;
                serde_json::from_str::<String>(text.get()).ok()
            });
            self.add_text(described.as_deref().unwrap_or_default(), DETAIL);
            self.add_parameters(property.get(), depth);
        }
    }
}

/// The binary logarithm of a number of at least 1, to about twelve digits. The standard library's may differ from
/// platform to platform; this one cannot.
fn log2(x: f64) -> f64 {
    let (mut mantissa, mut exponent) = (x, 0.0);
    while mantissa >= 2.0 {
        mantissa *= 0.5;
        exponent += 1.0;
    }
    // ln m = 2 (s + s³/3 + s⁵/5 + …) with s = (m − 1) / (m + 1) ≤ 1/3.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let (mut term, mut sum) = (s, 0.0);
    // Eleven terms: the last is below 1e-11 of the sum for s at most 1/3.
    for odd in [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0, 17.0, 19.0, 21.0] {
        sum += term / odd;
        term *= square;
    }
    exponent + 2.0 * sum * std::f64::consts::LOG2_E
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms() {
        for x in [1.0, 1.5, 2.0, 3.0, 7.9, 1000.5, 1e9] {
            assert!((log2(x) - f64::log2(x)).abs() < 1e-9, "{x}");
        }
    }
}
