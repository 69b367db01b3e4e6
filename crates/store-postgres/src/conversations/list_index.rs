//! The indexes of lists: which conversations a title's or a field's index proposes.
//!
//! `contexture_store::rules` says what an index can check ([`IndexedCondition`]); here is whether it pays, by counting what
//! it proposes, and the terms of titles that an older version stored.

use contexture_ir::Owner;
use contexture_store::rules::{self, IndexedCondition, MAX_PROPOSED, TitleTerm};
use contexture_store::{Comparison, ListConversations, MetadataFilter, MetadataValue};
use futures_util::future::try_join_all;
use tokio_postgres::Client;

use crate::connection::error::RowError;
use crate::connection::params::{Bytea, Param, get_bytes, get_column, params};
use crate::connection::transaction::{Tx, bind_params};
use crate::conversations::filter::numeric_value;

/// Number of titles that one step of [`fill_title_terms`] indexes.
const STEP_TITLES: i64 = 500;

/// Conversations whose titles have some terms. The owner is one of them.
const BY_TITLE: &str = "SELECT d.conversation FROM contexture.details d \
     WHERE d.title_terms @@ $1::tsquery LIMIT $2";

/// Whether there are titles without terms, which no index finds.
const IS_BEHIND: &str = "SELECT FROM contexture.details \
     WHERE title IS NOT NULL AND title_terms IS NULL LIMIT 1";

/// Conversations of an owner with a field.
const BY_FIELD: &str =
    "SELECT a.conversation FROM contexture.attributes a WHERE a.owner = $1 AND a.key = ";

/// A query for the keys of conversations.
struct ProposalQuery {
    sql: String,
    params: Vec<Param>,
}

/// Returns the keys of all conversations that a list may have, if an index proposes few: at most
/// [`MAX_PROPOSED`].
pub(crate) async fn propose_conversations(
    tx: &Tx<'_>,
    owner: &Owner,
    list: &ListConversations,
) -> Result<Option<Vec<[u8; 16]>>, RowError> {
    let conditions = rules::indexed_conditions(owner, list);
    if conditions.is_empty() {
        return Ok(None);
    }
    let queries = conditions
        .iter()
        .map(|condition| proposal_query(owner, condition));
    let is_by_title =
        |condition: &&IndexedCondition<'_>| matches!(condition, IndexedCondition::Title(_));
    let behind = async {
        match conditions.iter().any(|condition| is_by_title(&condition)) {
            true => Ok(tx.query_row(IS_BEHIND, Vec::new()).await?.is_some()),
            false => Ok::<_, RowError>(false),
        }
    };
    let found =
        try_join_all(queries.map(async |query| tx.query_rows(&query.sql, query.params).await));
    let (is_behind, found) = futures_util::future::try_join(behind, found).await?;
    let usable = conditions.iter().zip(found).filter(|(condition, rows)| {
        rows.len() <= MAX_PROPOSED && !(is_behind && is_by_title(condition))
    });
    let fewest = usable.map(|(_, rows)| rows).min_by_key(Vec::len);
    let keys = fewest.map(|rows| rows.iter().map(|row| get_bytes(row, 0)).collect());
    keys.transpose()
}

fn proposal_query(owner: &Owner, condition: &IndexedCondition<'_>) -> ProposalQuery {
    let limit = i64::try_from(MAX_PROPOSED)
        .unwrap_or(i64::MAX)
        .saturating_add(1);
    match condition {
        IndexedCondition::Title(terms) => ProposalQuery {
            sql: BY_TITLE.to_owned(),
            params: params![title_query(terms), limit],
        },
        IndexedCondition::AnyField(fields) => {
            let mut query = ProposalQuery {
                sql: String::new(),
                params: params![owner.as_str()],
            };
            for (n, field) in fields.iter().enumerate() {
                query.sql.push_str(if n > 0 { " UNION " } else { "" });
                query.push_field(field);
            }
            query.push_param(" LIMIT ", Param::new(limit));
            query
        }
    }
}

impl ProposalQuery {
    fn push_param(&mut self, sql: &str, value: Param) {
        self.params.push(value);
        self.sql.push_str(&format!("{sql}${}", self.params.len()));
    }

    fn push_field(&mut self, field: &MetadataFilter) {
        match field {
            MetadataFilter::Has(key) => self.push_param(BY_FIELD, Param::new(key.as_str())),
            MetadataFilter::Compare { key, by, value } => {
                self.push_param(BY_FIELD, Param::new(key.as_str()));
                self.push_param(" AND a.kind = ", Param::new(i16::from(value.kind_code())));
                self.push_value(*by, value);
            }
            // The rules name single fields only.
            _ => self.sql.push_str(
                "SELECT c.conversation FROM contexture.conversations c WHERE c.owner = $1",
            ),
        }
    }

    fn push_value(&mut self, by: Comparison, value: &MetadataValue) {
        let operator = by.as_str();
        if let Some(number) = numeric_value(value) {
            self.push_param(&format!(" AND a.number {operator} "), Param::new(number));
        } else if let MetadataValue::Text(text) = value {
            // The index has the beginnings of texts, which are ordered as the texts are but may be
            // equal where those are not.
            let beginnings = match by {
                Comparison::Less | Comparison::LessOrEqual => "<=",
                Comparison::Greater | Comparison::GreaterOrEqual => ">=",
                Comparison::Equal => "=",
            };
            self.push_param(
                &format!(" AND a.number IS NULL AND left(a.words, 64) {beginnings} left("),
                Param::new(text.as_str()),
            );
            self.push_param(
                &format!(", 64) AND a.words {operator} "),
                Param::new(text.as_str()),
            );
        }
    }
}

/// Builds the `tsquery` for titles that have all these terms, which contain no quotes and no
/// backslashes.
fn title_query(terms: &[TitleTerm]) -> String {
    let terms = terms.iter().map(|term| {
        let prefix = if term.prefix { ":*" } else { "" };
        format!("'{}'{prefix}", term.term)
    });
    terms.collect::<Vec<_>>().join(" & ")
}

/// Makes the terms of titles that an older version stored, in short transactions. Several processes may do so at once.
pub(crate) async fn fill_title_terms(client: &Client) -> Result<(), RowError> {
    loop {
        let limit = params![STEP_TITLES];
        let rows = client
            .query_typed(
                "SELECT d.conversation, d.title, c.owner FROM contexture.details d \
                 LEFT JOIN contexture.conversations c ON c.conversation = d.conversation \
                 WHERE d.title IS NOT NULL AND d.title_terms IS NULL LIMIT $1",
                &bind_params(&limit),
            )
            .await?;
        if rows.is_empty() {
            return Ok(());
        }
        let (mut keys, mut titles, mut terms) = (Vec::new(), Vec::new(), Vec::new());
        for row in &rows {
            let title: &[u8] = get_column(row, 1)?;
            let owner: Option<&str> = get_column(row, 2)?;
            keys.push(get_bytes::<16>(row, 0)?);
            titles.push(Bytea::Own(title.to_vec()));
            // Without an owner the conversation is being deleted, and nobody lists it.
            terms.push(match owner.and_then(|owner| Owner::new(owner).ok()) {
                Some(owner) => rules::title_terms(&owner, &String::from_utf8_lossy(title)),
                None => String::new(),
            });
        }
        let made = params![keys, titles, terms];
        // Only where the title is still the one that was read.
        client
            .execute_typed(
                "UPDATE contexture.details d \
                 SET title_terms = array_to_tsvector(array_remove(string_to_array(made.terms, ' '), '')) \
                 FROM unnest($1, $2, $3) AS made (conversation, title, terms) \
                 WHERE d.conversation = made.conversation AND d.title = made.title \
                 AND d.title_terms IS NULL",
                &bind_params(&made),
            )
            .await?;
    }
}
