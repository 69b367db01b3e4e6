//! Deltas: pieces of answers that are still coming.

use contexture::wire::{PieceKind, StreamEvent};
use serde::Serialize;
use utoipa::ToSchema;

use crate::schema::DeltaKindSchema;

/// A piece of an answer that is still being received. Nothing of the answer is stored yet, and each piece is sent only
/// once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct DeltaDocument {
    /// Kind of the piece, in the words of Open Responses; `response.created` voids all earlier pieces of this answer.
    #[schema(value_type = DeltaKindSchema)]
    pub kind: &'static str,
    /// Id of the request that is answered, as in the header `x-contexture-request`.
    pub request: String,
    /// Name of the branch that the request is on.
    pub branch: String,
    /// Index of the item within the answer, from 0; absent for kinds that concern the entire answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub piece: Option<usize>,
    /// Text that this piece adds to the item; present for kinds that end in `.delta`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<String>,
    /// Type of an item that begins: `message`, `reasoning`, `call`, or the provider's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// Name of the tool, for a call that begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

impl DeltaDocument {
    /// Converts an event of an answer; `None` for events that add nothing to it, such as usage.
    #[must_use]
    pub fn from_event(request: &str, branch: &str, event: StreamEvent) -> Option<Self> {
        let plain = Self {
            kind: event.name(),
            request: request.to_owned(),
            branch: branch.to_owned(),
            piece: None,
            delta: None,
            item: None,
            tool: None,
        };
        Some(match event {
            // These concern the answer as a whole, so they name no piece.
            StreamEvent::Started { .. } | StreamEvent::Finished { .. } | StreamEvent::Failed(_) => {
                plain
            }
            StreamEvent::ItemAdded { piece, kind } => {
                let (item, tool) = item_and_tool(kind)?;
                Self {
                    piece: Some(piece),
                    item: Some(item),
                    tool,
                    ..plain
                }
            }
            // One shape for all texts: `kind` already says what the text belongs to.
            StreamEvent::TextDelta { piece, delta }
            | StreamEvent::ReasoningDelta { piece, delta }
            | StreamEvent::SummaryDelta { piece, delta }
            | StreamEvent::RefusalDelta { piece, delta }
            | StreamEvent::ArgumentsDelta { piece, delta } => Self {
                piece: Some(piece),
                delta: Some(delta),
                ..plain
            },
            StreamEvent::ItemDone { piece } => Self {
                piece: Some(piece),
                ..plain
            },
            // Usage and other figures are in the stored answer.
            _ => return None,
        })
    }
}

/// Returns the word for an item that begins, and the tool's name if it is a call; `None` for an unknown kind.
fn item_and_tool(kind: PieceKind) -> Option<(String, Option<String>)> {
    Some(match kind {
        PieceKind::Message => ("message".to_owned(), None),
        PieceKind::Reasoning => ("reasoning".to_owned(), None),
        PieceKind::Call { name, .. } => ("call".to_owned(), name),
        PieceKind::Other(word) => (word, None),
        // A new kind of piece is left out until it has a stable word here.
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use utoipa::PartialSchema as _;

    use super::*;

    #[test]
    fn every_kind_is_described() {
        let schema = serde_json::to_value(DeltaKindSchema::schema()).unwrap();
        let (piece, delta) = (0, "a".to_owned());
        let deltas = [
            StreamEvent::Started {
                id: None,
                model: None,
            },
            StreamEvent::ItemAdded {
                piece,
                kind: PieceKind::Message,
            },
            StreamEvent::TextDelta {
                piece,
                delta: delta.clone(),
            },
            StreamEvent::ReasoningDelta {
                piece,
                delta: delta.clone(),
            },
            StreamEvent::SummaryDelta {
                piece,
                delta: delta.clone(),
            },
            StreamEvent::RefusalDelta {
                piece,
                delta: delta.clone(),
            },
            StreamEvent::ArgumentsDelta { piece, delta },
            StreamEvent::ItemDone { piece },
            StreamEvent::Finished { finish: None },
        ];
        for event in deltas {
            let document = DeltaDocument::from_event("req", "main", event).unwrap();
            let kinds = schema["enum"].as_array().unwrap();
            assert!(kinds.contains(&document.kind.into()), "{}", document.kind);
        }
    }
}
