//! The pieces joined to a payload.

use contexture_ir::ContentHash;
use contexture_wire::{Envelope, Format, join_messages, marks};

use crate::block::Class;
use crate::cache::outline::{Lasts, Part};
use crate::contribution::Band;
use crate::count::Tokens;
use crate::cut::Cut;
use crate::element::{Element, Rope};
use crate::frame::Frame;
use crate::history::History;
use crate::passes::lower::Piece;
use crate::passes::place::{Placed, Slot};
use crate::payload::{Head, Payload};
use crate::request::CompileRequest;

/// What of the frame its bytes do not tell.
pub(crate) fn head(
    request: &CompileRequest,
    frame: &Frame,
    slots: &[Slot<'_>],
    placed: &[Placed],
) -> Head {
    let system = slots.iter().zip(placed);
    let system = system.filter(|(slot, _)| slot.band == Band::System);
    Head {
        format: request.dialect.format,
        model: request.model.clone(),
        tools: frame.tools,
        system: system.map(|(_, placed)| placed.text + placed.framing).sum(),
        framing: frame.framing,
    }
}

/// The payload. Each kept piece, and the first of the rest, is joined to the piece before it where both
/// are people's words: there the cut brought together what would have been one message.
pub(crate) fn assemble(
    head: Head,
    envelope: &Envelope,
    before: &[&Piece],
    (cut, history): (&Cut, &History),
    after: &[&Piece],
) -> Payload {
    let format = head.format;
    let mut rope = Rope::default();
    rope.extend(lead(envelope, format));
    let element = |lasts| move |piece: &&Piece| Element::of(piece, format, lasts);
    rope.extend(before.iter().filter_map(element(Lasts::Epoch)));

    let first = history
        .rounds
        .get(cut.round)
        .map(|round| round.pieces.start);
    let rest = first
        .and_then(|first| history.pieces.get(first..))
        .unwrap_or_default();
    let kept = cut.kept.iter().flat_map(|kept| &kept.pieces);
    let mut last: Option<Class> = None;
    for piece in kept.chain(rest.first()) {
        let users = (last, piece.class) == (Some(Class::User), Class::User);
        last = Some(piece.class);
        let Some(element) = Element::of(piece, format, Lasts::Onwards) else {
            continue;
        };
        let earlier = if users { rope.pop_own() } else { None };
        let joined = earlier
            .as_ref()
            .and_then(|earlier| join(format, earlier, &element));
        match joined {
            Some(joined) => rope.push(joined),
            None => rope.extend(earlier.into_iter().chain([element])),
        }
    }
    // Behind its first piece what is settled is shared; the newest round is not.
    let mut newest = rest.get(1..).unwrap_or_default();
    if let Some(place) = first.and_then(|first| history.place(first + 1)) {
        rope.share(&history.settled, place);
        let start = history.rounds.last().map_or(0, |round| round.pieces.start);
        newest = history.pieces.get(start..).unwrap_or_default();
    }
    rope.extend(
        newest
            .iter()
            .filter_map(|piece| Element::of(piece, format, Lasts::Onwards)),
    );
    rope.extend(after.iter().filter_map(element(Lasts::Call)));
    let (before, after) = (envelope.before.as_str(), envelope.after.as_str());
    Payload::new(head, before.into(), rope, after.into())
}

/// The system prompt, where it stands among the messages.
fn lead(envelope: &Envelope, format: Format) -> Option<Element> {
    (!envelope.lead.is_empty()).then(|| Element {
        json: envelope.lead.as_str().into(),
        hash: ContentHash::of(envelope.lead.as_bytes()),
        messages: 0,
        part: Part::System,
        lasts: Lasts::Epoch,
        tokens: Tokens::ZERO,
        blocks: 0,
        can_carry: format == Format::OpenAiChat,
        marks: marks(format, &envelope.lead),
        marked: None,
    })
}

/// Two elements as one message; `None` where the format has no word for it.
fn join(format: Format, first: &Element, second: &Element) -> Option<Element> {
    let json = join_messages(format, &first.json, &second.json)?;
    Some(Element {
        json: json.into(),
        hash: both(first.hash, second.hash),
        messages: (first.messages + second.messages).saturating_sub(1),
        lasts: first.lasts.max(second.lasts),
        tokens: first.tokens + second.tokens,
        blocks: first.blocks + second.blocks,
        marks: [first.marks.as_slice(), &second.marks].concat(),
        ..second.clone()
    })
}

fn both(first: ContentHash, second: ContentHash) -> ContentHash {
    ContentHash::of(&[*first.as_bytes(), *second.as_bytes()].concat())
}
