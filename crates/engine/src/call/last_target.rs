//! The target of a branch's newest answer: who is asked next, where nobody says otherwise.

use contexture_catalogue::Catalogue;
use contexture_ir::ResponseId;
use contexture_store::{PathEnd, ReadRequest, ResponseInputs, find_last_response};
use contexture_wire::Format;

use super::compile::format_of_plan_key;
use super::stored_inputs::CallRecord;
use crate::error::EngineError;
use crate::handle::{Conversation, load_state};
use crate::state::{settings_prefix, stored_settings};

/// How many items before the end of a path are searched for its newest answer.
const NEWEST_ITEMS: u64 = 256;

/// How many calls of a conversation are searched for that of an answer, from the newest.
const NEWEST_CALLS: usize = 64;

/// The model that gave the newest answer of a branch, and how it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastTarget {
    /// Name of the model.
    pub model: String,
    /// Format of the request; `None` if it is not known.
    pub format: Option<Format>,
}

impl LastTarget {
    /// Returns the format in which the model is asked again: that of its last request, else the usual one of its provider. A
    /// model that the catalogue does not know has the default format: it is refused where its window is needed.
    #[must_use]
    pub fn request_format(&self, catalogue: &Catalogue) -> Format {
        let usual = || {
            let spec = catalogue.resolve(&self.model);
            Format::of_provider(spec.map_or("", |spec| spec.provider.as_str()))
        };
        self.format.unwrap_or_else(usual)
    }
}

/// Returns the model of the newest recorded answer on a path, among its last 256 items, with the format it was asked in; without one
/// that of the request that the history was imported with. `None` if neither names one.
pub(crate) async fn find_last_target(
    chat: &Conversation,
    at: PathEnd,
) -> Result<Option<LastTarget>, EngineError> {
    let request = ReadRequest::last_nodes(at.clone(), NEWEST_ITEMS);
    let (store, owner, id) = (chat.store(), chat.owner(), chat.id());
    if let Some(response) = find_last_response(store, owner, id, request).await? {
        let record = store.load_response(owner, id, response).await?;
        let Some(model) = record.model.clone() else {
            return Ok(None);
        };
        let format = match compiled_format(&record.inputs) {
            Some(format) => Some(format),
            None => passed_format(chat, response).await?,
        };
        return Ok(Some(LastTarget { model, format }));
    }
    let state = load_state(chat, at, settings_prefix()).await?;
    let model = stored_settings(&state)?.and_then(|settings| settings.model);
    Ok(model.map(|model| LastTarget {
        model,
        format: None,
    }))
}

/// Returns the format that a compiled call was sent in; `None` for another call.
fn compiled_format(inputs: &ResponseInputs) -> Option<Format> {
    let record: CallRecord = serde_json::from_slice(inputs.recorded_bytes()?).ok()?;
    format_of_plan_key(&record.plan)
}

/// Returns the format that a request was passed on in, which the record of calls has; `None` where it has it no more.
async fn passed_format(
    chat: &Conversation,
    response: ResponseId,
) -> Result<Option<Format>, EngineError> {
    let rows = chat.newest_calls(NEWEST_CALLS).await?;
    let row = rows.iter().find(|row| row.response == Some(response));
    Ok(row.and_then(|row| row.details.format.parse().ok()))
}
