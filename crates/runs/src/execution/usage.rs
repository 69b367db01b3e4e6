//! The usage of a run, computed from its stored answers.

use contexture_catalogue::Catalogue;
use contexture_engine::{Conversation, EngineError, run_prefix};
use contexture_ir::Usage;
use contexture_store::NodeState;

use crate::execution::next_step::RunPath;
use crate::limits::RunUsage;

/// Returns the usage of one model call. A model that the catalogue does not know has no price.
pub(crate) fn model_call_usage(catalogue: &Catalogue, model: &str, usage: &Usage) -> RunUsage {
    match catalogue.resolve(model) {
        Ok(spec) => RunUsage::from_price(usage, &spec.prices, spec.cache.kind),
        Err(_) => RunUsage::unpriced_call(usage),
    }
}

/// Sums the usage of a run's answers and children. Answers that lost a race count too: they were paid for. Time is
/// added by the caller.
pub(crate) async fn load_usage(
    chat: &Conversation,
    path: &RunPath,
    state: &NodeState,
) -> Result<RunUsage, EngineError> {
    let mut spent = RunUsage::default();
    // Computed from responses, not from a stored total: a crash between an answer and its total would lose its cost.
    for response in path.answers() {
        let store = chat.engine().store();
        let record = store
            .load_response(chat.owner(), chat.id(), response)
            .await?;
        let usage = record.usage.as_deref();
        let usage: Usage = usage
            .and_then(|usage| serde_json::from_str(usage).ok())
            .unwrap_or_default();
        let model = record.model.unwrap_or_default();
        spent.add(&model_call_usage(chat.engine().catalogue(), &model, &usage));
    }
    spent.steps = path.step_count().into();
    let prefix = format!("{}@child/", run_prefix(path.run));
    for key in state
        .root
        .keys()
        .filter(|key| key.as_str().starts_with(&prefix))
    {
        let child = state
            .loaded_value(key)
            .and_then(|bytes| serde_json::from_slice(bytes).ok());
        if let Some(child) = child {
            spent.roll_up(&child);
        }
    }
    Ok(spent)
}
