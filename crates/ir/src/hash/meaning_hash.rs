//! The meaning of an item as a hash, equal whatever format the item came through.
//!
//! A client that re-sends its history writes it anew: ids change, text parts split or join, arguments
//! get other spacing, an image arrives under another encoding. The meaning hash is equal for all of
//! these. It is a derived, versioned figure: a change of [`MEANING_VERSION`] makes stored hashes
//! worth nothing, never wrong.
//!
//! Not here: hashes of prefixes of histories (`history_hash`).

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::hash::canonical_json::canonical_json;
use crate::id::ContentHash;
use crate::item::{FilePart, ImagePart, Part};
use crate::item::{FunctionCall, Item, Output, Role};

/// The version of the normal form.
pub const MEANING_VERSION: u32 = 1;

/// The bytes of a piece's length.
const LENGTH: usize = 8;

/// The hash of an item's normal form; `None` for what not every format can express: reasoning,
/// compactions, extensions.
///
/// Adjacent text is joined and empty text dropped; `system` and `developer` are one role; ids,
/// statuses, error flags and call ids do not count; arguments are compared as JSON values, media by
/// their decoded bytes.
#[must_use]
pub fn meaning_hash(item: &Item) -> Option<ContentHash> {
    let mut form = MeaningHasher::default();
    match item {
        Item::Message(message) => {
            form.add_tag(match message.role {
                Role::User => "user",
                Role::Assistant => "assistant",
                Role::System | Role::Developer => "instruction",
            });
            form.add_parts(&message.content);
        }
        Item::FunctionCall(call) => {
            form.add_tag("call");
            form.add_tag(&call.name);
            form.add_tag(&canonical_arguments(call));
        }
        Item::FunctionCallOutput(output) => {
            form.add_tag("output");
            match &output.output {
                Output::Text(text) => form.add_text(text),
                Output::Parts(parts) => form.add_parts(parts),
            }
        }
        // No other format can express these, so a client that re-sends its history never sends them back.
        Item::Reasoning(_) | Item::Compaction(_) | Item::Extension(_) => return None,
    }
    Some(form.finish())
}

/// Length-prefixed pieces, text joined while it is adjacent.
struct MeaningHasher {
    pieces: Vec<u8>,
    /// Where the text that is being joined begins, behind its tag and the place of its length.
    text: Option<usize>,
}

impl Default for MeaningHasher {
    fn default() -> Self {
        Self {
            pieces: Vec::with_capacity(256),
            text: None,
        }
    }
}

impl MeaningHasher {
    fn add_tag(&mut self, piece: &str) {
        self.end_text();
        self.add_bytes(piece.as_bytes());
    }

    fn add_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.text.is_none() {
            // The length is not known yet: eight zero bytes hold its place, and `end_text` fills them.
            self.add_bytes(b"text");
            self.pieces.extend_from_slice(&[0; LENGTH]);
            self.text = Some(self.pieces.len());
        }
        self.pieces.extend_from_slice(text.as_bytes());
    }

    fn add_parts(&mut self, parts: &[Part]) {
        for part in parts {
            match part {
                Part::InputImage(image) => self.add_media("image", image_source(image)),
                Part::InputFile(file) => self.add_media("file", file_source(file)),
                Part::Extension(part) => {
                    let raw = part.raw.get();
                    self.add_tag(canonical_json(raw).as_deref().unwrap_or(raw));
                }
                _ => self.add_text(part.as_text().unwrap_or_default()),
            }
        }
    }

    fn add_media(&mut self, kind: &str, source: &str) {
        self.add_tag(kind);
        self.add_bytes(&media_bytes(source));
    }

    fn end_text(&mut self) {
        let Some(begin) = self.text.take() else {
            return;
        };
        // Only where text is open; two calls in a row must not write a length twice.
        let length = ((self.pieces.len() - begin) as u64).to_le_bytes();
        if let Some(place) = self.pieces.get_mut(begin - LENGTH..begin) {
            place.copy_from_slice(&length);
        }
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        let length = (bytes.len() as u64).to_le_bytes();
        self.pieces.extend_from_slice(&length);
        self.pieces.extend_from_slice(bytes);
    }

    fn finish(mut self) -> ContentHash {
        self.end_text();
        ContentHash::of(&self.pieces)
    }
}

/// A call's arguments as a JSON value is written; none are `{}`.
pub(crate) fn canonical_arguments(call: &FunctionCall) -> Cow<'_, str> {
    let arguments = match call.arguments.trim() {
        "" => "{}",
        _ => &call.arguments,
    };
    canonical_json(arguments).map_or(Cow::Borrowed(arguments), Cow::Owned)
}

/// The bytes of a `data:` URL; of anything else its text.
pub(crate) fn media_bytes(source: &str) -> Cow<'_, [u8]> {
    // Compared by decoded bytes, because clients re-encode: padding and line breaks in base64 differ.
    let inline = source.split_once(";base64,");
    match inline.map(|(_, data)| STANDARD.decode(data)) {
        Some(Ok(bytes)) => Cow::Owned(bytes),
        _ => Cow::Borrowed(source.as_bytes()),
    }
}

pub(crate) fn image_source(image: &ImagePart) -> &str {
    image
        .image_url
        .as_deref()
        .or(image.file_id.as_deref())
        .unwrap_or_default()
}

pub(crate) fn file_source(file: &FilePart) -> &str {
    // Inline data first, since it identifies the file by content. A URL may expire and an id belongs to one
    // provider.
    let sources = [&file.file_data, &file.file_url, &file.file_id];
    sources
        .into_iter()
        .find_map(|source| source.as_deref())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(json: &str) -> Option<ContentHash> {
        meaning_hash(&Item::parse(json).unwrap())
    }

    #[test]
    fn accents_do_not_count() {
        let same = [
            (
                r#"{"type":"message","role":"user","content":"ab"}"#,
                r#"{"id":"x","type":"message","role":"user","status":"completed","content":[
                   {"type":"input_text","text":"a"},{"type":"input_text","text":""},{"type":"input_text","text":"b"}]}"#,
            ),
            (
                r#"{"type":"function_call","call_id":"1","name":"f","arguments":"{\"a\":1,\"b\":2.0}"}"#,
                r#"{"type":"function_call","call_id":"2","name":"f","arguments":"{ \"b\": 2, \"a\": 1 }"}"#,
            ),
            (
                r#"{"type":"function_call_output","call_id":"1","output":"ok"}"#,
                r#"{"type":"function_call_output","call_id":"1","output":[{"type":"output_text","text":"ok"}]}"#,
            ),
        ];
        for (a, b) in same {
            assert_eq!(hash(a), hash(b), "{a} {b}");
        }
    }

    #[test]
    fn meaning_counts() {
        let user = hash(r#"{"type":"message","role":"user","content":"a"}"#);
        for other in [
            r#"{"type":"message","role":"user","content":"b"}"#,
            r#"{"type":"message","role":"assistant","content":"a"}"#,
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},
               {"type":"input_image","image_url":"https://example.org/a.png"}]}"#,
            r#"{"type":"function_call_output","call_id":"1","output":"a"}"#,
        ] {
            assert_ne!(user, hash(other), "{other}");
        }
        assert_eq!(hash(r#"{"type":"reasoning","summary":[]}"#), None);
    }
}
