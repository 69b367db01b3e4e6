//! Import: builds a conversation in any store from exported lines, one by one.

use contexture_ir::{BranchName, ContentHash, ConversationId, NodeId, Owner, Raw};

use super::record::{
    BlobLine, BranchLine, CheckpointLine, End, EntryLine, ExportLine, FORMAT, Head, InputsLine,
    NodeLine, ResponseLine,
};
use crate::contract::{
    Activation, AppendPoint, AppendRequest, BranchLabel, ConversationUpdate, Error,
    ExpectedVersion, KeyScope, Limits, Metadata, MetadataChange, NewBranch, NewConversation,
    NewItem, NodeQuery, PutEntry, RedactRequest, RefChange, ResponseInputs, ResponseRecord,
    StateChange, StatePatch, Store, TitleChange,
};

/// Largest number of nodes of one append, and number of bytes from which on it is flushed.
const ITEMS: usize = 512;
const BYTES: usize = 4 << 20;
/// Metadata key of a conversation whose import is not complete.
const INCOMPLETE: &str = "ctx:import-incomplete";
/// Stand-in for a redacted value, which is redacted again at the end of the import.
const REDACTED: &[u8] = b"contexture: a value that was redacted before the import";

/// Import of a conversation, line by line.
///
/// An incomplete import leaves nothing behind: what was stored is deleted when a line is refused or
/// when [`Import::finish_import`] finds no end. If the process dies or this is dropped, the next
/// import of the same conversation deletes it. Until it is complete, it is marked in its metadata.
#[derive(Debug)]
pub struct Import<'a> {
    store: &'a dyn Store,
    owner: &'a Owner,
    number: u64,
    hasher: blake3::Hasher,
    seen: End,
    stage: ImportStage,
}

#[derive(Debug)]
enum ImportStage {
    Head,
    Body(Box<ImportBody>),
    /// All lines were read; names and redactions are stored by [`Import::finish_import`].
    End(Box<ImportBody>),
    Failed,
}

/// Result of a complete import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedConversation {
    /// Id of the conversation.
    pub id: ConversationId,
    /// Number of imported nodes.
    pub nodes: u64,
    /// Number of imported branches.
    pub branches: u64,
    /// Number of imported blobs.
    pub blobs: u64,
}

/// A line that cannot be imported; nothing of the conversation is stored.
#[derive(Debug, thiserror::Error)]
#[error("line {line} cannot be imported")]
#[non_exhaustive]
pub struct ImportError {
    /// Number of the line, from 1; for a missing line, one more than the last.
    pub line: u64,
    /// Reason why the line was refused.
    pub source: Error,
}

/// Reason why a line is refused, and its number if it is not the current line.
struct RefusedLine {
    line: Option<u64>,
    source: Error,
}

impl From<Error> for RefusedLine {
    fn from(source: Error) -> Self {
        Self { line: None, source }
    }
}

/// State of an import after its first line.
#[derive(Debug)]
struct ImportBody {
    head: Head,
    branches: Vec<BranchLine>,
    checkpoints: Vec<CheckpointLine>,
    /// Temporary branches that items are appended to; the first one is active.
    scaffolds: ScaffoldBranches,
    /// Last node that was read; `None` before the first.
    last: Option<NodeId>,
    /// Items that are not appended yet, with the numbers of their lines.
    waiting: Vec<(u64, NewItem)>,
    waiting_bytes: usize,
    patch: StatePatch,
    response: Option<ResponseRecord>,
    redacted: Vec<(i64, NodeId)>,
    redacted_values: bool,
}

/// Names of the temporary branches of an import.
#[derive(Debug)]
struct ScaffoldBranches {
    first: BranchName,
    now: BranchName,
    /// Point at which the next items are appended.
    at: AppendPoint,
    count: u64,
}

impl<'a> Import<'a> {
    /// Creates an import that expects the first line.
    #[must_use]
    pub fn new(store: &'a dyn Store, owner: &'a Owner) -> Self {
        Self {
            store,
            owner,
            number: 0,
            hasher: blake3::Hasher::new(),
            seen: End::default(),
            stage: ImportStage::Head,
        }
    }

    /// Returns the length of the longest line that a store with these limits can take, in bytes. A
    /// reader that splits a file into lines need not buffer more.
    #[must_use]
    pub fn longest_line(limits: &Limits) -> usize {
        let largest = limits.blob_bytes.max(limits.append_bytes);
        // Six bytes for each one, since the longest escape of JSON is `\u0000`, and room for the
        // other fields.
        largest.saturating_mul(6).saturating_add(1 << 20)
    }

    /// Imports the next line, given without its line end.
    ///
    /// # Errors A malformed line, or the store's refusal of it: an unknown parent, source or call,
    /// a repeated id, a limit, [`Error::AlreadyExists`] if the conversation exists.
    pub async fn import_line(&mut self, line: &str) -> Result<(), ImportError> {
        // Before anything can fail: errors name the line, counted from 1.
        self.number += 1;
        let taken = self.accept_line(line).await;
        match taken {
            Ok(()) => Ok(()),
            Err(refused) => Err(self.roll_back(refused).await),
        }
    }

    /// Ends the import after the last line.
    ///
    /// # Errors The line `end` is missing, or the names and redactions cannot be stored.
    pub async fn finish_import(mut self) -> Result<ImportedConversation, ImportError> {
        if let ImportStage::End(body) = &mut self.stage {
            // Names, metadata and redactions come last: until then the conversation is marked as
            // incomplete.
            let finished = body.complete_import(self.store, self.owner).await;
            let id = body.head.id.clone();
            return match finished {
                Ok(()) => Ok(ImportedConversation {
                    id,
                    nodes: self.seen.nodes,
                    branches: self.seen.branches,
                    blobs: self.seen.blobs,
                }),
                Err(source) => Err(self.roll_back(source.into()).await),
            };
        }
        // The missing line would be the next one.
        self.number += 1;
        let source = invalid_import("the text ends before the line `end`: it was cut off");
        Err(self.roll_back(source.into()).await)
    }

    /// Deletes what was stored.
    async fn roll_back(&mut self, refused: RefusedLine) -> ImportError {
        // Failed from here on: later lines are refused instead of building on what is deleted.
        let stage = std::mem::replace(&mut self.stage, ImportStage::Failed);
        if let ImportStage::Body(body) | ImportStage::End(body) = stage {
            // If this fails too, the next import of the conversation deletes it.
            let _ = self
                .store
                .delete_conversation(self.owner, &body.head.id)
                .await;
        }
        ImportError {
            line: refused.line.unwrap_or(self.number),
            source: refused.source,
        }
    }

    async fn accept_line(&mut self, text: &str) -> Result<(), RefusedLine> {
        let line: ExportLine = serde_json::from_str(text).map_err(|error| {
            let column = error.column();
            invalid_import(format!(
                "no line of an exported conversation: {error} (byte {column})"
            ))
        })?;
        // The last line is not part of its own checksum.
        if let ExportLine::End(end) = &line {
            self.seen.blake3 = self.hasher.finalize().to_hex().to_string();
            return self.accept_end(end).await;
        }
        let number = self.number;
        // The text as received, not re-serialized: any changed byte is noticed, even without a
        // change of meaning.
        self.hasher.update(text.as_bytes());
        self.hasher.update(b"\n");
        self.seen.lines += 1;
        // Copied, since `body` below borrows the stage of `self`.
        let (store, owner) = (self.store, self.owner);
        // The order of lines is checked before their content: a misplaced line is the better
        // explanation of what went wrong.
        let body = match (&mut self.stage, line) {
            (ImportStage::Head, ExportLine::Conversation(head)) => {
                let body = ImportBody::begin_import(store, owner, *head).await?;
                self.stage = ImportStage::Body(Box::new(body));
                return Ok(());
            }
            (ImportStage::Head, _) => {
                return Err(invalid_import("expected the line `conversation` first").into());
            }
            (ImportStage::Body(body), line) => (body, line),
            (ImportStage::End(_), _) => {
                return Err(invalid_import("there is more after the line `end`").into());
            }
            (ImportStage::Failed, _) => {
                return Err(invalid_import("an earlier line was refused").into());
            }
        };
        let (body, line) = body;
        match line {
            ExportLine::Branch(branch) => {
                body.check_before_nodes(self.seen.nodes)?;
                self.seen.branches += 1;
                // Only recorded: the node that the branch points to comes later, so branches are
                // created at the end.
                body.branches.push(branch);
            }
            ExportLine::Checkpoint(checkpoint) => {
                body.check_before_nodes(self.seen.nodes)?;
                self.seen.checkpoints += 1;
                // Likewise: a checkpoint cannot be set before its node exists.
                body.checkpoints.push(checkpoint);
            }
            ExportLine::Blob(blob) => {
                self.seen.blobs += 1;
                body.import_blob(store, owner, blob).await?;
            }
            ExportLine::Response(response) => {
                self.seen.responses += 1;
                body.import_response(store, owner, response).await?;
            }
            ExportLine::Node(node) => {
                self.seen.nodes += 1;
                body.import_node(store, owner, number, *node).await?;
            }
            ExportLine::Entry(entry) => {
                if entry.resource.is_some() {
                    return Err(invalid_import("a conversation's value has no resource").into());
                }
                self.seen.entries += 1;
                body.import_entry(store, owner, entry).await?;
            }
            ExportLine::Values(_) => {
                return Err(invalid_import("values begin behind the line `end`").into());
            }
            ExportLine::Conversation(_) | ExportLine::End(_) => {
                return Err(invalid_import("the line `conversation` stands twice").into());
            }
        }
        Ok(())
    }

    async fn accept_end(&mut self, end: &End) -> Result<(), RefusedLine> {
        match std::mem::replace(&mut self.stage, ImportStage::Failed) {
            ImportStage::Body(mut body) => {
                // Before the counts are compared: an item that the store refuses is the better
                // explanation.
                let flushed = body.flush_items(self.store, self.owner).await;
                let alone = body.response.is_some();
                // Set before the error is returned, so that rolling back finds the conversation in
                // the stage.
                self.stage = ImportStage::End(body);
                flushed?;
                if alone {
                    return Err(invalid_import("a response has no node").into());
                }
            }
            stage @ ImportStage::End(_) => {
                self.stage = stage;
                return Err(invalid_import("there is more after the line `end`").into());
            }
            ImportStage::Head | ImportStage::Failed => {
                return Err(invalid_import("the line `end` stands alone").into());
            }
        }
        // The checksum first: with changed lines the counts may be right or wrong by accident.
        if self.seen.blake3 != end.blake3 {
            let why = "its checksum is not that of the lines before it: they were changed";
            return Err(invalid_import(why).into());
        }
        if self.seen != *end {
            return Err(invalid_import("its counts are not those of the lines before it").into());
        }
        Ok(())
    }
}

impl ImportBody {
    async fn begin_import(store: &dyn Store, owner: &Owner, head: Head) -> Result<Self, Error> {
        if head.format != FORMAT {
            let why = format!("format {}, and this version knows {FORMAT}", head.format);
            return Err(invalid_import(why));
        }
        // Only an import writes this mark: a conversation with exactly this metadata is an
        // interrupted import and may be deleted.
        let mark: Metadata = [(
            INCOMPLETE.to_owned(),
            Raw::string("deleted by the next import"),
        )]
        .into();
        // Without its title, which would be indexed twice: the mark says what it is.
        let new = NewConversation {
            resource: head.resource.clone(),
            metadata: mark.clone(),
            ..NewConversation::new(head.id.clone(), head.created_ms)
        };
        match store.create_conversation(owner, new.clone()).await {
            Err(Error::AlreadyExists { .. })
                // Any other conversation with this id stays, and the caller gets the error.
                if store.load_conversation(owner, &head.id).await?.metadata == mark =>
            {
                store.delete_conversation(owner, &head.id).await?;
                store.create_conversation(owner, new).await?;
            }
            created => drop(created?),
        }
        let main = BranchName::main();
        Ok(Self {
            scaffolds: ScaffoldBranches {
                first: main.clone(),
                now: main.clone(),
                at: AppendPoint::Tip { branch: main },
                count: 0,
            },
            head,
            branches: Vec::new(),
            checkpoints: Vec::new(),
            last: None,
            waiting: Vec::new(),
            waiting_bytes: 0,
            patch: StatePatch::default(),
            response: None,
            redacted: Vec::new(),
            redacted_values: false,
        })
    }

    fn check_before_nodes(&self, nodes: u64) -> Result<(), Error> {
        if nodes > 0 {
            return Err(invalid_import("names stand before the nodes"));
        }
        Ok(())
    }

    async fn import_blob(
        &self,
        store: &dyn Store,
        owner: &Owner,
        line: BlobLine,
    ) -> Result<(), Error> {
        let id = store
            .put_blob(owner, &self.head.id, line.bytes.into_bytes())
            .await?;
        // The store derives the id from owner and bytes, so comparing ids compares the bytes.
        if id == line.id {
            return Ok(());
        }
        Err(invalid_import(if *owner == self.head.owner {
            format!("blob {} has other bytes", line.id)
        } else {
            // The likely reason for different ids, and one that the caller can fix.
            let from = &self.head.owner;
            format!("ids of blobs are their owner's: import it as {from}, not as {owner}")
        }))
    }

    /// Stores a value outside the tree, in the scope of this conversation.
    async fn import_entry(
        &self,
        store: &dyn Store,
        owner: &Owner,
        entry: EntryLine,
    ) -> Result<(), Error> {
        let scope = KeyScope::Conversation(self.head.id.clone());
        let put = PutEntry {
            key: entry.key,
            value: Some(entry.value.into_bytes()),
            // This import created the conversation, so an existing value comes from an earlier
            // line.
            expect: ExpectedVersion::Absent,
            at_ms: entry.at_ms,
        };
        store.put_entry(owner, &scope, put).await.map(drop)
    }

    /// Keeps the record for the append that begins with the next node.
    async fn import_response(
        &mut self,
        store: &dyn Store,
        owner: &Owner,
        line: ResponseLine,
    ) -> Result<(), RefusedLine> {
        self.flush_items(store, owner).await?;
        // Pending items were flushed first: a response is stored with the append of its first node.
        let known = self.response.replace(ResponseRecord {
            id: line.id,
            base: line.base,
            status: line.status.0,
            model: line.model,
            usage: line.usage.map(|usage| usage.0.into()),
            inputs: match line.inputs {
                None => ResponseInputs::None,
                Some(InputsLine::Recorded(bytes)) => ResponseInputs::Recorded(bytes.into_bytes()),
                Some(InputsLine::Redacted) => ResponseInputs::Redacted,
            },
            finished_ms: line.finished_ms,
        });
        match known {
            None => Ok(()),
            Some(_) => Err(invalid_import("a response stands before its first node").into()),
        }
    }

    async fn import_node(
        &mut self,
        store: &dyn Store,
        owner: &Owner,
        number: u64,
        line: NodeLine,
    ) -> Result<(), RefusedLine> {
        // Consecutive nodes of a path go into one append. A node with another parent starts a new
        // branch.
        if line.parent != self.last {
            self.flush_items(store, owner).await?;
            // Checked here, so that a missing parent is reported for this line and not for a later
            // one.
            if let Some(parent) = line.parent {
                store
                    .find_nodes(owner, &self.head.id, NodeQuery::Id(parent))
                    .await?;
            }
            let label = self.next_scaffold_name();
            self.scaffolds.at = AppendPoint::New(NewBranch {
                base: line.parent,
                label: BranchLabel::Named(label),
                activate: Activation::Keep,
            });
        } else if !line.state.is_empty() {
            // A change of state applies from the first item of an append, so this node must begin a
            // new one.
            self.flush_items(store, owner).await?;
        }
        for entry in line.state {
            let key = entry.key;
            self.patch.changes.push(match (entry.version, entry.value) {
                (None, None) => StateChange::remove_entry(key),
                (None, Some(_)) => {
                    return Err(invalid_import(format!("state {key} has no version")).into());
                }
                (Some(version), Some(value)) => {
                    StateChange::put_entry(key, version, value.into_bytes())
                }
                // A redacted value has no bytes left. It is stored as a stand-in and redacted again
                // at the end, so that the entry keeps its version and reads as redacted.
                (Some(version), None) => {
                    self.redacted_values = true;
                    StateChange::put_entry(key, version, REDACTED)
                }
            });
        }
        if let Some(at_ms) = line.redacted_ms {
            // Redacted at the end: the store derives the tombstone from the item, which already is
            // one.
            self.redacted.push((at_ms, line.id));
        }
        self.last = Some(line.id);
        self.waiting_bytes += line.item.0.len();
        let item = NewItem {
            id: line.id,
            json: line.item.0.into(),
            kind: line.kind.0,
            answers: line.answers,
            message_id: line.message_id,
            run: line.run,
            step: line.step,
            response: line.response,
            origin: line.origin.0,
            audience: line.audience.0,
            copied_from: line.copied_from,
            meaning_hash: line.meaning_hash,
            created_ms: line.created_ms,
        };
        // With its line number, so that a refusal names the line and not the batch.
        self.waiting.push((number, item));
        // In batches, since each append is a commit; bounded, since they are in memory.
        if self.waiting.len() >= ITEMS.min(store.limits().append_items)
            || self.waiting_bytes >= BYTES
        {
            self.flush_items(store, owner).await?;
        }
        Ok(())
    }

    /// Returns a name that no imported branch has.
    fn next_scaffold_name(&mut self) -> BranchName {
        loop {
            self.scaffolds.count += 1;
            // Branches come before nodes, so `self.branches` is complete here.
            let name = format!("import-{}", self.scaffolds.count);
            if let Ok(name) = BranchName::new(name)
                && self.branches.iter().all(|branch| branch.name != name)
            {
                return name;
            }
        }
    }

    /// Appends the pending items: all at once, or one by one to find the one that is refused.
    async fn flush_items(&mut self, store: &dyn Store, owner: &Owner) -> Result<(), RefusedLine> {
        // Taken before anything can fail, so that a refused batch is not appended again by the next
        // call.
        let waiting = std::mem::take(&mut self.waiting);
        // Without items, a pending patch or response is kept for the next node.
        let Some(first) = waiting.first().map(|(line, _)| *line) else {
            return Ok(());
        };
        self.waiting_bytes = 0;
        let mut patch = std::mem::take(&mut self.patch);
        let mut response = self.response.take();
        let items = waiting.iter().map(|(_, item)| item.clone()).collect();
        match self
            .append_items(store, owner, items, patch.clone(), response.clone())
            .await
        {
            // The error of a batch does not say which item it is about. Appending one by one finds
            // the line; only a failing import pays for the extra commits.
            Err(_) if waiting.len() > 1 => {}
            Err(source) => {
                let line = Some(first);
                return Err(RefusedLine { line, source });
            }
            Ok(()) => return Ok(()),
        }
        for (line, item) in waiting {
            let (patch, response) = (std::mem::take(&mut patch), response.take());
            let appended = self.append_items(store, owner, vec![item], patch, response);
            appended.await.map_err(|source| RefusedLine {
                line: Some(line),
                source,
            })?;
        }
        Ok(())
    }

    async fn append_items(
        &mut self,
        store: &dyn Store,
        owner: &Owner,
        items: Vec<NewItem>,
        patch: StatePatch,
        response: Option<ResponseRecord>,
    ) -> Result<(), Error> {
        let at = self.scaffolds.at.clone();
        let opened = match &at {
            AppendPoint::New(NewBranch {
                label: BranchLabel::Named(name),
                ..
            }) => Some(name.clone()),
            _ => None,
        };
        let request = AppendRequest {
            patch,
            response,
            ..AppendRequest::new(at, items, self.head.updated_ms)
        };
        let appended = store.append_items(owner, &self.head.id, request).await?;
        // The conversation is new, so an earlier line has stored the node.
        if appended.replayed {
            return Err(invalid_import("the node was given before"));
        }
        if let Some(name) = opened {
            let left = std::mem::replace(&mut self.scaffolds.now, name);
            self.scaffolds.at = AppendPoint::Tip {
                branch: self.scaffolds.now.clone(),
            };
            // The first one is active and cannot be deleted yet; any other is no longer needed once
            // it is left.
            if left != self.scaffolds.first {
                self.change_ref(store, owner, RefChange::DeleteBranch(left))
                    .await?;
            }
        }
        Ok(())
    }

    async fn change_ref(
        &self,
        store: &dyn Store,
        owner: &Owner,
        change: RefChange,
    ) -> Result<(), Error> {
        // With the conversation's own update time, so that the time of the import leaves no trace.
        let at_ms = self.head.updated_ms;
        store
            .change_ref(owner, &self.head.id, change, at_ms)
            .await?;
        Ok(())
    }

    /// Creates the names, repeats redactions, and removes the mark of an incomplete import.
    async fn complete_import(&mut self, store: &dyn Store, owner: &Owner) -> Result<(), Error> {
        let id = self.head.id.clone();
        // Redacted before names are created: readers never reach unredacted content by a name.
        self.redact_nodes(store, owner).await?;
        // Most conversations have one branch, the one that they were created with: it needs no other names on the way.
        if !self.has_first_branch_only() {
            self.create_branches(store, owner).await?;
        }
        for line in &self.checkpoints {
            let set = RefChange::SetCheckpoint {
                name: line.name.clone(),
                node: line.node,
            };
            store.change_ref(owner, &id, set, line.at_ms).await?;
        }
        let metadata = self.head.metadata.iter().map(|(key, json)| {
            let value = Raw::parse(json.0.as_str());
            let value =
                value.map_err(|error| invalid_import(format!("metadata {key:?}: {error}")))?;
            Ok((key.clone(), value))
        });
        let update = ConversationUpdate {
            title: TitleChange::Set(self.head.title.clone()),
            metadata: MetadataChange::Replace(metadata.collect::<Result<_, Error>>()?),
            // The last change removes the mark: until here the import counts as incomplete.
            ..ConversationUpdate::new(self.head.updated_ms)
        };
        store.update_conversation(owner, &id, update).await?;
        Ok(())
    }

    /// Whether the branch that the conversation was created with is the only one, as it is.
    fn has_first_branch_only(&self) -> bool {
        let first = &self.scaffolds.first;
        let [only] = self.branches.as_slice() else {
            return false;
        };
        self.scaffolds.now == *first
            && self.head.active == *first
            && only.name == *first
            && only.head == self.last
            && only.created_ms == self.head.created_ms
    }

    /// Creates the branches in place of those that the items were appended to.
    async fn create_branches(&mut self, store: &dyn Store, owner: &Owner) -> Result<(), Error> {
        // The scaffold branch is renamed, so that an imported branch can have its name.
        let first = self.next_scaffold_name();
        let rename = RefChange::RenameBranch {
            from: self.scaffolds.first.clone(),
            to: first.clone(),
        };
        self.change_ref(store, owner, rename).await?;
        for line in &self.branches {
            let new = RefChange::CreateBranch(NewBranch {
                base: line.head,
                label: BranchLabel::Named(line.name.clone()),
                activate: Activation::Keep,
            });
            store
                .change_ref(owner, &self.head.id, new, line.created_ms)
                .await?;
        }
        // Before the scaffold branch is deleted: it is still active, and an active branch cannot be
        // deleted.
        let activate = RefChange::Activate(self.head.active.clone());
        self.change_ref(store, owner, activate).await?;
        if self.scaffolds.now != self.scaffolds.first {
            let now = self.scaffolds.now.clone();
            self.change_ref(store, owner, RefChange::DeleteBranch(now))
                .await?;
        }
        self.change_ref(store, owner, RefChange::DeleteBranch(first))
            .await?;
        Ok(())
    }

    async fn redact_nodes(&mut self, store: &dyn Store, owner: &Owner) -> Result<(), Error> {
        let mut nodes = std::mem::take(&mut self.redacted);
        // Grouped by time, since one request has one time for all its nodes.
        nodes.sort_unstable();
        let most = store.limits().redact_items.max(1);
        for same in nodes.chunk_by(|(one, _), (other, _)| one == other) {
            for some in same.chunks(most) {
                let request = RedactRequest {
                    nodes: some.iter().map(|(_, node)| *node).collect(),
                    at_ms: some.first().map_or(0, |(at_ms, _)| *at_ms),
                    ..RedactRequest::default()
                };
                store.redact_content(owner, &self.head.id, request).await?;
            }
        }
        if self.redacted_values {
            let request = RedactRequest {
                // All stand-ins are equal, so one hash removes them all.
                values: vec![ContentHash::of(REDACTED)],
                at_ms: self.head.updated_ms,
                ..RedactRequest::default()
            };
            store.redact_content(owner, &self.head.id, request).await?;
        }
        Ok(())
    }
}

fn invalid_import(why: impl Into<String>) -> Error {
    Error::invalid_argument("import", why)
}
