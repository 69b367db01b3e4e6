//! Contributions in their places.
//!
//! The order of the payload is system, anchor, history, live, tail; within a band by the
//! contributions' order. What changes with every call stands behind the history as blocks of its own,
//! whatever its band, so that it never changes earlier bytes.

use std::sync::Arc;

use contexture_ir::{ContentHash, Item, Message, Role};
use contexture_tokens::TokenBounds;
use contexture_wire::{BEGINNING, CONTINUE, RepairRules, Thinking};

use crate::blocks::{BlockKind, LoweredBlock, Lowerer, Memo, ViewEntry, repair_entries};
use crate::error::Refusal;
use crate::history::History;
use crate::input::{Band, Content, Contribution, Stability};
use contexture_report::Repair;

/// A contribution in its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PayloadSlot<'a> {
    pub(crate) contribution: &'a Contribution,
    pub(crate) band: Band,
    /// Whether it stands behind a history that ends on the user's side.
    pub(crate) follows_user: bool,
}

impl<'a> PayloadSlot<'a> {
    /// A contribution where it asks to stand.
    pub(crate) const fn in_own_band(contribution: &'a Contribution) -> Self {
        Self {
            contribution,
            band: contribution.band,
            follows_user: false,
        }
    }
}

/// A contribution as it will be sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlacedContribution {
    /// How many of its units; see [`unit_count`].
    pub(crate) units: usize,
    /// Text for the system prompt.
    pub(crate) system: Option<String>,
    /// Whole messages for the system prompt.
    pub(crate) instructions: Vec<Message>,
    /// For the array of messages.
    pub(crate) blocks: Vec<LoweredBlock>,
    pub(crate) repairs: Vec<Repair>,
    /// What the model reads.
    pub(crate) text: TokenBounds,
    /// What the format adds.
    pub(crate) framing: TokenBounds,
}

impl PlacedContribution {
    /// What it takes of the budget.
    pub(crate) const fn weight(&self) -> u64 {
        self.text.high.saturating_add(self.framing.high)
    }
}

/// Contributions in payload order. `ends_with_user` says whether the history ends on the user's side.
pub(crate) fn arrange_slots(
    contributions: &[Contribution],
    ends_with_user: bool,
) -> Vec<PayloadSlot<'_>> {
    let mut slots: Vec<PayloadSlot<'_>> = contributions
        .iter()
        .map(|contribution| {
            let band = effective_band(contribution);
            PayloadSlot {
                contribution,
                band,
                follows_user: ends_with_user && band > Band::History,
            }
        })
        .collect();
    // A stable sort: equal orders keep the order in which the host gave them.
    slots.sort_by_key(|slot| (slot.band, slot.contribution.order));
    slots
}

fn effective_band(contribution: &Contribution) -> Band {
    let volatile = contribution.stability == Stability::Volatile;
    match (contribution.band, &contribution.content) {
        // What changes with each call would break the cached prefix at its beginning.
        (Band::System | Band::Anchor, _) if volatile => Band::Tail,
        (Band::System, Content::Items(items))
            if !items.iter().all(|item| matches!(item, Item::Message(_))) =>
        {
            Band::Anchor
        }
        // Nothing is inserted into the history: items of the path stay where they were sent before.
        (Band::History, _) => Band::Live,
        (band, _) => band,
    }
}

/// The words that open a request which would begin with the model, and those that close one which
/// would end with it, for models that must be spoken to.
///
/// Repair does this for whole histories by their items; here it is known what the target can say of
/// them. Taking the model's words away, or passing them for the beginning of its answer, would change
/// what was said; a message of its own leaves every byte before it alone.
pub(crate) fn bridge_contributions(
    history: &History,
    rules: RepairRules,
    slots: &[PayloadSlot<'_>],
    whole: &[PlacedContribution],
) -> Vec<Contribution> {
    // The others take a history that begins or ends with the model.
    if !rules.user_first {
        return Vec::new();
    }
    let followed = slots.iter().zip(whole).any(|(slot, placed)| {
        let spoken = placed.blocks.iter().any(|piece| piece.element_count() > 0);
        slot.contribution.is_required() && slot.band > Band::History && spoken
    });
    let (first, last) = history.first_and_last_kind();
    // Whatever is cut: what is kept of it may begin with the model, and what must be sent may be silent.
    let begun = history
        .required_messages()
        .first()
        .is_some_and(|kept| kept.begins_with_user());
    let opens = first == Some(BlockKind::Model) || (first.is_some() && !begun);
    let ends = last == Some(BlockKind::Model) || (last.is_some() && history.is_last_round_empty());
    // A required contribution after the history speaks last anyway; one that may be dropped for want
    // of room does not count.
    let closes = ends && !followed && rules.user_last;
    let opening = opens.then(|| bridge("opening", Band::Anchor, BEGINNING));
    let closing = closes.then(|| bridge("closing", Band::Tail, CONTINUE));
    opening.into_iter().chain(closing).collect()
}

/// A message of the user that is never cut.
fn bridge(source: &str, band: Band, words: &str) -> Contribution {
    let message = Item::from(Message::text(Role::User, words));
    Contribution::new(source, band, Content::Items(vec![message])).into_pinned()
}

/// The system prompt of a payload from which nothing was cut, as one text: the contributions that stand in it, in payload
/// order, with a blank line between.
///
/// ```
/// use contexture_compile::{Contribution, system_prompt};
/// let said = [Contribution::tail("a", "At the end."), Contribution::system("b", "Be brief.")];
/// assert_eq!(system_prompt(&said)?, "Be brief.");
/// # Ok::<(), contexture_compile::Refusal>(())
/// ```
///
/// # Errors
/// [`Refusal::Render`] for fragments that cannot be rendered.
pub fn system_prompt(contributions: &[Contribution]) -> Result<String, Refusal> {
    let mut texts: Vec<String> = Vec::new();
    // What the history ends with decides only about what stands behind it.
    let slots = arrange_slots(contributions, false).into_iter();
    for slot in slots.filter(|slot| slot.band == Band::System) {
        match render_body(&slot, unit_count(&slot.contribution.content))? {
            ContributionBody::Text(text) => texts.push(text),
            ContributionBody::Messages(messages) => {
                texts.extend(
                    messages
                        .into_iter()
                        .map(|message| Item::from(message).text()),
                );
            }
            // Items of other kinds stand behind the system prompt.
            ContributionBody::Items(_) => {}
        }
    }
    texts.retain(|text| !text.is_empty());
    Ok(texts.join("\n\n"))
}

/// Into how many parts a contribution may be cut.
pub(crate) fn unit_count(content: &Content) -> usize {
    match content {
        Content::Texts(texts) => texts.len(),
        Content::Fragments { fragments, .. } => fragments.len(),
        Content::Text(_) | Content::Instructions(_) | Content::Items(_) => 1,
    }
}

/// The contribution with its first `units` parts.
pub(crate) fn place_contribution(
    slot: &PayloadSlot<'_>,
    units: usize,
    lowerer: &Lowerer<'_>,
    memo: &mut Memo,
) -> Result<PlacedContribution, Refusal> {
    let body = render_body(slot, units)?;
    let mut placed = match (slot.band, body) {
        // An empty message is refused by several providers.
        (_, ContributionBody::Text(text)) if text.is_empty() => PlacedContribution::default(),
        (Band::System, ContributionBody::Text(text)) => PlacedContribution {
            text: lowerer.count_text(&text, memo),
            system: Some(text),
            ..PlacedContribution::default()
        },
        (Band::System, ContributionBody::Messages(messages)) => PlacedContribution {
            text: messages
                .iter()
                .map(|message| lowerer.count_parts(&message.content))
                .sum(),
            instructions: messages,
            ..PlacedContribution::default()
        },
        (_, ContributionBody::Text(text)) => {
            let message = Message::text(host_role(slot, lowerer), text);
            place_items(&[message.into()], slot, lowerer, memo)
        }
        (_, ContributionBody::Messages(messages)) => {
            let items: Vec<Item> = messages.into_iter().map(Item::from).collect();
            place_items(&items, slot, lowerer, memo)
        }
        (_, ContributionBody::Items(items)) => place_items(items, slot, lowerer, memo),
    };
    placed.units = units;
    Ok(placed)
}

/// The longest beginning of a contribution that takes at most `grant`; empty if not even one part
/// does.
pub(crate) fn fit_contribution(
    slot: &PayloadSlot<'_>,
    whole: PlacedContribution,
    grant: u64,
    lowerer: &Lowerer<'_>,
    memo: &mut Memo,
) -> Result<PlacedContribution, Refusal> {
    if whole.weight() <= grant {
        return Ok(whole);
    }
    // Bisection: weight grows with the number of parts, and rendering and counting each candidate is
    // what costs.
    let (mut fits, mut too_many) = (0, whole.units);
    let mut best = PlacedContribution::default();
    while too_many - fits > 1 {
        let middle = fits + (too_many - fits) / 2;
        let placed = place_contribution(slot, middle, lowerer, memo)?;
        if placed.weight() <= grant {
            (fits, best) = (middle, placed);
        } else {
            too_many = middle;
        }
    }
    Ok(best)
}

/// Who speaks for the host inside the array of messages.
///
/// Where the sides must take turns it is a user, except behind a user's turn: elsewhere a system message is refused.
fn host_role(slot: &PayloadSlot<'_>, lowerer: &Lowerer<'_>) -> Role {
    let misplaced = lowerer.repair_rules().user_first && !slot.follows_user;
    if lowerer.dialect().mid_system && !misplaced {
        Role::System
    } else {
        Role::User
    }
}

enum ContributionBody<'a> {
    Text(String),
    Messages(Vec<Message>),
    Items(&'a [Item]),
}

fn render_body<'a>(slot: &PayloadSlot<'a>, units: usize) -> Result<ContributionBody<'a>, Refusal> {
    Ok(match &slot.contribution.content {
        Content::Text(text) => ContributionBody::Text(text.clone()),
        Content::Texts(texts) => {
            ContributionBody::Text(texts.get(..units).unwrap_or(texts).join("\n\n"))
        }
        Content::Fragments {
            fragments,
            renderer,
        } => {
            let some = fragments.get(..units).unwrap_or(fragments);
            let text = renderer.render(some).map_err(|error| Refusal::Render {
                source_name: slot.contribution.source.clone(),
                reason: error.to_string(),
            })?;
            ContributionBody::Text(text)
        }
        Content::Instructions(messages) => ContributionBody::Messages(messages.clone()),
        Content::Items(items) if slot.band == Band::System => ContributionBody::Messages(
            items
                .iter()
                .filter_map(|item| match item {
                    Item::Message(message) => Some(message.clone()),
                    _ => None,
                })
                .collect(),
        ),
        Content::Items(items) => ContributionBody::Items(items),
    })
}

fn place_items(
    items: &[Item],
    slot: &PayloadSlot<'_>,
    lowerer: &Lowerer<'_>,
    memo: &mut Memo,
) -> PlacedContribution {
    let entries = items.iter().enumerate().map(|(at, item)| {
        let hash = ContentHash::of(item.to_json().as_bytes());
        ViewEntry::new(Arc::new(item.clone()), hash, at)
    });
    // Who speaks first and last, and with which thoughts, is a matter of the whole request, not of one contribution.
    let rules = RepairRules {
        user_first: false,
        user_last: false,
        prefill: false,
        thinking: Thinking::Off,
        ..lowerer.repair_rules()
    };
    let mut repaired = repair_entries(entries.collect(), &rules);
    // Its indexes are the contribution's, not the path's.
    for repair in &mut repaired.repairs {
        repair.index = None;
    }
    let pieces = lowerer.lower_items(&repaired.entries, slot.follows_user, memo);
    PlacedContribution {
        text: pieces.iter().map(|piece| piece.text).sum(),
        framing: pieces.iter().map(|piece| piece.framing).sum(),
        blocks: pieces,
        repairs: repaired.repairs,
        ..PlacedContribution::default()
    }
}
