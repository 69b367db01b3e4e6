//! What all layers say in one call.

use contexture_compile::{Contribution, Stability};
use contexture_ir::ToolDefinition;
use futures_util::future::join_all;

use crate::context::HookContext;
use crate::erased::{AnyState, Erased};
use crate::error::{LayerError, LayersError};
use crate::history::Projection;
use crate::layers::Layers;
use crate::outcome::{Hook, Outcome, Status};
use crate::recall::{Recall, Recalled};
use crate::running::{guarded, judged};
use crate::spec::RecallMode;
use crate::states::LayerStates;

/// What all layers say in one call.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// Their words, in order.
    pub contributions: Vec<Contribution>,
    /// Their tools, in order.
    pub tools: Vec<ToolDefinition>,
    /// How the history is shown.
    pub projection: Projection,
    /// What became of each layer.
    pub outcomes: Vec<Outcome>,
}

impl Layers {
    /// Asks all layers for their words, at once, each in its own time. `call.spec` is set for each.
    ///
    /// # Errors
    /// The failure of a layer that must not fail.
    pub async fn gather(
        &self,
        states: &LayerStates,
        call: Recall<'_>,
        projection: Projection,
        last: &mut Recalled,
    ) -> Result<Gathered, LayersError> {
        let asked = self.iter().zip(&states.slots).map(|(layer, slot)| {
            let spec = layer.spec();
            let eventual = spec.recall == RecallMode::Eventual;
            let ready = eventual.then(|| last.get(spec.id.as_str(), call.path));
            let ready = ready.flatten().map(<[_]>::to_vec);
            async move {
                match (slot.ready(), ready) {
                    (None, _) => None,
                    (Some(_), Some(said)) => Some(Asked::Before(said)),
                    (Some(state), None) => Some(Asked::Now(recalled(layer, state, call).await)),
                }
            }
        });
        let answers = join_all(asked).await;
        let mut gathered = Gathered {
            tools: self.tools(),
            projection,
            ..Gathered::default()
        };
        for ((layer, slot), answer) in self.iter().zip(&states.slots).zip(answers) {
            let id = layer.spec().id.as_str();
            let (run, fresh) = match answer {
                None => (None, false),
                Some(Asked::Before(said)) => (Some(Ok(said)), false),
                Some(Asked::Now(run)) => (Some(run.end(call.context)), true),
            };
            let outcomes = &mut gathered.outcomes;
            if let Some(said) = judged(layer, slot, Hook::Recall, run, outcomes)? {
                if fresh {
                    last.put(id, call.context.head, said.clone());
                }
                gathered.contributions.extend(said);
            } else if let Some(said) = stale(layer, outcomes, || last.get(id, call.path)) {
                gathered.contributions.extend_from_slice(said);
            }
            if let Some(state) = slot.ready() {
                // A layer whose words are missing may still say how the history is shown.
                let mut projection = gathered.projection.clone();
                match layer.project_history(state, &mut projection) {
                    Ok(()) => gathered.projection = projection,
                    failed => {
                        judged(layer, slot, Hook::ProjectHistory, Some(failed), outcomes)?;
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
    pub async fn refresh(
        &self,
        states: &LayerStates,
        call: Recall<'_>,
        last: &mut Recalled,
    ) -> Result<Vec<Outcome>, LayersError> {
        let late = self.iter().zip(&states.slots);
        let late = late.filter(|(layer, _)| layer.spec().recall == RecallMode::Eventual);
        let asked = late.map(async |(layer, slot)| {
            let run = match slot.ready() {
                Some(state) => Some(recalled(layer, state, call).await),
                None => None,
            };
            (layer, slot, run)
        });
        let mut outcomes = Vec::new();
        for (layer, slot, run) in join_all(asked).await {
            let id = layer.spec().id.as_str();
            let run = run.map(|run| run.end(call.context));
            match judged(layer, slot, Hook::Recall, run, &mut outcomes)? {
                Some(said) => last.put(id, call.context.head, said),
                None if stale(layer, &mut outcomes, || last.get(id, call.path)).is_none() => {
                    last.forget(id);
                }
                None => {}
            }
        }
        Ok(outcomes)
    }
}

/// How a layer came by its words.
enum Asked {
    /// It made them after the answer before.
    Before(Vec<Contribution>),
    /// It was asked for this call.
    Now(Said),
}

/// What a layer said or why not, and what it tells with that.
struct Said {
    ended: Result<Vec<Contribution>, LayerError>,
    apart: HookContext,
}

impl Said {
    /// What a layer told that failed is not told.
    fn end(self, context: &HookContext) -> Result<Vec<Contribution>, LayerError> {
        if self.ended.is_ok() {
            context.take_over(&self.apart);
        }
        self.ended
    }
}

async fn recalled(layer: &dyn Erased, state: &AnyState, call: Recall<'_>) -> Said {
    let (spec, apart) = (layer.spec(), call.context.apart());
    let call = Recall {
        spec,
        context: &apart,
        ..call
    };
    let mut ended = guarded(layer, Hook::Recall, layer.recall(state, &call)).await;
    for said in ended.iter_mut().flatten() {
        name(said, spec.id.as_str());
    }
    Said { ended, apart }
}

/// What a layer that has just failed said last, if that may be said again; its outcome says so then.
fn stale<'a>(
    layer: &dyn Erased,
    outcomes: &mut [Outcome],
    last: impl FnOnce() -> Option<&'a [Contribution]>,
) -> Option<&'a [Contribution]> {
    let outcome = outcomes.last_mut()?;
    let Status::Failed { why } = &outcome.status else {
        return None;
    };
    if layer.spec().stability == Stability::Volatile {
        return None;
    }
    let said = last()?;
    outcome.status = Status::Stale { why: why.clone() };
    Some(said)
}

/// Words carry their layer's name, or one below it.
fn name(said: &mut Contribution, id: &str) {
    let below = said.source.strip_prefix(id);
    if !below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
        said.source = id.to_owned();
    }
}
