//! Reminders: words that stand in a call when something is so, and in no other.
//!
//! A [`Reminder`] is what it says, [when](When) it is shown, and where. Whether it is shown follows from the layer's
//! state alone, which is a few figures of the path ([`RemindersState`]): what a call showed, the same call shows again,
//! and a rewind brings it back. Nothing is written into the history, so nothing has to be taken out of it.
//!
//! Not here: asking a model whether something is so.

mod clock;
mod facts;
mod when;

pub use clock::{BadZone, Step, Zone};
pub use facts::{Count, Ended, RemindersState, TurnFacts};
pub use when::{BadPattern, SaidPattern, ToolOutcome, Topics, When};

use async_trait::async_trait;
use contexture_compile::{Band, Budget, Contribution, Stability};
use contexture_ir::{Fragment, Item};

use crate::context::HookContext;
use crate::error::LayerError;
use crate::id::LayerId;
use crate::layer::{Layer, Observed};
use crate::recall::Recall;
use crate::spec::LayerSpec;
use facts::Keeps;

/// Reminders as a layer, named `reminders`.
///
/// ```
/// use contexture_layers::Layers;
/// use contexture_layers::builtin::reminders::{Place, Reminder, Reminders, When, Zone};
///
/// let failing = When::FailedInARow { tool: "*".into(), at_least: 3 };
/// let reminders = Reminders::new()
///     .with(Reminder::new("Keep answers short.", When::EveryTurns(5)))
///     .with(Reminder::new("This tool keeps failing: try another way.", failing).at(Place::AfterTool))
///     .with(Reminder::clock(Zone::new("Europe/Berlin")?));
/// Layers::new().with(reminders)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reminders {
    id: LayerId,
    reminders: Vec<Reminder>,
}

/// Something to be reminded of.
#[derive(Clone, Debug)]
pub struct Reminder {
    says: Says,
    when: When,
    place: Place,
}

#[derive(Clone, Debug)]
enum Says {
    Fragment(Fragment),
    Clock(Zone),
}

/// Where a reminder stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Place {
    /// At the very end.
    #[default]
    Tail,
    /// Right behind the history, and only where it ends with a tool's output.
    AfterTool,
    /// Right behind the history, whatever it ends with.
    Steer,
}

impl Reminder {
    /// This text.
    #[must_use]
    pub fn new(text: impl Into<String>, when: When) -> Self {
        Self::fragment(Fragment::new("reminder", text.into()), when)
    }

    /// This fragment.
    #[must_use]
    pub const fn fragment(fragment: Fragment, when: When) -> Self {
        Self {
            says: Says::Fragment(fragment),
            when,
            place: Place::Tail,
        }
    }

    /// The time of the person's last message, in every call; how long ago the one before was, from an hour on.
    #[must_use]
    pub const fn clock(zone: Zone) -> Self {
        Self {
            says: Says::Clock(zone),
            when: When::Always,
            place: Place::Tail,
        }
    }

    /// The same, shown then.
    #[must_use]
    pub fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    /// The same, standing there.
    #[must_use]
    pub const fn at(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    fn is_shown(&self, state: &RemindersState) -> bool {
        (self.place != Place::AfterTool || state.after_tool) && self.when.holds(state)
    }

    fn said(&self, state: &RemindersState) -> Option<Fragment> {
        match &self.says {
            Says::Fragment(fragment) => Some(fragment.clone()),
            Says::Clock(zone) => Some(Fragment::new("time", zone.told(state)?)),
        }
    }
}

impl Reminders {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self {
            id: LayerId::built_in("reminders"),
            reminders: Vec::new(),
        }
    }

    /// One more.
    #[must_use]
    pub fn with(mut self, reminder: Reminder) -> Self {
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
            ..LayerSpec::new(self.id.clone()).at(Band::Tail, 200, Stability::Volatile)
        }
    }

    /// Begins in the middle of a conversation with the turns there were; the rest is not known.
    async fn init(&self, context: &HookContext) -> Result<RemindersState, LayerError> {
        Ok(RemindersState {
            turn: context.turns,
            ..RemindersState::default()
        })
    }

    async fn recall(
        &self,
        state: &RemindersState,
        call: &Recall<'_>,
    ) -> Result<Vec<Contribution>, LayerError> {
        let (mut tail, mut live) = (Vec::new(), Vec::new());
        for reminder in self
            .reminders
            .iter()
            .filter(|reminder| reminder.is_shown(state))
        {
            let place = match reminder.place {
                Place::Tail => &mut tail,
                Place::AfterTool | Place::Steer => &mut live,
            };
            place.extend(reminder.said(state));
        }
        let mut said = Vec::new();
        for (band, fragments) in [(Band::Live, live), (Band::Tail, tail)] {
            if !fragments.is_empty() {
                said.push(Contribution {
                    band,
                    ..call.say_fragments(fragments)
                });
            }
        }
        Ok(said)
    }

    async fn observe(
        &self,
        state: &mut RemindersState,
        seen: &Observed<'_>,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        if seen.items.iter().any(Item::is_model_output) {
            // The state is still the one that the call was made with: what it shows is what was shown.
            let shown = self
                .reminders
                .iter()
                .filter(|reminder| reminder.is_shown(state));
            let mut names = Vec::new();
            shown.for_each(|reminder| reminder.when.uses_up(&mut names));
            state.once.extend(names.into_iter().map(str::to_owned));
        }
        let reads = self.reminders.iter().any(|reminder| reminder.when.reads());
        let keeps = if reads { Keeps::Text } else { Keeps::Nothing };
        state.see(seen.items, seen.usage, context.now_ms, keeps);
        Ok(())
    }
}
