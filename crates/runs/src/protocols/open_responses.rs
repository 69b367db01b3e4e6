//! Numbered events of Open Responses: <https://www.openresponses.org/specification>.
//!
//! Answers are converted as they stream, under the names of [`StreamEvent::name`]; a finished item is sent in full,
//! with the texts that were streamed. Run events beyond answers have names that begin with `contexture:run.`, as the
//! specification requires of extensions. When the model is asked again, another `response.created` replaces the
//! previous answer.
//!
//! Not here: `content_part` events and events that repeat a whole text, because the finished item has it; fields of a
//! response that are not known while it streams.

use std::collections::BTreeMap;

use contexture_ir::RunId;
use contexture_wire::{PieceKind, StreamEvent};
use serde_json::{Value, json};

use super::{ProtocolEvent, insert_member};
use crate::agent::{RunEvent, RunEventKind};

/// Converts the events of a run and its children to Open Responses.
#[derive(Clone, Debug, Default)]
pub struct OpenResponses {
    next: u64,
    /// The answer in progress of each run.
    answers: BTreeMap<RunId, StreamedAnswer>,
    /// Number of answers so far, which makes ids unique.
    answer_count: u64,
}

/// An answer as far as it was streamed.
#[derive(Clone, Debug)]
struct StreamedAnswer {
    number: u64,
    id: String,
    model: Option<String>,
    pieces: BTreeMap<usize, StreamedPiece>,
    usage: Value,
}

#[derive(Clone, Debug)]
struct StreamedPiece {
    id: String,
    kind: PieceKind,
    text: String,
    refusal: String,
    thoughts: String,
    summary: String,
    arguments: String,
}

impl OpenResponses {
    /// Creates a mapping whose first event has the number 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the events to send for a run event.
    pub fn map_event(&mut self, event: &RunEvent) -> Vec<ProtocolEvent> {
        let mut out = Vec::new();
        match &event.kind {
            RunEventKind::Delta(delta) => self.map_delta(event.run, delta, &mut out),
            kind => {
                if matches!(
                    kind,
                    RunEventKind::ResponseStored { .. } | RunEventKind::Ended { .. }
                ) {
                    self.answers.remove(&event.run);
                }
                let (name, mut members) = extension_event(kind);
                insert_member(&mut members, "run", event.run.to_string());
                insert_member(&mut members, "step", event.step);
                self.push_event(name, members, &mut out);
            }
        }
        out
    }

    fn push_event(&mut self, name: &'static str, members: Value, out: &mut Vec<ProtocolEvent>) {
        let mut numbered = json!({"sequence_number": self.next});
        self.next += 1;
        if let (Value::Object(numbered), Value::Object(members)) = (&mut numbered, members) {
            numbered.extend(members);
        }
        out.push(ProtocolEvent::new(name, numbered));
    }

    fn map_delta(&mut self, run: RunId, event: &StreamEvent, out: &mut Vec<ProtocolEvent>) {
        let name = event.name();
        if let StreamEvent::Started { id, model } = event {
            self.start_answer(run, id.clone(), model.clone(), out);
            return;
        }
        if !self.answers.contains_key(&run) {
            self.start_answer(run, None, None, out);
        }
        match event {
            StreamEvent::Started { .. } => {}
            StreamEvent::ItemAdded { piece, kind } => {
                self.add_piece(run, *piece, kind.clone(), out)
            }
            StreamEvent::TextDelta { .. }
            | StreamEvent::RefusalDelta { .. }
            | StreamEvent::ReasoningDelta { .. }
            | StreamEvent::SummaryDelta { .. }
            | StreamEvent::ArgumentsDelta { .. } => self.map_piece_delta(run, event, out),
            StreamEvent::ItemDone { piece } => {
                let answer = self.answers.get(&run);
                let done = answer.and_then(|answer| answer.pieces.get(piece));
                if let Some(item) = done.map(|piece| piece.to_item("completed")) {
                    let members = json!({"output_index": piece, "item": item});
                    self.push_event(name, members, out);
                }
            }
            StreamEvent::Usage(usage) => {
                let usage = serde_json::to_value(usage).unwrap_or_default();
                let mut members = json!({"usage": usage});
                if let Some(answer) = self.answers.get_mut(&run) {
                    answer.usage = usage;
                    insert_member(&mut members, "response_id", answer.id.clone());
                }
                self.push_event(name, members, out);
            }
            StreamEvent::Finished { .. } => {
                let status = name.strip_prefix("response.").unwrap_or(name);
                self.push_response(run, name, status, None, out);
            }
            StreamEvent::Failed(failure) => {
                let code = failure.code.as_ref().unwrap_or(&failure.kind);
                let error = json!({"code": code, "message": failure.message});
                self.push_response(run, name, "failed", Some(error), out);
            }
            // Other stream events are passed on by name only, without their content.
            _ => self.push_event(name, json!({}), out),
        }
    }

    /// Appends a delta to its piece and passes it on.
    fn map_piece_delta(&mut self, run: RunId, event: &StreamEvent, out: &mut Vec<ProtocolEvent>) {
        type Field = fn(&mut StreamedPiece) -> &mut String;
        let (piece, delta, kind, field): (_, _, _, Field) = match event {
            StreamEvent::TextDelta { piece, delta } => {
                (*piece, delta, PieceKind::Message, |of| &mut of.text)
            }
            StreamEvent::RefusalDelta { piece, delta } => {
                (*piece, delta, PieceKind::Message, |of| &mut of.refusal)
            }
            StreamEvent::ReasoningDelta { piece, delta } => {
                (*piece, delta, PieceKind::Reasoning, |of| &mut of.thoughts)
            }
            StreamEvent::SummaryDelta { piece, delta } => {
                (*piece, delta, PieceKind::Reasoning, |of| &mut of.summary)
            }
            StreamEvent::ArgumentsDelta { piece, delta } => {
                // Only used for a call that was not announced before its arguments, so its id and name are unknown.
                let call = PieceKind::Call {
                    id: None,
                    name: None,
                };
                (*piece, delta, call, |of| &mut of.arguments)
            }
            _ => return,
        };
        // Stored as well as passed on: the finished item repeats the whole text.
        self.append_to_piece(run, piece, kind, out, field, delta);
        self.push_delta(run, event.name(), piece, delta, out);
    }

    fn start_answer(
        &mut self,
        run: RunId,
        id: Option<String>,
        model: Option<String>,
        out: &mut Vec<ProtocolEvent>,
    ) {
        let number = self.answer_count;
        self.answer_count += 1;
        let answer = StreamedAnswer {
            number,
            id: id.unwrap_or_else(|| format!("resp_{run}_{number}")),
            model,
            pieces: BTreeMap::new(),
            usage: Value::Null,
        };
        self.answers.insert(run, answer);
        self.push_response(run, "response.created", "in_progress", None, out);
    }

    fn push_response(
        &mut self,
        run: RunId,
        name: &'static str,
        status: &str,
        error: Option<Value>,
        out: &mut Vec<ProtocolEvent>,
    ) {
        let Some(answer) = self.answers.get(&run) else {
            return;
        };
        let items = answer
            .pieces
            .values()
            .map(|piece| piece.to_item("completed"));
        let response = json!({
            "id": answer.id,
            "object": "response",
            "status": status,
            "model": answer.model,
            "output": items.collect::<Vec<Value>>(),
            "error": error,
            "usage": answer.usage,
        });
        self.push_event(name, json!({"response": response}), out);
    }

    fn add_piece(
        &mut self,
        run: RunId,
        piece: usize,
        kind: PieceKind,
        out: &mut Vec<ProtocolEvent>,
    ) {
        let Some(answer) = self.answers.get_mut(&run) else {
            return;
        };
        let new = StreamedPiece {
            id: format!("item_{run}_{}_{piece}", answer.number),
            kind,
            text: String::new(),
            refusal: String::new(),
            thoughts: String::new(),
            summary: String::new(),
            arguments: String::new(),
        };
        let item = new.to_item("in_progress");
        answer.pieces.insert(piece, new);
        let members = json!({"output_index": piece, "item": item});
        self.push_event("response.output_item.added", members, out);
    }

    /// Appends to a piece, and announces the piece if it is new.
    fn append_to_piece(
        &mut self,
        run: RunId,
        piece: usize,
        kind: PieceKind,
        out: &mut Vec<ProtocolEvent>,
        of: impl Fn(&mut StreamedPiece) -> &mut String,
        delta: &str,
    ) {
        let answer = self.answers.get(&run);
        if answer.is_some_and(|answer| !answer.pieces.contains_key(&piece)) {
            self.add_piece(run, piece, kind, out);
        }
        let answer = self.answers.get_mut(&run);
        if let Some(piece) = answer.and_then(|answer| answer.pieces.get_mut(&piece)) {
            of(piece).push_str(delta);
        }
    }

    fn push_delta(
        &mut self,
        run: RunId,
        name: &'static str,
        piece: usize,
        delta: &str,
        out: &mut Vec<ProtocolEvent>,
    ) {
        let answer = self.answers.get(&run);
        let item = answer.and_then(|answer| answer.pieces.get(&piece));
        let id = item.map(|item| item.id.clone());
        let mut members = json!({"item_id": id, "output_index": piece});
        match name {
            "response.function_call_arguments.delta" => {}
            "response.reasoning_summary_text.delta" => {
                insert_member(&mut members, "summary_index", 0)
            }
            _ => insert_member(&mut members, "content_index", 0),
        }
        insert_member(&mut members, "delta", delta);
        self.push_event(name, members, out);
    }
}

impl StreamedPiece {
    fn to_item(&self, status: &str) -> Value {
        let id = &self.id;
        let part = |kind: &str, key: &str, text: &str| {
            (!text.is_empty()).then(|| json!({"type": kind, key: text}))
        };
        match &self.kind {
            PieceKind::Message => {
                let text = part("output_text", "text", &self.text);
                let refusal = part("refusal", "refusal", &self.refusal);
                let content: Vec<Value> = text.into_iter().chain(refusal).collect();
                json!({"type": "message", "id": id, "status": status, "role": "assistant", "content": content})
            }
            PieceKind::Reasoning => {
                let summary: Vec<Value> = part("summary_text", "text", &self.summary)
                    .into_iter()
                    .collect();
                let content: Vec<Value> = part("reasoning_text", "text", &self.thoughts)
                    .into_iter()
                    .collect();
                json!({"type": "reasoning", "id": id, "status": status, "summary": summary, "content": content})
            }
            PieceKind::Call { id: call, name } => {
                json!({"type": "function_call", "id": id, "status": status, "call_id": call, "name": name, "arguments": self.arguments})
            }
            PieceKind::Other(kind) => json!({"type": kind, "id": id, "status": status}),
            _ => json!({"type": "contexture:item", "id": id, "status": status}),
        }
    }
}

/// Returns the extension event for a run event without a counterpart in Open Responses.
fn extension_event(kind: &RunEventKind) -> (&'static str, Value) {
    match kind {
        RunEventKind::ModelStarted { model, tokens } => (
            "contexture:run.asking",
            json!({"model": model, "tokens": tokens}),
        ),
        // Not reached by `map_event`, which converts deltas itself.
        RunEventKind::Delta(delta) => (delta.name(), json!({})),
        RunEventKind::Retrying { attempt, reason } => (
            "contexture:run.retrying",
            json!({"attempt": attempt, "why": reason}),
        ),
        RunEventKind::ResponseStored { response, usage } => (
            "contexture:run.answered",
            json!({"response": response.to_string(), "spent": usage}),
        ),
        RunEventKind::ResponseRejected { feedback } => {
            ("contexture:run.refused", json!({"feedback": feedback}))
        }
        RunEventKind::ToolStarted { node, call } => (
            "contexture:run.tool_started",
            json!({"node": node.to_string(), "call_id": call.call_id, "name": call.name}),
        ),
        RunEventKind::ToolFinished { node, output } => (
            "contexture:run.tool_done",
            json!({
                "node": node.to_string(),
                "call_id": output.call_id,
                "output": contexture_ir::Item::FunctionCallOutput(output.clone()).text(),
                "is_error": output.is_error,
            }),
        ),
        RunEventKind::ApprovalAsked { node, tool, reason } => (
            "contexture:run.approval_asked",
            json!({"call": node.to_string(), "tool": tool, "why": reason}),
        ),
        RunEventKind::ApprovalDecided { node, decision } => (
            "contexture:run.approval_decided",
            json!({"call": node.to_string(), "decided": decision}),
        ),
        RunEventKind::Progress { node, text } => (
            "contexture:run.progress",
            json!({"call": node.map(|node| node.to_string()), "text": text}),
        ),
        RunEventKind::Waiting { calls } => {
            let calls: Vec<String> = calls.iter().map(ToString::to_string).collect();
            ("contexture:run.waiting", json!({"calls": calls}))
        }
        RunEventKind::Spawned { child } => (
            "contexture:run.spawned",
            json!({"child": child.to_string()}),
        ),
        RunEventKind::Ended {
            status,
            reason,
            usage,
        } => (
            "contexture:run.ended",
            json!({"status": status.as_str(), "why": reason, "spent": usage}),
        ),
    }
}
