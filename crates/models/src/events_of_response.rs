//! The stream events that a whole response would have had.

use std::collections::VecDeque;

use contexture_ir::{Item, Part};
use contexture_wire::{Format, PieceKind, StreamEvent, lift};

/// The events of a whole answer, each item in one piece; none of a body that is no answer.
pub(crate) fn events_of_response(format: Format, body: &str) -> VecDeque<StreamEvent> {
    let mut events = VecDeque::new();
    // A body that cannot be read has no events; the caller still gets the body itself, and its error.
    let Ok(lifted) = lift(format, body) else {
        return events;
    };
    let info = lifted.transcript.response.unwrap_or_default();
    events.push_back(StreamEvent::Started {
        id: info.id,
        model: lifted.transcript.model,
    });
    // Numbered by place, as a live stream numbers its pieces.
    for (piece, item) in lifted.transcript.items.iter().enumerate() {
        let kind = piece_kind(item);
        events.push_back(StreamEvent::ItemAdded { piece, kind });
        events.extend(item_deltas(piece, item));
        events.push_back(StreamEvent::ItemDone { piece });
    }
    // Usage before the end, since readers stop at `Finished`.
    events.extend(info.usage.map(StreamEvent::Usage));
    events.push_back(StreamEvent::Finished {
        finish: info.finish,
    });
    events
}

fn piece_kind(item: &Item) -> PieceKind {
    match item {
        Item::Message(_) => PieceKind::Message,
        Item::Reasoning(_) => PieceKind::Reasoning,
        Item::FunctionCall(call) => PieceKind::Call {
            id: Some(call.call_id.clone()),
            name: Some(call.name.clone()),
        },
        other => PieceKind::Other(other.kind().to_owned()),
    }
}

fn item_deltas(piece: usize, item: &Item) -> Vec<StreamEvent> {
    let (text, thought) = (
        |delta| StreamEvent::TextDelta { piece, delta },
        |delta| StreamEvent::ReasoningDelta { piece, delta },
    );
    let words = |parts: &[Part]| -> Vec<String> {
        let words = parts.iter().filter_map(Part::as_text);
        words.map(str::to_owned).collect()
    };
    match item {
        Item::Message(message) => message
            .content
            .iter()
            .filter_map(|part| match part {
                Part::Refusal(refusal) => {
                    let delta = refusal.text.clone();
                    Some(StreamEvent::RefusalDelta { piece, delta })
                }
                part => part.as_text().map(str::to_owned).map(text),
            })
            .collect(),
        // Summary first: streams send it while the model is still thinking.
        Item::Reasoning(item) => {
            let content = item.content.as_deref().unwrap_or_default();
            let summary = words(&item.summary).into_iter();
            let summary = summary.map(|delta| StreamEvent::SummaryDelta { piece, delta });
            let content = words(content).into_iter().map(thought);
            summary.chain(content).collect()
        }
        Item::FunctionCall(call) => vec![StreamEvent::ArgumentsDelta {
            piece,
            delta: call.arguments.clone(),
        }],
        // Other items have no text that a stream would show piece by piece.
        _ => Vec::new(),
    }
}
