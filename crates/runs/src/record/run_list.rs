//! Lists of runs, by pages.
//!
//! Entries are stored by conversation and id, so a list reads those of all runs that it could contain, and keeps no more of them
//! than its page. Not here: what an entry says (`run_entry`).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use contexture_engine::{Conversation, Engine, EngineError};
use contexture_ir::{ConversationId, Owner};
use contexture_store::{KeyScope, ListEntries};
use serde::{Deserialize, Serialize};

use crate::record::run_entry::{RunEntry, RunStatus};
use crate::record::state_keys::RUN_ENTRY_PREFIX;

/// Which runs of an owner to list, newest first. The default lists all of them in one page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// Only runs of this conversation.
    pub conversation: Option<ConversationId>,
    /// Only runs that have one of these statuses; empty for all.
    pub statuses: Vec<RunStatus>,
    /// Only runs of agents of this name.
    pub agent: Option<String>,
    /// Only runs without a parent.
    pub roots_only: bool,
    /// Largest number of runs of a page, at least 1; `None` for no limit.
    pub limit: Option<usize>,
    /// Where the page before ended; `None` for the first page.
    pub after: Option<RunCursor>,
}

/// A place in a list of runs. It stays valid when the run it names changes or goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunCursor {
    /// Start time of the last run of the page, in milliseconds since the Unix epoch.
    pub started_ms: i64,
    /// Id of that run.
    pub run: String,
}

/// A page of a list of runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPage {
    /// The runs, newest first.
    pub runs: Vec<RunEntry>,
    /// Cursor of the next page; `None` on the last.
    pub next: Option<RunCursor>,
}

impl RunQuery {
    /// Whether the list contains this run, on any page.
    fn matches(&self, entry: &RunEntry) -> bool {
        (self.statuses.is_empty() || self.statuses.contains(&entry.status))
            && self.agent.as_ref().is_none_or(|name| *name == entry.agent)
            && (!self.roots_only || entry.parent.is_none())
    }
}

impl RunCursor {
    fn of_run(entry: &RunEntry) -> Self {
        Self {
            started_ms: entry.started_ms,
            run: entry.run.clone(),
        }
    }
}

/// Lists an owner's runs, of all conversations or of one, newest first.
///
/// # Errors
/// The store's.
pub async fn list_runs(
    engine: &Engine,
    owner: &Owner,
    of: Option<&Conversation>,
) -> Result<Vec<RunEntry>, EngineError> {
    let query = RunQuery {
        conversation: of.map(|chat| chat.id().clone()),
        ..RunQuery::default()
    };
    Ok(list_runs_with(engine, owner, &query).await?.runs)
}

/// Lists a page of an owner's runs, newest first. The page is all that it keeps in memory; the entries of all runs of the owner, or
/// of the conversation, are read.
///
/// ```
/// # use std::sync::Arc;
/// # use contexture_models::ScriptedModel;
/// use contexture_runs::{Agent, RunQuery, RunStatus, list_runs_with, run_turn_with_text};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
/// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
/// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
/// run_turn_with_text(&chat, &agent, "How is the weather?").await?;
/// run_turn_with_text(&chat, &agent, "And tomorrow?").await?;
///
/// let newest = RunQuery { limit: Some(1), ..RunQuery::default() };
/// let page = list_runs_with(chat.engine(), chat.owner(), &newest).await?;
/// let older = RunQuery { after: page.next, ..newest };
/// let older = list_runs_with(chat.engine(), chat.owner(), &older).await?;
/// assert_eq!((page.runs.len(), older.runs.len(), older.next), (1, 1, None));
///
/// let waiting = RunQuery { statuses: vec![RunStatus::Waiting], ..RunQuery::default() };
/// assert!(list_runs_with(chat.engine(), chat.owner(), &waiting).await?.runs.is_empty());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The store's.
pub async fn list_runs_with(
    engine: &Engine,
    owner: &Owner,
    query: &RunQuery,
) -> Result<RunPage, EngineError> {
    let scope = query.conversation.clone().map(KeyScope::Conversation);
    // Newest first, and by id where times are equal, so that the order is the same in every store.
    let mut found: BTreeMap<Reverse<RunCursor>, RunEntry> = BTreeMap::new();
    let mut next_entries = None;
    let mut has_more = false;
    loop {
        let list = ListEntries {
            scope: scope.clone(),
            prefix: RUN_ENTRY_PREFIX.to_owned(),
            limit: None,
            after: next_entries,
        };
        let page = engine.store().list_entries(owner, list).await?;
        for (scope, stored) in page.entries {
            let KeyScope::Conversation(conversation) = scope else {
                continue;
            };
            let Some(entry) = RunEntry::parse_stored(&stored.value) else {
                continue;
            };
            let place = RunCursor::of_run(&entry);
            let is_before_page = query.after.as_ref().is_some_and(|after| place >= *after);
            if is_before_page || !query.matches(&entry) {
                continue;
            }
            let entry = RunEntry {
                conversation: Some(conversation),
                ..entry
            };
            found.insert(Reverse(place), entry);
            // The oldest goes, so that a page of any list of any length takes the memory of a page.
            if query.limit.is_some_and(|limit| found.len() > limit.max(1)) {
                found.pop_last();
                has_more = true;
            }
        }
        match page.next {
            Some(next) => next_entries = Some(next),
            None => break,
        }
    }
    let last = found.last_key_value().filter(|_| has_more);
    let next = last.map(|(Reverse(place), _)| place.clone());
    Ok(RunPage {
        runs: found.into_values().collect(),
        next,
    })
}
