//! Contributions in their places.
//!
//! The order of the payload is system, anchor, history, live, tail; within a band by the
//! contributions' order. What changes with every call stands behind the history as blocks of its own,
//! whatever its band, so that it never changes earlier bytes.

use std::sync::Arc;

use contexture_ir::{ContentHash, Item, Message, Role};
use contexture_wire::{BEGINNING, CONTINUE, Dialect, Format, RepairRules};

use crate::block::Class;
use crate::contribution::{Band, Content, Contribution, Stability};
use crate::count::Tokens;
use crate::entry::Entry;
use crate::history::History;
use crate::memo::Memo;
use crate::passes::lower::{Piece, Press};
use crate::passes::repair::repair;
use crate::refusal::Refusal;
use crate::report::document::Repair;
use crate::request::CompileRequest;

/// A contribution in its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot<'a> {
    pub(crate) contribution: &'a Contribution,
    pub(crate) band: Band,
}

impl<'a> Slot<'a> {
    /// A contribution where it asks to stand.
    pub(crate) const fn in_its_band(contribution: &'a Contribution) -> Self {
        Self {
            contribution,
            band: contribution.band,
        }
    }
}

/// A contribution as it will be sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Placed {
    /// How many of its units; see [`units`].
    pub(crate) units: usize,
    /// Text for the system prompt.
    pub(crate) system: Option<String>,
    /// Whole messages for the system prompt.
    pub(crate) instructions: Vec<Message>,
    /// For the array of messages.
    pub(crate) pieces: Vec<Piece>,
    pub(crate) repairs: Vec<Repair>,
    /// What the model reads.
    pub(crate) text: Tokens,
    /// What the format adds.
    pub(crate) framing: Tokens,
}

impl Placed {
    /// What it takes of the budget.
    pub(crate) const fn weight(&self) -> u64 {
        self.text.high.saturating_add(self.framing.high)
    }
}

/// Contributions in payload order.
pub(crate) fn arrange(contributions: &[Contribution]) -> Vec<Slot<'_>> {
    let mut slots: Vec<Slot<'_>> = contributions
        .iter()
        .map(|contribution| Slot {
            contribution,
            band: band(contribution),
        })
        .collect();
    slots.sort_by_key(|slot| (slot.band, slot.contribution.order));
    slots
}

fn band(contribution: &Contribution) -> Band {
    let volatile = contribution.stability == Stability::Volatile;
    match (contribution.band, &contribution.content) {
        (Band::System | Band::Anchor, _) if volatile => Band::Tail,
        (Band::System, Content::Items(items))
            if !items.iter().all(|item| matches!(item, Item::Message(_))) =>
        {
            Band::Anchor
        }
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
pub(crate) fn bridges(
    history: &History,
    request: &CompileRequest,
    slots: &[Slot<'_>],
    whole: &[Placed],
) -> Vec<Contribution> {
    if !matches!(request.dialect.format, Format::Anthropic | Format::Gemini) {
        return Vec::new();
    }
    let followed = slots.iter().zip(whole).any(|(slot, placed)| {
        let spoken = placed.pieces.iter().any(|piece| piece.elements() > 0);
        slot.contribution.is_required() && slot.band > Band::History && spoken
    });
    let (first, last) = history.ends();
    // Whatever is cut: what is kept of it may begin with the model, and what must be sent may be silent.
    let begun = history
        .kept()
        .first()
        .is_some_and(|kept| kept.begins_with_user());
    let opens = first == Some(Class::Model) || (first.is_some() && !begun);
    let ends = last == Some(Class::Model) || (last.is_some() && history.ends_silent());
    let closes = ends && !followed && !request.prefill;
    let bridge = |source, band, words| {
        let message = Item::from(Message::text(Role::User, words));
        Contribution::new(source, band, Content::Items(vec![message])).pinned()
    };
    let opening = opens.then(|| bridge("opening", Band::Anchor, BEGINNING));
    let closing = closes.then(|| bridge("closing", Band::Tail, CONTINUE));
    opening.into_iter().chain(closing).collect()
}

/// Into how many parts a contribution may be cut.
pub(crate) fn units(content: &Content) -> usize {
    match content {
        Content::Texts(texts) => texts.len(),
        Content::Fragments { fragments, .. } => fragments.len(),
        Content::Text(_) | Content::Instructions(_) | Content::Items(_) => 1,
    }
}

/// The contribution with its first `units` parts.
pub(crate) fn place(
    slot: &Slot<'_>,
    units: usize,
    press: &Press<'_>,
    memo: &mut Memo,
) -> Result<Placed, Refusal> {
    let body = body(slot, units)?;
    let mut placed = match (slot.band, body) {
        (_, Body::Text(text)) if text.is_empty() => Placed::default(),
        (Band::System, Body::Text(text)) => Placed {
            text: press.text(&text, memo),
            system: Some(text),
            ..Placed::default()
        },
        (Band::System, Body::Messages(messages)) => Placed {
            text: messages
                .iter()
                .map(|message| press.parts(&message.content))
                .sum(),
            instructions: messages,
            ..Placed::default()
        },
        (_, Body::Text(text)) => {
            let message = Message::text(host_role(slot.band, press), text);
            pieces(&[message.into()], press, memo)
        }
        (_, Body::Messages(messages)) => {
            let items: Vec<Item> = messages.into_iter().map(Item::from).collect();
            pieces(&items, press, memo)
        }
        (_, Body::Items(items)) => pieces(items, press, memo),
    };
    placed.units = units;
    Ok(placed)
}

/// The longest beginning of a contribution that takes at most `grant`; empty if not even one part
/// does.
pub(crate) fn fit(
    slot: &Slot<'_>,
    whole: Placed,
    grant: u64,
    press: &Press<'_>,
    memo: &mut Memo,
) -> Result<Placed, Refusal> {
    if whole.weight() <= grant {
        return Ok(whole);
    }
    let (mut fits, mut too_many) = (0, whole.units);
    let mut best = Placed::default();
    while too_many - fits > 1 {
        let middle = fits + (too_many - fits) / 2;
        let placed = place(slot, middle, press, memo)?;
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
/// Before the history it is a user where the user must speak first: there a system message is no
/// beginning.
fn host_role(band: Band, press: &Press<'_>) -> Role {
    let Dialect {
        format, mid_system, ..
    } = press.dialect();
    let first = band <= Band::Anchor && RepairRules::for_format(format).user_first;
    if mid_system && !first {
        Role::System
    } else {
        Role::User
    }
}

enum Body<'a> {
    Text(String),
    Messages(Vec<Message>),
    Items(&'a [Item]),
}

fn body<'a>(slot: &Slot<'a>, units: usize) -> Result<Body<'a>, Refusal> {
    Ok(match &slot.contribution.content {
        Content::Text(text) => Body::Text(text.clone()),
        Content::Texts(texts) => Body::Text(texts.get(..units).unwrap_or(texts).join("\n\n")),
        Content::Fragments {
            fragments,
            renderer,
        } => {
            let some = fragments.get(..units).unwrap_or(fragments);
            let text = renderer.render(some).map_err(|error| Refusal::Render {
                source_name: slot.contribution.source.clone(),
                what: error.to_string(),
            })?;
            Body::Text(text)
        }
        Content::Instructions(messages) => Body::Messages(messages.clone()),
        Content::Items(items) if slot.band == Band::System => Body::Messages(
            items
                .iter()
                .filter_map(|item| match item {
                    Item::Message(message) => Some(message.clone()),
                    _ => None,
                })
                .collect(),
        ),
        Content::Items(items) => Body::Items(items),
    })
}

fn pieces(items: &[Item], press: &Press<'_>, memo: &mut Memo) -> Placed {
    let format = press.dialect().format;
    let entries = items.iter().enumerate().map(|(at, item)| {
        let hash = ContentHash::of(item.to_json().as_bytes());
        Entry::new(Arc::new(item.clone()), hash, at)
    });
    let rules = RepairRules {
        user_first: false,
        user_last: false,
        ..RepairRules::for_format(format)
    };
    let mut repaired = repair(entries.collect(), &rules);
    // Its indexes are the contribution's, not the path's.
    for repair in &mut repaired.repairs {
        repair.index = None;
    }
    let pieces = press.press(&repaired.entries, memo);
    Placed {
        text: pieces.iter().map(|piece| piece.text).sum(),
        framing: pieces.iter().map(|piece| piece.framing).sum(),
        pieces,
        repairs: repaired.repairs,
        ..Placed::default()
    }
}
