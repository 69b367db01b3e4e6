//! Retrieval: what the owner's other conversations say to what the person asks, found without a model.
//!
//! The telling words of the person's last message are looked for: names, numbers and identifiers first. A text counts by
//! the words it has, rare ones more, and a little by its age. With an [`Embedder`] the best are ranked again by meaning.
//! What is on the path already is left out; each text is shown with the place it comes from.
//!
//! Not here: the index, and what a word weighs ([`LayerHost::search`](crate::LayerHost::search)); notes that other layers
//! keep.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use contexture_compile::{Band, Budget, Contribution, Stability};
use contexture_ir::{Fragment, NodeId, Raw, hint, object};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::function_args::{encode_result, parse_arguments, schema_literal, unknown_function};
use crate::contract::{
    FunctionError, FunctionSpec, HistoryHit, HookContext, Layer, LayerError, LayerId, LayerSpec,
    RecallInput,
};

/// The tool by which the model searches itself.
const TOOL: &str = "search_history";
/// Words of a question that are looked for.
const WORDS: usize = 12;
/// Bytes of a question that count: so many from its beginning, and so many from its end.
const QUESTION: usize = 2_000;
/// Texts that are asked for: some are on the path, some say the same.
const HITS: usize = 100;
/// The most texts the tool gives.
const MOST: usize = 20;
/// Characters of a text that are shown.
const CHARACTERS: usize = 600;
/// Candidates that are ranked again for each that is shown.
const CANDIDATES: usize = 4;
/// Words that are in every text: they are not looked for.
const COMMON: &[&str] = &[
    "about", "again", "and", "any", "are", "can", "could", "did", "does", "for", "from", "give",
    "had", "has", "have", "her", "him", "his", "how", "into", "its", "just", "know", "like",
    "made", "many", "much", "not", "now", "our", "out", "please", "say", "said", "she", "should",
    "some", "tell", "than", "that", "the", "their", "them", "then", "there", "they", "this", "was",
    "way", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would", "you",
    "your",
];

/// Something that knows how near texts are in meaning. It only ranks what was found.
#[async_trait]
pub trait Embedder: fmt::Debug + Send + Sync {
    /// A vector for each text, in order, all of one length.
    async fn embed_texts(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, LayerError>;
}

/// Retrieval as a layer, named `retrieval`. It keeps no state.
///
/// What was found stands behind the history: 5 texts of 600 characters, under 1,500 tokens. Where the host cannot search,
/// the layer fails and is left out of the call, by name.
///
/// ```
/// use contexture_layers::Layers;
/// use contexture_layers::builtin::Retrieval;
///
/// let layers = Layers::new().with_layer(Retrieval::new().with_max_texts(3))?;
/// assert_eq!(layers.tool_definitions()[0].name(), "search_history");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Retrieval {
    id: LayerId,
    max_texts: usize,
    embedder: Option<Arc<dyn Embedder>>,
}

#[derive(Deserialize)]
struct SearchHistoryArguments {
    query: String,
    limit: Option<usize>,
}

/// A text that may be shown.
struct RankedHit {
    hit: HistoryHit,
    score: f64,
}

impl Retrieval {
    /// Shows up to 5 texts.
    #[must_use]
    pub fn new() -> Self {
        Self {
            id: LayerId::built_in("retrieval"),
            max_texts: 5,
            embedder: None,
        }
    }

    /// The same, showing up to so many texts; at most 20.
    #[must_use]
    pub fn with_max_texts(mut self, texts: usize) -> Self {
        // Cut, not refused: a builder method has no error, and the budget bounds the texts as well.
        self.max_texts = texts.min(MOST);
        self
    }

    /// The same, the best being ranked again. If it fails they keep their order.
    #[must_use]
    pub fn with_embedder(mut self, embedder: impl Embedder + 'static) -> Self {
        self.embedder = Some(Arc::new(embedder));
        self
    }

    /// Finds the texts that match a question best, best first.
    async fn find_texts(
        &self,
        question: &str,
        context: &HookContext,
        on_path: &BTreeSet<NodeId>,
        limit: usize,
    ) -> Result<Vec<RankedHit>, LayerError> {
        // Only telling words: a question such as "what about it?" would match everything, so
        // nothing is looked for.
        let query = search_terms(question).join(" ");
        if query.is_empty() {
            return Ok(Vec::new());
        }
        // More than are shown: hits on the path, duplicates and old ones are sorted out below.
        let mut hits = context.host.search(&query, HITS).await?;
        // What is on the path is in the history already.
        hits.retain(|found| !on_path.contains(&found.node));
        // Scores of stores have no common scale, so each is taken relative to the best hit.
        let best = hits.iter().map(|found| found.score).fold(0.0, f64::max);
        let candidates = hits.into_iter().map(|found| {
            let fits = if best > 0.0 { found.score / best } else { 1.0 };
            let age_ms = context.now_ms.saturating_sub(found.at_ms).max(0);
            // Age decides between texts of about the same fit; it never outweighs a clearly better one.
            let months = (age_ms / 86_400_000) as f64 / 30.0;
            RankedHit {
                score: 0.9 * fits + 0.1 / (1.0 + months),
                hit: found,
            }
        });
        let mut candidates: Vec<RankedHit> = candidates.collect();
        // `total_cmp`, since scores are floating point numbers; the newer of two equals comes
        // first.
        candidates.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| compare_newest_first(a, b))
        });
        // One text may be stored many times, on branches or by repeated questions.
        let mut said = BTreeSet::new();
        candidates.retain(|one| said.insert(one.hit.text.clone()));
        // Embedding costs a call of a model per text, so only the best candidates are ranked again.
        candidates.truncate(limit * CANDIDATES);
        self.rerank_by_embedding(question, &mut candidates).await;
        candidates.truncate(limit);
        Ok(candidates)
    }

    /// Ranks candidates again by their embedding. If that fails they keep their order.
    async fn rerank_by_embedding(&self, question: &str, candidates: &mut [RankedHit]) {
        let Some(embedder) = self.embedder.as_ref().filter(|_| candidates.len() > 1) else {
            return;
        };
        let texts = candidates.iter().map(|one| one.hit.text.as_str());
        // The question goes along in the same call, as the first text.
        let texts: Vec<&str> = [question].into_iter().chain(texts).collect();
        let vectors = match embedder.embed_texts(&texts).await {
            // Without one vector per text it is not known which belongs to which.
            Ok(vectors) if vectors.len() == texts.len() => vectors,
            Ok(_) => return tracing::debug!(layer = %self.id, "not one vector a text"),
            Err(error) => return tracing::debug!(layer = %self.id, %error, "no vectors"),
        };
        if let Some((question, vectors)) = vectors.split_first() {
            for (one, vector) in candidates.iter_mut().zip(vectors) {
                // Half by words and half by meaning: an exact name must not lose to a text that is
                // merely similar.
                one.score = 0.5 * one.score + 0.5 * cosine_similarity(question, vector);
            }
        }
        candidates.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| compare_newest_first(a, b))
        });
    }
}

impl Default for Retrieval {
    fn default() -> Self {
        Self::new()
    }
}

fn compare_newest_first(a: &RankedHit, b: &RankedHit) -> std::cmp::Ordering {
    b.hit.at_ms.cmp(&a.hit.at_ms)
}

/// Returns the cosine of two vectors; 0 if they differ in length or one is zero.
fn cosine_similarity(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter()
            .zip(b)
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum()
    };
    let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    // The sum stops at the shorter vector, and a zero vector divides by zero: neither is a
    // similarity.
    if a.len() == b.len() && cosine.is_finite() {
        cosine
    } else {
        0.0
    }
}

/// Extracts the words of a question worth searching for, at most [`WORDS`]: names first.
fn search_terms(question: &str) -> Vec<String> {
    let mut all: Vec<(bool, String)> = Vec::new();
    let mut first = true;
    // Both ends of a long message: what is asked stands before or after what was pasted in.
    let head = question.floor_char_boundary(QUESTION);
    let tail = question.ceil_char_boundary(question.len().saturating_sub(QUESTION));
    let ends = [question.get(..head), question.get(tail.max(head)..)];
    let apart = |c: char| c.is_whitespace() || "\"'`()[]{}<>,;:!?“”‘’。、，？！".contains(c);
    for piece in ends
        .into_iter()
        .flatten()
        .flat_map(|part| part.split(apart))
    {
        let ends = piece.ends_with('.');
        let piece = piece.trim_matches(|c: char| !c.is_alphanumeric());
        if !piece.is_empty() {
            // The first word of a sentence has a capital anyway, so that alone does not make it a name.
            for text in split_unspaced_script(piece) {
                let is_name = is_name(&text, first);
                let common = COMMON.contains(&text.to_lowercase().as_str());
                // Two letters of ASCII are rarely telling; in other scripts two characters can be a
                // word.
                let long = text.chars().count() >= 3 || !text.is_ascii();
                let known = all
                    .iter()
                    .any(|(_, word)| word.to_lowercase() == text.to_lowercase());
                if (is_name || long) && !common && !known {
                    all.push((is_name, text));
                }
            }
            first = false;
        }
        first |= ends;
    }
    // Longer words are rarer and so more telling; the sort is stable, so equal ones keep their order.
    all.sort_by_key(|(is_name, text)| (!is_name, Reverse(text.chars().count())));
    all.truncate(WORDS);
    all.into_iter().map(|(_, text)| text).collect()
}

/// Splits a word of a script without spaces, such as Chinese, into pairs of characters.
fn split_unspaced_script(piece: &str) -> Vec<String> {
    // Bounded, since a piece without spaces may be a whole encoded file.
    let characters: Vec<char> = piece.chars().take(80).collect();
    // From U+2E80 on come the scripts of East Asia, which put no spaces between words.
    if !characters.iter().any(|c| *c >= '\u{2e80}') {
        return vec![characters.into_iter().collect()];
    }
    characters
        .chunks(2)
        .map(|pair| pair.iter().collect())
        .collect()
}

/// Whether a word is a name, a number or an identifier.
fn is_name(text: &str, begins: bool) -> bool {
    let inner = |c: char| c.is_ascii_digit() || "_#@/.-".contains(c);
    let capitals = text.chars().filter(|c| c.is_uppercase()).count();
    let begins_large = text.starts_with(char::is_uppercase);
    // Digits and signs of identifiers, a capital that is not the first letter, or one that begins
    // no sentence.
    text.contains(inner) || capitals > usize::from(begins_large) || (begins_large && !begins)
}

/// A text with its place, for the model.
fn hit_fields(found: &HistoryHit) -> [(&'static str, String); 4] {
    let when = Timestamp::from_millisecond(found.at_ms);
    let when = when.map_or_else(
        |_| "unknown".to_owned(),
        |at| at.strftime("%Y-%m-%d").to_string(),
    );
    // By characters and not by bytes, so that no character is cut in half.
    let text = found.text.chars().take(CHARACTERS).collect();
    [
        ("conversation", found.conversation.to_string()),
        ("node", found.node.to_string()),
        ("date", when),
        ("text", text),
    ]
}

#[async_trait]
impl Layer for Retrieval {
    type State = ();

    fn spec(&self) -> LayerSpec {
        LayerSpec {
            budget: Budget::at_most(1_500),
            ..LayerSpec::new(self.id.clone()).with_position(Band::Live, 200, Stability::Volatile)
        }
    }

    async fn recall(
        &self,
        (): &(),
        call: &RecallInput<'_>,
    ) -> Result<Vec<Contribution>, LayerError> {
        let on_path = call.path.iter().filter_map(|item| item.node).collect();
        let found = self
            .find_texts(call.query, call.context, &on_path, self.max_texts)
            .await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        // Said before the texts: a model would else take an old decision for the present state.
        let about = hint("Found in earlier conversations, best first. It may be out of date.");
        let found = found
            .iter()
            .map(|one| Fragment::new("found", object(hit_fields(&one.hit))));
        Ok(vec![call.contribution_from_fragments(
            [about].into_iter().chain(found),
        )])
    }

    fn functions(&self) -> Vec<FunctionSpec> {
        let input = schema_literal(&json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["query"],
            "properties": {
                "query": {"type": "string", "maxLength": 2_000, "description": "A question, or the words to look for."},
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "description": "How many texts. Default 5."},
            },
        }));
        let description =
            "Searches all earlier conversations. Gives texts with the place and day they are from.";
        vec![FunctionSpec::new(&self.id, "search", description, input).with_tool_name(TOOL)]
    }

    async fn call_function(
        &self,
        (): &mut (),
        function: &str,
        arguments: &Raw,
        context: &HookContext,
    ) -> Result<Raw, FunctionError> {
        if function != "search" {
            return Err(unknown_function(&self.id, function));
        }
        let SearchHistoryArguments { query, limit } = parse_arguments(arguments)?;
        let limit = limit.unwrap_or(5).min(MOST);
        let found = self
            // What is on the path is not left out here: the model asked, and the answer may be in
            // this conversation.
            .find_texts(&query, context, &BTreeSet::new(), limit)
            .await?;
        let found: Vec<BTreeMap<&str, String>> = found
            .iter()
            .map(|one| hit_fields(&one.hit).into())
            .collect();
        encode_result(&found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_first_and_common_words_are_left_out() {
        let cut = search_terms;
        assert_eq!(
            cut("What did Grace say about order #W123 and the blue parcel_id?"),
            ["parcel_id", "Grace", "W123", "order", "blue"]
        );
        assert_eq!(
            cut("Where is it? The API is at src/main.rs."),
            ["src/main.rs", "API"]
        );
        assert!(cut("what is it?").is_empty());
        assert!(cut(" … ?!").is_empty());
        assert_eq!(cut("東京の天気"), ["東京", "の天", "気"]);
        assert_eq!(cut(&"word1 ".repeat(100)), ["word1"]);
        let long = format!("Alpha {} omega", "é ".repeat(1 << 20));
        assert_eq!(cut(&long), ["Alpha", "omega", "é"]);
        assert_eq!(
            search_terms(&(0..100).map(|n| format!("w{n} ")).collect::<String>()).len(),
            WORDS
        );
    }

    #[test]
    fn nearness_has_no_surprises() {
        assert!((cosine_similarity(&[1.0, 0.0], &[2.0, 0.0]) - 1.0).abs() < 1e-9);
        for (a, b) in [
            (&[0.0, 0.0][..], &[1.0, 1.0][..]),
            (&[1.0], &[1.0, 1.0]),
            (&[], &[]),
            (&[f32::NAN], &[1.0]),
        ] {
            assert!(cosine_similarity(a, b).abs() < 1e-9);
        }
    }
}
