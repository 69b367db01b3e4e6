//! An answer in rounds: calls of ours are answered and the model is asked again, until it says something that is the
//! client's.
//!
//! Each round is stored with what our tools gave, in one append, before the model is asked again.

use contexture::catalogue::Cost;
use contexture::ir::{FinishReason, Item, Transcript, Usage};
use contexture::models_http::{PassthroughRequest, PassthroughResponse, Upstream};
use contexture::wire::StreamEvent;
use contexture::{Ingested, InterceptedCall, Recorded};
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
use crate::proxy::server_tools::merge::{MergedEnding, merge_rounds};
use crate::state::App;
use crate::state::request_outcomes::OutcomeRecorder;

/// How often calls of ours are answered before the model must answer.
const MAX_ROUNDS: usize = 8;
/// What Responses has beside calls of functions whose results the client owes.
const CLIENT_CALL_TYPES: [&str; 5] = [
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "apply_patch_call",
    "mcp_approval_request",
];

/// An answer that began, how to ask again, and where the client waits.
#[derive(Debug)]
pub(crate) struct ToolLoopStart {
    pub(crate) response: PassthroughResponse,
    pub(crate) upstream: Upstream,
    /// What was asked; only its body is another in each round.
    pub(crate) request: PassthroughRequest,
    pub(crate) client: ClientChannel,
}

/// The rounds of one answer.
pub(crate) struct ToolLoop<'a> {
    pub(crate) app: &'a App,
    pub(crate) outcome: &'a OutcomeRecorder,
    pub(crate) ingested: Ingested,
    /// The model that was asked.
    pub(crate) model: Option<String>,
    pub(crate) priced: PricedRequest,
    pub(crate) plan: RewritePlan,
    /// Told what comes, as it comes.
    pub(crate) publish: &'a mut (dyn FnMut(Vec<StreamEvent>) + Send),
}

/// What was kept of the rounds so far.
#[derive(Default)]
struct StoredRounds {
    documents: Vec<Value>,
    usage: Usage,
    cost: Option<Cost>,
    recorded: Option<Recorded>,
}

/// A round that was read.
struct RoundAnswer {
    answer: Transcript,
    server_calls: Vec<InterceptedCall>,
}

impl ToolLoop<'_> {
    /// Goes through them, and tells what became of it. Gives back the request if nothing came that could be kept.
    pub(crate) async fn run_rounds(
        mut self,
        exchange: ToolLoopStart,
        mut sent: RewrittenRequest,
    ) -> Option<Ingested> {
        let ToolLoopStart {
            response: mut passed,
            upstream: host,
            request,
            client: back,
        } = exchange;
        let (format, tools) = (self.plan.format(), self.plan.server_tools().clone());
        let mut showing = ClientResponse::begin_response(format, &tools, &passed, back);
        let mut kept = StoredRounds::default();
        loop {
            let came = showing.capture_round(format, passed, self.publish).await;
            let came = came.and_then(|came| Ok((self.parse_round(&came)?, came)));
            let (answer, came) = match came {
                Ok(came) => came,
                Err(miss) => {
                    count_not_stored(self.outcome, &miss);
                    showing.finish_response(None).await;
                    break;
                }
            };
            match came.end {
                RoundEnd::Broken => showing.abort_response().await,
                RoundEnd::Short => showing.finish_response(None).await,
                RoundEnd::Whole => {}
            }
            let Some(answer) = answer else {
                // Nothing came that could be kept.
                showing.finish_response(None).await;
                if kept.recorded.is_none() {
                    return Some(self.ingested);
                }
                break;
            };
            kept.documents.push(came.document_value());
            let server_calls = tools.answer_calls(&self.ingested.chat, &answer.items).await;
            let heard = RoundAnswer {
                answer,
                server_calls,
            };
            let goes_on = came.end == RoundEnd::Whole && heard.calls_only_server_tools();
            let is_changed = goes_on || kept.documents.len() > 1 || !heard.server_calls.is_empty();
            let ending = MergedEnding::of_round(goes_on);
            let whole = |kept: &StoredRounds| {
                is_changed.then(|| merge_rounds(format, &kept.documents, &tools, ending))
            };
            let rounds = kept.documents.len();
            let is_last = !goes_on || rounds > MAX_ROUNDS || showing.is_client_gone();
            if is_last {
                showing.finish_response(whole(&kept).as_ref()).await;
            }
            if let Err(miss) = self.store_round(&heard, &sent, &mut kept).await {
                count_not_stored(self.outcome, &miss);
                showing.finish_response(whole(&kept).as_ref()).await;
                break;
            }
            if is_last {
                break;
            }
            let round = match rounds {
                MAX_ROUNDS => ToolRound::Last,
                _ => ToolRound::Later,
            };
            let next = self.plan.next_round_request(&mut self.ingested, round);
            sent = match next.await {
                Ok(sent) => sent,
                Err(miss) => {
                    count_failed_open(self.outcome, &miss);
                    showing.finish_response(whole(&kept).as_ref()).await;
                    break;
                }
            };
            self.priced.at_ms = now_ms(self.app.engine());
            let asked = host.send(PassthroughRequest {
                body: sent.body.clone(),
                ..request.clone()
            });
            let asked = tokio::select! {
                asked = asked => asked,
                () = showing.wait_for_disconnect() => break,
            };
            passed = match asked {
                Ok(passed) if passed.status.is_success() => passed,
                failed => {
                    showing
                        .respond_with_failure(failed.map_err(ProxyRefusal::from))
                        .await;
                    break;
                }
            };
            showing.begin_next_round().await;
        }
        self.outcome.update_outcome(|document| {
            if let Some(recorded) = &kept.recorded {
                document.set_answer(recorded, kept.cost.clone());
            }
            document.done = true;
        });
        None
    }

    fn parse_round(&self, came: &RoundResponse) -> Result<Option<Transcript>, ProxyFailure> {
        let Some(document) = &came.document else {
            return Ok(None);
        };
        let answer = parse_answer::parse_answer(self.plan.format(), document)?;
        Ok(answer.map(|answer| Transcript {
            // Not every answer says whose it is.
            model: answer.model.or_else(|| self.model.clone()),
            ..answer
        }))
    }

    /// Stores a round.
    async fn store_round(
        &mut self,
        heard: &RoundAnswer,
        sent: &RewrittenRequest,
        kept: &mut StoredRounds,
    ) -> Result<(), ProxyFailure> {
        let RoundAnswer {
            answer,
            server_calls: own,
        } = heard;
        let round = match kept.recorded {
            None => ToolRound::First,
            Some(_) => ToolRound::Later,
        };
        let said = PendingAnswer {
            priced: Some(&self.priced),
            sent: Some(sent),
            round,
            transcript: answer,
            server_calls: own,
        };
        let mut recorded =
            store_answer::store_answer(self.app, self.outcome, &mut self.ingested, said).await?;
        kept.add_totals(&mut recorded, self.ingested.answer_cost(answer));
        kept.recorded = Some(recorded);
        Ok(())
    }
}

impl RoundAnswer {
    /// Whether the model waits for our tools and for nothing else.
    fn calls_only_server_tools(&self) -> bool {
        let finish = self
            .answer
            .response
            .as_ref()
            .and_then(|info| info.finish.as_ref());
        let others = |(place, item): (usize, &Item)| match item {
            Item::FunctionCall(_) => !self.server_calls.iter().any(|own| own.place == place),
            Item::Extension(other) => CLIENT_CALL_TYPES.contains(&other.kind.as_str()),
            _ => false,
        };
        let mut items = self.answer.items.iter().enumerate();
        !self.server_calls.is_empty()
            && self.server_calls.iter().all(|own| own.output.is_some())
            && matches!(finish, Some(FinishReason::ToolCalls | FinishReason::Stop))
            && !items.any(others)
    }
}

impl StoredRounds {
    /// Adds up what the rounds used and cost.
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
                Some(sum) => sum.pico_dollars = sum.pico_dollars.saturating_add(cost.pico_dollars),
                None => self.cost = Some(cost),
            }
        }
    }
}
