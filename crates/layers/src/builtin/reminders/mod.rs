//! Reminders: texts that are in a call only while a condition holds.
//!
//! A [`Reminder`] has a content, a [condition](ReminderCondition) and a placement. Whether it is shown depends only on
//! the layer's state, a few figures of the path ([`RemindersState`]): the same call always shows the same reminders,
//! also after a rewind. A reminder of the program's own ([`Reminder::from_fn`]) may also look at the path itself. Nothing is written to the history, so nothing has to be removed from it.
//!
//! Not here: conditions that a model evaluates.

mod clock;
mod condition;
mod path_facts;

pub use clock::{CalendarStep, Zone, ZoneError};
pub use condition::{MessagePattern, MessagePatternError, ReminderCondition, ToolOutcome, Topics};
pub use path_facts::{EndedCall, RemindersState, ToolCallCount, TurnFacts};

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use contexture_compile::{Band, Budget, Contribution, PathItem, Stability};
use contexture_ir::{Fragment, FunctionCall, FunctionCallOutput, Item};

use crate::contract::{
    HookContext, Layer, LayerError, LayerId, LayerSpec, ObservedItems, RecallInput,
};
use path_facts::UserTextRetention;

/// Reminders as a layer, named `reminders`.
///
/// ```
/// use contexture_layers::Layers;
/// use contexture_layers::builtin::reminders::{ReminderPlacement, Reminder, Reminders, ReminderCondition, Zone};
///
/// let failing = ReminderCondition::FailedInARow { tool: "*".into(), at_least: 3 };
/// let reminders = Reminders::new()
///     .with_reminder(Reminder::new("Keep answers short.", ReminderCondition::EveryTurns(5)))
///     .with_reminder(Reminder::new("This tool keeps failing: try another way.", failing).with_placement(ReminderPlacement::AfterTool))
///     .with_reminder(Reminder::clock(Zone::new("Europe/Berlin")?));
/// Layers::new().with_layer(reminders)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reminders {
    id: LayerId,
    reminders: Vec<Reminder>,
}

/// A reminder with its condition and placement.
#[derive(Clone, Debug)]
pub struct Reminder {
    content: ReminderContent,
    condition: ReminderCondition,
    placement: ReminderPlacement,
}

/// A predicate and text of the program's own: no text, no reminder.
type OwnText = dyn Fn(&ReminderInput<'_>) -> Option<String> + Send + Sync;

#[derive(Clone)]
enum ReminderContent {
    Fragment(Fragment),
    Clock(Zone),
    Own(Arc<OwnText>),
}

impl fmt::Debug for ReminderContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fragment(fragment) => f.debug_tuple("Fragment").field(fragment).finish(),
            Self::Clock(zone) => f.debug_tuple("Clock").field(zone).finish(),
            Self::Own(_) => f.write_str("Own"),
        }
    }
}

/// What a reminder of the program's own is decided on, in each call.
#[derive(Clone, Copy, Debug)]
pub struct ReminderInput<'a> {
    /// Facts of the path: turns, counts of tools, times.
    pub state: &'a RemindersState,
    /// Text of the user's last message; empty if there is none.
    pub query: &'a str,
    /// All items of the path, oldest first.
    pub path: &'a [PathItem],
}

impl<'a> ReminderInput<'a> {
    /// Returns the call that ended last, with its output; `None` if the path does not end with the output of a tool.
    #[must_use]
    pub fn last_call(&self) -> Option<(&'a FunctionCall, &'a FunctionCallOutput)> {
        let mut newest = self.path.iter().rev().map(|item| &*item.item);
        let Some(Item::FunctionCallOutput(output)) = newest.next() else {
            return None;
        };
        newest.find_map(|item| match item {
            Item::FunctionCall(call) if call.call_id == output.call_id => Some((call, output)),
            _ => None,
        })
    }
}

/// Where a reminder is placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReminderPlacement {
    /// At the very end of the call.
    #[default]
    Tail,
    /// Directly after the history, and only if that ends with a tool's output.
    AfterTool,
    /// Directly after the history.
    Steer,
}

impl Reminder {
    /// Creates a reminder of a text.
    #[must_use]
    pub fn new(text: impl Into<String>, when: ReminderCondition) -> Self {
        Self::from_fragment(Fragment::new("reminder", text.into()), when)
    }

    /// Creates a reminder of a fragment.
    #[must_use]
    pub const fn from_fragment(fragment: Fragment, when: ReminderCondition) -> Self {
        Self {
            content: ReminderContent::Fragment(fragment),
            condition: when,
            placement: ReminderPlacement::Tail,
        }
    }

    /// Creates a reminder of the time of the user's last message, in every call; with the time since the previous
    /// message if that is at least an hour.
    #[must_use]
    pub const fn clock(zone: Zone) -> Self {
        Self {
            content: ReminderContent::Clock(zone),
            condition: ReminderCondition::Always,
            placement: ReminderPlacement::Tail,
        }
    }

    /// Creates a reminder whose predicate and text are the program's own: it is shown in each call for which `text` gives one, and
    /// where its [condition](Self::with_condition) holds, which is always unless one is set. `text` must be quick, and depend on
    /// its input alone, so that the same call always shows the same. A name of [`ReminderCondition::Once`] is not used up by it.
    ///
    /// ```
    /// use contexture_ir::Output;
    /// use contexture_layers::builtin::reminders::{Reminder, ReminderInput};
    ///
    /// let empty = Reminder::from_fn(|input: &ReminderInput<'_>| {
    ///     let (call, output) = input.last_call()?;
    ///     let is_empty = matches!(&output.output, Output::Text(text) if text.trim() == "[]");
    ///     let found_nothing = call.name == "search" && is_empty;
    ///     found_nothing.then(|| "Nothing was found: search with fewer words.".to_owned())
    /// });
    /// ```
    #[must_use]
    pub fn from_fn(
        text: impl Fn(&ReminderInput<'_>) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            content: ReminderContent::Own(Arc::new(text)),
            condition: ReminderCondition::Always,
            placement: ReminderPlacement::Tail,
        }
    }

    /// Sets the condition.
    #[must_use]
    pub fn with_condition(mut self, when: ReminderCondition) -> Self {
        self.condition = when;
        self
    }

    /// Sets the placement.
    #[must_use]
    pub const fn with_placement(mut self, place: ReminderPlacement) -> Self {
        self.placement = place;
        self
    }

    fn is_visible(&self, state: &RemindersState) -> bool {
        (self.placement != ReminderPlacement::AfterTool || state.after_tool)
            && self.condition.is_met(state)
    }

    fn to_fragment(&self, input: &ReminderInput<'_>) -> Option<Fragment> {
        match &self.content {
            ReminderContent::Fragment(fragment) => Some(fragment.clone()),
            ReminderContent::Clock(zone) => {
                let times = zone.describe_message_times(input.state)?;
                Some(Fragment::new("time", times))
            }
            ReminderContent::Own(text) => Some(Fragment::new("reminder", text(input)?)),
        }
    }
}

impl Reminders {
    /// Creates a layer without reminders.
    #[must_use]
    pub fn new() -> Self {
        Self {
            id: LayerId::built_in("reminders"),
            reminders: Vec::new(),
        }
    }

    /// Adds a reminder, after those there are.
    #[must_use]
    pub fn with_reminder(mut self, reminder: Reminder) -> Self {
        self.reminders.push(reminder);
        self
    }
}

impl Default for Reminders {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Layer for Reminders {
    type State = RemindersState;

    fn spec(&self) -> LayerSpec {
        LayerSpec {
            budget: Budget::at_most(1_000),
            ..LayerSpec::new(self.id.clone()).with_position(Band::Tail, 200, Stability::Volatile)
        }
    }

    /// Starts with the number of turns so far; other facts of an existing conversation are not known.
    async fn init(&self, context: &HookContext) -> Result<RemindersState, LayerError> {
        Ok(RemindersState {
            turn: context.turns,
            ..RemindersState::default()
        })
    }

    async fn recall(
        &self,
        state: &RemindersState,
        call: &RecallInput<'_>,
    ) -> Result<Vec<Contribution>, LayerError> {
        let (mut tail, mut live) = (Vec::new(), Vec::new());
        let input = ReminderInput {
            state,
            query: call.query,
            path: call.path,
        };
        for reminder in self
            .reminders
            .iter()
            .filter(|reminder| reminder.is_visible(state))
        {
            let place = match reminder.placement {
                ReminderPlacement::Tail => &mut tail,
                ReminderPlacement::AfterTool | ReminderPlacement::Steer => &mut live,
            };
            place.extend(reminder.to_fragment(&input));
        }
        let mut said = Vec::new();
        for (band, fragments) in [(Band::Live, live), (Band::Tail, tail)] {
            if !fragments.is_empty() {
                said.push(Contribution {
                    band,
                    ..call.contribution_from_fragments(fragments)
                });
            }
        }
        Ok(said)
    }

    async fn observe(
        &self,
        state: &mut RemindersState,
        seen: &ObservedItems<'_>,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        if seen.items.iter().any(Item::is_model_output) {
            // The state is still the one that the call was made with, so what is visible now is what was shown.
            let shown = self
                .reminders
                .iter()
                .filter(|reminder| reminder.is_visible(state))
                // Whether those gave a text is not known here.
                .filter(|reminder| !matches!(reminder.content, ReminderContent::Own(_)));
            let mut names = Vec::new();
            shown.for_each(|reminder| reminder.condition.collect_once_names(&mut names));
            state
                .used_names
                .extend(names.into_iter().map(str::to_owned));
        }
        let reads = self
            .reminders
            .iter()
            .any(|reminder| reminder.condition.needs_message_text());
        let keeps = if reads {
            UserTextRetention::Text
        } else {
            UserTextRetention::Nothing
        };
        state.record_items(seen.items, seen.usage, context.now_ms, keeps);
        Ok(())
    }
}
