//! The pieces a payload is made of.
//!
//! A payload is `before · elements joined by commas · after`, where the elements are `lead` (what the
//! format puts first into the same array, a system message say) and one [`Chunk`] a run. A chunk
//! depends only on its run and the [`Dialect`], so compilers may cache it.

use serde::{Deserialize, Serialize};

use crate::model::call_ids::{CallSide, call_side};
use crate::model::format::Format;
use crate::model::loss::{Loss, Losses};
use crate::model::paired_item::{PairedItem, Side};
use crate::model::structure::Structure;

/// How long a provider keeps a prefix that a request marked.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum CacheTtl {
    /// The provider's usual time: five minutes at Anthropic, thirty at OpenAI.
    #[default]
    Usual,
    /// The longer one: an hour at Anthropic, twelve at OpenAI.
    Long,
}

/// What may differ between models of one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dialect {
    /// The wire format that the model accepts.
    pub format: Format,
    /// Whether a system message may stand inside the history. Where it may not, it is written as user
    /// text in a `<system>` tag, with a loss.
    pub mid_system: bool,
    /// Whether the model knows the role `developer`; otherwise it is written `system`.
    pub developer_role: bool,
    /// Whether the model refuses a call without a thought signature, as Gemini 3 does. Calls that
    /// another model made then carry the documented sentinel.
    pub signed_calls: bool,
}

/// One run of a history, lowered to a format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Elements of the payload's array, joined by commas; empty if the format cannot express any of the run.
    pub json: String,
    /// The structure of the elements.
    pub facts: ChunkStructure,
    /// What was lost; paths begin with the index of the entry within its run: `[2].content[0]`.
    pub losses: Vec<Loss>,
}

impl Chunk {
    /// Joins the messages of one side into a chunk; without messages the chunk has no side.
    pub(crate) fn from_messages(
        side: Side,
        messages: impl Iterator<Item = String>,
        (calls, outputs): (Vec<String>, Vec<String>),
        losses: Losses,
    ) -> Self {
        let (mut elements, mut json) = (0, String::new());
        for message in messages {
            if elements > 0 {
                json.push(',');
            }
            json.push_str(&message);
            elements += 1;
        }
        // A run of which nothing could be written speaks for nobody; verification must not count it
        // as a turn.
        let side = (elements > 0).then_some(side);
        let facts = ChunkStructure {
            elements,
            blocks: 0,
            marks: Vec::new(),
            first: side,
            last: side,
            calls,
            outputs,
        };
        Self {
            json,
            facts,
            losses: losses.into_vec(),
        }
    }
}

/// Facts about a chunk by which it is verified without being parsed again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkStructure {
    /// The number of elements in the chunk.
    pub elements: usize,
    /// The number of content blocks, in which Anthropic's cache measures how far it looks back; 0 in formats other than
    /// Anthropic and Bedrock.
    pub blocks: usize,
    /// The lifetimes of the cache markers in the chunk, in order.
    pub marks: Vec<CacheTtl>,
    /// The side of the first element; `None` if the chunk has no elements.
    pub first: Option<Side>,
    /// The side of the last element; `None` if the chunk has no elements.
    pub last: Option<Side>,
    /// Ids of the calls made, in order.
    pub calls: Vec<String>,
    /// Ids of the calls answered, in order.
    pub outputs: Vec<String>,
}

impl ChunkStructure {
    /// Records the id of a call or an output that was written.
    pub(crate) fn record_call_id(&mut self, entry: &PairedItem<'_>, target: &Structure) {
        let written = |own: &str| entry.call_id.unwrap_or(own).to_owned();
        match call_side(entry.item, target) {
            CallSide::Call(_, id) => self.calls.push(written(&id)),
            CallSide::Output(_, id) => self.outputs.push(written(&id)),
            CallSide::Neither => {}
        }
    }
}

/// A payload without its history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// The JSON text up to and including the `[` of the history's array.
    pub before: String,
    /// Elements that lead the array, joined by commas; may be empty.
    pub lead: String,
    /// The JSON text from the `]` of the history's array to the end.
    pub after: String,
    /// What was lost; paths begin with `instructions`, `tools`, `options` or a field's name.
    pub losses: Vec<Loss>,
}

impl Envelope {
    /// Joins the envelope and the elements of chunks into the payload.
    #[must_use]
    pub fn assemble<'a>(&'a self, chunks: impl IntoIterator<Item = &'a str>) -> String {
        let mut out = self.before.clone();
        let mut elements = std::iter::once(self.lead.as_str())
            .chain(chunks)
            // An empty chunk must not leave a comma behind.
            .filter(|part| !part.is_empty());
        if let Some(first) = elements.next() {
            out.push_str(first);
        }
        for element in elements {
            out.push(',');
            out.push_str(element);
        }
        out.push_str(&self.after);
        out
    }
}
