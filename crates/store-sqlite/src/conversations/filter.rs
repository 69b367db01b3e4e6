//! Conversation filters as SQL over the attribute table.
//!
//! `contexture_store::rules::matches_filter` defines what a filter means; every key and value is
//! bound.

use contexture_ir::{Owner, Raw};
use contexture_store::rules::filter_attributes;
use contexture_store::{
    Comparison, ConversationCursor, ListConversations, Metadata, MetadataFilter, MetadataValue,
};
use rusqlite::types::Value;
use rusqlite::{Connection, params};

use crate::error::RowError;

/// An SQL condition under construction.
#[derive(Debug, Default)]
pub(crate) struct ListCondition {
    pub(crate) sql: String,
    /// Values of its question marks, in order.
    pub(crate) bound: Vec<Value>,
}

impl ListCondition {
    /// Builds the condition of a list on rows of `conversations c`, without the title's text.
    pub(crate) fn from_list(owner: &Owner, list: &ListConversations) -> Self {
        let mut all = Self::default();
        all.push_sql("c.owner = ?", [owner.as_str().to_owned().into()]);
        if let Some(resource) = &list.resource {
            all.push_sql(" AND c.resource = ?", [resource.clone().into()]);
        }
        if let Some(since) = list.updated_since {
            all.push_sql(" AND c.updated_ms >= ?", [since.into()]);
        }
        if let Some(before) = list.updated_before {
            all.push_sql(" AND c.updated_ms < ?", [before.into()]);
        }
        if let Some(at) = &list.after {
            let (ms, id) = (at.updated_ms, at.id.as_str().to_owned());
            all.push_sql(
                " AND c.updated_ms <= ? AND (c.updated_ms < ? OR c.id > ?)",
                [ms.into(), ms.into(), id.into()],
            );
        }
        if list.title.is_some() {
            all.push_sql(" AND c.title IS NOT NULL", []);
        }
        if let Some(filter) = &list.metadata {
            all.push_sql(" AND ", []);
            all.push_filter(filter);
        }
        all
    }

    /// Appends the condition that a conversation does not come after this one in a list.
    pub(crate) fn push_end(&mut self, end: &ConversationCursor) {
        let (ms, id) = (end.updated_ms, end.id.as_str().to_owned());
        self.push_sql(
            " AND c.updated_ms >= ? AND (c.updated_ms > ? OR c.id <= ?)",
            [ms.into(), ms.into(), id.into()],
        );
    }

    pub(super) fn push_sql<const N: usize>(&mut self, sql: &str, bound: [Value; N]) {
        self.sql.push_str(sql);
        self.bound.extend(bound);
    }

    fn push_filter(&mut self, filter: &MetadataFilter) {
        const FIELD: &str =
            "EXISTS (SELECT 1 FROM attributes a WHERE a.conversation_no = c.no AND a.key = ?";
        match filter {
            MetadataFilter::Has(key) => {
                self.push_sql(FIELD, [key.as_str().to_owned().into()]);
                self.push_sql(")", []);
            }
            MetadataFilter::Compare { key, by, value } => {
                self.push_sql(FIELD, [key.as_str().to_owned().into()]);
                self.push_comparison(*by, value);
                self.push_sql(")", []);
            }
            MetadataFilter::All(all) => self.push_group("(1", " AND ", all),
            MetadataFilter::Any(any) => self.push_group("(0", " OR ", any),
            MetadataFilter::Not(one) => {
                self.push_sql("NOT (", []);
                self.push_filter(one);
                self.push_sql(")", []);
            }
        }
    }

    /// Appends the condition that the field of `attributes a` compares with a value.
    pub(super) fn push_comparison(&mut self, by: Comparison, value: &MetadataValue) {
        self.push_sql(" AND a.kind = ?", [i64::from(value.kind_code()).into()]);
        match (to_sql_value(value), by) {
            // Null equals null and is not ordered.
            (Value::Null, Comparison::Less | Comparison::Greater) => self.push_sql(" AND 0", []),
            (Value::Null, _) => {}
            (value, by) => self.push_sql(&format!(" AND a.value {} ?", by.as_str()), [value]),
        }
    }

    fn push_group(&mut self, start: &str, operator: &str, filters: &[MetadataFilter]) {
        self.push_sql(start, []);
        for filter in filters {
            self.push_sql(operator, []);
            self.push_filter(filter);
        }
        self.push_sql(")", []);
    }
}

fn to_sql_value(value: &MetadataValue) -> Value {
    match value {
        MetadataValue::Null => Value::Null,
        MetadataValue::Bool(value) => Value::Integer(i64::from(*value)),
        MetadataValue::Number(number) => Value::Real(*number),
        MetadataValue::Text(text) => Value::Text(text.clone()),
    }
}

/// Code of fields that exist and compare with nothing.
const OTHER: u8 = 4;

/// Replaces a conversation's rows in the attribute table by those of its metadata.
pub(crate) fn save_attributes(
    conn: &Connection,
    owner: &Owner,
    no: u32,
    metadata: &Metadata,
) -> Result<(), RowError> {
    conn.prepare_cached("DELETE FROM attributes WHERE conversation_no = ?")?
        .execute([no])?;
    let mut insert = conn.prepare_cached("INSERT INTO attributes VALUES (?, ?, ?, ?, ?)")?;
    for (key, value) in filter_attributes(metadata) {
        let kind = value.as_ref().map_or(OTHER, MetadataValue::kind_code);
        let value = value.as_ref().map_or(Value::Null, to_sql_value);
        insert.execute(params![no, key.as_str(), kind, value, owner.as_str()])?;
    }
    Ok(())
}

/// Reads stored metadata.
pub(crate) fn parse_metadata(json: Option<&[u8]>) -> Result<Metadata, String> {
    let Some(json) = json else {
        return Ok(Metadata::new());
    };
    let parsed: Result<std::collections::BTreeMap<String, Raw>, _> = serde_json::from_slice(json);
    parsed.map_err(|error| error.to_string())
}
