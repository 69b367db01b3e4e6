//! Conversation filters as SQL over the attribute table.
//!
//! `contexture_store::rules::matches_filter` defines what a filter means; every key and value is
//! bound.

use contexture_ir::Owner;
use contexture_store::rules::filter_attributes;
use contexture_store::{
    Comparison, ConversationCursor, ListConversations, Metadata, MetadataFilter, MetadataValue,
};

use crate::connection::params::{Bytea, Column, Param, params};
use crate::connection::transaction::Tx;

/// An SQL condition under construction.
pub(crate) struct ListCondition {
    pub(crate) sql: String,
    /// Values of its numbered parameters, in order.
    pub(crate) bound: Vec<Param>,
}

impl ListCondition {
    /// Builds the condition of a list on rows of `listings l`, without the owner, the title's text
    /// and the cursor. It begins with `AND` or is empty; `$1` is the owner.
    pub(crate) fn from_list(owner: &Owner, list: &ListConversations) -> Self {
        let mut all = Self {
            sql: String::new(),
            bound: params![owner.as_str()],
        };
        if let Some(resource) = &list.resource {
            all.push_comparison(" AND l.resource = ", Bytea::Text(resource.as_str().into()));
        }
        if let Some(since) = list.updated_since {
            all.push_comparison(" AND l.updated_ms >= ", since);
        }
        if let Some(before) = list.updated_before {
            all.push_comparison(" AND l.updated_ms < ", before);
        }
        if let Some(filter) = &list.metadata {
            all.sql.push_str(" AND ");
            all.push_filter(filter);
        }
        all
    }

    /// Appends SQL and the number of a new parameter.
    pub(crate) fn push_comparison(&mut self, sql: &str, value: impl Column) {
        self.bound.push(Param::new(value));
        self.sql.push_str(sql);
        self.sql.push_str(&format!("${}", self.bound.len()));
    }

    /// Appends the condition that a conversation comes after this one in a list.
    pub(crate) fn push_after(&mut self, after: &ConversationCursor) {
        // Both a plain bound, for the index, and the exact cursor, for rows with the same time.
        self.push_comparison(" AND l.updated_ms <= ", after.updated_ms);
        self.push_comparison(" AND (l.updated_ms < ", after.updated_ms);
        self.push_comparison(" OR l.id > ", after.id.as_str());
        self.sql.push(')');
    }

    /// Appends the condition that a conversation does not come after this one in a list.
    pub(crate) fn push_end(&mut self, end: &ConversationCursor) {
        self.push_comparison(" AND l.updated_ms >= ", end.updated_ms);
        self.push_comparison(" AND (l.updated_ms > ", end.updated_ms);
        self.push_comparison(" OR l.id <= ", end.id.as_str());
        self.sql.push(')');
    }

    fn push_filter(&mut self, filter: &MetadataFilter) {
        const FIELD: &str = "EXISTS (SELECT FROM contexture.attributes a \
             WHERE a.conversation = l.conversation AND a.key = ";
        match filter {
            MetadataFilter::Has(key) => {
                self.push_comparison(FIELD, key.as_str());
                self.sql.push(')');
            }
            MetadataFilter::Compare { key, by, value } => {
                self.push_comparison(FIELD, key.as_str());
                self.push_comparison(" AND a.kind = ", i16::from(value.kind_code()));
                let operator = by.as_str();
                match (numeric_value(value), value) {
                    (Some(number), _) => {
                        self.push_comparison(&format!(" AND a.number {operator} "), number)
                    }
                    (None, MetadataValue::Text(text)) => {
                        self.push_comparison(&format!(" AND a.words {operator} "), text.as_str());
                    }
                    // Null equals null and is not ordered.
                    _ if matches!(by, Comparison::Less | Comparison::Greater) => {
                        self.sql.push_str(" AND false");
                    }
                    _ => {}
                }
                self.sql.push(')');
            }
            MetadataFilter::All(all) => self.push_group("(true", " AND ", all),
            MetadataFilter::Any(any) => self.push_group("(false", " OR ", any),
            MetadataFilter::Not(one) => {
                self.sql.push_str("NOT (");
                self.push_filter(one);
                self.sql.push(')');
            }
        }
    }

    fn push_group(&mut self, start: &str, operator: &str, filters: &[MetadataFilter]) {
        self.sql.push_str(start);
        for filter in filters {
            self.sql.push_str(operator);
            self.push_filter(filter);
        }
        self.sql.push(')');
    }
}

/// Returns a number, or a Boolean as one.
pub(super) fn numeric_value(value: &MetadataValue) -> Option<f64> {
    match value {
        MetadataValue::Number(number) => Some(*number),
        MetadataValue::Bool(value) => Some(f64::from(u8::from(*value))),
        MetadataValue::Null | MetadataValue::Text(_) => None,
    }
}

/// Code of fields that exist and compare with nothing.
const OTHER: u8 = 4;

/// Replaces a conversation's rows in the attribute table by those of its metadata.
pub(crate) fn save_attributes(tx: &mut Tx<'_>, owner: &Owner, key: [u8; 16], metadata: &Metadata) {
    tx.execute_on_commit(
        "DELETE FROM contexture.attributes WHERE conversation = $1",
        params![key],
    );
    let attributes = filter_attributes(metadata);
    if attributes.is_empty() {
        return;
    }
    let (mut keys, mut kinds) = (Vec::new(), Vec::new());
    let (mut numbers, mut words) = (Vec::new(), Vec::new());
    for (key, value) in &attributes {
        keys.push(key.as_str().to_owned());
        kinds.push(i16::from(
            value.as_ref().map_or(OTHER, MetadataValue::kind_code),
        ));
        numbers.push(value.as_ref().and_then(numeric_value));
        words.push(match value {
            Some(MetadataValue::Text(text)) => Some(text.clone()),
            _ => None,
        });
    }
    tx.execute_on_commit(
        "INSERT INTO contexture.attributes (conversation, owner, key, kind, number, words) \
         SELECT $1, $2, added.* FROM unnest($3, $4, $5, $6) AS added",
        params![key, owner.as_str(), keys, kinds, numbers, words],
    );
}
