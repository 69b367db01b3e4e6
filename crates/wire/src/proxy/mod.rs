//! What a proxy changes in a provider's requests and answers: one trait, and what its implementations share.
//!
//! A proxy takes tools out of requests that may not be offered, answers calls of tools of its own (server tools) in further
//! rounds, and gives the client one answer for all rounds. Each format's folder says in its `proxy.rs` how its JSON is edited.
//! Everything here is pure: texts and values in, texts and values out. Not here: when something is edited, and HTTP.

pub(crate) mod filter_tools;
pub(crate) mod json_edit;
pub(crate) mod rounds;

use std::fmt;

use serde_json::Value;
use serde_json::value::RawValue;

pub use filter_tools::{ToolFilterError, ToolRule};

/// Reports whether the name of a call is one of a tool that the proxy answers itself.
pub type IsServerTool<'a> = &'a dyn Fn(&Value) -> bool;

/// Returns a top-level member of a request that is neither missing nor null.
pub type RequestMember<'a, 'r> = &'a dyn Fn(&str) -> Option<&'r RawValue>;

/// The edits of a provider's JSON that a proxy needs.
pub trait ProxyEdits: Sync {
    /// Takes tools out of a request that may not be offered; `None` if it has none of those.
    ///
    /// It fails closed: what cannot be read is an error.
    ///
    /// # Errors
    /// [`ToolFilterError`].
    fn filter_tools(
        &self,
        body: &str,
        rule: ToolRule<'_>,
    ) -> Result<Option<String>, ToolFilterError>;

    /// Returns the request with calls of tools forbidden. The tools stay, as the history has calls of them.
    fn forbid_tool_calls(&self, body: &str) -> String;

    /// Reports whether a request asks for a single answer, in the foreground: several cannot be merged with later rounds.
    fn is_single_answer(&self, member: RequestMember<'_, '_>) -> bool {
        rounds::is_single_answer(member)
    }

    /// Reports whether the client may continue from the id with which the answer's stream begins. Only the last of several
    /// rounds can be continued from.
    fn is_continued_by_first_id(&self, _member: RequestMember<'_, '_>) -> bool {
        false
    }

    /// Reports whether the document of a streamed answer is an array of its events.
    fn is_event_array(&self, _document: &str) -> bool {
        false
    }

    /// Makes the last round's document the answer of all rounds, but for its usage: without calls of server tools.
    fn merge_rounds(
        &self,
        merged: &mut Value,
        rounds: &[Value],
        is_server_tool: IsServerTool<'_>,
        ending: MergedEnding,
    );

    /// Returns an editor for the events of one streamed answer of several rounds.
    fn stream_edits(&self) -> Box<dyn StreamEdits>;
}

/// Edits the events of one streamed answer, round by round, so that they are valid for the client.
pub trait StreamEdits: fmt::Debug + Send {
    /// Edits an event, and says what the client gets of it.
    fn edit_event(&mut self, event: &mut Value, is_server_tool: IsServerTool<'_>) -> EventAction;

    /// Removes the end of a round from a held event. Returns whether anything is left for the client.
    fn strip_end(&mut self, _event: &mut Value) -> bool {
        false
    }

    /// Begins the next round: what counts per round counts anew.
    fn begin_next_round(&mut self);

    /// Makes a held event the end of the merged answer, `None` where nothing was merged.
    fn rewrite_end(&mut self, event: &mut Value, merged: Option<&Value>);
}

/// What the client gets of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventAction {
    /// The client gets the event as edited.
    Show,
    /// The client gets nothing of the event.
    Drop,
    /// The event is held back until the round is over.
    Hold,
}

/// How a merged answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergedEnding {
    /// It ends as the last round does.
    LastRound,
    /// It ends although the model asked for another round.
    Early,
}
