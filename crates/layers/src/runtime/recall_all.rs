//! Contributions of all layers to one call.

use contexture_compile::{Contribution, Stability};
use contexture_ir::ToolDefinition;
use futures_util::future::join_all;

use crate::contract::{
    Hook, HookContext, HookOutcome, HookStatus, LayerError, LayersError, Projection, RecallCache,
    RecallInput, RecallMode,
};
use crate::runtime::dyn_layer::{AnyState, DynLayer};
use crate::runtime::hook_runner::{hook_outcome, run_with_timeout};
use crate::runtime::layer_states::LayerStates;
use crate::runtime::layers::Layers;

/// Combined contributions of all layers to one call.
#[derive(Clone, Debug, Default)]
pub struct CombinedRecall {
    /// Their contributions, in order.
    pub contributions: Vec<Contribution>,
    /// Their tools, in order.
    pub tools: Vec<ToolDefinition>,
    /// How the history is shown.
    pub projection: Projection,
    /// Outcome of each hook.
    pub outcomes: Vec<HookOutcome>,
}

impl Layers {
    /// Asks all layers in parallel what they add to a call, each within its own timeout. `call.spec` is set for each.
    ///
    /// The result has the order of the list, whoever answered first.
    ///
    /// # Errors
    /// The failure of a layer that must not fail.
    pub async fn recall_all(
        &self,
        states: &LayerStates,
        call: RecallInput<'_>,
        projection: Projection,
        last: &mut RecallCache,
    ) -> Result<CombinedRecall, LayersError> {
        let requests = self.iter().zip(&states.slots).map(|(layer, slot)| {
            let spec = layer.spec();
            // An eventual layer was asked after the last answer, so that this call does not wait for it. Without a
            // cached contribution for this path, as after a restart or a rewind, it is asked now.
            let eventual = spec.recall == RecallMode::Eventual;
            let ready = eventual.then(|| last.get(spec.id.as_str(), call.path));
            let ready = ready.flatten().map(<[_]>::to_vec);
            async move {
                match (slot.ready_state(), ready) {
                    (None, _) => None,
                    (Some(_), Some(added)) => Some(RecallSource::Cached(added)),
                    (Some(state), None) => {
                        Some(RecallSource::Fresh(run_recall(layer, state, call).await))
                    }
                }
            }
        });
        let answers = join_all(requests).await;
        let mut combined = CombinedRecall {
            // Tools do not depend on recall: a layer that fails keeps its functions, so the list of tools stays the
            // same.
            tools: self.tool_definitions(),
            projection,
            ..CombinedRecall::default()
        };
        for ((layer, slot), answer) in self.iter().zip(&states.slots).zip(answers) {
            let id = layer.spec().id.as_str();
            let (run, is_fresh) = match answer {
                None => (None, false),
                Some(RecallSource::Cached(added)) => (Some(Ok(added)), false),
                Some(RecallSource::Fresh(run)) => (Some(run.into_result(call.context)), true),
            };
            let outcomes = &mut combined.outcomes;
            if let Some(added) = hook_outcome(layer, slot, Hook::Recall, run, outcomes)? {
                // A cached contribution keeps the head it was made for.
                if is_fresh {
                    last.insert(id, call.context.head, added.clone());
                }
                combined.contributions.extend(added);
            } else if let Some(added) = cached_recall(layer, outcomes, || last.get(id, call.path)) {
                // The layer failed: its last contribution is better than a prompt that has lost a part.
                combined.contributions.extend_from_slice(added);
            }
            if let Some(state) = slot.ready_state() {
                // A copy, for the same reason as for states: a layer that fails halfway changes nothing. Called even if
                // its recall failed, so that the history does not change because a contribution is missing.
                let mut projection = combined.projection.clone();
                match layer.project_history(state, &mut projection) {
                    Ok(()) => combined.projection = projection,
                    failed => {
                        hook_outcome(layer, slot, Hook::ProjectHistory, Some(failed), outcomes)?;
                    }
                }
            }
        }
        Ok(combined)
    }

    /// Asks eventual layers again after an answer, for the next call. A layer that fails keeps its last contribution,
    /// unless that is volatile.
    ///
    /// # Errors
    /// The failure of a layer that must not fail.
    pub async fn refresh_recall(
        &self,
        states: &LayerStates,
        call: RecallInput<'_>,
        last: &mut RecallCache,
    ) -> Result<Vec<HookOutcome>, LayersError> {
        let late = self.iter().zip(&states.slots);
        let late = late.filter(|(layer, _)| layer.spec().recall == RecallMode::Eventual);
        let requests = late.map(async |(layer, slot)| {
            let run = match slot.ready_state() {
                Some(state) => Some(run_recall(layer, state, call).await),
                None => None,
            };
            // Joined first and recorded afterwards, so that outcomes have the order of the list.
            (layer, slot, run)
        });
        let mut outcomes = Vec::new();
        for (layer, slot, run) in join_all(requests).await {
            let id = layer.spec().id.as_str();
            let run = run.map(|run| run.into_result(call.context));
            match hook_outcome(layer, slot, Hook::Recall, run, &mut outcomes)? {
                Some(added) => last.insert(id, call.context.head, added),
                None if cached_recall(layer, &mut outcomes, || last.get(id, call.path))
                    .is_none() =>
                {
                    // Nothing can be repeated, so the next call asks the layer itself.
                    last.remove(id);
                }
                None => {}
            }
        }
        Ok(outcomes)
    }
}

/// Source of a layer's contribution.
enum RecallSource {
    /// Made after the last answer.
    Cached(Vec<Contribution>),
    /// Made for this call.
    Fresh(RecallOutput),
}

/// The result of one recall, with the events of the hook.
struct RecallOutput {
    result: Result<Vec<Contribution>, LayerError>,
    context: HookContext,
}

impl RecallOutput {
    /// Returns the result and passes events on; events of a failed hook are dropped.
    fn into_result(self, context: &HookContext) -> Result<Vec<Contribution>, LayerError> {
        if self.result.is_ok() {
            context.merge_events(&self.context);
        }
        self.result
    }
}

async fn run_recall(layer: &dyn DynLayer, state: &AnyState, call: RecallInput<'_>) -> RecallOutput {
    let (spec, apart) = (layer.spec(), call.context.fork());
    // Each layer gets its own specification and a context whose events count only if it succeeds.
    let call = RecallInput {
        spec,
        context: &apart,
        ..call
    };
    let mut ended = run_with_timeout(layer, Hook::Recall, layer.recall(state, &call)).await;
    for added in ended.iter_mut().flatten() {
        ensure_source_prefix(added, spec.id.as_str());
    }
    RecallOutput {
        result: ended,
        context: apart,
    }
}

/// Returns the last contribution of a layer that has just failed, and marks its outcome as stale.
fn cached_recall<'a>(
    layer: &dyn DynLayer,
    outcomes: &mut [HookOutcome],
    last: impl FnOnce() -> Option<&'a [Contribution]>,
) -> Option<&'a [Contribution]> {
    let outcome = outcomes.last_mut()?;
    let HookStatus::Failed { reason } = &outcome.status else {
        return None;
    };
    // Volatile content is new with every call: an old text, such as the time, would be wrong rather than merely old.
    if layer.spec().stability == Stability::Volatile {
        return None;
    }
    let added = last()?;
    outcome.status = HookStatus::Stale {
        reason: reason.clone(),
    };
    Some(added)
}

/// Sets the source of a contribution to its layer's id, unless it already is that id or a path below it.
fn ensure_source_prefix(added: &mut Contribution, id: &str) {
    // Reports and budgets go by source: a layer must not be able to use another one's name.
    let below = added.source.strip_prefix(id);
    if !below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
        added.source = id.to_owned();
    }
}
