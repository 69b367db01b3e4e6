//! The pieces joined to a payload.

use std::sync::Arc;

use contexture_ir::ContentHash;
use contexture_prompt_cache::{RequestPart, SegmentStability};
use contexture_tokens::TokenBounds;
use contexture_wire::{Envelope, Format, join_messages, markers, put_host_last};

use crate::blocks::{BlockKind, Element, LoweredBlock, Rope};
use crate::contributions::{PayloadSlot, PlacedContribution, RequestOverhead};
use crate::history::{History, TrimPoint};
use crate::input::{Band, CompileRequest};
use crate::payload::body::{Payload, PayloadHead};

/// What of the frame its bytes do not tell.
pub(crate) fn payload_head(
    request: &CompileRequest,
    frame: &RequestOverhead,
    slots: &[PayloadSlot<'_>],
    placed: &[PlacedContribution],
) -> PayloadHead {
    let system = slots.iter().zip(placed);
    let system = system.filter(|(slot, _)| slot.band == Band::System);
    PayloadHead {
        format: request.dialect.format,
        model: request.model.clone(),
        tools: frame.tools,
        system: system.map(|(_, placed)| placed.text + placed.framing).sum(),
        framing: frame.framing,
    }
}

/// The payload. Each kept piece, and the first of the rest, is joined to the piece before it where both
/// are people's words: there the cut brought together what would have been one message.
pub(crate) fn assemble_payload(
    head: PayloadHead,
    envelope: &Envelope,
    [before, after]: &[Vec<&LoweredBlock>; 2],
    (cut, history): (&TrimPoint, &History),
) -> Payload {
    let format = head.format;
    let mut rope = Rope::default();
    rope.extend(system_element(envelope, format));
    let element = |lasts| move |piece: &&LoweredBlock| Element::from_block(piece, format, lasts);
    rope.extend(before.iter().filter_map(element(SegmentStability::Epoch)));

    let first = history
        .rounds
        .get(cut.round)
        .map(|round| round.blocks.start);
    let rest = first
        .and_then(|first| history.blocks.get(first..))
        .unwrap_or_default();
    // Only the seam between kept messages and the rest can bring two user messages together:
    // everything else was adjacent when it was lowered.
    let kept = cut.kept.iter().flat_map(|kept| &kept.blocks);
    let mut last: Option<BlockKind> = None;
    for piece in kept.chain(rest.first()) {
        // Providers with strict roles would refuse, or merge silently and count otherwise.
        let users = (last, piece.class) == (Some(BlockKind::User), BlockKind::User);
        last = Some(piece.class);
        let Some(element) = Element::from_block(piece, format, SegmentStability::Onwards) else {
            continue;
        };
        // Only an own element can be rewritten: shared ones belong to other payloads too.
        let earlier = if users { rope.pop_own() } else { None };
        let joined = earlier
            .as_ref()
            .and_then(|earlier| join_elements(format, earlier, &element));
        match joined {
            Some(joined) => rope.push(joined),
            None => rope.extend(earlier.into_iter().chain([element])),
        }
    }
    // Behind its first piece what is settled is shared; the newest round is not.
    // The first block of the rest was handled above, as it may have been joined.
    let mut newest = rest.get(1..).unwrap_or_default();
    if let Some(place) = first.and_then(|first| history.frozen_element_index(first + 1)) {
        rope.extend_shared(&history.frozen, place);
        let start = history.rounds.last().map_or(0, |round| round.blocks.start);
        newest = history.blocks.get(start..).unwrap_or_default();
    }
    rope.extend(
        newest
            .iter()
            .filter_map(|piece| Element::from_block(piece, format, SegmentStability::Onwards)),
    );
    for next in after.iter().filter_map(element(SegmentStability::Call)) {
        // The host's words are refused before those of a user.
        let earlier = rope.pop_own();
        let joined = earlier.as_ref().and_then(|earlier| {
            let messages = put_host_last(format, &earlier.json, &next.json)?;
            let json = messages.join(",");
            Some(joined_element(earlier, &next, json, messages.len()))
        });
        match joined {
            Some(joined) => rope.push(joined),
            None => rope.extend(earlier.into_iter().chain([next])),
        }
    }
    rope.join_messages(format);
    let totals = rope.totals(history.frozen.totals(rope.shared_range()));
    let around = (
        envelope.before.as_str().into(),
        envelope.after.as_str().into(),
    );
    Payload::new(Arc::new(head), around, (rope, totals))
}

/// The system prompt, where it stands among the messages.
fn system_element(envelope: &Envelope, format: Format) -> Option<Element> {
    (!envelope.lead.is_empty()).then(|| Element {
        json: envelope.lead.as_str().into(),
        hash: ContentHash::of(envelope.lead.as_bytes()),
        messages: 0,
        part: RequestPart::System,
        lasts: SegmentStability::Epoch,
        tokens: TokenBounds::ZERO,
        blocks: 0,
        can_carry: format.spec().structure().lead_markers,
        marks: markers(format, &envelope.lead),
        marked: None,
        side: None,
        continues: None,
    })
}

/// Two elements as one message; `None` where the format has no word for it.
fn join_elements(format: Format, first: &Element, second: &Element) -> Option<Element> {
    let json = join_messages(format, &first.json, &second.json)?;
    // Two messages became one.
    let messages = (first.messages + second.messages).saturating_sub(1);
    Some(joined_element(first, second, json, messages))
}

fn joined_element(first: &Element, second: &Element, json: String, messages: usize) -> Element {
    Element {
        messages,
        json: json.into(),
        hash: combine_hashes(first.hash, second.hash),
        // The joined message lasts as long as its shorter-lived half.
        lasts: first.lasts.max(second.lasts),
        tokens: first.tokens + second.tokens,
        blocks: first.blocks + second.blocks,
        marks: [first.marks.as_slice(), &second.marks].concat(),
        ..second.clone()
    }
}

fn combine_hashes(first: ContentHash, second: ContentHash) -> ContentHash {
    ContentHash::of(&[*first.as_bytes(), *second.as_bytes()].concat())
}
