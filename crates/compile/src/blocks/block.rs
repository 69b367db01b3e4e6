//! Blocks and rounds: the units of lowering and of cutting.
//!
//! A block is a user side, a model step or the outputs of its calls; what it lowers to depends on
//! nothing outside it. A round is one model step with its outputs and the user side it answers; the
//! history is cut only between rounds, so that no call loses its output.

use std::ops::Range;

use contexture_ir::Item;
use contexture_wire::{Format, Side, spoken_side};

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// People and the host.
    User,
    /// One step of the model.
    Model,
    /// The outputs of its calls.
    Outputs,
}

impl BlockKind {
    /// Whose side it is on.
    pub(crate) const fn side(self) -> Side {
        match self {
            Self::User | Self::Outputs => Side::User,
            Self::Model => Side::Model,
        }
    }

    /// The class an item asks for; `None` for what stands with whatever surrounds it.
    fn of_item(item: &Item, target: Format) -> Option<Self> {
        match item {
            // Outputs are on the user side for every provider, but they belong to the model step
            // before them: a class of their own keeps them out of user rounds.
            Item::FunctionCallOutput(_) => Some(Self::Outputs),
            // What the host answers a provider's own call with.
            Item::Extension(_) if spoken_side(item, target) == Some(Side::User) => {
                Some(Self::Outputs)
            }
            item => spoken_side(item, target).map(|side| match side {
                Side::User => Self::User,
                Side::Model => Self::Model,
            }),
        }
    }
}

/// A stretch of items of one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ItemBlock {
    pub(crate) class: BlockKind,
    /// Indices of the items on the path.
    pub(crate) items: Range<usize>,
}

/// Cuts items into blocks for a target.
///
/// A compaction is a block of its own where messages are listed one by one: when a later one is replaced, the provider's
/// cache still holds those before it, and a block is the least that is compared with what it holds.
pub(crate) fn split_into_blocks<'a>(
    items: impl IntoIterator<Item = &'a Item>,
    target: Format,
) -> Vec<ItemBlock> {
    // Where one message holds a whole run of one side, a compaction is a part of it.
    let lists_messages = target.spec().structure().merged_parts.is_none();
    let mut blocks: Vec<ItemBlock> = Vec::new();
    let mut follows_compaction = false;
    for (index, item) in items.into_iter().enumerate() {
        let own = BlockKind::of_item(item, target);
        let is_user = own == Some(BlockKind::User);
        let stands_alone = lists_messages && is_user && matches!(item, Item::Compaction(_));
        let joins = |class| class == own && !stands_alone && !follows_compaction;
        match blocks.last_mut() {
            // An item that takes either side (a note without a role) joins whatever surrounds it, so
            // it never starts a message of its own.
            Some(last) if own.is_none() || joins(Some(last.class)) => last.items.end = index + 1,
            _ => blocks.push(ItemBlock {
                class: own.unwrap_or(BlockKind::User),
                items: index..index + 1,
            }),
        }
        follows_compaction = match own {
            Some(_) => stands_alone,
            None => follows_compaction,
        };
    }
    blocks
}

/// Groups blocks into rounds: ranges of blocks.
pub(crate) fn group_into_rounds(classes: impl IntoIterator<Item = BlockKind>) -> Vec<Range<usize>> {
    let mut rounds: Vec<Range<usize>> = Vec::new();
    let mut before = None;
    for (index, class) in classes.into_iter().enumerate() {
        // A round begins where people speak, or where the model goes on after outputs. The user side
        // and the step that answers it stay together: cut apart, the model would see an answer without
        // its question.
        let opens = match (before, class) {
            // Behind a compaction the user's side goes on in a block of its own.
            (Some(BlockKind::User), BlockKind::User) => false,
            (None, _)
            | (Some(_), BlockKind::User)
            | (Some(BlockKind::Outputs), BlockKind::Model) => true,
            (Some(_), BlockKind::Model | BlockKind::Outputs) => false,
        };
        match rounds.last_mut() {
            Some(last) if !opens => last.end = index + 1,
            _ => rounds.push(index..index + 1),
        }
        before = Some(class);
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use contexture_ir::{
        Compaction, FunctionCall, FunctionCallOutput, Message, Output, Part, Role,
    };

    /// `u` user, `a` assistant, `c` call, `o` output, `s` system, `k` compaction, each one item.
    fn items(script: &str) -> Vec<Item> {
        let item = |letter| match letter {
            'u' => Message::text(Role::User, "u").into(),
            's' => Message::text(Role::System, "s").into(),
            'a' => Message::text(Role::Assistant, "a").into(),
            'c' => FunctionCall::new("1", "f", "{}").into(),
            'k' => Compaction {
                summary: vec![Part::input_text("k")],
                ..Compaction::default()
            }
            .into(),
            _ => FunctionCallOutput::new("1", Output::Text("o".into())).into(),
        };
        script.chars().map(item).collect()
    }

    #[track_caller]
    fn check(script: &str, expected: &str) {
        check_in(Format::OpenAiChat, script, expected);
    }

    #[track_caller]
    fn check_in(format: Format, script: &str, expected: &str) {
        let items = items(script);
        let blocks = split_into_blocks(&items, format);
        let rounds = group_into_rounds(blocks.iter().map(|block| block.class));
        let letters: Vec<char> = script.chars().collect();
        let block = |at: &usize| -> String { letters[blocks[*at].items.clone()].iter().collect() };
        let shown: Vec<String> = rounds
            .iter()
            .map(|round| {
                let blocks: Vec<usize> = round.clone().collect();
                blocks.iter().map(block).collect::<Vec<_>>().join(" ")
            })
            .collect();
        assert_eq!(shown.join(" | "), expected, "{script}");
    }

    #[test]
    fn rounds_hold_a_step_its_outputs_and_what_it_answers() {
        check("", "");
        check("u", "u");
        check("ua", "u a");
        check("ucoa", "u c o | a");
        check("uaccooaua", "u acc oo | a | u a");
        check("auuacou", "a | uu ac o | u");
        check("ucosua", "u c o | su a");
        check("oua", "o | u a");
    }

    #[test]
    fn a_compaction_is_a_block_where_messages_are_listed() {
        check("kkuuaka", "k k uu a | k a");
        check("ukua", "u k u a");
        check("cok", "c o | k");
        check_in(Format::Gemini, "kkuua", "kkuu a");
    }
}
