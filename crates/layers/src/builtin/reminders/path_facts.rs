//! Facts of the path that reminders depend on.
//!
//! They are the layer's state and belong to the path, so a rewind restores them. Limits: 20 turns, 100 tools, 100 calls
//! without an output; of the user's last message the first 2,000 characters, and only if a reminder needs them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use contexture_ir::{Item, Role, Usage};
use serde::{Deserialize, Serialize};

use crate::builtin::open_calls::{PendingCalls, is_failed_output};

/// Number of turns with counts of their own.
pub(super) const TURNS: usize = 20;
/// Maximum number of tools counted.
const TOOLS: usize = 100;
/// Maximum number of characters stored of the user's last message.
const SAID: usize = 2_000;

/// State of [`Reminders`](super::Reminders).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RemindersState {
    /// Number of turns so far; each user message starts one.
    pub turn: u64,
    /// Time of the user's last message, in milliseconds since the Unix epoch.
    #[serde(rename = "said_at")]
    pub user_message_ms: Option<i64>,
    /// Time of the user's message before the last.
    #[serde(rename = "before_at")]
    pub previous_user_message_ms: Option<i64>,
    /// Text of the user's last message, if a reminder needs it.
    #[serde(rename = "said")]
    pub user_text: String,
    /// Characters of the model's last answer.
    #[serde(rename = "reply")]
    pub reply_chars: u64,
    /// Tokens of the last call and its answer, if the provider reported them.
    pub tokens: Option<u64>,
    /// Whether the path ends with a tool's output.
    pub after_tool: bool,
    /// The last call that ended.
    #[serde(rename = "ended")]
    pub last_call: Option<EndedCall>,
    /// Calls by tool, on the whole path.
    pub tools: BTreeMap<String, ToolCallCount>,
    /// The last turns, oldest first.
    pub turns: VecDeque<TurnFacts>,
    /// Names of `Once` conditions that are used up.
    #[serde(rename = "once")]
    pub used_names: BTreeSet<String>,
    /// Calls without an output.
    #[serde(rename = "open")]
    pub pending_calls: PendingCalls,
}

/// A call that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedCall {
    /// The tool, as the model called it.
    pub tool: String,
    /// Whether it failed.
    pub failed: bool,
}

/// Calls of one tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallCount {
    /// Number of calls that ended.
    pub ended: u64,
    /// Number of calls that failed.
    pub failed: u64,
    /// Number of failures since the last success.
    pub streak: u64,
}

/// Facts of one turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnFacts {
    /// Calls by tool.
    pub tools: BTreeMap<String, ToolCallCount>,
}

impl ToolCallCount {
    pub(super) fn record_call(&mut self, failed: bool) {
        self.ended += 1;
        if failed {
            self.failed += 1;
            self.streak += 1;
        } else {
            self.streak = 0;
        }
    }
}

impl RemindersState {
    /// Updates the facts with items that are appended.
    pub(super) fn record_items(
        &mut self,
        items: &[Item],
        usage: Option<&Usage>,
        now_ms: i64,
        keeps: UserTextRetention,
    ) {
        let mut reply = None;
        for item in items {
            // Of the last item only: a reminder after a tool is for the call that follows directly.
            self.after_tool = matches!(item, Item::FunctionCallOutput(_));
            match item {
                Item::Message(message) if message.role == Role::User => {
                    self.turn += 1;
                    self.previous_user_message_ms = self.user_message_ms.replace(now_ms);
                    // Personal text is stored only if a condition depends on it, and truncated even then.
                    if keeps == UserTextRetention::Text {
                        self.user_text = item.text().chars().take(SAID).collect();
                    }
                    // A user message starts a turn; old turns are dropped to keep the state small.
                    self.turns.push_back(TurnFacts::default());
                    if self.turns.len() > TURNS {
                        self.turns.pop_front();
                    }
                }
                Item::Message(message) if message.role == Role::Assistant => {
                    let characters = item.text().chars().count() as u64;
                    *reply.get_or_insert(0) += characters;
                }
                Item::FunctionCall(call) => self.pending_calls.record_call(call),
                Item::FunctionCallOutput(output) => {
                    if let Some(tool) = self.pending_calls.take_tool_for_output(output) {
                        self.record_tool_end(tool, is_failed_output(output));
                    }
                }
                _ => {}
            }
        }
        // Items without an answer, such as tool outputs, do not change the length of the last answer.
        self.reply_chars = reply.unwrap_or(self.reply_chars);
        if let Some(usage) = usage {
            let sum = || Some(usage.input_tokens? + usage.output_tokens.unwrap_or(0));
            self.tokens = usage.total_tokens.or_else(sum).or(self.tokens);
        }
    }

    fn record_tool_end(&mut self, tool: String, failed: bool) {
        let turn = self.turns.back_mut().map(|turn| &mut turn.tools);
        for counts in [Some(&mut self.tools), turn].into_iter().flatten() {
            // A model that invents tool names must not make the state grow without bound.
            if counts.len() < TOOLS || counts.contains_key(&tool) {
                counts.entry(tool.clone()).or_default().record_call(failed);
            }
        }
        self.last_call = Some(EndedCall { tool, failed });
    }
}

/// Whether the text of the user's last message is stored in the state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UserTextRetention {
    Nothing,
    Text,
}
