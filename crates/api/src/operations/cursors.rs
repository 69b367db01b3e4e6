//! Where a page ended, as a text that a client hands back.
//!
//! A cursor says a place, not a right: whatever it names is looked for among the owner's own. Its parts are separated by `~`, which
//! no id has.

use contexture::ir::{ConversationId, NodeId, RunId};
use contexture::runs::RunCursor;
use contexture::store::{ConversationCursor, SearchCursor};

/// Writes the place after a conversation of a list.
///
/// ```
/// use contexture_api::operations::{encode_conversation_cursor, parse_conversation_cursor};
///
/// let cursor = parse_conversation_cursor("5~support-42").unwrap();
/// assert_eq!(encode_conversation_cursor(&cursor), "5~support-42");
/// assert!(parse_conversation_cursor("page 2").is_none());
/// ```
#[must_use]
pub fn encode_conversation_cursor(cursor: &ConversationCursor) -> String {
    format!("{}~{}", cursor.updated_ms, cursor.id)
}

/// Reads what [`encode_conversation_cursor`] wrote; `None` for anything else.
#[must_use]
pub fn parse_conversation_cursor(text: &str) -> Option<ConversationCursor> {
    let (ms, id) = text.split_once('~')?;
    // The time may be negative, so it is read as signed; the id has its own grammar, which refuses a second `~`.
    Some(ConversationCursor {
        updated_ms: ms.parse().ok()?,
        id: ConversationId::new(id).ok()?,
    })
}

/// Writes the place after a hit.
#[must_use]
pub fn encode_hit_cursor(cursor: &SearchCursor) -> String {
    let SearchCursor {
        score,
        created_ms,
        depth,
        conversation,
        node,
    } = cursor;
    format!("{score}~{created_ms}~{depth}~{conversation}~{node}")
}

/// Reads what [`encode_hit_cursor`] wrote; `None` for anything else.
#[must_use]
pub fn parse_hit_cursor(text: &str) -> Option<SearchCursor> {
    let mut parts = text.split('~');
    let cursor = SearchCursor {
        score: parts.next()?.parse().ok()?,
        created_ms: parts.next()?.parse().ok()?,
        depth: parts.next()?.parse().ok()?,
        conversation: ConversationId::new(parts.next()?).ok()?,
        node: parts.next()?.parse::<NodeId>().ok()?,
    };
    // A sixth part means that somebody made it up.
    parts.next().is_none().then_some(cursor)
}

/// Writes the place after a run of a list.
///
/// ```
/// use contexture_api::operations::{encode_run_cursor, parse_run_cursor};
///
/// let cursor = parse_run_cursor("5~019a3c5e7b1d7f0c8e2a4b6d8f0a1c3e").unwrap();
/// assert_eq!(encode_run_cursor(&cursor), "5~019a3c5e7b1d7f0c8e2a4b6d8f0a1c3e");
/// assert!(parse_run_cursor("5~everything").is_none());
/// ```
#[must_use]
pub fn encode_run_cursor(cursor: &RunCursor) -> String {
    format!("{}~{}", cursor.started_ms, cursor.run)
}

/// Reads what [`encode_run_cursor`] wrote; `None` for anything else.
#[must_use]
pub fn parse_run_cursor(text: &str) -> Option<RunCursor> {
    let (ms, run) = text.split_once('~')?;
    // As ids are written, so that the place sorts among them.
    let run: RunId = run.parse().ok()?;
    Some(RunCursor {
        started_ms: ms.parse().ok()?,
        run: run.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let id = ConversationId::new("a.b_c:d-1").unwrap();
        let cursor = ConversationCursor { updated_ms: -5, id };
        let text = encode_conversation_cursor(&cursor);
        assert_eq!(parse_conversation_cursor(&text), Some(cursor));
    }

    #[test]
    fn what_is_made_up_is_none() {
        let long = "9".repeat(5_000);
        for text in [
            "",
            "~",
            "1~",
            "x~a",
            "1~a/../b",
            "1~a~",
            "9223372036854775808~a",
            &long,
        ] {
            assert_eq!(parse_conversation_cursor(text), None, "{text:?}");
        }
    }

    #[test]
    fn cursors_that_were_written_are_read() {
        let cursor = SearchCursor {
            score: 7,
            created_ms: -12,
            depth: 3,
            conversation: ConversationId::new("a.b_c:d-1").unwrap(),
            node: NodeId::from_bytes([7; 16]),
        };
        let written = encode_hit_cursor(&cursor);
        assert_eq!(parse_hit_cursor(&written), Some(cursor));
        let node = "0".repeat(32);
        for made_up in [
            String::new(),
            "1~2~3~a".to_owned(),
            format!("1~2~3~a~{node}~"),
            format!("-1~2~3~a~{node}"),
            "9".repeat(5_000),
        ] {
            assert_eq!(parse_hit_cursor(&made_up), None, "{made_up}");
        }
    }
}
