//! The lines of an export as types, and how each is written as JSON.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use contexture_ir::{
    Audience, BranchName, CheckpointName, ContentHash, ConversationId, MessageId, NodeId, Origin,
    Owner, Raw, ResponseId, RunId,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::contract::{BlobId, NodeKind, ResponseStatus, StateKey};

/// The format of the lines.
pub(super) const FORMAT: u32 = 1;

/// A line of an export, tagged with its kind.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ExportLine {
    Conversation(Box<Head>),
    Values(ValuesHead),
    Branch(BranchLine),
    Checkpoint(CheckpointLine),
    Blob(BlobLine),
    Response(ResponseLine),
    Node(Box<NodeLine>),
    Entry(EntryLine),
    End(End),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub(super) format: u32,
    #[serde(with = "text")]
    pub(super) owner: Owner,
    #[serde(with = "text")]
    pub(super) id: ConversationId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) resource: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) metadata: BTreeMap<String, Json>,
    #[serde(with = "text")]
    pub(super) active: BranchName,
    pub(super) created_ms: i64,
    pub(super) updated_ms: i64,
}

/// First line of an export of values that belong to no conversation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ValuesHead {
    pub(super) format: u32,
    #[serde(with = "text")]
    pub(super) owner: Owner,
    /// Only the values of this resource were exported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) resource: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BranchLine {
    #[serde(with = "text")]
    pub(super) name: BranchName,
    #[serde(default, with = "maybe", skip_serializing_if = "Option::is_none")]
    pub(super) head: Option<NodeId>,
    pub(super) created_ms: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckpointLine {
    #[serde(with = "text")]
    pub(super) name: CheckpointName,
    #[serde(with = "text")]
    pub(super) node: NodeId,
    pub(super) at_ms: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BlobLine {
    #[serde(with = "text")]
    pub(super) id: BlobId,
    pub(super) bytes: Bytes,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeLine {
    #[serde(with = "text")]
    pub(super) id: NodeId,
    #[serde(default, with = "maybe", skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<NodeId>,
    pub(super) kind: Kind,
    pub(super) item: Json,
    #[serde(default, with = "maybe", skip_serializing_if = "Option::is_none")]
    pub(super) answers: Option<NodeId>,
    #[serde(default, with = "maybe", skip_serializing_if = "Option::is_none")]
    pub(super) message_id: Option<MessageId>,
    #[serde(default, with = "maybe", skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) step: Option<u32>,
    #[serde(default, with = "maybe", skip_serializing_if = "Option::is_none")]
    pub(super) response: Option<ResponseId>,
    pub(super) origin: Source,
    pub(super) audience: Seen,
    #[serde(default, with = "maybe", skip_serializing_if = "Option::is_none")]
    pub(super) copied_from: Option<NodeId>,
    #[serde(default, with = "maybe", skip_serializing_if = "Option::is_none")]
    pub(super) meaning_hash: Option<ContentHash>,
    pub(super) created_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) redacted_ms: Option<i64>,
    /// State entries that differ from those at the parent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) state: Vec<StateLine>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResponseLine {
    #[serde(with = "text")]
    pub(super) id: ResponseId,
    #[serde(default, with = "maybe", skip_serializing_if = "Option::is_none")]
    pub(super) base: Option<NodeId>,
    pub(super) status: Ended,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) inputs: Option<InputsLine>,
    pub(super) finished_ms: i64,
}

/// Inputs of a response, or that they were redacted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum InputsLine {
    Recorded(Bytes),
    Redacted,
}

/// A changed state entry: without a version if it was removed, without a value if that was
/// redacted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StateLine {
    #[serde(with = "text")]
    pub(super) key: StateKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<Bytes>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EntryLine {
    /// Resource of the value; `None` for the owner's and for those of a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) resource: Option<String>,
    pub(super) key: String,
    pub(super) at_ms: i64,
    pub(super) value: Bytes,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct End {
    /// Number of lines before this one.
    pub(super) lines: u64,
    pub(super) branches: u64,
    pub(super) checkpoints: u64,
    pub(super) blobs: u64,
    pub(super) nodes: u64,
    #[serde(default, skip_serializing_if = "is_none")]
    pub(super) responses: u64,
    pub(super) entries: u64,
    /// Hash of all bytes before this line, line ends included.
    pub(super) blake3: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_none(count: &u64) -> bool {
    *count == 0
}

/// JSON as it was written, or a string with the text if that is not JSON on one line.
#[derive(Debug)]
pub(super) struct Json(pub(super) String);

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A JSON string is wrapped too, since reading could not tell it from such a text.
        let may_stand = !self.0.starts_with('"') && !self.0.contains(['\n', '\r']);
        let raw = may_stand
            .then(|| Raw::parse(self.0.as_str()).ok())
            .flatten();
        match raw.filter(|raw| raw.get() == self.0) {
            Some(raw) => raw.serialize(serializer),
            None => serializer.serialize_str(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        let text = raw.as_string();
        if text.is_none() && raw.get().starts_with('"') {
            return Err(serde::de::Error::custom("a text that is not Unicode"));
        }
        Ok(Self(text.unwrap_or_else(|| raw.get().to_owned())))
    }
}

/// Bytes as text where they are UTF-8, else as base64.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Bytes {
    Text(String),
    Base64(#[serde(with = "base64_text")] Vec<u8>),
}

impl Bytes {
    pub(super) fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Base64(bytes.to_vec()),
        }
    }

    pub(super) fn into_bytes(self) -> Arc<[u8]> {
        match self {
            Self::Text(text) => text.into_bytes().into(),
            Self::Base64(bytes) => bytes.into(),
        }
    }
}

macro_rules! word {
    ($(#[$doc:meta])* $name:ident($of:ty), $words:expr, $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(super) struct $name(pub(super) $of);

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let word = $words.into_iter().find(|(value, _)| *value == self.0);
                serializer.serialize_str(word.map_or("", |(_, word)| word))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let given = String::deserialize(deserializer)?;
                let known = $words.into_iter().find(|(_, word)| *word == given);
                let known = known.map(|(value, _)| Self(value));
                known.ok_or_else(|| {
                    let shown: String = given.chars().take(40).collect();
                    let why = format!(concat!("{:?}: expected ", $expected), shown);
                    serde::de::Error::custom(why)
                })
            }
        }
    };
}

word! {
    /// Kind of a node, written as its word.
    Kind(NodeKind), [
        (NodeKind::User, "user"),
        (NodeKind::Assistant, "assistant"),
        (NodeKind::Instruction, "instruction"),
        (NodeKind::FunctionCall, "function_call"),
        (NodeKind::FunctionCallOutput, "function_call_output"),
        (NodeKind::Reasoning, "reasoning"),
        (NodeKind::Compaction, "compaction"),
        (NodeKind::Extension, "extension"),
    ], "a kind of node"
}
word! {
    /// Origin of a node, written as its word.
    Source(Origin), Origin::ALL.map(|origin| (origin, origin.as_str())), "an origin"
}
word! {
    /// Status of a response, written as its word.
    Ended(ResponseStatus), ResponseStatus::ALL.map(|status| (status, status.as_str())),
    "`completed` or `incomplete`"
}
word! {
    /// Audience of a node, written as its word.
    Seen(Audience), [
        (Audience::ALL, "all"),
        (Audience::MODEL, "model"),
        (Audience::USER, "user"),
        (Audience::NONE, "none"),
    ], "`all`, `model`, `user` or `none`"
}

mod text {
    use super::*;

    pub(super) fn serialize<T: Display, S: Serializer>(id: &T, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    pub(super) fn deserialize<'de, T, D: Deserializer<'de>>(from: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
    {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

mod maybe {
    use super::*;

    pub(super) fn serialize<T: Display, S: Serializer>(
        id: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match id {
            Some(id) => to.collect_str(id),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, T, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
    {
        let text = Option::<String>::deserialize(from)?;
        let id = text.map(|text| text.parse()).transpose();
        id.map_err(serde::de::Error::custom)
    }
}

mod base64_text {
    use super::*;

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map_err(serde::de::Error::custom)
    }
}
