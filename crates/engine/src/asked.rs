//! Asking a model on the side, told to traces and metrics: for layers and summaries.
//!
//! Not here: the calls of agents, which are streamed (`contexture-runs`).

use contexture_models::{Model, ModelError, ModelRequest, ModelResponse};
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
