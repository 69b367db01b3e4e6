//! Importing sessions of other agents as conversations.
//!
//! All ids derive from the session's own: importing the same session again stores nothing, importing a session that grew
//! stores what is new. Where a conversation is named, a session of another id continues from the longest path with the
//! same content; where the two differ, it continues on a branch of its own. What a session holds besides items is stored
//! in the conversation's metadata, so that it can be exported as it came. Missing names are given, existing names are
//! never moved.
//!
//! Not here: which items count as the same (`dedup`), reading session files (`contexture-sessions`).

mod append_branch;
mod dedup;
mod job;
mod names;
mod open_or_create;
mod options;

pub use options::{DivergedSession, ImportOptions, Imported};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contexture_sessions::{Session, SessionHead};

use self::append_branch::UnstoredBranch;
use self::job::ImportJob;
use self::names::conversation_id;
use crate::error::EngineError;
use crate::handle::Engine;
use crate::state::node_key_base;

/// Keeps a session as a conversation.
pub(crate) async fn import_session(
    engine: &Engine,
    session: &Session,
    options: &ImportOptions,
) -> Result<Imported, EngineError> {
    let id = match &options.conversation {
        Some(id) => id.clone(),
        None => {
            let own = session.info.conversation.as_ref();
            conversation_id(own.unwrap_or(&session.source_id))?
        }
    };
    let first = session.tree.iter().find_map(|node| node.created_at);
    let first = session.info.created_at.or(first);
    let redacted = engine
        .secrets()
        .map(|secrets| secrets.redact_session(session));
    let import = ImportJob {
        engine,
        session: redacted.as_ref().unwrap_or(session),
        unredacted: session,
        owner: &options.owner,
        named: options.conversation.is_some(),
        resource: options.resource.as_deref(),
        stored_items: &options.stored_items,
        id,
        key: node_key_base(&session.source_id),
        created_ms: first.unwrap_or_else(|| engine.now_ms()),
        existed: false,
        alignments: Vec::new(),
        nodes: BTreeMap::new(),
        branches: Vec::new(),
        diverged: None,
    };
    import.run_import().await
}

impl ImportJob<'_> {
    async fn run_import(mut self) -> Result<Imported, EngineError> {
        let blob = self.open_or_create().await?;
        let mut stored: BTreeSet<usize> = BTreeSet::new();
        let mut new = 0;
        // A session that only has instructions is a branch without nodes.
        let nothing = SessionHead {
            name: String::new(),
            node: usize::MAX,
        };
        let session = self.session;
        let heads = if session.heads.is_empty() {
            std::slice::from_ref(&nothing)
        } else {
            &session.heads
        };
        for (order, head) in heads.iter().enumerate() {
            new += self
                .import_head(order, head, &mut stored, blob.as_ref())
                .await?;
        }
        // A session without items has no append that the blob could go with.
        if let Some(bytes) = blob.filter(|_| session.tree.is_empty()) {
            let store = self.engine.store();
            store.put_blob(self.owner, &self.id, bytes).await?;
        }
        self.name_remaining_refs().await?;
        Ok(Imported {
            conversation: self.id,
            title: session.title.clone(),
            nodes: session.tree.len(),
            new_nodes: new,
            branches: branch_count(session),
            diverged: self.diverged,
        })
    }

    /// Stores what is new on the path to a head, and returns how many nodes that is.
    async fn import_head(
        &mut self,
        order: usize,
        head: &SessionHead,
        stored: &mut BTreeSet<usize>,
        blob: Option<&Arc<[u8]>>,
    ) -> Result<usize, EngineError> {
        let path: Vec<usize> = self.session.path_to(head.node);
        let known = path
            .iter()
            .take_while(|index| stored.contains(index))
            .count();
        // Paths share their beginnings: what an earlier head stored is not stored again.
        let (earlier, base) = self.find_stored_prefix(order, &path, known).await?;
        let (_, fresh) = path.split_at(earlier.min(path.len()));
        stored.extend(&path);
        let chain = UnstoredBranch {
            order,
            name: &head.name,
            shared: earlier,
            base: self.after_state_node(base),
            continues: self.existed && (earlier > known || order == 0),
            nodes: fresh,
        };
        let changes = self.head_changes(&chain).await?;
        // Importing the same session again comes through here for every head and stores nothing.
        if fresh.is_empty() && changes.is_empty() {
            return Ok(0);
        }
        let items = self.build_items(&path, &chain)?;
        self.append_branch(&chain, items, changes, blob).await?;
        Ok(fresh.len())
    }
}

/// How many branches a session has.
fn branch_count(session: &Session) -> usize {
    let named = session.info.branches.iter().map(|branch| &branch.name);
    let ends = session.heads.iter().map(|head| &head.name);
    named.chain(ends).collect::<BTreeSet<_>>().len()
}
