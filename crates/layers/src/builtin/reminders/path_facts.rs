//! What reminders know of the path: a few figures that grow with it.
//!
//! They are the layer's state, so they are those of the path and of nothing else: whatever follows from them comes back
//! when the conversation is rewound. Bounds: 20 turns, 100 tools, 100 calls without an output; of what a person said the
//! first 2,000 characters, and only where a reminder asks for them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use contexture_ir::{Item, Role, Usage};
use serde::{Deserialize, Serialize};

use crate::builtin::open_calls::{PendingCalls, is_failed_output};

/// How many turns are remembered apart.
pub(super) const TURNS: usize = 20;
/// How many tools are counted.
const TOOLS: usize = 100;
/// How much of what a person said counts.
const SAID: usize = 2_000;

/// What [`Reminders`](super::Reminders) keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RemindersState {
    /// Turns so far: a person's message begins one.
    pub turn: u64,
    /// When the person spoke last, in milliseconds since the Unix epoch.
    #[serde(rename = "said_at")]
    pub user_message_ms: Option<i64>,
    /// When the person spoke before that.
    #[serde(rename = "before_at")]
    pub previous_user_message_ms: Option<i64>,
    /// What the person said last, if a reminder asks for it.
    #[serde(rename = "said")]
    pub user_text: String,
    /// Characters of the model's last answer.
    #[serde(rename = "reply")]
    pub reply_chars: u64,
    /// Tokens of the last call and its answer, if the provider said.
    pub tokens: Option<u64>,
    /// Whether the path ends with a tool's output.
    pub after_tool: bool,
    /// The tool that ended last.
    #[serde(rename = "ended")]
    pub last_call: Option<EndedCall>,
    /// Calls by tool, on the whole path.
    pub tools: BTreeMap<String, ToolCallCount>,
    /// The last turns, oldest first.
    pub turns: VecDeque<TurnFacts>,
    /// What was shown and is not shown again.
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
    /// How many ended.
    pub ended: u64,
    /// How many of them failed.
    pub failed: u64,
    /// How many of them failed since one last did not.
    pub streak: u64,
}

/// What happened in one turn.
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
    /// Updates the facts by items that are appended.
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
                    // Personal text is kept in the state only if a condition looks at it, and cut even then.
                    if keeps == UserTextRetention::Text {
                        self.user_text = item.text().chars().take(SAID).collect();
                    }
                    // A user message begins a turn; old turns go, so that the state stays small.
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
        // Items without an answer, such as tool outputs, leave the length of the last answer.
        self.reply_chars = reply.unwrap_or(self.reply_chars);
        if let Some(usage) = usage {
            let sum = || Some(usage.input_tokens? + usage.output_tokens.unwrap_or(0));
            self.tokens = usage.total_tokens.or_else(sum).or(self.tokens);
        }
    }

    fn record_tool_end(&mut self, tool: String, failed: bool) {
        let turn = self.turns.back_mut().map(|turn| &mut turn.tools);
        for counts in [Some(&mut self.tools), turn].into_iter().flatten() {
            // A model that invents tool names must not make the state grow without end.
            if counts.len() < TOOLS || counts.contains_key(&tool) {
                counts.entry(tool.clone()).or_default().record_call(failed);
            }
        }
        self.last_call = Some(EndedCall { tool, failed });
    }
}

/// Whether the text of the last user message is kept in the state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UserTextRetention {
    Nothing,
    Text,
}
