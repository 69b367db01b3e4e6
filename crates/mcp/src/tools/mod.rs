//! The tools: a table, sorted by name once.

mod branches;
mod budget;
mod checkpoints;
mod compaction;
mod conversations;
mod memory;
mod reading;
mod rules;
mod search;
mod target;
mod transcript;

use std::sync::LazyLock;

use crate::tool::ToolEntry;

pub(crate) use self::conversations::load_conversation_page as conversations;
pub(crate) use self::transcript::{ItemRange, read_items as transcript};

/// All tools, by name.
pub(crate) static ALL: LazyLock<Vec<ToolEntry>> = LazyLock::new(|| {
    let mut all = vec![
        ToolEntry::for_tool::<branches::CreateBranch>(),
        ToolEntry::for_tool::<branches::ListBranches>(),
        ToolEntry::for_tool::<branches::SwitchBranch>(),
        ToolEntry::for_tool::<budget::CheckBudget>(),
        ToolEntry::for_tool::<checkpoints::CreateCheckpoint>(),
        ToolEntry::for_tool::<checkpoints::RestoreCheckpoint>(),
        ToolEntry::for_tool::<compaction::CompactConversation>(),
        ToolEntry::for_tool::<conversations::ListConversations>(),
        ToolEntry::for_tool::<memory::CreateMemory>(),
        ToolEntry::for_tool::<memory::DeleteMemory>(),
        ToolEntry::for_tool::<memory::ReadMemory>(),
        ToolEntry::for_tool::<memory::UpdateMemory>(),
        ToolEntry::for_tool::<reading::ReadLink>(),
        ToolEntry::for_tool::<rules::DropRule>(),
        ToolEntry::for_tool::<rules::ListRules>(),
        ToolEntry::for_tool::<rules::RestoreRule>(),
        ToolEntry::for_tool::<search::SearchConversations>(),
        ToolEntry::for_tool::<transcript::ReadConversation>(),
    ];
    all.sort_by(|a, b| a.definition.name.cmp(&b.definition.name));
    all
});

/// A tool by its name.
pub(crate) fn find_tool(name: &str) -> Option<&'static ToolEntry> {
    let found = ALL.binary_search_by(|entry| entry.definition.name.as_ref().cmp(name));
    found.ok().and_then(|index| ALL.get(index))
}
