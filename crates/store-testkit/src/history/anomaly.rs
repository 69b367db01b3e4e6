//! What a correct store never shows.

/// Something in a history that no correct store shows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum Anomaly {
    /// An item is on the path that nobody appended.
    #[error("{word} is stored, but nobody appended it")]
    Phantom {
        /// The item's word.
        word: String,
    },
    /// An item is on the path more than once.
    #[error("{word} is stored more than once")]
    Doubled {
        /// The item's word.
        word: String,
    },
    /// An acknowledged item is not on the path.
    #[error("{word} was acknowledged, but is not stored")]
    Lost {
        /// The item's word.
        word: String,
    },
    /// An acknowledged append is elsewhere than it was said to be.
    #[error("{word} was acknowledged at depth {told}, but is not there")]
    Misplaced {
        /// The first item of the append.
        word: String,
        /// The depth that was acknowledged.
        told: u64,
    },
    /// Of one append only a part is stored, or something is between its items.
    #[error("the append of {word} is stored in part, or apart")]
    Torn {
        /// The first item of the append.
        word: String,
    },
    /// An append was refused, and is stored all the same.
    #[error("{word} was refused, but is stored")]
    RefusedButStored {
        /// The item's word.
        word: String,
    },
    /// An append is not behind the head that it expected.
    #[error("{word} is not behind the head it expected")]
    WrongHead {
        /// The first item of the append.
        word: String,
    },
    /// An append began after another was acknowledged, and is before it on the path.
    #[error("{word} was appended after depth {floor} was acknowledged, but is at {depth}")]
    OutOfOrder {
        /// The first item of the append.
        word: String,
        /// Length of the path that somebody had seen before.
        floor: u64,
        /// Where the append is.
        depth: u64,
    },
    /// A client read something that is not on the path at that place.
    #[error("{client} read {word} at depth {depth}, which was never there")]
    DirtyRead {
        /// Name of the client.
        client: String,
        /// What it read there.
        word: String,
        /// Where it was read.
        depth: u64,
    },
    /// A client read an item before anybody began to append it.
    #[error("{client} read {word} before it was written")]
    ReadBeforeWrite {
        /// Name of the client.
        client: String,
        /// What it read there.
        word: String,
    },
    /// A client did not see what it had appended itself.
    #[error("{client} appended up to depth {floor} and then saw {seen}")]
    OwnWriteMissing {
        /// Name of the client.
        client: String,
        /// Depth of its last own item.
        floor: u64,
        /// How long the path was for it.
        seen: u64,
    },
    /// A client saw less than it had seen before.
    #[error("{client} saw {floor} nodes and then {seen}")]
    WentBack {
        /// Name of the client.
        client: String,
        /// What it had seen.
        floor: u64,
        /// What it saw then.
        seen: u64,
    },
    /// A client did not see what had been acknowledged to another before it began.
    #[error("depth {floor} was acknowledged, and then {client} saw {seen}")]
    StaleRead {
        /// Name of the client.
        client: String,
        /// What was acknowledged.
        floor: u64,
        /// What it saw.
        seen: u64,
    },
}
