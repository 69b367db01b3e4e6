//! Runs one hook of every layer: each within its own timeout, on a copy of its state.
//!
//! If a layer fails, panics or times out, only its own change is lost; only a layer with
//! [`OnError::Fail`](crate::OnError::Fail) stops the operation. Hooks that decide (`on_append`, `after_model`,
//! `before_tool`) run one layer after the other, because each depends on what the ones before decided; `observe` runs
//! in parallel.

use std::panic::AssertUnwindSafe;

use contexture_ir::{Item, Raw};
use contexture_telemetry::{count_layer_failure, record_error};
use contexture_tools::SchemaValidator;
use futures_util::FutureExt;
use futures_util::future::join_all;
use tracing::Instrument;

use crate::contract::{
    AnswerVerdict, ChildEnd, ChildResult, FunctionError, Hook, HookContext, HookOutcome,
    HookStatus, LayerError, LayersError, ObservedItems, OnError, RunEnd, ToolGate, ToolRequest,
    panic_error,
};
use crate::runtime::dyn_layer::{AnyState, DynLayer};
use crate::runtime::layer_states::{LayerStates, SlotState, StateSlot};
use crate::runtime::layers::Layers;

/// Runs a hook within its layer's timeout, in a tracing span of its own. A panic or a timeout becomes a [`LayerError`].
pub(crate) async fn run_with_timeout<T, E: From<LayerError>>(
    layer: &dyn DynLayer,
    hook: Hook,
    run: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let spec = layer.spec();
    // The kind of an error is known only at the end, so its field is declared empty and filled in below.
    let span = tracing::debug_span!(
        "contexture.layer",
        ctx.layer.id = spec.id.as_str(),
        ctx.layer.hook = hook.as_str(),
        error.type = tracing::field::Empty,
    );
    let limit = spec.timeouts.for_hook(hook);
    // Safe to unwind: the hook works on a copy of the state, which is dropped if the hook fails.
    let caught = AssertUnwindSafe(run)
        .catch_unwind()
        .instrument(span.clone());
    // A timeout drops the future, and with it whatever it had done to its copy of the state.
    let caught = match limit {
        None => Some(caught.await),
        Some(limit) => tokio::time::timeout(limit, caught).await.ok(),
    };
    let (ended, kind) = match caught {
        Some(Ok(ended)) => (ended, "failed"),
        Some(Err(panic)) => (Err(panic_error(&panic).into()), "panicked"),
        None => {
            let ms = limit.unwrap_or_default().as_millis();
            (Err(LayerError::TimedOut { ms }.into()), "timed_out")
        }
    };
    if ended.is_err() {
        record_error(&span, kind);
        // A function's failure becomes a tool output and is counted with the tools: a bad argument from the model is
        // not the layer's fault.
        if hook != Hook::Function {
            count_layer_failure(spec.id.as_str(), hook.as_str(), kind);
        }
    }
    ended
}

/// Working data of one hook: a copy of the layer's state, and a context with events of its own.
struct HookRun {
    state: AnyState,
    context: HookContext,
}

impl HookRun {
    /// Copies the state and forks the context; `None` if the layer has no state.
    fn new(
        layer: &dyn DynLayer,
        slot: &StateSlot,
        context: &HookContext,
    ) -> Option<Result<Self, LayerError>> {
        // Without a state there is nothing to run on; the caller records that the hook was skipped.
        let copy = layer.clone_state(slot.ready_state()?);
        Some(copy.map(|state| Self {
            state,
            context: context.fork(),
        }))
    }

    /// Makes the copy the layer's state and forwards its events, if the hook succeeded.
    fn commit_state<T, E: From<LayerError>>(
        self,
        layer: &dyn DynLayer,
        slot: &mut StateSlot,
        context: &HookContext,
        ended: Result<T, E>,
    ) -> Result<T, E> {
        let value = ended?;
        // The state may still be refused, as too large or invalid. Events are forwarded after that, so that none
        // reports a change that was not made.
        slot.set_state(layer, self.state)?;
        context.merge_events(&self.context);
        Ok(value)
    }
}

// A macro, because every hook has a different signature, and its future borrows the copied state and the forked
// context.
/// Runs a hook on a copy of the state; `None` if the layer has no state.
macro_rules! run_hook {
    ($layer:ident, $slot:ident, $context:expr, $name:ident, |$state:ident, $own_context:ident| $hook:expr) => {
        match HookRun::new($layer, $slot, $context) {
            None => None,
            Some(Err(error)) => Some(Err(error.into())),
            Some(Ok(mut attempt)) => {
                let ($state, $own_context) = (&mut attempt.state, &attempt.context);
                let ended = run_with_timeout($layer, Hook::$name, $hook).await;
                Some(attempt.commit_state($layer, $slot, $context, ended))
            }
        }
    };
}

/// Records the outcome of a hook and returns its value, if there is one.
///
/// `run` is `None` for a layer without a state. For a layer that must not fail that is a failure too, unless the same
/// layer in the parent run left it out of this run on purpose.
pub(crate) fn hook_outcome<T>(
    layer: &dyn DynLayer,
    slot: &StateSlot,
    hook: Hook,
    run: Option<Result<T, LayerError>>,
    outcomes: &mut Vec<HookOutcome>,
) -> Result<Option<T>, LayersError> {
    let spec = layer.spec();
    let must_succeed = spec.on_error == OnError::Fail;
    let run = match run {
        // A guard whose state cannot be read must not silently let everything pass.
        None if must_succeed && !matches!(slot.current, SlotState::LeftOut) => {
            Some(Err(LayerError::from_message(slot.missing_reason())))
        }
        run => run,
    };
    let (status, value) = match run {
        None => {
            // Recorded as skipped, so that the outcomes show every layer.
            let reason = slot.missing_reason().to_owned();
            (HookStatus::Skipped { reason }, None)
        }
        Some(Ok(value)) => (HookStatus::Ok, Some(value)),
        Some(Err(source)) if must_succeed => {
            return Err(LayersError::Layer {
                id: spec.id.clone(),
                hook,
                source,
            });
        }
        Some(Err(error)) => {
            tracing::warn!(layer = %spec.id, %hook, %error, "a layer failed");
            let reason = error.to_string();
            (HookStatus::Failed { reason }, None)
        }
    };
    outcomes.push(HookOutcome {
        layer: spec.id.clone(),
        hook,
        status,
    });
    Ok(value)
}

impl Layers {
    /// Gives every layer without a state its first state.
    ///
    /// # Errors
    /// The failure of a layer that must not fail. Any other layer that fails is skipped until the states are read
    /// again.
    pub async fn init_states(
        &self,
        states: &mut LayerStates,
        context: &HookContext,
    ) -> Result<Vec<HookOutcome>, LayersError> {
        let mut outcomes = Vec::new();
        for (layer, slot) in self.iter().zip(&mut states.slots) {
            let run = match slot.current {
                SlotState::Ready(..) | SlotState::LeftOut => continue,
                // The stored state stays: a new one would overwrite what a newer version could still read.
                SlotState::Broken(_) => None,
                SlotState::Absent => {
                    // Events of a layer that fails are dropped with its state.
                    let own_context = context.fork();
                    let run = run_with_timeout(layer, Hook::Init, layer.init(&own_context)).await;
                    Some(apply_first_state(
                        layer,
                        slot,
                        run.map(Some),
                        context,
                        &own_context,
                    ))
                }
            };
            hook_outcome(layer, slot, Hook::Init, run, &mut outcomes)?;
        }
        Ok(outcomes)
    }

    /// Lets each layer change the items that are about to be appended, one layer after the other; a layer that fails
    /// leaves them as they were.
    ///
    /// # Errors
    /// The failure of a layer that must not fail.
    pub async fn on_append(
        &self,
        states: &mut LayerStates,
        mut items: Vec<Item>,
        context: &HookContext,
    ) -> Result<(Vec<Item>, Vec<HookOutcome>), LayersError> {
        let mut outcomes = Vec::new();
        for (layer, slot) in self.iter().zip(&mut states.slots) {
            // A copy: a layer that fails halfway must not have removed items.
            let given = items.clone();
            let run = run_hook!(layer, slot, context, OnAppend, |state, own_context| layer
                .on_append(state, given, own_context));
            // No value means that the layer failed or was skipped: the items stay as the previous layer left them.
            if let Some(changed) = hook_outcome(layer, slot, Hook::OnAppend, run, &mut outcomes)? {
                items = changed;
            }
        }
        Ok((items, outcomes))
    }

    /// Asks the layers about an answer, in order: each sees the corrections of the layers before it. The first layer
    /// that rejects the answer, or ends the run, decides.
    ///
    /// # Errors
    /// The failure of a layer that must not fail.
    pub async fn after_model(
        &self,
        states: &mut LayerStates,
        answer: &[Item],
        context: &HookContext,
    ) -> Result<(AnswerVerdict, Vec<HookOutcome>), LayersError> {
        let mut outcomes = Vec::new();
        let mut fixed: Option<Vec<Item>> = None;
        for (layer, slot) in self.iter().zip(&mut states.slots) {
            // A layer judges what will be stored, so it sees the corrections of those before it.
            let current = fixed.as_deref().unwrap_or(answer);
            let run = run_hook!(layer, slot, context, AfterModel, |state, own_context| layer
                .after_model(state, current, own_context));
            match hook_outcome(layer, slot, Hook::AfterModel, run, &mut outcomes)? {
                None | Some(AnswerVerdict::Pass) => {}
                Some(AnswerVerdict::Fix(items)) => fixed = Some(items),
                // The verdict is final, so later layers are not asked.
                Some(last) => return Ok((last, outcomes)),
            }
        }
        let verdict = fixed.map_or(AnswerVerdict::Pass, AnswerVerdict::Fix);
        Ok((verdict, outcomes))
    }

    /// Asks the layers whether a tool call may run. After the first denial no further layer is asked. If a layer that
    /// must not fail does fail, the call is denied.
    pub async fn before_tool(
        &self,
        states: &mut LayerStates,
        call: &ToolRequest,
        context: &HookContext,
    ) -> (ToolGate, Vec<HookOutcome>) {
        let mut outcomes = Vec::new();
        let mut gate = ToolGate::Allow;
        for (layer, slot) in self.iter().zip(&mut states.slots) {
            let run = run_hook!(layer, slot, context, BeforeTool, |state, own_context| layer
                .before_tool(state, call, own_context));
            let answer = match hook_outcome(layer, slot, Hook::BeforeTool, run, &mut outcomes) {
                Ok(decision) => decision.unwrap_or_default(),
                // Fail closed: the tool does not run, but the run continues, and the model gets the reason.
                Err(error) => {
                    outcomes.push(HookOutcome {
                        layer: layer.spec().id.clone(),
                        hook: Hook::BeforeTool,
                        status: HookStatus::Failed {
                            reason: error.to_string(),
                        },
                    });
                    ToolGate::Deny(format!("it could not be checked: {error}"))
                }
            };
            // The stricter decision counts, whichever layer made it; `Approve` outweighs only `Allow`, which means that
            // a layer has no opinion.
            gate = gate.and(answer);
            // Nothing can undo a denial, so the remaining layers need not be asked.
            if matches!(gate, ToolGate::Deny(_)) {
                break;
            }
        }
        (gate, outcomes)
    }

    /// Passes items that are being appended to all layers, in parallel.
    ///
    /// # Errors
    /// The failure of a layer that must not fail.
    pub async fn observe(
        &self,
        states: &mut LayerStates,
        seen: ObservedItems<'_>,
        context: &HookContext,
    ) -> Result<Vec<HookOutcome>, LayersError> {
        let each = self.iter().zip(&states.slots);
        // In parallel: each layer changes only its own copy of its state, and none sees another's changes.
        let runs = join_all(each.map(async |(layer, slot)| {
            let mut attempt = match HookRun::new(layer, slot, context)? {
                Ok(attempt) => attempt,
                Err(error) => return Some(Err(error)),
            };
            let hook = layer.observe(&mut attempt.state, &seen, &attempt.context);
            let ended = run_with_timeout(layer, Hook::Observe, hook).await;
            Some(Ok((attempt, ended)))
        }))
        .await;
        let mut outcomes = Vec::new();
        // Committed in the order of the list, not in the order of completion, so that events are the same on every run.
        for ((layer, slot), run) in self.iter().zip(&mut states.slots).zip(runs) {
            let run = run.map(|run| {
                let (attempt, ended) = run?;
                attempt.commit_state(layer, slot, context, ended)
            });
            hook_outcome(layer, slot, Hook::Observe, run, &mut outcomes)?;
        }
        Ok(outcomes)
    }

    /// Creates the states that a child run starts with, in `child`, and returns the outcomes. `child` already holds the
    /// states read from its own path or shared with its parent. A layer that has a state there keeps it, unless the
    /// same layer in the parent run leaves it out of the child run.
    ///
    /// # Errors
    /// The failure of a layer that must not fail.
    pub async fn on_spawn(
        &self,
        parent: &LayerStates,
        child: &mut LayerStates,
        context: &HookContext,
    ) -> Result<Vec<HookOutcome>, LayersError> {
        let mut outcomes = Vec::new();
        for ((layer, slot), from) in self.iter().zip(&mut child.slots).zip(&parent.slots) {
            // A broken state stays broken: its layer could not read it, so it must not be replaced either.
            let (SlotState::Absent | SlotState::Ready(..), Some(from)) =
                (&slot.current, from.ready_state())
            else {
                continue;
            };
            // Events are kept apart until the state is accepted, as for any other hook.
            let own_context = context.fork();
            let run =
                run_with_timeout(layer, Hook::OnSpawn, layer.on_spawn(from, &own_context)).await;
            let run = apply_first_state(layer, slot, run, context, &own_context);
            hook_outcome(layer, slot, Hook::OnSpawn, Some(run), &mut outcomes)?;
        }
        Ok(outcomes)
    }

    /// Notifies the layers of a running child that its parent's states have changed.
    ///
    /// # Errors
    /// The failure of a layer that must not fail.
    pub async fn on_parent_update(
        &self,
        child: &mut LayerStates,
        parent: &LayerStates,
        context: &HookContext,
    ) -> Result<Vec<HookOutcome>, LayersError> {
        let mut outcomes = Vec::new();
        for ((layer, slot), from) in self.iter().zip(&mut child.slots).zip(&parent.slots) {
            // A layer without a state in the parent run has nothing to pass on.
            let Some(from) = from.ready_state() else {
                continue;
            };
            let run = run_hook!(
                layer,
                slot,
                context,
                OnParentUpdate,
                |state, own_context| layer.on_parent_update(state, from, own_context)
            );
            hook_outcome(layer, slot, Hook::OnParentUpdate, run, &mut outcomes)?;
        }
        Ok(outcomes)
    }

    /// Notifies the parent's layers, in order, of how a child ended, and returns what they make of its result.
    ///
    /// # Errors
    /// The failure of a layer that must not fail.
    pub async fn on_return(
        &self,
        parent: &mut LayerStates,
        child: &LayerStates,
        end: &ChildEnd,
        context: &HookContext,
    ) -> Result<(ChildResult, Vec<HookOutcome>), LayersError> {
        let mut outcomes = Vec::new();
        let mut result = ChildResult::Keep;
        let mut end = end.clone();
        for ((layer, slot), from) in self.iter().zip(&mut parent.slots).zip(&child.slots) {
            // A layer without a state in the child run has nothing to hand back.
            let Some(from) = from.ready_state() else {
                continue;
            };
            let run = run_hook!(layer, slot, context, OnReturn, |state, own_context| layer
                .on_return(state, from, &end, own_context));
            let made = hook_outcome(layer, slot, Hook::OnReturn, run, &mut outcomes)?;
            if let Some(ChildResult::Replace(text)) = made {
                // The next layer judges what the model would read by now.
                end.result = Some(text.clone());
                result = ChildResult::Replace(text);
            }
        }
        Ok((result, outcomes))
    }

    /// Notifies each layer, in order, of how the run ended. Every layer is notified, even if others fail.
    pub async fn on_complete(
        &self,
        states: &mut LayerStates,
        end: &RunEnd,
        context: &HookContext,
    ) -> Vec<HookOutcome> {
        let mut outcomes = Vec::new();
        for (layer, slot) in self.iter().zip(&mut states.slots) {
            let run = run_hook!(layer, slot, context, OnComplete, |state, own_context| layer
                .on_complete(state, end, own_context));
            // A failure does not end the loop: the run is over, and the other layers still have to be notified.
            hook_outcome_or_log(layer, slot, Hook::OnComplete, run, &mut outcomes);
        }
        outcomes
    }

    /// Disposes of each layer, in reverse order: a layer may use what an earlier one set up.
    pub async fn dispose(&self, states: &LayerStates) -> Vec<HookOutcome> {
        let mut outcomes = Vec::new();
        for (layer, slot) in self.iter().zip(&states.slots).rev() {
            // On the state itself and not on a copy: nothing is stored after this.
            let run = match slot.ready_state() {
                None => None,
                Some(state) => {
                    Some(run_with_timeout(layer, Hook::Dispose, layer.dispose(state)).await)
                }
            };
            hook_outcome_or_log(layer, slot, Hook::Dispose, run, &mut outcomes);
        }
        outcomes
    }

    /// Runs the function that models call by the name `tool`. Arguments and result are checked against their schemas.
    ///
    /// # Errors
    /// [`FunctionError`]; in that case the state stays as it was.
    pub async fn call_function(
        &self,
        states: &mut LayerStates,
        tool: &str,
        arguments: &Raw,
        context: &HookContext,
    ) -> Result<Raw, FunctionError> {
        let found = self
            .iter()
            .zip(&mut states.slots)
            .find_map(|(layer, slot)| {
                let mut functions = layer.functions().iter();
                let function = functions.find(|function| function.tool == tool)?;
                Some((layer, slot, function))
            });
        let Some((layer, slot, function)) = found else {
            return Err(
                LayerError::from_message(format!("no layer has a function {tool:?}")).into(),
            );
        };
        // Before the state is copied: a model's arguments are often wrong, and the layer may rely on valid ones.
        validate_against_schema(&function.input, arguments)
            .map_err(|reason| FunctionError::Arguments { reason })?;
        let run = run_hook!(layer, slot, context, Function, |state, own_context| async {
            let result = layer
                .call_function(state, function.name, arguments, own_context)
                .await?;
            // Checked inside the attempt: a function with a wrong result changes no state.
            if let Some(schema) = &function.output {
                validate_against_schema(schema, &result)
                    .map_err(|reason| FunctionError::Result { reason })?;
            }
            Ok(result)
        });
        run.unwrap_or_else(|| Err(LayerError::from_message(slot.missing_reason()).into()))
    }
}

/// Sets a layer's first state if it has none; a result of `None` leaves the layer out of the run.
///
/// A layer that fails and has no state is skipped until the states are read again.
fn apply_first_state(
    layer: &dyn DynLayer,
    slot: &mut StateSlot,
    run: Result<Option<AnyState>, LayerError>,
    context: &HookContext,
    own_context: &HookContext,
) -> Result<(), LayerError> {
    let applied = run.and_then(|state| match state {
        // A state that the child already has, from an earlier attempt or shared with its parent, is newer than a first
        // state.
        Some(_) if slot.ready_state().is_some() => Ok(()),
        Some(state) => slot.set_state(layer, state),
        None => {
            slot.current = SlotState::LeftOut;
            Ok(())
        }
    });
    match &applied {
        Ok(()) => context.merge_events(own_context),
        // The layer already has a state, so only the new one is lost.
        Err(_) if slot.ready_state().is_some() => {}
        // Not retried at every hook: the cause is unlikely to disappear during the run.
        Err(error) => slot.current = SlotState::Broken(error.to_string()),
    }
    applied
}

/// Checks a value against a JSON schema; the error lists every violation.
fn validate_against_schema(schema: &Raw, value: &Raw) -> Result<(), String> {
    let checker = SchemaValidator::new(schema).map_err(|error| error.to_string())?;
    let found = checker
        .check_arguments(value)
        .map_err(|error| error.to_string())?;
    match found.is_empty() {
        true => Ok(()),
        false => {
            let violations: Vec<String> = found.iter().map(ToString::to_string).collect();
            Err(violations.join("; "))
        }
    }
}

/// Like [`hook_outcome`], but a failure is logged, and the caller can go on to the other layers.
fn hook_outcome_or_log(
    layer: &dyn DynLayer,
    slot: &StateSlot,
    hook: Hook,
    run: Option<Result<(), LayerError>>,
    outcomes: &mut Vec<HookOutcome>,
) {
    if let Err(error) = hook_outcome(layer, slot, hook, run, outcomes) {
        tracing::warn!(%error, "a layer failed at the end of a run");
        outcomes.push(HookOutcome {
            layer: layer.spec().id.clone(),
            hook,
            status: HookStatus::Failed {
                reason: error.to_string(),
            },
        });
    }
}
