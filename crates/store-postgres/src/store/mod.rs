//! [`PostgresStore`]: the contract's calls, each a transaction.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner, ResponseId};
use contexture_store::{
    AppendRequest, Appended, BlobId, Calls, Capabilities, Conversation, ConversationPage,
    ConversationUpdate, EntryPage, EraseScope, Erased, Error, Event, KeyScope, KeyValueEntry,
    KeyValues, Limits, ListConversations, ListEntries, Maintenance, NewConversation, Node,
    NodeQuery, NodeState, PathIndex, PathPage, Processes, PutEntry, ReadLoad, ReadRequest,
    RedactRequest, Redacted, RefChange, RefChanged, Refs, ResponseRecord, Search, StateRequest,
    Store, StreamSignal, StreamSignals, Streams, WakeScope, rules,
};

use crate::append;
use crate::background::BackgroundTask;
use crate::connection::address::DatabaseAddress;
use crate::connection::pool::{Access, ConnectionPool};
use crate::conversations;
use crate::key_values;
use crate::maintenance::deletion_task;
use crate::maintenance::{deletion, redaction};
use crate::options::PostgresOptions;
use crate::refs;
use crate::refs::branch;
use crate::rows::{blob, event, node_row, response};
use crate::schema;
use crate::search::index;
use crate::search::index_task;

mod calls;
mod maintenance;
mod processes;
mod search;
mod streams;

/// Conversations in a PostgreSQL database.
///
/// Needs a tokio runtime with I/O and time.
#[derive(Debug)]
pub struct PostgresStore {
    pub(crate) server: Arc<ConnectionPool>,
    pub(crate) limits: Limits,
    pub(crate) signals: StreamSignals,
    deletions: BackgroundTask,
    pub(crate) indexing: BackgroundTask,
}

impl PostgresStore {
    /// Opens the database at `address`, `postgres://user:password@host:port/database`, with the
    /// default options. It must have been [migrated](crate::migrate).
    ///
    /// Options follow a question mark: `sslmode` (`disable`, `prefer` by default, `require`,
    /// `verify-ca`, `verify-full`), `sslrootcert` (a file of certificates; `system`, the default,
    /// for those the machine trusts), and those of [`tokio_postgres`'s
    /// configuration](https://docs.rs/tokio-postgres/0.7/tokio_postgres/config/struct.Config.html).
    ///
    /// ```no_run
    /// # async {
    /// use contexture_store_postgres::{PostgresStore, migrate};
    ///
    /// let address = "postgres://contexture@localhost/contexture";
    /// migrate(address).await?;
    /// let store = PostgresStore::open(address).await?;
    /// # Ok::<(), contexture_store::Error>(()) };
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Older`] if it was not migrated, [`Error::Newer`] for a database of a later version,
    /// [`Error::Invalid`] for an address that cannot be understood, [`Error::Storage`] with the
    /// address, but without user and password, for a server that cannot be reached or refuses.
    pub async fn open(address: &str) -> Result<Self, Error> {
        Self::open_with(address, PostgresOptions::default()).await
    }

    /// Opens the database at `address`.
    ///
    /// Interrupted deletions continue in the background, on one connection. If that fails, it is
    /// tried again after the next interrupted deletion or the next opening.
    pub async fn open_with(address: &str, options: PostgresOptions) -> Result<Self, Error> {
        let server = Arc::new(ConnectionPool::new(
            DatabaseAddress::parse(address)?,
            &options,
        )?);
        // Only checked, never migrated: processes of different versions may use one database, and
        // none may change it under another.
        schema::check_schema_version(&server).await?;
        // Started asleep; without pending deletions it takes no connection.
        let deletions = BackgroundTask::start(Arc::clone(&server), |server| {
            Box::pin(deletion_task::finish_deletions(server))
        });
        if deletion_task::find_pending(&server).await?.is_some() {
            deletions.wake();
        }
        Ok(Self {
            indexing: BackgroundTask::start(Arc::clone(&server), |server| {
                Box::pin(index_task::index_texts(server))
            }),
            server,
            limits: options.limits,
            signals: StreamSignals::default(),
            deletions,
        })
    }

    /// Returns the address of the database: host, port and name.
    #[must_use]
    pub fn address(&self) -> &Path {
        self.server.address()
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.durable = true;
        capabilities.shared = true;
        capabilities
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn read_load(&self) -> ReadLoad {
        ReadLoad {
            point_waits: self.server.permits(Access::Read).times_waited(),
            path_waits: self.server.permits(Access::Path).times_waited(),
            scan_waits: self.server.permits(Access::Scan).times_waited(),
            running_scans: self.server.permits(Access::Scan).held_permits(),
            interrupted: self.server.interrupted_calls(),
        }
    }

    async fn check_connection(&self) -> Result<(), Error> {
        self.server
            .run_transaction(Access::Read, None, |tx| {
                Box::pin(async { tx.query_row("SELECT 1", Vec::new()).await.map(drop) })
            })
            .await
    }

    async fn create_conversation(
        &self,
        owner: &Owner,
        new: NewConversation,
    ) -> Result<Conversation, Error> {
        rules::check_new_conversation(&new, &self.limits)?;
        loop {
            let created = self
                .server
                .run_transaction(Access::Write, owner, |tx| {
                    Box::pin(conversations::create_conversation(tx, owner, &new))
                })
                .await?;
            match created {
                Ok(created) => return Ok(created),
                Err(pending) => deletion_task::delete_rows(&self.server, &pending).await?,
            }
        }
    }

    async fn load_conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Conversation, Error> {
        self.server
            .run_transaction(Access::Read, owner, |tx| {
                Box::pin(conversations::load_conversation(tx, owner, id))
            })
            .await
    }

    async fn list_conversations(
        &self,
        owner: &Owner,
        list: ListConversations,
    ) -> Result<ConversationPage, Error> {
        rules::check_list(&list, &self.limits)?;
        self.server
            .run_transaction(Access::Scan, owner, |tx| {
                Box::pin(conversations::list_conversations(
                    tx,
                    owner,
                    &list,
                    &self.limits,
                ))
            })
            .await
    }

    async fn update_conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
        update: ConversationUpdate,
    ) -> Result<Conversation, Error> {
        let _wake = self.signals.wake_conversation(owner, id);
        self.server
            .run_transaction(Access::Write, owner, |tx| {
                Box::pin(conversations::update_conversation(
                    tx,
                    owner,
                    id,
                    &update,
                    &self.limits,
                ))
            })
            .await
    }

    async fn delete_conversation(&self, owner: &Owner, id: &ConversationId) -> Result<(), Error> {
        let wake = self.signals.wake_conversation(owner, id);
        // Wakes the deletion task even if this call is dropped or its outcome is unknown.
        let unfinished = self.deletions.wake_on_drop();
        let hidden = self.server.run_transaction(Access::Write, owner, |tx| {
            Box::pin(deletion::mark_deleted(tx, owner, id))
        });
        let pending = match hidden.await {
            Err(error @ Error::NotFound { .. }) => {
                unfinished.disarm();
                return Err(error);
            }
            pending => pending?,
        };
        drop(wake);
        deletion_task::delete_rows(&self.server, &pending).await?;
        unfinished.disarm();
        Ok(())
    }

    async fn append_items(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: AppendRequest,
    ) -> Result<Appended, Error> {
        rules::check_append(id, &request, &self.limits)?;
        let terms = index::item_terms(&request);
        let _wake = self.signals.wake_conversation(owner, id);
        // Without items, a repetition could not be recognised.
        let access = match request.items.is_empty() {
            true => Access::Write,
            false => Access::WriteIdempotent,
        };
        self.server
            .run_transaction(access, owner, |tx| {
                Box::pin(append::append_items(
                    tx,
                    owner,
                    id,
                    &request,
                    &terms,
                    &self.limits,
                ))
            })
            .await
    }

    async fn read_path(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: ReadRequest,
    ) -> Result<PathPage, Error> {
        let access = match rules::reads_many_nodes(&request) {
            true => Access::Path,
            false => Access::Read,
        };
        self.server
            .run_transaction(access, owner, |tx| {
                Box::pin(refs::read_path(tx, owner, id, &request, &self.limits))
            })
            .await
    }

    async fn find_nodes(
        &self,
        owner: &Owner,
        id: &ConversationId,
        query: NodeQuery,
    ) -> Result<Vec<Arc<Node>>, Error> {
        self.server
            .run_transaction(Access::Read, owner, |tx| {
                Box::pin(node_row::find_nodes(tx, owner, id, &query))
            })
            .await
    }

    async fn read_state(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: StateRequest,
    ) -> Result<NodeState, Error> {
        self.server
            .run_transaction(Access::Read, owner, |tx| {
                Box::pin(refs::read_state(tx, owner, id, &request))
            })
            .await
    }

    async fn list_refs(&self, owner: &Owner, id: &ConversationId) -> Result<Refs, Error> {
        self.server
            .run_transaction(Access::Read, owner, |tx| {
                Box::pin(branch::list_refs(tx, owner, id))
            })
            .await
    }

    async fn change_ref(
        &self,
        owner: &Owner,
        id: &ConversationId,
        change: RefChange,
        at_ms: i64,
    ) -> Result<RefChanged, Error> {
        let _wake = self.signals.wake_conversation(owner, id);
        self.server
            .run_transaction(Access::Write, owner, |tx| {
                Box::pin(branch::change_ref(tx, owner, id, &change, at_ms))
            })
            .await
    }

    async fn put_blob(
        &self,
        owner: &Owner,
        id: &ConversationId,
        bytes: Arc<[u8]>,
    ) -> Result<BlobId, Error> {
        rules::check_blob(&bytes, &self.limits)?;
        self.server
            .run_transaction(Access::WriteIdempotent, owner, |tx| {
                Box::pin(blob::put_blob(tx, owner, id, &bytes))
            })
            .await
    }

    async fn read_blob(
        &self,
        owner: &Owner,
        id: &ConversationId,
        blob: BlobId,
    ) -> Result<Arc<[u8]>, Error> {
        self.server
            .run_transaction(Access::Read, owner, |tx| {
                Box::pin(blob::read_blob(tx, owner, id, blob))
            })
            .await
    }

    async fn load_response(
        &self,
        owner: &Owner,
        id: &ConversationId,
        response: ResponseId,
    ) -> Result<ResponseRecord, Error> {
        self.server
            .run_transaction(Access::Read, owner, |tx| {
                Box::pin(response::load_response(tx, owner, id, response))
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
        let _wake = self.signals.wake_conversation(owner, id);
        self.server
            .run_transaction(Access::Write, owner, |tx| {
                Box::pin(redaction::redact_content(tx, owner, id, &request))
            })
            .await
    }

    async fn erase_step(&self, owner: &Owner, scope: &EraseScope) -> Result<Erased, Error> {
        let _wake = self.signals.wake_scope(WakeScope::Owner(owner.clone()));
        self.server
            .run_transaction(Access::Write, owner, |tx| {
                Box::pin(deletion::erase_step(tx, owner, scope))
            })
            .await
    }

    async fn list_events(
        &self,
        owner: &Owner,
        id: &ConversationId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Error> {
        self.server
            .run_transaction(Access::Read, owner, |tx| {
                Box::pin(event::list_events(tx, owner, id, after, limit))
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

#[async_trait]
impl KeyValues for PostgresStore {
    async fn get_entry(
        &self,
        owner: &Owner,
        scope: &KeyScope,
        key: &str,
    ) -> Result<Option<KeyValueEntry>, Error> {
        self.server
            .run_transaction(Access::Read, owner, |tx| {
                Box::pin(key_values::get_entry(tx, owner, scope, key))
            })
            .await
    }

    async fn list_entries(&self, owner: &Owner, list: ListEntries) -> Result<EntryPage, Error> {
        self.server
            .run_transaction(Access::Read, owner, |tx| {
                Box::pin(key_values::list_entries(
                    tx,
                    owner,
                    &list,
                    self.limits.page_bytes,
                ))
            })
            .await
    }

    async fn put_entry(
        &self,
        owner: &Owner,
        scope: &KeyScope,
        put: PutEntry,
    ) -> Result<u64, Error> {
        rules::check_put_entry(scope, &put, &self.limits)?;
        self.server
            .run_transaction(Access::Write, owner, |tx| {
                Box::pin(key_values::put_entry(tx, owner, scope, &put))
            })
            .await
    }
}
