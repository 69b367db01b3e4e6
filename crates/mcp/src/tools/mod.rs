//! The tools: a table, sorted by name once.

mod branches;
mod budget;
mod checkpoints;
mod compaction;
mod conversations;
mod memory;
mod reading;
mod search;
mod target;
mod transcript;

use std::sync::LazyLock;

use crate::tool::Entry;

pub(crate) use self::conversations::page as conversations;
pub(crate) use self::transcript::{Wanted, read as transcript};

/// All tools, by name.
pub(crate) static ALL: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut all = vec![
        Entry::of::<branches::CreateBranch>(),
        Entry::of::<branches::ListBranches>(),
        Entry::of::<branches::SwitchBranch>(),
        Entry::of::<budget::CheckBudget>(),
        Entry::of::<checkpoints::CreateCheckpoint>(),
        Entry::of::<checkpoints::RestoreCheckpoint>(),
        Entry::of::<compaction::CompactConversation>(),
        Entry::of::<conversations::ListConversations>(),
        Entry::of::<memory::CreateMemory>(),
        Entry::of::<memory::DeleteMemory>(),
        Entry::of::<memory::ReadMemory>(),
        Entry::of::<memory::UpdateMemory>(),
        Entry::of::<reading::ReadLink>(),
        Entry::of::<search::SearchConversations>(),
        Entry::of::<transcript::ReadConversation>(),
    ];
    all.sort_by(|a, b| a.listed.name.cmp(&b.listed.name));
    all
});

/// A tool by its name.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    let found = ALL.binary_search_by(|entry| entry.listed.name.as_ref().cmp(name));
    found.ok().and_then(|index| ALL.get(index))
}
