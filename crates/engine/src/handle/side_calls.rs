//! Model calls beside a run: for layers and for summaries, with their traces, metrics and usage.
//!
//! Not here: prices, and the streamed calls of agents (`contexture-runs`).

use std::fmt;
use std::sync::Arc;

use contexture_catalogue::Catalogue;
use contexture_compile::{Compiler, Target};
use contexture_ir::{Item, Message, Role, Usage};
use contexture_layers::LayerError;
use contexture_models::{Model, ModelError, ModelRequest, ModelResponse};
use contexture_store::StateChange;
use contexture_telemetry::ModelCall;
use contexture_wire::lift;
use tracing::Instrument;

/// One answer, whole.
pub(crate) async fn call_model(
    model: &dyn Model,
    request: ModelRequest,
) -> Result<ModelResponse, ModelError> {
    let format = request.format;
    let mut told = ModelCall::begin(format, &request.model, None);
    // The span ends with the answer, whether or not it can be read.
    let answer = model.answer(request).instrument(told.span().clone()).await;
    if let Some(lifted) = answer
        .as_ref()
        .ok()
        .and_then(|answer| lift(format, &answer.body).ok())
    {
        let info = lifted.transcript.response.unwrap_or_default();
        told.record_response(lifted.transcript.model.as_deref(), &info);
    }
    told.end(answer.as_ref().err().map(ModelError::kind));
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
        catalogue: &Catalogue,
    ) -> Result<(String, Usage), LayerError> {
        let asked = [Item::Message(Message::text(Role::User, prompt))];
        let compiled = Compiler::new(catalogue).compile(&asked, &self.target);
        let compiled = compiled.map_err(LayerError::from_message)?;
        let format = self.target.format();
        let request = ModelRequest {
            format,
            model: self.target.model().to_owned(),
            payload: compiled.payload.to_json(),
        };
        let answer = call_model(&*self.model, request).await;
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
