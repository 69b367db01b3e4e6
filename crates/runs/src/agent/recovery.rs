//! Taking up what was left: which runs are open, and going on with one.

use std::time::{Duration, Instant};

use contexture_engine::{Conversation, Engine, EngineError};
use contexture_ir::{BranchName, Owner, Raw, RunId};
use contexture_store::{At, KeyScope, ListEntries, StateChange, StateKey, StateRequest};
use contexture_tools::Loaded;

use super::beside::Books;
use super::config::Agent;
use super::ended::RunEnded;
use super::entry::{RunEntry, RunRecord, VERSION};
use super::keys::{ENTRIES, beside_key, run_key, stop_key, value_key};
use super::run::{Run, json};
use super::situation::{Next, RunPath, next, texts};
use super::spending::spent_by;
use super::started::Left;
use crate::cancel::Abort;
use crate::error::RunError;

/// Where the toolkits stand that were loaded on a path.
const LOADED: &str = "@toolkits";

/// The owner's runs, of all conversations or of one, as lists show them: the newest first.
///
/// # Errors
/// The store's.
pub async fn runs(
    engine: &Engine,
    owner: &Owner,
    of: Option<&Conversation>,
) -> Result<Vec<RunEntry>, EngineError> {
    let scope = of.map(|chat| KeyScope::Conversation(chat.id().clone()));
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let list = ListEntries {
            scope: scope.clone(),
            prefix: ENTRIES.to_owned(),
            limit: None,
            after,
        };
        let page = engine.store().entries(owner, list).await?;
        for (scope, entry) in page.entries {
            let KeyScope::Conversation(conversation) = scope else {
                continue;
            };
            found.extend(RunEntry::read(&entry.value).map(|entry| RunEntry {
                conversation: Some(conversation),
                ..entry
            }));
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    found.sort_by(|a, b| (b.began_ms, &b.run).cmp(&(a.began_ms, &a.run)));
    Ok(found)
}

impl Run {
    /// Takes up an open run where it was cut off, or where it waits. `chat` is any handle on its conversation.
    ///
    /// # Errors
    /// [`RunError::ItemMismatch`] for a run that is not there or has ended; [`RunError::Engine`].
    pub async fn resume(chat: &Conversation, id: RunId, agent: &Agent) -> Result<Self, RunError> {
        let nothing = |found: &str| RunError::ItemMismatch {
            what: format!("run {id}"),
            expected: "an open run of this conversation".to_owned(),
            found: found.to_owned(),
        };
        let entry = RunEntry::of(chat, id).await?;
        let entry = entry.ok_or_else(|| nothing("no run of this id"))?;
        let branch = BranchName::new(&entry.branch).map_err(EngineError::from)?;
        let at = chat.on_branch(branch);
        let run = Self::taken_up(&at, id, agent, Abort::new()).await?;
        if run.is_none() && entry.status.is_open() {
            // It ended, and only its entry does not say so; or it never began.
            let ended = match RunEnded::of(chat, id).await? {
                Some((_, ended)) => ended,
                None => RunEnded::never_began(chat.engine().now_ms()),
            };
            ended.onto(entry).put(chat, id).await?;
        }
        run.ok_or_else(|| nothing("a run that has ended"))
    }

    /// A run as its path says, if its record is there.
    pub(crate) async fn taken_up(
        chat: &Conversation,
        id: RunId,
        agent: &Agent,
        abort: Abort,
    ) -> Result<Option<Self>, RunError> {
        let request = StateRequest::all(At::Branch(chat.branch()));
        let store = chat.engine().store();
        let state = store.state(chat.owner(), chat.id(), request).await;
        let state = state.map_err(EngineError::from)?;
        let Some(record) = state.value(&run_key(id)?) else {
            return Ok(None);
        };
        let broken = |why: String| EngineError::StoredState {
            key: format!("run {id}"),
            why,
        };
        let record: RunRecord =
            serde_json::from_slice(record).map_err(|error| broken(error.to_string()))?;
        let base = record.base.as_ref().map(|base| base.parse());
        let base = base
            .transpose()
            .map_err(|_| broken("its base is no node id".to_owned()))?;
        let path = RunPath::read(chat, id, base, record.began_ms).await?;
        let nodes = &path.nodes;
        let session = chat.layer_session(Some(record.place(id))).await?;
        let books = match state.value(&beside_key(id)?) {
            Some(books) => {
                serde_json::from_slice(books).map_err(|error| broken(error.to_string()))?
            }
            None => Books::new(),
        };
        let began = record.began_ms;
        let mut run = Self::new(
            chat.clone(),
            agent.clone(),
            id,
            record,
            session,
            abort,
            books,
        )?;
        run.spent = spent_by(chat, &path, &state).await?;
        run.step = path.steps();
        let last = nodes
            .iter()
            .map(|node| node.created_ms)
            .max()
            .unwrap_or(began);
        let before = u64::try_from(last.saturating_sub(began)).unwrap_or(0);
        run.before = Duration::from_millis(before);
        run.since = Instant::now();
        let next = match state.value(&stop_key(id)?) {
            Some(reason) => Next::End {
                text: serde_json::from_slice(reason).unwrap_or_default(),
            },
            None => next(id, nodes)?,
        };
        run.value = match state.value(&value_key(id)?) {
            Some(value) => Some(
                Raw::parse(String::from_utf8_lossy(value))
                    .map_err(|error| broken(error.to_string()))?,
            ),
            None => None,
        };
        // That of the last answer comes with what comes next.
        run.texts = match &next {
            Next::End { .. } => texts(id, path.before_last_answer())?,
            Next::Ask { .. } | Next::Run(_) => texts(id, nodes)?,
        };
        run.last_text = run.texts.last().cloned();
        run.goes_on_with(next);
        run.answered = path.ends_with_answer();
        let calls: Vec<_> = match &run.next {
            Next::Run(calls) => calls.calls.iter().map(|call| call.node).collect(),
            Next::Ask { .. } | Next::End { .. } => Vec::new(),
        };
        run.left = Left::of(id, nodes, &state, calls.into_iter())?;
        let loaded = state.value(&StateKey::new(LOADED).map_err(EngineError::from)?);
        run.loaded = loaded
            .and_then(|bytes| serde_json::from_slice(bytes).ok())
            .unwrap_or_else(Loaded::default);
        Ok(Some(run))
    }

    pub(crate) fn loaded_change(&self) -> Result<StateChange, RunError> {
        let key = StateKey::new(LOADED).map_err(EngineError::from)?;
        Ok(StateChange::put(key, VERSION, json(&self.loaded)))
    }
}
