//! The indexes of lists: which conversations a title's or a field's index proposes.
//!
//! `contexture_store::rules` says what an index can check ([`IndexedCondition`]); here is whether it pays, by counting what
//! it proposes, and the rows of the index of titles.

use contexture_ir::Owner;
use contexture_store::rules::{self, IndexedCondition, MAX_PROPOSED, TitleTerm};
use contexture_store::{ListConversations, MetadataFilter};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use crate::conversations::filter::{ListCondition, parse_metadata, save_attributes};
use crate::error::{RowError, corrupt_error};

/// Numbers of the conversations whose titles match an expression.
pub(crate) const TITLES: &str = "SELECT rowid AS no FROM search_titles WHERE search_titles MATCH ?";

/// Numbers of the conversations of an owner with a field.
const FIELDS: &str =
    "SELECT a.conversation_no AS no FROM attributes a WHERE a.owner = ? AND a.key = ?";

/// Returns a query for the numbers of all conversations that a list may have, if an index proposes few: at most
/// [`MAX_PROPOSED`].
pub(crate) fn propose_conversations(
    conn: &Connection,
    owner: &Owner,
    list: &ListConversations,
) -> Result<Option<ListCondition>, RowError> {
    let mut best: Option<(usize, ListCondition)> = None;
    for condition in rules::indexed_conditions(owner, list) {
        let query = proposal_query(owner, &condition);
        // Counted up to the best one so far, so a condition that many fulfil costs no more than it.
        let enough = best.as_ref().map_or(MAX_PROPOSED + 1, |(count, _)| *count);
        let count = count_proposed(conn, &query, enough)?;
        if count < enough {
            best = Some((count, query));
        }
    }
    Ok(best.map(|(_, query)| query))
}

/// Returns a query for the numbers of the conversations that satisfy a condition.
pub(crate) fn proposal_query(owner: &Owner, condition: &IndexedCondition<'_>) -> ListCondition {
    let mut query = ListCondition::default();
    match condition {
        IndexedCondition::Title(terms) => query.push_sql(TITLES, [match_expression(terms).into()]),
        IndexedCondition::AnyField(fields) => {
            for (n, field) in fields.iter().enumerate() {
                query.push_sql(if n > 0 { " UNION " } else { "" }, []);
                push_field_query(&mut query, owner, field);
            }
        }
    }
    query
}

fn push_field_query(query: &mut ListCondition, owner: &Owner, field: &MetadataFilter) {
    let mut push_key = |key: &str| {
        let bound: [Value; 2] = [owner.as_str().to_owned().into(), key.to_owned().into()];
        query.push_sql(FIELDS, bound);
    };
    match field {
        MetadataFilter::Has(key) => push_key(key.as_str()),
        MetadataFilter::Compare { key, by, value } => {
            push_key(key.as_str());
            query.push_comparison(*by, value);
        }
        // The rules name single fields only.
        _ => query.push_sql(
            "SELECT no FROM conversations WHERE owner = ?",
            [owner.as_str().to_owned().into()],
        ),
    }
}

fn count_proposed(
    conn: &Connection,
    query: &ListCondition,
    limit: usize,
) -> Result<usize, RowError> {
    let mut statement = conn.prepare_cached(&query.sql)?;
    let mut rows = statement.query(params_from_iter(&query.bound))?;
    let mut count = 0;
    while count < limit && rows.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// Builds the FTS5 expression for titles that have all these terms, which contain no quotes.
fn match_expression(terms: &[TitleTerm]) -> String {
    let terms = terms.iter().map(|term| {
        let prefix = if term.prefix { "*" } else { "" };
        format!("\"{}\"{prefix}", term.term)
    });
    terms.collect::<Vec<_>>().join(" AND ")
}

/// Indexes a title. What the index had of the conversation was removed with its title, by a trigger.
pub(crate) fn index_title(
    conn: &Connection,
    owner: &Owner,
    no: u32,
    title: Option<&str>,
) -> Result<(), RowError> {
    if let Some(title) = title {
        conn.prepare_cached("INSERT INTO search_titles (rowid, terms) VALUES (?, ?)")?
            .execute(params![no, rules::title_terms(owner, title)])?;
    }
    Ok(())
}

/// Fills the indexes of a database that has none yet. Unreadable metadata is skipped: reading the conversation will report
/// it.
pub(crate) fn fill_list_index(conn: &Connection) -> Result<(), RowError> {
    let mut statement = conn.prepare(
        "SELECT c.no, c.owner, c.title, m.metadata FROM conversations c \
         LEFT JOIN metadata m ON m.conversation_no = c.no",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let no = row.get(0)?;
        let owner = Owner::new(row.get::<_, String>(1)?);
        let owner = owner.map_err(|error| corrupt_error(error.to_string()))?;
        let title: Option<String> = row.get(2)?;
        index_title(conn, &owner, no, title.as_deref())?;
        let json: Option<Vec<u8>> = row.get(3)?;
        if let Ok(metadata) = parse_metadata(json.as_deref()) {
            save_attributes(conn, &owner, no, &metadata)?;
        }
    }
    Ok(())
}
