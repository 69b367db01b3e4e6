//! The rows of a chat, as far as they can be read, and what is wrong with the others.

use contexture_ir::{Fields, Item, Raw, UiRole, quote_json};
use contexture_wire::ui::{lift_message, validate_json};
use serde_json::value::RawValue;

use crate::error::SessionError;
use crate::formats::ui::fill_template;
use crate::json::{excerpt, is_same_json};
use crate::session::Skipped;

/// Value of `type` in the rows that hold a message.
const MESSAGE: &str = "message";

/// The location of a row, for messages to people.
#[derive(Clone, Debug)]
pub(super) struct RowLocation {
    pub(super) table: &'static str,
    /// Number of the row in its table, counted from 1.
    pub(super) number: usize,
    /// Id or name of the row; empty if it has none.
    pub(super) name: String,
}

/// The faults of a chat: the first one ends the reading, or all are collected.
pub(super) struct RowFaults {
    pub(super) chat: String,
    pub(super) keep_going: bool,
    pub(super) skipped: Vec<Skipped>,
}

impl RowFaults {
    pub(super) fn record_fault(
        &mut self,
        place: &RowLocation,
        expected: &'static str,
        found: &str,
    ) -> Result<(), SessionError> {
        let whose = format!(
            "{} {} of chat {}",
            place.table,
            quote_excerpt(&place.name),
            quote_excerpt(&self.chat)
        );
        // Two ways of reading share this one place, so that no fault is reported in one way only.
        if self.keep_going {
            self.skipped.push(Skipped {
                number: place.number,
                what: format!("{whose}: expected {expected}, found {found}"),
            });
            return Ok(());
        }
        Err(SessionError::Record {
            place: place.table,
            number: place.number,
            expected,
            found: format!("{found} in {whose}"),
            read: place.number.saturating_sub(1),
        })
    }
}

fn quote_excerpt(name: &str) -> String {
    quote_json(&excerpt(name))
}

/// A row with a message. A row that cannot be read has no items; rows after it keep their parents.
#[derive(Debug)]
pub(super) struct MessageRow {
    pub(super) place: RowLocation,
    pub(super) id: String,
    pub(super) parent: Option<String>,
    /// Id in the message itself, which differs from that of the row after an edit.
    pub(super) message_id: String,
    pub(super) role: UiRole,
    pub(super) items: Vec<Item>,
    pub(super) created_at: Option<i64>,
    /// Message as it is, if its items might not give it back.
    pub(super) whole: Option<Raw>,
}

/// Reads the messages; rows without an id are left out, since nothing can follow them.
pub(super) fn read_rows(
    list: &[&RawValue],
    faults: &mut RowFaults,
) -> Result<Vec<MessageRow>, SessionError> {
    let mut rows = Vec::with_capacity(list.len());
    for (index, raw) in list.iter().enumerate() {
        let place = row_location("message", index, raw, "id");
        let columns = Fields::parse(raw.get()).ok();
        // Without an id no other row can name it, and no metadata could give it back.
        let Some(id) = columns.as_ref().and_then(|row| text_column(row, "id")) else {
            faults.record_fault(&place, "a row with an id", &excerpt(raw.get()))?;
            continue;
        };
        let mut row = MessageRow {
            place,
            id,
            parent: columns
                .as_ref()
                .and_then(|row| text_column(row, "parentId")),
            message_id: String::new(),
            role: UiRole::User,
            items: Vec::new(),
            created_at: columns
                .as_ref()
                .and_then(|row| integer_column(row, "createdAt")),
            whole: None,
        };
        // A row whose message is unreadable stays as an empty one, so that its children keep their place.
        if let Some(columns) = &columns
            && let Err((expected, found)) = read_message(columns, &mut row)
        {
            faults.record_fault(&row.place, expected, &found)?;
        }
        rows.push(row);
    }
    Ok(rows)
}

fn read_message(columns: &Fields<'_>, row: &mut MessageRow) -> Result<(), (&'static str, String)> {
    const EXPECTED: &str = "a UI message in `data`";
    match text_column(columns, "type") {
        // Only rows of this type hold a UI message.
        Some(kind) if kind != MESSAGE => {
            return Err((
                "a row of type `message`",
                format!("type {}", quote_excerpt(&kind)),
            ));
        }
        _ => {}
    }
    let wrong = |found: String| (EXPECTED, found);
    let data = columns.get(&["data"]).map_or("null", RawValue::get);
    // SQLite keeps it as text, PostgreSQL as JSON.
    let inner: Option<String> = serde_json::from_str(data).ok();
    let data = inner.as_deref().unwrap_or(data);
    let raw: &RawValue =
        serde_json::from_str(data).map_err(|_| wrong(format!("{}, not JSON", excerpt(data))))?;
    let list = format!("[{}]", raw.get());
    // Through the AI SDK's own rules, so that what is imported here is what an application would have accepted.
    let messages = validate_json(&list).map_err(|error| wrong(error.to_string()))?;
    let [message] = messages.as_slice() else {
        return Err(wrong(excerpt(data)));
    };
    row.message_id.clone_from(&message.id);
    row.role = message.role;
    row.items = lift_message(message).items;
    // The template is the id alone; everything else of a UI message follows from its items.
    let form = Raw::parse(format!(r#"{{"id":{}}}"#, quote_json(&message.id))).ok();
    let items: Vec<&Item> = row.items.iter().collect();
    let again = form.and_then(|form| fill_template(&form, &items));
    // System messages are kept whole, because leading ones become instructions and have no nodes to be written
    // from.
    let system = message.role == UiRole::System;
    if system || !again.is_some_and(|again| is_same_json(&again, raw.get())) {
        row.whole = Some(Raw::from(raw));
    }
    Ok(())
}

/// Returns the location of a row.
pub(super) fn row_location(
    table: &'static str,
    index: usize,
    row: &RawValue,
    column: &str,
) -> RowLocation {
    let fields = Fields::parse(row.get()).ok();
    RowLocation {
        table,
        number: index + 1,
        name: fields
            .and_then(|fields| text_column(&fields, column))
            .unwrap_or_default(),
    }
}

/// Reads a column that holds text.
pub(super) fn text_column(row: &Fields<'_>, column: &str) -> Option<String> {
    crate::json::text_of(row, column)
}

/// Reads a column that holds an integer.
pub(super) fn integer_column(row: &Fields<'_>, column: &str) -> Option<i64> {
    serde_json::from_str(row.get(&[column])?.get()).ok()
}
