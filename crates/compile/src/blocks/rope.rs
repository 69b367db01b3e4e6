//! Elements of a payload's array, and the rope of them.
//!
//! The rope shares the older part of a history with other payloads: a payload of ten thousand messages
//! is a few dozen stretches and the newest messages.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use contexture_ir::ContentHash;
use contexture_prompt_cache::{RequestPart, SegmentStability};
use contexture_tokens::TokenBounds;
use contexture_wire::{CacheTtl, Format, MESSAGE_END, Side, continued_message};

use crate::blocks::block::BlockKind;
use crate::blocks::lower::LoweredBlock;

/// Elements of the payload's array that came from one piece, joined by commas.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) json: Arc<str>,
    pub(crate) hash: ContentHash,
    /// How many messages of the conversation.
    pub(crate) messages: usize,
    /// Of the system prompt or of the messages.
    pub(crate) part: RequestPart,
    pub(crate) lasts: SegmentStability,
    pub(crate) tokens: TokenBounds,
    /// Number of content blocks.
    pub(crate) blocks: usize,
    /// Whether the format lets it carry a mark.
    pub(crate) can_carry: bool,
    /// The marks that came with the items.
    pub(crate) marks: Vec<CacheTtl>,
    /// The mark that was set on it.
    pub(crate) marked: Option<CacheTtl>,
    /// Whose words they are.
    pub(crate) side: Option<Side>,
    /// How many bytes of its beginning are not written, as its first message goes on from the last of the element before;
    /// the end of that is not written either. `None`: it begins a message.
    pub(crate) continues: Option<usize>,
}

impl Element {
    /// What a piece is in the payload; nothing if the target can say nothing of it.
    pub(crate) fn from_block(
        piece: &LoweredBlock,
        format: Format,
        lasts: SegmentStability,
    ) -> Option<Self> {
        let facts = &piece.lowered.chunk.facts;
        (!piece.lowered.json.is_empty()).then(|| Self {
            json: Arc::clone(&piece.lowered.json),
            hash: piece.key,
            messages: facts.elements,
            part: RequestPart::Messages,
            lasts,
            tokens: piece.text + piece.framing,
            blocks: facts.blocks,
            // Most providers refuse markers in the messages of the model.
            can_carry: piece.class != BlockKind::Model || format.spec().structure().model_markers,
            marks: facts.marks.clone(),
            marked: None,
            side: Some(piece.class.side()),
            continues: None,
        })
    }

    /// Joins its first message to the last of the element before it, where the provider refuses two in a row of one side.
    ///
    /// Both keep their text, so that a marker can stand between them and the first is the same when the second is gone.
    pub(crate) fn continue_message(&mut self, before: &Self, format: Format) {
        let alternates = format.spec().structure().alternating_turns;
        if alternates && self.side == before.side {
            self.continues = continued_message(format, &before.json, &self.json);
        }
    }

    /// Its text without what is not written of it, because it continues a message or `next` continues its last.
    pub(crate) fn written_json(&self, next: Option<&Self>) -> &str {
        let end = match next.is_some_and(|next| next.continues.is_some()) {
            true => self.json.len().saturating_sub(MESSAGE_END.len()),
            false => self.json.len(),
        };
        let text = self.json.get(self.continues.unwrap_or(0)..end);
        text.unwrap_or(&self.json)
    }
}

/// How many elements a stretch has.
// A stretch is the unit of sharing: long enough that ten thousand messages are under a hundred of
// them, short enough that copying the open one costs nothing that shows.
const STRETCH: usize = 128;

/// Elements that are only ever added at the end, in stretches that can be shared.
#[derive(Debug, Default)]
pub(crate) struct SharedElements {
    whole: Vec<Arc<[Element]>>,
    open: Vec<Element>,
}

impl SharedElements {
    pub(crate) const fn len(&self) -> usize {
        self.whole.len() * STRETCH + self.open.len()
    }

    pub(crate) fn last(&self) -> Option<&Element> {
        let whole = self.whole.last().and_then(|stretch| stretch.last());
        self.open.last().or(whole)
    }

    pub(crate) fn push(&mut self, element: Element) {
        self.open.push(element);
        if self.open.len() == STRETCH {
            // A full stretch is frozen behind an `Arc`; only the open one can still change, and nobody
            // else holds it.
            self.whole.push(std::mem::take(&mut self.open).into());
        }
    }
}

/// Elements in order, some of them shared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rope {
    runs: Vec<RopeRun>,
    len: usize,
}

/// The rope of a payload that has no elements of its own.
pub(crate) static NO_ELEMENTS: Rope = Rope {
    runs: Vec::new(),
    len: 0,
};

#[derive(Clone, Debug)]
enum RopeRun {
    Own(Element),
    Shared(Arc<[Element]>, Range<usize>),
}

impl RopeRun {
    fn elements(&self) -> &[Element] {
        match self {
            Self::Own(element) => std::slice::from_ref(element),
            Self::Shared(stretch, range) => stretch.get(range.clone()).unwrap_or_default(),
        }
    }
}

impl Rope {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, element: Element) {
        self.len += 1;
        self.runs.push(RopeRun::Own(element));
    }

    pub(crate) fn extend(&mut self, elements: impl IntoIterator<Item = Element>) {
        elements.into_iter().for_each(|element| self.push(element));
    }

    /// Takes the last element out, if it is not shared.
    pub(crate) fn pop_own(&mut self) -> Option<Element> {
        match self.runs.pop() {
            Some(RopeRun::Own(element)) => {
                self.len -= 1;
                Some(element)
            }
            shared => {
                self.runs.extend(shared);
                None
            }
        }
    }

    /// Adds everything from an element of the stretches on.
    pub(crate) fn extend_shared(&mut self, stretches: &SharedElements, from: usize) {
        // Every frozen stretch has the same length, so the first one needed is found by division.
        let (mut skip, first) = (from % STRETCH, from / STRETCH);
        for stretch in stretches.whole.iter().skip(first) {
            self.len += stretch.len() - skip;
            self.runs
                .push(RopeRun::Shared(Arc::clone(stretch), skip..stretch.len()));
            skip = 0;
        }
        let open = from.saturating_sub(stretches.whole.len() * STRETCH);
        // The open stretch is copied: sharing it would freeze it early.
        for element in stretches.open.iter().skip(open) {
            self.push(element.clone());
        }
    }

    /// Joins messages in a row of one side where the provider refuses them. What is shared was joined when it was shared.
    pub(crate) fn join_messages(&mut self, format: Format) {
        let mut before: Option<&Element> = None;
        for run in &mut self.runs {
            if let (RopeRun::Own(element), Some(before)) = (&mut *run, before) {
                element.continue_message(before, format);
            }
            let run: &RopeRun = run;
            before = run.elements().last().or(before);
        }
    }

    /// The same without its first elements.
    pub(crate) fn skip_first(&self, first: usize) -> Self {
        let mut rest = Self::default();
        let mut skip = first;
        for run in &self.runs {
            let count = run.elements().len();
            let left = match run {
                _ if skip >= count => None,
                RopeRun::Shared(stretch, range) => Some(RopeRun::Shared(
                    Arc::clone(stretch),
                    range.start + skip..range.end,
                )),
                RopeRun::Own(element) => Some(RopeRun::Own(element.clone())),
            };
            rest.len += count.saturating_sub(skip);
            rest.runs.extend(left);
            skip = skip.saturating_sub(count);
        }
        rest
    }

    /// The written texts of the elements in order, with commas between them.
    pub(crate) fn json_chunks(&self) -> impl Iterator<Item = &str> {
        let following = self.iter().skip(1).map(Some).chain(std::iter::once(None));
        let pairs = self.iter().zip(following).enumerate();
        pairs.flat_map(|(at, (element, next))| {
            // Commas belong to the joins, so a shared element has the same bytes wherever it stands.
            let comma = if at == 0 { "" } else { "," };
            [comma, element.written_json(next)]
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Element> {
        self.runs.iter().flat_map(RopeRun::elements)
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Element> {
        let (run, at) = self.locate_element(at)?;
        self.runs.get(run)?.elements().get(at)
    }

    /// Changes some elements, in one pass. What is shared stays shared where none of it is changed.
    pub(crate) fn change_elements(
        &mut self,
        places: &BTreeSet<usize>,
        change: impl Fn(&mut Element),
    ) {
        if places.is_empty() {
            return;
        }
        let mut runs = Vec::with_capacity(self.runs.len() + places.len());
        let mut end = 0;
        for run in self.runs.drain(..) {
            let begin = end;
            end += run.elements().len();
            let mut rest = begin;
            let part = |from: usize, to: usize| match &run {
                RopeRun::Shared(stretch, range) if from < to => {
                    let range = range.start + (from - begin)..range.start + (to - begin);
                    Some(RopeRun::Shared(Arc::clone(stretch), range))
                }
                _ => None,
            };
            // A shared run is split around the changed element; both sides go on sharing the stretch,
            // so one marker in a long history copies one element.
            for at in places.range(begin..end) {
                let Some(mut element) = run.elements().get(at - begin).cloned() else {
                    continue;
                };
                change(&mut element);
                runs.extend(part(rest, *at));
                runs.push(RopeRun::Own(element));
                rest = at + 1;
            }
            // Nothing in this run changed: moved as it is.
            match rest == begin {
                true => runs.push(run),
                false => runs.extend(part(rest, end)),
            }
        }
        self.runs = runs;
    }

    /// The run of an element and its place in it.
    fn locate_element(&self, mut at: usize) -> Option<(usize, usize)> {
        for (index, run) in self.runs.iter().enumerate() {
            let count = run.elements().len();
            if at < count {
                return Some((index, at));
            }
            at -= count;
        }
        None
    }
}
