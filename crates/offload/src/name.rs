//! The names of files and objects: 32 hexadecimal digits and an ending. What is named otherwise is not ours: it is
//! neither read nor adopted nor deleted.

use std::str::FromStr;

use contexture_ir::{ContentHash, NodeId};

use crate::store::Holding;

/// What a name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text that lies here.
    Held(Holding),
    /// The tombstone of one that did.
    Gone,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [
        Self::Held(Holding::Copy),
        Self::Held(Holding::Only),
        Self::Gone,
    ];

    const fn ending(self) -> &'static str {
        match self {
            Self::Held(Holding::Copy) => ".txt",
            Self::Held(Holding::Only) => ".only.txt",
            Self::Gone => ".gone",
        }
    }
}

/// A name.
pub(crate) fn name(content: ContentHash, kind: Kind) -> String {
    format!("{content}{}", kind.ending())
}

/// What a name says, if it is one of ours.
pub(crate) fn read(name: &str) -> Option<(ContentHash, Kind)> {
    let (digits, ending) = name.split_at_checked(32)?;
    let kind = Kind::ALL.into_iter().find(|kind| kind.ending() == ending)?;
    Some((hex(digits)?, kind))
}

/// The digest that a folder's name says, if it is one of ours.
pub(crate) fn folder(name: &str) -> Option<NodeId> {
    hex(name)
}

fn hex<T: FromStr>(digits: &str) -> Option<T> {
    let lower = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digits.parse().ok().filter(|_| digits.bytes().all(lower))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ours_to_the_letter_or_not_at_all() {
        let content = ContentHash::of(b"x");
        for kind in Kind::ALL {
            assert_eq!(read(&name(content, kind)), Some((content, kind)));
        }
        let digits = content.to_string();
        for foreign in [
            String::new(),
            digits.clone(),
            format!("{digits}.TXT"),
            format!("{digits}.txt.bak"),
            format!("{}.txt", &digits[1..]),
            format!("{}A.txt", &digits[1..]),
            format!("x{digits}.txt"),
            format!("../{digits}.txt"),
            format!("vfs_1700000000000_{digits}.txt"),
            "é".repeat(16) + ".txt",
        ] {
            assert_eq!(read(&foreign), None, "{foreign}");
        }
        assert_eq!(folder(".."), None);
        assert!(folder(&digits).is_some());
    }
}
