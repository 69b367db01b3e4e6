//! Elements of a payload's array, and the rope of them.
//!
//! The rope shares the older part of a history with other payloads: a payload of a million messages
//! is a few dozen runs and the newest messages.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use contexture_ir::ContentHash;
use contexture_prompt_cache::{RequestPart, SegmentStability};
use contexture_tokens::TokenBounds;
use contexture_wire::{CacheTtl, Format, MESSAGE_END, Side, continued_message};

use crate::blocks::block::BlockKind;
use crate::blocks::lower::LoweredBlock;
use crate::growing::{RangeSums, SharedIter, SharedList, SharedNode, Totals};

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

    /// How many messages begin in it: its first may go on from the element before.
    fn begun_messages(&self) -> usize {
        self.messages
            .saturating_sub(usize::from(self.continues.is_some()))
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

/// Sums over elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ElementTotals {
    /// Bytes that are written of them, without commas.
    pub(crate) written: usize,
    /// Messages that begin in them.
    pub(crate) messages: usize,
    /// Tokens at their best guess, which add up as a cache's do.
    pub(crate) tokens: u64,
    /// Content blocks that they have.
    pub(crate) blocks: usize,
    /// Marks that came with the items.
    pub(crate) marks: usize,
}

impl ElementTotals {
    fn of(element: &Element, next: Option<&Element>) -> Self {
        Self {
            written: element.written_json(next).len(),
            messages: element.begun_messages(),
            tokens: element.tokens.midpoint(),
            blocks: element.blocks,
            marks: element.marks.len(),
        }
    }
}

impl Totals for ElementTotals {
    fn add(&mut self, other: &Self) {
        self.written += other.written;
        self.messages += other.messages;
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.blocks += other.blocks;
        self.marks += other.marks;
    }
}

/// Elements that are only ever added at the end, and shared with payloads.
#[derive(Debug, Default)]
pub(crate) struct SharedElements {
    list: SharedList<Element>,
    /// Of all but the last: what is written of an element depends on the one behind it.
    totals: RangeSums<ElementTotals>,
}

impl SharedElements {
    pub(crate) const fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Element> {
        self.list.get(at)
    }

    pub(crate) fn last(&self) -> Option<&Element> {
        self.list.last()
    }

    pub(crate) fn push(&mut self, element: Element) {
        if let Some(before) = self.list.last() {
            self.totals.push(ElementTotals::of(before, Some(&element)));
        }
        self.list.push(element);
    }

    /// The totals of a range that has not the last element.
    pub(crate) fn totals(&self, range: Range<usize>) -> ElementTotals {
        self.totals.sum(range)
    }

    /// The elements of a range, in order.
    pub(crate) fn iter_range(&self, range: Range<usize>) -> impl Iterator<Item = &Element> {
        self.list.iter_range(range)
    }
}

/// Elements in order, some of them shared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rope {
    runs: Vec<RopeRun>,
    len: usize,
    /// Which elements of the list that is shared the shared runs are, together.
    shared: Range<usize>,
}

/// The rope of a payload that has no elements of its own.
pub(crate) static NO_ELEMENTS: Rope = Rope {
    runs: Vec::new(),
    len: 0,
    shared: 0..0,
};

#[derive(Clone, Debug)]
enum RopeRun {
    // Boxed, as a run of shared elements is much smaller.
    Own(Box<Element>),
    Shared(SharedNode<Element>, Range<usize>),
}

impl RopeRun {
    fn len(&self) -> usize {
        match self {
            Self::Own(_) => 1,
            Self::Shared(_, range) => range.len(),
        }
    }

    fn get(&self, at: usize) -> Option<&Element> {
        match self {
            Self::Own(element) => (at == 0).then_some(element),
            Self::Shared(node, range) => node.get(range.start + at),
        }
    }

    fn last(&self) -> Option<&Element> {
        self.get(self.len().checked_sub(1)?)
    }

    fn iter(&self) -> RunIter<'_> {
        match self {
            Self::Own(element) => RunIter::Own(Some(element)),
            Self::Shared(node, range) => RunIter::Shared(SharedIter::new(node, range.clone())),
        }
    }
}

enum RunIter<'a> {
    Own(Option<&'a Element>),
    Shared(SharedIter<'a, Element>),
}

impl<'a> Iterator for RunIter<'a> {
    type Item = &'a Element;

    fn next(&mut self) -> Option<&'a Element> {
        match self {
            Self::Own(element) => element.take(),
            Self::Shared(elements) => elements.next(),
        }
    }
}

impl Rope {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Which elements of the list that it shares it shares, in one stretch.
    pub(crate) fn shared_range(&self) -> Range<usize> {
        self.shared.clone()
    }

    pub(crate) fn push(&mut self, element: Element) {
        self.len += 1;
        self.runs.push(RopeRun::Own(Box::new(element)));
    }

    pub(crate) fn extend(&mut self, elements: impl IntoIterator<Item = Element>) {
        elements.into_iter().for_each(|element| self.push(element));
    }

    /// Takes the last element out, if it is not shared.
    pub(crate) fn pop_own(&mut self) -> Option<Element> {
        match self.runs.pop() {
            Some(RopeRun::Own(element)) => {
                self.len -= 1;
                Some(*element)
            }
            shared => {
                self.runs.extend(shared);
                None
            }
        }
    }

    /// Adds everything from an element of a list on; once for each rope.
    ///
    /// The last is copied and not shared, so that what is written of each shared one is known, and of those that are no
    /// full node yet all are.
    pub(crate) fn extend_shared(&mut self, elements: &SharedElements, from: usize) {
        let most = elements.len().saturating_sub(1);
        let mut end = 0;
        for node in elements.list.full_nodes() {
            let begin = end;
            end += node.len();
            let own = from.max(begin)..end.min(most);
            if own.start < own.end {
                self.len += own.len();
                let range = own.start - begin..own.end - begin;
                self.runs.push(RopeRun::Shared(node.clone(), range));
                self.shared = match self.shared.is_empty() {
                    true => own,
                    false => self.shared.start..own.end,
                };
            }
        }
        let rest = from.max(end.min(most))..elements.len();
        self.extend(elements.iter_range(rest).cloned());
    }

    /// Joins messages in a row of one side where the provider refuses them. What is shared was joined when it was shared.
    pub(crate) fn join_messages(&mut self, format: Format) {
        let mut before: Option<&Element> = None;
        for run in &mut self.runs {
            if let (RopeRun::Own(element), Some(before)) = (&mut *run, before) {
                element.continue_message(before, format);
            }
            let run: &RopeRun = run;
            before = run.last().or(before);
        }
    }

    /// The totals of what is not shared, of what is written that is. `shared` are those of the shared elements.
    pub(crate) fn totals(&self, shared: ElementTotals) -> ElementTotals {
        let mut sum = shared;
        let following = self.runs.iter().skip(1).map(Some);
        let following = following.chain(std::iter::once(None));
        for (run, next) in self.runs.iter().zip(following) {
            if let RopeRun::Own(element) = run {
                sum.add(&ElementTotals::of(
                    element,
                    next.and_then(|next| next.get(0)),
                ));
            }
        }
        sum
    }

    /// The totals of all elements, at the cost of a walk.
    pub(crate) fn walk_totals(&self) -> ElementTotals {
        let mut sum = ElementTotals::default();
        let following = self.iter().skip(1).map(Some).chain(std::iter::once(None));
        for (element, next) in self.iter().zip(following) {
            sum.add(&ElementTotals::of(element, next));
        }
        sum
    }

    /// The same without its first elements.
    pub(crate) fn skip_first(&self, first: usize) -> Self {
        let mut rest = Self::default();
        let mut skip = first;
        for run in &self.runs {
            let count = run.len();
            let left = match run {
                _ if skip >= count => None,
                RopeRun::Shared(node, range) => {
                    Some(RopeRun::Shared(node.clone(), range.start + skip..range.end))
                }
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
        self.runs.iter().flat_map(RopeRun::iter)
    }

    /// The elements that are not shared, each with its number.
    pub(crate) fn own_elements(&self) -> impl Iterator<Item = (usize, &Element)> {
        let mut end = 0;
        self.runs.iter().filter_map(move |run| {
            let at = end;
            end += run.len();
            match run {
                RopeRun::Own(element) => Some((at, &**element)),
                RopeRun::Shared(..) => None,
            }
        })
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Element> {
        let mut at = at;
        for run in &self.runs {
            match at.checked_sub(run.len()) {
                Some(rest) => at = rest,
                None => return run.get(at),
            }
        }
        None
    }

    /// Changes some elements, in one pass. What is shared stays shared where none of it is changed. Gives by how many bytes
    /// the elements are longer then.
    pub(crate) fn change_elements(
        &mut self,
        places: &BTreeSet<usize>,
        change: impl Fn(&mut Element),
    ) -> isize {
        let mut longer = 0;
        if places.is_empty() {
            return longer;
        }
        let mut runs = Vec::with_capacity(self.runs.len() + 2 * places.len());
        let mut end = 0;
        for run in self.runs.drain(..) {
            let begin = end;
            end += run.len();
            let mut rest = begin;
            let part = |from: usize, to: usize| match &run {
                RopeRun::Shared(node, range) if from < to => {
                    let range = range.start + (from - begin)..range.start + (to - begin);
                    Some(RopeRun::Shared(node.clone(), range))
                }
                _ => None,
            };
            // A shared run is split around the changed element; both sides go on sharing the node,
            // so one marker in a long history copies one element.
            for at in places.range(begin..end) {
                let Some(mut element) = run.get(at - begin).cloned() else {
                    continue;
                };
                let before = element.json.len();
                change(&mut element);
                longer += element.json.len().cast_signed() - before.cast_signed();
                runs.extend(part(rest, *at));
                runs.push(RopeRun::Own(Box::new(element)));
                rest = at + 1;
            }
            // Nothing in this run changed: moved as it is.
            match rest == begin {
                true => runs.push(run),
                false => runs.extend(part(rest, end)),
            }
        }
        self.runs = runs;
        longer
    }
}
