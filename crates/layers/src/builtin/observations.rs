//! Observations: short notes on what happened, which stay in view when the history does not.
//!
//! Notes are made by rule while items are appended: a tool's error, the first mention of a file in a call, a sentence
//! that states a decision or a demand, by English words. They are quotations, each with its source. With
//! [`Observations::with_model`] a model is asked for more notes once enough text is unread; if it fails, the text stays
//! unread and the model is asked again later.
//!
//! Not here: notes that a model writes on its own, and verifying notes.

use std::time::Duration;

use async_trait::async_trait;
use contexture_compile::{Band, Budget, Contribution, Stability};
use contexture_ir::{Fragment, FunctionCall, Item, Raw, Role, hint, object};
use serde::{Deserialize, Serialize};

use super::open_calls::{PendingCalls, is_failed_output};
use crate::contract::{
    HookContext, Layer, LayerError, LayerId, LayerSpec, ObservedItems, RecallInput,
};

/// Maximum number of notes; the oldest are dropped.
const NOTES: usize = 100;
/// Maximum number of characters of a note.
const CHARACTERS: usize = 300;
/// Maximum number of notes from one item, and from one answer of the model.
const MAX_NOTES_AT_ONCE: usize = 20;
/// Maximum number of unread bytes; the oldest are dropped.
const UNREAD: usize = 32 * 1024;
/// Time limit of the model: below that of the hook, so that the notes made by rule are kept.
const MODEL_TIMEOUT: Duration = Duration::from_secs(20);

/// Names of arguments that name files.
const FILES: [&str; 5] = ["path", "file", "file_path", "filename", "filePath"];
/// Words that mark a decision or a demand, in lower case.
const DECISIVE: [&str; 12] = [
    "we decided",
    "decision:",
    "decided to",
    "let's use",
    "we will use",
    "i'll use",
    "we'll use",
    "must not",
    "always ",
    "never ",
    "i prefer",
    "make sure",
];

/// Observations as a layer, named `observations`.
///
/// They follow the history, newest first, within 1,500 tokens. Limits: 100 notes of 300 characters, 32 KiB unread.
///
/// ```
/// use contexture_layers::Layers;
/// use contexture_layers::builtin::Observations;
///
/// // By rule alone; and a model asked for every 2,000 tokens.
/// Layers::new().with_layer(Observations::new())?;
/// Layers::new().with_layer(Observations::new().with_model(2_000))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Observations {
    id: LayerId,
    model_threshold: Option<u64>,
}

/// State of [`Observations`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObservationsState {
    /// All observations, oldest first.
    pub notes: Vec<Observation>,
    /// Text that the model has not read yet, if there is a model.
    #[serde(rename = "unread")]
    pub unread_text: String,
    /// Number of unread tokens at which the model is asked next; 0 for the usual threshold.
    pub ask_at: u64,
    /// Calls without an output.
    #[serde(rename = "open")]
    pub pending_calls: PendingCalls,
}

/// One observation about the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// What kind it is.
    pub kind: ObservationKind,
    /// Source of the note: `user`, `assistant`, a tool, `model`.
    #[serde(rename = "by")]
    pub author: String,
    /// Text of the observation.
    pub text: String,
}

/// Kind of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservationKind {
    /// Error message of a tool.
    Error,
    /// A file that a tool call names.
    File,
    /// A sentence that states a decision or a demand.
    Decision,
    /// A note by the model.
    Distilled,
}

impl ObservationKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::File => "file",
            Self::Decision => "decision",
            Self::Distilled => "note",
        }
    }
}

impl Observations {
    /// Creates a layer that makes notes by rule.
    #[must_use]
    pub fn new() -> Self {
        Self {
            id: LayerId::built_in("observations"),
            model_threshold: None,
        }
    }

    /// Asks the host's model once about this many tokens are unread; must be below 8,192. A token is taken as four
    /// bytes.
    #[must_use]
    pub const fn with_model(mut self, tokens: u64) -> Self {
        self.model_threshold = Some(tokens);
        self
    }

    /// Asks the model for notes about the unread text, if there is enough of it. After a failure the text stays unread,
    /// and the model is asked again once half a threshold more has arrived.
    async fn distill_unread(&self, state: &mut ObservationsState, context: &HookContext) {
        let Some(threshold) = self.model_threshold else {
            return;
        };
        let unread = estimate_tokens(&state.unread_text);
        if unread < state.ask_at.max(threshold) || state.unread_text.is_empty() {
            return;
        }
        let prompt = format!(
            "Below is a part of a conversation, as data. Note what will matter later: facts, decisions, open questions, \
             names and numbers as they stand. One note a line, at most {CHARACTERS} characters each and {MAX_NOTES_AT_ONCE} in all, \
             nothing that is not in it, no other words. If nothing matters answer NONE.\n\n{}",
            state.unread_text
        );
        // A timeout below the hook's: a slow model must not cost the notes that were made by rule.
        let reply =
            tokio::time::timeout(MODEL_TIMEOUT, context.host.ask_model(&self.id, &prompt)).await;
        let reason = match reply {
            Ok(Ok(answer)) => {
                for line in answer
                    .lines()
                    .filter_map(parse_note_line)
                    .take(MAX_NOTES_AT_ONCE)
                {
                    state.add_observation(ObservationKind::Distilled, "model", line);
                }
                state.unread_text.clear();
                state.ask_at = 0;
                return;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it took too long".to_owned(),
        };
        tracing::debug!(layer = %self.id, why = reason, "no notes by a model");
        // Not asked again with every item while the model fails. The cap is what the buffer can hold: a larger number
        // would never be reached.
        let cap = UNREAD as u64 / 4;
        state.ask_at = (unread + threshold / 2 + 1).min(cap);
    }
}

impl Default for Observations {
    fn default() -> Self {
        Self::new()
    }
}

/// Estimates tokens as a quarter of the bytes: only a threshold depends on it.
fn estimate_tokens(text: &str) -> u64 {
    text.len() as u64 / 4
}

/// Parses one line of the model's reply; `None` if it is not a note.
fn parse_note_line(line: &str) -> Option<&str> {
    let line = line.trim().trim_start_matches(['-', '*', '•']).trim();
    (!line.is_empty() && line != "NONE").then_some(line)
}

impl ObservationsState {
    fn add_observation(&mut self, kind: ObservationKind, by: &str, text: &str) {
        let text: String = text.trim().chars().take(CHARACTERS).collect();
        // The same error in every round must not displace all other notes.
        let same = |note: &Observation| note.kind == kind && note.text == text;
        if text.is_empty() || self.notes.iter().any(same) {
            return;
        }
        let by = by.chars().take(64).collect();
        self.notes.push(Observation {
            kind,
            author: by,
            text,
        });
        // The oldest is dropped: what still matters tends to be observed again.
        if self.notes.len() > NOTES {
            self.notes.remove(0);
        }
    }

    /// Makes notes of an item by rule: decisions, files, errors.
    fn record_item(&mut self, item: &Item) {
        match item {
            Item::Message(message) if !message.role.is_instruction() => {
                let text = item.text();
                for sentence in split_sentences(&text)
                    .filter(|text| is_decision(text))
                    .take(MAX_NOTES_AT_ONCE)
                {
                    self.add_observation(
                        ObservationKind::Decision,
                        message.role.as_str(),
                        sentence,
                    );
                }
            }
            Item::FunctionCall(call) => {
                for file in file_arguments(call).into_iter().take(MAX_NOTES_AT_ONCE) {
                    self.add_observation(ObservationKind::File, &call.name, &file);
                }
                self.pending_calls.record_call(call);
            }
            Item::FunctionCallOutput(output) => {
                let tool = self.pending_calls.take_tool_for_output(output);
                if is_failed_output(output) {
                    let text = item.text();
                    // The first line names the error; the rest is mostly a stack trace.
                    let first = text.lines().find(|line| !line.trim().is_empty());
                    let tool = tool.as_deref().unwrap_or("a tool");
                    self.add_observation(
                        ObservationKind::Error,
                        tool,
                        first.unwrap_or("it failed without a word"),
                    );
                }
            }
            _ => {}
        }
    }

    /// Appends an item to the unread text, and drops what exceeds the buffer from its front.
    fn append_unread(&mut self, item: &Item) {
        let by = match item {
            Item::Message(message) if message.role == Role::User => "user",
            Item::Message(message) if message.role == Role::Assistant => "assistant",
            Item::FunctionCall(_) => "call",
            Item::FunctionCallOutput(_) => "output",
            _ => return,
        };
        let text = item.text();
        // One item takes at most a quarter, so that the conversation around it stays readable.
        let end = text.floor_char_boundary(UNREAD / 4);
        let text = text.get(..end).unwrap_or_default();
        self.unread_text.push_str(&format!("[{by}] {text}\n"));
        let over = self.unread_text.len().saturating_sub(UNREAD);
        let from = self.unread_text.ceil_char_boundary(over);
        self.unread_text.drain(..from);
    }
}

/// Splits a text into sentences and lines.
fn split_sentences(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines();
    let sentences = lines.flat_map(|line| line.split_inclusive(['.', '!', '?', '。']));
    sentences
        .map(str::trim)
        .filter(|sentence| sentence.len() > 3)
}

fn is_decision(sentence: &str) -> bool {
    let sentence = sentence.to_lowercase();
    !sentence.ends_with('?') && DECISIVE.iter().any(|words| sentence.contains(words))
}

/// Returns the files that a call names.
fn file_arguments(call: &FunctionCall) -> Vec<String> {
    let Ok(arguments) = Raw::parse(call.arguments.as_str()) else {
        return Vec::new();
    };
    let Some(fields) = arguments.fields() else {
        return Vec::new();
    };
    let named = fields.iter().filter(|(name, _)| FILES.contains(name));
    named
        .filter_map(|(_, value)| Raw::from(value).as_string())
        .collect()
}

#[async_trait]
impl Layer for Observations {
    type State = ObservationsState;

    fn spec(&self) -> LayerSpec {
        LayerSpec {
            budget: Budget::at_most(1_500),
            ..LayerSpec::new(self.id.clone()).with_position(Band::Live, 100, Stability::Volatile)
        }
    }

    async fn recall(
        &self,
        state: &ObservationsState,
        call: &RecallInput<'_>,
    ) -> Result<Vec<Contribution>, LayerError> {
        if state.notes.is_empty() {
            return Ok(Vec::new());
        }
        let about = hint("Notes on this conversation, newest first.");
        let notes = state.notes.iter().rev().map(|note| {
            let entries = [
                ("of", note.kind.as_str()),
                ("by", &note.author),
                ("text", &note.text),
            ];
            Fragment::new("observation", object(entries))
        });
        Ok(vec![call.contribution_from_fragments(
            [about].into_iter().chain(notes),
        )])
    }

    async fn observe(
        &self,
        state: &mut ObservationsState,
        seen: &ObservedItems<'_>,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        for item in seen.items {
            state.record_item(item);
            if self.model_threshold.is_some() {
                state.append_unread(item);
            }
        }
        self.distill_unread(state, context).await;
        Ok(())
    }
}
