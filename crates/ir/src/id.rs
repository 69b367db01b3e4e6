//! Ids and names: binary ids of 16 bytes, and textual ids and names with a rule.
//!
//! Binary ids are 16 bytes shown as 32 hexadecimal digits; people may type any unique prefix. Textual
//! ids and names carry a rule that is checked once, when they are made, so that no store, path or
//! terminal has to guard itself again.

use std::fmt;
use std::str::FromStr;

use contexture_text::truncate_chars;

use crate::error::Error;

macro_rules! binary_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name([u8; 16]);

        impl $name {
            /// Wraps 16 bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// The 16 bytes.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }

            /// The first 16 bytes of BLAKE3 over the parts, each preceded by its length, so that no
            /// two lists of parts run together.
            #[must_use]
            pub fn derive(domain: &str, parts: &[&[u8]]) -> Self {
                Self(digest(domain, parts))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                parse_hex(text).map(Self).ok_or_else(|| Error::BadId {
                    kind: $kind,
                    value: truncate_chars(text, 80),
                    rule: "expected 32 hexadecimal digits",
                })
            }
        }
    };
}

binary_id! {
    /// One node of a conversation's tree.
    NodeId, "node id"
}
binary_id! {
    /// The content of some bytes: the first 16 bytes of their BLAKE3 hash.
    ContentHash, "content hash"
}
binary_id! {
    /// One model call.
    ResponseId, "response id"
}
binary_id! {
    /// One execution of an agent.
    RunId, "run id"
}
binary_id! {
    /// The log of one answer that is being streamed.
    StreamId, "stream id"
}
binary_id! {
    /// One process, or one engine of it, that shares a store with others.
    ProcessId, "process id"
}
binary_id! {
    /// The hash of a history up to a point; see [`HistoryHasher`](crate::HistoryHasher).
    PathHash, "path hash"
}

binary_id! {
    /// One exchange with a provider. Ids are ordered by time: they are UUIDs of version 7, whose first 48 bits are
    /// milliseconds since the Unix epoch.
    CallId, "call id"
}

impl NodeId {
    /// The id of the `index`-th node that one operation stores. `key` is the operation's: a hash, or random.
    ///
    /// The ids of an operation end in numbers that follow each other, so that they lie together in an index over the ends
    /// of ids. Their beginnings, which people type, differ.
    #[must_use]
    pub fn of_operation(key: &[u8; 16], index: usize) -> Self {
        let mut id = digest("node", &[key, &(index as u64).to_le_bytes()]);
        let [.., a, b, c, d] = *key;
        // From 2^32 on the numbers begin again: the rest of the id still differs.
        let number = u32::from_be_bytes([a, b, c, d]).wrapping_add(index as u32);
        let end = id.iter_mut().rev().zip(number.to_le_bytes());
        end.for_each(|(to, from)| *to = from);
        Self(id)
    }
}

impl PathHash {
    /// Where the hash lies in an index of hashes: its first four bytes.
    pub(crate) const fn position(&self) -> u32 {
        let [a, b, c, d, ..] = self.0;
        u32::from_be_bytes([a, b, c, d])
    }

    /// A hash that begins with this position, in the place of its last four bytes.
    pub(crate) fn with_position(self, position: u32) -> Self {
        let mut bytes = [0; 16];
        let position = position.to_be_bytes();
        let from = position.iter().chain(&self.0);
        bytes
            .iter_mut()
            .zip(from)
            .for_each(|(to, from)| *to = *from);
        Self(bytes)
    }

    /// This hash at the place of another one in an index of hashes: its first four bytes are the other's.
    #[must_use]
    pub fn beside(self, other: Self) -> Self {
        self.with_position(other.position())
    }
}

impl CallId {
    /// The id of an exchange that began at this time, in milliseconds since the Unix epoch, made unique by random bytes.
    /// A time before 1970 counts as its beginning, one after the year 10889 as its end.
    #[must_use]
    pub fn from_time(at_ms: i64, random: [u8; 10]) -> Self {
        let at = u64::try_from(at_ms).unwrap_or(0).min(Self::LAST_MS);
        let [_, _, time @ ..] = at.to_be_bytes();
        let mut id = [0; 16];
        let bytes = time.iter().chain(&random);
        id.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        // The version and the variant, as RFC 9562 has them.
        id[6] = (id[6] & 0x0f) | 0x70;
        id[8] = (id[8] & 0x3f) | 0x80;
        Self(id)
    }

    /// The smallest id of this time, in milliseconds since the Unix epoch: those of the exchanges that began earlier are
    /// smaller, all others are not.
    #[must_use]
    pub fn first_at(at_ms: i64) -> Self {
        let at = u64::try_from(at_ms).unwrap_or(0);
        if at > Self::LAST_MS {
            return Self([0xff; 16]);
        }
        Self::from_bytes((u128::from(at) << 80).to_be_bytes())
    }

    /// The time at which the exchange began, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn time_ms(&self) -> i64 {
        i64::try_from(u128::from_be_bytes(self.0) >> 80).unwrap_or(i64::MAX)
    }

    /// The last millisecond that 48 bits hold.
    const LAST_MS: u64 = (1 << 48) - 1;
}

impl ContentHash {
    /// The hash of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::of_hash(blake3::hash(bytes))
    }

    pub(crate) fn of_hash(hash: blake3::Hash) -> Self {
        Self(truncate_hash(hash))
    }
}

fn digest(domain: &str, parts: &[&[u8]]) -> [u8; 16] {
    // Gathered: for a few bytes a hasher that is fed costs several times the hashing.
    let mut bytes = Vec::with_capacity(96);
    for part in std::iter::once(&domain.as_bytes()).chain(parts) {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    truncate_hash(blake3::hash(&bytes))
}

// Sixteen bytes are enough for ids that nobody chooses freely, and half the size of every key and index of a
// store.
fn truncate_hash(hash: blake3::Hash) -> [u8; 16] {
    let mut out = [0; 16];
    out.iter_mut()
        .zip(hash.as_bytes())
        .for_each(|(to, from)| *to = *from);
    out
}

// Upper-case digits are accepted too: people paste ids from other tools. Display always writes lower case.
fn parse_hex(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 {
        return None;
    }
    let mut out = [0; 16];
    for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let mut digits = pair.iter().map(|digit| char::from(*digit).to_digit(16));
        let (high, low) = (digits.next()??, digits.next()??);
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    Some(out)
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $max:literal, $allowed:expr, $rule:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Box<str>);

        impl $name {
            /// The longest allowed text, in bytes.
            pub const MAX_BYTES: usize = $max;

            /// Checks the rule.
            pub fn new(text: impl AsRef<str>) -> Result<Self, Error> {
                let text = text.as_ref();
                let allowed: fn(char) -> bool = $allowed;
                // Bytes are bounded and not characters, because keys of databases are.
                if text.is_empty() || text.len() > $max || !text.chars().all(allowed) {
                    return Err(Error::BadId { kind: $kind, value: truncate_chars(text, 80), rule: $rule });
                }
                Ok(Self(text.into()))
            }

            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // `pad` and not `write_str`, so that `{:<20}` aligns ids in tables.
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                Self::new(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
    };
}

const fn is_plain_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-')
}

// No `/` here: ids stand as one segment in paths and addresses.
text_id! {
    /// A conversation, unique within its owner.
    ConversationId, "conversation id", 128, is_plain_char,
    "expected 1 to 128 of the characters A-Z a-z 0-9 . _ : -"
}
text_id! {
    /// The isolation boundary: an opaque path such as `tenant/owner`, compared byte by byte.
    Owner, "owner", 256, |c| is_plain_char(c) || matches!(c, '/' | '@' | '+'),
    "expected 1 to 256 of the characters A-Z a-z 0-9 . _ : - / @ +"
}
text_id! {
    /// A branch, unique within its conversation.
    BranchName, "branch name", 255, |c| is_plain_char(c) || c == '/',
    "expected 1 to 255 of the characters A-Z a-z 0-9 . _ : - /"
}
text_id! {
    /// A checkpoint, unique within its conversation.
    CheckpointName, "checkpoint name", 255, |c| !c.is_control(),
    "expected 1 to 255 bytes without control characters"
}
text_id! {
    /// A message: the nodes that fold into one UI message. Unique on a path.
    MessageId, "message id", 255, |c| !c.is_control(),
    "expected 1 to 255 bytes without control characters"
}

impl BranchName {
    /// The branch every conversation starts with.
    #[must_use]
    pub fn main() -> Self {
        Self("main".into())
    }
}

impl Owner {
    /// The owner of a single-user installation.
    #[must_use]
    pub fn local() -> Self {
        Self("local".into())
    }
}

impl MessageId {
    /// The id of a message that came without one and begins with this node. Ids of messages lie in an index as the ids of
    /// an operation's nodes do: they begin with the number in which the node's ends.
    #[must_use]
    pub fn of_node(node: NodeId) -> Self {
        let [.., a, b, c, d] = node.0;
        let hash = PathHash(digest("message", &[&node.0]));
        let id = hash.with_position(u32::from_be_bytes([a, b, c, d]));
        Self(id.to_string().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_both_ways() {
        let id = NodeId::derive("test", &[b"a"]);
        assert_eq!(id.to_string().parse::<NodeId>().unwrap(), id);
        for bad in [
            "",
            "7c1e",
            "zz000000000000000000000000000000",
            "é00000000000000000000000000000",
        ] {
            assert!(bad.parse::<NodeId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn derived_ids_keep_their_parts_apart() {
        assert_ne!(
            NodeId::derive("t", &[b"ab", b"c"]),
            NodeId::derive("t", &[b"a", b"bc"])
        );
        assert_ne!(NodeId::derive("t", &[b"a"]), NodeId::derive("u", &[b"a"]));
    }

    #[test]
    fn ids_of_an_operation_end_in_numbers_that_follow() {
        let key = [0xff; 16];
        let ids: Vec<NodeId> = (0..300).map(|n| NodeId::of_operation(&key, n)).collect();
        let end = |id: &NodeId| u32::from_be_bytes(*id.as_bytes().last_chunk().unwrap());
        assert_eq!(end(&ids[0]), u32::MAX);
        assert!(
            ids.windows(2)
                .all(|two| end(&two[1]) == end(&two[0]).wrapping_add(1))
        );
        let starts: std::collections::BTreeSet<&[u8]> =
            ids.iter().map(|id| &id.as_bytes()[..6]).collect();
        assert_eq!(starts.len(), ids.len());
    }

    #[test]
    fn call_ids_are_ordered_by_time() {
        let times = [0, 1, 1_700_000_000_000, (1 << 48) - 1];
        for (at, random) in times
            .into_iter()
            .zip([[0xff; 10], [0; 10]].into_iter().cycle())
        {
            let id = CallId::from_time(at, random);
            assert_eq!(id.time_ms(), at);
            assert!(
                CallId::first_at(at) <= id && id < CallId::first_at(at + 1),
                "{at}"
            );
            assert_eq!(&id.to_string()[12..13], "7", "a UUID of version 7");
        }
        for absurd in [i64::MIN, -1, 1 << 48, i64::MAX] {
            let time = CallId::from_time(absurd, [0; 10]).time_ms();
            assert_eq!(time, absurd.clamp(0, (1 << 48) - 1));
        }
        assert!(CallId::first_at(i64::MIN) <= CallId::from_time(0, [0; 10]));
    }

    #[test]
    fn names_obey_their_rule() {
        for good in ["a", "support-42", "A.b_c:d"] {
            assert_eq!(ConversationId::new(good).unwrap().as_str(), good);
        }
        let long = "x".repeat(129);
        for bad in ["", "a b", "../x", "a/b", "a\0", "ä", long.as_str()] {
            assert!(ConversationId::new(bad).is_err(), "{bad:?}");
        }
        assert!(Owner::new("acme/ada@example.org").is_ok());
        assert!(CheckpointName::new("before the refund").is_ok());
        assert!(CheckpointName::new("a\nb").is_err());
    }
}
