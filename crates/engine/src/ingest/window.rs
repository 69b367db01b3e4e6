//! Clients that send only the end of their history, aligned with the path they name.
//!
//! Runs of what they send must stand on the path in the same order, and the last run must reach its end; what follows is
//! new. Anything else left the path.

use contexture_ir::{BranchName, ContentHash, ConversationId, Item, NodeId, meaning_hash};
use contexture_store::{PathEnd, ReadRequest, read_all_pages};

use super::compare_tail::PathTails;
use crate::error::EngineError;

/// Nodes read of the path beside twice as many as were sent.
const BESIDE: u64 = 64;

/// Items that say what the path ends with, of which the last may be meant.
const ENDS: usize = 8;

/// A window's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WindowAlignment {
    /// How many of the items are stored.
    pub(super) known: usize,
    pub(super) head: NodeId,
    /// Whether an answer was recorded among what was read.
    pub(super) answered: bool,
}

/// Lays items along the end of a branch. The first `prefix` are known to be its beginning.
pub(super) async fn align_window(
    tails: &PathTails<'_>,
    conversation: &ConversationId,
    items: &[Item],
    prefix: usize,
    branch: &BranchName,
) -> Result<Option<WindowAlignment>, EngineError> {
    let chat = tails.open_handle(conversation, branch.clone());
    let count = 2 * items.len() as u64 + BESIDE;
    let request = ReadRequest::last_nodes(PathEnd::Branch(branch.clone()), count);
    // Nodes hold their meaning hashes: nothing is parsed.
    let page = read_all_pages(chat.store(), chat.owner(), chat.id(), request).await?;
    let shown = page.nodes.iter().filter(|node| node.audience.user);
    let path: Vec<ContentHash> = shown.filter_map(|node| node.meaning_hash).collect();
    let (places, sent): (Vec<usize>, Vec<ContentHash>) = items
        .iter()
        .enumerate()
        .skip(prefix)
        .filter_map(|(place, item)| Some((place, meaning_hash(item)?)))
        .unzip();
    let end = branch_end_index(&path, &sent);
    let last = end.and_then(|end| places.get(end));
    Ok(last.zip(page.head).map(|(last, head)| WindowAlignment {
        known: last + 1,
        head,
        answered: page.nodes.iter().any(|node| node.response.is_some()),
    }))
}

/// The place of what was sent last of all that is on the path, if that is the path's last.
fn branch_end_index(path: &[ContentHash], sent: &[ContentHash]) -> Option<usize> {
    let last = path.last()?;
    let ends = sent.iter().enumerate().filter(|(_, one)| *one == last);
    let ends = ends.map(|(place, _)| place).rev().take(ENDS);
    ends.into_iter().find(|end| {
        let mut path = path.iter().rev();
        let mut sent = sent.iter().take(end + 1).rev();
        sent.all(|one| path.any(|other| one == other))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, sent: &str, expected: Option<usize>) {
        let hashes = |text: &str| -> Vec<ContentHash> {
            text.bytes().map(|byte| ContentHash::of(&[byte])).collect()
        };
        let found = branch_end_index(&hashes(path), &hashes(sent));
        assert_eq!(found, expected, "{sent} on {path}");
    }

    #[test]
    fn runs_in_order_up_to_the_end() {
        check("abcdef", "efx", Some(1));
        check("abcdef", "f", Some(0));
        check("abcdef", "abefx", Some(3));
        check("abab", "babx", Some(2));
        check("abcdef", "cdx", None);
        check("abcdef", "xef", None);
        check("abcdef", "fex", Some(0));
        check("", "a", None);
        check("a", "", None);
    }
}
