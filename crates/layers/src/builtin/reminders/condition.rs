//! When a reminder is shown: a condition on facts of the path, as plain data.
//!
//! Not here: the facts ([`super::path_facts`]), and the reminder's content.

use std::collections::BTreeMap;

use contexture_ir::{FunctionTool, ToolDefinition};
use contexture_tools::{Pattern, Registry, Tool, ToolId};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use crate::builtin::reminders::clock::{CalendarStep, Zone};
use crate::builtin::reminders::path_facts::{RemindersState, ToolCallCount};

/// Maximum size of a compiled pattern, in bytes.
const PATTERN_BYTES: usize = 1 << 20;

/// When a reminder is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReminderCondition {
    /// In every call.
    Always,
    /// In each turn whose number is a multiple of this; 0 means never.
    EveryTurns(u64),
    /// In the first turns, up to this number.
    FirstTurns(u64),
    /// In all turns after this one.
    AfterTurn(u64),
    /// If at least this many milliseconds lie between the user's last two messages.
    Elapsed {
        /// Threshold in milliseconds.
        at_least_ms: u64,
    },
    /// If such a calendar step lies between the user's last two messages, or there is only one message.
    Stepped {
        /// The unit of the calendar.
        step: CalendarStep,
        /// The time zone of the calendar.
        zone: Zone,
    },
    /// If the last call and its answer used at least this many tokens, by the provider's count.
    Tokens {
        /// Threshold in tokens.
        at_least: u64,
    },
    /// If the model's last answer has at least this many characters.
    Replied {
        /// Threshold in characters.
        at_least: u64,
    },
    /// If the user's last message contains one of these texts, ignoring case.
    Says(Vec<String>),
    /// If the user's last message matches this pattern.
    Matches(MessagePattern),
    /// If the user's last message is about one of these topics.
    About(Topics),
    /// If tools that match this pattern ended at least this often.
    Called {
        /// Pattern of tool names.
        tool: Pattern,
        /// Threshold in calls.
        at_least: u64,
    },
    /// Behind each call of a tool that matches this pattern whose number, of all such calls, is a multiple of `every`; 0 means
    /// never.
    EveryCalls {
        /// Pattern of tool names.
        tool: Pattern,
        /// Number of calls from one time to the next.
        every: u64,
    },
    /// If tools that match this pattern failed at least this often.
    Failed {
        /// Pattern of tool names.
        tool: Pattern,
        /// Threshold in failed calls.
        at_least: u64,
    },
    /// If a tool that matches this pattern failed at least this often since its last success.
    FailedInARow {
        /// Pattern of tool names.
        tool: Pattern,
        /// Threshold in failed calls.
        at_least: u64,
    },
    /// If the last call that ended was of such a tool and had this outcome.
    Ended {
        /// Pattern of tool names.
        tool: Pattern,
        /// How the call ended.
        outcome: ToolOutcome,
    },
    /// If this name is not used up. It is used up once an answer to a call that showed the reminder is appended.
    Once(String),
    /// If all hold; true if there are none.
    All(Vec<ReminderCondition>),
    /// If any holds; false if there are none.
    Any(Vec<ReminderCondition>),
    /// If the condition does not hold.
    Not(Box<ReminderCondition>),
    /// If the condition holds for the last turns (at most 20) alone. It applies to [`ReminderCondition::Called`],
    /// [`ReminderCondition::Failed`] and [`ReminderCondition::FailedInARow`]; other conditions are unaffected.
    WithinTurns(usize, Box<ReminderCondition>),
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// With a result.
    Succeeded,
    /// With an error.
    Failed,
    /// With a result or an error.
    Any,
}

/// A pattern in the syntax of the `regex` crate.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MessagePattern(Regex);

/// An invalid or too large pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a pattern: {reason}")]
pub struct MessagePatternError {
    /// What is wrong.
    pub reason: String,
}

/// Topics, each given by its keywords. A message is matched to topics with BM25 over these words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Topics {
    /// The keywords of each topic.
    pub topics: Vec<String>,
    /// The score must be above this. 0: one word in common.
    #[serde(default)]
    #[serde(rename = "above")]
    pub min_score: f64,
}

impl ReminderCondition {
    /// Creates a condition that holds once, by this name.
    #[must_use]
    pub fn once(name: impl Into<String>) -> Self {
        Self::Once(name.into())
    }

    /// Holds if the last call and its answer used at least this percentage of a window in tokens.
    #[must_use]
    pub const fn share_of_window(percent: u8, window: u64) -> Self {
        Self::Tokens {
            at_least: (window / 100).saturating_mul(percent as u64),
        }
    }

    /// Holds if both conditions hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::All(vec![self, other])
    }

    /// Holds if either condition holds.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::Any(vec![self, other])
    }

    /// Holds if this condition does not hold.
    #[must_use]
    pub fn negate(self) -> Self {
        Self::Not(Box::new(self))
    }

    /// Holds if this condition holds for the last turns alone.
    #[must_use]
    pub fn within_turns(self, turns: usize) -> Self {
        Self::WithinTurns(turns, Box::new(self))
    }

    /// Returns whether the condition holds.
    #[must_use]
    pub(crate) fn is_met(&self, state: &RemindersState) -> bool {
        self.is_met_for_tools(state, &state.tools)
    }

    /// Evaluates the condition with these counts of tool calls: those of the whole path, or of the last turns.
    fn is_met_for_tools(
        &self,
        state: &RemindersState,
        tools: &BTreeMap<String, ToolCallCount>,
    ) -> bool {
        let of = |tool: &Pattern| {
            let tool = tool.clone();
            tools
                .iter()
                .filter(move |(name, _)| is_tool_match(&tool, name))
                .map(|(_, count)| *count)
        };
        match self {
            Self::Always => true,
            Self::EveryTurns(turns) => {
                *turns > 0 && state.turn > 0 && state.turn.is_multiple_of(*turns)
            }
            Self::FirstTurns(turns) => state.turn <= *turns,
            Self::AfterTurn(turn) => state.turn > *turn,
            Self::Elapsed { at_least_ms } => {
                // Without two messages there is no time between them, so the condition does not hold.
                let between = state.user_message_ms.zip(state.previous_user_message_ms);
                let between = between.map(|(said, before)| said.saturating_sub(before));
                between.is_some_and(|ms| u64::try_from(ms).is_ok_and(|ms| ms >= *at_least_ms))
            }
            Self::Stepped { step, zone } => zone.has_step_passed(*step, state),
            Self::Tokens { at_least } => state.tokens.is_some_and(|tokens| tokens >= *at_least),
            Self::Replied { at_least } => state.reply_chars >= *at_least,
            Self::Says(texts) => {
                let said = state.user_text.to_lowercase();
                texts.iter().any(|text| said.contains(&text.to_lowercase()))
            }
            Self::Matches(pattern) => pattern.0.is_match(&state.user_text),
            Self::About(topics) => topics.is_match(&state.user_text),
            Self::Called { tool, at_least } => {
                of(tool).map(|count| count.ended).sum::<u64>() >= *at_least
            }
            Self::EveryCalls { tool, every } => {
                let ended = state.last_call.as_ref().filter(|_| state.after_tool);
                let is_last = ended.is_some_and(|ended| is_tool_match(tool, &ended.tool));
                let calls: u64 = of(tool).map(|count| count.ended).sum();
                is_last && *every > 0 && calls.is_multiple_of(*every)
            }
            Self::Failed { tool, at_least } => {
                of(tool).map(|count| count.failed).sum::<u64>() >= *at_least
            }
            Self::FailedInARow { tool, at_least } => {
                of(tool).any(|count| count.streak >= *at_least)
            }
            Self::Ended { tool, outcome } => state.last_call.as_ref().is_some_and(|ended| {
                let so = match outcome {
                    ToolOutcome::Any => true,
                    ToolOutcome::Failed => ended.failed,
                    ToolOutcome::Succeeded => !ended.failed,
                };
                so && is_tool_match(tool, &ended.tool)
            }),
            Self::Once(name) => !state.used_names.contains(name),
            Self::All(all) => all.iter().all(|when| when.is_met_for_tools(state, tools)),
            Self::Any(any) => any.iter().any(|when| when.is_met_for_tools(state, tools)),
            Self::Not(when) => !when.is_met_for_tools(state, tools),
            Self::WithinTurns(turns, when) => {
                when.is_met_for_tools(state, &count_tools_of_last_turns(state, *turns))
            }
        }
    }

    /// Collects the names that are used up when the reminder was shown.
    pub(super) fn collect_once_names<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Self::Once(name) => names.push(name),
            Self::All(inner) | Self::Any(inner) => {
                inner.iter().for_each(|when| when.collect_once_names(names))
            }
            Self::Not(inner) | Self::WithinTurns(_, inner) => inner.collect_once_names(names),
            _ => {}
        }
    }

    /// Whether it depends on the text of the user's message.
    pub(super) fn needs_message_text(&self) -> bool {
        match self {
            Self::Says(_) | Self::Matches(_) | Self::About(_) => true,
            Self::All(inner) | Self::Any(inner) => inner.iter().any(Self::needs_message_text),
            Self::Not(inner) | Self::WithinTurns(_, inner) => inner.needs_message_text(),
            _ => false,
        }
    }
}

/// Sums the tool calls of the last turns.
fn count_tools_of_last_turns(
    state: &RemindersState,
    turns: usize,
) -> BTreeMap<String, ToolCallCount> {
    let mut tools: BTreeMap<String, ToolCallCount> = BTreeMap::new();
    let skip = state.turns.len().saturating_sub(turns);
    for (name, count) in state.turns.iter().skip(skip).flat_map(|turn| &turn.tools) {
        let sum = tools.entry(name.clone()).or_default();
        // If every call of a turn failed, the turn continues the streak of the previous one; a success started a new
        // streak.
        sum.streak = match count.failed == count.ended {
            true => sum.streak + count.streak,
            false => count.streak,
        };
        sum.ended += count.ended;
        sum.failed += count.failed;
    }
    tools
}

fn is_tool_match(pattern: &Pattern, tool: &str) -> bool {
    pattern.matches(&ToolId::flat(tool))
}

impl Topics {
    fn is_match(&self, said: &str) -> bool {
        let mut registry = Registry::new();
        for (number, words) in self.topics.iter().enumerate() {
            let topic = Tool::new(ToolDefinition::Function(FunctionTool {
                name: format!("t{number}"),
                description: Some(words.clone()),
                ..FunctionTool::default()
            }));
            if registry.register(topic).is_err() {
                return false;
            }
        }
        let best = registry.index().rank_units(said, 1);
        best.first().is_some_and(|best| best.score > self.min_score)
    }
}

impl MessagePattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// [`MessagePatternError`].
    pub fn new(pattern: &str) -> Result<Self, MessagePatternError> {
        let built = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build();
        built.map(Self).map_err(|error| MessagePatternError {
            reason: error.to_string(),
        })
    }
}

impl PartialEq for MessagePattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl TryFrom<String> for MessagePattern {
    type Error = MessagePatternError;

    fn try_from(pattern: String) -> Result<Self, MessagePatternError> {
        Self::new(&pattern)
    }
}

impl From<MessagePattern> for String {
    fn from(pattern: MessagePattern) -> Self {
        pattern.0.as_str().to_owned()
    }
}
