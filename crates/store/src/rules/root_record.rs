//! Encodes state roots as bytes: in full, or as a difference from the root before.
//!
//! A root is stored in full as soon as the differences since the last full one would outweigh it.
//! So reading a root costs at most about twice its size, and storing a history of roots costs at
//! most about twice its changes.
//!
//! Format: one byte (0 full, 1 difference), then entries: one byte (0 removed, 1 put), key length,
//! key, and for a put schema version and 16 bytes of hash. Numbers are LEB128.

use contexture_ir::ContentHash;

use crate::contract::{StateEntry, StateKey, StateRoot};

/// A state root as it is stored: in full, or as the difference from the root before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootRecord {
    /// Whether the record is a full root; if not, decoding needs the record before it.
    pub whole: bool,
    /// Encoded entries, in the form that the module describes.
    pub body: Vec<u8>,
    /// Bytes of differences since the last full root; 0 for a full one.
    pub since_whole: usize,
}

const WHOLE: u8 = 0;
const DIFFERENCE: u8 = 1;
const REMOVED: u8 = 0;
const PUT: u8 = 1;

/// Encodes `root`, which differs by `changed` from the root before it. `since_whole` is the number
/// of bytes of differences up to that root; `None` if there is no root before.
#[must_use]
pub fn encode_root(
    root: &StateRoot,
    changed: &[(StateKey, Option<StateEntry>)],
    since_whole: Option<usize>,
) -> RootRecord {
    let mut whole = vec![WHOLE];
    for (key, entry) in root {
        put_entry(&mut whole, key, Some(entry));
    }
    if let Some(since_whole) = since_whole {
        let mut body = vec![DIFFERENCE];
        for (key, entry) in changed {
            put_entry(&mut body, key, entry.as_ref());
        }
        let since_whole = since_whole.saturating_add(body.len());
        // A full record once the differences since the last one are longer than it. This bounds the
        // cost of reading, and storing a change costs its own size on average.
        if since_whole <= whole.len() {
            return RootRecord {
                whole: false,
                body,
                since_whole,
            };
        }
    }
    RootRecord {
        whole: true,
        body: whole,
        since_whole: 0,
    }
}

/// Decodes a root from its records, newest first, ending with a full one; `None` if they are not
/// what [`encode_root`] writes.
#[must_use]
pub fn decode_root<B: AsRef<[u8]>>(newest_first: &[B]) -> Option<StateRoot> {
    let mut root = StateRoot::new();
    for (index, record) in newest_first.iter().rev().enumerate() {
        let (kind, mut rest) = record.as_ref().split_first()?;
        // Only the oldest record may be full; anything else means that a record is missing or
        // foreign.
        let expected = if index == 0 { WHOLE } else { DIFFERENCE };
        if *kind != expected {
            return None;
        }
        while !rest.is_empty() {
            match take_entry(&mut rest)? {
                (key, Some(entry)) => root.insert(key, entry),
                (key, None) => root.remove(&key),
            };
        }
    }
    Some(root)
}

fn put_entry(out: &mut Vec<u8>, key: &StateKey, entry: Option<&StateEntry>) {
    out.push(if entry.is_some() { PUT } else { REMOVED });
    put_number(out, key.as_str().len() as u64);
    out.extend_from_slice(key.as_str().as_bytes());
    if let Some(entry) = entry {
        put_number(out, u64::from(entry.version));
        out.extend_from_slice(entry.hash.as_bytes());
    }
}

fn take_entry(rest: &mut &[u8]) -> Option<(StateKey, Option<StateEntry>)> {
    let op = take_bytes(rest, 1)?.first().copied()?;
    let length = usize::try_from(take_number(rest)?).ok()?;
    let key = StateKey::new(std::str::from_utf8(take_bytes(rest, length)?).ok()?).ok()?;
    match op {
        REMOVED => Some((key, None)),
        PUT => {
            let version = u32::try_from(take_number(rest)?).ok()?;
            let hash = ContentHash::from_bytes(take_bytes(rest, 16)?.try_into().ok()?);
            Some((key, Some(StateEntry { version, hash })))
        }
        _ => None,
    }
}

fn take_bytes<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn put_number(out: &mut Vec<u8>, mut value: u64) {
    loop {
        // LEB128: lengths and versions are mostly below 128 and take one byte.
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = take_bytes(rest, 1)?.first().copied()?;
        // The loop allows at most ten bytes, so hostile input cannot shift beyond the number.
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(n: u32) -> StateEntry {
        StateEntry {
            version: n,
            hash: ContentHash::of(&n.to_le_bytes()),
        }
    }

    #[test]
    fn a_history_of_roots_reads_back_and_stays_small() {
        let mut root = StateRoot::new();
        let mut records: Vec<RootRecord> = Vec::new();
        let mut total = 0;
        for n in 0..500_u32 {
            let key = StateKey::new(format!("path/layer-{}", n % 5)).unwrap();
            let change = if n % 17 == 16 {
                root.remove(&key);
                None
            } else {
                root.insert(key.clone(), entry(n * 1000));
                Some(entry(n * 1000))
            };
            let since = records.last().map(|record| record.since_whole);
            let record = encode_root(&root, &[(key, change)], since);
            total += record.body.len();
            records.push(record);
            let tail = records.iter().rposition(|record| record.whole).unwrap();
            let chain: Vec<&[u8]> = records[tail..]
                .iter()
                .rev()
                .map(|record| record.body.as_slice())
                .collect();
            assert_eq!(decode_root(&chain).unwrap(), root, "after {n}");
        }
        assert!(total < 500 * 85, "{total} bytes for 500 roots");
    }

    #[test]
    fn other_bytes_are_refused() {
        let whole = encode_root(
            &StateRoot::from([(StateKey::new("a").unwrap(), entry(300))]),
            &[],
            None,
        );
        assert!(decode_root(&[&whole.body]).is_some());
        for end in 1..whole.body.len() {
            let cut = decode_root(&[&whole.body[..end]]);
            assert!(cut.is_none_or(|root| root.is_empty()), "cut at {end}");
        }
        assert!(decode_root(&[[DIFFERENCE]]).is_none());
        assert!(decode_root(&[[7_u8]]).is_none());
        assert!(
            decode_root(&[vec![
                WHOLE, PUT, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff
            ]])
            .is_none()
        );
        assert_eq!(decode_root::<&[u8]>(&[]), Some(StateRoot::new()));
    }
}
