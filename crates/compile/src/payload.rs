//! The finished request: a rope of pieces that are shared with the scratch and with other payloads.
//!
//! A payload is `before · elements joined by commas · after`. It is flattened only when it is sent.

use std::fmt;
use std::sync::Arc;

use contexture_ir::ContentHash;

/// A provider's JSON request.
#[derive(Clone, Debug)]
pub struct Payload {
    before: Arc<str>,
    elements: Vec<Element>,
    after: Arc<str>,
    len: usize,
}

/// Elements of the payload's array that came from one piece, joined by commas. Never empty.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) json: Arc<str>,
    pub(crate) hash: ContentHash,
    /// How many messages of the conversation.
    pub(crate) messages: usize,
}

impl Payload {
    pub(crate) fn new(before: Arc<str>, elements: Vec<Element>, after: Arc<str>) -> Self {
        let elements: Vec<Element> = elements
            .into_iter()
            .filter(|element| !element.json.is_empty())
            .collect();
        let inner: usize = elements.iter().map(|element| element.json.len()).sum();
        let commas = elements.len().saturating_sub(1);
        Self {
            len: before.len() + inner + commas + after.len(),
            before,
            elements,
            after,
        }
    }

    /// The JSON text.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(self.len);
        self.pieces().for_each(|piece| out.push_str(piece));
        out
    }

    /// The JSON text in pieces, in order, without copying.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        let elements = self.elements.iter().enumerate().flat_map(|(at, element)| {
            let comma = if at == 0 { "" } else { "," };
            [comma, &*element.json]
        });
        std::iter::once(&*self.before)
            .chain(elements)
            .chain(std::iter::once(&*self.after))
            .filter(|piece| !piece.is_empty())
    }

    /// Its length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes; a compiled payload always has some.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many messages of the conversation it has; those of the system prompt do not count.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.elements.iter().map(|element| element.messages).sum()
    }

    /// The first 16 bytes of BLAKE3 over the JSON text. Costs a pass over all bytes.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        let mut hasher = blake3::Hasher::new();
        for piece in self.pieces() {
            hasher.update(piece.as_bytes());
        }
        let mut bytes = [0; 16];
        hasher.finalize_xof().fill(&mut bytes);
        ContentHash::from_bytes(bytes)
    }

    /// A hash over the hashes of the pieces: equal for payloads that were compiled equally, and cheap.
    /// [`Payload::hash`] is the hash of the bytes.
    #[must_use]
    pub fn fingerprint(&self) -> ContentHash {
        // Gathered first: many small updates of a hasher cost more than the hashing.
        let mut bytes = Vec::with_capacity((self.elements.len() + 2) * 16);
        for edge in [&self.before, &self.after] {
            bytes.extend_from_slice(ContentHash::of(edge.as_bytes()).as_bytes());
        }
        for element in &self.elements {
            bytes.extend_from_slice(element.hash.as_bytes());
        }
        ContentHash::of(&bytes)
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces().try_for_each(|piece| f.write_str(piece))
    }
}
