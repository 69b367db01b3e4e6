//! Storing the answer to a request that was ingested.

use contexture_catalogue::Cost;
use contexture_ir::{
    Audience, CHAIN_VERSION, CallId, FunctionCallOutput, HistoryHasher, Item, MessageId, NodeId,
    Origin, ResponseId, Transcript,
};
use contexture_layers::ObservedItems;
use contexture_store::{
    AppendPoint, AppendRequest, CallRecord, KeyScope, NewItem, OnMoved, PathEnd, PathMark,
    PutEntry, ResponseRecord, ResponseStatus,
};

use super::compare_tail::is_incomplete;
use super::keys::AnswerStatus;
use super::passthrough::RelayedCall;
use super::types::Ingested;
use crate::append::{new_item, state_node};
use crate::call::{CompiledCall, SentCall, response_record, response_status};
use crate::call_bodies::{EncodedBody, encode_body, unless_redacted};
use crate::error::EngineError;
use crate::handle::{Conversation, answer_cost};
use crate::hooks::append_with_retries;
use crate::record::{AnswerState, Recorded, report_recorded, response_message_id};

/// A call in an answer that is answered on the way: the client sees neither the call nor its output.
#[derive(Clone, Debug, PartialEq)]
pub struct InterceptedCall {
    /// Its place among the answer's items.
    pub position: usize,
    /// What it gave; `None` if nobody knows, because the call did not come whole.
    pub output: Option<FunctionCallOutput>,
}

/// Options for storing an answer; see [`Ingested::record_with`].
#[derive(Clone, Debug, Default)]
pub struct AnswerOptions<'a> {
    /// What was sent in the place of what the client sent: its plan holds for the calls to come, and what it was
    /// compiled from is kept with the answer. One that stands behind a compaction of its own asks for
    /// [`Ingested::head`] to be that of the compaction.
    pub call: Option<&'a CompiledCall>,
    /// The calls in it that the client knows nothing of: their outputs are stored with it, for models only.
    pub intercepted: &'a [InterceptedCall],
    /// Values outside the tree, in the same transaction; see [`AppendRequest::entries`].
    pub entries: Vec<(KeyScope, PutEntry)>,
    /// What is recorded of the exchange, in the same transaction. Its conversation and its response are set.
    pub exchange: Option<CallRecord>,
    /// The request's body, to be kept with the exchange; see [`Ingested::encode_body`].
    pub body: Option<EncodedBody>,
}

/// An answer to be stored.
#[derive(Clone, Copy)]
struct IngestedAnswer<'a> {
    answer: &'a Transcript,
    own: &'a [InterceptedCall],
}

impl<'a> IngestedAnswer<'a> {
    fn is_intercepted(&self, place: usize) -> bool {
        self.own.iter().any(|own| own.position == place)
    }

    /// What the client sees of it.
    fn visible_items(&self) -> impl Iterator<Item = &'a Item> {
        let items = self.answer.items.iter().enumerate();
        items
            .filter(|(place, _)| !self.is_intercepted(*place))
            .map(|(_, item)| item)
    }

    fn is_incomplete(&self) -> bool {
        self.answer.items.iter().any(is_incomplete)
    }
}

impl Ingested {
    /// Returns what an answer with this usage costs, as far as the catalogue has prices; `None` for an unknown
    /// model.
    #[must_use]
    pub fn answer_cost(&self, answer: &Transcript) -> Option<Cost> {
        answer_cost(self.chat.engine(), answer)
    }

    /// Stores the answer behind what was sent, with what was reported of it: a transcript lifted from the
    /// provider's response, whole or as far as it came.
    ///
    /// If the branch has moved since, it is kept on a branch of its own. The same answer again is stored
    /// once. An answer that was cut off is kept as it is: the client goes on from it whether it sends a
    /// copy of all that came, of less, or of nothing.
    ///
    /// # Errors
    /// The store's.
    pub async fn record(&self, answer: &Transcript) -> Result<Recorded, EngineError> {
        self.store_answer(answer, AnswerOptions::default()).await
    }

    /// As [`Self::record`], with more in the same transaction. After that [`Self::chat`] and [`Self::head`] are behind
    /// it: what the model says next is stored there, and the client goes on from whatever of it is the last, with a
    /// history that has neither calls of ours nor their outputs.
    ///
    /// # Errors
    /// The store's; then nothing is stored. One that is [about a stale state](EngineError::is_stale_state) where an entry
    /// is not as its write expects.
    pub async fn record_with(
        &mut self,
        answer: &Transcript,
        options: AnswerOptions<'_>,
    ) -> Result<Recorded, EngineError> {
        let (own, call) = (options.intercepted, options.call);
        let recorded = self.store_answer(answer, options).await?;
        // With calls of ours in it, the model goes on.
        let is_over = own.is_empty() && !recorded.replayed && !recorded.on_sibling_branch;
        if let Some(call) = call.filter(|_| is_over) {
            call.begin_work_after_answer(&self.chat);
        }
        let ingested_answer = IngestedAnswer { answer, own };
        ingested_answer
            .visible_items()
            .for_each(|item| self.trail.chain.push_item(item));
        self.chat.set_branch(recorded.branch.clone());
        self.head = recorded.head;
        Ok(recorded)
    }

    /// Encodes the body of this request, to be kept with its answer as the one of this call; `None` if bodies are not kept, or
    /// this one is too large or has something that was redacted.
    ///
    /// # Errors
    /// The store's.
    pub async fn encode_body(
        &self,
        call: CallId,
        body: &str,
    ) -> Result<Option<EncodedBody>, EngineError> {
        encode_body(&self.chat, self.head, call, body).await
    }

    /// The id that an answer with these calls of ours is stored under.
    #[must_use]
    pub fn response_id(&self, answer: &Transcript, own: &[InterceptedCall]) -> ResponseId {
        ResponseId::from_bytes(*self.answer_key(IngestedAnswer { answer, own }).as_bytes())
    }

    async fn store_answer(
        &self,
        answer: &Transcript,
        options: AnswerOptions<'_>,
    ) -> Result<Recorded, EngineError> {
        let AnswerOptions {
            call,
            intercepted: own,
            entries,
            exchange,
            body,
        } = options;
        let ingested_answer = IngestedAnswer { answer, own };
        let chat = &self.chat;
        let info = answer.response.clone().unwrap_or_default();
        let key = self.answer_key(ingested_answer);
        let id = ResponseId::from_bytes(*key.as_bytes());
        self.name_answer(info.id.as_deref().unwrap_or_default());
        // The key is derived from what is answered and the words of the answer: the same answer again has it too.
        let message = response_message_id(chat, self.head, key).await?;
        let mut items = answer_nodes(chat, ingested_answer, key)?;
        for item in &mut items {
            item.message_id = Some(message.clone());
            item.response = Some(id);
        }
        let nodes: Vec<NodeId> = items.iter().map(|item| item.id).collect();
        // After the node ids were listed: outputs of our own calls are no part of the answer.
        items.extend(intercepted_outputs(chat, ingested_answer, key, &message));
        let last = items.last().map(|item| item.id);
        let mut recorded = Recorded {
            response: id,
            head: self.head,
            branch: chat.branch(),
            on_sibling_branch: false,
            nodes: Vec::new(),
            message,
            replayed: false,
            usage: info.usage.clone(),
            finish: info.finish.clone(),
            losses: Vec::new(),
        };
        let at = AppendPoint::Head {
            branch: chat.branch(),
            head: self.head,
        };
        let mut request = AppendRequest::new(at, items, chat.engine().now_ms());
        request.on_moved = OnMoved::Sibling;
        request.entries = entries;
        request.call = exchange.map(|exchange| Box::new(stored_exchange(chat, id, exchange)));
        if let (Some(call), Some(body)) = (&mut request.call, body) {
            call.body = unless_redacted(chat, body).await?;
        }
        request.paths = self.path_marks(ingested_answer, info.id.as_deref(), last);
        // A compiled call can be replayed from its record; a request that was passed through has no plan of ours.
        let call = &call.map(|call| SentCall::from_call(chat.engine(), call));
        let response = match call {
            Some(call) => response_record(chat.engine(), id, call, &info),
            None => self.response_record(id, ingested_answer),
        };
        request.response = Some(ResponseRecord {
            // An item that was cut off tells more than the finish reason, which may be missing with it.
            status: match ingested_answer.is_incomplete() {
                true => ResponseStatus::Incomplete,
                false => response.status,
            },
            ..response
        });
        let state = match call {
            Some(call) => Some(AnswerState::new(chat, call).await?),
            None => None,
        };
        if let Some(state) = &state {
            request.patch = state.patch.clone();
        }
        let seen = ObservedItems {
            items: &answer.items,
            nodes: &nodes,
            response: Some(id),
            usage: recorded.usage.as_ref(),
        };
        let base = self
            .head
            .map_or(PathEnd::Branch(chat.branch()), PathEnd::Node);
        // With calls of ours in it, the model goes on: the client has no answer yet.
        let mark = self.trail.mark.as_ref().filter(|_| own.is_empty());
        request.exchange = mark.and_then(|mark| mark.end());
        let appended = append_with_retries(chat, request, seen, base).await?;
        mark.inspect(|mark| mark.set_ended());
        recorded.apply_append(appended);
        if let Some(state) = &state {
            state.mark_stored(chat, &recorded);
        }
        if !recorded.replayed {
            report_recorded(chat, call.as_ref(), &recorded).await;
        }
        Ok(recorded)
    }

    /// Tells the exchange which answer it gets: whoever looks for an answer of another name need not wait for this one.
    fn name_answer(&self, id: &str) {
        if let Some(exchange) = &self.trail.exchange {
            let name = self.trail.keys.response_key(id);
            exchange.update_state(|exchange| exchange.answer = Some(name));
        }
    }

    /// The key of the answer and its nodes: who answers what, and in which words. One that the model goes on from
    /// is of its branch.
    fn answer_key(&self, ingested_answer: IngestedAnswer<'_>) -> NodeId {
        let id = ingested_answer.answer.response.as_ref();
        let id = id.and_then(|info| info.id.as_deref());
        let head = self.head.as_ref().map_or(&[][..], |head| head.as_bytes());
        let items: Vec<String> = ingested_answer
            .answer
            .items
            .iter()
            .map(Item::to_json)
            .collect();
        let mut parts = vec![head, id.unwrap_or_default().as_bytes()];
        parts.extend(items.iter().map(String::as_bytes));
        // The next round appends behind this answer, so it must not be shared with another branch.
        let branch = (!ingested_answer.own.is_empty()).then(|| self.chat.branch().to_string());
        parts.extend(branch.iter().map(String::as_bytes));
        NodeId::derive("answer", &parts)
    }

    /// What a client's history is that ends here, by all that it may have got of it.
    fn path_marks(
        &self,
        ingested_answer: IngestedAnswer<'_>,
        id: Option<&str>,
        last: Option<NodeId>,
    ) -> Vec<PathMark> {
        let trail = &self.trail;
        let chain = self.history_with_answer(ingested_answer);
        let mut hashes = Vec::new();
        // Who got nothing asks again, and is answered behind what the calls gave.
        if chain.current_hash() != trail.sent_hash || !ingested_answer.own.is_empty() {
            hashes.push(
                trail
                    .keys
                    .history_key(AnswerStatus::Answered, chain.current_hash()),
            );
        }
        // A client that got nothing of a cut answer repeats its request as it was; it must be found by that too.
        if ingested_answer.is_incomplete() {
            let status = match trail.has_answer {
                true => AnswerStatus::Answered,
                false => AnswerStatus::Incomplete,
            };
            hashes.push(trail.keys.history_key(status, trail.sent_hash));
        }
        hashes.extend(id.map(|id| trail.keys.response_key(id)));
        let mark = |(hash, node)| PathMark {
            version: CHAIN_VERSION,
            hash,
            node,
        };
        let marks = hashes.into_iter().zip(last.into_iter().cycle());
        marks.map(mark).collect()
    }

    /// The client's history with the answer.
    fn history_with_answer(&self, ingested_answer: IngestedAnswer<'_>) -> HistoryHasher {
        let mut chain = self.trail.chain.clone();
        ingested_answer
            .visible_items()
            .for_each(|item| chain.push_item(item));
        chain
    }

    fn response_record(
        &self,
        id: ResponseId,
        ingested_answer: IngestedAnswer<'_>,
    ) -> ResponseRecord {
        let answer = ingested_answer.answer;
        let engine = self.chat.engine();
        let info = answer.response.clone().unwrap_or_default();
        let status = response_status(&info);
        let cost = self.answer_cost(answer).map(|cost| cost.pico_dollars);
        let history = self.history_with_answer(ingested_answer);
        let call = RelayedCall {
            path: history.current_hash().to_string(),
            version: CHAIN_VERSION,
            response: info.id,
            finish: RelayedCall::finish_text(info.finish.as_ref()),
            pico_dollars: cost.and_then(|cost| u64::try_from(cost).ok()),
            request: self.trail.request.clone(),
        };
        let usage = info.usage.as_ref();
        let usage = usage.and_then(|usage| serde_json::to_string(usage).ok());
        ResponseRecord {
            status,
            model: answer.model.clone(),
            usage: usage.map(Into::into),
            inputs: call.into_inputs(engine.store().limits().response_bytes / 2),
            ..ResponseRecord::new(id, self.head, engine.now_ms())
        }
    }
}

/// What is recorded of the exchange, with where its answer is stored.
fn stored_exchange(chat: &Conversation, id: ResponseId, exchange: CallRecord) -> CallRecord {
    CallRecord {
        conversation: Some(chat.id().clone()),
        response: Some(id),
        ..exchange
    }
}

/// The nodes of an answer; one without a word has its cost.
fn answer_nodes(
    chat: &Conversation,
    ingested_answer: IngestedAnswer<'_>,
    key: NodeId,
) -> Result<Vec<NewItem>, EngineError> {
    let node = |index| NodeId::of_operation(key.as_bytes(), index);
    let items = &ingested_answer.answer.items;
    if items.is_empty() {
        return Ok(vec![state_node(node(0), chat.engine().now_ms())?]);
    }
    let items = items.iter().enumerate();
    let items = items.map(|(index, item)| NewItem {
        origin: Origin::Model,
        audience: match ingested_answer.is_intercepted(index) {
            true => Audience::MODEL,
            false => Audience::ALL,
        },
        ..new_item(chat, node(index), item, None)
    });
    Ok(items.collect())
}

/// The outputs of the calls that were answered, behind the answer.
fn intercepted_outputs(
    chat: &Conversation,
    ingested_answer: IngestedAnswer<'_>,
    key: NodeId,
    message: &MessageId,
) -> Vec<NewItem> {
    let node = |index| NodeId::of_operation(key.as_bytes(), index);
    let own = ingested_answer
        .own
        .iter()
        .zip(ingested_answer.answer.items.len()..);
    let output = |(own, index): (&InterceptedCall, usize)| {
        let output = Item::FunctionCallOutput(own.output.clone()?);
        Some(NewItem {
            answers: Some(node(own.position)),
            message_id: Some(message.clone()),
            audience: Audience::MODEL,
            ..new_item(chat, node(index), &output, None)
        })
    };
    own.filter_map(output).collect()
}
