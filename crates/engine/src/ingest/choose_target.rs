//! Where a request is stored: its conversation, its place there, and the answers that are waited for before that is decided.
//!
//! Not here: how a place is chosen among candidates (`resolve_match`), storing (`job`).

use contexture_ir::{BranchName, CHAIN_VERSION, ConversationId, HistoryHasher, PathHash};
use contexture_store::{Conversation as Record, Error as StoreError, NewConversation, PathMatch};

use super::candidates::CandidateFinder;
use super::compare_tail::PathTails;
use super::job::IngestJob;
use super::keys::PathKeys;
use super::passthrough::RelayedCall;
use super::request_history::RequestHistory;
use super::resolve_match::{MatchTarget, NamedConversation};
use super::shared_exchanges::{AwaitedAnswers, SharedExchanges};
use super::types::{IngestRequest, MatchKind};
use crate::error::EngineError;
use crate::exchange::{ExchangeState, Question};
use crate::handle::Engine;

/// The target of an ingest, with the hashes that led to it.
pub(super) struct IngestTarget {
    pub(super) target: MatchTarget,
    pub(super) keys: PathKeys,
    pub(super) chain: HistoryHasher,
    pub(super) links: Vec<contexture_ir::HistoryHash>,
    /// The hash of what its answer follows.
    pub(super) question: PathHash,
    pub(super) active: BranchName,
}

impl<'a> IngestJob<'a> {
    /// Where the request goes on.
    pub(super) async fn choose_target(&mut self) -> Result<IngestTarget, EngineError> {
        let IngestRequest {
            conversation,
            partition,
            ..
        } = self.incoming;
        let mut keys = PathKeys::for_owner(self.owner, partition);
        let mut record = match conversation {
            Some(id) => Some(self.open_conversation(id, &keys).await?),
            None => None,
        };
        if let Some(record) = &record {
            // The partition of the conversation and not that of the request: a client that names it may come from
            // another partition.
            keys = PathKeys::for_conversation(record);
        }
        let start = self.find_named_answer(&keys).await?;
        if let (Some(start), None) = (&start, &record) {
            let store = self.engine.store();
            record = Some(
                store
                    .load_conversation(self.owner, &start.conversation)
                    .await?,
            );
        }
        // With an answer named, the request holds only what follows it: its hashes go on from that answer.
        let mut chain = match &start {
            Some(start) => self.load_history_hash(start).await?,
            None => HistoryHasher::default(),
        };
        let items = &self.incoming.transcript.items;
        let start_hash = chain.current_hash();
        let links = chain.hash_items(items);
        let sent = RequestHistory {
            items,
            links: &links,
            start_hash,
            full_hash: chain.current_hash(),
        };
        self.wait_for_answers(&sent, &keys, record.as_ref()).await?;
        let (target, active) = match record {
            Some(record) => {
                let target = self.match_named(&sent, &keys, &record, start.as_ref());
                (target.await?, record.active)
            }
            None => self.match_unnamed(&sent, &keys).await?,
        };
        Ok(IngestTarget {
            target,
            keys,
            chain,
            question: sent.question_hash(),
            links,
            active,
        })
    }

    /// The place where a request goes on in a conversation that it names, or whose answer it names.
    async fn match_named(
        &mut self,
        sent: &RequestHistory<'_>,
        keys: &PathKeys,
        record: &Record,
        start: Option<&PathMatch>,
    ) -> Result<MatchTarget, EngineError> {
        let tails = self.path_tails();
        let finder = self.candidate_finder(keys, Some(&record.id));
        let named = NamedConversation {
            tails: &tails,
            record,
            wanted: self.incoming.branch,
        };
        let target = sent.match_by_name(&finder, &named, start).await?;
        match self.wait_for_unknown_step(sent, keys, &target).await? {
            true => sent.match_by_name(&finder, &named, start).await,
            false => Ok(target),
        }
    }

    /// The place where a request goes on that names none, and the branch that was active there. Its conversation is made if
    /// there is none.
    async fn match_unnamed(
        &self,
        sent: &RequestHistory<'_>,
        keys: &PathKeys,
    ) -> Result<(MatchTarget, BranchName), EngineError> {
        let tails = self.path_tails();
        let finder = self.candidate_finder(keys, None);
        match sent.match_by_prefix(&finder, &tails).await? {
            // The branch is known, so the record with the active one need not be read.
            Some(target) if target.branch.is_some() => Ok((target, BranchName::main())),
            Some(target) => {
                let store = self.engine.store();
                let record = store.load_conversation(self.owner, &target.conversation);
                let active = record.await?.active;
                Ok((target, active))
            }
            None => {
                let record = self.open_conversation(&self.fresh, keys).await?;
                let target = MatchTarget {
                    conversation: record.id,
                    known: 0,
                    base: None,
                    branch: Some(record.active.clone()),
                    has_answer: false,
                    matched: MatchKind::New,
                };
                Ok((target, record.active))
            }
        }
    }

    fn path_tails(&self) -> PathTails<'a> {
        PathTails {
            engine: self.engine,
            owner: self.owner,
        }
    }

    /// The place of the answer that the request names. One that is not recorded yet is waited for.
    async fn find_named_answer(
        &mut self,
        keys: &PathKeys,
    ) -> Result<Option<PathMatch>, EngineError> {
        let Some(id) = self.incoming.previous_response else {
            return Ok(None);
        };
        let conversation = self.incoming.conversation;
        let found = self.candidate_finder(keys, conversation);
        let found = found.find_response(id).await?;
        if found.is_some() {
            return Ok(found);
        }
        let name = keys.response_key(id);
        let may_be_named = |earlier: &ExchangeState| earlier.answer.is_none_or(|key| key == name);
        let mut has_waited = self.wait.wait_for_answers(may_be_named).await;
        let finder = self.candidate_finder(keys, conversation);
        // Nobody knows an answer's name before it came, so it may be that of any exchange.
        let awaited = AwaitedAnswers {
            questions: None,
            conversation: conversation.cloned(),
            answer: Some(name),
        };
        if let Some(shared) = SharedExchanges::of_engine(self.engine, self.owner) {
            // Looked for again even if nothing was pending: it may have been recorded since the first look.
            shared
                .wait_for_answers(&awaited, &finder, &mut self.wait)
                .await?;
            has_waited = true;
        }
        match has_waited {
            true => finder.find_response(id).await,
            false => Ok(None),
        }
    }

    /// Says what the request asks, and waits for the answers that its client holds.
    async fn wait_for_answers(
        &mut self,
        sent: &RequestHistory<'_>,
        keys: &PathKeys,
        record: Option<&Record>,
    ) -> Result<(), EngineError> {
        let partition = keys.partition_key();
        let conversation = record.map(|record| record.id.clone());
        // Said before waiting: who waits for what this request asks must not wait for what it waits for.
        self.wait.update_exchange(|exchange| {
            exchange.question = Some(Question {
                partition,
                history: sent.question_hash(),
            });
            exchange.conversation.clone_from(&conversation);
        });
        // A client that names its conversation may send the end of its history only, which has no hash in common.
        let is_named = conversation.is_some();
        let is_awaited = |earlier: &ExchangeState| match earlier.question {
            None => is_named || sent.has_answer(),
            Some(question) => {
                is_named && earlier.conversation == conversation
                    || question.partition == partition && sent.has_answer_to(question.history)
            }
        };
        self.wait.wait_for_answers(is_awaited).await;
        let shared = SharedExchanges::of_engine(self.engine, self.owner);
        if let Some((shared, awaited)) = shared.zip(AwaitedAnswers::in_history(sent, keys)) {
            // Of whatever conversation: the marks are found before the conversation is.
            let finder = self.candidate_finder(keys, None);
            shared
                .wait_for_answers(&awaited, &finder, &mut self.wait)
                .await?;
        }
        Ok(())
    }

    /// Waits for the other processes' answers in a conversation that a request names, if a step of the model in it was not
    /// found there: a client that sends the end of its history only has no hash in common. Returns whether to look again.
    async fn wait_for_unknown_step(
        &mut self,
        sent: &RequestHistory<'_>,
        keys: &PathKeys,
        target: &MatchTarget,
    ) -> Result<bool, EngineError> {
        let shared = SharedExchanges::of_engine(self.engine, self.owner);
        let Some(shared) = shared.filter(|_| sent.has_answer_after(target.known)) else {
            return Ok(false);
        };
        let awaited = AwaitedAnswers {
            questions: None,
            conversation: Some(target.conversation.clone()),
            answer: None,
        };
        let finder = self.candidate_finder(keys, Some(&target.conversation));
        shared
            .wait_for_answers(&awaited, &finder, &mut self.wait)
            .await?;
        // Also if nothing was pending: it may have been recorded since.
        Ok(true)
    }

    fn candidate_finder<'f>(
        &self,
        keys: &'f PathKeys,
        conversation: Option<&'f ConversationId>,
    ) -> CandidateFinder<'f>
    where
        'a: 'f,
    {
        let engine: &'a Engine = self.engine;
        CandidateFinder {
            store: engine.store().as_ref(),
            owner: self.owner,
            keys,
            conversation,
        }
    }

    /// A conversation's record; it is made if it is not there.
    async fn open_conversation(
        &self,
        id: &ConversationId,
        keys: &PathKeys,
    ) -> Result<Record, EngineError> {
        let store = self.engine.store();
        match store.load_conversation(self.owner, id).await {
            Err(StoreError::NotFound { .. }) => {}
            known => return Ok(known?),
        }
        let new = NewConversation {
            resource: self.incoming.resource.map(str::to_owned),
            metadata: keys.partition_metadata(),
            ..NewConversation::new(id.clone(), self.engine.now_ms())
        };
        match store.create_conversation(self.owner, new).await {
            Err(StoreError::AlreadyExists { .. }) => {
                Ok(store.load_conversation(self.owner, id).await?)
            }
            made => Ok(made?),
        }
    }

    /// The chain behind a recorded answer. If nothing is kept of it, one of the answer's own: what follows
    /// is then found by names only.
    async fn load_history_hash(&self, start: &PathMatch) -> Result<HistoryHasher, EngineError> {
        let (store, id) = (self.engine.store(), &start.conversation);
        let query = contexture_store::NodeQuery::Id(start.node);
        let nodes = store.find_nodes(self.owner, id, query).await?;
        let response = nodes.first().and_then(|node| node.response);
        let mut stored_hash = None;
        if let Some(response) = response {
            let record = store.load_response(self.owner, id, response).await?;
            stored_hash = RelayedCall::from_inputs(&record.inputs)
                .and_then(|call| call.history_hash(CHAIN_VERSION));
        }
        // A hash of its own: it never equals that of a full history, so nothing is matched wrongly.
        let own = || PathHash::derive("behind", &[start.node.as_bytes()]);
        Ok(HistoryHasher::resume(stored_hash.unwrap_or_else(own)))
    }
}
