//! Writes blocks in the target's format, once each: a block that was lowered before comes out of the
//! memo, with its weight.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use contexture_ir::{Cancel, ContentHash, Item, Part, Role, ToolDefinition, finish_content_hash};
use contexture_prompt_cache::Framing;
use contexture_tokens::{TokenBounds, TokenCounter};
use contexture_wire::{Dialect, RepairRules, RoleRun, lower_run};

use crate::blocks::block::{BlockKind, ItemBlock, split_into_blocks};
use crate::blocks::memo::{LoweredChunk, Memo, MemoKey};
use crate::blocks::view_entry::ViewEntry;
use crate::blocks::weigh::{ItemWeigher, has_unseen_file};
use crate::input::{CalibratedRange, CompileRequest};

/// A block as it will be sent.
#[derive(Clone, Debug)]
pub(crate) struct LoweredBlock {
    pub(crate) class: BlockKind,
    /// Which entries it was made of.
    pub(crate) entries: Range<usize>,
    pub(crate) lowered: Arc<LoweredChunk>,
    /// The block's identity.
    pub(crate) key: ContentHash,
    /// How many elements of the payload's array it is.
    elements: usize,
    /// How many calls it makes.
    pub(crate) calls: usize,
    /// Whether the target cannot say all of it.
    pub(crate) is_lossy: bool,
    /// Whether it has a file that only the provider sees.
    pub(crate) is_unseen: bool,
    /// What the model reads.
    pub(crate) text: TokenBounds,
    /// What the format adds.
    pub(crate) framing: TokenBounds,
    /// Both, as they were counted before they were narrowed.
    pub(crate) counted: TokenBounds,
    /// The most that both can be.
    pub(crate) upper: u64,
}

impl LoweredBlock {
    /// How many elements of the payload's array it is.
    pub(crate) const fn element_count(&self) -> usize {
        self.elements
    }

    /// What it takes of the budget.
    pub(crate) const fn weight(&self) -> u64 {
        self.text.high.saturating_add(self.framing.high)
    }
}

/// Lowers and weighs for one target.
pub(crate) struct Lowerer<'a> {
    dialect: Dialect,
    item_weigher: ItemWeigher<'a>,
    /// What the format adds, before calibration.
    plain_framing: Framing,
    /// What it adds as budgeted, and at most.
    framing: Framing,
    upper_framing: Framing,
    repair_rules: RepairRules,
    /// What is budgeted of each count.
    narrowing: Option<CalibratedRange>,
    /// What is left of its range.
    calibrated: Option<CalibratedRange>,
    lowering: u32,
    counting: u32,
    /// Calls lowering off.
    cancel: Option<&'a Cancel>,
}

/// What lowering and weighing depend on: as the memo knows it, and how counts are narrowed.
pub(crate) type LoweringKey = (u32, u32, [Option<CalibratedRange>; 2]);

impl<'a> Lowerer<'a> {
    pub(crate) fn new(
        request: &'a CompileRequest,
        counter: &'a dyn TokenCounter,
        cancel: Option<&'a Cancel>,
        memo: &mut Memo,
    ) -> Self {
        let (dialect, media) = (request.dialect, &request.media);
        let format = dialect.format;
        let overhead = request.overhead();
        let plain_framing = Framing::from_overhead(&overhead);
        // An adapter's figures and rules are code, so its entries of the memo and of prepared histories are its own.
        let adapter = match &request.adapter {
            Some(adapter) => format!(
                " {} {overhead:?} {:?}",
                adapter.name(),
                adapter.item_rules()
            ),
            None => String::new(),
        };
        Self {
            dialect,
            item_weigher: ItemWeigher {
                format,
                counter,
                media,
                tool_text_percent: overhead.tool_text,
                nested_tool_text_percent: overhead.nested_tool_text,
            },
            plain_framing,
            repair_rules: request.repair_rules(),
            // Framing is a count like any other: where reports have narrowed the ranges of the model,
            // they have narrowed its framing with them.
            framing: scale_framing(request.budgeted_range(), plain_framing),
            upper_framing: scale_framing(request.calibrated_range, plain_framing),
            narrowing: request.budgeted_range(),
            calibrated: request.calibrated_range,
            // The memo outlives requests and is shared by targets, so the key of an entry says what it
            // depends on: the dialect for JSON; format, counter and media rules for counts.
            lowering: memo.variant_id(&format!("lower {dialect:?}")),
            counting: memo.variant_id(&format!(
                "count {format} {} {media:?}{adapter}",
                counter.name()
            )),
            cancel,
        }
    }

    /// What lowering and weighing depend on.
    pub(crate) const fn lowering_key(&self) -> LoweringKey {
        (
            self.lowering,
            self.counting,
            [self.narrowing, self.calibrated],
        )
    }

    /// The same without narrowing.
    pub(crate) fn without_calibration(&self) -> Self {
        Self {
            framing: self.plain_framing,
            narrowing: None,
            ..*self
        }
    }

    /// The same by the upper bound.
    pub(crate) fn by_upper_bound(&self) -> Self {
        Self {
            framing: self.upper_framing,
            narrowing: self.calibrated,
            ..*self
        }
    }

    /// Whether less is budgeted than the upper bound.
    pub(crate) fn budgets_below_upper(&self) -> bool {
        self.narrowing != self.calibrated
    }

    pub(crate) const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// What the target demands of a history.
    pub(crate) const fn repair_rules(&self) -> RepairRules {
        self.repair_rules
    }

    pub(crate) const fn framing(&self) -> &Framing {
        &self.framing
    }

    pub(crate) const fn item_weigher(&self) -> &ItemWeigher<'a> {
        &self.item_weigher
    }

    /// Counts a text that is not an item's.
    pub(crate) fn count_text(&self, text: &str, memo: &mut Memo) -> TokenBounds {
        let key = MemoKey {
            content: ContentHash::of(text.as_bytes()),
            variant: self.counting,
        };
        self.apply_calibration(memo.get_or_count(key, || self.item_weigher.weigh_text(text)))
    }

    /// Counts a tool's definition.
    pub(crate) fn count_tool(
        &self,
        tool: &ToolDefinition,
        hash: ContentHash,
        memo: &mut Memo,
    ) -> TokenBounds {
        let key = MemoKey {
            content: hash,
            variant: self.counting,
        };
        self.apply_calibration(memo.get_or_count(key, || self.item_weigher.weigh_tool(tool)))
    }

    /// Lowers entries block by block. `follows_user` says whether something of the user's side stands before them.
    ///
    /// Once the compile is cancelled the rest is left out: who asked for it checks that before it is used.
    pub(crate) fn lower_items(
        &self,
        entries: &[ViewEntry],
        mut follows_user: bool,
        memo: &mut Memo,
    ) -> Vec<LoweredBlock> {
        let wired = with_neighbours(entries);
        split_into_blocks(
            entries.iter().map(|entry| &*entry.item),
            self.dialect.format,
        )
        .into_iter()
        .take_while(|_| Cancel::check_optional(self.cancel).is_ok())
        .map(|block| {
            let follows = std::mem::replace(&mut follows_user, block.class != BlockKind::Model);
            self.lower_block(block, entries, &wired, follows, memo)
        })
        .collect()
    }

    fn lower_block(
        &self,
        block: ItemBlock,
        entries: &[ViewEntry],
        wired: &[contexture_wire::PairedItem<'_>],
        follows_user: bool,
        memo: &mut Memo,
    ) -> LoweredBlock {
        let own = entries.get(block.items.clone()).unwrap_or_default();
        let wired = wired.get(block.items.clone()).unwrap_or_default();
        // Only the host's words depend on what stands before them; all other blocks are the same anywhere.
        let is_host = |entry: &ViewEntry| entry.item.role().is_some_and(Role::is_instruction);
        let follows_user = follows_user && own.iter().any(is_host);
        let key = MemoKey {
            content: block_hash(own, wired, follows_user),
            variant: self.lowering,
        };
        // Lowered from position 0 whatever the block's place: the JSON then depends on the block alone
        // and can be reused after items before it are gone.
        let run = RoleRun {
            side: block.class.side(),
            start: 0,
            entries: wired,
            follows_user,
        };
        let lowered = memo.get_or_lower(key, || lower_run(&self.dialect, &run));
        let facts = &lowered.chunk.facts;
        let (elements, calls) = (facts.elements, facts.calls.len());
        let is_lossy = !lowered.chunk.losses.is_empty();
        let plain = self.plain_framing;
        let mut framing = self.framing.message.times(elements as u64);
        let mut counted = plain.message.times(elements as u64);
        let most = self.upper_framing;
        let mut upper = most.message.times(elements as u64);
        let mut text = TokenBounds::ZERO;
        // A block that the target cannot say is not sent, so its items weigh nothing.
        if elements > 0 {
            for entry in own {
                let item = self.count_uncalibrated(entry, memo);
                text += self.apply_calibration(item);
                framing += self.framing.item_overhead(&entry.item);
                counted += item + plain.item_overhead(&entry.item);
                upper += narrow(self.calibrated, item) + most.item_overhead(&entry.item);
            }
        }
        LoweredBlock {
            class: block.class,
            entries: block.items,
            key: lowered.key,
            elements,
            calls,
            is_lossy,
            is_unseen: elements > 0 && own.iter().any(|entry| has_unseen_file(&entry.item)),
            lowered,
            text,
            framing,
            counted,
            upper: upper.high,
        }
    }

    /// Counts an entry's content.
    pub(crate) fn count_item(&self, entry: &ViewEntry, memo: &mut Memo) -> TokenBounds {
        self.apply_calibration(self.count_uncalibrated(entry, memo))
    }

    fn count_uncalibrated(&self, entry: &ViewEntry, memo: &mut Memo) -> TokenBounds {
        let key = MemoKey {
            content: entry.hash,
            variant: self.counting,
        };
        // Counts are remembered before calibration, which changes more often than the content.
        memo.get_or_count(key, || self.item_weigher.weigh_item(&entry.item))
    }

    /// Counts the parts of a message, which no memo knows.
    pub(crate) fn count_parts(&self, parts: &[Part]) -> TokenBounds {
        self.apply_calibration(self.item_weigher.weigh_parts(parts))
    }

    /// The memo keeps what was counted, so that learning more makes nothing counted anew.
    fn apply_calibration(&self, counted: TokenBounds) -> TokenBounds {
        narrow(self.narrowing, counted)
    }
}

fn narrow(range: Option<CalibratedRange>, counted: TokenBounds) -> TokenBounds {
    range.map_or(counted, |range| range.apply_to(counted))
}

fn scale_framing(range: Option<CalibratedRange>, plain: Framing) -> Framing {
    range.map_or(plain, |range| range.scale_framing(plain))
}

/// Entries with what their neighbours say: outputs know the function of the step before them.
fn with_neighbours<'e>(entries: &'e [ViewEntry]) -> Vec<contexture_wire::PairedItem<'e>> {
    let mut step: VecDeque<(&str, &str)> = VecDeque::new();
    let mut out = Vec::with_capacity(entries.len());
    for entry in entries {
        let mut wired = contexture_wire::PairedItem {
            item: &entry.item,
            function: None,
            call_id: entry.call_id.as_deref(),
        };
        match &*entry.item {
            Item::FunctionCall(call) => step.push_back((wired.call_id(), &call.name)),
            // Repair has put the outputs into the order of the calls.
            Item::FunctionCallOutput(_) => {
                let call = step.pop_front();
                // A mismatch means that the output belongs to no call of this step: better no name
                // than a wrong one.
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
fn block_hash(
    entries: &[ViewEntry],
    wired: &[contexture_wire::PairedItem<'_>],
    follows_user: bool,
) -> ContentHash {
    let mut hasher = blake3::Hasher::new();
    if follows_user {
        hasher.update(b"follows user");
    }
    for (entry, wired) in entries.iter().zip(wired) {
        hasher.update(entry.hash.as_bytes());
        for word in [wired.call_id, wired.function] {
            let word = word.unwrap_or_default();
            // The length goes first, so that no two lists of words run together to the same bytes.
            hasher.update(&(word.len() as u64).to_le_bytes());
            hasher.update(word.as_bytes());
        }
    }
    finish_content_hash(&hasher)
}
