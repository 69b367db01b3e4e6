//! The hash of a history up to each of its blocks, equal whatever format the history came through.
//!
//! A client that keeps no state sends its whole history with every request, written anew each time. The
//! chain gives equal hashes for equal beginnings. It runs over blocks: what the user's side says, one
//! step of the model, the outputs of its calls. A block is taken in a form that every format can
//! express: adjacent text joined, empty text dropped, calls in order behind the text, outputs in the
//! order of their calls, arguments as JSON values, media by their decoded bytes. Reasoning, compactions,
//! extensions and what a model began and did not finish are passed over.
//!
//! A hash begins with the length of what it is of, in four bytes, so that the hashes of one history lie beside each
//! other in an index: a long history that is stored in parts would otherwise change pages all over it with each part.
//!
//! Not here: hashes of single items (`meaning_hash`), and what a hash leads to.

use std::collections::{BTreeMap, VecDeque};

use crate::hash::canonical_json::canonical_json;
use crate::hash::meaning_hash::{canonical_arguments, file_source, image_source, media_bytes};
use crate::id::{ContentHash, PathHash};
use crate::item::Part;
use crate::item::{FunctionCall, FunctionCallOutput, Item, Output, Role, Status};

/// The version of the normal form. Hashes of different versions are never compared.
pub const CHAIN_VERSION: u32 = 2;

/// The hash of a beginning of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryHash {
    /// Hash of the history up to here.
    pub hash: PathHash,
    /// How many items it is of.
    pub items: usize,
}

/// Hashes a history item by item. The open block can still grow, so its hash is computed on demand.
#[derive(Clone, Debug)]
pub struct HistoryHasher {
    closed: PathHash,
    block: OpenBlock,
    /// The calls of the last step of the model.
    calls: Vec<ContentHash>,
    /// Those without an output, by their ids, oldest first.
    open: BTreeMap<String, VecDeque<usize>>,
}

#[derive(Clone, Debug)]
enum OpenBlock {
    Nothing,
    User(BlockHasher),
    Model(BlockHasher),
    /// Outputs by the place of their call.
    Outputs(Vec<(usize, ContentHash)>),
}

/// Whose message an item belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    User,
    Model,
    Outputs,
}

impl Default for HistoryHasher {
    fn default() -> Self {
        Self::resume(PathHash::from_bytes([0; 16]))
    }
}

impl HistoryHasher {
    /// Continues after a history of which nothing is known but this hash, which must be that of a finished
    /// block.
    #[must_use]
    pub const fn resume(hash: PathHash) -> Self {
        Self {
            closed: hash,
            block: OpenBlock::Nothing,
            calls: Vec::new(),
            open: BTreeMap::new(),
        }
    }

    /// The hash of all items so far.
    #[must_use]
    pub fn current_hash(&self) -> PathHash {
        let (kind, (content, bytes)) = match &self.block {
            OpenBlock::Nothing => return self.closed,
            OpenBlock::User(form) => ("user", form.finish_with_length()),
            OpenBlock::Model(form) => {
                // A clone, because the block stays open: a later item must still be able to join its text.
                let mut form = form.clone();
                // Calls come after the text whatever their order on the wire, since formats differ in it.
                for call in &self.calls {
                    form.add_piece("call", call.as_bytes());
                }
                ("model", form.finish_with_length())
            }
            OpenBlock::Outputs(outputs) => {
                let mut outputs = outputs.clone();
                // Formats and parallel tools order outputs differently. The order of the calls is the one that
                // all share.
                outputs.sort_by_key(|(place, _)| *place);
                let mut form = BlockHasher::default();
                for (_, output) in &outputs {
                    form.add_piece("output", output.as_bytes());
                }
                ("outputs", form.finish_with_length())
            }
        };
        let hash = PathHash::derive(kind, &[self.closed.as_bytes(), content.as_bytes()]);
        hash.with_position(self.closed.position().wrapping_add(bytes))
    }

    /// Adds an item.
    pub fn push_item(&mut self, item: &Item) {
        match item {
            Item::Message(message) if is_finished(message.status) => {
                // A message of nothing but empty text is not written by every format, so it must not open a
                // block.
                let mut said = BlockHasher::default();
                said.add_parts(&message.content);
                if said.is_empty() {
                    return;
                }
                let side = side_of(item).unwrap_or(Side::User);
                if let OpenBlock::User(form) | OpenBlock::Model(form) = self.open_block(side) {
                    form.add_role(message.role);
                    form.add_parts(&message.content);
                }
            }
            Item::FunctionCall(call) if is_finished(call.status) => {
                self.open_block(Side::Model);
                // Call ids repeat within a conversation, hence a queue for each: outputs answer calls of one id
                // in order.
                let same = self.open.entry(call.call_id.clone()).or_default();
                same.push_back(self.calls.len());
                self.calls.push(call_hash(call));
            }
            Item::FunctionCallOutput(output) => {
                let place = self.take_call_index(&output.call_id);
                let hash = output_hash(output);
                if let OpenBlock::Outputs(outputs) = self.open_block(Side::Outputs) {
                    outputs.push((place, hash));
                }
            }
            // Reasoning, compactions, extensions and what was cut off: no format but their own can express
            // them.
            _ => {}
        }
    }

    /// Adds items and returns the hash at the end of every block, and of every message of the user's side; the
    /// last is the hash of all items.
    pub fn hash_items<'i>(
        &mut self,
        items: impl IntoIterator<Item = &'i Item>,
    ) -> Vec<HistoryHash> {
        let mut links: Vec<HistoryHash> = Vec::new();
        let (mut count, mut last) = (0, None);
        let mut link = |chain: &Self, items: usize| {
            let hash = chain.current_hash();
            // Items that add nothing to the hash (empty text, reasoning) give no new link: an equal hash keeps
            // the smaller count.
            if items > 0 && links.last().is_none_or(|last| last.hash != hash) {
                links.push(HistoryHash { hash, items });
            }
        };
        for item in items {
            let side = side_of(item);
            if let Some(side) = side {
                // On the user's side every message ends a prefix: a client may have sent it as the last of a
                // request.
                if last.is_some_and(|last| last != side || side == Side::User) {
                    link(self, count);
                }
                last = Some(side);
            }
            self.push_item(item);
            count += 1;
        }
        if last.is_some() {
            link(self, count);
        }
        links
    }

    /// Opens a block for a side, or returns the open one; a block of another side is closed first.
    fn open_block(&mut self, side: Side) -> &mut OpenBlock {
        let same = matches!(
            (&self.block, side),
            (OpenBlock::User(_), Side::User)
                | (OpenBlock::Model(_), Side::Model)
                | (OpenBlock::Outputs(_), Side::Outputs)
        );
        if !same {
            self.closed = self.current_hash();
            self.block = match side {
                Side::User => OpenBlock::User(BlockHasher::default()),
                Side::Model => OpenBlock::Model(BlockHasher::default()),
                Side::Outputs => OpenBlock::Outputs(Vec::new()),
            };
            // Only a new step of the model forgets the calls: outputs follow in a block of their own and still
            // need their places.
            if side == Side::Model {
                self.calls.clear();
                self.open.clear();
            }
        }
        &mut self.block
    }

    /// Returns the place of an output among the calls of its step. An output that answers no call comes last.
    fn take_call_index(&mut self, call_id: &str) -> usize {
        let place = self.open.get_mut(call_id).and_then(VecDeque::pop_front);
        place.unwrap_or(usize::MAX)
    }
}

fn call_hash(call: &FunctionCall) -> ContentHash {
    let mut form = BlockHasher::default();
    form.add_piece("name", call.name.as_bytes());
    form.add_piece("arguments", canonical_arguments(call).as_bytes());
    form.finish()
}

fn output_hash(output: &FunctionCallOutput) -> ContentHash {
    let mut form = BlockHasher::default();
    match &output.output {
        Output::Text(text) => form.add_text(text),
        Output::Parts(parts) => form.add_parts(parts),
    }
    form.finish()
}

/// Whether the model finished it.
fn is_finished(status: Option<Status>) -> bool {
    !status.is_some_and(Status::is_incomplete)
}

/// The side an item is on; `None` for bookkeeping that stays with what is before it.
fn side_of(item: &Item) -> Option<Side> {
    match item {
        Item::Message(message) if message.role != Role::Assistant => Some(Side::User),
        Item::FunctionCallOutput(_) => Some(Side::Outputs),
        Item::Message(_) | Item::FunctionCall(_) | Item::Reasoning(_) => Some(Side::Model),
        Item::Compaction(_) | Item::Extension(_) => None,
    }
}

/// Pieces, each ended by its kind and length, so that a text may come in many parts.
#[derive(Clone, Debug, Default)]
struct BlockHasher {
    hasher: blake3::Hasher,
    /// Bytes of the text that has not ended.
    text: u64,
    instructing: bool,
    any: bool,
}

impl BlockHasher {
    const fn is_empty(&self) -> bool {
        !self.any
    }

    fn add_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.hasher.update(text.as_bytes());
            self.text += text.len() as u64;
            self.any = true;
        }
    }

    fn add_piece(&mut self, kind: &str, bytes: &[u8]) {
        self.end_text();
        self.hasher.update(bytes);
        // Kind and length come after the bytes, because the length of joined text is known only at its end.
        self.end_piece(kind, bytes.len() as u64);
    }

    fn end_text(&mut self) {
        if self.text > 0 {
            let length = std::mem::take(&mut self.text);
            self.end_piece("text", length);
        }
    }

    fn end_piece(&mut self, kind: &str, length: u64) {
        self.any = true;
        self.hasher.update(&length.to_le_bytes());
        self.hasher.update(kind.as_bytes());
        self.hasher.update(&[0, kind.len() as u8]);
    }

    /// Marks where the role changes between the person and the host, whose messages share one side.
    fn add_role(&mut self, role: Role) {
        // `system` and `developer` are one here: providers rename the one into the other.
        let instructing = role.is_instruction();
        if self.instructing != instructing {
            self.instructing = instructing;
            self.add_piece(if instructing { "instruction" } else { "person" }, &[]);
        }
    }

    fn add_parts(&mut self, parts: &[Part]) {
        for part in parts {
            match part {
                Part::InputImage(image) => {
                    self.add_piece("image", &media_bytes(image_source(image)));
                }
                Part::InputFile(file) => self.add_piece("file", &media_bytes(file_source(file))),
                Part::Extension(part) => {
                    let raw = part.raw.get();
                    let json = canonical_json(raw);
                    self.add_piece("part", json.as_deref().unwrap_or(raw).as_bytes());
                }
                _ => self.add_text(part.as_text().unwrap_or_default()),
            }
        }
    }

    fn finish(&self) -> ContentHash {
        self.finish_with_length().0
    }

    /// The hash, and of how many bytes it is, from 2^32 on counted from 0 again.
    fn finish_with_length(&self) -> (ContentHash, u32) {
        // A clone for the same reason as above: the hash of the present must not end the text.
        let mut whole = self.clone();
        whole.end_text();
        let bytes = whole.hasher.count() as u32;
        (ContentHash::of_hash(whole.hasher.finalize()), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Message;

    #[test]
    fn hashes_of_one_history_lie_in_its_order() {
        let says = |n: usize| Item::from(Message::text(Role::User, format!("message {n}")));
        let answers = |n: usize| Item::from(Message::text(Role::Assistant, format!("answer {n}")));
        let items: Vec<Item> = (0..500)
            .map(|n| if n % 3 == 2 { answers(n) } else { says(n) })
            .collect();
        let links = HistoryHasher::default().hash_items(&items);
        assert!(links.len() > 300);
        assert!(links.windows(2).all(|two| two[0].hash < two[1].hash));
    }

    #[test]
    fn outputs_count_in_the_order_of_their_calls() {
        let call = |n: usize| {
            Item::from(FunctionCall::new(
                format!("{}", n % 1_000),
                "f",
                format!("{n}"),
            ))
        };
        let output = |n: usize| {
            let text = Output::Text(format!("of {}", n % 1_000));
            Item::from(FunctionCallOutput::new(format!("{}", n % 1_000), text))
        };
        let hash = |outputs: &mut dyn Iterator<Item = usize>| {
            let mut chain = HistoryHasher::default();
            (0..4_000).map(call).for_each(|item| chain.push_item(&item));
            outputs.map(output).for_each(|item| chain.push_item(&item));
            chain.current_hash()
        };
        assert_eq!(hash(&mut (0..4_000)), hash(&mut (0..4_000).rev()));
        assert_ne!(hash(&mut (0..4_000)), hash(&mut (0..3_999)));
        // What answers no call comes last.
        assert_ne!(hash(&mut (0..4_000)), hash(&mut (0..4_001)));
    }
}
