//! AG-UI 1.0: <https://docs.ag-ui.com/concepts/events>.
//!
//! | A run tells | AG-UI |
//! |---|---|
//! | anything, first | `RUN_STARTED` |
//! | text and refusals of an answer | `TEXT_MESSAGE_START`, `_CONTENT`, `_END` |
//! | thoughts and their summaries | `REASONING_START`, `REASONING_MESSAGE_START`, `_CONTENT`, `_END`, `REASONING_END` |
//! | a call of an answer, or a tool that begins and was not told | `TOOL_CALL_START`, `_ARGS`, `_END` |
//! | a tool's output | `TOOL_CALL_RESULT` |
//! | that a child run begins | `CUSTOM`; the child is a run of its own, whose `RUN_STARTED` names its parent |
//! | that it waits for people | `RUN_FINISHED` with the outcome `interrupt`; the next run resumes |
//! | its end | `RUN_FINISHED`, or `RUN_ERROR` |
//! | the rest | `CUSTOM`, its name beginning with `contexture:` |
//!
//! What an answer began is ended before it is asked for again: the protocol cannot take it back. Not here: state events,
//! for what layers keep is no document that a client and an agent share.

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{ConversationId, Item, RunId};
use contexture_wire::{PieceKind, StreamEvent};
use serde_json::{Value, json};

use super::sent::{Sent, put};
use crate::agent::{RunEvent, RunNews, RunStatus};

/// One run, told to clients of AG-UI.
#[derive(Clone, Debug)]
pub struct AgUi {
    thread: ConversationId,
    run: RunId,
    parent: Option<RunId>,
    phase: Phase,
    /// How many messages began: what makes their ids unique.
    messages: u64,
    /// What has begun and not ended, by piece, with its id.
    open: BTreeMap<(usize, Channel), String>,
    /// Calls of the answer that were told.
    calls: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Fresh,
    Running,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Channel {
    Text,
    Reasoning,
    Call,
}

impl AgUi {
    /// A mapping for one run of a conversation, the thread; it is to see all the run tells. What its
    /// children tell is passed over: each has a mapping of its own.
    #[must_use]
    pub const fn new(thread: ConversationId, run: RunId) -> Self {
        Self {
            thread,
            run,
            parent: None,
            phase: Phase::Fresh,
            messages: 0,
            open: BTreeMap::new(),
            calls: BTreeSet::new(),
        }
    }

    /// As a run below another.
    #[must_use]
    pub const fn below(mut self, parent: RunId) -> Self {
        self.parent = Some(parent);
        self
    }

    /// What to send when a run tells this; nothing after the run's end was sent.
    pub fn map(&mut self, event: &RunEvent) -> Vec<Sent> {
        let mut out = Vec::new();
        if self.phase == Phase::Over || event.run != self.run {
            return out;
        }
        self.begin(&mut out);
        match &event.news {
            RunNews::Asking { model, tokens } => {
                self.void(&mut out);
                let value = json!({"model": model, "tokens": tokens, "step": event.step});
                out.push(custom("contexture:asking", value));
            }
            RunNews::Delta(delta) => self.delta(delta, &mut out),
            RunNews::Retrying { attempt, why } => {
                self.void(&mut out);
                let value = json!({"attempt": attempt, "why": why});
                out.push(custom("contexture:retrying", value));
            }
            RunNews::Answered { response, .. } => {
                self.close(None, &mut out);
                let value = json!({"response": response.to_string()});
                out.push(custom("contexture:answered", value));
            }
            RunNews::Refused { feedback } => {
                let value = json!({"feedback": feedback});
                out.push(custom("contexture:refused", value));
            }
            RunNews::ToolStarted { call, .. } => {
                if self.calls.insert(call.call_id.clone()) {
                    let id = &call.call_id;
                    let start = json!({"toolCallId": id, "toolCallName": call.name});
                    let args = json!({"toolCallId": id, "delta": call.arguments});
                    let end = json!({"toolCallId": id});
                    out.push(Sent::new("TOOL_CALL_START", start));
                    out.push(Sent::new("TOOL_CALL_ARGS", args));
                    out.push(Sent::new("TOOL_CALL_END", end));
                }
            }
            RunNews::ToolDone { node, output } => {
                let result = json!({
                    "messageId": node.to_string(),
                    "toolCallId": output.call_id,
                    "content": Item::FunctionCallOutput(output.clone()).text(),
                    "role": "tool",
                });
                out.push(Sent::new("TOOL_CALL_RESULT", result));
            }
            RunNews::Spawned { child } => {
                let value = json!({"run": child.to_string()});
                out.push(custom("contexture:spawned", value));
            }
            RunNews::Waiting { calls } => {
                let waits = calls
                    .iter()
                    .map(|call| json!({"id": call.to_string(), "reason": "contexture:approval"}));
                let waits: Vec<Value> = waits.collect();
                let outcome = json!({"type": "interrupt", "interrupts": waits});
                self.ended(Finish::Suspended(outcome), &mut out);
            }
            RunNews::Ended { status, why, .. } => {
                let finish = match (status, why) {
                    (RunStatus::Failed, why) => Finish::Failed(why.clone().unwrap_or_default()),
                    (RunStatus::Aborted, _) => Finish::Cancelled,
                    _ => Finish::Done,
                };
                self.ended(finish, &mut out);
            }
        }
        out
    }

    /// What to send where a run breaks off without telling its end, as when the store fails: all that is open is closed.
    pub fn broken(&mut self, why: &str) -> Vec<Sent> {
        let mut out = Vec::new();
        if self.phase != Phase::Over {
            self.begin(&mut out);
            self.ended(Finish::Failed(why.to_owned()), &mut out);
        }
        out
    }

    fn begin(&mut self, out: &mut Vec<Sent>) {
        if self.phase == Phase::Fresh {
            self.phase = Phase::Running;
            let (thread, run) = (self.thread.as_str(), self.run.to_string());
            let mut members = json!({"threadId": thread, "runId": run, "protocolVersion": "1.0"});
            if let Some(parent) = self.parent {
                put(&mut members, "parentRunId", parent.to_string());
            }
            out.push(Sent::new("RUN_STARTED", members));
        }
    }

    fn delta(&mut self, event: &StreamEvent, out: &mut Vec<Sent>) {
        match event {
            // What was said before is void.
            StreamEvent::Started { .. } => self.void(out),
            StreamEvent::ItemAdded {
                piece,
                kind:
                    PieceKind::Call {
                        id: Some(id),
                        name: Some(name),
                    },
            } => {
                self.close(Some(*piece), out);
                if self.calls.insert(id.clone()) {
                    self.open.insert((*piece, Channel::Call), id.clone());
                    let start = json!({"toolCallId": id, "toolCallName": name});
                    out.push(Sent::new("TOOL_CALL_START", start));
                }
            }
            StreamEvent::TextDelta { piece, delta }
            | StreamEvent::RefusalDelta { piece, delta } => {
                let id = self.opened(*piece, Channel::Text, out);
                let content = json!({"messageId": id, "delta": delta});
                out.push(Sent::new("TEXT_MESSAGE_CONTENT", content));
            }
            StreamEvent::ReasoningDelta { piece, delta }
            | StreamEvent::SummaryDelta { piece, delta } => {
                let id = self.opened(*piece, Channel::Reasoning, out);
                let content = json!({"messageId": id, "delta": delta});
                out.push(Sent::new("REASONING_MESSAGE_CONTENT", content));
            }
            StreamEvent::ArgumentsDelta { piece, delta } => {
                // A call without an id is told when its tool begins.
                if let Some(id) = self.open.get(&(*piece, Channel::Call)) {
                    let args = json!({"toolCallId": id, "delta": delta});
                    out.push(Sent::new("TOOL_CALL_ARGS", args));
                }
            }
            StreamEvent::ItemDone { piece } => self.close(Some(*piece), out),
            // What else a stream says is told once the answer is stored.
            _ => {}
        }
    }

    /// The id of a message, which begins here if it has not.
    fn opened(&mut self, piece: usize, channel: Channel, out: &mut Vec<Sent>) -> String {
        if let Some(id) = self.open.get(&(piece, channel)) {
            return id.clone();
        }
        self.messages += 1;
        let id = format!("{}/{}", self.run, self.messages);
        self.open.insert((piece, channel), id.clone());
        match channel {
            Channel::Reasoning => {
                let start = json!({"messageId": id, "role": "reasoning"});
                out.push(Sent::new("REASONING_START", json!({"messageId": id})));
                out.push(Sent::new("REASONING_MESSAGE_START", start));
            }
            Channel::Text | Channel::Call => {
                let start = json!({"messageId": id, "role": "assistant"});
                out.push(Sent::new("TEXT_MESSAGE_START", start));
            }
        }
        id
    }

    /// Ends what is open, of one piece or of all.
    fn close(&mut self, piece: Option<usize>, out: &mut Vec<Sent>) {
        let all = std::mem::take(&mut self.open);
        let (ends, stays): (BTreeMap<_, _>, BTreeMap<_, _>) = all
            .into_iter()
            .partition(|((of, _), _)| piece.is_none_or(|piece| *of == piece));
        self.open = stays;
        for ((_, channel), id) in ends {
            let message = json!({"messageId": id});
            match channel {
                Channel::Text => out.push(Sent::new("TEXT_MESSAGE_END", message)),
                Channel::Call => {
                    out.push(Sent::new("TOOL_CALL_END", json!({"toolCallId": id})));
                }
                Channel::Reasoning => {
                    out.push(Sent::new("REASONING_MESSAGE_END", message.clone()));
                    out.push(Sent::new("REASONING_END", message));
                }
            }
        }
    }

    /// What an answer said until now is void.
    fn void(&mut self, out: &mut Vec<Sent>) {
        self.close(None, out);
        self.calls.clear();
    }

    fn ended(&mut self, finish: Finish, out: &mut Vec<Sent>) {
        self.close(None, out);
        self.phase = Phase::Over;
        let outcome = match finish {
            Finish::Failed(why) => {
                out.push(Sent::new("RUN_ERROR", json!({"message": why})));
                return;
            }
            Finish::Done => json!({"type": "success"}),
            Finish::Cancelled => json!({"type": "cancelled"}),
            Finish::Suspended(outcome) => outcome,
        };
        let (thread, run) = (self.thread.as_str(), self.run.to_string());
        let members = json!({"threadId": thread, "runId": run, "outcome": outcome});
        out.push(Sent::new("RUN_FINISHED", members));
    }
}

fn custom(name: &str, value: Value) -> Sent {
    Sent::new("CUSTOM", json!({"name": name, "value": value}))
}

/// How a run ends.
enum Finish {
    Done,
    Cancelled,
    Failed(String),
    /// With the outcome.
    Suspended(Value),
}
