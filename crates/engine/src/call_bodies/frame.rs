//! A body as it is stored with its call.
//!
//! Layout: version (1 byte); how many frames stand before it since the last key frame; length of the body; first 8 bytes of the body's
//! hash; 16 bytes each for the head and, unless it is a key frame, for the call before; how many nodes before the head it was
//! compared with; the difference. Numbers are variable in length.

use contexture_ir::{CallId, NodeId, Owner};
use contexture_store::BlobId;

use super::delta::{Varints, write_number};

/// The version of the layout.
const VERSION: u8 = 1;

/// A stored body: a difference, and what it is one to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BodyFrame<'a> {
    /// How many frames there are from the key frame to this one; 0: it is one.
    pub(super) generation: u64,
    /// The call whose body comes first in the base; `None` for a key frame.
    pub(super) previous: Option<CallId>,
    /// The last node of what the request had; `None` if it had nothing.
    pub(super) head: Option<NodeId>,
    /// How many nodes up to the head the base has, behind the body before.
    pub(super) nodes: u64,
    pub(super) length: usize,
    pub(super) check: [u8; 8],
    pub(super) delta: &'a [u8],
}

/// Returns the beginning of the hash of a body, which tells whether it came back as it was.
pub(super) fn body_check(owner: &Owner, body: &[u8]) -> [u8; 8] {
    let hash = BlobId::of(owner, body);
    hash.as_bytes().first_chunk().copied().unwrap_or_default()
}

impl<'a> BodyFrame<'a> {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        write_number(&mut out, self.generation);
        write_number(&mut out, self.length as u64);
        out.extend_from_slice(&self.check);
        let head = self.head.as_ref().map(NodeId::as_bytes);
        out.extend_from_slice(head.unwrap_or(&[0; 16]));
        out.extend(self.previous.iter().flat_map(|call| *call.as_bytes()));
        write_number(&mut out, self.nodes);
        out.extend_from_slice(self.delta);
        out
    }

    /// Reads a frame; `None` for one of a later version, or a damaged one.
    pub(super) fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first()?;
        if *version != VERSION {
            return None;
        }
        let mut numbers = Varints(rest);
        let generation = numbers.read_number()?;
        let length = usize::try_from(numbers.read_number()?).ok()?;
        let (check, rest) = numbers.0.split_first_chunk::<8>()?;
        let (head, mut rest) = rest.split_first_chunk::<16>()?;
        let mut previous = None;
        if generation > 0 {
            let (call, behind) = rest.split_first_chunk::<16>()?;
            previous = Some(CallId::from_bytes(*call));
            rest = behind;
        }
        let mut numbers = Varints(rest);
        let nodes = numbers.read_number()?;
        Some(Self {
            generation,
            previous,
            head: (*head != [0; 16]).then(|| NodeId::from_bytes(*head)),
            nodes,
            length,
            check: *check,
            delta: numbers.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_and_damaged_ones_do_not() {
        let owner = Owner::new("ada").unwrap();
        let key = BodyFrame {
            generation: 0,
            previous: None,
            head: None,
            nodes: 0,
            length: 300,
            check: body_check(&owner, b"body"),
            delta: b"difference",
        };
        let later = BodyFrame {
            generation: 63,
            previous: Some(CallId::first_at(7)),
            head: Some(NodeId::from_bytes([3; 16])),
            nodes: 4,
            ..key.clone()
        };
        for frame in [key, later] {
            let bytes = frame.to_bytes();
            assert_eq!(BodyFrame::from_bytes(&bytes).as_ref(), Some(&frame));
            let head = bytes.len() - frame.delta.len();
            for end in 0..head {
                assert_eq!(BodyFrame::from_bytes(&bytes[..end]), None, "{end}");
            }
            let newer = [&[VERSION + 1], &bytes[1..]].concat();
            assert_eq!(BodyFrame::from_bytes(&newer), None);
        }
    }
}
