//! The tool loop: calls of server tools are answered and the model is asked again, until it says something that is the
//! client's.
//!
//! Each round is stored with the outputs of the tools, in one append, before the model is asked again: what was paid for is
//! never lost, and a later request finds the calls in its history.

use contexture::Format;
use contexture::catalogue::Cost;
use contexture::engine::{Ingested, InterceptedCall, Recorded};
use contexture::ir::{FinishReason, Item, Transcript, Usage};
use contexture::models_http::{PassthroughRequest, PassthroughResponse, Upstream};
use contexture::wire::StreamEvent;
use contexture::wire::proxy::MergedEnding;
use serde_json::Value;

use crate::proxy::capture::parse_answer;
use crate::proxy::capture::store_answer::{self, PendingAnswer};
use crate::proxy::failure::ProxyFailure;
use crate::proxy::failure::{count_failed_open, count_not_stored};
use crate::proxy::refusal::ProxyRefusal;
use crate::proxy::rewrite::{PricedRequest, RewritePlan, RewrittenRequest, ToolRound, now_ms};
use crate::proxy::server_tools::client_response::{
    ClientChannel, ClientResponse, RoundEnd, RoundResponse,
};
use crate::proxy::server_tools::merge::merge_rounds;
use crate::proxy::server_tools::tools::ServerTools;
use crate::state::App;
use crate::state::call_log::{CallRecorder, SentBody};
use crate::state::request_outcomes::OutcomeRecorder;

/// Rounds of server tools after which the model must answer without calling any.
const MAX_ROUNDS: usize = 8;
/// Item types of Responses, functions apart, whose results the client has to send.
const CLIENT_CALL_TYPES: [&str; 5] = [
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "apply_patch_call",
    "mcp_approval_request",
];

/// The start of a tool loop: an answer that began, how to ask again, and where the client waits.
#[derive(Debug)]
pub(crate) struct ToolLoopStart {
    pub(crate) response: PassthroughResponse,
    pub(crate) upstream: Upstream,
    /// The client's request; each round sends it with another body.
    pub(crate) request: PassthroughRequest,
    pub(crate) client: ClientChannel,
}

/// The loop that answers one request in rounds.
pub(crate) struct ToolLoop<'a> {
    pub(crate) app: &'a App,
    pub(crate) outcome: &'a OutcomeRecorder,
    /// Record of the round under way, which is an exchange of its own.
    pub(crate) call: CallRecorder,
    pub(crate) ingested: Ingested,
    /// The model that was asked.
    pub(crate) model: Option<String>,
    pub(crate) priced: PricedRequest,
    pub(crate) plan: RewritePlan,
    /// Publishes the events of an answer as they come.
    pub(crate) publish: &'a mut (dyn FnMut(Vec<StreamEvent>) + Send),
}

/// What is stored of the rounds so far.
#[derive(Default)]
struct StoredRounds {
    documents: Vec<Value>,
    usage: Usage,
    cost: Option<Cost>,
    recorded: Option<Recorded>,
}

/// A round that was parsed.
struct RoundAnswer {
    answer: Transcript,
    server_calls: Vec<InterceptedCall>,
    /// Whether the model waits for the outputs of server tools, and for nothing else.
    continues: bool,
}

/// What the capture of a round gave.
enum CapturedRound {
    Answer(RoundAnswer),
    /// Nothing came that could be stored.
    Empty,
    /// It could not be read; why is recorded.
    Failed,
}

/// Whether a request got an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoopEnd {
    Answered,
    Unanswered,
}

impl ToolLoop<'_> {
    /// Answers the client in rounds, and records the outcome. Returns the ingested request if nothing came that could be
    /// stored.
    pub(crate) async fn run_rounds(
        mut self,
        start: ToolLoopStart,
        sent: RewrittenRequest,
    ) -> Option<Ingested> {
        let ToolLoopStart {
            response,
            upstream,
            request,
            client,
        } = start;
        let (format, tools) = (self.plan.format(), self.plan.server_tools().clone());
        let mut client = ClientResponse::begin_response(format, &tools, &response, client);
        let mut stored = StoredRounds::default();
        let end = self
            .answer_in_rounds(
                response,
                (&upstream, &request),
                sent,
                &mut client,
                &mut stored,
            )
            .await;
        if end == LoopEnd::Unanswered {
            return Some(self.ingested);
        }
        self.outcome.update_outcome(|document| {
            if let Some(recorded) = &stored.recorded {
                document.set_answer(recorded, stored.cost.clone());
            }
            document.done = true;
        });
        None
    }

    async fn answer_in_rounds(
        &mut self,
        mut answer: PassthroughResponse,
        (upstream, request): (&Upstream, &PassthroughRequest),
        mut sent: RewrittenRequest,
        client: &mut ClientResponse,
        stored: &mut StoredRounds,
    ) -> LoopEnd {
        let (format, tools) = (self.plan.format(), self.plan.server_tools().clone());
        loop {
            let round = match self.capture_round(answer, &tools, client, stored).await {
                CapturedRound::Answer(round) => round,
                CapturedRound::Empty if stored.recorded.is_none() => return LoopEnd::Unanswered,
                CapturedRound::Empty | CapturedRound::Failed => return LoopEnd::Answered,
            };
            // Counted by documents that came, so the client's own request is the first round.
            let count = stored.documents.len();
            let is_last = !round.continues || count > MAX_ROUNDS || client.is_client_gone();
            let merged = |stored: &StoredRounds| stored.merge_for_client(format, &tools, &round);
            // The client gets the last round before it is stored: storing must not add to its latency.
            if is_last {
                client.finish_response(merged(stored).as_ref()).await;
            }
            if let Err(failure) = self.store_round(&round, &sent, stored).await {
                count_not_stored(self.outcome, &failure);
                client.finish_response(merged(stored).as_ref()).await;
                return LoopEnd::Answered;
            }
            if is_last {
                return LoopEnd::Answered;
            }
            // In the last round the model may call nothing, so that it answers with what it has.
            let kind = match count {
                MAX_ROUNDS => ToolRound::Last,
                _ => ToolRound::Later,
            };
            sent = match self.next_round_request(kind).await {
                Ok(sent) => sent,
                Err(failure) => {
                    count_failed_open(self.outcome, &failure);
                    client.finish_response(merged(stored).as_ref()).await;
                    return LoopEnd::Answered;
                }
            };
            // A provider's cache expires with time, and tools may have taken long.
            self.priced.at_ms = now_ms(self.app.engine());
            let request = PassthroughRequest {
                body: sent.body.clone(),
                ..request.clone()
            };
            self.call = self.call.begin_round();
            self.call.set_band(Some(&sent.band()));
            self.call.count_attempt();
            answer = match send_round(upstream, request, client).await {
                Some(answer) => {
                    self.call
                        .set_answer_head(answer.status, SentBody::Rewritten);
                    answer
                }
                None => return LoopEnd::Answered,
            };
            // The held end of this round is dropped only now: had no further request been possible,
            // it would have ended the answer.
            client.begin_next_round().await;
        }
    }

    /// Makes the request of the next round, where requests are rewritten: the whole conversation is compiled.
    async fn next_round_request(
        &mut self,
        kind: ToolRound,
    ) -> Result<RewrittenRequest, ProxyFailure> {
        let (mut plan, mut ingested) = (self.plan.clone(), self.ingested.clone());
        let owner = ingested.chat.owner().clone();
        let _permit = self.app.stored_work().acquire_permit(Some(&owner)).await;
        let work = async move {
            let next = plan.next_round_request(&mut ingested, kind).await;
            (plan, ingested, next)
        };
        let work = self.app.rewrite_pool().run(&owner, |_| Box::pin(work));
        let next;
        (self.plan, self.ingested, next) = work.await;
        next
    }

    /// Reads a round while the client gets its part, and answers the calls of server tools in it. Unless it gives an answer,
    /// the client's response is over.
    async fn capture_round(
        &mut self,
        answer: PassthroughResponse,
        tools: &ServerTools,
        client: &mut ClientResponse,
        stored: &mut StoredRounds,
    ) -> CapturedRound {
        let captured = client
            .capture_round(self.plan.format(), answer, &self.call, self.publish)
            .await;
        let parsed = captured.and_then(|response| Ok((self.parse_round(&response)?, response)));
        let (answer, response) = match parsed {
            Ok(parsed) => parsed,
            Err(failure) => {
                count_not_stored(self.outcome, &failure);
                client.finish_response(None).await;
                return CapturedRound::Failed;
            }
        };
        match response.end {
            RoundEnd::Broken => client.abort_response().await,
            RoundEnd::Short => client.finish_response(None).await,
            RoundEnd::Whole => {}
        }
        if response.end != RoundEnd::Whole {
            self.call.set_cut_off();
        }
        let Some(answer) = answer else {
            client.finish_response(None).await;
            return CapturedRound::Empty;
        };
        stored.documents.push(response.document_value());
        // Answered even if the client has left: the outputs are stored with the calls.
        let server_calls = tools.answer_calls(&self.ingested.chat, &answer.items).await;
        let continues =
            response.end == RoundEnd::Whole && calls_only_server_tools(&answer, &server_calls);
        CapturedRound::Answer(RoundAnswer {
            answer,
            server_calls,
            continues,
        })
    }

    fn parse_round(&self, response: &RoundResponse) -> Result<Option<Transcript>, ProxyFailure> {
        let Some(document) = &response.document else {
            return Ok(None);
        };
        let answer = parse_answer::parse_answer(self.plan.format(), document)?;
        Ok(answer.map(|answer| Transcript {
            // Not every provider names the model in its answer.
            model: answer.model.or_else(|| self.model.clone()),
            ..answer
        }))
    }

    /// Stores a round with the outputs of its server tools, in one append.
    async fn store_round(
        &mut self,
        round: &RoundAnswer,
        sent: &RewrittenRequest,
        stored: &mut StoredRounds,
    ) -> Result<(), ProxyFailure> {
        let RoundAnswer {
            answer,
            server_calls,
            ..
        } = round;
        // Only the first round answers the client's own request, which is booked once.
        let kind = match stored.recorded {
            None => ToolRound::First,
            Some(_) => ToolRound::Later,
        };
        let pending = PendingAnswer {
            priced: Some(&self.priced),
            sent: Some(sent),
            round: kind,
            transcript: answer,
            server_calls,
        };
        let mut recorded =
            store_answer::store_answer(self.app, &self.call, &mut self.ingested, pending).await?;
        // The client made one request, so its outcome shows the usage of all rounds.
        stored.add_totals(&mut recorded, self.ingested.answer_cost(answer));
        stored.recorded = Some(recorded);
        Ok(())
    }
}

/// Sends the request of a later round. `None`: the client is gone, or has been answered with the failure.
async fn send_round(
    upstream: &Upstream,
    request: PassthroughRequest,
    client: &mut ClientResponse,
) -> Option<PassthroughResponse> {
    let sending = upstream.send(request);
    // A model's work is paid for, so a request is given up as soon as nobody waits for its answer.
    let answer = tokio::select! {
        answer = sending => answer,
        () = client.wait_for_disconnect() => return None,
    };
    match answer {
        Ok(answer) if answer.status.is_success() => Some(answer),
        failed => {
            client
                .respond_with_failure(failed.map_err(ProxyRefusal::from))
                .await;
            None
        }
    }
}

/// Whether a model waits for server tools and for nothing else.
fn calls_only_server_tools(answer: &Transcript, server_calls: &[InterceptedCall]) -> bool {
    let finish = answer
        .response
        .as_ref()
        .and_then(|info| info.finish.as_ref());
    // A call of the client's tools in the same answer: the client must run it before the model can go on.
    let is_client_call = |(place, item): (usize, &Item)| match item {
        Item::FunctionCall(_) => !server_calls.iter().any(|own| own.position == place),
        Item::Extension(other) => CLIENT_CALL_TYPES.contains(&other.kind.as_str()),
        _ => false,
    };
    let mut items = answer.items.iter().enumerate();
    // A call without an output was cut off, and some providers finish with `stop` although there
    // are calls.
    !server_calls.is_empty()
        && server_calls.iter().all(|own| own.output.is_some())
        && matches!(finish, Some(FinishReason::ToolCalls | FinishReason::Stop))
        && !items.any(is_client_call)
}

impl StoredRounds {
    /// Merges the rounds into one answer; `None` if the client's answer is the provider's, unchanged.
    fn merge_for_client(
        &self,
        format: Format,
        tools: &ServerTools,
        round: &RoundAnswer,
    ) -> Option<Value> {
        let is_changed =
            round.continues || self.documents.len() > 1 || !round.server_calls.is_empty();
        let ending = match round.continues {
            true => MergedEnding::Early,
            false => MergedEnding::LastRound,
        };
        is_changed.then(|| merge_rounds(format, &self.documents, tools, ending))
    }

    /// Adds a round's usage and cost to the sums, and puts the sums in its place.
    fn add_totals(&mut self, recorded: &mut Recorded, cost: Option<Cost>) {
        let more = recorded.usage.take().unwrap_or_default();
        let sum = &mut self.usage;
        for (sum, more) in [
            (&mut sum.input_tokens, more.input_tokens),
            (&mut sum.output_tokens, more.output_tokens),
            (&mut sum.cache_read_tokens, more.cache_read_tokens),
        ] {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0).saturating_add(more));
            }
        }
        recorded.usage = Some(sum.clone());
        if let Some(cost) = cost {
            match &mut self.cost {
                Some(sum) => *sum += &cost,
                None => self.cost = Some(cost),
            }
        }
    }
}
