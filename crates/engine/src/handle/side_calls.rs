//! Model calls beside a run: for layers and for summaries, with their traces, metrics and usage.
//!
//! Not here: prices, and the streamed calls of agents (`contexture-runs`).

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use contexture_compile::{Compiler, Target};
use contexture_ir::{ConversationId, Item, Message, Owner, Role, Usage};
use contexture_layers::LayerError;
use contexture_models::{Model, ModelError, ModelRequest, ModelResponse};
use contexture_store::{CallNames, StateChange};
use contexture_telemetry::ModelCall;
use contexture_wire::lift;
use tracing::Instrument;

use super::Engine;
use super::call_rows::{
    CallTiming, begin_row, failed_outcome, new_call_id, set_row_answer, store_row,
};

/// Who asks a model beside a run: for whom the call is recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SideCaller<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) owner: &'a Owner,
    pub(crate) conversation: &'a ConversationId,
    /// The names it is recorded under, beside the model's; `None`: under no others.
    pub(crate) names: Option<&'a CallNames>,
}

/// One answer, whole. The call is recorded at once and not with what is made of the answer: that may never be stored, and the
/// answer was paid for all the same.
pub(crate) async fn call_model(
    model: &dyn Model,
    request: ModelRequest,
    caller: SideCaller<'_>,
) -> Result<ModelResponse, ModelError> {
    let (format, name) = (request.format, request.model.clone());
    let (id, begun) = (new_call_id(), Instant::now());
    let mut told = ModelCall::begin(format, &name, None);
    // The span ends with the answer, whether or not it can be read.
    let answer = model.answer(request).instrument(told.span().clone()).await;
    let timing = CallTiming {
        duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        ..CallTiming::default()
    };
    let mut row = begin_row(id, format, &name, timing);
    row.details.is_own = true;
    if let Some(names) = caller.names {
        let model = std::mem::take(&mut row.names.model);
        row.names = CallNames {
            model,
            ..names.clone()
        };
    }
    match &answer {
        Ok(answer) => {
            if let Ok(lifted) = lift(format, &answer.body) {
                let info = lifted.transcript.response.unwrap_or_default();
                told.record_response(lifted.transcript.model.as_deref(), &info);
                set_row_answer(caller.engine, &mut row, &info);
            }
        }
        Err(error) => row.outcome = failed_outcome(error),
    }
    told.end(answer.as_ref().err().map(ModelError::kind));
    store_row(caller.engine, caller.owner, Some(caller.conversation), row).await;
    answer
}

/// The model that layers may ask.
#[derive(Clone, Debug)]
pub(crate) struct LayerModel {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) target: Target,
}

impl LayerModel {
    pub(crate) async fn complete_prompt(
        &self,
        prompt: &str,
        caller: SideCaller<'_>,
    ) -> Result<(String, Usage), LayerError> {
        let asked = [Item::Message(Message::text(Role::User, prompt))];
        let compiled = Compiler::new(caller.engine.catalogue()).compile(&asked, &self.target);
        let compiled = compiled.map_err(LayerError::from_message)?;
        let format = self.target.format();
        let request = ModelRequest {
            format,
            model: self.target.model().to_owned(),
            payload: compiled.payload.to_json(),
        };
        let answer = call_model(&*self.model, request, caller).await;
        let answer = answer.map_err(LayerError::from_message)?;
        let answer = lift(format, &answer.body).map_err(LayerError::from_message)?;
        let items = answer.transcript.items.iter();
        let said = items.filter(|item| matches!(item, Item::Message(_)));
        let said = said.map(Item::text).collect::<Vec<_>>().join("\n");
        let info = answer.transcript.response.unwrap_or_default();
        Ok((said, info.usage.unwrap_or_default()))
    }
}

/// Counts calls of models that are made on the side of a run. What it has counted is stored with what is appended next.
pub trait SideUsageTracker: fmt::Debug + Send + Sync {
    /// A model has answered. `by` is the layer that asked, or [`COMPACTION`].
    fn record_call(&self, by: &str, model: &str, usage: &Usage);

    /// What is to be stored; nothing where all is stored.
    fn pending_change(&self) -> Option<StateChange>;

    /// What [`change`](Self::pending_change) gave last is stored.
    fn mark_stored(&self);
}

/// The name under which calls for summaries are counted.
pub const COMPACTION: &str = "compaction";
