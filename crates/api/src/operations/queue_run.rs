//! Runs that are asked for over an interface, and carried out by a program that has their agent.

use contexture::Conversation;
use contexture::EngineError;
use contexture::ir::{Item, Message, Role, RunId};
use contexture::runs::{self, RunEntry, RunError};

use crate::documents::{QueueRunDocument, RunInput};
use crate::operations::OperationError;
use crate::operations::message_input::read_items;

/// Queues a run on the branch of the handle: see [`runs::queue_run`]. `run` is its id; the same one again is the same run.
///
/// # Errors
/// `bad_message` with the place of an item that cannot be read; an input without items or with more than `max_items`; an agent
/// without a name; the engine's.
pub async fn queue_run(
    chat: &Conversation,
    run: RunId,
    asked: &QueueRunDocument,
    max_items: usize,
) -> Result<RunEntry, OperationError> {
    if asked.agent.is_empty() {
        let detail = "`agent` is empty: give the name of the agent that is to work";
        return Err(OperationError::member("agent", detail));
    }
    let input: Vec<Item> = match &asked.input {
        RunInput::Text(text) => vec![Message::text(Role::User, text.clone()).into()],
        RunInput::Items(items) if items.len() > max_items => {
            let (items, limit) = (items.len(), max_items);
            return Err(EngineError::DraftTooLong { items, limit }.into());
        }
        RunInput::Items(items) => read_items("input", items)?,
    };
    if input.is_empty() {
        let detail = "`input` is empty: give a text or items";
        return Err(OperationError::member("input", detail));
    }
    runs::queue_run(chat, run, &asked.agent, input)
        .await
        .map_err(|error| match error {
            RunError::Engine(error) => error.into(),
            // Nothing is driven, so nothing else can fail.
            error => OperationError::member("input", error.to_string()),
        })
}
