//! Sessions of other agents, kept as conversations.
//!
//! Everything that is stored derives its id from the session's own: importing the same session again
//! stores nothing, importing a session that grew stores what is new. What a session holds besides
//! items is kept beside the conversation, so that it can be exported as it came.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contexture_ir::{
    BranchName, ConversationId, Item, MessageId, NodeId, Owner, Raw, meaning_hash,
};
use contexture_sessions::{Session, SessionHead};
use contexture_store::{
    Activation, AppendAt, AppendRequest, BlobId, BranchLabel, ConversationUpdate,
    Error as StoreError, Limits, Metadata, MetadataChange, NewBranch, NewConversation, NewItem,
    NodeQuery, OnMoved, StatePatch,
};
use contexture_wire::pairs;
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::instructions::record_messages;

/// The metadata entry that says where a conversation came from.
pub(crate) const KEY: &str = "import";

/// Session metadata up to this many bytes stands in the conversation's own; more is a blob.
const INLINE: usize = 8 << 10;

/// Half of an append's limits: room for what goes with the items.
const SHARE: usize = 2;

/// Where an imported conversation came from, as kept in its metadata.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Origin {
    pub(crate) format: String,
    pub(crate) source: String,
    pub(crate) nodes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blob: Option<String>,
}

/// How to import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// Whose the conversation is; default `local`.
    pub owner: Owner,
    /// Its id; default: made of the session's own.
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
}

impl Engine {
    /// Keeps a session as a conversation.
    ///
    /// # Errors
    /// [`EngineError::ConversationExists`] if the id is taken by a conversation that is not this
    /// session, or the store's.
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
        let import = Import {
            engine: self,
            session,
            owner: &options.owner,
            id,
            created_ms: first.unwrap_or_else(|| self.now_ms()),
        };
        import.run().await
    }
}

/// One import under way.
struct Import<'a> {
    engine: &'a Engine,
    session: &'a Session,
    owner: &'a Owner,
    id: ConversationId,
    /// The time of what the log gives none: that of the first node that has one, else now.
    created_ms: i64,
}

impl Import<'_> {
    async fn run(self) -> Result<Imported, EngineError> {
        let (blob, existed) = self.create().await?;
        let key = key_of(&self.session.source_id);
        let mut stored: BTreeSet<usize> = BTreeSet::new();
        let mut new = 0;
        for (order, head) in self.session.heads.iter().enumerate() {
            let path: Vec<usize> = self.session.path(head.node);
            let known = path
                .iter()
                .take_while(|index| stored.contains(index))
                .count();
            let earlier = if existed {
                self.stored_before(&key, &path, known).await?
            } else {
                known
            };
            let (before, fresh) = path.split_at(earlier);
            stored.extend(&path);
            if fresh.is_empty() {
                continue;
            }
            let base = before.last().copied();
            let continues = earlier > known;
            let chain = Chain {
                order,
                head,
                base,
                continues,
                nodes: fresh,
            };
            new += fresh.len();
            let partners = self.partners(&path);
            self.append(&key, &chain, &partners, blob.as_ref()).await?;
        }
        Ok(Imported {
            conversation: self.id,
            title: self.session.title.clone(),
            nodes: self.session.tree.len(),
            new,
            branches: self.session.heads.len(),
        })
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

    /// Makes the conversation, or finds it made by an earlier import, and says which. Gives the
    /// metadata's bytes if they are to be stored as a blob.
    async fn create(&self) -> Result<(Option<Arc<[u8]>>, bool), EngineError> {
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
        let existed = match self
            .engine
            .store()
            .create_conversation(self.owner, new)
            .await
        {
            Ok(_) => false,
            Err(StoreError::AlreadyExists { .. }) => {
                self.refresh(&origin).await?;
                true
            }
            Err(error) => return Err(error.into()),
        };
        Ok(((!inline).then_some(bytes), existed))
    }

    /// The conversation exists: it must come from this session. One that grew brings its newer
    /// metadata.
    async fn refresh(&self, origin: &Origin) -> Result<(), EngineError> {
        let record = self
            .engine
            .store()
            .conversation(self.owner, &self.id)
            .await?;
        let stored: Option<Origin> = record.metadata.get(KEY).and_then(|raw| raw.to().ok());
        let exists = || EngineError::ConversationExists {
            conversation: self.id.clone(),
        };
        let stored = stored
            .filter(|stored| stored.source == origin.source)
            .ok_or_else(exists)?;
        if stored.nodes >= origin.nodes {
            return Ok(());
        }
        if origin.blob.is_some() {
            let bytes = self.session.metadata.get().as_bytes().into();
            self.engine
                .store()
                .put_blob(self.owner, &self.id, bytes)
                .await?;
        }
        let entry = (KEY.to_owned(), Some(Raw::from_value(origin)?));
        let update = ConversationUpdate {
            metadata: MetadataChange::Merge([entry].into()),
            ..ConversationUpdate::at(self.engine.now_ms())
        };
        self.engine
            .store()
            .update_conversation(self.owner, &self.id, update)
            .await?;
        Ok(())
    }

    /// How many nodes of a path an earlier import has stored: they are its beginning. `known` are
    /// known to be.
    async fn stored_before(
        &self,
        key: &[u8; 16],
        chain: &[usize],
        known: usize,
    ) -> Result<usize, EngineError> {
        let (mut low, mut high) = (known, chain.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(index) = chain.get(middle) else {
                break;
            };
            let query = NodeQuery::Id(Engine::node_id(key, *index));
            match self.engine.store().nodes(self.owner, &self.id, query).await {
                Ok(_) => low = middle + 1,
                Err(StoreError::NotFound { .. }) => high = middle,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(low)
    }

    /// Stores what is new of one branch, in as many appends as the limits ask for.
    async fn append(
        &self,
        key: &[u8; 16],
        chain: &Chain<'_>,
        partners: &BTreeMap<usize, usize>,
        blob: Option<&Arc<[u8]>>,
    ) -> Result<(), EngineError> {
        let items: Vec<NewItem> = chain
            .nodes
            .iter()
            .map(|index| self.item(key, *index, partners))
            .collect::<Result<_, _>>()?;
        let mut at = self.place(key, chain).await?;
        let parts = split(items, self.engine.store().limits());
        for (number, part) in parts.into_iter().enumerate() {
            let first = number == 0;
            let mut request = AppendRequest::new(at, part, self.engine.now_ms());
            request.on_moved = OnMoved::Sibling;
            if first && chain.base.is_none() && !self.session.instructions.is_empty() {
                let change = record_messages(&self.session.instructions)?;
                request.patch = StatePatch {
                    changes: vec![change],
                    from: 0,
                };
            }
            request.blobs = blob
                .filter(|_| first && chain.order == 0)
                .cloned()
                .into_iter()
                .collect();
            let appended = self
                .engine
                .store()
                .append(self.owner, &self.id, request)
                .await?;
            // A branch whose name is gone was deleted by somebody: what follows finds its own.
            at = match appended.branch {
                Some(branch) => AppendAt::Head {
                    branch,
                    head: appended.head,
                },
                None => self.after(appended.head, chain)?,
            };
        }
        Ok(())
    }

    /// Where the new part of a branch begins: the conversation's first on `main`, what continues an
    /// earlier import on its branch, the others on branches of their own.
    async fn place(&self, key: &[u8; 16], chain: &Chain<'_>) -> Result<AppendAt, EngineError> {
        if chain.order == 0 && chain.base.is_none() {
            return Ok(AppendAt::Tip {
                branch: BranchName::main(),
            });
        }
        let base = chain.base.map(|index| Engine::node_id(key, index));
        if chain.continues {
            let refs = self.engine.store().refs(self.owner, &self.id).await?;
            if let Some(branch) = refs.branches.into_iter().find(|branch| branch.head == base) {
                return Ok(AppendAt::Head {
                    branch: branch.name,
                    head: base,
                });
            }
        }
        self.after(base, chain)
    }

    fn after(&self, base: Option<NodeId>, chain: &Chain<'_>) -> Result<AppendAt, EngineError> {
        let label = BranchLabel::After(branch_name(&chain.head.name)?);
        Ok(AppendAt::New(NewBranch {
            base,
            label,
            activate: Activation::Keep,
        }))
    }

    fn item(
        &self,
        key: &[u8; 16],
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
            answers: answers.map(|call| Engine::node_id(key, call)),
            message_id,
            origin: node.origin,
            audience: node.audience,
            meaning_hash: meaning_hash(&node.item),
            ..NewItem::new(
                Engine::node_id(key, index),
                &node.item,
                node.item.to_json(),
                node.created_at.unwrap_or(self.created_ms),
            )
        })
    }
}

/// The part of a branch that no earlier branch has stored.
struct Chain<'a> {
    order: usize,
    head: &'a SessionHead,
    base: Option<usize>,
    /// Whether an earlier import stored the branch up to `base`.
    continues: bool,
    nodes: &'a [usize],
}

/// The key from which the ids of a session's nodes derive.
pub(crate) fn key_of(source_id: &str) -> [u8; 16] {
    *NodeId::derive("import", &[source_id.as_bytes()]).as_bytes()
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
