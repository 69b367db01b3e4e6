//! The model step: compile a call, ask the model, let layers judge the answer, store it.
//!
//! Not here: running the calls of the answer (`tool_step`), and retry policies (`crate::tasks`).

use std::sync::Arc;

use contexture_engine::{
    CallTiming, CompileAttempt, CompiledCall, EngineError, RecordOptions, Recorded,
};
use contexture_ir::{Audience, Item, Part};
use contexture_layers::AnswerVerdict;
use contexture_layers::builtin::Guardrails;
use contexture_models::{ModelError, ModelRequest, Retryable};
use contexture_store::StateChange;
use contexture_telemetry::{ModelCall, record_call_cost};
use contexture_wire::{StreamEvent, TooLong, lift};
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

use crate::agent::RunEventKind;
use crate::context::LastStep;
use crate::error::RunError;
use crate::execution::{
    LiveRun, NextStep, UnansweredCall, UnansweredCalls, json_bytes, model_call_usage,
};
use crate::record::{RUN_STATE_VERSION, node_id, stop_key};
use crate::steps::model_request::{compile_call, step_target};
use crate::tasks::Cancelled;

/// Result of streaming one model call.
enum StreamOutcome {
    Complete(String),
    /// The part that arrived before the run was aborted.
    Cancelled(String, Cancelled),
    Failed(ModelError),
}

impl StreamOutcome {
    /// Returns the failure kind for telemetry, if the call failed.
    const fn failure_kind(&self) -> Option<&'static str> {
        match self {
            Self::Complete(_) => None,
            Self::Cancelled(..) => Some("cancelled"),
            Self::Failed(error) => Some(error.kind()),
        }
    }
}

/// What became of asking the model.
enum AskOutcome {
    Answered(ModelAnswer),
    /// It refused the call as too long, before any part of an answer; the exchange is recorded.
    TooLong {
        error: ModelError,
        refused: TooLong,
    },
}

/// Returns what a failure says of the length of a call; `None` if it is about something else.
const fn too_long(error: &ModelError) -> Option<TooLong> {
    match error {
        ModelError::Refused { too_long, .. } => *too_long,
        _ => None,
    }
}

/// An answer, and how the exchange went that gave it.
struct ModelAnswer {
    body: String,
    timing: CallTiming,
    /// The span of the call. What it cost is known once the answer is recorded.
    span: Span,
}

/// The time that an exchange takes, with all its attempts.
struct ExchangeClock {
    begun: Instant,
    timing: CallTiming,
    /// Whether the model has said something in this attempt: a provider may begin a stream before it refuses the request.
    has_content: bool,
}

impl ExchangeClock {
    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Takes note of a part of the answer.
    fn note_event(&mut self, event: &StreamEvent) {
        let now = self.elapsed_ms();
        self.timing.first_byte_ms.get_or_insert(now);
        let says_nothing = matches!(
            event,
            StreamEvent::Started { .. } | StreamEvent::Usage(_) | StreamEvent::Failed(_)
        );
        self.has_content |= !says_nothing;
    }

    /// Returns how the exchange went, which ends now.
    fn timing(&self) -> CallTiming {
        CallTiming {
            duration_ms: self.elapsed_ms(),
            ..self.timing
        }
    }
}

/// Runs one model step. `refused` counts the answers that layers refused in a row.
pub(crate) async fn run_model_step(run: &mut LiveRun, refused: u32) -> Result<(), RunError> {
    run.advance_to_step(run.step.saturating_add(1));
    // After the step is counted: a compaction that this causes belongs to the new step.
    let call = compile_call(run, &step_target(run), CompileAttempt::First).await?;
    let (call, answer) = ask_within_window(run, call).await?;
    let (verdict, items, recorded) = apply_after_model(run, &call, &answer).await?;
    note_last_step(run, &call, &recorded, &items);
    if recorded.on_sibling_branch {
        // Another writer appended while the model answered, so the answer is based on a history that is no longer
        // current. It is stored on a branch of its own, because it was paid for, and the model is asked again on the
        // current history.
        run.chat.refresh_session(&mut run.session).await?;
        run.set_next_step(NextStep::Ask { refused });
        return Ok(());
    }
    let next = match verdict {
        AnswerVerdict::Retry { feedback } => {
            // Without a limit, a model that cannot satisfy its guards would be asked forever.
            if refused >= max_refusals(run) {
                return Err(RunError::Denied {
                    reason: format!(
                        "layers refused {} answers, the last one saying: {feedback}",
                        refused + 1
                    ),
                });
            }
            run.notify_observer(|| RunEventKind::ResponseRejected { feedback });
            NextStep::Ask {
                refused: refused + 1,
            }
        }
        // The reason replaces the answer's text, so that the caller sees why the run ended.
        AnswerVerdict::Stop { reason } => {
            run.is_stopped = true;
            NextStep::End { text: reason }
        }
        AnswerVerdict::Pass | AnswerVerdict::Fix(_) => {
            next_after_answer(run, &call, &recorded, items)
        }
    };
    run.set_next_step(next);
    Ok(())
}

/// Keeps what was asked and answered last, for tools, approvers and whoever gets the turn.
fn note_last_step(run: &mut LiveRun, call: &CompiledCall, recorded: &Recorded, items: &[Item]) {
    let mut calls = Vec::new();
    let mut refusal = None;
    for item in items {
        match item {
            Item::FunctionCall(call) => calls.push(call.clone()),
            Item::Message(message) => {
                for part in &message.content {
                    if let Part::Refusal(part) = part {
                        refusal.get_or_insert_with(String::new).push_str(&part.text);
                    }
                }
            }
            _ => {}
        }
    }
    let usage = recorded.usage.clone().unwrap_or_default();
    let catalogue = run.chat.engine().catalogue();
    run.last_step = Some(Arc::new(LastStep {
        response: recorded.response,
        finish: recorded.finish.clone(),
        refusal,
        calls,
        usage: model_call_usage(catalogue, &call.report.target.model, &usage),
        report: call.report.clone(),
    }));
}

/// Asks layers about an answer and stores it as they decide. Returns the verdict, the items that count, and the record.
///
/// If a layer's state was stale, the layers are asked again on the new states.
async fn apply_after_model(
    run: &mut LiveRun,
    call: &CompiledCall,
    answer: &ModelAnswer,
) -> Result<(AnswerVerdict, Vec<Item>, Recorded), RunError> {
    let lifted = lift(call.format(), &answer.body).map_err(EngineError::from)?;
    let mut items = lifted.transcript.items;
    // Names may be shortened for the provider; layers and tools know only the original ones.
    call.tool_names().restore_names(&mut items);
    loop {
        let verdict = run.session.after_model(&items).await?;
        let options = record_options_for(run, &verdict)?;
        let replacement = options.replacement.clone();
        match record_answer(run, call, answer, options).await {
            Ok(recorded) => return Ok((verdict, replacement.unwrap_or(items), recorded)),
            Err(error) => run.retry_on_conflict(error).await?,
        }
    }
}

/// Returns how an answer with this verdict is stored.
fn record_options_for(
    run: &LiveRun,
    verdict: &AnswerVerdict,
) -> Result<RecordOptions<'static>, RunError> {
    let mut options = RecordOptions {
        step: Some(run.run_step()),
        ..RecordOptions::default()
    };
    match verdict {
        AnswerVerdict::Pass => {}
        // Stored together with the answer, so that a run resumed after a crash here stops as well.
        AnswerVerdict::Stop { reason } => {
            let stop =
                StateChange::put_entry(stop_key(run.id)?, RUN_STATE_VERSION, json_bytes(reason));
            options.changes = vec![stop];
        }
        AnswerVerdict::Fix(items) => options.replacement = Some(items.clone()),
        AnswerVerdict::Retry { feedback } => {
            // Hidden, not deleted: the answer stays in the history, and its cost is counted when the run is resumed.
            options.audience = Audience::NONE;
            // Derived from the step: a repeated append names the same node.
            let id = node_id(run.id, "feedback", &run.step.to_le_bytes());
            options.following_items = vec![run.feedback_item(id, feedback)];
        }
    }
    Ok(options)
}

/// Asks the model; if it refuses the call as too long before anything of an answer has come, once more with a tighter
/// call. Returns the call that was answered.
async fn ask_within_window(
    run: &mut LiveRun,
    call: CompiledCall,
) -> Result<(CompiledCall, ModelAnswer), RunError> {
    let (error, refused) = match ask_model(run, &call).await? {
        AskOutcome::Answered(answer) => return Ok((call, answer)),
        AskOutcome::TooLong { error, refused } => (error, refused),
    };
    let target = step_target(run);
    let budget = run
        .chat
        .budget_after_refusal(&target, &call.report, refused);
    let Some(budget) = budget.await else {
        return Err(error.into());
    };
    let reason = error.to_string();
    run.notify_observer(|| RunEventKind::Retrying { attempt: 1, reason });
    let target = target.retry_budget(budget);
    let call = compile_call(run, &target, CompileAttempt::AfterRefusal).await?;
    match ask_model(run, &call).await? {
        AskOutcome::Answered(answer) => Ok((call, answer)),
        // Never a third time: what the upper bound does not mend, another compile would not either.
        AskOutcome::TooLong { error, .. } => Err(error.into()),
    }
}

/// Asks the model and returns its answer. Transient failures are retried as the agent configures.
async fn ask_model(run: &mut LiveRun, call: &CompiledCall) -> Result<AskOutcome, RunError> {
    run.notify_observer(|| RunEventKind::ModelStarted {
        model: call.report.target.model.clone(),
        tokens: call.report.totals.tokens,
    });
    let mut attempt = 0;
    let mut clock = ExchangeClock {
        begun: Instant::now(),
        timing: CallTiming::default(),
        has_content: false,
    };
    loop {
        attempt += 1;
        (clock.timing.attempts, clock.timing.first_byte_ms) = (attempt, None);
        clock.has_content = false;
        let request = ModelRequest {
            format: call.format(),
            model: call.report.target.model.clone(),
            payload: call.payload.to_json(),
        };
        let conversation = Some(run.chat.id().as_str());
        // One telemetry record per attempt: failed attempts cost time and may cost tokens.
        let mut telemetry = ModelCall::begin(request.format, &request.model, conversation);
        let span = telemetry.span().clone();
        let streaming =
            stream_answer(run, request, &mut telemetry, &mut clock).instrument(span.clone());
        let outcome = streaming.await;
        telemetry.end(outcome.failure_kind());
        match outcome {
            StreamOutcome::Complete(body) => {
                let timing = clock.timing();
                return Ok(AskOutcome::Answered(ModelAnswer { body, timing, span }));
            }
            // The tokens received were paid for, and people may want to read them.
            StreamOutcome::Cancelled(body, cancelled) => {
                clock.timing.is_cut_off = true;
                let timing = clock.timing();
                store_partial_answer(run, call, &ModelAnswer { body, timing, span }).await?;
                return Err(cancelled.into());
            }
            StreamOutcome::Failed(error) => {
                // A retry starts the whole answer again, so events of the failed attempt no longer apply.
                let is_transient = Retryable::is_retryable(&error);
                let wait = run.agent.retry.retry_delay(attempt, error.retry_after());
                let Some(wait) = wait.filter(|_| is_transient) else {
                    let timing = clock.timing();
                    run.chat
                        .record_failed_call(call, Some(&error), timing)
                        .await;
                    return match too_long(&error) {
                        // Behind the first words it is too late: somebody may have read them.
                        Some(refused) if !clock.has_content => {
                            Ok(AskOutcome::TooLong { error, refused })
                        }
                        _ => Err(error.into()),
                    };
                };
                let reason = error.to_string();
                run.notify_observer(|| RunEventKind::Retrying { attempt, reason });
                // An abort ends the wait at once.
                let waited = run.abort.run_until_aborted(tokio::time::sleep(wait));
                if let Err(cancelled) = waited.await {
                    let timing = clock.timing();
                    run.chat
                        .record_failed_call(call, Some(&error), timing)
                        .await;
                    return Err(cancelled.into());
                }
            }
        }
    }
}

/// Streams one answer, passing its events to the observer.
async fn stream_answer(
    run: &LiveRun,
    request: ModelRequest,
    telemetry: &mut ModelCall,
    clock: &mut ExchangeClock,
) -> StreamOutcome {
    let started = run
        .abort
        .run_until_aborted(run.agent.model.stream(request))
        .await;
    let mut stream = match started {
        Err(cancelled) => return StreamOutcome::Cancelled(String::new(), cancelled),
        Ok(Err(error)) => return StreamOutcome::Failed(error),
        Ok(Ok(stream)) => stream,
    };
    loop {
        match run.abort.run_until_aborted(stream.next()).await {
            Err(cancelled) => {
                // The part received is returned, so that it can be stored and shown.
                return StreamOutcome::Cancelled(stream.partial_response().body, cancelled);
            }
            Ok(Some(Ok(event))) => {
                clock.note_event(&event);
                telemetry.record_event(&event);
                run.notify_observer(|| RunEventKind::Delta(event));
            }
            Ok(Some(Err(error))) => return StreamOutcome::Failed(error),
            Ok(None) => return StreamOutcome::Complete(stream.partial_response().body),
        }
    }
}

/// Stores the part of an answer that arrived before an abort. It is visible to people and hidden from models.
async fn store_partial_answer(
    run: &mut LiveRun,
    call: &CompiledCall,
    answer: &ModelAnswer,
) -> Result<(), RunError> {
    // A body that was cut off within its first event has nothing to store; that must not hide the abort.
    let lifted = lift(call.format(), &answer.body).ok();
    if lifted.is_none_or(|lifted| lifted.transcript.items.is_empty()) {
        run.chat.record_failed_call(call, None, answer.timing).await;
        return Ok(());
    }
    loop {
        let options = RecordOptions {
            step: Some(run.run_step()),
            // A partial answer would mislead the model in the next call.
            audience: Audience::USER,
            ..RecordOptions::default()
        };
        match record_answer(run, call, answer, options).await {
            Ok(_) => return Ok(()),
            Err(error) => run.retry_on_conflict(error).await?,
        }
    }
}

/// Stores an answer, and counts its usage.
async fn record_answer(
    run: &mut LiveRun,
    call: &CompiledCall,
    answer: &ModelAnswer,
    options: RecordOptions<'_>,
) -> Result<Recorded, RunError> {
    let options = RecordOptions {
        layers: Some(&mut run.session),
        timing: answer.timing,
        ..options
    };
    let recorded = run.chat.record_with(call, &answer.body, options).await?;
    if recorded.replayed {
        run.check_current().await?;
    }
    // The limit applies to consecutive conflicts, and this append succeeded.
    run.append_conflicts = 0;
    let usage = recorded.usage.clone().unwrap_or_default();
    let catalogue = run.chat.engine().catalogue();
    let model = &call.report.target.model;
    let call_usage = model_call_usage(catalogue, model, &usage);
    run.answers = run.answers.saturating_add(1);
    // Only after the append: an attempt that lost against another writer is repeated and must not count twice.
    run.usage.add(&call_usage);
    if let Some(dollars) = call_usage.cost_in_dollars() {
        record_call_cost(&answer.span, call.format(), model, dollars);
    }
    let (response, usage) = (recorded.response, run.usage());
    run.notify_observer(|| RunEventKind::ResponseStored { response, usage });
    Ok(recorded)
}

/// The number of times in a row the model may be asked again after a refusal; one more refusal fails the run. The lower
/// of the agent's limit and that of its guardrails.
fn max_refusals(run: &LiveRun) -> u32 {
    let guardrails = run.session.layers().layer_of_type::<Guardrails>();
    let most = guardrails.map_or(u32::MAX, |(_, guardrails)| guardrails.max_retries());
    run.agent.max_refusals.min(most)
}

/// Returns the next step after an accepted answer.
fn next_after_answer(
    run: &LiveRun,
    call: &CompiledCall,
    recorded: &Recorded,
    items: Vec<Item>,
) -> NextStep {
    let mut calls = Vec::new();
    let mut text = String::new();
    for (node, item) in recorded.nodes.iter().zip(items) {
        match item {
            Item::FunctionCall(call) => calls.push(UnansweredCall { node: *node, call }),
            item @ Item::Message(_) => text.push_str(&item.text()),
            _ => {}
        }
    }
    match calls.is_empty() {
        true => NextStep::End { text },
        false => NextStep::Run(UnansweredCalls {
            message: recorded.message.clone(),
            base: call.base(),
            // Calls run in the step after their answer, also when a resumed run computes it again.
            step: run.step.saturating_add(1),
            calls,
        }),
    }
}
