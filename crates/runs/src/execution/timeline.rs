//! What a run did when: steps of the model, tools, waits for a decision, and the runs of its sub-agents.
//!
//! All of it follows from what is stored: an answer of the model, a call, a decision and an output are nodes, each with its time. A
//! step of the model begins when what came before it was stored, and a tool when its call was, or the decision that allowed it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contexture_engine::{Engine, EngineError, parse_node_item};
use contexture_ir::{BranchName, ConversationId, Item, NodeId, Owner, ResponseId};
use contexture_store::{Error as StoreError, Node, NodeKind, PathEnd, ReadRequest, read_all_pages};

use super::decision::decision_of_node;
use crate::agent::ApprovalDecision;
use crate::record::{RunEntry, RunQuery, RunStatus, child_id, list_runs_with};

/// Nodes at the end of a branch that are read first for those of a run; then four times as many, until its beginning is among them.
const FIRST_NODES: u64 = 256;
/// Runs below each other that are shown: agents that call agents end far before.
const MAX_DEPTH: usize = 16;

/// What happened in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunSpanKind {
    /// A run itself, from its beginning to its end.
    Run,
    /// A step of the model: it was asked, and answered.
    Model,
    /// A tool or a sub-agent that was called.
    Tool,
    /// A call that waited for a person's decision.
    Approval,
}

impl RunSpanKind {
    /// Returns the lower-case word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Approval => "approval",
        }
    }
}

/// A stretch of time within a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSpan {
    /// Id of the run that it belongs to, which may be a child run.
    pub run: String,
    /// Name of that run's agent.
    pub agent: String,
    /// How many runs are above that run, up to the one that was asked for.
    pub depth: usize,
    /// What happened in this time.
    pub kind: RunSpanKind,
    /// Number of the step, where it belongs to one.
    pub step: Option<u32>,
    /// Name of the tool that was called; `None` for what is no call.
    pub tool: Option<String>,
    /// First node of the answer, or the node of the call.
    pub node: Option<NodeId>,
    /// Its beginning, in milliseconds since the Unix epoch.
    pub started_ms: i64,
    /// Its end, in milliseconds since the Unix epoch; `None` if it goes on.
    pub ended_ms: Option<i64>,
}

/// Returns what a listed run and its child runs did, in the order in which it began, what a child did behind the call that began it.
///
/// Reads the branch of each run back to where the run began, and the list of all runs of the conversation.
///
/// # Errors
/// The store's.
pub async fn run_timeline(
    engine: &Engine,
    owner: &Owner,
    entry: &RunEntry,
) -> Result<Vec<RunSpan>, EngineError> {
    let Some(conversation) = &entry.conversation else {
        return Ok(Vec::new());
    };
    let query = RunQuery {
        conversation: Some(conversation.clone()),
        ..RunQuery::default()
    };
    let mut children: BTreeMap<String, Vec<RunEntry>> = BTreeMap::new();
    // The newest come first, and a timeline begins with the oldest.
    for run in list_runs_with(engine, owner, &query)
        .await?
        .runs
        .into_iter()
        .rev()
    {
        if let Some(parent) = run.parent.clone() {
            children.entry(parent).or_default().push(run);
        }
    }
    let mut own = BTreeMap::new();
    let mut left = vec![entry];
    while let Some(run) = left.pop() {
        // A damaged entry may name itself as its parent.
        if own.contains_key(&run.run) {
            continue;
        }
        let nodes = load_run_nodes(engine, owner, conversation, run).await?;
        own.insert(run.run.clone(), own_spans(run, &nodes)?);
        left.extend(children.get(&run.run).into_iter().flatten());
    }
    let mut timeline = Timeline {
        own,
        children: &children,
        spans: Vec::new(),
    };
    timeline.push_run(entry, 0);
    Ok(timeline.spans)
}

/// Reads the nodes on a run's branch, from before its beginning on.
async fn load_run_nodes(
    engine: &Engine,
    owner: &Owner,
    conversation: &ConversationId,
    run: &RunEntry,
) -> Result<Vec<Arc<Node>>, EngineError> {
    let at = PathEnd::Branch(BranchName::new(run.branch.as_str())?);
    let mut count = FIRST_NODES;
    loop {
        let request = ReadRequest::last_nodes(at.clone(), count);
        let read = read_all_pages(&**engine.store(), owner, conversation, request);
        let page = match read.await {
            Ok(page) => page,
            // A branch may be deleted, and the run is listed all the same.
            Err(StoreError::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let is_before = |node: &Arc<Node>| node.created_ms < run.started_ms;
        if page.nodes.len() as u64 >= page.depth || page.nodes.first().is_some_and(is_before) {
            return Ok(page.nodes);
        }
        count = count.saturating_mul(4);
    }
}

/// A call without an output so far.
struct OpenCall {
    tool: String,
    step: Option<u32>,
    started_ms: i64,
    is_decided: bool,
}

/// What a run did itself, read from its nodes in the order of its path.
struct OwnSpans<'a> {
    run: &'a RunEntry,
    spans: Vec<RunSpan>,
    open: BTreeMap<NodeId, OpenCall>,
    /// When the model could be asked: once all that came before was stored.
    ready_ms: i64,
    /// The answer that was read last: its nodes are neighbours.
    answered: Option<ResponseId>,
}

/// Returns what a run did itself, in the order in which it began.
fn own_spans(run: &RunEntry, nodes: &[Arc<Node>]) -> Result<Vec<RunSpan>, EngineError> {
    let mut own = OwnSpans {
        run,
        spans: Vec::new(),
        open: BTreeMap::new(),
        ready_ms: run.started_ms,
        answered: None,
    };
    let id = run.id();
    for node in nodes.iter().filter(|node| id.is_some() && node.run == id) {
        own.add_node(node)?;
    }
    Ok(own.finish())
}

impl OwnSpans<'_> {
    fn span(&self, kind: RunSpanKind, started_ms: i64, ended_ms: Option<i64>) -> RunSpan {
        RunSpan {
            run: self.run.run.clone(),
            agent: self.run.agent.clone(),
            depth: 0,
            kind,
            step: None,
            tool: None,
            node: None,
            // Writers give the times, and a clock may go back.
            started_ms: ended_ms.map_or(started_ms, |ended_ms| started_ms.min(ended_ms)),
            ended_ms,
        }
    }

    /// The span of a call, up to a time or still open.
    fn call_span(
        &self,
        kind: RunSpanKind,
        (call, of): (NodeId, &OpenCall),
        ended_ms: Option<i64>,
    ) -> RunSpan {
        RunSpan {
            step: of.step,
            tool: Some(of.tool.clone()),
            node: Some(call),
            ..self.span(kind, of.started_ms, ended_ms)
        }
    }

    fn add_node(&mut self, node: &Node) -> Result<(), EngineError> {
        let now_ms = node.created_ms;
        if node.response.is_some() && node.response != self.answered {
            let answer = self.span(RunSpanKind::Model, self.ready_ms, Some(now_ms));
            self.spans.push(RunSpan {
                step: node.step,
                node: Some(node.id),
                ..answer
            });
            self.answered = node.response;
        }
        match node.kind {
            NodeKind::FunctionCall => {
                if let Item::FunctionCall(call) = parse_node_item(node)? {
                    let call = OpenCall {
                        tool: call.name,
                        step: node.step,
                        started_ms: now_ms,
                        is_decided: false,
                    };
                    self.open.insert(node.id, call);
                }
            }
            NodeKind::FunctionCallOutput => {
                let call = node.answers;
                if let Some((id, call)) = call.and_then(|id| Some((id, self.open.remove(&id)?))) {
                    let span = self.call_span(RunSpanKind::Tool, (id, &call), Some(now_ms));
                    self.spans.push(span);
                }
            }
            NodeKind::Extension => self.add_decision(node)?,
            _ => {}
        }
        self.ready_ms = self.ready_ms.max(now_ms);
        Ok(())
    }

    /// Ends the wait of a call, whose tool begins then, if a node is the decision about it.
    fn add_decision(&mut self, node: &Node) -> Result<(), EngineError> {
        let Some((id, decided)) = decision_of_node(node)? else {
            return Ok(());
        };
        if let Some(call) = self.open.get(&id) {
            let span = self.call_span(RunSpanKind::Approval, (id, call), Some(decided.at_ms));
            self.spans.push(span);
        }
        // A denied call never runs; its output only says so.
        if matches!(decided.decision, ApprovalDecision::Deny { .. }) {
            self.open.remove(&id);
        } else if let Some(call) = self.open.get_mut(&id) {
            (call.started_ms, call.is_decided) = (decided.at_ms, true);
        }
        Ok(())
    }

    /// Adds what goes on, and the run itself.
    fn finish(mut self) -> Vec<RunSpan> {
        let run = self.run;
        if self.open.is_empty() && run.status == RunStatus::Running {
            let asked = self.span(RunSpanKind::Model, self.ready_ms, None);
            self.spans.push(asked);
        }
        let waiting: BTreeSet<&str> = run.pending_calls.iter().map(String::as_str).collect();
        for (id, call) in std::mem::take(&mut self.open) {
            let kind = match !call.is_decided && waiting.contains(id.to_string().as_str()) {
                true => RunSpanKind::Approval,
                false => RunSpanKind::Tool,
            };
            // A run that has ended does nothing any more, whatever was left open.
            let span = self.call_span(kind, (id, &call), run.ended_ms);
            self.spans.push(span);
        }
        self.spans.sort_by_key(|span| span.started_ms);
        let whole = self.span(RunSpanKind::Run, run.started_ms, run.ended_ms);
        self.spans.insert(0, whole);
        self.spans
    }
}

/// Puts the spans of runs below each other.
struct Timeline<'a> {
    own: BTreeMap<String, Vec<RunSpan>>,
    children: &'a BTreeMap<String, Vec<RunEntry>>,
    spans: Vec<RunSpan>,
}

impl Timeline<'_> {
    fn push_run(&mut self, run: &RunEntry, depth: usize) {
        // Taken, so that each run is shown once.
        let Some(own) = self.own.remove(&run.run).filter(|_| depth < MAX_DEPTH) else {
            return;
        };
        let children = self.children.get(&run.run).map_or(&[][..], Vec::as_slice);
        for span in own {
            let call = span.node.filter(|_| span.kind == RunSpanKind::Tool);
            let child = run
                .id()
                .zip(call)
                .map(|(id, call)| child_id(id, call.as_bytes()));
            self.spans.push(RunSpan { depth, ..span });
            for one in children
                .iter()
                .filter(|one| child.is_some() && one.id() == child)
            {
                self.push_run(one, depth + 1);
            }
        }
        // Those that a program began, and no call.
        for one in children {
            self.push_run(one, depth + 1);
        }
    }
}
