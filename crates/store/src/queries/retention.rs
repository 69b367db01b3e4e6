//! Finds the conversations that an owner's retention rule gives up, and deletes them.
//!
//! Finding and deleting are apart, so that people see first what would go. Conversations go as a whole, those that were
//! written to longest ago first.

use contexture_ir::{ConversationId, Owner};

use crate::contract::{Conversation, Error, ListConversations, Maintenance, Statistics, Store};

/// Conversations of one page.
const PAGE: usize = 500;

/// What is kept of an owner's conversations. An empty rule keeps all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionRule {
    /// Those written to at or after this time, in milliseconds since the Unix epoch; `None`: of any age.
    pub updated_since_ms: Option<i64>,
    /// So many bytes of content in all, as stored, of those written to last; `None`: any number.
    pub max_bytes: Option<u64>,
}

/// Why a conversation is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryReason {
    /// It was not written to for too long.
    Age,
    /// Newer conversations take the bytes that may be kept.
    Size,
}

/// A conversation that a rule gives up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiredConversation {
    /// Id of the conversation.
    pub id: ConversationId,
    /// Title for people, if it has one.
    pub title: Option<String>,
    /// Time of the latest write, in milliseconds since the Unix epoch.
    pub updated_ms: i64,
    /// Bytes of its content, as stored.
    pub bytes: u64,
    /// Why it is given up.
    pub reason: ExpiryReason,
}

/// What a rule gives up and keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionPlan {
    /// Conversations to delete, the one written to last first.
    pub expired: Vec<ExpiredConversation>,
    /// Number of conversations that stay.
    pub kept: u64,
    /// Bytes of the conversations that stay, as stored.
    pub kept_bytes: u64,
}

impl Statistics {
    /// Returns the bytes of all content, as stored.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        let nodes = self.nodes.values().map(|amount| amount.bytes);
        let rest = [self.roots, self.values, self.blobs, self.entries].map(|amount| amount.bytes);
        nodes.chain(rest).sum()
    }
}

/// Finds what a rule gives up of an owner's conversations. Nothing is changed.
///
/// Reads the size of each conversation, so it takes time in proportion to what is stored. A conversation that is written to
/// meanwhile may be missing: it is not given up.
///
/// # Errors
/// Any error of the store.
pub async fn plan_retention(
    store: &dyn Store,
    maintenance: &dyn Maintenance,
    owner: &Owner,
    rule: RetentionRule,
) -> Result<RetentionPlan, Error> {
    let mut plan = RetentionPlan::default();
    if rule == RetentionRule::default() {
        return Ok(plan);
    }
    let mut list = ListConversations {
        limit: Some(PAGE),
        ..ListConversations::default()
    };
    loop {
        // Written to last first: what comes once the bytes are used up goes.
        let page = store.list_conversations(owner, list.clone()).await?;
        for conversation in page.conversations {
            let counted = maintenance.read_statistics(owner, &conversation.id).await;
            match counted {
                Ok(counted) => plan.add(rule, conversation, counted.total_bytes()),
                // Deleted since it was listed.
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        list.after = page.next;
        if list.after.is_none() {
            return Ok(plan);
        }
    }
}

/// Deletes what a plan gives up, and returns the number of conversations and bytes. One that was written to since the plan was
/// made stays. May be dropped and called again.
///
/// # Errors
/// Any error of the store.
pub async fn delete_expired(
    store: &dyn Store,
    owner: &Owner,
    plan: &RetentionPlan,
) -> Result<(u64, u64), Error> {
    let (mut count, mut bytes) = (0, 0);
    // The oldest first: what an interruption leaves is what would be missed most.
    for expired in plan.expired.iter().rev() {
        let current = match store.load_conversation(owner, &expired.id).await {
            Ok(current) => current,
            Err(Error::NotFound { .. }) => continue,
            Err(error) => return Err(error),
        };
        if current.updated_ms != expired.updated_ms {
            continue;
        }
        match store.delete_conversation(owner, &expired.id).await {
            Ok(()) => {
                count += 1;
                bytes += expired.bytes;
            }
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((count, bytes))
}

impl RetentionPlan {
    fn add(&mut self, rule: RetentionRule, conversation: Conversation, bytes: u64) {
        let is_old = rule
            .updated_since_ms
            .is_some_and(|since| conversation.updated_ms < since);
        let after = self.kept_bytes.saturating_add(bytes);
        // One that does not fit ends what is kept: an older, smaller one must not stay in its place.
        let last = self.expired.last().map(|last| last.reason);
        let is_full = last == Some(ExpiryReason::Size);
        let is_too_much = rule.max_bytes.is_some_and(|most| is_full || after > most);
        let reason = match (is_old, is_too_much) {
            (true, _) => ExpiryReason::Age,
            (false, true) => ExpiryReason::Size,
            (false, false) => {
                self.kept += 1;
                self.kept_bytes = after;
                return;
            }
        };
        self.expired.push(ExpiredConversation {
            id: conversation.id,
            title: conversation.title,
            updated_ms: conversation.updated_ms,
            bytes,
            reason,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::NewConversation;

    fn conversation(id: &str, updated_ms: i64) -> Conversation {
        let new = NewConversation::new(id.parse().unwrap(), updated_ms);
        Conversation {
            owner: Owner::local(),
            id: new.id,
            title: None,
            resource: None,
            metadata: new.metadata,
            active: "main".parse().unwrap(),
            version: 1,
            nodes: 1,
            branches: 1,
            messages: 1,
            events: 1,
            created_ms: updated_ms,
            updated_ms,
        }
    }

    /// The ids that go, with their reasons, of conversations of 10 bytes that were written to at 9, 8, 7, …
    fn expired(rule: RetentionRule) -> Vec<(String, ExpiryReason)> {
        let mut plan = RetentionPlan::default();
        for age in 0..9 {
            plan.add(rule, conversation(&format!("c{age}"), 9 - age), 10);
        }
        assert_eq!(plan.kept as usize + plan.expired.len(), 9);
        assert_eq!(plan.kept_bytes, plan.kept * 10);
        let expired = plan.expired.into_iter();
        expired
            .map(|one| (one.id.to_string(), one.reason))
            .collect()
    }

    #[test]
    fn the_oldest_go_by_age_and_by_size() {
        let (since, bytes) = (Some(3), Some(45));
        let by_age = expired(RetentionRule {
            updated_since_ms: since,
            max_bytes: None,
        });
        assert_eq!(
            by_age,
            ["c7", "c8"].map(|id| (id.to_owned(), ExpiryReason::Age))
        );
        let by_size = expired(RetentionRule {
            updated_since_ms: None,
            max_bytes: bytes,
        });
        let ids = ["c4", "c5", "c6", "c7", "c8"];
        assert_eq!(by_size, ids.map(|id| (id.to_owned(), ExpiryReason::Size)));
        let both = expired(RetentionRule {
            updated_since_ms: since,
            max_bytes: bytes,
        });
        assert_eq!(both.len(), 5);
        assert_eq!(both[4], ("c8".to_owned(), ExpiryReason::Age));
        assert!(expired(RetentionRule::default()).is_empty());
    }
}
