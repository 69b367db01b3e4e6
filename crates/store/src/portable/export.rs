//! Export: writes a conversation of any store as lines, page by page.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use contexture_ir::{ContentHash, ConversationId, NodeId, Owner, ResponseId};
use futures_util::future::try_join_all;

use super::record::{
    BlobLine, BranchLine, Bytes, CheckpointLine, End, Ended, EntryLine, ExportLine, FORMAT, Head,
    InputsLine, Json, Kind, NodeLine, ResponseLine, Seen, Source, StateLine,
};
use crate::contract::{
    BlobId, EntityKind, EntryCursor, Error, KeyScope, ListEntries, Node, NodeState, PathEnd,
    ReadRequest, Refs, ResponseInputs, Span, StateRequest, StateRoot, StateValues, Store,
};

/// Number of nodes to read at a time.
const NODES: usize = 256;
/// Number of values to read at a time.
const ENTRIES: usize = 16;
/// Size of a batch of lines, in bytes, from which on no further node is added to it.
const PIECE: usize = 1 << 20;

/// Export of a conversation, line by line.
///
/// It contains the nodes that branches and checkpoints reached when the export began. Nodes never
/// change, so later appends are not seen; a redaction, a deletion or a write of a value outside the
/// tree that happens meanwhile may be.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use contexture_ir::Owner;
/// use contexture_store::{Export, Import, MemoryStore, NewConversation, Store};
///
/// let (from, to, owner) = (MemoryStore::default(), MemoryStore::default(), Owner::local());
/// from.create_conversation(&owner, NewConversation::new("chat".parse().unwrap(), 0)).await?;
///
/// let mut export = Export::new(&from, &owner, &"chat".parse().unwrap()).await?;
/// let mut import = Import::new(&to, &owner);
/// while let Some(lines) = export.next_lines().await? {
///     for line in lines.lines() {
///         import.import_line(line).await.unwrap();
///     }
/// }
/// let imported = import.finish_import().await.unwrap();
/// assert_eq!(imported.id.as_str(), "chat");
/// # Ok::<(), contexture_store::Error>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct Export<'a> {
    store: &'a dyn Store,
    owner: &'a Owner,
    id: ConversationId,
    stage: ExportStage,
    hasher: blake3::Hasher,
    end: End,
    /// Heads and checkpoints that are still to be exported, the first one last.
    ends: Vec<NodeId>,
    /// Stack of unfinished paths; a path waits while the source of one of its copies is written.
    paths: Vec<PendingPath>,
    known: BTreeSet<NodeId>,
    blobs: BTreeSet<BlobId>,
    responses: BTreeSet<ResponseId>,
}

#[derive(Debug)]
enum ExportStage {
    Names(Box<Head>, Refs),
    Nodes,
    Entries(Option<EntryCursor>),
    End,
    Done,
}

/// A path that is not written completely yet.
#[derive(Debug)]
struct PendingPath {
    end: NodeId,
    depth: u64,
    next: u64,
    /// The state at the node before `next`.
    root: StateRoot,
    /// Nodes from `next` on that were read ahead, each with its state root.
    ahead: VecDeque<(Arc<Node>, StateRoot)>,
}

impl<'a> Export<'a> {
    /// Begins the export of a conversation.
    ///
    /// # Errors [`Error::NotFound`], or any other error of the reads.
    pub async fn new(
        store: &'a dyn Store,
        owner: &'a Owner,
        id: &ConversationId,
    ) -> Result<Self, Error> {
        let record = store.load_conversation(owner, id).await?;
        let refs = store.list_refs(owner, id).await?;
        // The name from the refs: the record was read before them, and the branch may have been
        // renamed in between.
        let active = refs.active_branch().map(|branch| branch.name.clone());
        let metadata = record.metadata.into_iter();
        let head = Head {
            format: FORMAT,
            owner: owner.clone(),
            id: id.clone(),
            title: record.title,
            resource: record.resource,
            metadata: metadata
                .map(|(key, value)| (key, Json(value.get().to_owned())))
                .collect(),
            active: active.unwrap_or(record.active),
            created_ms: record.created_ms,
            updated_ms: record.updated_ms,
        };
        let heads = refs.branches.iter().filter_map(|branch| branch.head);
        let marked = refs.checkpoints.iter().map(|checkpoint| checkpoint.node);
        let mut ends: Vec<NodeId> = heads.chain(marked).collect();
        // Reversed, since ends are popped from the back. Branches come in order of creation, so
        // that equal trees give equal lines.
        ends.reverse();
        Ok(Self {
            store,
            owner,
            id: id.clone(),
            stage: ExportStage::Names(Box::new(head), refs),
            hasher: blake3::Hasher::new(),
            end: End::default(),
            ends,
            paths: Vec::new(),
            known: BTreeSet::new(),
            blobs: BTreeSet::new(),
            responses: BTreeSet::new(),
        })
    }

    /// Returns the next lines, each with its line end; `None` after the last.
    ///
    /// A batch takes no further node after about 1 MiB, but may be larger: a node comes with the
    /// blobs that it names.
    ///
    /// # Errors Any error of the reads; the export then ends and is incomplete.
    pub async fn next_lines(&mut self) -> Result<Option<String>, Error> {
        let mut lines = String::new();
        // A stage may have nothing to write; an empty text would look like progress to the caller.
        while lines.is_empty() {
            // The stage is put back only on success: after an error the export ends instead of
            // continuing with a gap.
            match std::mem::replace(&mut self.stage, ExportStage::Done) {
                ExportStage::Names(head, refs) => {
                    self.write_names(head, refs, &mut lines)?;
                    self.stage = ExportStage::Nodes;
                }
                ExportStage::Nodes => {
                    self.stage = match self.next_path().await? {
                        Some(path) => {
                            self.write_nodes(path, &mut lines).await?;
                            ExportStage::Nodes
                        }
                        None => ExportStage::Entries(None),
                    };
                }
                ExportStage::Entries(after) => {
                    self.stage = match self.write_entries(after, &mut lines).await? {
                        Some(next) => ExportStage::Entries(Some(next)),
                        None => ExportStage::End,
                    };
                }
                ExportStage::End => {
                    self.end.blake3 = self.hasher.finalize().to_hex().to_string();
                    let end = self.end.clone();
                    self.write_line(&ExportLine::End(end), &mut lines)?;
                }
                ExportStage::Done => return Ok(None),
            }
        }
        Ok(Some(lines))
    }

    fn write_line(&mut self, line: &ExportLine, lines: &mut String) -> Result<(), Error> {
        let from = lines.len();
        let json = serde_json::to_string(line);
        lines.push_str(&json.map_err(|error| Error::invalid_argument("line", error.to_string()))?);
        lines.push('\n');
        self.hasher
            // With the line end, as the import hashes it.
            .update(lines.as_bytes().get(from..).unwrap_or_default());
        self.end.lines += 1;
        match line {
            ExportLine::Branch(_) => self.end.branches += 1,
            ExportLine::Checkpoint(_) => self.end.checkpoints += 1,
            ExportLine::Blob(_) => self.end.blobs += 1,
            ExportLine::Response(_) => self.end.responses += 1,
            ExportLine::Node(_) => self.end.nodes += 1,
            ExportLine::Entry(_) => self.end.entries += 1,
            ExportLine::Conversation(_) | ExportLine::Values(_) | ExportLine::End(_) => {}
        }
        Ok(())
    }

    fn write_names(
        &mut self,
        head: Box<Head>,
        refs: Refs,
        lines: &mut String,
    ) -> Result<(), Error> {
        self.write_line(&ExportLine::Conversation(head), lines)?;
        for branch in refs.branches {
            let line = BranchLine {
                name: branch.name,
                head: branch.head,
                created_ms: branch.created_ms,
            };
            self.write_line(&ExportLine::Branch(line), lines)?;
        }
        for checkpoint in refs.checkpoints {
            let line = CheckpointLine {
                name: checkpoint.name,
                node: checkpoint.node,
                at_ms: checkpoint.at_ms,
            };
            self.write_line(&ExportLine::Checkpoint(line), lines)?;
        }
        Ok(())
    }

    /// Returns the path to continue with; `None` if everything is written.
    async fn next_path(&mut self) -> Result<Option<PendingPath>, Error> {
        loop {
            // Depth first: a path that waits for a source continues as soon as the source is
            // written.
            match self.paths.pop() {
                Some(path) if path.next <= path.depth => return Ok(Some(path)),
                // This path is finished; the one below it continues.
                Some(_) => {}
                None => match self.ends.pop() {
                    // Already written as a part of another path.
                    Some(end) if self.known.contains(&end) => {}
                    Some(end) => return Ok(Some(self.begin_path(end).await?)),
                    None => return Ok(None),
                },
            }
        }
    }

    /// Returns the path to `end`, positioned at its first node that is not written. The written
    /// nodes of a path are always its beginning, since no node is written before its parent.
    async fn begin_path(&self, end: NodeId) -> Result<PendingPath, Error> {
        let depth = self
            // No nodes: only the depth of the path is wanted.
            .read_path(ReadRequest::last_nodes(PathEnd::Node(end), 0))
            .await?
            .depth;
        // Binary search, since the written nodes are the beginning of the path. A linear search
        // would read a long shared history once for each branch.
        let (mut known, mut unknown, mut last) = (0, depth, None);
        while known + 1 < unknown {
            let middle = known + (unknown - known) / 2;
            let request = ReadRequest {
                at: PathEnd::Node(end),
                span: Span::Between(middle, middle),
                limit: None,
            };
            let id = self
                .read_path(request)
                .await?
                .nodes
                .first()
                .map(|node| node.id);
            if id.is_some_and(|id| self.known.contains(&id)) {
                (known, last) = (middle, id);
            } else {
                unknown = middle;
            }
        }
        let root = match last {
            // Only the hashes: values are written where they change.
            Some(node) => self.read_state(node, StateValues::Skip).await?.root,
            None => StateRoot::new(),
        };
        Ok(PendingPath {
            end,
            depth,
            next: known + 1,
            root,
            ahead: VecDeque::new(),
        })
    }

    async fn read_path(&self, request: ReadRequest) -> Result<crate::contract::PathPage, Error> {
        self.store.read_path(self.owner, &self.id, request).await
    }

    async fn read_state(&self, node: NodeId, values: StateValues) -> Result<NodeState, Error> {
        let request = StateRequest {
            at: PathEnd::Node(node),
            prefix: String::new(),
            values,
        };
        self.store.read_state(self.owner, &self.id, request).await
    }

    /// Writes nodes of a path, until the batch is full or a node needs a source that is not written
    /// yet.
    async fn write_nodes(
        &mut self,
        mut path: PendingPath,
        lines: &mut String,
    ) -> Result<(), Error> {
        if path.ahead.is_empty() {
            path.ahead = self.read_ahead(&path).await?;
        }
        if path.ahead.is_empty() {
            // Nothing more to read: the path counts as written.
            path.next = path.depth + 1;
        }
        while lines.len() < PIECE
            && let Some((node, root)) = path.ahead.pop_front()
        {
            let source = node
                .copied_from
                .filter(|source| !self.known.contains(source));
            if let Some(source) = source {
                // The source of a copy is written first. A waiting path keeps no nodes in memory.
                path.ahead.clear();
                let first = self.begin_path(source).await?;
                // The source goes on top of the stack, this path below it.
                self.paths.extend([path, first]);
                return Ok(());
            }
            // Only what differs from the parent: a whole state at each node would repeat itself in
            // every line.
            let changes = self.diff_state(node.id, &path.root, &root).await?;
            // Before the node: an import stores lines in order, and what a node names must exist.
            self.write_named_blobs(&node.json, lines).await?;
            for change in &changes {
                if let Some(Bytes::Text(text)) = &change.value {
                    self.write_named_blobs(text, lines).await?;
                }
            }
            self.write_response(&node, lines).await?;
            self.write_line(
                &ExportLine::Node(Box::new(node_line(&node, changes))),
                lines,
            )?;
            // Only after its line: later paths rely on the node being in the output.
            self.known.insert(node.id);
            path.root = root;
            path.next = node.depth + 1;
        }
        // Also if it is finished: `next_path` notices and drops it.
        self.paths.push(path);
        Ok(())
    }

    /// Reads the next nodes of a path, each with its state root.
    async fn read_ahead(
        &self,
        path: &PendingPath,
    ) -> Result<VecDeque<(Arc<Node>, StateRoot)>, Error> {
        let request = ReadRequest {
            at: PathEnd::Node(path.end),
            span: Span::Between(path.next, path.depth),
            limit: Some(NODES),
        };
        let nodes = self.read_path(request).await?.nodes;
        // Concurrently, so that network round trips do not add up.
        let states = nodes
            .iter()
            .map(|node| self.read_state(node.id, StateValues::Skip));
        let roots = try_join_all(states).await?;
        let roots = roots.into_iter().map(|state| state.root);
        Ok(nodes.into_iter().zip(roots).collect())
    }

    /// Returns how the state at `node` differs from that at its parent.
    async fn diff_state(
        &self,
        node: NodeId,
        before: &StateRoot,
        now: &StateRoot,
    ) -> Result<Vec<StateLine>, Error> {
        // Most nodes change no state and need no read of values.
        if before == now {
            return Ok(Vec::new());
        }
        let state = self.read_state(node, StateValues::Load).await?;
        let gone = before.keys().filter(|key| !now.contains_key(*key));
        let gone = gone.map(|key| StateLine {
            key: key.clone(),
            version: None,
            value: None,
        });
        let put = now
            .iter()
            .filter(|(key, entry)| before.get(*key) != Some(*entry));
        let put = put.map(|(key, entry)| StateLine {
            key: key.clone(),
            version: Some(entry.version),
            value: state.loaded_value(key).map(|value| Bytes::of(value)),
        });
        Ok(gone.chain(put).collect())
    }

    /// Writes the blobs that a text names, each once.
    async fn write_named_blobs(&mut self, text: &str, lines: &mut String) -> Result<(), Error> {
        for id in BlobId::find_in_text(text) {
            if self.blobs.contains(&id) {
                continue;
            }
            let bytes = match self.store.read_blob(self.owner, &self.id, id).await {
                Ok(bytes) => Bytes::of(&bytes),
                // The text only looks like an id, or the blob was redacted.
                Err(Error::NotFound {
                    what: EntityKind::Blob,
                    ..
                }) => continue,
                Err(error) => return Err(error),
            };
            // Only after a successful read: a missing blob is tried again with the next node that
            // names it.
            self.blobs.insert(id);
            self.write_line(&ExportLine::Blob(BlobLine { id, bytes }), lines)?;
        }
        Ok(())
    }

    /// Writes the response that a node belongs to, before its first node.
    async fn write_response(&mut self, node: &Node, lines: &mut String) -> Result<(), Error> {
        let Some(id) = node.response.filter(|id| !self.responses.contains(id)) else {
            return Ok(());
        };
        let record = match self.store.load_response(self.owner, &self.id, id).await {
            Ok(record) => record,
            // Only the items of this response were stored.
            Err(Error::NotFound {
                what: EntityKind::Response,
                ..
            }) => return Ok(()),
            Err(error) => return Err(error),
        };
        // Its base is not written yet: it is written with a later node of the response, if there is
        // one.
        if record.base.is_some_and(|base| !self.known.contains(&base)) {
            return Ok(());
        }
        self.responses.insert(id);
        let line = ResponseLine {
            id,
            base: record.base,
            status: Ended(record.status),
            model: record.model,
            usage: record.usage.map(|usage| Json(usage.to_string())),
            inputs: match record.inputs {
                ResponseInputs::None => None,
                ResponseInputs::Recorded(bytes) => Some(InputsLine::Recorded(Bytes::of(&bytes))),
                ResponseInputs::Redacted => Some(InputsLine::Redacted),
            },
            finished_ms: record.finished_ms,
        };
        self.write_line(&ExportLine::Response(line), lines)
    }

    async fn write_entries(
        &mut self,
        after: Option<EntryCursor>,
        lines: &mut String,
    ) -> Result<Option<EntryCursor>, Error> {
        let scope = KeyScope::Conversation(self.id.clone());
        let list = ListEntries {
            // A small page, since each value may have the largest allowed size.
            limit: Some(ENTRIES),
            after,
            ..ListEntries::in_scope(scope, "")
        };
        let page = self.store.list_entries(self.owner, list).await?;
        for (_, entry) in page.entries {
            let text = String::from_utf8_lossy(&entry.value);
            self.write_named_blobs(&text, lines).await?;
            let line = EntryLine {
                resource: None,
                key: entry.key,
                at_ms: entry.at_ms,
                value: Bytes::of(&entry.value),
            };
            self.write_line(&ExportLine::Entry(line), lines)?;
        }
        Ok(page.next)
    }
}

fn node_line(node: &Node, state: Vec<StateLine>) -> NodeLine {
    debug_assert_eq!(node.content_hash, ContentHash::of(node.json.as_bytes()));
    NodeLine {
        id: node.id,
        parent: node.parent,
        kind: Kind(node.kind),
        item: Json(node.json.to_string()),
        answers: node.answers,
        message_id: node.message_id.clone(),
        run: node.run,
        step: node.step,
        response: node.response,
        origin: Source(node.origin),
        audience: Seen(node.audience),
        copied_from: node.copied_from,
        meaning_hash: node.meaning_hash,
        created_ms: node.created_ms,
        redacted_ms: node.redacted_ms,
        state,
    }
}
