//! What a run has spent, as its answers say.

use std::collections::BTreeSet;

use contexture_catalogue::Catalogue;
use contexture_engine::{Conversation, EngineError, run_prefix};
use contexture_ir::{ResponseId, Usage};
use contexture_store::State;

use super::situation::RunPath;
use crate::usage::Spent;

/// What a call of a model cost. One the catalogue does not know has no price.
pub(crate) fn price(catalogue: &Catalogue, model: &str, usage: &Usage) -> Spent {
    match catalogue.resolve(model) {
        Ok(spec) => Spent::priced(usage, &spec.prices, spec.cache.kind),
        Err(_) => Spent::call(usage),
    }
}

/// What a run's answers cost, those included that somebody was faster than, and what its children spent. Time is not
/// known from there.
pub(crate) async fn spent_by(
    chat: &Conversation,
    path: &RunPath,
    state: &State,
) -> Result<Spent, EngineError> {
    let mut spent = Spent::default();
    let answers: BTreeSet<ResponseId> = path.own().filter_map(|node| node.response).collect();
    for response in answers {
        let store = chat.engine().store();
        let record = store.response(chat.owner(), chat.id(), response).await?;
        let usage = record.usage.as_deref();
        let usage: Usage = usage
            .and_then(|usage| serde_json::from_str(usage).ok())
            .unwrap_or_default();
        let model = record.model.unwrap_or_default();
        spent.add(&price(chat.engine().catalogue(), &model, &usage));
    }
    spent.steps = path.steps().into();
    let prefix = format!("{}@child/", run_prefix(path.run));
    for key in state
        .root
        .keys()
        .filter(|key| key.as_str().starts_with(&prefix))
    {
        let child = state
            .value(key)
            .and_then(|bytes| serde_json::from_slice(bytes).ok());
        if let Some(child) = child {
            spent.roll_up(&child);
        }
    }
    Ok(spent)
}
