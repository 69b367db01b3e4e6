//! Verifies the stored rows of a conversation against each other, page by page.
//!
//! Each damage is a finding with its position, and the check continues after it. Not here:
//! repairing. The search index can be rebuilt (`SqliteStore::rebuild_search`); anything else needs
//! a backup.

use std::collections::BTreeSet;

use contexture_ir::{ContentHash, NodeId};
use contexture_store::rules::{self, Counters};
use contexture_store::{BlobId, Error, VerifyCursor, VerifyPage};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::RowError;
use crate::key_values;
use crate::refs::branch::{self, BranchRow};
use crate::rows::conversation_row::ConversationRow;
use crate::rows::node_columns::{self, COLUMNS, NodeColumns};
use crate::rows::path::{NodePosition, key_range, load_stretches, packed_key};
use crate::rows::{blob, node_row, response, state};
use crate::search::index;
use crate::streams;

/// Number of rows of a page.
const PAGE: u32 = 500;

/// Parts of the check, in order.
const NODES: u8 = 0;
const ROOTS: u8 = 1;
const BLOBS: u8 = 2;
const STREAMS: u8 = 3;
const VALUES: u8 = 4;
const RESPONSES: u8 = 5;
const NAMES: u8 = 6;

/// Checks the page after `after`.
pub(crate) fn verify_page(
    conn: &Connection,
    conv: &ConversationRow,
    after: Option<VerifyCursor>,
) -> Result<VerifyPage, RowError> {
    let mut check = PageVerifier {
        conn,
        conv,
        page: VerifyPage::default(),
    };
    let from = after.unwrap_or_else(|| start_of_part(conv, NODES));
    let last = match from.part {
        NODES => check.check_nodes(from.after)?,
        ROOTS => check.check_roots(from.after)?,
        BLOBS => check.check_blobs(from.after)?,
        STREAMS => check.check_streams(from.after)?,
        VALUES => check.check_values(from.after)?,
        RESPONSES => check.check_responses(from.after)?,
        _ => {
            check.check_refs()?;
            return Ok(check.page);
        }
    };
    check.page.next = Some(match last {
        Some(after) => VerifyCursor { after, ..from },
        None => start_of_part(conv, from.part + 1),
    });
    Ok(check.page)
}

/// Returns the cursor before the first row of a part.
fn start_of_part(conv: &ConversationRow, part: u8) -> VerifyCursor {
    debug_assert!(part <= NAMES, "{part}");
    let after = match part {
        // Their keys begin with the conversation's number.
        NODES | ROOTS | STREAMS | RESPONSES => key_range(conv.no).0 - 1,
        // Blobs and values are numbered across the whole database, from 1 on; names are one page.
        _ => 0,
    };
    VerifyCursor { part, after }
}

struct PageVerifier<'a> {
    conn: &'a Connection,
    conv: &'a ConversationRow,
    page: VerifyPage,
}

impl PageVerifier<'_> {
    /// Records damage as a finding; any other error ends the check.
    fn record_result(
        &mut self,
        result: Result<(), RowError>,
        what: &'static str,
        position: &str,
    ) -> Result<(), RowError> {
        self.page.checked += 1;
        match result {
            Ok(()) => {}
            Err(RowError::Store(error @ Error::Damaged { .. })) => self.page.findings.push(error),
            // A missing referenced row is damage too, and so is a column of another type below.
            Err(RowError::Store(Error::NotFound { what: thing, name })) => {
                let why = format!("{thing} {name} is missing");
                self.page
                    .findings
                    .push(self.conv.damaged_error(what, position, why));
            }
            Err(RowError::Sql(error)) if is_damage(&error) => {
                let why = error.to_string();
                self.page
                    .findings
                    .push(self.conv.damaged_error(what, position, why));
            }
            Err(fault) => return Err(fault),
        }
        Ok(())
    }

    /// Runs `each` over the rows of `sql`, which begin with their key; returns the last key if
    /// there may be more. Rows after a damaged page cannot be reached: that is a finding.
    fn check_rows(
        &mut self,
        sql: &str,
        (after, to): (i64, i64),
        what: &'static str,
        each: impl Fn(&Self, &Row<'_>) -> Result<(), RowError>,
    ) -> Result<Option<i64>, RowError> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query(params![after, to, PAGE])?;
        let (mut count, mut last) = (0, after);
        loop {
            match rows.next() {
                Ok(Some(row)) => {
                    last = row.get(0)?;
                    count += 1;
                    let position = format!("row {}", last as u32);
                    let result = each(self, row);
                    self.record_result(result, what, &position)?;
                }
                Ok(None) => break,
                Err(error) => {
                    let position = format!("the rows after {}", last as u32);
                    self.record_result(Err(error.into()), what, &position)?;
                    return Ok(None);
                }
            }
        }
        Ok((count == PAGE).then_some(last))
    }

    fn check_nodes(&mut self, after: i64) -> Result<Option<i64>, RowError> {
        let sql =
            format!("SELECT {COLUMNS} FROM nodes WHERE id > ? AND id <= ? ORDER BY id LIMIT ?");
        let to = key_range(self.conv.no).1;
        let reach = index::IndexedRange::load(self.conn)?;
        self.check_rows(&sql, (after, to), "node", |check, row| {
            check.check_node(row, &reach)
        })
    }

    fn check_node(&self, row: &Row<'_>, reach: &index::IndexedRange) -> Result<(), RowError> {
        let (conn, no) = (self.conn, self.conv.no);
        let id: i64 = row.get(0)?;
        let Some((columns, check)) = NodeColumns::from_row(row)? else {
            let location = format!("row {}", id as u32);
            let why = "the packed columns are damaged";
            return Err(self.conv.damaged_error("node", location, why).into());
        };
        let position = columns.position();
        let location = format!("depth {} (row {})", position.depth, id as u32);
        let damaged = |why: &str| self.conv.damaged_error("node", &location, why);
        let node = node_row::decode_or(damaged, &columns, check, None)?;
        if ContentHash::of(node.json.as_bytes()) != node.content_hash {
            return Err(damaged("its item is not what its hash says").into());
        }
        if self.seq_at(position, position.depth)? != Some(id as u32) {
            return Err(damaged("its segment puts it elsewhere").into());
        }
        match self.counters_before(position)? {
            None => return Err(damaged("the node before it is missing").into()),
            Some(before) if !rules::can_follow(&before, &node) => {
                return Err(damaged("its counters do not follow those before it").into());
            }
            Some(_) => {}
        }
        let root = columns.small_number(node_columns::ROOT_NO);
        let has_root = root == 0
            || conn
                .prepare_cached("SELECT 1 FROM roots WHERE id = ?")?
                .exists([packed_key(no, root)])?;
        if !has_root {
            return Err(damaged("its state is missing").into());
        }
        if !index::is_indexed(conn, reach, id, &node)? {
            return Err(damaged("search does not find it").into());
        }
        Ok(())
    }

    /// Returns the sequence number of the node at `depth` on the path to `end`.
    fn seq_at(&self, end: NodePosition, depth: u32) -> Result<Option<u32>, RowError> {
        let found = load_stretches(self.conn, self.conv.no, end, depth, depth)?;
        Ok(found.first().map(|stretch| stretch.seq))
    }

    /// Reads the counters before a position; returns `None` if the node there is missing.
    fn counters_before(&self, position: NodePosition) -> Result<Option<Counters>, RowError> {
        let depth = position.depth.saturating_sub(1);
        if depth == 0 {
            return Ok(Some(Counters::default()));
        }
        match self.seq_at(position, depth)? {
            Some(seq) => load_counters(self.conn, packed_key(self.conv.no, seq), depth),
            None => Ok(None),
        }
    }

    fn check_roots(&mut self, after: i64) -> Result<Option<i64>, RowError> {
        let to = key_range(self.conv.no).1;
        let sql = "SELECT id FROM roots WHERE id > ? AND id <= ? ORDER BY id LIMIT ?";
        let verified = std::cell::RefCell::new(BTreeSet::new());
        self.check_rows(sql, (after, to), "state", |check, row| {
            let number = row.get::<_, i64>(0)? as u32;
            let root = state::load_root(check.conn, check.conv, number)?.root;
            for (key, entry) in &root {
                if verified.borrow().contains(&entry.hash) {
                    continue;
                }
                let location = format!("{key} of root {number}");
                let damaged = || {
                    (check.conv).damaged_error(
                        "state",
                        &location,
                        "its value is missing or damaged",
                    )
                };
                state::load_value(check.conn, check.conv, &entry.hash, damaged)?;
                verified.borrow_mut().insert(entry.hash);
            }
            Ok(())
        })
    }

    fn check_blobs(&mut self, after: i64) -> Result<Option<i64>, RowError> {
        let no = self.conv.no;
        let sql = format!(
            "SELECT no, blob_id FROM blobs WHERE conversation_no = {no} AND no > ? AND no <= ? \
             ORDER BY no LIMIT ?"
        );
        self.check_rows(&sql, (after, i64::MAX), "blob", |check, row| {
            let id = BlobId::from_bytes(row.get(1)?);
            blob::read_blob(check.conn, check.conv, id)?;
            Ok(())
        })
    }

    fn check_streams(&mut self, after: i64) -> Result<Option<i64>, RowError> {
        let to = key_range(self.conv.no).1;
        self.check_rows(streams::VERIFY, (after, to), "stream", |check, row| {
            streams::verify_stream(check.conn, check.conv, row)
        })
    }

    fn check_values(&mut self, after: i64) -> Result<Option<i64>, RowError> {
        let sql = key_values::verify_sql(self.conv.no);
        self.check_rows(&sql, (after, i64::MAX), "value", |check, row| {
            key_values::verify_entry(row, |key, why| check.conv.damaged_error("value", key, why))
        })
    }

    fn check_responses(&mut self, after: i64) -> Result<Option<i64>, RowError> {
        let to = key_range(self.conv.no).1;
        self.check_rows(response::VERIFY, (after, to), "response", |check, row| {
            response::verify_response(check.conn, check.conv, row)
        })
    }

    fn check_refs(&mut self) -> Result<(), RowError> {
        let branches = branch::list_branches(self.conn, self.conv.no)?;
        for row in &branches {
            let result = self.check_branch(row);
            self.record_result(result, "branch", row.name.as_str())?;
        }
        self.check_checkpoints()?;
        self.check_count("nodes", self.conv.nodes)?;
        self.check_count("branches", self.conv.branches)?;
        let strays = streams::check_stray_chunks(self.conn, self.conv);
        self.record_result(strays, "stream", "its chunks")?;
        if !branches.iter().any(|row| row.no == self.conv.active_branch) {
            let why = "the active branch is missing";
            let missing = self.conv.damaged_error("conversation", "its branches", why);
            self.page.findings.push(missing);
        }
        Ok(())
    }

    /// Checks that a branch's row agrees with its head node.
    fn check_branch(&self, row: &BranchRow) -> Result<(), RowError> {
        let Some(head) = row.tip.node else {
            return Ok(());
        };
        let tip = node_row::load_tip(self.conn, self.conv.no, head)?;
        let agrees = tip.position == row.tip.position
            && tip.counters() == row.tip.counters()
            && tip.root_no == row.tip.root_no;
        if agrees {
            return Ok(());
        }
        let why = "it does not agree with its head";
        Err(self.conv.damaged_error("branch", &row.name, why).into())
    }

    fn check_checkpoints(&mut self) -> Result<(), RowError> {
        let mut statement = self
            .conn
            .prepare_cached("SELECT name, node_id FROM checkpoints WHERE conversation_no = ?")?;
        let mut rows = statement.query([self.conv.no])?;
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            let node = NodeId::from_bytes(row.get(1)?);
            let result = node_row::load_tip(self.conn, self.conv.no, node).map(drop);
            self.record_result(result, "checkpoint", &name)?;
        }
        Ok(())
    }

    /// Checks that a table has as many rows of the conversation as its record counts.
    fn check_count(&mut self, table: &'static str, recorded: u32) -> Result<(), RowError> {
        let sql = format!("SELECT count(*) FROM {table} WHERE id BETWEEN ? AND ?");
        let (first, last) = key_range(self.conv.no);
        let stored: i64 = self.conn.query_row(&sql, [first, last], |row| row.get(0))?;
        let result = if stored == i64::from(recorded) {
            Ok(())
        } else {
            let why = format!("{stored} {table} are there, and {recorded} are counted");
            Err(self.conv.damaged_error("conversation", table, why).into())
        };
        self.record_result(result, "conversation", table)
    }
}

/// Reads the counters of the node in a row.
fn load_counters(conn: &Connection, id: i64, depth: u32) -> Result<Option<Counters>, RowError> {
    let row = conn
        .prepare_cached("SELECT rest FROM nodes WHERE id = ?")?
        .query_row([id], |row| {
            let columns = node_row::rest_of(row, 0)?;
            Ok(Counters {
                depth: depth.into(),
                messages: columns.small_number(node_columns::MESSAGES).into(),
                turns: columns.small_number(node_columns::TURNS).into(),
                compacted: columns.small_number(node_columns::COMPACTED).into(),
            })
        })
        .optional()?;
    Ok(row)
}

/// Returns whether an error means damaged data, and not a failing medium.
fn is_damage(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(cause, _) => {
            cause.code == rusqlite::ErrorCode::DatabaseCorrupt
        }
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::Utf8Error(..) => true,
        _ => false,
    }
}
