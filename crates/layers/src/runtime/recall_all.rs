//! What all layers say in one call.

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

/// What all layers say in one call.
#[derive(Clone, Debug, Default)]
pub struct CombinedRecall {
    /// Their words, in order.
    pub contributions: Vec<Contribution>,
    /// Their tools, in order.
    pub tools: Vec<ToolDefinition>,
    /// How the history is shown.
    pub projection: Projection,
    /// What became of each layer.
    pub outcomes: Vec<HookOutcome>,
}

impl Layers {
    /// Asks all layers for their words, at once, each in its own time. `call.spec` is set for each.
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
        let asked = self.iter().zip(&states.slots).map(|(layer, slot)| {
            let spec = layer.spec();
            let eventual = spec.recall == RecallMode::Eventual;
            let ready = eventual.then(|| last.get(spec.id.as_str(), call.path));
            let ready = ready.flatten().map(<[_]>::to_vec);
            async move {
                match (slot.ready_state(), ready) {
                    (None, _) => None,
                    (Some(_), Some(said)) => Some(RecallSource::Cached(said)),
                    (Some(state), None) => {
                        Some(RecallSource::Fresh(run_recall(layer, state, call).await))
                    }
                }
            }
        });
        let answers = join_all(asked).await;
        let mut gathered = CombinedRecall {
            tools: self.tool_definitions(),
            projection,
            ..CombinedRecall::default()
        };
        for ((layer, slot), answer) in self.iter().zip(&states.slots).zip(answers) {
            let id = layer.spec().id.as_str();
            let (run, fresh) = match answer {
                None => (None, false),
                Some(RecallSource::Cached(said)) => (Some(Ok(said)), false),
                Some(RecallSource::Fresh(run)) => (Some(run.into_result(call.context)), true),
            };
            let outcomes = &mut gathered.outcomes;
            if let Some(said) = hook_outcome(layer, slot, Hook::Recall, run, outcomes)? {
                if fresh {
                    last.insert(id, call.context.head, said.clone());
                }
                gathered.contributions.extend(said);
            } else if let Some(said) = cached_recall(layer, outcomes, || last.get(id, call.path)) {
                gathered.contributions.extend_from_slice(said);
            }
            if let Some(state) = slot.ready_state() {
                // A layer whose words are missing may still say how the history is shown.
                let mut projection = gathered.projection.clone();
                match layer.project_history(state, &mut projection) {
                    Ok(()) => gathered.projection = projection,
                    failed => {
                        hook_outcome(layer, slot, Hook::ProjectHistory, Some(failed), outcomes)?;
                    }
                }
            }
        }
        Ok(gathered)
    }

    /// Asks those layers again whose words are made after an answer, for the next call. One that fails says what it
    /// said before, unless its words are new with every call.
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
        let asked = late.map(async |(layer, slot)| {
            let run = match slot.ready_state() {
                Some(state) => Some(run_recall(layer, state, call).await),
                None => None,
            };
            (layer, slot, run)
        });
        let mut outcomes = Vec::new();
        for (layer, slot, run) in join_all(asked).await {
            let id = layer.spec().id.as_str();
            let run = run.map(|run| run.into_result(call.context));
            match hook_outcome(layer, slot, Hook::Recall, run, &mut outcomes)? {
                Some(said) => last.insert(id, call.context.head, said),
                None if cached_recall(layer, &mut outcomes, || last.get(id, call.path))
                    .is_none() =>
                {
                    last.remove(id);
                }
                None => {}
            }
        }
        Ok(outcomes)
    }
}

/// How a layer came by its words.
enum RecallSource {
    /// It made them after the answer before.
    Cached(Vec<Contribution>),
    /// It was asked for this call.
    Fresh(RecallOutput),
}

/// What a layer said or why not, and what it tells with that.
struct RecallOutput {
    result: Result<Vec<Contribution>, LayerError>,
    context: HookContext,
}

impl RecallOutput {
    /// What a layer told that failed is not told.
    fn into_result(self, context: &HookContext) -> Result<Vec<Contribution>, LayerError> {
        if self.result.is_ok() {
            context.merge_events(&self.context);
        }
        self.result
    }
}

async fn run_recall(layer: &dyn DynLayer, state: &AnyState, call: RecallInput<'_>) -> RecallOutput {
    let (spec, apart) = (layer.spec(), call.context.fork());
    let call = RecallInput {
        spec,
        context: &apart,
        ..call
    };
    let mut ended = run_with_timeout(layer, Hook::Recall, layer.recall(state, &call)).await;
    for said in ended.iter_mut().flatten() {
        ensure_source_prefix(said, spec.id.as_str());
    }
    RecallOutput {
        result: ended,
        context: apart,
    }
}

/// What a layer that has just failed said last, if that may be said again; its outcome says so then.
fn cached_recall<'a>(
    layer: &dyn DynLayer,
    outcomes: &mut [HookOutcome],
    last: impl FnOnce() -> Option<&'a [Contribution]>,
) -> Option<&'a [Contribution]> {
    let outcome = outcomes.last_mut()?;
    let HookStatus::Failed { why } = &outcome.status else {
        return None;
    };
    if layer.spec().stability == Stability::Volatile {
        return None;
    }
    let said = last()?;
    outcome.status = HookStatus::Stale { why: why.clone() };
    Some(said)
}

/// Words carry their layer's name, or one below it.
fn ensure_source_prefix(said: &mut Contribution, id: &str) {
    let below = said.source.strip_prefix(id);
    if !below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
        said.source = id.to_owned();
    }
}
