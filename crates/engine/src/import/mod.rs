//! Sessions of other agents, kept as conversations.
//!
//! Everything that is stored derives its id from the session's own: importing the same session again
//! stores nothing, importing a session that grew stores what is new. Where a conversation is named, a
//! session of another id goes on from the longest path that says the same; where the two part, it goes
//! on on a branch of its own. What a session holds besides items is kept beside the conversation, so
//! that it can be exported as it came. Names are given where they are missing, and never moved.
//!
//! Not here: what says the same, which is `known`.

mod chain;
mod job;
mod meet;
mod names;
mod options;

use std::collections::{BTreeMap, BTreeSet};

use contexture_sessions::{Session, SessionHead};

pub(crate) use self::chain::split;
pub use self::options::{ImportOptions, Imported, Parted};

use self::chain::Chain;
use self::job::Import;
use self::names::conversation_id;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::origin::key_of;

impl Engine {
    /// Keeps a session as a conversation.
    ///
    /// # Errors
    /// [`EngineError::ConversationExists`] if the id is taken by a conversation that does not begin
    /// like this session, [`EngineError::OtherResource`] if it is about another resource than the named one,
    /// or the store's.
    pub async fn import(
        &self,
        session: &Session,
        options: &ImportOptions,
    ) -> Result<Imported, EngineError> {
        let id = match &options.conversation {
            Some(id) => id.clone(),
            None => {
                let own = session.about.conversation.as_ref();
                conversation_id(own.unwrap_or(&session.source_id))?
            }
        };
        let first = session.tree.iter().find_map(|node| node.created_at);
        let first = session.about.created_at.or(first);
        let redacted = self.secrets().map(|secrets| secrets.session(session));
        let import = Import {
            engine: self,
            session: redacted.as_ref().unwrap_or(session),
            given: session,
            owner: &options.owner,
            named: options.conversation.is_some(),
            resource: options.resource.as_deref(),
            id,
            key: key_of(&session.source_id),
            created_ms: first.unwrap_or_else(|| self.now_ms()),
            existed: false,
            laid: Vec::new(),
            nodes: BTreeMap::new(),
            branches: Vec::new(),
            parted: None,
        };
        import.run().await
    }
}

impl Import<'_> {
    async fn run(mut self) -> Result<Imported, EngineError> {
        let blob = self.create().await?;
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
            let path: Vec<usize> = session.path(head.node);
            let known = path
                .iter()
                .take_while(|index| stored.contains(index))
                .count();
            let (earlier, base) = self.stored_before(order, &path, known).await?;
            let (_, fresh) = path.split_at(earlier.min(path.len()));
            stored.extend(&path);
            let chain = Chain {
                order,
                name: &head.name,
                shared: earlier,
                base: self.behind_state(base),
                continues: self.existed && (earlier > known || order == 0),
                nodes: fresh,
            };
            let change = self.instructions(&chain).await?;
            if fresh.is_empty() && change.is_none() {
                continue;
            }
            new += fresh.len();
            let items = self.items(&path, &chain)?;
            self.append(&chain, items, change, blob.as_ref()).await?;
        }
        if let Some(bytes) = blob.filter(|_| session.tree.is_empty()) {
            let store = self.engine.store();
            store.put_blob(self.owner, &self.id, bytes).await?;
        }
        self.name_rest().await?;
        Ok(Imported {
            conversation: self.id,
            title: session.title.clone(),
            nodes: session.tree.len(),
            new,
            branches: names(session),
            parted: self.parted,
        })
    }
}

/// How many branches a session has.
fn names(session: &Session) -> usize {
    let named = session.about.branches.iter().map(|branch| &branch.name);
    let ends = session.heads.iter().map(|head| &head.name);
    named.chain(ends).collect::<BTreeSet<_>>().len()
}
