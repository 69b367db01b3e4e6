//! The keys by which histories are looked up.
//!
//! A key is a hash over the owner, the partition, what is known of the history and the history's own
//! hash, so that keys of different owners or partitions never meet, and say nothing to who reads them.

use std::collections::BTreeMap;

use contexture_ir::{Owner, PathHash, Raw};
use contexture_store::Conversation as Record;

/// The metadata entry with a conversation's partition, as a hash.
const PARTITION: &str = "partition";

/// What is known of the path to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerStatus {
    /// No answer was recorded on it. Strangers may begin alike, so it is found only by who names the
    /// conversation.
    Unanswered,
    /// An answer was recorded on it.
    Answered,
    /// The first answer recorded on it was cut off, and its hash does not count that. It is found by who
    /// has a copy of what came.
    Incomplete,
}

impl AnswerStatus {
    pub(super) const ALL: [Self; 3] = [Self::Unanswered, Self::Answered, Self::Incomplete];
    /// What a history is known by that nobody names.
    pub(super) const UNNAMED: [Self; 2] = [Self::Answered, Self::Incomplete];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Unanswered => "said",
            Self::Answered => "answered",
            Self::Incomplete => "cut",
        }
    }
}

/// Makes the keys of an owner's partition.
#[derive(Clone, Debug)]
pub(super) struct PathKeys {
    owner: Owner,
    partition: Option<String>,
}

impl PathKeys {
    pub(super) fn for_owner(owner: &Owner, partition: Option<&str>) -> Self {
        let hash = |name: &str| {
            let parts = [owner.as_str().as_bytes(), name.as_bytes()];
            PathHash::derive("partition", &parts).to_string()
        };
        Self {
            owner: owner.clone(),
            partition: partition.map(hash),
        }
    }

    /// The keys of a conversation's partition.
    pub(super) fn for_conversation(record: &Record) -> Self {
        let partition = record.metadata.get(PARTITION);
        Self {
            owner: record.owner.clone(),
            partition: partition.and_then(Raw::as_string),
        }
    }

    /// What a new conversation says of its partition.
    pub(super) fn partition_metadata(&self) -> BTreeMap<String, Raw> {
        let partition = self.partition.iter();
        let entry = partition.map(|hash| (PARTITION.to_owned(), Raw::string(hash)));
        entry.collect()
    }

    /// The key of a history. Keys lie in an index as the hashes of histories do.
    pub(super) fn history_key(&self, status: AnswerStatus, path: PathHash) -> PathHash {
        let key = self.derive_key(status.as_str(), path.as_bytes());
        key.beside(path)
    }

    /// The key of an answer, by the provider's id.
    pub(super) fn response_key(&self, id: &str) -> PathHash {
        self.derive_key("response", id.as_bytes())
    }

    /// The key of a history with a recorded answer at its end.
    pub(super) fn answer_key(&self, path: PathHash) -> PathHash {
        self.history_key(AnswerStatus::Answered, path)
    }

    /// The key of an exchange under way, by the history that its answer follows.
    pub(super) fn exchange_key(&self, question: PathHash) -> PathHash {
        self.derive_key("exchange", question.as_bytes())
    }

    /// The key of the partition itself.
    pub(super) fn partition_key(&self) -> PathHash {
        self.derive_key("exchange", &[])
    }

    fn derive_key(&self, kind: &str, of: &[u8]) -> PathHash {
        let partition = match &self.partition {
            Some(hash) => ["partition", hash.as_str()],
            // These words are stored in hashes of existing indexes: changing one loses every match.
            None => ["whole", ""],
        };
        let [known, partition] = partition.map(str::as_bytes);
        let owner = self.owner.as_str().as_bytes();
        PathHash::derive("path key", &[owner, known, partition, kind.as_bytes(), of])
    }
}
