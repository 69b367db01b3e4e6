//! What all layers say in one call.

use contexture_compile::{Contribution, Stability};
use contexture_ir::ToolDefinition;
use futures_util::future::join_all;

use crate::error::LayersError;
use crate::history::Projection;
use crate::layers::Layers;
use crate::outcome::{Hook, Outcome, Status};
use crate::recall::{Recall, Recalled};
use crate::running::{guarded, skipped};
use crate::spec::{OnError, RecallMode};
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
            let ready = spec.recall == RecallMode::Eventual;
            let ready = ready
                .then(|| last.get(spec.id.as_str(), call.path))
                .flatten();
            let ready = ready.map(<[_]>::to_vec);
            async move {
                match (ready, slot.ready()) {
                    (Some(said), _) => Some(Ok(said)),
                    (None, None) => None,
                    (None, Some(state)) => {
                        let call = Recall { spec, ..call };
                        Some(guarded(spec.timeouts.recall, layer.recall(state, &call)).await)
                    }
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
            let spec = layer.spec();
            let id = spec.id.as_str();
            let status = match answer {
                None => skipped(slot),
                Some(Ok(mut said)) => {
                    said.iter_mut().for_each(|said| name(said, id));
                    last.put(id, call.context.head, said.clone());
                    gathered.contributions.extend(said);
                    Status::Ok
                }
                Some(Err(source)) if spec.on_error == OnError::Fail => {
                    return Err(LayersError::Layer {
                        id: spec.id.clone(),
                        hook: Hook::Recall,
                        source,
                    });
                }
                Some(Err(error)) => {
                    let why = error.to_string();
                    let stale = spec.stability != Stability::Volatile;
                    let stale = stale.then(|| last.get(id, call.path)).flatten();
                    match stale {
                        Some(said) => {
                            gathered.contributions.extend_from_slice(said);
                            Status::Stale { why }
                        }
                        None => Status::Failed { why },
                    }
                }
            };
            gathered.outcomes.push(Outcome {
                layer: spec.id.clone(),
                hook: Hook::Recall,
                status,
            });
            if let Some(state) = slot.ready() {
                // A layer whose words are missing may still say how the history is shown.
                let mut projection = gathered.projection.clone();
                if layer.project_history(state, &mut projection).is_ok() {
                    gathered.projection = projection;
                }
            }
        }
        Ok(gathered)
    }

    /// Asks those layers again whose words are made after an answer, for the next call.
    pub async fn refresh(&self, states: &LayerStates, call: Recall<'_>, last: &mut Recalled) {
        let late = self.iter().zip(&states.slots);
        let late = late.filter(|(layer, _)| layer.spec().recall == RecallMode::Eventual);
        let asked = late.filter_map(|(layer, slot)| {
            let (spec, state) = (layer.spec(), slot.ready()?);
            Some(async move {
                let call = Recall { spec, ..call };
                let said = guarded(spec.timeouts.recall, layer.recall(state, &call)).await;
                (spec, said)
            })
        });
        for (spec, said) in join_all(asked).await {
            if let Ok(said) = said {
                last.put(spec.id.as_str(), call.context.head, said);
            }
        }
    }
}

/// Words carry their layer's name, or one below it.
fn name(said: &mut Contribution, id: &str) {
    let below = said.source.strip_prefix(id);
    if !below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
        said.source = id.to_owned();
    }
}
