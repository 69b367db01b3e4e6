//! Lists every conversation of an owner while others write, and every value outside the tree.

use std::collections::BTreeSet;

use contexture_ir::{ConversationId, Owner};

use crate::contract::{
    ConversationPage, Error, KeyScope, KeyValueEntry, ListConversations, ListEntries, Store,
};

/// Lists the ids of all conversations of an owner or of a resource, and holds them all in memory.
///
/// A conversation that exists when the listing begins, and is not deleted meanwhile, is included
/// even if it is updated meanwhile. One that is created meanwhile may be.
///
/// # Errors Any error of the store.
pub async fn list_all(
    store: &dyn Store,
    owner: &Owner,
    resource: Option<&str>,
) -> Result<BTreeSet<ConversationId>, Error> {
    collect_pages(|list| {
        let resource = resource.map(str::to_owned);
        store.list_conversations(owner, ListConversations { resource, ..list })
    })
    .await
}

/// Lists all values that a list asks for, whatever its limit, and holds them all in memory.
///
/// A value that is written meanwhile may be missing; one that exists all the time is not.
///
/// # Errors
/// The store's.
pub async fn list_all_entries(
    store: &dyn Store,
    owner: &Owner,
    mut list: ListEntries,
) -> Result<Vec<(KeyScope, KeyValueEntry)>, Error> {
    let mut all = Vec::new();
    loop {
        let page = store.list_entries(owner, list.clone()).await?;
        all.extend(page.entries);
        list.after = page.next;
        if list.after.is_none() {
            return Ok(all);
        }
    }
}

/// Collects all conversations that `page` lists, most recently updated first. One that is updated
/// meanwhile moves to the front, which the listing has already passed. So whatever was updated
/// since the pass began is listed again, until a pass adds nothing.
async fn collect_pages<F, E>(
    page: impl Fn(ListConversations) -> F,
) -> Result<BTreeSet<ConversationId>, E>
where
    F: Future<Output = Result<ConversationPage, E>>,
{
    let mut ids = BTreeSet::new();
    let mut since = None;
    loop {
        let (before, mut pages, mut newest) = (ids.len(), 0, since);
        // The first pass lists everything, later ones only what was updated since the newest time
        // seen.
        let mut list = ListConversations {
            updated_since: since,
            ..ListConversations::default()
        };
        loop {
            let listed = page(list.clone()).await?;
            pages += 1;
            // The list is sorted by time, so its first record has the newest.
            newest = newest.max(listed.conversations.first().map(|first| first.updated_ms));
            ids.extend(listed.conversations.into_iter().map(|record| record.id));
            // A conversation that is updated moves in front of the cursor; the next pass finds it.
            list.after = listed.next;
            if list.after.is_none() {
                break;
            }
        }
        // A single page is read at one instant. A pass of several pages that adds nothing has
        // missed nothing.
        if pages == 1 || ids.len() == before {
            return Ok(ids);
        }
        since = newest;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::convert::Infallible;

    use super::*;
    use crate::contract::{Conversation, ConversationCursor, NewConversation};
    use crate::memory::MemoryStore;

    /// A list of two a page in which, behind the first page, what is named is written to.
    #[tokio::test]
    async fn what_is_written_to_while_it_is_listed_is_not_missed() {
        let store = MemoryStore::new();
        let owner = Owner::local();
        let mut there = Vec::new();
        for (updated_ms, id) in (0..6).zip(["f", "e", "d", "c", "b", "a"]) {
            let new = NewConversation::new(id.parse().unwrap(), updated_ms);
            there.push(store.create_conversation(&owner, new).await.unwrap());
        }
        let (there, touched) = (RefCell::new(there), RefCell::new(vec!["e", "c", "d"]));
        let page = async |list: ListConversations| {
            let mut there = there.borrow_mut();
            there.sort_by_key(|one| std::cmp::Reverse(one.updated_ms));
            let behind = |one: &&Conversation| {
                one.updated_ms >= list.updated_since.unwrap_or(0)
                    && (list.after.as_ref()).is_none_or(|after| one.updated_ms < after.updated_ms)
            };
            let mut conversations: Vec<_> = there.iter().filter(behind).cloned().collect();
            let next = conversations.get(1).filter(|_| conversations.len() > 2);
            let next = next.map(|last| ConversationCursor {
                updated_ms: last.updated_ms,
                id: last.id.clone(),
            });
            conversations.truncate(2);
            if let Some(id) = touched.borrow_mut().pop() {
                let newest = there.iter().map(|one| one.updated_ms).max();
                let found = there.iter_mut().find(|one| one.id.as_str() == id);
                found.unwrap().updated_ms = newest.unwrap() + 1;
            }
            Ok::<_, Infallible>(ConversationPage {
                conversations,
                next,
                complete: true,
            })
        };
        let Ok(ids) = collect_pages(page).await;
        let ids: Vec<&str> = ids.iter().map(ConversationId::as_str).collect();
        assert_eq!(ids, ["a", "b", "c", "d", "e", "f"]);
    }
}
