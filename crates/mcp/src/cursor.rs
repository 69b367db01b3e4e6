//! Where a page ended, as a client hands it back.
//!
//! A cursor says a place, not a right: whatever it names is looked for among the owner's own. One that is made up is
//! refused by its form, or leads nowhere. Its parts are parted by `~`, which no id has.

use contexture::ir::ConversationId;
use contexture::store::{ConversationCursor, SearchCursor};
use contexture_api::operations::parse_hit_cursor;

use crate::tool_error::ToolError;

/// After a conversation of a list.
pub(crate) fn encode_conversation_cursor(cursor: &ConversationCursor) -> String {
    format!("{}~{}", cursor.updated_ms, cursor.id)
}

/// Reads what [`encode_conversation_cursor`] wrote.
pub(crate) fn parse_conversation_cursor(text: &str) -> Result<ConversationCursor, ToolError> {
    let read = || {
        let (ms, id) = text.split_once('~')?;
        // The time may be negative, so it is read as signed; the id has its own grammar, which
        // refuses a second `~`.
        Some(ConversationCursor {
            updated_ms: ms.parse().ok()?,
            id: ConversationId::new(id).ok()?,
        })
    };
    read().ok_or_else(|| invalid_cursor(text))
}

/// Reads the place after a hit of a search.
pub(crate) fn read_hit_cursor(text: &str) -> Result<SearchCursor, ToolError> {
    parse_hit_cursor(text).ok_or_else(|| invalid_cursor(text))
}

fn invalid_cursor(text: &str) -> ToolError {
    // It comes from outside and may be of any length.
    let shown: String = text.chars().take(80).collect();
    ToolError::new("bad_cursor", format!("{shown:?} is no cursor"))
        .with_hint("give `next_cursor` of the page before as it is, or none for the first page")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let id = ConversationId::new("a.b_c:d-1").unwrap();
        let cursor = ConversationCursor {
            updated_ms: -5,
            id: id.clone(),
        };
        assert_eq!(
            parse_conversation_cursor(&encode_conversation_cursor(&cursor)).unwrap(),
            cursor
        );
    }

    #[test]
    fn what_is_made_up_is_refused() {
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
            assert!(parse_conversation_cursor(text).is_err(), "{text:?}");
        }
    }
}
