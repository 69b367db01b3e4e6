//! Sessions of other agents, kept as conversations.
//!
//! Everything that is stored derives its id from the session's own: importing the same session again
//! stores nothing, importing a session that grew stores what is new. Where a conversation is named, a
//! session of another id goes on from the longest path that says the same; where the two part, it goes
//! on on a branch of its own. What a session holds besides items is kept beside the conversation, so
//! that it can be exported as it came.
//!
//! Not here: what says the same, which is `known`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contexture_ir::{
    BranchName, ConversationId, Item, MessageId, NodeId, Owner, Raw, meaning_hash,
};
use contexture_sessions::{Session, SessionHead};
use contexture_store::{
    Activation, AppendAt, AppendRequest, At, BlobId, BranchLabel, ConversationUpdate,
    Error as StoreError, Limits, Metadata, MetadataChange, NewBranch, NewConversation, NewItem,
    NodeQuery, OnMoved, StateChange, StatePatch, StateRequest,
};
use contexture_wire::pairs;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::instructions::{Instructions, PREFIX, record_messages};
use crate::known::{Known, Laid};
use crate::origin::{KEY, Origin, key_of};
use crate::state_node::state_node;

/// Session metadata up to this many bytes stands in the conversation's own; more is a blob.
const INLINE: usize = 8 << 10;

/// Half of an append's limits: room for what goes with the items.
const SHARE: usize = 2;

/// How to import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// Whose the conversation is; default `local`.
    pub owner: Owner,
    /// Its id; default: made of the session's own. If it names a conversation that came from elsewhere,
    /// the session goes on from what both say.
    pub conversation: Option<ConversationId>,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            owner: Owner::local(),
            conversation: None,
        }
    }
}

/// What an import stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The conversation.
    pub conversation: ConversationId,
    /// Its title.
    pub title: Option<String>,
    /// Nodes of the session.
    pub nodes: usize,
    /// Of them, those that were not stored before.
    pub new: usize,
    /// Branches of the session.
    pub branches: usize,
    /// Where the session parted from what was stored; `None` if it did not.
    pub parted: Option<Parted>,
}

/// A session that went another way than the conversation it continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parted {
    /// The branch it is on now, the active one.
    pub branch: BranchName,
    /// How many of its nodes are common to both.
    pub shared: usize,
}

impl Engine {
    /// Keeps a session as a conversation.
    ///
    /// # Errors
    /// [`EngineError::ConversationExists`] if the id is taken by a conversation that does not begin
    /// like this session, or the store's.
    pub async fn import(
        &self,
        session: &Session,
        options: &ImportOptions,
    ) -> Result<Imported, EngineError> {
        let id = match &options.conversation {
            Some(id) => id.clone(),
            None => conversation_id(&session.source_id)?,
        };
        let first = session.tree.iter().find_map(|node| node.created_at);
        let redacted = self.secrets().map(|secrets| secrets.session(session));
        let import = Import {
            engine: self,
            session: redacted.as_ref().unwrap_or(session),
            given: session,
            owner: &options.owner,
            named: options.conversation.is_some(),
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

/// One import under way.
struct Import<'a> {
    engine: &'a Engine,
    session: &'a Session,
    /// The session before secrets were taken out.
    given: &'a Session,
    owner: &'a Owner,
    id: ConversationId,
    /// Whether somebody said which conversation it is.
    named: bool,
    /// What the ids of new nodes derive from.
    key: [u8; 16],
    /// The time of what the log gives none: that of the first node that has one, else now.
    created_ms: i64,
    /// Whether the conversation was there before.
    existed: bool,
    /// If it came from elsewhere: for each head, what of its path is there.
    laid: Vec<Laid>,
    /// The nodes that are there under ids of their own; `None`: what stands before all nodes.
    nodes: BTreeMap<usize, Option<NodeId>>,
    /// The branches, the active one first.
    branches: Vec<(BranchName, Option<NodeId>)>,
    parted: Option<Parted>,
}

/// The part of a branch that is not stored.
struct Chain<'a> {
    order: usize,
    /// What the session calls the branch.
    name: &'a str,
    /// How many nodes stand before.
    shared: usize,
    base: Option<NodeId>,
    /// Whether an earlier import, or somebody else, stored the branch up to `base`.
    continues: bool,
    nodes: &'a [usize],
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
        Ok(Imported {
            conversation: self.id,
            title: session.title.clone(),
            nodes: session.tree.len(),
            new,
            branches: session.heads.len(),
            parted: self.parted,
        })
    }

    /// A node of the session.
    fn node(&self, index: usize) -> Option<NodeId> {
        let elsewhere = self.nodes.get(&index).copied();
        elsewhere.unwrap_or_else(|| Some(Engine::node_id(&self.key, index)))
    }

    /// The call that each output of a path answers. A call of the same id on another branch is
    /// another call.
    fn partners(&self, path: &[usize]) -> BTreeMap<usize, usize> {
        let nodes: Vec<_> = path
            .iter()
            .filter_map(|index| self.session.tree.get(*index))
            .collect();
        let calls = pairs(nodes.iter().map(|node| &node.item));
        let calls = calls
            .into_iter()
            .map(|call| call.and_then(|call| path.get(call)));
        path.iter()
            .zip(calls)
            .filter_map(|(index, call)| Some((*index, *call?)))
            .collect()
    }

    /// Makes the conversation, or finds it made. Gives the metadata's bytes if they are to be stored
    /// as a blob.
    async fn create(&mut self) -> Result<Option<Arc<[u8]>>, EngineError> {
        let metadata = &self.session.metadata;
        let bytes: Arc<[u8]> = metadata.get().as_bytes().into();
        let inline = bytes.len() <= INLINE;
        let origin = Origin {
            format: self.session.format.as_str().to_owned(),
            source: self.session.source_id.clone(),
            nodes: self.session.tree.len(),
            metadata: inline.then(|| metadata.clone()),
            blob: (!inline).then(|| BlobId::of(self.owner, &bytes).to_string()),
        };
        let new = NewConversation {
            title: self.session.title.clone(),
            metadata: Metadata::from([(KEY.to_owned(), Raw::from_value(&origin)?)]),
            ..NewConversation::new(self.id.clone(), self.created_ms)
        };
        let store = self.engine.store();
        match store.create_conversation(self.owner, new).await {
            Ok(_) => self.branches.push((BranchName::main(), None)),
            Err(StoreError::AlreadyExists { .. }) => {
                self.existed = true;
                if !self.meet(origin).await? {
                    return Ok(None);
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok((!inline).then_some(bytes))
    }

    /// The conversation exists: what of the session is there? Says whether the session's metadata is
    /// the conversation's.
    async fn meet(&mut self, mut origin: Origin) -> Result<bool, EngineError> {
        let store = self.engine.store();
        let record = store.conversation(self.owner, &self.id).await?;
        let refs = store.refs(self.owner, &self.id).await?;
        let mut branches: Vec<_> = refs.branches.iter().collect();
        branches.sort_by_key(|branch| !branch.active);
        let branches = branches.into_iter();
        self.branches = branches
            .map(|branch| (branch.name.clone(), branch.head))
            .collect();
        let earlier: Option<Origin> = record.metadata.get(KEY).and_then(|raw| raw.to().ok());
        let same = |earlier: &Origin| earlier.source == origin.source;
        if !earlier.as_ref().is_some_and(same) {
            if !self.named {
                return Err(self.exists());
            }
            let known = Known::load(store.as_ref(), self.owner, &self.id, &refs).await?;
            self.lay(&known, earlier.is_some())?;
            let Some(earlier) = earlier.as_ref().filter(|earlier| self.continues(earlier)) else {
                return Ok(false);
            };
            // It is what was imported, grown: its ids and metadata go on.
            self.key = key_of(&earlier.source);
            origin.source.clone_from(&earlier.source);
        }
        if earlier.is_some_and(|earlier| earlier.nodes < origin.nodes) {
            self.refresh(&origin).await?;
        }
        Ok(true)
    }

    fn exists(&self) -> EngineError {
        EngineError::ConversationExists {
            conversation: self.id.clone(),
        }
    }

    /// Finds the session's paths in a conversation that came from elsewhere.
    fn lay(&mut self, known: &Known, imported: bool) -> Result<(), EngineError> {
        for head in &self.session.heads {
            let path = self.session.path(head.node);
            let items = path
                .iter()
                .filter_map(|index| self.session.tree.get(*index));
            let laid = known.lay(items.map(|node| &node.item));
            self.nodes
                .extend(path.into_iter().zip(laid.nodes.iter().copied()));
            self.laid.push(laid);
        }
        let shared = self.laid.first().map_or(0, |laid| laid.shared);
        if shared == 0 && (known.speaks() || !imported) {
            return Err(self.exists());
        }
        Ok(())
    }

    /// Whether the session begins with every node of an earlier import, each in its place.
    fn continues(&self, earlier: &Origin) -> bool {
        let key = key_of(&earlier.source);
        let mut nodes = self.nodes.iter();
        earlier.format == self.session.format.as_str()
            && nodes.len() >= earlier.nodes
            && nodes.all(|(index, node)| *node == Some(Engine::node_id(&key, *index)))
    }

    /// The metadata of a session that grew.
    async fn refresh(&self, origin: &Origin) -> Result<(), EngineError> {
        let store = self.engine.store();
        if origin.blob.is_some() {
            let bytes = self.session.metadata.get().as_bytes().into();
            store.put_blob(self.owner, &self.id, bytes).await?;
        }
        let entry = (KEY.to_owned(), Some(Raw::from_value(origin)?));
        let update = ConversationUpdate {
            metadata: MetadataChange::Merge([entry].into()),
            ..ConversationUpdate::at(self.engine.now_ms())
        };
        store
            .update_conversation(self.owner, &self.id, update)
            .await?;
        Ok(())
    }

    /// How many nodes of a path are stored, and the node its rest goes after. `known` are known to be.
    async fn stored_before(
        &self,
        order: usize,
        path: &[usize],
        known: usize,
    ) -> Result<(usize, Option<NodeId>), EngineError> {
        let before = |count: usize| {
            let last = count.checked_sub(1).and_then(|last| path.get(last));
            last.and_then(|index| self.node(*index))
        };
        if let Some(laid) = self.laid.get(order) {
            return Ok(if laid.nodes.len() > known || known == 0 {
                (laid.nodes.len(), laid.base)
            } else {
                (known, before(known))
            });
        }
        // What an earlier import stored of a path is its beginning.
        let (mut low, mut high) = (known, if self.existed { path.len() } else { known });
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(index) = path.get(middle) else {
                break;
            };
            let query = NodeQuery::Id(Engine::node_id(&self.key, *index));
            match self.engine.store().nodes(self.owner, &self.id, query).await {
                Ok(_) => low = middle + 1,
                Err(StoreError::NotFound { .. }) => high = middle,
                Err(error) => return Err(error.into()),
            }
        }
        Ok((low, before(low)))
    }

    /// The node that carries changed instructions after `base`.
    fn state_id(&self, base: Option<NodeId>) -> NodeId {
        let base = base.as_ref().map_or(&[][..], |base| base.as_bytes());
        NodeId::derive("state", &[&self.key, base])
    }

    /// `base`, or what an import put behind it that is no item.
    fn behind_state(&self, mut base: Option<NodeId>) -> Option<NodeId> {
        loop {
            let state = Some(self.state_id(base));
            if !self.branches.iter().any(|(_, head)| *head == state) {
                return base;
            }
            base = state;
        }
    }

    /// The change of what stands before the history, if there is one.
    async fn instructions(&self, chain: &Chain<'_>) -> Result<Option<StateChange>, EngineError> {
        let said = &self.session.instructions;
        let begins = chain.base.is_none() && !chain.nodes.is_empty();
        if said.is_empty() || !(begins || chain.order == 0) {
            return Ok(None);
        }
        if let Some(base) = chain.base {
            let request = StateRequest {
                prefix: PREFIX.to_owned(),
                ..StateRequest::all(At::Node(base))
            };
            let state = self
                .engine
                .store()
                .state(self.owner, &self.id, request)
                .await?;
            if Instructions::read(&state)?.messages == *said {
                return Ok(None);
            }
        }
        // Where nothing else is new they are so at the end of a branch only: elsewhere the
        // conversation has gone on.
        let ends = self.branches.iter().any(|(_, head)| *head == chain.base);
        if chain.nodes.is_empty() && !ends {
            return Ok(None);
        }
        record_messages(said).map(Some)
    }

    fn items(&self, path: &[usize], chain: &Chain<'_>) -> Result<Vec<NewItem>, EngineError> {
        if chain.nodes.is_empty() {
            let id = self.state_id(chain.base);
            return Ok(vec![state_node(id, self.created_ms)?]);
        }
        let partners = self.partners(path);
        let nodes = chain.nodes.iter();
        nodes.map(|index| self.item(*index, &partners)).collect()
    }

    /// Stores what is new of one branch, in as many appends as the limits ask for.
    async fn append(
        &mut self,
        chain: &Chain<'_>,
        items: Vec<NewItem>,
        change: Option<StateChange>,
        blob: Option<&Arc<[u8]>>,
    ) -> Result<(), EngineError> {
        let mut at = self.place(chain)?;
        let mut change = change;
        let parts = split(items, self.engine.store().limits());
        for (number, part) in parts.into_iter().enumerate() {
            let opens = matches!(at, AppendAt::New(_));
            let mut request = AppendRequest::new(at, part, self.engine.now_ms());
            request.on_moved = OnMoved::Sibling;
            request.patch = StatePatch {
                changes: change.take().into_iter().collect(),
                from: 0,
            };
            request.blobs = blob
                .filter(|_| number == 0 && chain.order == 0)
                .cloned()
                .into_iter()
                .collect();
            let store = self.engine.store();
            let appended = store.append(self.owner, &self.id, request).await?;
            // A branch whose name is gone was deleted by somebody: what follows finds its own.
            let Some(branch) = appended.branch else {
                at = self.open(appended.head, chain)?;
                continue;
            };
            self.branches.retain(|(name, _)| *name != branch);
            self.branches.push((branch.clone(), appended.head));
            if (opens || appended.sibling) && self.existed && chain.order == 0 {
                let branch = branch.clone();
                let shared = chain.shared;
                self.parted = Some(Parted { branch, shared });
            }
            at = AppendAt::Head {
                branch,
                head: appended.head,
            };
        }
        Ok(())
    }

    /// Where the new part of a branch goes: on the branch that ends where it begins, else on one of
    /// its own.
    fn place(&self, chain: &Chain<'_>) -> Result<AppendAt, EngineError> {
        let ends = |branch: &&(BranchName, Option<NodeId>)| branch.1 == chain.base;
        let open = chain.order == 0 || chain.continues;
        match self.branches.iter().find(ends).filter(|_| open) {
            Some((branch, head)) => Ok(AppendAt::Head {
                branch: branch.clone(),
                head: *head,
            }),
            None => self.open(chain.base, chain),
        }
    }

    /// A branch of its own: under the session's name for it, and `import-2`, … for what the session
    /// has as its main one.
    fn open(&self, base: Option<NodeId>, chain: &Chain<'_>) -> Result<AppendAt, EngineError> {
        let taken = |name: &BranchName| self.branches.iter().any(|(known, _)| known == name);
        let (label, activate) = if chain.order == 0 {
            let mut number = 2;
            let mut name = BranchName::new("import-2")?;
            while taken(&name) {
                number += 1;
                name = BranchName::new(format!("import-{number}"))?;
            }
            (BranchLabel::Named(name), Activation::Activate)
        } else {
            let name = branch_name(chain.name)?;
            let label = if taken(&name) {
                BranchLabel::After(name)
            } else {
                BranchLabel::Named(name)
            };
            (label, Activation::Keep)
        };
        Ok(AppendAt::New(NewBranch {
            base,
            label,
            activate,
        }))
    }

    fn item(
        &self,
        index: usize,
        partners: &BTreeMap<usize, usize>,
    ) -> Result<NewItem, EngineError> {
        let missing = || EngineError::BrokenSession {
            source_id: self.session.source_id.clone(),
            index,
        };
        let node = self.session.tree.get(index).ok_or_else(missing)?;
        let call = partners.get(&index).copied();
        let answers = call.filter(|_| matches!(node.item, Item::FunctionCallOutput(_)));
        let message_id = node.message_id.as_deref().map(MessageId::new).transpose()?;
        Ok(NewItem {
            answers: answers.and_then(|call| self.node(call)),
            message_id,
            origin: node.origin,
            audience: node.audience,
            meaning_hash: (self.given.tree.get(index)).and_then(|node| meaning_hash(&node.item)),
            ..NewItem::new(
                Engine::node_id(&self.key, index),
                &node.item,
                node.item.to_json(),
                node.created_at.unwrap_or(self.created_ms),
            )
        })
    }
}

/// Items in parts that each fit into one append.
fn split(items: Vec<NewItem>, limits: &Limits) -> Vec<Vec<NewItem>> {
    let mut parts: Vec<Vec<NewItem>> = Vec::new();
    let mut bytes = 0;
    for item in items {
        bytes += item.json.len();
        let full = parts.last().is_none_or(|part| {
            part.len() >= limits.append_items / SHARE || bytes > limits.append_bytes / SHARE
        });
        if full {
            bytes = item.json.len();
            parts.push(Vec::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(item);
        }
    }
    parts
}

/// A session's id as a conversation's: characters that are not allowed become `-`, and a piece of the
/// original's hash keeps what became equal apart.
fn conversation_id(source: &str) -> Result<ConversationId, EngineError> {
    if let Ok(id) = ConversationId::new(source) {
        return Ok(id);
    }
    let plain = plain(source, "._:-", 100);
    let hash = NodeId::derive("conversation id", &[source.as_bytes()]).to_string();
    let short: String = hash.chars().take(8).collect();
    Ok(ConversationId::new(
        format!("{}-{short}", plain.trim_matches('-')).trim_matches('-'),
    )?)
}

fn branch_name(name: &str) -> Result<BranchName, EngineError> {
    let plain = plain(name, "._:-/", 200);
    Ok(BranchName::new(if plain.is_empty() {
        "branch"
    } else {
        &plain
    })?)
}

/// The first `most` characters, those that are neither letters, digits nor among `marks` as `-`.
fn plain(text: &str, marks: &str, most: usize) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || marks.contains(c);
    text.chars()
        .map(|c| if allowed(c) { c } else { '-' })
        .take(most)
        .collect()
}
