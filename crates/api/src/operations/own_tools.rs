//! Own tools: functions of layers and the one that reads what was left out. Their calls are answered here, not by the client.

use contexture::compile::READ_TOOL;
use contexture::compile::reading::ReadReply;
use contexture::ir::Raw;
use contexture::{Conversation, EngineError};

/// What becomes of changes that a function makes to states of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// They are stored behind the head.
    Saved,
    /// They are discarded: a state node would be in the history where no client sends one.
    Discarded,
}

/// Returns whether calls of this tool are answered for the conversation as it is set up.
#[must_use]
pub(crate) fn is_own_tool(chat: &Conversation, name: &str) -> bool {
    name == READ_TOOL || chat.layers().find_function(name).is_some()
}

/// Answers a call of an own tool. A failure is told to the model, which can go on without.
pub async fn answer_own_call(
    chat: &Conversation,
    name: &str,
    arguments: &str,
    state: PathState,
) -> ReadReply {
    if name == READ_TOOL {
        let answer = chat.read_context(arguments).await;
        return answer.unwrap_or_else(|error| {
            tracing::warn!(%error, "what a model wanted to read could not be read");
            ReadReply::from_error("it cannot be read now")
        });
    }
    // Models send nothing at all for a function without parameters.
    let arguments = match arguments.trim() {
        "" => "{}",
        given => given,
    };
    let Ok(arguments) = Raw::parse(arguments) else {
        return ReadReply::from_error("the arguments are no JSON");
    };
    let called = match state == PathState::Discarded && has_path_state(chat, name) {
        true => call_without_saving(chat, name, &arguments).await,
        false => chat.call_function(name, &arguments).await,
    };
    match called {
        Ok(given) => ReadReply {
            text: given.as_string().unwrap_or_else(|| given.get().to_owned()),
            is_error: false,
        },
        Err(EngineError::Function(error)) => ReadReply::from_error(error),
        Err(error) => {
            tracing::warn!(%error, name, "what a model wanted done could not be done");
            ReadReply::from_error("it cannot be done now")
        }
    }
}

/// Calls a function and discards what it changed in states of the path. Of skills it would record which were read, which has
/// no use where no run goes on from it.
async fn call_without_saving(
    chat: &Conversation,
    name: &str,
    arguments: &Raw,
) -> Result<Raw, EngineError> {
    let mut session = chat.layer_session(None).await?;
    Ok(session.call_function(name, arguments).await?)
}

fn has_path_state(chat: &Conversation, name: &str) -> bool {
    let layers = chat.layers();
    let mut functions = layers.functions();
    let layer = functions.find(|(_, function)| function.tool == name);
    let mut specs = layers.specs();
    layer.is_some_and(|(id, _)| specs.any(|spec| spec.id == *id && spec.scope.is_on_tree()))
}
