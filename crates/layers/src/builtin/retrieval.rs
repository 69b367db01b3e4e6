//! Retrieval: texts of the owner's other conversations that match the user's message, found without a model.
//!
//! The user's last message is asked as a question is: any of its words, rare ones more, without those that every question
//! has. Age decides between texts of similar score. With an [`Embedder`] the best are ranked
//! again by meaning. Texts on the path are left out; each text is shown with its source.
//!
//! Not here: the index, and weights of words ([`LayerHost::search`](crate::LayerHost::search)); notes of other layers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use contexture_compile::{Band, Budget, Contribution, Stability};
use contexture_ir::{Fragment, NodeId, Raw, hint, object};
use contexture_text::search_terms::{content_of, is_function_word};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::function_args::{encode_result, parse_arguments, schema_literal, unknown_function};
use crate::contract::{
    FunctionError, FunctionSpec, HistoryHit, HookContext, Layer, LayerError, LayerId, LayerSpec,
    RecallInput,
};

/// Name of the tool by which the model searches itself.
const TOOL: &str = "search_history";
/// Bytes of a question that are used, from its beginning and from its end.
const QUESTION: usize = 2_000;
/// Number of different words that are asked for of each end of a longer message; together as many as a search uses.
const END_WORDS: usize = 16;
/// Number of hits requested: some are on the path, some are duplicates.
const HITS: usize = 100;
/// Maximum number of texts returned.
const MOST: usize = 20;
/// Maximum number of characters shown of a text.
const CHARACTERS: usize = 600;
/// Number of candidates ranked again per text shown.
const CANDIDATES: usize = 4;

/// Computes embeddings of texts. It only ranks texts that were found.
#[async_trait]
pub trait Embedder: fmt::Debug + Send + Sync {
    /// Returns a vector for each text, in order, all of the same length.
    async fn embed_texts(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, LayerError>;
}

/// Retrieval as a layer, named `retrieval`. It has no state.
///
/// Results follow the history: 5 texts of 600 characters, within 1,500 tokens. If the host cannot search, the layer
/// fails and is left out of the call, which the outcome reports.
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

/// A hit with its combined score.
struct RankedHit {
    hit: HistoryHit,
    score: f64,
}

impl Retrieval {
    /// Creates a layer that shows up to 5 texts.
    #[must_use]
    pub fn new() -> Self {
        Self {
            id: LayerId::built_in("retrieval"),
            max_texts: 5,
            embedder: None,
        }
    }

    /// Sets the maximum number of texts shown; at most 20.
    #[must_use]
    pub fn with_max_texts(mut self, texts: usize) -> Self {
        // Clamped, not refused: a builder method returns no error, and the budget limits the texts as well.
        self.max_texts = texts.min(MOST);
        self
    }

    /// Ranks the best texts again by embedding. If that fails, they keep their order.
    #[must_use]
    pub fn with_embedder(mut self, embedder: impl Embedder + 'static) -> Self {
        self.embedder = Some(Arc::new(embedder));
        self
    }

    /// Finds the texts that best match a question, best first.
    async fn find_texts(
        &self,
        question: &str,
        context: &HookContext,
        on_path: &BTreeSet<NodeId>,
        limit: usize,
    ) -> Result<Vec<RankedHit>, LayerError> {
        // A question such as "what about it?" would match everything, so nothing is searched for.
        let Some(query) = question_of(question) else {
            return Ok(Vec::new());
        };
        // More than are shown: hits on the path and duplicates are removed below, and age changes the order.
        let mut hits = context.host.search(&query, HITS).await?;
        // Texts on the path are in the history already.
        hits.retain(|found| !on_path.contains(&found.node));
        // Scores of stores have no common scale, so each is taken relative to the best hit.
        let best = hits.iter().map(|found| found.score).fold(0.0, f64::max);
        let candidates = hits.into_iter().map(|found| {
            let fits = if best > 0.0 { found.score / best } else { 1.0 };
            let age_ms = context.now_ms.saturating_sub(found.at_ms).max(0);
            // Age decides between texts of similar score; it never outweighs a clearly better one.
            let months = (age_ms / 86_400_000) as f64 / 30.0;
            RankedHit {
                score: 0.9 * fits + 0.1 / (1.0 + months),
                hit: found,
            }
        });
        let mut candidates: Vec<RankedHit> = candidates.collect();
        // `total_cmp`, because scores are floating-point numbers; of two equal scores the newer comes first.
        candidates.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| compare_newest_first(a, b))
        });
        // One text may be stored many times, on branches or by repeated questions.
        let mut said = BTreeSet::new();
        candidates.retain(|one| said.insert(one.hit.text.clone()));
        // Embedding costs per text, so only the best candidates are ranked again.
        candidates.truncate(limit * CANDIDATES);
        self.rerank_by_embedding(question, &mut candidates).await;
        candidates.truncate(limit);
        Ok(candidates)
    }

    /// Ranks candidates again by embedding. If that fails, they keep their order.
    async fn rerank_by_embedding(&self, question: &str, candidates: &mut [RankedHit]) {
        let Some(embedder) = self.embedder.as_ref().filter(|_| candidates.len() > 1) else {
            return;
        };
        let texts = candidates.iter().map(|one| one.hit.text.as_str());
        // The question is embedded in the same call, as the first text.
        let texts: Vec<&str> = [question].into_iter().chain(texts).collect();
        let vectors = match embedder.embed_texts(&texts).await {
            // With another number of vectors it is unknown which belongs to which text.
            Ok(vectors) if vectors.len() == texts.len() => vectors,
            Ok(_) => return tracing::debug!(layer = %self.id, "not one vector a text"),
            Err(error) => return tracing::debug!(layer = %self.id, %error, "no vectors"),
        };
        if let Some((question, vectors)) = vectors.split_first() {
            for (one, vector) in candidates.iter_mut().zip(vectors) {
                // Half by words and half by meaning: an exact name must not lose to a text that is only similar.
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
    // The sum stops at the shorter vector, and a zero vector divides by zero: neither is a similarity.
    if a.len() == b.len() && cosine.is_finite() {
        cosine
    } else {
        0.0
    }
}

/// Returns what of a message is searched for; `None` if no word of it says what it is about.
///
/// A person who writes quotes or stars means no operators, so they are left out. Of a long message both ends are asked, the end
/// first: the question precedes or follows pasted text.
fn question_of(message: &str) -> Option<String> {
    let head = message.floor_char_boundary(QUESTION);
    let tail = message.ceil_char_boundary(message.len().saturating_sub(QUESTION));
    let ends = [message.get(..head)?, message.get(tail.max(head)..)?].join(" ");
    let ends = ends.replace(['"', '\u{201C}', '\u{201D}', '*'], " ");
    let has_content = |piece: &&str| {
        let word = content_of(piece).trim_matches(|c: char| !c.is_alphanumeric());
        !word.is_empty() && !is_function_word(&word.to_lowercase())
    };
    let mut said = BTreeSet::new();
    let words = ends.split_whitespace().filter(has_content);
    // A log repeats its words.
    let words: Vec<&str> = words.filter(|word| said.insert(*word)).collect();
    let (first, last) = words.split_at(words.len().saturating_sub(END_WORDS));
    let first = first.get(..END_WORDS).unwrap_or(first);
    // A search uses the first words of a query, so what must count comes first.
    let order = match words.len() > 2 * END_WORDS {
        true => [last, first],
        false => [first, last],
    };
    (!words.is_empty()).then(|| order.concat().join(" "))
}

/// Returns the fields of a hit for the model; `until` if it is so no more.
fn hit_fields(found: &HistoryHit) -> Vec<(&'static str, String)> {
    // By characters and not by bytes, so that no character is split.
    let text = found.text.chars().take(CHARACTERS).collect();
    let mut fields = vec![
        ("conversation", found.conversation.to_string()),
        ("node", found.node.to_string()),
        ("date", format_day(found.at_ms)),
    ];
    // Before the text: otherwise a model may take what was so for what is.
    fields.extend(found.replaced_ms.map(|until| ("until", format_day(until))));
    fields.push(("text", text));
    fields
}

fn format_day(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(
        |_| "unknown".to_owned(),
        |at| at.strftime("%Y-%m-%d").to_string(),
    )
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
        // Precedes the texts: otherwise a model may take an old decision for the current state.
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
            // Texts on the path are not left out here: the model asked, and the answer may be in this conversation.
            .find_texts(&query, context, &BTreeSet::new(), limit)
            .await?;
        let found: Vec<BTreeMap<&str, String>> = found
            .iter()
            .map(|one| hit_fields(&one.hit).into_iter().collect())
            .collect();
        encode_result(&found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_nothing_is_not_searched_for() {
        for nothing in ["what is it?", "Is that so? And why?", " … ?!", ""] {
            assert_eq!(question_of(nothing), None, "{nothing:?}");
        }
        for question in ["Who is Grace?", "東京の天気", "#123"] {
            assert!(question_of(question).is_some(), "{question}");
        }
        let long = format!("Alpha {} omega", "é ".repeat(1 << 20));
        let both = question_of(&long).unwrap();
        assert!(both.starts_with("Alpha") && both.ends_with("omega"));
        assert!(both.len() <= 2 * QUESTION + 1);
    }

    #[test]
    fn a_message_is_words_and_its_end_counts() {
        for (message, expected) in [
            (
                "He wrote \"see you on Monday\". Where is W*?",
                "wrote see Monday W",
            ),
            ("a b b a parcel parcel", "b parcel"),
        ] {
            assert_eq!(question_of(message).as_deref(), Some(expected), "{message}");
        }
        let log: String = (0..300).map(|n| format!("line{n} ")).collect();
        let question = question_of(&format!("{log}Why did the parcel W123 not arrive?")).unwrap();
        let words: Vec<&str> = question.split(' ').collect();
        assert_eq!(words.len(), 2 * END_WORDS);
        assert_eq!(
            (words[13], words[15], words[16]),
            ("parcel", "arrive?", "line0")
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
