//! Running hooks: each in its own time, on a copy of its state, unable to harm another.

use std::panic::AssertUnwindSafe;

use contexture_ir::{Item, Raw};
use contexture_telemetry::{count_layer_failure, record_error};
use contexture_tools::SchemaValidator;
use futures_util::FutureExt;
use futures_util::future::join_all;
use tracing::Instrument;

use crate::contract::{
    AnswerVerdict, ChildEnd, FunctionError, Hook, HookContext, HookOutcome, HookStatus, LayerError,
    LayersError, ObservedItems, OnError, RunEnd, ToolGate, ToolRequest, panic_error,
};
use crate::runtime::dyn_layer::{AnyState, DynLayer};
use crate::runtime::layer_states::{LayerStates, SlotState, StateSlot};
use crate::runtime::layers::Layers;

/// Runs a hook within its time, in a span of its own. A panic is a failure like any other.
pub(crate) async fn run_with_timeout<T, E: From<LayerError>>(
    layer: &dyn DynLayer,
    hook: Hook,
    run: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let spec = layer.spec();
    let span = tracing::debug_span!(
        "contexture.layer",
        ctx.layer.id = spec.id.as_str(),
        ctx.layer.hook = hook.as_str(),
        error.type = tracing::field::Empty,
    );
    let limit = spec.timeouts.for_hook(hook);
    let caught = AssertUnwindSafe(run)
        .catch_unwind()
        .instrument(span.clone());
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
        // A function is a tool, and told as one.
        if hook != Hook::Function {
            count_layer_failure(spec.id.as_str(), hook.as_str(), kind);
        }
    }
    ended
}

/// A copy of a layer's state for one hook, and what the hook tells.
struct HookRun {
    state: AnyState,
    context: HookContext,
}

impl HookRun {
    /// `None` where the layer has no state.
    fn new(
        layer: &dyn DynLayer,
        slot: &StateSlot,
        context: &HookContext,
    ) -> Option<Result<Self, LayerError>> {
        let copy = layer.clone_state(slot.ready_state()?);
        Some(copy.map(|state| Self {
            state,
            context: context.fork(),
        }))
    }

    /// If all went well the copy becomes the state, and what was told counts.
    fn commit_state<T, E: From<LayerError>>(
        self,
        layer: &dyn DynLayer,
        slot: &mut StateSlot,
        context: &HookContext,
        ended: Result<T, E>,
    ) -> Result<T, E> {
        let value = ended?;
        slot.set_state(layer, self.state)?;
        context.merge_events(&self.context);
        Ok(value)
    }
}

/// Runs a hook on a copy of the state, within its time: `None` where the layer has no state.
macro_rules! attempt {
    ($layer:ident, $slot:ident, $context:expr, $name:ident, |$state:ident, $apart:ident| $hook:expr) => {
        match HookRun::new($layer, $slot, $context) {
            None => None,
            Some(Err(error)) => Some(Err(error.into())),
            Some(Ok(mut attempt)) => {
                let ($state, $apart) = (&mut attempt.state, &attempt.context);
                let ended = run_with_timeout($layer, Hook::$name, $hook).await;
                Some(attempt.commit_state($layer, $slot, $context, ended))
            }
        }
    };
}

/// The outcome of a hook, and its value if it has one. `None` is a layer without a state: one that must not fail fails
/// by that, unless it is left out on purpose.
pub(crate) fn hook_outcome<T>(
    layer: &dyn DynLayer,
    slot: &StateSlot,
    hook: Hook,
    run: Option<Result<T, LayerError>>,
    outcomes: &mut Vec<HookOutcome>,
) -> Result<Option<T>, LayersError> {
    let spec = layer.spec();
    let must = spec.on_error == OnError::Fail;
    let run = match run {
        None if must && !matches!(slot.current, SlotState::LeftOut) => {
            Some(Err(LayerError::from_message(slot.missing_reason())))
        }
        run => run,
    };
    let (status, value) = match run {
        None => {
            let why = slot.missing_reason().to_owned();
            (HookStatus::Skipped { why }, None)
        }
        Some(Ok(value)) => (HookStatus::Ok, Some(value)),
        Some(Err(source)) if must => {
            return Err(LayersError::Layer {
                id: spec.id.clone(),
                hook,
                source,
            });
        }
        Some(Err(error)) => {
            tracing::warn!(layer = %spec.id, %hook, %error, "a layer failed");
            let why = error.to_string();
            (HookStatus::Failed { why }, None)
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
    /// Gives every layer that has none its first state.
    ///
    /// # Errors
    /// The failure of a layer that must not fail. Another one that fails is left out until the states are read again.
    pub async fn init_states(
        &self,
        states: &mut LayerStates,
        context: &HookContext,
    ) -> Result<Vec<HookOutcome>, LayersError> {
        let mut outcomes = Vec::new();
        for (layer, slot) in self.iter().zip(&mut states.slots) {
            let run = match slot.current {
                SlotState::Ready(..) | SlotState::LeftOut => continue,
                SlotState::Broken(_) => None,
                SlotState::Absent => {
                    let apart = context.fork();
                    let run = run_with_timeout(layer, Hook::Init, layer.init(&apart)).await;
                    Some(apply_first_state(
                        layer,
                        slot,
                        run.map(Some),
                        context,
                        &apart,
                    ))
                }
            };
            hook_outcome(layer, slot, Hook::Init, run, &mut outcomes)?;
        }
        Ok(outcomes)
    }

    /// Asks each layer about items that are about to be appended, one after the other; a layer that fails leaves
    /// them as they were.
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
            let given = items.clone();
            let run = attempt!(layer, slot, context, OnAppend, |state, apart| layer
                .on_append(state, given, apart));
            if let Some(changed) = hook_outcome(layer, slot, Hook::OnAppend, run, &mut outcomes)? {
                items = changed;
            }
        }
        Ok((items, outcomes))
    }

    /// What the layers say to an answer: each sees it as those before it have left it. The first that wants it again,
    /// or the end, has the last word.
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
            let seen = fixed.as_deref().unwrap_or(answer);
            let run = attempt!(layer, slot, context, AfterModel, |state, apart| layer
                .after_model(state, seen, apart));
            match hook_outcome(layer, slot, Hook::AfterModel, run, &mut outcomes)? {
                None | Some(AnswerVerdict::Pass) => {}
                Some(AnswerVerdict::Fix(items)) => fixed = Some(items),
                Some(last) => return Ok((last, outcomes)),
            }
        }
        let verdict = fixed.map_or(AnswerVerdict::Pass, AnswerVerdict::Fix);
        Ok((verdict, outcomes))
    }

    /// Whether a call of a tool may run. A layer that denies it is the last one asked; one that must not fail and does
    /// denies.
    pub async fn before_tool(
        &self,
        states: &mut LayerStates,
        call: &ToolRequest,
        context: &HookContext,
    ) -> (ToolGate, Vec<HookOutcome>) {
        let mut outcomes = Vec::new();
        let mut gate = ToolGate::Allow;
        for (layer, slot) in self.iter().zip(&mut states.slots) {
            let run = attempt!(layer, slot, context, BeforeTool, |state, apart| layer
                .before_tool(state, call, apart));
            let said = match hook_outcome(layer, slot, Hook::BeforeTool, run, &mut outcomes) {
                Ok(said) => said.unwrap_or_default(),
                Err(error) => {
                    outcomes.push(HookOutcome {
                        layer: layer.spec().id.clone(),
                        hook: Hook::BeforeTool,
                        status: HookStatus::Failed {
                            why: error.to_string(),
                        },
                    });
                    ToolGate::Deny(format!("it could not be checked: {error}"))
                }
            };
            gate = gate.and(said);
            if matches!(gate, ToolGate::Deny(_)) {
                break;
            }
        }
        (gate, outcomes)
    }

    /// Shows each layer what is being appended, all at once.
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
        // Whoever was done first, what they tell is told in their order.
        for ((layer, slot), run) in self.iter().zip(&mut states.slots).zip(runs) {
            let run = run.map(|run| {
                let (attempt, ended) = run?;
                attempt.commit_state(layer, slot, context, ended)
            });
            hook_outcome(layer, slot, Hook::Observe, run, &mut outcomes)?;
        }
        Ok(outcomes)
    }

    /// The states a child run begins with. `child` are those it has already, of its own path or shared with its parent:
    /// a layer that has one there keeps it, unless its parent's leaves it out.
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
            let (SlotState::Absent | SlotState::Ready(..), Some(from)) =
                (&slot.current, from.ready_state())
            else {
                continue;
            };
            let apart = context.fork();
            let run = run_with_timeout(layer, Hook::OnSpawn, layer.on_spawn(from, &apart)).await;
            let run = apply_first_state(layer, slot, run, context, &apart);
            hook_outcome(layer, slot, Hook::OnSpawn, Some(run), &mut outcomes)?;
        }
        Ok(outcomes)
    }

    /// Tells the layers of a running child that its parent's states have changed.
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
            let Some(from) = from.ready_state() else {
                continue;
            };
            let run = attempt!(layer, slot, context, OnParentUpdate, |state, apart| layer
                .on_parent_update(state, from, apart));
            hook_outcome(layer, slot, Hook::OnParentUpdate, run, &mut outcomes)?;
        }
        Ok(outcomes)
    }

    /// Tells the parent's layers how a child ended.
    ///
    /// # Errors
    /// The failure of a layer that must not fail.
    pub async fn on_return(
        &self,
        parent: &mut LayerStates,
        child: &LayerStates,
        end: &ChildEnd,
        context: &HookContext,
    ) -> Result<Vec<HookOutcome>, LayersError> {
        let mut outcomes = Vec::new();
        for ((layer, slot), from) in self.iter().zip(&mut parent.slots).zip(&child.slots) {
            let Some(from) = from.ready_state() else {
                continue;
            };
            let run = attempt!(layer, slot, context, OnReturn, |state, apart| layer
                .on_return(state, from, end, apart));
            hook_outcome(layer, slot, Hook::OnReturn, run, &mut outcomes)?;
        }
        Ok(outcomes)
    }

    /// Tells each layer how the run ended, in order. Every layer is told, whatever another does.
    pub async fn on_complete(
        &self,
        states: &mut LayerStates,
        end: &RunEnd,
        context: &HookContext,
    ) -> Vec<HookOutcome> {
        let mut outcomes = Vec::new();
        for (layer, slot) in self.iter().zip(&mut states.slots) {
            let run = attempt!(layer, slot, context, OnComplete, |state, apart| layer
                .on_complete(state, end, apart));
            hook_outcome_or_log(layer, slot, Hook::OnComplete, run, &mut outcomes);
        }
        outcomes
    }

    /// Lets each layer go, in reverse order.
    pub async fn dispose(&self, states: &LayerStates) -> Vec<HookOutcome> {
        let mut outcomes = Vec::new();
        for (layer, slot) in self.iter().zip(&states.slots).rev() {
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

    /// Runs a function that models call by the name `tool`: arguments and result are held against their schemas.
    ///
    /// # Errors
    /// [`FunctionError`]; the state stays as it was then.
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
        validate_against_schema(&function.input, arguments)
            .map_err(|why| FunctionError::Arguments { why })?;
        let run = attempt!(layer, slot, context, Function, |state, apart| async {
            let result = layer
                .call_function(state, function.name, arguments, apart)
                .await?;
            if let Some(schema) = &function.output {
                validate_against_schema(schema, &result)
                    .map_err(|why| FunctionError::Result { why })?;
            }
            Ok(result)
        });
        run.unwrap_or_else(|| Err(LayerError::from_message(slot.missing_reason()).into()))
    }
}

/// Takes a layer's first state where there is none; `None` leaves the layer out. One that fails and has no state is
/// skipped until the states are read again.
fn apply_first_state(
    layer: &dyn DynLayer,
    slot: &mut StateSlot,
    run: Result<Option<AnyState>, LayerError>,
    context: &HookContext,
    apart: &HookContext,
) -> Result<(), LayerError> {
    let begun = run.and_then(|state| match state {
        Some(_) if slot.ready_state().is_some() => Ok(()),
        Some(state) => slot.set_state(layer, state),
        None => {
            slot.current = SlotState::LeftOut;
            Ok(())
        }
    });
    match &begun {
        Ok(()) => context.merge_events(apart),
        Err(_) if slot.ready_state().is_some() => {}
        Err(error) => slot.current = SlotState::Broken(error.to_string()),
    }
    begun
}

/// What is wrong with a value by its schema.
fn validate_against_schema(schema: &Raw, value: &Raw) -> Result<(), String> {
    let checker = SchemaValidator::new(schema).map_err(|error| error.to_string())?;
    let found = checker
        .check_arguments(value)
        .map_err(|error| error.to_string())?;
    match found.is_empty() {
        true => Ok(()),
        false => {
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            Err(found.join("; "))
        }
    }
}

/// As [`hook_outcome`], where no failure stops the others.
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
                why: error.to_string(),
            },
        });
    }
}
