//! Writes blocks in the target's format, once each: a block that was lowered before comes out of the
//! memo, with its weight.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use contexture_ir::{ContentHash, Item, Part, ToolDefinition};
use contexture_tokens::TokenCounter;
use contexture_wire::{Dialect, Run, lower_run};

use crate::block::{Block, Class, blocks};
use crate::count::{Framing, Tokens};
use crate::digest::digest;
use crate::entry::Entry;
use crate::memo::{Key, Lowered, Memo};
use crate::narrowing::Narrowing;
use crate::request::CompileRequest;
use crate::weigh::Scale;

/// A block as it will be sent.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) class: Class,
    /// Which entries it was made of.
    pub(crate) entries: Range<usize>,
    pub(crate) lowered: Arc<Lowered>,
    /// The block's identity.
    pub(crate) key: ContentHash,
    /// How many elements of the payload's array it is.
    elements: usize,
    /// How many calls it makes.
    pub(crate) calls: usize,
    /// Whether the target cannot say all of it.
    pub(crate) is_lossy: bool,
    /// What the model reads.
    pub(crate) text: Tokens,
    /// What the format adds.
    pub(crate) framing: Tokens,
    /// Both, as they were counted before they were narrowed.
    pub(crate) counted: Tokens,
}

impl Piece {
    /// How many elements of the payload's array it is.
    pub(crate) const fn elements(&self) -> usize {
        self.elements
    }

    /// What it takes of the budget.
    pub(crate) const fn weight(&self) -> u64 {
        self.text.high.saturating_add(self.framing.high)
    }
}

/// Lowers and weighs for one target.
pub(crate) struct Press<'a> {
    dialect: Dialect,
    scale: Scale<'a>,
    framing: Framing,
    narrowing: Option<Narrowing>,
    lowering: u32,
    counting: u32,
}

/// What lowering and weighing depend on: as the memo knows it, and how counts are narrowed.
pub(crate) type Made = (u32, u32, Option<Narrowing>);

impl<'a> Press<'a> {
    pub(crate) fn new(
        request: &'a CompileRequest,
        counter: &'a dyn TokenCounter,
        memo: &mut Memo,
    ) -> Self {
        let (dialect, media) = (request.dialect, &request.media);
        let format = dialect.format;
        Self {
            dialect,
            scale: Scale {
                format,
                counter,
                media,
            },
            framing: match request.narrowing {
                Some(narrowing) => narrowing.framing(Framing::of(format)),
                None => Framing::of(format),
            },
            narrowing: request.narrowing,
            lowering: memo.variant(&format!("lower {dialect:?}")),
            counting: memo.variant(&format!("count {format} {} {media:?}", counter.name())),
        }
    }

    /// What lowering and weighing depend on.
    pub(crate) const fn made(&self) -> Made {
        (self.lowering, self.counting, self.narrowing)
    }

    /// The same without narrowing.
    pub(crate) fn plain(&self) -> Self {
        Self {
            framing: Framing::of(self.dialect.format),
            narrowing: None,
            ..*self
        }
    }

    pub(crate) const fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(crate) const fn framing(&self) -> &Framing {
        &self.framing
    }

    pub(crate) const fn scale(&self) -> &Scale<'a> {
        &self.scale
    }

    /// Counts a text that is not an item's.
    pub(crate) fn text(&self, text: &str, memo: &mut Memo) -> Tokens {
        let key = Key {
            content: ContentHash::of(text.as_bytes()),
            variant: self.counting,
        };
        self.narrowed(memo.count(key, || self.scale.text(text)))
    }

    /// Counts a tool's definition.
    pub(crate) fn tool(&self, tool: &ToolDefinition, hash: ContentHash, memo: &mut Memo) -> Tokens {
        let key = Key {
            content: hash,
            variant: self.counting,
        };
        self.narrowed(memo.count(key, || self.scale.tool(tool)))
    }

    /// Lowers entries block by block.
    pub(crate) fn press(&self, entries: &[Entry], memo: &mut Memo) -> Vec<Piece> {
        let wired = wired(entries);
        blocks(
            entries.iter().map(|entry| &*entry.item),
            self.dialect.format,
        )
        .into_iter()
        .map(|block| self.piece(block, entries, &wired, memo))
        .collect()
    }

    fn piece(
        &self,
        block: Block,
        entries: &[Entry],
        wired: &[contexture_wire::Entry<'_>],
        memo: &mut Memo,
    ) -> Piece {
        let own = entries.get(block.items.clone()).unwrap_or_default();
        let wired = wired.get(block.items.clone()).unwrap_or_default();
        let key = Key {
            content: block_hash(own, wired),
            variant: self.lowering,
        };
        let run = Run {
            side: block.class.side(),
            start: 0,
            entries: wired,
        };
        let lowered = memo.chunk(key, || lower_run(&self.dialect, &run));
        let facts = &lowered.chunk.facts;
        let (elements, calls) = (facts.elements, facts.calls.len());
        let is_lossy = !lowered.chunk.losses.is_empty();
        let plain = Framing::of(self.dialect.format);
        let mut framing = self.framing.message.times(elements as u64);
        let mut counted = plain.message.times(elements as u64);
        let mut text = Tokens::ZERO;
        if elements > 0 {
            for entry in own {
                let item = self.counted(entry, memo);
                text += self.narrowed(item);
                framing += self.framing.around(&entry.item);
                counted += item + plain.around(&entry.item);
            }
        }
        Piece {
            class: block.class,
            entries: block.items,
            key: lowered.key,
            elements,
            calls,
            is_lossy,
            lowered,
            text,
            framing,
            counted,
        }
    }

    /// Counts an entry's content.
    pub(crate) fn item(&self, entry: &Entry, memo: &mut Memo) -> Tokens {
        self.narrowed(self.counted(entry, memo))
    }

    fn counted(&self, entry: &Entry, memo: &mut Memo) -> Tokens {
        let key = Key {
            content: entry.hash,
            variant: self.counting,
        };
        memo.count(key, || self.scale.item(&entry.item))
    }

    /// Counts the parts of a message, which no memo knows.
    pub(crate) fn parts(&self, parts: &[Part]) -> Tokens {
        self.narrowed(self.scale.parts(parts))
    }

    /// The memo keeps what was counted, so that learning more makes nothing counted anew.
    fn narrowed(&self, counted: Tokens) -> Tokens {
        match self.narrowing {
            Some(narrowing) => narrowing.apply(counted),
            None => counted,
        }
    }
}

/// Entries with what their neighbours say: outputs know the function of the step before them.
fn wired<'e>(entries: &'e [Entry]) -> Vec<contexture_wire::Entry<'e>> {
    let mut step: VecDeque<(&str, &str)> = VecDeque::new();
    let mut out = Vec::with_capacity(entries.len());
    for entry in entries {
        let mut wired = contexture_wire::Entry {
            item: &entry.item,
            function: None,
            call_id: entry.call_id.as_deref(),
        };
        match &*entry.item {
            Item::FunctionCall(call) => step.push_back((wired.call_id(), &call.name)),
            // Repair has put the outputs into the order of the calls.
            Item::FunctionCallOutput(_) => {
                let call = step.pop_front();
                let own = call.filter(|(call, _)| *call == wired.call_id());
                wired.function = own.map(|(_, name)| name);
            }
            _ => {}
        }
        out.push(wired);
    }
    out
}

/// The identity of a block: its items, and what its neighbours say about them.
fn block_hash(entries: &[Entry], wired: &[contexture_wire::Entry<'_>]) -> ContentHash {
    let mut hasher = blake3::Hasher::new();
    for (entry, wired) in entries.iter().zip(wired) {
        hasher.update(entry.hash.as_bytes());
        for word in [wired.call_id, wired.function] {
            let word = word.unwrap_or_default();
            hasher.update(&(word.len() as u64).to_le_bytes());
            hasher.update(word.as_bytes());
        }
    }
    digest(&hasher)
}
