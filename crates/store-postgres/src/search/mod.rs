//! Full-text search: reads the nodes that the index proposes and lets the shared rules rank them.
//!
//! The index proposes the newest nodes, one more than the rules examine. What many nodes of a path have is looked for from its
//! end instead, since an index of terms gives all of them.
//!
//! Not here: filling the index.

use std::collections::BTreeMap;

use contexture_ir::{ConversationId, Owner};
use contexture_store::rules::{
    ConditionExtent, IndexCondition, NodePlace, Ranking, SearchCandidate,
};
use contexture_store::{HiddenContent, SearchLimits, SearchPage, SearchRequest, SearchScope};
use futures_util::TryStreamExt as _;
use futures_util::future::try_join;
use tokio_postgres::Row;

use crate::connection::error::{RowError, corrupt_error};
use crate::connection::params::{Bytea, Param, get_bytes, get_column, params};
use crate::connection::transaction::Tx;
use crate::refs;
use crate::rows::conversation_row::ConversationRow;
use crate::rows::node_row::{self, columns};
use crate::rows::path::{NodePosition, SegmentLineage, Stretch};
use crate::search::index::{MATCH_ALL_TERM, conversation_term, load_progress, owner_term};

pub(crate) mod index;
pub(crate) mod index_task;

/// Number of nodes to read at once.
const BATCH: usize = 200;

/// Bit of an audience that includes the user.
const SHOWN: i16 = 0b10;

/// Conditions on every index row, parameters 1 to 5.
macro_rules! asked {
    () => {
        "t.terms @@ $1::tsquery AND (cardinality($2) = 0 OR t.kind = ANY ($2)) \
         AND t.audience & $3 = $3 AND ($4 IS NULL OR t.created_ms >= $4) \
         AND ($5 IS NULL OR t.created_ms < $5)"
    };
}

/// Condition of proposals in one conversation, parameters 8 to 10; a null path stands for all its
/// paths.
macro_rules! on_path {
    () => {
        "($8 IS NULL OR EXISTS (SELECT FROM unnest($8, $9, $10) \
         AS on_path (segment, first, last) WHERE on_path.segment = t.segment \
         AND t.depth BETWEEN on_path.first AND on_path.last))"
    };
}

/// Proposals in one conversation. `OFFSET 0` keeps the planner from walking all of it for a word
/// that few nodes have.
const IN_CONVERSATION: &str = concat!(
    "SELECT t.conversation, t.segment, t.depth \
     FROM (SELECT t.conversation, t.segment, t.depth, t.created_ms \
     FROM contexture.terms t WHERE t.conversation = $7 AND ",
    asked!(),
    " OFFSET 0) AS t WHERE ",
    on_path!(),
    // Branches grow side by side, so of all paths together only the time says which node is newer.
    " ORDER BY t.created_ms DESC, t.segment DESC, t.depth DESC LIMIT $6"
);

/// The same on a path, found by walking the nodes from the last one: on one path that is the order of
/// time. `OFFSET 0` keeps the planner from asking the index of terms, which would give all nodes that
/// have a word.
const FROM_END_OF_PATH: &str = concat!(
    "SELECT t.conversation, t.segment, t.depth FROM (SELECT * FROM contexture.terms \
     WHERE conversation = $7 ORDER BY segment DESC, depth DESC OFFSET 0) AS t WHERE ",
    asked!(),
    " AND ",
    on_path!(),
    " ORDER BY t.segment DESC, t.depth DESC LIMIT $6"
);

/// Proposals of an owner, of one resource or of all. `OFFSET 0` makes the planner scan the index
/// once and not for each conversation.
const OF_OWNER: &str = concat!(
    "SELECT t.conversation, t.segment, t.depth, l.id, l.resource \
     FROM (SELECT conversation, segment, depth, created_ms FROM contexture.terms t WHERE ",
    asked!(),
    " OFFSET 0) AS t JOIN contexture.listings l ON l.conversation = t.conversation \
     WHERE l.owner = $7 AND ($8 IS NULL OR l.resource = $8) \
     ORDER BY t.created_ms DESC, t.conversation, t.segment DESC, t.depth DESC LIMIT $6"
);

/// Counts the nodes of one conversation that match each query of `$1`, up to `$2`; a null path
/// stands for all its paths.
const COUNT_IN_CONVERSATION: &str = "SELECT (SELECT count(*) FROM (SELECT FROM contexture.terms t \
     WHERE t.conversation = $3 AND t.terms @@ asked.query::tsquery \
     AND ($4 IS NULL OR EXISTS (SELECT FROM unnest($4, $5, $6) \
     AS on_path (segment, first, last) WHERE on_path.segment = t.segment \
     AND t.depth BETWEEN on_path.first AND on_path.last)) LIMIT $2) AS counted) \
     FROM unnest($1) WITH ORDINALITY AS asked (query, place) ORDER BY asked.place";

/// Counts the same for an owner, of one resource or of all.
const COUNT_OF_OWNER: &str = "SELECT (SELECT count(*) FROM (SELECT \
     FROM contexture.terms t JOIN contexture.listings l ON l.conversation = t.conversation \
     WHERE t.terms @@ asked.query::tsquery \
     AND l.owner = $3 AND ($4 IS NULL OR l.resource = $4) LIMIT $2) AS counted) \
     FROM unnest($1) WITH ORDINALITY AS asked (query, place) ORDER BY asked.place";

/// Reads the nodes at some positions; column 21 is the index of the position, 22 to 24 are the lineage of its segment.
/// `LIMIT 1` makes the planner look up each by its key instead of scanning the table.
const AT: &str = concat!(
    "SELECT ",
    columns!(),
    ", at.place, s.first_depth, s.ancestors, s.upto FROM unnest($1, $2, $3) \
     WITH ORDINALITY AS at (conversation, segment, depth, place) \
     CROSS JOIN LATERAL (SELECT * FROM contexture.nodes \
     WHERE conversation = at.conversation AND segment = at.segment AND depth = at.depth \
     LIMIT 1) AS n \
     LEFT JOIN contexture.segments s ON s.conversation = at.conversation AND s.segment = at.segment \
     ORDER BY at.place"
);

/// Conversation or owner to search, resolved before the search.
enum SearchArea {
    Conversation(ConversationRow, Option<Vec<Stretch>>),
    Owner(Option<String>),
}

/// Key of a node: of its conversation, its segment and its depth.
type NodeKey = ([u8; 16], i32, i32);

/// A node that the index proposes.
struct ProposedNode {
    conversation: ConversationId,
    /// Resource of the conversation, if several are searched.
    resource: Option<String>,
    key: [u8; 16],
    position: NodePosition,
}

/// Searches what is in the index, and says how far that is.
pub(crate) async fn search_nodes(
    tx: &Tx<'_>,
    owner: &Owner,
    request: &SearchRequest,
    limits: &SearchLimits,
) -> Result<SearchPage, RowError> {
    let (id, resource) = match &request.scope {
        SearchScope::Owner => (None, None),
        SearchScope::Resource(name) => (None, Some(name.as_str())),
        SearchScope::Conversation(id) => (Some(id), None),
        SearchScope::Path { conversation, .. } => (Some(conversation), None),
    };
    let indexing = load_progress(tx, owner, id, resource);
    let (area, indexing) = try_join(resolve_scope(tx, owner, &request.scope), indexing).await?;
    let mut ranking = Ranking::new(request.clone(), limits);
    let walk_threshold = walk_threshold(&area, request, &ranking);
    let counts = count_alternatives(tx, owner, (&area, walk_threshold), &ranking).await?;
    ranking.set_counts(&counts);
    if !ranking.index_alternatives().is_empty() {
        // One REPEATABLE READ transaction: counts, proposals and nodes are read from one snapshot.
        let is_walk = walk_threshold.is_some_and(|least| {
            let phrases = ranking.selecting_phrases().unwrap_or_default();
            let mut selecting = phrases.iter().filter_map(|phrase| counts.get(*phrase));
            selecting.any(|count| *count >= least)
        });
        let in_conversation = match is_walk {
            true => FROM_END_OF_PATH,
            false => IN_CONVERSATION,
        };
        let area = (&area, in_conversation);
        let proposed = propose_nodes(tx, owner, area, request, &ranking).await?;
        examine_nodes(tx, &proposed, &mut ranking).await?;
        add_neighbours(tx, &proposed, &mut ranking).await?;
    }
    Ok(SearchPage {
        indexing,
        ..ranking.into_page()
    })
}

async fn resolve_scope(
    tx: &Tx<'_>,
    owner: &Owner,
    scope: &SearchScope,
) -> Result<SearchArea, RowError> {
    Ok(match scope {
        SearchScope::Owner => SearchArea::Owner(None),
        SearchScope::Resource(name) => SearchArea::Owner(Some(name.clone())),
        SearchScope::Conversation(id) => {
            SearchArea::Conversation(ConversationRow::load_for_read(tx, owner, id).await?, None)
        }
        SearchScope::Path { conversation, at } => {
            let (conv, end) = refs::load_path_end(tx, owner, conversation, at).await?;
            let path = end.load_stretches(tx, conv.key, 1).await?;
            SearchArea::Conversation(conv, Some(path))
        }
    })
}

/// Returns from how many nodes on what they have is found sooner by walking a conversation from its end; `None`: never. The index
/// of terms gives all of them; a walk visits the more nodes the rarer they are. Both visit as many where that number is the
/// square root of the nodes that are wanted times those of the conversation.
///
/// A walk visits what the request leaves out too. So there is none where that may be most of the conversation: beside the path, of
/// other kinds, or after a time.
fn walk_threshold(
    area: &SearchArea,
    request: &SearchRequest,
    ranking: &Ranking<NodeKey>,
) -> Option<usize> {
    let SearchArea::Conversation(conv, path) = area else {
        return None;
    };
    let nodes = usize::try_from(conv.nodes).unwrap_or(0);
    let length = |stretch: &Stretch| usize::try_from(stretch.to - stretch.from).unwrap_or(0) + 1;
    let on_path: usize = match path {
        Some(path) => path.iter().map(length).sum(),
        // Without forks all of a conversation is one path.
        None if conv.next_segment <= 2 => nodes,
        None => return None,
    };
    let is_most = on_path >= nodes / 2;
    if !is_most || request.before_ms.is_some() || !request.kinds.is_empty() {
        return None;
    }
    let wanted = ranking.count_limit();
    Some(nodes.saturating_mul(wanted).isqrt().max(wanted))
}

/// Counts how many nodes match each phrase.
async fn count_alternatives(
    tx: &Tx<'_>,
    owner: &Owner,
    (area, walk_threshold): (&SearchArea, Option<usize>),
    ranking: &Ranking<NodeKey>,
) -> Result<Vec<usize>, RowError> {
    let alternatives = ranking.terms_to_count();
    if alternatives.is_empty() {
        return Ok(Vec::new());
    }
    // Counting stops at the limit, above which the exact frequency does not change the result, or
    // where it says how to look for the nodes.
    let most = walk_threshold.unwrap_or_else(|| ranking.count_limit());
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let query_params = |scope: &str| {
        let each = alternatives.iter();
        let each = each.map(|one| match_expression(scope, std::slice::from_ref(one)));
        params![each.collect::<Vec<String>>(), most]
    };
    let (sql, params) = match area {
        SearchArea::Conversation(conv, path) => {
            let mut params = query_params(&conversation_term(conv.key));
            params.push(Param::new(conv.key));
            params.extend(path_params(path.as_deref()));
            (COUNT_IN_CONVERSATION, params)
        }
        SearchArea::Owner(resource) => {
            let mut params = query_params(&owner_term(owner));
            params.extend(params![owner.as_str(), resource_param(resource.as_deref())]);
            (COUNT_OF_OWNER, params)
        }
    };
    let rows = tx.query_rows(sql, params).await?;
    let counts = rows.iter().map(|row| {
        let count = get_column::<i64>(row, 0)?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    });
    counts.collect()
}

fn resource_param(resource: Option<&str>) -> Option<Bytea> {
    resource.map(|name| Bytea::Text(name.into()))
}

/// Converts a path's stretches to columns.
fn path_params(path: Option<&[Stretch]>) -> Vec<Param> {
    let column = |of: fn(&Stretch) -> i32| -> Option<Vec<i32>> {
        path.map(|path| path.iter().map(of).collect())
    };
    params![
        column(|stretch| stretch.segment),
        column(|stretch| stretch.from),
        column(|stretch| stretch.to)
    ]
}

/// Reads what the index proposes: at most one more than the ranking examines.
async fn propose_nodes(
    tx: &Tx<'_>,
    owner: &Owner,
    (area, in_conversation): (&SearchArea, &str),
    request: &SearchRequest,
    ranking: &Ranking<NodeKey>,
) -> Result<Vec<ProposedNode>, RowError> {
    match area {
        SearchArea::Conversation(conv, path) => {
            let mut params = match_params(&conversation_term(conv.key), request, ranking);
            params.push(Param::new(conv.key));
            params.extend(path_params(path.as_deref()));
            let rows = tx.query_rows(in_conversation, params).await?;
            let proposed = rows
                .iter()
                .map(|row| decode_proposed_node(row, conv.id.clone(), None));
            proposed.collect()
        }
        SearchArea::Owner(resource) => {
            let mut params = match_params(&owner_term(owner), request, ranking);
            params.extend(params![owner.as_str(), resource_param(resource.as_deref())]);
            let rows = tx.query_rows(OF_OWNER, params).await?;
            let proposed = rows.iter().map(|row| {
                let id = ConversationId::new(get_column::<&str>(row, 3)?);
                let id = id.map_err(|error| corrupt_error(error.to_string()))?;
                // Only compared with others of this search, so damaged text costs nothing.
                let resource = get_column::<Option<&[u8]>>(row, 4)?;
                let resource = resource.map(|name| String::from_utf8_lossy(name).into_owned());
                decode_proposed_node(row, id, resource)
            });
            proposed.collect()
        }
    }
}

/// Parameters 1 to 6 of [`IN_CONVERSATION`], [`FROM_END_OF_PATH`] and [`OF_OWNER`].
fn match_params(scope: &str, request: &SearchRequest, ranking: &Ranking<NodeKey>) -> Vec<Param> {
    // Filters are columns of the index rows, so nodes that they exclude do not count against the
    // limit of examined nodes.
    let kinds = request.kinds.iter().map(|kind| i16::from(kind.code()));
    let audience = match request.hidden {
        HiddenContent::LeaveOut => SHOWN,
        HiddenContent::Include => 0,
    };
    let limit = i64::try_from(ranking.node_limit()).unwrap_or(i64::MAX);
    params![
        match_expression(scope, &ranking.index_alternatives()),
        kinds.collect::<Vec<i16>>(),
        audience,
        request.since_ms,
        request.before_ms,
        // One extra row shows that older matches were left out.
        limit.saturating_add(1)
    ]
}

fn decode_proposed_node(
    row: &Row,
    conversation: ConversationId,
    resource: Option<String>,
) -> Result<ProposedNode, RowError> {
    Ok(ProposedNode {
        conversation,
        resource,
        key: get_bytes(row, 0)?,
        position: NodePosition {
            segment: get_column(row, 1)?,
            depth: get_column(row, 2)?,
        },
    })
}

/// Builds the `tsquery` of the alternatives. Terms contain no quotes and no backslashes, so none
/// can end the string.
fn match_expression(scope: &str, alternatives: &[Vec<IndexCondition<'_>>]) -> String {
    let conditions = |alternative: &Vec<IndexCondition<'_>>| {
        let conditions = alternative.iter().map(|condition| {
            let term = condition.term;
            match condition.extent {
                ConditionExtent::Whole => format!("'{term}'"),
                ConditionExtent::Prefix => {
                    let others = condition.other_terms();
                    let others: String = others.map(|term| format!(" | '{term}'")).collect();
                    format!("('{term}':*{others})")
                }
            }
        });
        format!("({})", conditions.collect::<Vec<_>>().join(" & "))
    };
    // The scope is a term like others, so that the index intersects it with the query instead of
    // reading the matches of every owner.
    if alternatives.iter().any(Vec::is_empty) {
        return format!("'{scope}'");
    }
    let alternatives: Vec<String> = alternatives.iter().map(conditions).collect();
    format!(
        "'{scope}' & ({} | '{MATCH_ALL_TERM}')",
        alternatives.join(" | ")
    )
}

/// Reads and examines nodes until the ranking stops. A damaged node is skipped; reading it reports
/// the damage.
async fn examine_nodes(
    tx: &Tx<'_>,
    proposed: &[ProposedNode],
    ranking: &mut Ranking<NodeKey>,
) -> Result<(), RowError> {
    // In batches, so that nodes beyond the ranking's byte limit are not read.
    for batch in proposed.chunks(BATCH) {
        let keys: Vec<NodeKey> = batch.iter().map(ProposedNode::key).collect();
        let mut rows = std::pin::pin!(tx.query_stream(AT, at_params(&keys)).await?);
        while let Some(row) = rows.try_next().await? {
            let (Some(proposed), Some(node)) = (
                batch.get(place_number(&row)?),
                node_row::decode_undamaged(&row)?,
            ) else {
                continue;
            };
            if !ranking.matches_filters(node.kind, node.audience, node.created_ms) {
                continue;
            }
            let place = match ranking.uses_neighbours() {
                true => proposed.with_neighbours(&row)?,
                false => proposed.alone(),
            };
            let candidate = SearchCandidate::from_node(
                &proposed.conversation,
                proposed.resource.as_deref(),
                &node,
            );
            if ranking.examine_candidate(&candidate, place).is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Reads the nodes that may be hits by what their neighbours lend them.
async fn add_neighbours(
    tx: &Tx<'_>,
    proposed: &[ProposedNode],
    ranking: &mut Ranking<NodeKey>,
) -> Result<(), RowError> {
    let wanted = ranking.neighbours_to_read();
    // Neighbours are of conversations that have candidates.
    let ids: BTreeMap<[u8; 16], &ConversationId> = proposed
        .iter()
        .map(|one| (one.key, &one.conversation))
        .collect();
    for batch in wanted.chunks(BATCH) {
        let mut rows = std::pin::pin!(tx.query_stream(AT, at_params(batch)).await?);
        while let Some(row) = rows.try_next().await? {
            if let Some(key) = batch.get(place_number(&row)?)
                && let Some(conversation) = ids.get(&key.0)
                && let Some(node) = node_row::decode_undamaged(&row)?
            {
                ranking.add_neighbour(conversation, *key, &node);
            }
        }
    }
    Ok(())
}

/// Parameters of [`AT`].
fn at_params(keys: &[NodeKey]) -> Vec<Param> {
    params![
        keys.iter().map(|key| key.0).collect::<Vec<_>>(),
        keys.iter().map(|key| key.1).collect::<Vec<_>>(),
        keys.iter().map(|key| key.2).collect::<Vec<_>>(),
    ]
}

/// Returns the index of the position that a row of [`AT`] is of.
fn place_number(row: &Row) -> Result<usize, RowError> {
    let number = get_column::<i64>(row, 21)?;
    Ok(usize::try_from(number - 1).unwrap_or(usize::MAX))
}

impl ProposedNode {
    fn key(&self) -> NodeKey {
        (self.key, self.position.segment, self.position.depth)
    }

    fn alone(&self) -> NodePlace<NodeKey> {
        NodePlace {
            key: self.key(),
            before: [None, None],
        }
    }

    /// Returns the place of the node with the nodes before it, by its row of [`AT`].
    fn with_neighbours(&self, row: &Row) -> Result<NodePlace<NodeKey>, RowError> {
        let lineage = match SegmentLineage::from_row(row, 22, self.position.segment) {
            Ok(lineage) => lineage,
            // A damaged segment costs the neighbours and not the search.
            Err(RowError::Store(_)) => return Ok(self.alone()),
            Err(fault) => return Err(fault),
        };
        let before = [1, 2].map(|distance| {
            let before = lineage.position_before(self.position, distance)?;
            Some((self.key, before.segment, before.depth))
        });
        Ok(NodePlace {
            key: self.key(),
            before,
        })
    }
}
