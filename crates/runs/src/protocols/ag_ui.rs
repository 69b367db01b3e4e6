//! AG-UI 1.0: <https://docs.ag-ui.com/concepts/events>.
//!
//! | Run event | AG-UI |
//! |---|---|
//! | any event, the first time | `RUN_STARTED` |
//! | text and refusals of an answer | `TEXT_MESSAGE_START`, `_CONTENT`, `_END` |
//! | thoughts and their summaries | `REASONING_START`, `REASONING_MESSAGE_START`, `_CONTENT`, `_END`, `REASONING_END` |
//! | a call of an answer, or a tool that starts and was not announced | `TOOL_CALL_START`, `_ARGS`, `_END` |
//! | a tool's output | `TOOL_CALL_RESULT` |
//! | a child run starts | `CUSTOM`; the child is a run of its own, whose `RUN_STARTED` names its parent |
//! | the run waits for people | `RUN_FINISHED` with the outcome `interrupt`; the next run resumes |
//! | the run ends | `RUN_FINISHED`, or `RUN_ERROR` |
//! | other events | `CUSTOM`, with a name that begins with `contexture:` |
//!
//! Open pieces of an answer are closed before the model is asked again, because the protocol cannot take them back. Not
//! here: state events, because layer state is not a document shared by client and agent.

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{ConversationId, FunctionCall, Item, RunId};
use contexture_wire::{PieceKind, StreamEvent};
use serde_json::{Value, json};

use super::{ProtocolEvent, insert_member};
use crate::agent::{RunEvent, RunEventKind};
use crate::record::RunStatus;

/// Converts the events of one run for AG-UI clients.
#[derive(Clone, Debug)]
pub struct AgUi {
    thread: ConversationId,
    run: RunId,
    parent: Option<RunId>,
    phase: RunPhase,
    /// Number of messages so far, which makes their ids unique.
    messages: u64,
    /// Ids of open pieces.
    open: BTreeMap<(usize, PieceChannel), String>,
    /// Ids of the answer's calls that were announced.
    calls: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunPhase {
    Fresh,
    Running,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PieceChannel {
    Text,
    Reasoning,
    Call,
}

impl AgUi {
    /// Creates a mapping for one run of a conversation, the thread; pass it all events of the run. Events of child runs
    /// are ignored: each child needs a mapping of its own.
    #[must_use]
    pub const fn new(thread: ConversationId, run: RunId) -> Self {
        Self {
            thread,
            run,
            parent: None,
            phase: RunPhase::Fresh,
            messages: 0,
            open: BTreeMap::new(),
            calls: BTreeSet::new(),
        }
    }

    /// Sets the parent of a child run, which its first event names.
    ///
    /// ```
    /// use contexture_ir::{ConversationId, RunId};
    /// use contexture_runs::AgUi;
    ///
    /// let (parent, child) = (RunId::from_bytes([1; 16]), RunId::from_bytes([2; 16]));
    /// let thread = ConversationId::new("support-42")?;
    /// let mut events = AgUi::new(thread, child).for_child_run(parent);
    /// # let _ = &mut events;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn for_child_run(mut self, parent: RunId) -> Self {
        self.parent = Some(parent);
        self
    }

    /// Returns the events to send for a run event; none once the run's end was sent.
    pub fn map_event(&mut self, event: &RunEvent) -> Vec<ProtocolEvent> {
        let mut out = Vec::new();
        if self.phase == RunPhase::Over || event.run != self.run {
            return out;
        }
        self.start_run(&mut out);
        match &event.kind {
            RunEventKind::ModelStarted { model, tokens } => {
                self.discard_answer(&mut out);
                let value = json!({"model": model, "tokens": tokens, "step": event.step});
                out.push(custom_event("contexture:asking", value));
            }
            RunEventKind::Delta(delta) => self.map_delta(delta, &mut out),
            RunEventKind::Retrying { attempt, reason } => {
                self.discard_answer(&mut out);
                let value = json!({"attempt": attempt, "why": reason});
                out.push(custom_event("contexture:retrying", value));
            }
            RunEventKind::ResponseStored { response, .. } => {
                self.close_pieces(None, &mut out);
                let value = json!({"response": response.to_string()});
                out.push(custom_event("contexture:answered", value));
            }
            RunEventKind::ResponseRejected { feedback } => {
                let value = json!({"feedback": feedback});
                out.push(custom_event("contexture:refused", value));
            }
            RunEventKind::ToolStarted { call, .. } => {
                if self.calls.insert(call.call_id.clone()) {
                    out.extend(whole_call_events(call));
                }
            }
            RunEventKind::ToolFinished { node, output } => {
                let result = json!({
                    "messageId": node.to_string(),
                    "toolCallId": output.call_id,
                    "content": Item::FunctionCallOutput(output.clone()).text(),
                    "role": "tool",
                });
                out.push(ProtocolEvent::new("TOOL_CALL_RESULT", result));
            }
            RunEventKind::Spawned { child } => {
                let value = json!({"run": child.to_string()});
                out.push(custom_event("contexture:spawned", value));
            }
            RunEventKind::ApprovalAsked { node, tool, reason } => {
                let value = json!({"call": node.to_string(), "tool": tool, "why": reason});
                out.push(custom_event("contexture:approval_asked", value));
            }
            RunEventKind::ApprovalDecided { node, decision } => {
                let value = json!({"call": node.to_string(), "decided": decision});
                out.push(custom_event("contexture:approval_decided", value));
            }
            RunEventKind::Progress { node, text } => {
                let call = node.map(|node| node.to_string());
                let value = json!({"call": call, "text": text});
                out.push(custom_event("contexture:progress", value));
            }
            RunEventKind::Waiting { calls } => {
                let waits = calls
                    .iter()
                    .map(|call| json!({"id": call.to_string(), "reason": "contexture:approval"}));
                let waits: Vec<Value> = waits.collect();
                let outcome = json!({"type": "interrupt", "interrupts": waits});
                self.finish_run(AgUiOutcome::Suspended(outcome), &mut out);
            }
            RunEventKind::Ended { status, reason, .. } => {
                self.finish_run(
                    AgUiOutcome::from_status(*status, reason.as_deref()),
                    &mut out,
                );
            }
        }
        out
    }

    /// Returns the events to send when a run stops without an end event, as when the store fails: all that is open is
    /// closed.
    pub fn error_event(&mut self, reason: &str) -> Vec<ProtocolEvent> {
        let mut out = Vec::new();
        if self.phase != RunPhase::Over {
            self.start_run(&mut out);
            self.finish_run(AgUiOutcome::Failed(reason.to_owned()), &mut out);
        }
        out
    }

    fn start_run(&mut self, out: &mut Vec<ProtocolEvent>) {
        if self.phase == RunPhase::Fresh {
            self.phase = RunPhase::Running;
            let (thread, run) = (self.thread.as_str(), self.run.to_string());
            let mut members = json!({"threadId": thread, "runId": run, "protocolVersion": "1.0"});
            if let Some(parent) = self.parent {
                insert_member(&mut members, "parentRunId", parent.to_string());
            }
            out.push(ProtocolEvent::new("RUN_STARTED", members));
        }
    }

    fn map_delta(&mut self, event: &StreamEvent, out: &mut Vec<ProtocolEvent>) {
        match event {
            // A new stream starts the answer again.
            StreamEvent::Started { .. } => self.discard_answer(out),
            StreamEvent::ItemAdded {
                piece,
                kind:
                    PieceKind::Call {
                        id: Some(id),
                        name: Some(name),
                    },
            } => {
                self.close_pieces(Some(*piece), out);
                if self.calls.insert(id.clone()) {
                    self.open.insert((*piece, PieceChannel::Call), id.clone());
                    let start = json!({"toolCallId": id, "toolCallName": name});
                    out.push(ProtocolEvent::new("TOOL_CALL_START", start));
                }
            }
            StreamEvent::TextDelta { piece, delta }
            | StreamEvent::RefusalDelta { piece, delta } => {
                let id = self.open_message(*piece, PieceChannel::Text, out);
                let content = json!({"messageId": id, "delta": delta});
                out.push(ProtocolEvent::new("TEXT_MESSAGE_CONTENT", content));
            }
            StreamEvent::ReasoningDelta { piece, delta }
            | StreamEvent::SummaryDelta { piece, delta } => {
                let id = self.open_message(*piece, PieceChannel::Reasoning, out);
                let content = json!({"messageId": id, "delta": delta});
                out.push(ProtocolEvent::new("REASONING_MESSAGE_CONTENT", content));
            }
            StreamEvent::ArgumentsDelta { piece, delta } => {
                // A call without an id is announced when its tool starts.
                if let Some(id) = self.open.get(&(*piece, PieceChannel::Call)) {
                    let args = json!({"toolCallId": id, "delta": delta});
                    out.push(ProtocolEvent::new("TOOL_CALL_ARGS", args));
                }
            }
            StreamEvent::ItemDone { piece } => self.close_pieces(Some(*piece), out),
            // Other stream events have no counterpart in AG-UI.
            _ => {}
        }
    }

    /// Returns the id of the piece's message, and starts the message if it is not open.
    fn open_message(
        &mut self,
        piece: usize,
        channel: PieceChannel,
        out: &mut Vec<ProtocolEvent>,
    ) -> String {
        if let Some(id) = self.open.get(&(piece, channel)) {
            return id.clone();
        }
        self.messages += 1;
        let id = format!("{}/{}", self.run, self.messages);
        self.open.insert((piece, channel), id.clone());
        match channel {
            PieceChannel::Reasoning => {
                let start = json!({"messageId": id, "role": "reasoning"});
                out.push(ProtocolEvent::new(
                    "REASONING_START",
                    json!({"messageId": id}),
                ));
                out.push(ProtocolEvent::new("REASONING_MESSAGE_START", start));
            }
            PieceChannel::Text | PieceChannel::Call => {
                let start = json!({"messageId": id, "role": "assistant"});
                out.push(ProtocolEvent::new("TEXT_MESSAGE_START", start));
            }
        }
        id
    }

    /// Closes the open pieces of one item, or of all.
    fn close_pieces(&mut self, piece: Option<usize>, out: &mut Vec<ProtocolEvent>) {
        let all = std::mem::take(&mut self.open);
        let (ends, stays): (BTreeMap<_, _>, BTreeMap<_, _>) = all
            .into_iter()
            .partition(|((of, _), _)| piece.is_none_or(|piece| *of == piece));
        self.open = stays;
        for ((_, channel), id) in ends {
            let message = json!({"messageId": id});
            match channel {
                PieceChannel::Text => out.push(ProtocolEvent::new("TEXT_MESSAGE_END", message)),
                PieceChannel::Call => {
                    out.push(ProtocolEvent::new(
                        "TOOL_CALL_END",
                        json!({"toolCallId": id}),
                    ));
                }
                PieceChannel::Reasoning => {
                    out.push(ProtocolEvent::new("REASONING_MESSAGE_END", message.clone()));
                    out.push(ProtocolEvent::new("REASONING_END", message));
                }
            }
        }
    }

    /// Closes what an answer streamed so far, because the model is asked again.
    fn discard_answer(&mut self, out: &mut Vec<ProtocolEvent>) {
        self.close_pieces(None, out);
        self.calls.clear();
    }

    fn finish_run(&mut self, finish: AgUiOutcome, out: &mut Vec<ProtocolEvent>) {
        self.close_pieces(None, out);
        self.phase = RunPhase::Over;
        let outcome = match finish {
            AgUiOutcome::Failed(reason) => {
                out.push(ProtocolEvent::new("RUN_ERROR", json!({"message": reason})));
                return;
            }
            AgUiOutcome::Done => json!({"type": "success"}),
            AgUiOutcome::Cancelled => json!({"type": "cancelled"}),
            AgUiOutcome::Suspended(outcome) => outcome,
        };
        let (thread, run) = (self.thread.as_str(), self.run.to_string());
        let members = json!({"threadId": thread, "runId": run, "outcome": outcome});
        out.push(ProtocolEvent::new("RUN_FINISHED", members));
    }
}

/// Events of a call that was not announced while its answer streamed: start, arguments and end.
fn whole_call_events(call: &FunctionCall) -> [ProtocolEvent; 3] {
    let id = &call.call_id;
    let start = json!({"toolCallId": id, "toolCallName": call.name});
    let args = json!({"toolCallId": id, "delta": call.arguments});
    let end = json!({"toolCallId": id});
    [
        ProtocolEvent::new("TOOL_CALL_START", start),
        ProtocolEvent::new("TOOL_CALL_ARGS", args),
        ProtocolEvent::new("TOOL_CALL_END", end),
    ]
}

fn custom_event(name: &str, value: Value) -> ProtocolEvent {
    ProtocolEvent::new("CUSTOM", json!({"name": name, "value": value}))
}

/// How a run ends.
enum AgUiOutcome {
    Done,
    Cancelled,
    Failed(String),
    /// Interrupted, with this outcome.
    Suspended(Value),
}

impl AgUiOutcome {
    fn from_status(status: RunStatus, reason: Option<&str>) -> Self {
        match status {
            RunStatus::Failed => Self::Failed(reason.unwrap_or_default().to_owned()),
            RunStatus::Aborted => Self::Cancelled,
            _ => Self::Done,
        }
    }
}
