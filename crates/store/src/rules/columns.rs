//! Columns in which SQL backends store events, ends of streams and scopes of values.
//!
//! The codes are part of every database: none is ever reused with another meaning, so that older
//! databases stay readable.
//!
//! Not here: tables, keys and the types of a database's columns.

use contexture_ir::{BranchName, CheckpointName, ConversationId, NodeId};

use crate::contract::{EventKind, Fence, KeyScope, StreamEnd};

/// The columns of an event's kind; which of them are set depends on the code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventColumns<'a> {
    /// Code of the kind.
    pub code: u8,
    /// Name of the branch or checkpoint; for a renamed branch, its earlier name.
    pub name: Option<&'a str>,
    /// New name of a renamed branch.
    pub other: Option<&'a str>,
    /// Node of the event: a head, a base, a checkpoint's node or a redacted node.
    pub node: Option<NodeId>,
    /// Number of items or removed values, or the fence of a claim.
    pub number: Option<i64>,
}

impl<'a> EventColumns<'a> {
    /// Returns the columns of a kind.
    #[must_use]
    pub fn from_kind(kind: &'a EventKind) -> Self {
        let number = |n: u64| Some(i64::try_from(n).unwrap_or(i64::MAX));
        match kind {
            EventKind::Created => Self::plain(0),
            EventKind::Updated => Self::plain(1),
            EventKind::Appended {
                branch,
                head,
                count,
            } => Self {
                node: Some(*head),
                number: number(*count),
                ..Self::named(2, branch.as_str())
            },
            EventKind::BranchCreated { branch, base } => Self {
                node: *base,
                ..Self::named(3, branch.as_str())
            },
            EventKind::BranchActivated { branch } => Self::named(4, branch.as_str()),
            EventKind::BranchDeleted { branch } => Self::named(5, branch.as_str()),
            EventKind::BranchClaimed { branch, fence } => Self {
                number: number(fence.0),
                ..Self::named(6, branch.as_str())
            },
            EventKind::CheckpointSet { checkpoint, node } => Self {
                node: Some(*node),
                ..Self::named(7, checkpoint.as_str())
            },
            EventKind::CheckpointDeleted { checkpoint } => Self::named(8, checkpoint.as_str()),
            EventKind::BranchRenamed { from, to } => Self {
                other: Some(to.as_str()),
                ..Self::named(9, from.as_str())
            },
            EventKind::NodeRedacted { node } => Self {
                node: Some(*node),
                ..Self::plain(10)
            },
            EventKind::BytesRedacted { count } => Self {
                number: number(*count),
                ..Self::plain(11)
            },
            EventKind::BranchMoved { branch, head } => Self {
                node: *head,
                ..Self::named(12, branch.as_str())
            },
        }
    }

    fn plain(code: u8) -> Self {
        Self {
            code,
            ..Self::default()
        }
    }

    fn named(code: u8, name: &'a str) -> Self {
        Self {
            name: Some(name),
            ..Self::plain(code)
        }
    }

    /// Returns the kind; `None` for an unknown code, a missing column or an impossible name.
    #[must_use]
    pub fn to_kind(&self) -> Option<EventKind> {
        let branch = || BranchName::new(self.name.unwrap_or_default()).ok();
        let checkpoint = || CheckpointName::new(self.name.unwrap_or_default()).ok();
        let number = self.number.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        Some(match self.code {
            0 => EventKind::Created,
            1 => EventKind::Updated,
            2 => EventKind::Appended {
                branch: branch()?,
                head: self.node?,
                count: number,
            },
            3 => EventKind::BranchCreated {
                branch: branch()?,
                base: self.node,
            },
            4 => EventKind::BranchActivated { branch: branch()? },
            5 => EventKind::BranchDeleted { branch: branch()? },
            6 => EventKind::BranchClaimed {
                branch: branch()?,
                fence: Fence(number),
            },
            7 => EventKind::CheckpointSet {
                checkpoint: checkpoint()?,
                node: self.node?,
            },
            8 => EventKind::CheckpointDeleted {
                checkpoint: checkpoint()?,
            },
            9 => EventKind::BranchRenamed {
                from: branch()?,
                to: BranchName::new(self.other?).ok()?,
            },
            10 => EventKind::NodeRedacted { node: self.node? },
            11 => EventKind::BytesRedacted { count: number },
            12 => EventKind::BranchMoved {
                branch: branch()?,
                head: self.node,
            },
            _ => return None,
        })
    }
}

/// Encodes whether and how a stream ended: a status and, for a failure, its message.
#[must_use]
pub fn stream_end_columns(end: Option<&StreamEnd>) -> (u8, Option<&str>) {
    match end {
        None => (0, None),
        Some(StreamEnd::Completed) => (1, None),
        Some(StreamEnd::Failed { message }) => (2, Some(message)),
        Some(StreamEnd::Cancelled) => (3, None),
    }
}

/// Decodes whether and how a stream ended.
///
/// # Errors
///
/// The status itself, if it is none of [`stream_end_columns`].
pub fn stream_end_from_columns(
    status: i64,
    message: Option<String>,
) -> Result<Option<StreamEnd>, i64> {
    Ok(match status {
        0 => None,
        1 => Some(StreamEnd::Completed),
        2 => Some(StreamEnd::Failed {
            message: message.unwrap_or_default(),
        }),
        3 => Some(StreamEnd::Cancelled),
        unknown => return Err(unknown),
    })
}

/// Encodes a scope: a code, by which listings are ordered first, and a name.
#[must_use]
pub fn scope_columns(scope: &KeyScope) -> (u8, &str) {
    match scope {
        KeyScope::Owner => (0, ""),
        KeyScope::Resource(resource) => (1, resource),
        KeyScope::Conversation(id) => (2, id.as_str()),
    }
}

/// Decodes a scope.
///
/// # Errors
///
/// For the name of a conversation that cannot be one.
pub fn scope_from_columns(code: i64, name: &str) -> Result<KeyScope, contexture_ir::Error> {
    Ok(match code {
        0 => KeyScope::Owner,
        1 => KeyScope::Resource(name.to_owned()),
        _ => KeyScope::Conversation(ConversationId::new(name)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_kind() -> Vec<EventKind> {
        let branch = BranchName::new("draft").unwrap();
        let checkpoint = CheckpointName::new("before").unwrap();
        let node = NodeId::from_bytes([7; 16]);
        vec![
            EventKind::Created,
            EventKind::Updated,
            EventKind::Appended {
                branch: branch.clone(),
                head: node,
                count: 3,
            },
            EventKind::BranchCreated {
                branch: branch.clone(),
                base: None,
            },
            EventKind::BranchActivated {
                branch: branch.clone(),
            },
            EventKind::BranchDeleted {
                branch: branch.clone(),
            },
            EventKind::BranchClaimed {
                branch: branch.clone(),
                fence: Fence(9),
            },
            EventKind::CheckpointSet {
                checkpoint: checkpoint.clone(),
                node,
            },
            EventKind::CheckpointDeleted { checkpoint },
            EventKind::BranchRenamed {
                from: branch.clone(),
                to: BranchName::main(),
            },
            EventKind::NodeRedacted { node },
            EventKind::BytesRedacted { count: 2 },
            EventKind::BranchMoved { branch, head: None },
        ]
    }

    #[test]
    fn event_columns_keep_code_and_kind() {
        for (code, kind) in every_kind().iter().enumerate() {
            let columns = EventColumns::from_kind(kind);
            assert_eq!(usize::from(columns.code), code, "{kind:?}");
            assert_eq!(columns.to_kind().as_ref(), Some(kind));
        }
    }

    #[test]
    fn incomplete_event_columns_are_refused() {
        let check = |columns: EventColumns<'_>| assert_eq!(columns.to_kind(), None, "{columns:?}");
        check(EventColumns::plain(13));
        check(EventColumns::plain(2));
        check(EventColumns::named(7, "before"));
        check(EventColumns::named(9, "draft"));
        check(EventColumns::plain(10));
    }

    #[test]
    fn stream_ends_and_scopes_keep_their_codes() {
        let failed = StreamEnd::Failed {
            message: "gone".to_owned(),
        };
        let ends = [
            None,
            Some(StreamEnd::Completed),
            Some(failed),
            Some(StreamEnd::Cancelled),
        ];
        for (code, end) in ends.iter().enumerate() {
            let (status, message) = stream_end_columns(end.as_ref());
            assert_eq!(usize::from(status), code);
            let decoded = stream_end_from_columns(status.into(), message.map(str::to_owned));
            assert_eq!(decoded.as_ref(), Ok(end));
        }
        assert_eq!(stream_end_from_columns(4, None), Err(4));
        let id = ConversationId::new("c").unwrap();
        let scopes = [
            KeyScope::Owner,
            KeyScope::Resource("r".to_owned()),
            KeyScope::Conversation(id),
        ];
        for (code, scope) in scopes.iter().enumerate() {
            let (stored, name) = scope_columns(scope);
            assert_eq!(usize::from(stored), code);
            assert_eq!(scope_from_columns(stored.into(), name).unwrap(), *scope);
        }
        assert!(scope_from_columns(2, "").is_err());
    }
}
