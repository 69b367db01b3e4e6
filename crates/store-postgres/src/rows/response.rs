//! Response records as rows.

use std::collections::BTreeMap;

use contexture_ir::{ConversationId, NodeId, Owner, ResponseId};
use contexture_store::rules::first_on_path;
use contexture_store::{EntityKind, Error, ResponseInputs, ResponseRecord, ResponseStatus};
use futures_util::future::try_join;
use tokio_postgres::Row;

use crate::connection::error::RowError;
use crate::connection::params::{Bytea, get_bytes, get_bytes_or_null, get_column, params};
use crate::connection::transaction::Tx;
use crate::rows::conversation_row::{ConversationKey, ConversationRow};
use crate::rows::node_row;
use crate::rows::path::{NodePosition, Tip};

/// Stores the record of a new response.
pub(crate) async fn insert_response(
    tx: &mut Tx<'_>,
    conv: &ConversationRow,
    record: &ResponseRecord,
) -> Result<(), RowError> {
    let existing = tx.query_row(
        "SELECT true FROM contexture.responses WHERE conversation = $1 AND response_id = $2",
        params![conv.key, record.id],
    );
    if existing.await?.is_some() {
        return Err(Error::already_exists(EntityKind::Response, record.id).into());
    }
    if let Some(base) = record.base {
        node_row::load_tip(tx, conv.key, base).await?;
    }
    let text = |text: &str| Bytea::Own(text.as_bytes().to_vec());
    tx.execute_on_commit(
        "INSERT INTO contexture.responses \
         (conversation, response_id, base_node, status, model, usage, inputs, finished_ms) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        params![
            conv.key,
            record.id,
            record.base,
            i16::from(record.status.code()),
            record.model.as_deref().map(text),
            record.usage.as_deref().map(text),
            record
                .inputs
                .to_column()
                .map(|bytes| Bytea::Own(bytes.to_vec())),
            record.finished_ms
        ],
    );
    Ok(())
}

/// Columns of a record.
macro_rules! columns {
    () => {
        "r.response_id, r.base_node, r.status, r.model, r.usage, r.inputs, r.finished_ms"
    };
}

/// Reads the records of a conversation by id, each with whether its base exists.
pub(crate) const VERIFY: &str = concat!(
    "SELECT ",
    columns!(),
    ", r.base_node IS NULL OR EXISTS (SELECT FROM contexture.nodes n \
     WHERE n.conversation = r.conversation AND n.node_id = r.base_node) \
     FROM contexture.responses r WHERE r.conversation = $1 AND r.response_id >= $2 \
     ORDER BY r.response_id LIMIT $3"
);

/// Checks that a record can be read and that the node it was computed from exists.
pub(crate) fn verify_response(conv: &ConversationRow, row: &Row) -> Result<(), RowError> {
    let record = decode_response(conv, row)?;
    match (get_column(row, 7)?, record.base) {
        (false, Some(base)) => {
            let why = format!("node {base}, from which it was computed, is missing");
            Err(conv.damaged_error("response", record.id, why).into())
        }
        _ => Ok(()),
    }
}

/// Reads the record of a response.
pub(crate) async fn load_response(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    response: ResponseId,
) -> Result<ResponseRecord, RowError> {
    let row = tx.query_row(
        concat!(
            "SELECT ",
            columns!(),
            " FROM contexture.responses r WHERE r.conversation = $1 AND r.response_id = $2"
        ),
        params![ConversationKey::of(owner, id).into_bytes(), response],
    );
    let (conv, row) = try_join(ConversationRow::load_for_read(tx, owner, id), row).await?;
    let row = row.ok_or_else(|| Error::not_found(EntityKind::Response, response))?;
    decode_response(&conv, &row)
}

fn decode_response(conv: &ConversationRow, row: &Row) -> Result<ResponseRecord, RowError> {
    let id = ResponseId::from_bytes(get_bytes(row, 0)?);
    let damaged = |why: &str| conv.damaged_error("response", id, why);
    let text = |index: usize| -> Result<Option<String>, RowError> {
        let column: Option<&[u8]> = get_column(row, index)?;
        let text = column.map(|bytes| String::from_utf8(bytes.to_vec()));
        Ok(text
            .transpose()
            .map_err(|_| damaged("a text is not UTF-8"))?)
    };
    let status: i16 = get_column(row, 2)?;
    let status = u8::try_from(status)
        .ok()
        .and_then(ResponseStatus::from_code);
    Ok(ResponseRecord {
        id,
        base: get_bytes_or_null(row, 1)?.map(NodeId::from_bytes),
        status: status.ok_or_else(|| damaged("unknown status"))?,
        model: text(3)?,
        usage: text(4)?.map(Into::into),
        inputs: ResponseInputs::from_column(get_column(row, 5)?),
        finished_ms: get_column::<Option<i64>>(row, 6)?.unwrap_or_default(),
    })
}

/// Removes the inputs of the responses whose path has a node at one of these positions.
pub(crate) async fn remove_inputs(
    tx: &mut Tx<'_>,
    conv: &ConversationRow,
    nodes: &[NodePosition],
) -> Result<(), RowError> {
    let Some(first) = nodes.iter().map(|at| at.depth).min() else {
        return Ok(());
    };
    let positions: Vec<(i32, i32)> = nodes.iter().map(|at| (at.segment, at.depth)).collect();
    let mut gone: Vec<ResponseId> = Vec::new();
    // Responses with bases on one segment share its path, so it is loaded once for all of them.
    for answers in load_answers_with_inputs(tx, conv, first).await?.values() {
        let Some((_, base, _)) = answers.iter().max_by_key(|(depth, _, _)| *depth) else {
            continue;
        };
        let tip: Tip = node_row::load_tip(tx, conv.key, *base).await?;
        let path = tip.load_stretches(tx, conv.key, 1).await?;
        let path: Vec<_> = path.iter().map(|on| (on.segment, on.from, on.to)).collect();
        if let Some(affected) = first_on_path(&path, &positions) {
            let later = answers.iter().filter(|(depth, _, _)| *depth >= affected);
            gone.extend(later.map(|(_, _, response)| *response));
        }
    }
    if !gone.is_empty() {
        tx.execute_on_commit(
            "UPDATE contexture.responses SET inputs = '' \
             WHERE conversation = $1 AND response_id = ANY ($2)",
            params![conv.key, gone],
        );
    }
    Ok(())
}

/// Depth of a response's base, the base, and the response.
type AnswerBase = (i32, NodeId, ResponseId);

/// Reads the responses that have inputs and a base at this depth or deeper, grouped by its segment.
async fn load_answers_with_inputs(
    tx: &Tx<'_>,
    conv: &ConversationRow,
    from_depth: i32,
) -> Result<BTreeMap<i32, Vec<AnswerBase>>, RowError> {
    let rows = tx
        .query_rows(
            "SELECT r.base_node, r.response_id, n.segment, n.depth FROM contexture.responses r \
             JOIN contexture.nodes n ON n.conversation = r.conversation AND n.node_id = r.base_node \
             WHERE r.conversation = $1 AND length(r.inputs) > 0 AND n.depth >= $2",
            params![conv.key, from_depth],
        )
        .await?;
    let mut by_segment: BTreeMap<i32, Vec<AnswerBase>> = BTreeMap::new();
    for row in &rows {
        let (base, response) = (get_bytes(row, 0)?, get_bytes(row, 1)?);
        let answer = (
            get_column(row, 3)?,
            NodeId::from_bytes(base),
            ResponseId::from_bytes(response),
        );
        let segment = get_column(row, 2)?;
        by_segment.entry(segment).or_default().push(answer);
    }
    Ok(by_segment)
}

/// Removes the inputs of all responses of a conversation.
pub(crate) fn remove_all_inputs(tx: &mut Tx<'_>, conv: &ConversationRow) {
    tx.execute_on_commit(
        "UPDATE contexture.responses SET inputs = '' \
         WHERE conversation = $1 AND length(inputs) > 0",
        params![conv.key],
    );
}
