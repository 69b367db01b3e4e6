//! One ingest: storing what is new, retrying after concurrent writes.
//!
//! Not here: choosing where (`choose_target`).

use std::collections::BTreeSet;

use contexture_ir::{CHAIN_VERSION, ConversationId, Item, Message, NodeId, Owner, Raw, Transcript};
use contexture_layers::ObservedItems;
use contexture_store::{
    Activation, AppendPoint, AppendRequest, BranchLabel, EntityKind, Error as StoreError,
    NewBranch, NewItem, PathMark, RefChange, RefChanged, StatePatch,
};
use contexture_wire::{Dialect, DocumentKind, Format, lift, lower};

use super::choose_target::IngestTarget;
use super::keys::AnswerStatus;
use super::new_nodes::NewNodes;
use super::resolve_match::MatchTarget;
use super::shared_exchanges::StoredMark;
use super::types::{AnswerContext, IngestRequest, Ingested};
use super::withdraw::restore_branch;
use crate::append::{split_by_limits, state_node};
use crate::error::EngineError;
use crate::exchange::{AnswerWait, Exchange};
use crate::handle::{Conversation, Engine, RecordLevel, delete_conversation};
use crate::hooks::{append_with_hooks, open_session_for_append};
use crate::state::{messages_change, settings_change};

/// How often it is looked anew because somebody else wrote meanwhile. Each time somebody got through.
const TRIES: usize = 32;

/// Finds the conversation of a request whose client keeps no state, and stores what is new of it.
pub(crate) async fn ingest_request(
    engine: &Engine,
    owner: &Owner,
    incoming: IngestRequest<'_>,
) -> Result<Ingested, EngineError> {
    // Chosen once: a retry after an unknown outcome must meet the conversation that it may have made.
    let fresh = ConversationId::new(NodeId::from_bytes(engine.new_key()).to_string())?;
    let mut job = IngestJob {
        engine,
        owner,
        incoming,
        fresh,
        wait: AnswerWait::new(incoming.exchange),
    };
    let mut tries = TRIES;
    loop {
        tries -= 1;
        match job.try_ingest().await {
            Err(error) if tries > 0 && is_write_conflict(&error) => {}
            Err(error) => {
                // Nobody knows the id yet, so it could never be continued.
                job.delete_unfinished().await;
                return Err(error);
            }
            done => return done,
        }
    }
}

/// Whether somebody else wrote meanwhile, or nobody knows.
fn is_write_conflict(error: &EngineError) -> bool {
    use StoreError::{HeadMoved, NotFound, OutcomeUnknown};
    // A branch that is gone was taken back with a request that got no answer.
    let what = EntityKind::Branch;
    let moved = match error {
        EngineError::Store(HeadMoved { .. } | OutcomeUnknown { .. }) => true,
        EngineError::Store(NotFound { what: missing, .. }) => *missing == what,
        _ => false,
    };
    moved || error.is_stale_state()
}

/// One ingest, with all its attempts.
pub(super) struct IngestJob<'a> {
    pub(super) engine: &'a Engine,
    pub(super) owner: &'a Owner,
    pub(super) incoming: IngestRequest<'a>,
    /// The id of a new conversation, the same in every attempt.
    pub(super) fresh: ConversationId,
    pub(super) wait: AnswerWait<'a>,
}

impl IngestJob<'_> {
    async fn try_ingest(&mut self) -> Result<Ingested, EngineError> {
        let landed = self.choose_target().await?;
        let branch = landed.target.branch.clone();
        let chat = Conversation::new(
            self.engine.clone(),
            self.owner.clone(),
            landed.target.conversation.clone(),
            branch.unwrap_or_else(|| landed.active.clone()),
        );
        let items = &self.incoming.transcript.items;
        // The ids of the new nodes derive from their content and place, so a retry stores nothing twice.
        let news = NewNodes {
            items,
            known: landed.target.known,
            base: landed.target.base,
        };
        let (nodes, observed) = news.build_nodes(&chat).await?;
        let (keys, exchange) = (&landed.keys, self.incoming.exchange);
        let mark = StoredMark::prepare(&chat, keys, landed.question, exchange).await?;
        let mut ingested = Ingested {
            chat,
            matched: landed.target.matched,
            appended: Vec::new(),
            head: landed.target.base,
            opened_branch: None,
            waited: self.wait.waited,
            raced: self.wait.raced,
            trail: AnswerContext {
                keys: landed.keys.clone(),
                chain: landed.chain.clone(),
                sent_hash: landed.chain.current_hash(),
                has_answer: landed.target.has_answer,
                request: self.request_document(),
                base: landed.target.base,
                active: landed.active.clone(),
                exchange: self.incoming.exchange.map(Exchange::handle),
                mark,
            },
        };
        self.store_nodes(&landed, nodes, &observed, &mut ingested)
            .await?;
        let id = ingested.chat.id();
        self.wait
            .update_exchange(|exchange| exchange.conversation = Some(id.clone()));
        Ok(ingested)
    }

    /// Deletes what was begun of a conversation that nobody could name: the next request would begin another.
    async fn delete_unfinished(&self) {
        match delete_conversation(self.engine, self.owner, &self.fresh).await {
            Ok(()) | Err(EngineError::Store(StoreError::NotFound { .. })) => {}
            Err(error) => {
                tracing::warn!(%error, "a conversation that was begun could not be deleted")
            }
        }
    }

    /// Stores the new nodes, in as many appends as the limits ask for.
    async fn store_nodes(
        &self,
        landed: &IngestTarget,
        mut nodes: Vec<NewItem>,
        observed: &[Item],
        ingested: &mut Ingested,
    ) -> Result<(), EngineError> {
        let changes = [self.instructions_change()?, self.settings_change()?];
        // State needs a node to hang off.
        let silent = nodes.is_empty() && landed.target.base.is_none();
        if silent && !self.incoming.transcript.instructions.is_empty() {
            // Nothing was said yet but what stands before it.
            let id = NodeId::of_operation(b"before the first", 0);
            nodes.push(state_node(id, self.engine.now_ms())?);
        }
        let mut marks = self.path_marks(landed, &nodes).into_iter().peekable();
        let mut at = self.append_position(landed);
        let mark = ingested.trail.mark.clone();
        if nodes.is_empty() {
            self.open_retry_branch(at, ingested).await?;
            return match mark {
                Some(mark) => mark.store_alone().await,
                None => Ok(()),
            };
        }
        let chat = &ingested.chat;
        let mut session = match chat.layers().is_empty() {
            true => None,
            false => Some(open_session_for_append(chat, &at).await?),
        };
        // Taken by the first append only: instructions are the same for all parts.
        let mut changes = Vec::from(changes);
        let mut observed = observed.iter();
        let mut parts = split_by_limits(nodes, self.engine.store().limits())
            .into_iter()
            .peekable();
        while let Some(part) = parts.next() {
            let opens = matches!(at, AppendPoint::New(_));
            let place = at.clone();
            let ids: Vec<NodeId> = part.iter().map(|node| node.id).collect();
            let items: Vec<Item> = observed.by_ref().take(ids.len()).cloned().collect();
            let mut request = AppendRequest::new(at, part, self.engine.now_ms());
            request.patch = StatePatch {
                changes: std::mem::take(&mut changes),
                from: 0,
            };
            // With the last part: before that the request is not stored.
            let mark = mark.as_ref().filter(|_| parts.peek().is_none());
            request.exchange = mark.map(|mark| mark.begin());
            // Each mark goes with the append that stores its node; marks and nodes are in the same order.
            let own: BTreeSet<NodeId> = ids.iter().copied().collect();
            let next = || marks.next_if(|mark| own.contains(&mark.node));
            request.paths = std::iter::from_fn(next).collect();
            let seen = ObservedItems {
                items: &items,
                nodes: &ids,
                response: None,
                usage: None,
            };
            let appended = append_with_hooks(chat, request, seen, session.as_mut()).await?;
            let branch = restore_branch(chat, place, &appended).await?;
            let branch = branch.unwrap_or_else(|| chat.branch());
            if opens {
                ingested.opened_branch = Some(branch.clone());
            }
            chat.set_branch(branch.clone());
            ingested.head = appended.head;
            ingested.appended.extend(appended.nodes);
            at = AppendPoint::Head {
                branch,
                head: appended.head,
            };
        }
        Ok(())
    }

    /// Nothing is new: a branch that ends there, so that another answer has its place.
    async fn open_retry_branch(
        &self,
        at: AppendPoint,
        ingested: &mut Ingested,
    ) -> Result<(), EngineError> {
        let AppendPoint::New(new) = at else {
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
            ingested.opened_branch = Some(branch.name);
        }
        Ok(())
    }

    fn append_position(&self, landed: &IngestTarget) -> AppendPoint {
        let head = landed.target.base;
        match &landed.target.branch {
            Some(branch) => AppendPoint::Head {
                branch: branch.clone(),
                head,
            },
            None => AppendPoint::New(NewBranch {
                base: head,
                label: BranchLabel::After(landed.active.clone()),
                activate: Activation::Activate,
            }),
        }
    }

    /// The marks of what is new; the last is of the last node.
    fn path_marks(&self, landed: &IngestTarget, nodes: &[NewItem]) -> Vec<PathMark> {
        let MatchTarget {
            known,
            has_answer: answered,
            ..
        } = landed.target;
        let status = match answered {
            true => AnswerStatus::Answered,
            false => AnswerStatus::Unanswered,
        };
        let new = landed.links.iter().filter(|link| link.items > known);
        let last = landed.links.last();
        let mark = |link: &contexture_ir::HistoryHash| {
            let node = match Some(link) == last {
                true => nodes.last(),
                false => nodes.get(link.items - known - 1),
            };
            Some(PathMark {
                version: CHAIN_VERSION,
                hash: landed.keys.history_key(status, link.hash),
                node: node?.id,
            })
        };
        new.filter_map(mark).collect()
    }

    /// What stands before the history, as state: without secrets.
    fn instructions_change(&self) -> Result<contexture_store::StateChange, EngineError> {
        let messages = &self.incoming.transcript.instructions;
        // State is not redacted by the append, which redacts items only.
        let Some(secrets) = self.engine.secrets() else {
            return messages_change(messages);
        };
        let without = |message: &Message| match secrets.redact_item(&Item::Message(message.clone()))
        {
            Item::Message(message) => message,
            _ => message.clone(),
        };
        messages_change(&messages.iter().map(without).collect::<Vec<_>>())
    }

    /// What else the request asks, as state, so that a later compile can ask the same.
    fn settings_change(&self) -> Result<contexture_store::StateChange, EngineError> {
        let max_bytes = self.engine.store().limits().state_value_bytes;
        let document = self.request_document();
        // Taken from the document: at its level, and without secrets.
        let kept = document.and_then(|json| lift(Format::Items, json.get()).ok());
        let mut kept = kept.map(|lifted| lifted.transcript).unwrap_or_default();
        // Each answer names its own, and a client that changes its model changes nothing of the conversation.
        kept.model = None;
        settings_change(&kept, max_bytes)
    }

    /// Model, tools and options, without what is stored as nodes and state.
    fn request_document(&self) -> Option<Raw> {
        // At this level no content of a request is stored beside the items.
        if self.engine.record_level() == RecordLevel::Hashes {
            return None;
        }
        let transcript = self.incoming.transcript;
        let bare = Transcript {
            model: transcript.model.clone(),
            tools: transcript.tools.clone(),
            options: transcript.options.clone(),
            extra: transcript.extra.clone(),
            ..Transcript::default()
        };
        let json = lower(&Dialect::of(Format::Items), DocumentKind::Request, &bare).json;
        let json = match self.engine.secrets() {
            Some(secrets) => secrets.redact(&json).into_owned(),
            None => json,
        };
        Raw::parse(json).ok()
    }
}
