//! Names of files and objects: 32 hexadecimal digits and a suffix. Anything else is foreign: it is neither read nor
//! adopted nor deleted.

use std::str::FromStr;

use contexture_ir::{ContentHash, NodeId};

use crate::store::CopyKind;

/// Kind of a file or object, given by its suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyFileKind {
    /// A stored text.
    Stored(CopyKind),
    /// The tombstone of an evicted text.
    Tombstone,
}

impl CopyFileKind {
    pub(crate) const ALL: [Self; 3] = [
        Self::Stored(CopyKind::Copy),
        Self::Stored(CopyKind::OnlyCopy),
        Self::Tombstone,
    ];

    const fn file_suffix(self) -> &'static str {
        match self {
            Self::Stored(CopyKind::Copy) => ".txt",
            Self::Stored(CopyKind::OnlyCopy) => ".only.txt",
            Self::Tombstone => ".gone",
        }
    }
}

/// Name of a copy's file.
pub(crate) fn file_name(content: ContentHash, kind: CopyFileKind) -> String {
    format!("{content}{}", kind.file_suffix())
}

/// Parses a file name; `None` if it is foreign.
pub(crate) fn parse_file_name(name: &str) -> Option<(ContentHash, CopyFileKind)> {
    let (digits, ending) = name.split_at_checked(32)?;
    let kind = CopyFileKind::ALL
        .into_iter()
        .find(|kind| kind.file_suffix() == ending)?;
    Some((parse_lower_hex(digits)?, kind))
}

/// Parses the digest in a folder name; `None` if it is foreign.
pub(crate) fn parse_folder_digest(name: &str) -> Option<NodeId> {
    parse_lower_hex(name)
}

fn parse_lower_hex<T: FromStr>(digits: &str) -> Option<T> {
    let lower = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digits.parse().ok().filter(|_| digits.bytes().all(lower))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ours_to_the_letter_or_not_at_all() {
        let content = ContentHash::of(b"x");
        for kind in CopyFileKind::ALL {
            assert_eq!(
                parse_file_name(&file_name(content, kind)),
                Some((content, kind))
            );
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
            assert_eq!(parse_file_name(&foreign), None, "{foreign}");
        }
        assert_eq!(parse_folder_digest(".."), None);
        assert!(parse_folder_digest(&digits).is_some());
    }
}
