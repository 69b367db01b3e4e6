//! What a run has spent, as its answers say.

use contexture_catalogue::Catalogue;
use contexture_engine::{Conversation, EngineError, run_prefix};
use contexture_ir::{RunId, Usage};
use contexture_store::{Node, State};
use std::sync::Arc;

use crate::usage::Spent;

/// What a call of a model cost. One the catalogue does not know has no price.
pub(crate) fn price(catalogue: &Catalogue, model: &str, usage: &Usage) -> Spent {
    match catalogue.resolve(model) {
        Ok(spec) => Spent::priced(usage, &spec.prices, spec.cache.kind),
        Err(_) => Spent::call(usage),
    }
}

/// How many steps a run has taken, as its nodes say.
pub(crate) fn steps_of(run: RunId, nodes: &[Arc<Node>]) -> u32 {
    let own = nodes.iter().filter(|node| node.run == Some(run));
    own.filter_map(|node| node.step).max().unwrap_or(0)
}

/// What the answers on a run's path cost, and what its children spent. Time is not known from there.
pub(crate) async fn spent_by(
    chat: &Conversation,
    run: RunId,
    nodes: &[Arc<Node>],
    state: &State,
) -> Result<Spent, EngineError> {
    let mut spent = Spent::default();
    let mut last = None;
    for node in nodes.iter().filter(|node| node.run == Some(run)) {
        let Some(response) = node.response.filter(|response| Some(*response) != last) else {
            continue;
        };
        last = Some(response);
        let store = chat.engine().store();
        let record = store.response(chat.owner(), chat.id(), response).await?;
        let usage = record.usage.as_deref();
        let usage: Usage = usage
            .and_then(|usage| serde_json::from_str(usage).ok())
            .unwrap_or_default();
        let model = record.model.unwrap_or_default();
        spent.add(&price(chat.engine().catalogue(), &model, &usage));
    }
    spent.steps = steps_of(run, nodes).into();
    let prefix = format!("{}@child/", run_prefix(run));
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
