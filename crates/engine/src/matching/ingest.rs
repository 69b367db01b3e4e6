//! Finding the conversation of a request, and storing what is new of it.

use contexture_ir::{
    BranchName, CHAIN_VERSION, Chain, ConversationId, Item, Message, NodeId, Owner, PathHash, Raw,
    Transcript,
};
use contexture_layers::Observed;
use contexture_store::{
    Activation, AppendAt, AppendRequest, BranchLabel, Conversation as Record, Error as StoreError,
    NewBranch, NewConversation, NewItem, PathMark, PathPlace, RefChange, RefChanged, StatePatch,
};
use contexture_wire::{Dialect, Format, Kind, lower};

use super::copy::Tails;
use super::find::Finder;
use super::incoming::{Incoming, Ingested, Matched, Trail};
use super::keys::{Keys, Standing};
use super::news::News;
use super::relayed::Call;
use super::sent::Sent;
use super::spot::Spot;
use crate::conversation::Conversation;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::import::split;
use crate::instructions::record_messages;
use crate::record_level::RecordLevel;
use crate::state_node::state_node;

/// How often it is looked anew because somebody else wrote meanwhile. Each time somebody got through.
const TRIES: usize = 32;

impl Engine {
    /// Finds the conversation of a request whose client keeps no state, and stores what is new of it.
    ///
    /// In this order: the conversation that the client names, which is made if it is not there; the one
    /// with the answer it names; the one of this owner and partition whose beginning is the longest that
    /// the request shares, if that holds an answer recorded here and the request goes on at its end or
    /// repeats it; else a new one. A client that names its conversation and leaves the path gets a branch
    /// there, or is laid along the path's end if it sent only the last of it.
    ///
    /// Costs what is hashed, one look-up and one append, at any length; the stored path is not read.
    /// Leading instructions are kept as state, so that a date in them parts nothing. The same request
    /// again stores nothing; without a name, and before an answer was recorded, it is a conversation of
    /// its own. Where the store has no [index](contexture_store::PathIndex), only names are found.
    ///
    /// # Errors
    /// A name that breaks its rule, or the store's; what was stored until then of a conversation that the client names is
    /// a beginning, and the same request goes on from there. Of another nothing stays.
    pub async fn ingest(
        &self,
        owner: &Owner,
        incoming: Incoming<'_>,
    ) -> Result<Ingested, EngineError> {
        let fresh = ConversationId::new(NodeId::from_bytes(self.fresh_key()).to_string())?;
        let job = Job {
            engine: self,
            owner,
            incoming,
            fresh,
        };
        let mut tries = TRIES;
        loop {
            tries -= 1;
            match job.run().await {
                Err(error) if tries > 0 && is_moved(&error) => {}
                Err(error) => {
                    job.forget().await;
                    return Err(error);
                }
                done => return done,
            }
        }
    }
}

/// Whether somebody else wrote meanwhile, or nobody knows.
fn is_moved(error: &EngineError) -> bool {
    use StoreError::{HeadMoved, OutcomeUnknown};
    let moved = matches!(
        error,
        EngineError::Store(HeadMoved { .. } | OutcomeUnknown { .. })
    );
    moved || error.is_stale_state()
}

struct Job<'a> {
    engine: &'a Engine,
    owner: &'a Owner,
    incoming: Incoming<'a>,
    /// The id of a new conversation, the same in every attempt.
    fresh: ConversationId,
}

/// What was found of a request.
struct Landed {
    spot: Spot,
    keys: Keys,
    chain: Chain,
    links: Vec<contexture_ir::PathLink>,
    active: BranchName,
}

impl Job<'_> {
    async fn run(&self) -> Result<Ingested, EngineError> {
        let landed = self.land().await?;
        let branch = landed.spot.branch.clone();
        let chat = Conversation::new(
            self.engine.clone(),
            self.owner.clone(),
            landed.spot.conversation.clone(),
            branch.unwrap_or_else(|| landed.active.clone()),
        );
        let items = &self.incoming.transcript.items;
        let news = News {
            items,
            known: landed.spot.known,
            base: landed.spot.base,
        };
        let (nodes, said) = news.nodes(&chat).await?;
        let mut ingested = Ingested {
            chat,
            matched: landed.spot.matched,
            appended: Vec::new(),
            head: landed.spot.base,
            opened: None,
            trail: Trail {
                keys: landed.keys.clone(),
                chain: landed.chain.clone(),
                asked: landed.chain.hash(),
                answered: landed.spot.answered,
                request: self.request(),
            },
        };
        self.store(&landed, nodes, &said, &mut ingested).await?;
        Ok(ingested)
    }

    /// Deletes what was begun of a conversation that nobody could name: the next request would begin another.
    async fn forget(&self) {
        match self.engine.delete(self.owner, &self.fresh).await {
            Ok(()) | Err(EngineError::Store(StoreError::NotFound { .. })) => {}
            Err(error) => {
                tracing::warn!(%error, "a conversation that was begun could not be deleted")
            }
        }
    }

    /// Where the request goes on.
    async fn land(&self) -> Result<Landed, EngineError> {
        let Incoming {
            conversation,
            previous_response,
            partition,
            ..
        } = self.incoming;
        let mut keys = Keys::of(self.owner, partition);
        let mut record = match conversation {
            Some(id) => Some(self.open(id, &keys).await?),
            None => None,
        };
        if let Some(record) = &record {
            keys = Keys::of_conversation(record);
        }
        let mut start = None;
        if let Some(id) = previous_response {
            start = self.finder(&keys, conversation).response(id).await?;
        }
        if let (Some(start), None) = (&start, &record) {
            let store = self.engine.store();
            record = Some(store.conversation(self.owner, &start.conversation).await?);
        }
        let mut chain = match &start {
            Some(start) => self.chain_behind(start).await?,
            None => Chain::default(),
        };
        let items = &self.incoming.transcript.items;
        let links = chain.extend(items);
        let sent = Sent {
            items,
            links: &links,
            whole: chain.hash(),
        };
        let tails = Tails {
            engine: self.engine,
            owner: self.owner,
        };
        let (spot, active) = match record {
            Some(record) => {
                let finder = self.finder(&keys, Some(&record.id));
                let wanted = self.incoming.branch;
                let spot = sent.by_name(&finder, &tails, &record, wanted, start.as_ref());
                (spot.await?, record.active)
            }
            None => match sent.by_prefix(&self.finder(&keys, None), &tails).await? {
                Some(spot) if spot.branch.is_some() => (spot, BranchName::main()),
                Some(spot) => {
                    let store = self.engine.store();
                    let record = store.conversation(self.owner, &spot.conversation).await?;
                    (spot, record.active)
                }
                None => {
                    let record = self.open(&self.fresh, &keys).await?;
                    let branch = Some(record.active.clone());
                    let spot = Spot {
                        conversation: record.id,
                        known: 0,
                        base: None,
                        branch,
                        answered: false,
                        matched: Matched::New,
                    };
                    (spot, record.active)
                }
            },
        };
        Ok(Landed {
            spot,
            keys,
            chain,
            links,
            active,
        })
    }

    fn finder<'f>(
        &'f self,
        keys: &'f Keys,
        conversation: Option<&'f ConversationId>,
    ) -> Finder<'f> {
        Finder {
            store: self.engine.store().as_ref(),
            owner: self.owner,
            keys,
            conversation,
        }
    }

    /// A conversation's record; it is made if it is not there.
    async fn open(&self, id: &ConversationId, keys: &Keys) -> Result<Record, EngineError> {
        let store = self.engine.store();
        match store.conversation(self.owner, id).await {
            Err(StoreError::NotFound { .. }) => {}
            known => return Ok(known?),
        }
        let new = NewConversation {
            resource: self.incoming.resource.map(str::to_owned),
            metadata: keys.metadata(),
            ..NewConversation::new(id.clone(), self.engine.now_ms())
        };
        match store.create_conversation(self.owner, new).await {
            Err(StoreError::AlreadyExists { .. }) => Ok(store.conversation(self.owner, id).await?),
            made => Ok(made?),
        }
    }

    /// The chain behind a recorded answer. If nothing is kept of it, one of the answer's own: what follows
    /// is then found by names only.
    async fn chain_behind(&self, start: &PathPlace) -> Result<Chain, EngineError> {
        let (store, id) = (self.engine.store(), &start.conversation);
        let query = contexture_store::NodeQuery::Id(start.node);
        let nodes = store.nodes(self.owner, id, query).await?;
        let response = nodes.first().and_then(|node| node.response);
        let mut kept = None;
        if let Some(response) = response {
            let record = store.response(self.owner, id, response).await?;
            kept = Call::read(&record.inputs).and_then(|call| call.path(CHAIN_VERSION));
        }
        let own = || PathHash::derive("behind", &[start.node.as_bytes()]);
        Ok(Chain::behind(kept.unwrap_or_else(own)))
    }

    /// Stores the new nodes, in as many appends as the limits ask for.
    async fn store(
        &self,
        landed: &Landed,
        mut nodes: Vec<NewItem>,
        said: &[Item],
        ingested: &mut Ingested,
    ) -> Result<(), EngineError> {
        let change = self.instructions()?;
        let silent = nodes.is_empty() && landed.spot.base.is_none();
        if silent && !self.incoming.transcript.instructions.is_empty() {
            // Nothing was said yet but what stands before it.
            let id = Engine::node_id(b"before the first", 0);
            nodes.push(state_node(id, self.engine.now_ms())?);
        }
        let mut marks = self.marks(landed, &nodes);
        let mut at = self.place(landed);
        if nodes.is_empty() {
            return self.repeat(at, ingested).await;
        }
        let chat = &ingested.chat;
        let mut session = match chat.layers().is_empty() {
            true => None,
            false => Some(chat.session_behind(&at).await?),
        };
        let mut change = Some(change);
        let mut said = said.iter();
        for part in split(nodes, self.engine.store().limits()) {
            let opens = matches!(at, AppendAt::New(_));
            let ids: Vec<NodeId> = part.iter().map(|node| node.id).collect();
            let items: Vec<Item> = said.by_ref().take(ids.len()).cloned().collect();
            let mut request = AppendRequest::new(at, part, self.engine.now_ms());
            request.patch = StatePatch {
                changes: change.take().into_iter().collect(),
                from: 0,
            };
            let (own, later) = marks.into_iter().partition(|mark| ids.contains(&mark.node));
            (request.paths, marks) = (own, later);
            let seen = Observed {
                items: &items,
                nodes: &ids,
                response: None,
                usage: None,
            };
            let appended = chat
                .append_observed(request, seen, session.as_mut())
                .await?;
            let branch = appended.branch.unwrap_or_else(|| chat.branch());
            if opens {
                ingested.opened = Some(branch.clone());
            }
            chat.set_branch(branch.clone());
            ingested.head = appended.head;
            ingested.appended.extend(appended.nodes);
            at = AppendAt::Head {
                branch,
                head: appended.head,
            };
        }
        Ok(())
    }

    /// Nothing is new: a branch that ends there, so that another answer has its place.
    async fn repeat(&self, at: AppendAt, ingested: &mut Ingested) -> Result<(), EngineError> {
        let AppendAt::New(new) = at else {
            return Ok(());
        };
        let chat = &ingested.chat;
        let activate = Activation::Keep;
        let change = RefChange::CreateBranch(NewBranch { activate, ..new });
        let at_ms = self.engine.now_ms();
        let store = self.engine.store();
        let changed = store.change_ref(self.owner, chat.id(), change, at_ms);
        if let RefChanged::Branch(branch) = changed.await? {
            chat.set_branch(branch.name.clone());
            ingested.opened = Some(branch.name);
        }
        Ok(())
    }

    fn place(&self, landed: &Landed) -> AppendAt {
        let head = landed.spot.base;
        match &landed.spot.branch {
            Some(branch) => AppendAt::Head {
                branch: branch.clone(),
                head,
            },
            None => AppendAt::New(NewBranch {
                base: head,
                label: BranchLabel::After(landed.active.clone()),
                activate: Activation::Activate,
            }),
        }
    }

    /// The marks of what is new; the last is of the last node.
    fn marks(&self, landed: &Landed, nodes: &[NewItem]) -> Vec<PathMark> {
        let Spot {
            known, answered, ..
        } = landed.spot;
        let standing = match answered {
            true => Standing::Answered,
            false => Standing::Said,
        };
        let new = landed.links.iter().filter(|link| link.items > known);
        let last = landed.links.last();
        let mark = |link: &contexture_ir::PathLink| {
            let node = match Some(link) == last {
                true => nodes.last(),
                false => nodes.get(link.items - known - 1),
            };
            Some(PathMark {
                version: CHAIN_VERSION,
                hash: landed.keys.path(standing, link.hash),
                node: node?.id,
            })
        };
        new.filter_map(mark).collect()
    }

    /// What stands before the history, as state: without secrets.
    fn instructions(&self) -> Result<contexture_store::StateChange, EngineError> {
        let messages = &self.incoming.transcript.instructions;
        let Some(secrets) = self.engine.secrets() else {
            return record_messages(messages);
        };
        let without = |message: &Message| match secrets.item(&Item::Message(message.clone())) {
            Item::Message(message) => message,
            _ => message.clone(),
        };
        record_messages(&messages.iter().map(without).collect::<Vec<_>>())
    }

    /// Model, tools and options, without what is stored as nodes and state.
    fn request(&self) -> Option<Raw> {
        if self.engine.record_level() == RecordLevel::Hashes {
            return None;
        }
        let given = self.incoming.transcript;
        let bare = Transcript {
            model: given.model.clone(),
            tools: given.tools.clone(),
            options: given.options.clone(),
            extra: given.extra.clone(),
            ..Transcript::default()
        };
        let json = lower(&Dialect::of(Format::Items), Kind::Request, &bare).json;
        let json = match self.engine.secrets() {
            Some(secrets) => secrets.redact(&json).into_owned(),
            None => json,
        };
        Raw::parse(json).ok()
    }
}
