//! Verifies the stored rows of a conversation against each other, page by page.
//!
//! Each damage is a finding with its position, and the check continues after it. A page is read
//! from one snapshot. If the server cannot read a part, that is a finding of the part.
//!
//! Not here: repairing (restore a backup), and the server's own files (`vacuum`).

use std::collections::BTreeSet;

use contexture_ir::{ContentHash, ConversationId, Owner, ResponseId};
use contexture_store::rules::{self, Counters};
use contexture_store::{BlobId, Error, Node, VerifyCursor, VerifyPage};
use futures_util::TryStreamExt as _;
use futures_util::future::try_join4;
use tokio_postgres::Row;

use crate::connection::error::{RowError, is_column_mismatch};
use crate::connection::params::{Bytea, get_bytes, get_column, get_count, params};
use crate::connection::transaction::Tx;
use crate::key_values;
use crate::rows::conversation_row::ConversationRow;
use crate::rows::node_row::{self, columns};
use crate::rows::path::{NodePosition, SegmentLineage};
use crate::rows::{response, state};
use crate::search::index::{self, TERMS_COLUMN_VERSION};
use crate::streams;

/// Number of rows of a page, and of tables whose rows are large or need several queries.
const PAGE: i64 = 500;
const PAGE_LARGE: i64 = 50;

/// Parts of the check, in order.
const NODES: u8 = 0;
const SEGMENTS: u8 = 1;
const ROOTS: u8 = 2;
const BLOBS: u8 = 3;
const STREAMS: u8 = 4;
const VALUES: u8 = 5;
const RESPONSES: u8 = 6;
const NAMES: u8 = 7;

/// Nodes with what must agree with them; from column 21 on: their segment, the node before, whether
/// their state exists, and their row in the search index.
const NODE_ROWS: &str = concat!(
    "SELECT ",
    columns!(),
    ", s.first_depth, p.depth, p.messages, p.turns, p.compacted, n.root_no = 0 OR EXISTS \
     (SELECT FROM contexture.roots r WHERE r.conversation = n.conversation \
     AND r.root_no = n.root_no), t.rule, t.created_ms = n.created_ms AND t.kind = n.kind \
     AND t.audience = n.audience, tsvector_to_array(t.terms) FROM contexture.nodes n \
     LEFT JOIN contexture.segments s ON s.conversation = n.conversation AND s.segment = n.segment \
     LEFT JOIN contexture.nodes p ON p.conversation = n.conversation AND p.depth = n.depth - 1 \
     AND p.segment = CASE WHEN n.depth > s.first_depth THEN n.segment ELSE s.ancestors[1] END \
     LEFT JOIN contexture.terms t ON t.conversation = n.conversation AND t.segment = n.segment \
     AND t.depth = n.depth \
     WHERE n.conversation = $1 AND (n.segment, n.depth) > ($2, $3) \
     ORDER BY n.segment, n.depth LIMIT $4"
);

/// Segments, each with the one before it and whether the node that it follows exists.
const SEGMENT_ROWS: &str = "SELECT s.segment, s.first_depth, s.ancestors, s.upto, p.first_depth, \
     p.ancestors, p.upto, n.depth IS NOT NULL FROM contexture.segments s \
     LEFT JOIN contexture.segments p ON p.conversation = s.conversation \
     AND p.segment = s.ancestors[1] \
     LEFT JOIN contexture.nodes n ON n.conversation = s.conversation \
     AND n.segment = s.ancestors[1] AND n.depth = s.upto[1] \
     WHERE s.conversation = $1 AND s.segment > $2 ORDER BY s.segment LIMIT $3";

const ROOT_ROWS: &str = "SELECT root_no FROM contexture.roots \
     WHERE conversation = $1 AND root_no > $2 ORDER BY root_no LIMIT $3";

const BLOB_ROWS: &str = "SELECT blob_id, bytes FROM contexture.blobs \
     WHERE conversation = $1 AND blob_id >= $2 ORDER BY blob_id LIMIT $3";

const BRANCH_ROWS: &str = "SELECT b.name, b.head_node IS NULL OR (n.segment = b.head_segment \
     AND n.depth = b.head_depth AND n.messages = b.messages AND n.turns = b.turns \
     AND n.compacted = b.compacted AND n.root_no = b.root_no), \
     b.segment = 0 OR s.branch = b.branch FROM contexture.branches b \
     LEFT JOIN contexture.nodes n ON n.conversation = b.conversation AND n.node_id = b.head_node \
     LEFT JOIN contexture.segments s ON s.conversation = b.conversation AND s.segment = b.segment \
     WHERE b.conversation = $1 ORDER BY b.branch";

const CHECKPOINT_ROWS: &str = "SELECT c.name, n.depth IS NOT NULL FROM contexture.checkpoints c \
     LEFT JOIN contexture.nodes n ON n.conversation = c.conversation AND n.node_id = c.node_id \
     WHERE c.conversation = $1 ORDER BY c.name";

/// The actual counts and names of a conversation, to compare with its record.
const ACTUAL_COUNTS: &str = "SELECT (SELECT count(*) FROM contexture.nodes WHERE conversation = $1), \
     (SELECT count(*) FROM contexture.branches WHERE conversation = $1), \
     EXISTS (SELECT FROM contexture.branches WHERE conversation = $1 AND branch = $4), \
     EXISTS (SELECT FROM contexture.listings l JOIN contexture.details d \
     ON d.conversation = l.conversation WHERE l.owner = $2 AND l.id = $3 \
     AND l.conversation = $1 AND l.updated_ms = $5 AND l.resource IS NOT DISTINCT FROM d.resource)";

/// Checks the page after `after`.
pub(crate) async fn verify_page(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    after: Option<VerifyCursor>,
) -> Result<VerifyPage, RowError> {
    let from = after.unwrap_or_else(|| start_of(NODES));
    let mut check = PageVerifier {
        tx,
        conv: ConversationRow::load_for_read(tx, owner, id).await?,
        page: VerifyPage::default(),
    };
    let last = match from.part {
        NODES => check.check_nodes(from.after).await?,
        SEGMENTS => check.check_segments(from.after).await?,
        ROOTS => check.check_roots(from.after).await?,
        BLOBS => check.check_blobs(from.after).await?,
        STREAMS => check.check_streams(from.after).await?,
        VALUES => check.check_values().await?,
        RESPONSES => check.check_responses(from.after).await?,
        _ => {
            check.check_refs().await?;
            return Ok(check.page);
        }
    };
    check.page.next = Some(match last {
        Some(after) => VerifyCursor { after, ..from },
        None => start_of(from.part + 1),
    });
    Ok(check.page)
}

/// Returns the page that reports that the server cannot read the rest of this part.
pub(crate) fn unreadable_page(
    id: &ConversationId,
    after: Option<VerifyCursor>,
    why: &Error,
) -> VerifyPage {
    let from = after.unwrap_or_else(|| start_of(NODES));
    let what = match from.part {
        NODES => "node",
        SEGMENTS => "segment",
        ROOTS => "state",
        BLOBS => "blob",
        STREAMS => "stream",
        VALUES => "value",
        RESPONSES => "response",
        _ => "conversation",
    };
    let cause = std::error::Error::source(why).map(ToString::to_string);
    let cause = cause.unwrap_or_else(|| why.to_string());
    let position = "a place the server cannot read";
    VerifyPage {
        findings: vec![Error::damaged(id, what, position, cause)],
        checked: 0,
        next: (from.part < NAMES).then(|| start_of(from.part + 1)),
    }
}

/// Returns the cursor before the first row of a part.
fn start_of(part: u8) -> VerifyCursor {
    let by_id = matches!(part, BLOBS | RESPONSES);
    let after = if by_id { i64::MIN } else { 0 };
    VerifyCursor { part, after }
}

/// Maps the first half of an id to a number in the same order; ids that share it may be checked
/// twice.
fn id_order_key(id: [u8; 16]) -> i64 {
    (u128::from_be_bytes(id) >> 64) as u64 as i64 ^ i64::MIN
}

fn id_from(order_key: i64) -> [u8; 16] {
    (u128::from((order_key ^ i64::MIN).cast_unsigned()) << 64).to_be_bytes()
}

struct PageVerifier<'a, 'env> {
    tx: &'a Tx<'env>,
    conv: ConversationRow,
    page: VerifyPage,
}

impl PageVerifier<'_, '_> {
    /// Records damage as a finding; any other error ends the check.
    fn record_result(
        &mut self,
        result: Result<(), RowError>,
        what: &'static str,
        position: &str,
    ) -> Result<(), RowError> {
        self.page.checked += 1;
        let why = match result {
            Ok(()) => return Ok(()),
            Err(RowError::Store(error @ Error::Damaged { .. })) => {
                self.page.findings.push(error);
                return Ok(());
            }
            // A column contains what this program does not write.
            Err(RowError::Corrupt(why)) => why,
            Err(RowError::Sql(error)) if is_column_mismatch(&error) => error.to_string(),
            Err(fault) => return Err(fault),
        };
        let finding = self.conv.damaged_error(what, position, why);
        self.page.findings.push(finding);
        Ok(())
    }

    async fn check_nodes(&mut self, after: i64) -> Result<Option<i64>, RowError> {
        let (segment, depth) = ((after >> 32) as i32, after as i32);
        let (tx, is_indexed) = (self.tx, self.is_indexed().await?);
        let params = params![self.conv.key, segment, depth, PAGE];
        let mut rows = std::pin::pin!(tx.query_stream(NODE_ROWS, params).await?);
        let (mut count, mut last) = (0, after);
        while let Some(row) = rows.try_next().await? {
            let position = NodePosition {
                segment: get_column(&row, 0)?,
                depth: get_column(&row, 1)?,
            };
            let location = format!("depth {} of segment {}", position.depth, position.segment);
            let sound = self.check_node(&row, &location, is_indexed);
            self.record_result(sound, "node", &location)?;
            count += 1;
            last = i64::from(position.segment) << 32 | i64::from(position.depth.cast_unsigned());
        }
        Ok((count == PAGE).then_some(last))
    }

    /// Returns whether all nodes of the conversation should be in the search index.
    async fn is_indexed(&self) -> Result<bool, RowError> {
        let row = self.tx.query_row(
            "SELECT terms_version FROM contexture.listings WHERE owner = $1 AND id = $2",
            params![self.conv.owner.as_str(), self.conv.id.as_str()],
        );
        let row = row.await?;
        row.map_or(Ok(false), |row| {
            Ok(get_column::<i32>(&row, 0)? == TERMS_COLUMN_VERSION)
        })
    }

    fn check_node(&self, row: &Row, location: &str, is_indexed: bool) -> Result<(), RowError> {
        let damaged =
            |why: &str| -> RowError { self.conv.damaged_error("node", location, why).into() };
        let node = node_row::decode_or(
            |_, why| self.conv.damaged_error("node", location, why),
            row,
            None,
        )?;
        let Some(first_depth) = get_column::<Option<i32>>(row, 21)? else {
            return Err(damaged("its segment is missing"));
        };
        if get_column::<i32>(row, 1)? < first_depth {
            return Err(damaged("its segment begins behind it"));
        }
        let before = match get_column::<Option<i32>>(row, 22)? {
            None if node.depth == 1 => Counters::default(),
            None => return Err(damaged("the node before it is missing")),
            Some(_) => Counters {
                depth: get_count(row, 22)?,
                messages: get_count(row, 23)?,
                turns: get_count(row, 24)?,
                compacted: get_count(row, 25)?,
            },
        };
        if !rules::can_follow(&before, &node) {
            return Err(damaged("its counters do not follow those before it"));
        }
        if !get_column::<bool>(row, 26)? {
            return Err(damaged("its state is missing"));
        }
        match self.index_damage(row, &node, is_indexed)? {
            Some(why) => Err(damaged(why)),
            None => Ok(()),
        }
    }

    /// Returns what is wrong with a node's row in the search index.
    fn index_damage(
        &self,
        row: &Row,
        node: &Node,
        is_indexed: bool,
    ) -> Result<Option<&'static str>, RowError> {
        let rule: Option<i32> = get_column(row, 27)?;
        if node.redacted_ms.is_some() {
            return Ok(rule.map(|_| "it is redacted, and search still has its words"));
        }
        if rule != Some(TERMS_COLUMN_VERSION) {
            // A conversation that is not indexed yet may lack rows, or have rows with older terms.
            return Ok(is_indexed.then_some("search does not find it"));
        }
        let stored: Vec<&str> = get_column(row, 29)?;
        let text = index::terms_of(&node.json);
        let scopes = index::scope_terms(&self.conv);
        let wanted = scopes.iter().map(String::as_str).chain(text.split(' '));
        let wanted: BTreeSet<&str> = wanted.filter(|term| !term.is_empty()).collect();
        let agrees = stored.into_iter().collect::<BTreeSet<&str>>() == wanted
            && get_column::<bool>(row, 28)?;
        Ok((!agrees).then_some("search has other words of it"))
    }

    async fn check_segments(&mut self, after: i64) -> Result<Option<i64>, RowError> {
        let after = i32::try_from(after).unwrap_or(i32::MAX);
        let params = params![self.conv.key, after, PAGE];
        let rows = self.tx.query_rows(SEGMENT_ROWS, params).await?;
        for row in &rows {
            let location = format!("segment {}", get_column::<i32>(row, 0)?);
            let sound = self.check_segment(row, &location);
            self.record_result(sound, "segment", &location)?;
        }
        self.last_row_key(&rows, PAGE)
    }

    fn check_segment(&self, row: &Row, location: &str) -> Result<(), RowError> {
        let damaged =
            |why: &str| -> RowError { self.conv.damaged_error("segment", location, why).into() };
        let lineage = SegmentLineage::from_row(row, 1, get_column(row, 0)?)?;
        let Some(before) = lineage.parent_position() else {
            return Ok(());
        };
        if !get_column::<bool>(row, 7)? {
            return Err(damaged("the node it follows is missing"));
        }
        let parent = SegmentLineage::from_row(row, 4, before.segment)?;
        if lineage != parent.child_lineage(before) {
            return Err(damaged("it does not go on where it leaves another"));
        }
        Ok(())
    }

    async fn check_roots(&mut self, after: i64) -> Result<Option<i64>, RowError> {
        let after = i32::try_from(after).unwrap_or(i32::MAX);
        let params = params![self.conv.key, after, PAGE_LARGE];
        let rows = self.tx.query_rows(ROOT_ROWS, params).await?;
        let mut sound = BTreeSet::new();
        for row in &rows {
            let number = get_column(row, 0)?;
            let found = self.check_root(number, &mut sound).await;
            self.record_result(found, "state", &format!("root {number}"))?;
        }
        self.last_row_key(&rows, PAGE_LARGE)
    }

    async fn check_root(
        &self,
        number: i32,
        sound: &mut BTreeSet<ContentHash>,
    ) -> Result<(), RowError> {
        let mut root = state::load_root(self.tx, &self.conv, number).await?.root;
        root.retain(|_, entry| !sound.contains(&entry.hash));
        if root.is_empty() {
            return Ok(());
        }
        let wanted = root.values().map(|entry| entry.hash).collect();
        let stored = state::load_values(self.tx, &self.conv, wanted).await?;
        for (key, entry) in &root {
            if !stored.contains_key(&entry.hash) {
                let location = format!("{key} of root {number}");
                let why = "its value is missing or damaged";
                return Err(self.conv.damaged_error("state", location, why).into());
            }
            sound.insert(entry.hash);
        }
        Ok(())
    }

    async fn check_blobs(&mut self, after: i64) -> Result<Option<i64>, RowError> {
        let tx = self.tx;
        let params = params![self.conv.key, id_from(after), PAGE_LARGE + 1];
        let mut rows = std::pin::pin!(tx.query_stream(BLOB_ROWS, params).await?);
        let mut count = 0;
        while let Some(row) = rows.try_next().await? {
            let id: [u8; 16] = get_bytes(&row, 0)?;
            if count == PAGE_LARGE {
                return Ok(Some(id_order_key(id).max(after.saturating_add(1))));
            }
            count += 1;
            let id = BlobId::from_bytes(id);
            let sound = match BlobId::of(&self.conv.owner, get_column(&row, 1)?) == id {
                true => Ok(()),
                false => {
                    let why = "its bytes do not match their hash";
                    Err(self.conv.damaged_error("blob", id, why).into())
                }
            };
            self.record_result(sound, "blob", &id.to_string())?;
        }
        Ok(None)
    }

    async fn check_streams(&mut self, after: i64) -> Result<Option<i64>, RowError> {
        let after = i32::try_from(after).unwrap_or(i32::MAX);
        let params = params![self.conv.key, after, PAGE_LARGE];
        let rows = self.tx.query_rows(streams::VERIFY, params).await?;
        let mut last = None;
        for row in &rows {
            let epoch: i32 = get_column(row, 1)?;
            let sound = streams::verify_stream(self.tx, &self.conv, row).await;
            self.record_result(sound, "stream", &format!("epoch {epoch}"))?;
            last = Some(epoch.into());
        }
        Ok(last.filter(|_| rows.len() as i64 == PAGE_LARGE))
    }

    /// Checks all values at once, since a cursor is a number and keys are texts.
    async fn check_values(&mut self) -> Result<Option<i64>, RowError> {
        let tx = self.tx;
        let scope = Bytea::Text(self.conv.id.as_str().into());
        let params = params![self.conv.owner.as_str(), scope];
        let mut rows = std::pin::pin!(
            tx.query_stream(key_values::ALL_OF_CONVERSATION, params)
                .await?
        );
        while let Some(row) = rows.try_next().await? {
            let location = String::from_utf8_lossy(get_column(&row, 0)?).into_owned();
            self.record_result(key_values::verify_entry(&row), "value", &location)?;
        }
        Ok(None)
    }

    async fn check_responses(&mut self, after: i64) -> Result<Option<i64>, RowError> {
        let tx = self.tx;
        let params = params![self.conv.key, id_from(after), PAGE_LARGE + 1];
        let mut rows = std::pin::pin!(tx.query_stream(response::VERIFY, params).await?);
        let mut count = 0;
        while let Some(row) = rows.try_next().await? {
            let id: [u8; 16] = get_bytes(&row, 0)?;
            if count == PAGE_LARGE {
                return Ok(Some(id_order_key(id).max(after.saturating_add(1))));
            }
            count += 1;
            let sound = response::verify_response(&self.conv, &row);
            self.record_result(sound, "response", &ResponseId::from_bytes(id).to_string())?;
        }
        Ok(None)
    }

    async fn check_refs(&mut self) -> Result<(), RowError> {
        let conv = &self.conv;
        let (owner, id) = (conv.owner.as_str(), conv.id.as_str());
        let recorded = params![conv.key, owner, id, conv.active_branch, conv.updated_ms];
        let (branches, checkpoints, strays, sums) = try_join4(
            self.tx.query_rows(BRANCH_ROWS, params![conv.key]),
            self.tx.query_rows(CHECKPOINT_ROWS, params![conv.key]),
            self.tx.query_rows(streams::STRAYS, params![conv.key]),
            self.tx.query_rows(ACTUAL_COUNTS, recorded),
        )
        .await?;
        self.check_branches(&branches)?;
        for row in &checkpoints {
            let found = expect_true(get_column(row, 1)?, "its node is missing");
            self.record_damage(found, "checkpoint", get_column(row, 0)?)?;
        }
        for row in &strays {
            let location = format!("epoch {}", get_column::<i32>(row, 0)?);
            self.record_damage(Err("its chunks are of no stream"), "stream", &location)?;
        }
        match sums.first() {
            Some(row) => self.check_sums(row),
            None => Ok(()),
        }
    }

    fn check_branches(&mut self, rows: &[Row]) -> Result<(), RowError> {
        for row in rows {
            // Null if the head or the segment is missing.
            let agrees = get_column::<Option<bool>>(row, 1)?.unwrap_or(false);
            let extends = get_column::<Option<bool>>(row, 2)?.unwrap_or(false);
            let found = match (agrees, extends) {
                (true, true) => Ok(()),
                (false, _) => Err("it does not agree with its head"),
                (true, false) => Err("the segment it extends is not its own"),
            };
            self.record_damage(found, "branch", get_column(row, 0)?)?;
        }
        Ok(())
    }

    /// Compares the conversation's record with the row of [`ACTUAL_COUNTS`].
    fn check_sums(&mut self, row: &Row) -> Result<(), RowError> {
        let recorded = [("nodes", self.conv.nodes), ("branches", self.conv.branches)];
        for (index, (what, recorded)) in recorded.into_iter().enumerate() {
            let stored: i64 = get_column(row, index)?;
            let why = format!("{stored} {what} are there, and {recorded} are counted");
            let found = expect_true(stored == i64::from(recorded), &why);
            self.record_damage(found, "conversation", what)?;
        }
        for (index, what, why) in [
            (2, "its branches", "the active branch is missing"),
            (3, "its listing", "it is not listed, or not as it is"),
        ] {
            let found = expect_true(get_column(row, index)?, why);
            self.record_damage(found, "conversation", what)?;
        }
        Ok(())
    }

    fn record_damage(
        &mut self,
        sound: Result<(), &str>,
        what: &'static str,
        location: &str,
    ) -> Result<(), RowError> {
        let sound = sound.map_err(|why| self.conv.damaged_error(what, location, why).into());
        self.record_result(sound, what, location)
    }

    /// Returns the number in the last row's first column, if there may be more rows.
    fn last_row_key(&self, rows: &[Row], page: i64) -> Result<Option<i64>, RowError> {
        match rows.last() {
            Some(row) if rows.len() as i64 == page => Ok(Some(get_column::<i32>(row, 0)?.into())),
            _ => Ok(None),
        }
    }
}

fn expect_true(holds: bool, why: &str) -> Result<(), &str> {
    match holds {
        true => Ok(()),
        false => Err(why),
    }
}
