//! [`SqliteStore`]: the contract's calls, sent to the write thread or to the read pool.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner, Raw, ResponseId};
use contexture_store::{
    AppendRequest, Appended, BlobId, Calls, Capabilities, Conversation, ConversationPage,
    ConversationUpdate, EraseScope, Erased, Error, Event, Limits, ListConversations, Maintenance,
    MetadataChange, NewConversation, Node, NodeQuery, NodeState, PathIndex, PathPage, Processes,
    ReadLoad, ReadRequest, RedactRequest, Redacted, RefChange, RefChanged, Refs, ResponseRecord,
    Search, StateRequest, StorageFault, Store, StreamSignal, StreamSignals, Streams, TitleChange,
    WakeScope, rules,
};
use rusqlite::Connection;

use crate::append;
use crate::connection::{FileChanges, check_readable, open_connection};
use crate::conversations;
use crate::error::RowError;
use crate::maintenance::{deletion, redaction};
use crate::options::SqliteOptions;
use crate::process_locks::ProcessLocks;
use crate::refs::{self, resolve_end};
use crate::rows::conversation_row::ConversationRow;
use crate::rows::prepared_append::prepare_append;
use crate::rows::{blob, event, node_row, response, state};
use crate::search::index;
use crate::worker::call_queue::CallLoad;
use crate::worker::read_pool::{ReadKind, ReadPool};
use crate::worker::write_thread::{CleanupFlag, WriteThread};

mod calls;
mod key_values;
mod maintenance;
mod processes;
mod search;
mod streams;

/// Conversations in one SQLite file.
///
/// Needs a tokio runtime. Dropping it blocks until the queued writes are done.
#[derive(Debug)]
pub struct SqliteStore {
    path: Arc<PathBuf>,
    pub(crate) limits: Arc<Limits>,
    writer: WriteThread,
    readers: ReadPool,
    pub(crate) signals: StreamSignals,
    process_locks: ProcessLocks,
    is_shared: bool,
}

impl SqliteStore {
    /// Opens or creates the database at `path` with the default options.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use contexture_ir::Owner;
    /// use contexture_store::{ListConversations, Store};
    /// use contexture_store_sqlite::SqliteStore;
    ///
    /// let directory = tempfile::tempdir().unwrap();
    /// let store = SqliteStore::open(directory.path().join("contexture.db"))?;
    /// let page = store.list_conversations(&Owner::local(), ListConversations::default()).await?;
    /// assert!(page.conversations.is_empty());
    /// # Ok::<(), contexture_store::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Newer`] for a database of a later version, [`Error::Storage`] with the path for a
    /// file that is not a database of this program, or cannot be opened or written.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, SqliteOptions::default())
    }

    /// Opens or creates the database at `path` with other options.
    pub fn open_with(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, Error> {
        let path = Arc::new(path.as_ref().to_owned());
        let conn = open_connection(&path, &options)?;
        let cannot_start = |source| Error::Storage {
            path: path.to_path_buf(),
            fault: StorageFault::Other,
            source: Some(Box::new(source)),
        };
        // Deletions first, since the nodes that they remove need not be indexed.
        let idle_task = |conn: &Connection| {
            Ok(deletion::take_pending_step(conn)?.more || index::maintain_index(conn)?)
        };
        let writer = WriteThread::spawn_thread(
            conn,
            &path,
            options.queue_bytes,
            options.busy_timeout,
            idle_task,
        )
        .map_err(cannot_start)?;
        Ok(Self {
            readers: ReadPool::new(Arc::clone(&path), FileChanges::Possible, &options),
            limits: Arc::new(options.limits),
            signals: StreamSignals::default(),
            process_locks: ProcessLocks::new(&path),
            is_shared: options.shared,
            writer,
            path,
        })
    }

    /// Opens a database to read it: on a read-only medium, or without the permission to write. Nothing is created or
    /// changed, and no other process is waited for. Writes fail as [`Error::Storage`] with [`StorageFault::ReadOnly`].
    ///
    /// A file whose folder cannot be written and that has no log beside it is taken to stay as it is, whatever others do.
    ///
    /// # Errors
    ///
    /// As [`SqliteStore::open`], and [`Error::Older`] for a database that has to be migrated first.
    pub fn open_read_only(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, Error> {
        let path = Arc::new(path.as_ref().to_owned());
        let changes = check_readable(&path)?;
        Ok(Self {
            readers: ReadPool::new(Arc::clone(&path), changes, &options),
            limits: Arc::new(options.limits),
            signals: StreamSignals::default(),
            process_locks: ProcessLocks::new(&path),
            is_shared: options.shared,
            writer: WriteThread::refusing(),
            path,
        })
    }

    /// Returns the path of the database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) async fn write_transaction<T: Send + 'static>(
        &self,
        load: CallLoad,
        f: impl FnOnce(&Connection) -> Result<T, RowError> + Send + 'static,
    ) -> Result<T, Error> {
        self.writer.run_in_transaction(load, f, &self.path).await
    }

    /// Checkpoints and truncates the write-ahead log, so that no old page stays in it.
    ///
    /// A read that outlasts the busy timeout prevents it; then the outcome is unknown and the call
    /// has to be repeated.
    pub(crate) async fn empty_log(&self) -> Result<(), Error> {
        let emptied = |conn: &Connection| {
            let busy: bool =
                // TRUNCATE also empties the log file, whose old pages may hold redacted content.
                conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
            if busy {
                return Err(Error::OutcomeUnknown {
                    source: "gone for readers, but a long read keeps old pages in the log".into(),
                }
                .into());
            }
            Ok(())
        };
        self.writer
            .run_outside_transaction(emptied, &self.path)
            .await
    }

    /// Indexes all stored texts again, as after a change of the terms.
    ///
    /// An interruption loses nothing: the next search or idle step continues. Searches do not wait, and say how far the index
    /// is ([`SearchPage::indexing`](contexture_store::SearchPage::indexing)).
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] where the database cannot be written.
    pub async fn rebuild_search(&self) -> Result<(), Error> {
        self.write_transaction(CallLoad::OWN, |conn| Ok(index::reset_index(conn)?))
            .await?;
        self.index_texts().await
    }

    /// Indexes the texts that the index lacks, as after an upgrade; does nothing if it is whole.
    ///
    /// The same is done while the store has nothing else to do, and a step of it by each search. It runs in steps of some
    /// milliseconds beside other calls, and continues after an interruption.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] where the database cannot be written.
    pub async fn index_texts(&self) -> Result<(), Error> {
        while self
            .write_transaction(CallLoad::OWN, index::index_next_nodes)
            .await?
        {}
        Ok(())
    }

    /// Runs `f` on the write thread, outside any transaction.
    pub(crate) async fn run_outside_transaction<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Connection) -> Result<T, RowError> + Send + 'static,
    ) -> Result<T, Error> {
        self.writer.run_outside_transaction(f, &self.path).await
    }

    /// Runs `f` in a read transaction of this kind, for `owner` if it is done for one.
    pub(crate) async fn read_transaction<T: Send + 'static>(
        &self,
        kind: ReadKind,
        owner: Option<&Owner>,
        f: impl FnOnce(&Connection) -> Result<T, RowError> + Send + 'static,
    ) -> Result<T, Error> {
        self.readers.run_read(kind, owner, f).await
    }

    /// Runs `f`, a point read, in a read transaction, with the row of a conversation.
    pub(crate) async fn read_conversation<T: Send + 'static>(
        &self,
        owner: &Owner,
        id: &ConversationId,
        f: impl FnOnce(&Connection, &ConversationRow) -> Result<T, RowError> + Send + 'static,
    ) -> Result<T, Error> {
        self.read_conversation_as(ReadKind::Point, owner, id, f)
            .await
    }

    /// Runs `f` in a read transaction of this kind, with the row of a conversation.
    pub(crate) async fn read_conversation_as<T: Send + 'static>(
        &self,
        kind: ReadKind,
        owner: &Owner,
        id: &ConversationId,
        f: impl FnOnce(&Connection, &ConversationRow) -> Result<T, RowError> + Send + 'static,
    ) -> Result<T, Error> {
        let (of, id) = (owner.clone(), id.clone());
        let read = move |conn: &Connection| f(conn, &ConversationRow::load(conn, &of, &id)?);
        self.readers.run_read(kind, Some(owner), read).await
    }
}

/// Returns the size of changed metadata, which waits to be written.
fn metadata_bytes(change: &MetadataChange) -> usize {
    match change {
        MetadataChange::Replace(all) => all
            .iter()
            .map(|(key, json)| key.len() + json.get().len())
            .sum(),
        MetadataChange::Merge(some) => {
            let json = |json: &Option<Raw>| json.as_ref().map_or(0, |json| json.get().len());
            some.iter()
                .map(|(key, value)| key.len() + json(value))
                .sum()
        }
        _ => 0,
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.durable = true;
        capabilities.shared = self.is_shared;
        capabilities
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn read_load(&self) -> ReadLoad {
        ReadLoad {
            point_waits: self.readers.permits(ReadKind::Point).times_waited(),
            path_waits: self.readers.permits(ReadKind::Path).times_waited(),
            scan_waits: self.readers.permits(ReadKind::Scan).times_waited(),
            running_scans: self.readers.permits(ReadKind::Scan).held_permits(),
            interrupted: self.readers.interrupted_reads(),
        }
    }

    async fn check_connection(&self) -> Result<(), Error> {
        // A row that every database has, read from the file unless it is cached.
        self.read_transaction(ReadKind::Point, None, |conn| {
            Ok(conn
                .prepare_cached("SELECT min_reader FROM format")?
                .query_row([], |row| row.get::<_, u32>(0))
                .map(drop)?)
        })
        .await
    }

    async fn create_conversation(
        &self,
        owner: &Owner,
        new: NewConversation,
    ) -> Result<Conversation, Error> {
        rules::check_new_conversation(&new, &self.limits)?;
        let owner = owner.clone();
        self.write_transaction(CallLoad::of(&owner), move |conn| {
            conversations::create_conversation(conn, &owner, &new)
        })
        .await
    }

    async fn load_conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Conversation, Error> {
        let (of, id) = (owner.clone(), id.clone());
        let load = move |conn: &Connection| conversations::load_conversation(conn, &of, &id);
        self.read_transaction(ReadKind::Point, Some(owner), load)
            .await
    }

    async fn list_conversations(
        &self,
        owner: &Owner,
        list: ListConversations,
    ) -> Result<ConversationPage, Error> {
        rules::check_list(&list, &self.limits)?;
        let (of, limits) = (owner.clone(), Arc::clone(&self.limits));
        let read =
            move |conn: &Connection| conversations::list_conversations(conn, &of, &list, &limits);
        self.read_transaction(ReadKind::Scan, Some(owner), read)
            .await
    }

    async fn update_conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
        update: ConversationUpdate,
    ) -> Result<Conversation, Error> {
        let wake = self.signals.wake_conversation(owner, id);
        let (owner, id, limits) = (owner.clone(), id.clone(), Arc::clone(&self.limits));
        // A title that is replaced leaves its terms in the index until they are merged out.
        let cleanup =
            matches!(update.title, TitleChange::Set(_)).then(|| self.writer.cleanup_flag());
        let updated = self.write_transaction(
            CallLoad::of(&owner).with_bytes(metadata_bytes(&update.metadata)),
            move |conn| {
                cleanup.inspect(CleanupFlag::schedule_cleanup);
                let updated =
                    conversations::update_conversation(conn, &owner, &id, update, &limits)?;
                Ok((updated, wake))
            },
        );
        Ok(updated.await?.0)
    }

    async fn delete_conversation(&self, owner: &Owner, id: &ConversationId) -> Result<(), Error> {
        let wake = self.signals.wake_conversation(owner, id);
        let (owner, id, cleanup) = (owner.clone(), id.clone(), self.writer.cleanup_flag());
        let hidden = self.write_transaction(CallLoad::of(&owner), move |conn| {
            let no = deletion::mark_deleted(conn, &owner, &id)?;
            // Even if this call is dropped, the idle task finishes the deletion.
            cleanup.schedule_cleanup();
            Ok((no, wake))
        });
        let (no, wake) = hidden.await?;
        drop(wake);
        // The conversation is deleted for readers. If a step fails now, the idle task does the
        // rest.
        let removal = async {
            // Each step is a call of its own, so other writes run in between.
            let step = move |conn: &Connection| deletion::delete_step(conn, no);
            while self.write_transaction(CallLoad::OWN, step).await?.more {}
            // One step removes the terms from small indexes; the idle task merges the rest of large
            // ones.
            self.write_transaction(CallLoad::OWN, index::purge_removed_terms)
                .await
        };
        if let Err(error) = removal.await {
            tracing::warn!(%error, "the rows of a deleted conversation are removed later");
        }
        self.writer.cleanup_flag().schedule_cleanup();
        Ok(())
    }

    async fn append_items(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: AppendRequest,
    ) -> Result<Appended, Error> {
        // Checked before it is queued: a request that exceeds a limit takes no room in the queue.
        let bytes = rules::check_append(id, &request, &self.limits)?;
        let load = CallLoad::of(owner)
            .with_bytes(bytes)
            .with_rows(request.items.len() + request.paths.len());
        let wake = self.signals.wake_conversation(owner, id);
        let (owner, id, limits) = (owner.clone(), id.clone(), Arc::clone(&self.limits));
        let prepared = prepare_append(request).await?;
        let appended = self.write_transaction(load, move |conn| {
            let mut conv = ConversationRow::load(conn, &owner, &id)?;
            let appended = append::append_items(conn, &mut conv, &prepared, &limits)?;
            Ok((appended, wake))
        });
        Ok(appended.await?.0)
    }

    async fn read_path(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: ReadRequest,
    ) -> Result<PathPage, Error> {
        let page_bytes = self.limits.page_bytes;
        let kind = match rules::reads_many_nodes(&request) {
            true => ReadKind::Path,
            false => ReadKind::Point,
        };
        self.read_conversation_as(kind, owner, id, move |conn, conv| {
            let end = resolve_end(conn, conv, &request.at)?;
            node_row::read_path(conn, conv, &end, &request, page_bytes)
        })
        .await
    }

    async fn find_nodes(
        &self,
        owner: &Owner,
        id: &ConversationId,
        query: NodeQuery,
    ) -> Result<Vec<Arc<Node>>, Error> {
        self.read_conversation(owner, id, move |conn, conv| {
            node_row::find_nodes(conn, conv, &query)
        })
        .await
    }

    async fn read_state(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: StateRequest,
    ) -> Result<NodeState, Error> {
        self.read_conversation(owner, id, move |conn, conv| {
            let root_no = resolve_end(conn, conv, &request.at)?.root_no;
            state::read_state(conn, conv, root_no, &request)
        })
        .await
    }

    async fn list_refs(&self, owner: &Owner, id: &ConversationId) -> Result<Refs, Error> {
        self.read_conversation(owner, id, refs::list_refs).await
    }

    async fn change_ref(
        &self,
        owner: &Owner,
        id: &ConversationId,
        change: RefChange,
        at_ms: i64,
    ) -> Result<RefChanged, Error> {
        let wake = self.signals.wake_conversation(owner, id);
        let (owner, id) = (owner.clone(), id.clone());
        let changed = self.write_transaction(CallLoad::of(&owner), move |conn| {
            let mut conv = ConversationRow::load(conn, &owner, &id)?;
            Ok((refs::change_ref(conn, &mut conv, change, at_ms)?, wake))
        });
        Ok(changed.await?.0)
    }

    async fn put_blob(
        &self,
        owner: &Owner,
        id: &ConversationId,
        bytes: Arc<[u8]>,
    ) -> Result<BlobId, Error> {
        rules::check_blob(&bytes, &self.limits)?;
        let (owner, id) = (owner.clone(), id.clone());
        self.write_transaction(CallLoad::of(&owner).with_bytes(bytes.len()), move |conn| {
            blob::put_blob(conn, &ConversationRow::load(conn, &owner, &id)?, &bytes)
        })
        .await
    }

    async fn read_blob(
        &self,
        owner: &Owner,
        id: &ConversationId,
        blob: BlobId,
    ) -> Result<Arc<[u8]>, Error> {
        self.read_conversation(owner, id, move |conn, conv| {
            blob::read_blob(conn, conv, blob)
        })
        .await
    }

    async fn load_response(
        &self,
        owner: &Owner,
        id: &ConversationId,
        response: ResponseId,
    ) -> Result<ResponseRecord, Error> {
        self.read_conversation(owner, id, move |conn, conv| {
            response::load_response(conn, conv, response)
        })
        .await
    }

    async fn redact_content(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: RedactRequest,
    ) -> Result<Redacted, Error> {
        rules::check_redact(&request, &self.limits)?;
        let wake = self.signals.wake_conversation(owner, id);
        let (owner, id) = (owner.clone(), id.clone());
        let redacted = self.write_transaction(CallLoad::of(&owner), move |conn| {
            let mut conv = ConversationRow::load(conn, &owner, &id)?;
            Ok((redaction::redact_content(conn, &mut conv, &request)?, wake))
        });
        // The tombstones are committed; what follows removes old bytes from the search index and
        // the log.
        let (redacted, wake) = redacted.await?;
        drop(wake);
        while self
            .write_transaction(CallLoad::OWN, index::purge_removed_terms)
            .await?
        {}
        self.empty_log().await?;
        Ok(redacted)
    }

    async fn erase_step(&self, owner: &Owner, scope: &EraseScope) -> Result<Erased, Error> {
        let wake = self.signals.wake_scope(WakeScope::Owner(owner.clone()));
        let (owner, scope) = (owner.clone(), scope.clone());
        let step = self.write_transaction(CallLoad::of(&owner), move |conn| {
            Ok((deletion::erase_step(conn, &owner, &scope)?, wake))
        });
        let (step, wake) = step.await?;
        drop(wake);
        if !step.more {
            while self
                .write_transaction(CallLoad::OWN, index::purge_removed_terms)
                .await?
            {}
            self.empty_log().await?;
        }
        Ok(step)
    }

    async fn list_events(
        &self,
        owner: &Owner,
        id: &ConversationId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Error> {
        self.read_conversation(owner, id, move |conn, conv| {
            event::list_events(conn, conv, after, limit)
        })
        .await
    }

    fn event_signal(&self, owner: &Owner, id: &ConversationId) -> StreamSignal {
        self.signals.listen_events(owner, id)
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        Some(self)
    }

    fn search(&self) -> Option<&dyn Search> {
        Some(self)
    }

    fn path_index(&self) -> Option<&dyn PathIndex> {
        Some(self)
    }

    fn processes(&self) -> Option<&dyn Processes> {
        Some(self)
    }

    fn calls(&self) -> Option<&dyn Calls> {
        Some(self)
    }

    fn streams(&self) -> Option<&dyn Streams> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use contexture_store_testkit::Chat;
    use contexture_store_testkit::chat::branch_end;

    use super::*;

    /// A whole path and a large page wait for other whole paths, and a look-up does not.
    #[tokio::test(flavor = "multi_thread")]
    async fn reads_of_many_nodes_are_no_point_reads() {
        let directory = tempfile::tempdir().unwrap();
        let options = SqliteOptions {
            readers: 1,
            ..SqliteOptions::default()
        };
        let path = directory.path().join("paths.db");
        let store = Arc::new(SqliteStore::open_with(path, options).unwrap());
        let chat = Chat::start(Arc::clone(&store) as Arc<dyn Store>).await;
        chat.append_messages("main", &["a", "b"]).await;
        let permits = store.readers.permits(ReadKind::Path);
        let permit = permits.acquire_permit(None).await;
        let few = ReadRequest::last_nodes(branch_end("main"), 64);
        let few = chat.read_path(few).await;
        assert_eq!(few.unwrap().nodes.len(), 2);
        let reader = chat.clone();
        let both = tokio::spawn(async move {
            tokio::join!(
                reader.read_path(ReadRequest::whole_path(branch_end("main"))),
                reader.read_path(ReadRequest::last_nodes(branch_end("main"), 65)),
            )
        });
        while store.read_load().path_waits < 2 {
            tokio::task::yield_now().await;
        }
        assert!(!both.is_finished());
        drop(permit);
        let (whole, large) = both.await.unwrap();
        assert_eq!(whole.unwrap(), large.unwrap());
        assert_eq!(store.read_load().point_waits, 0);
    }
}
