//! Erasing everything of an owner or of one of its resources: a privacy request.
//!
//! What such a request can ask to see first: [`Store::list_conversations`](crate::Store::list_conversations)
//! with the same resource, and [`KeyValues::list_entries`](crate::KeyValues::list_entries) without a scope or
//! with the resource's. Not here: the loop, [`erase_all`](crate::erase_all).

/// Whose data is to be erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EraseScope {
    /// Everything of the owner.
    Owner,
    /// The conversations of this resource of the owner, and the values in the resource's scope.
    Resource(String),
}

/// What one step of erasing did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Conversations that are gone for readers since this step.
    pub conversations: u64,
    /// Values outside the trees that were removed by this step.
    pub entries: u64,
    /// Whether there is more to do.
    pub more: bool,
}
