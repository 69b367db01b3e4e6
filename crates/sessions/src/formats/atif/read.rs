//! Reads a trajectory.

use contexture_ir::{
    ContentHash, Fields, FunctionCall, FunctionCallOutput, ImagePart, Item, Message, Origin,
    Output, Part, Raw, Reasoning, Role, TextPart,
};
use serde_json::value::RawValue;

use super::document::Step;
use crate::error::SessionError;
use crate::format::SessionFormat;
use crate::json::{excerpt, text_of, timestamp_of, with_member};
use crate::kept_records::{RecordReader, Records, StoredRecord, read_records};
use crate::session::{
    ReadOptions, Session, SessionInfo, SessionNode, audience_of, main_head, origin_of, title_of,
};

const EXPECTED: &str = "an object with `schema_version`, `agent` and `steps`";
/// Members of a step that repeat what its items say.
const SAID: [&str; 4] = ["message", "reasoning_content", "tool_calls", "observation"];

pub(crate) fn read_session(text: &str, options: &ReadOptions<'_>) -> Result<Session, SessionError> {
    let wrong = || SessionError::WrongShape {
        format: "atif",
        expected: EXPECTED,
    };
    let fields = Fields::parse(text).map_err(|_| wrong())?;
    let steps = fields.get(&["steps"]).ok_or_else(wrong)?;
    let steps: Vec<&RawValue> = serde_json::from_str(steps.get()).map_err(|_| wrong())?;
    let mut reader = StepReader::default();
    let skipped = read_records(steps, options, &mut reader)?;
    let StepReader {
        mut records,
        instructions,
        tree,
    } = reader;
    records.rest = with_member(text, "steps", "null").and_then(|rest| Raw::parse(rest).ok());
    // An id of a run may be shared by several trajectories, so the hash of the text is part of the session's.
    let hash = ContentHash::of(text.as_bytes());
    let id = text_of(&fields, "trajectory_id").or_else(|| text_of(&fields, "session_id"));
    Ok(Session {
        format: SessionFormat::Atif,
        source_id: format!("atif:{}:{hash}", id.unwrap_or_default()),
        title: title_of(&tree),
        instructions,
        heads: main_head(&tree),
        tree,
        metadata: records.to_metadata(),
        info: SessionInfo::default(),
        skipped,
    })
}

#[derive(Default)]
struct StepReader {
    records: Records,
    instructions: Vec<Message>,
    tree: Vec<SessionNode>,
}

impl RecordReader for StepReader {
    const PLACE: &'static str = "step";
    const EXPECTED: &'static str = "a step of a trajectory";

    fn records(&mut self) -> &mut Records {
        &mut self.records
    }

    fn read_record(&mut self, raw: &RawValue) -> Result<(), String> {
        let unknown = || excerpt(raw.get());
        let fields = Fields::parse(raw.get()).map_err(|_| unknown())?;
        let source = text_of(&fields, "source");
        let source = source.ok_or_else(|| format!("no `source` in {}", unknown()))?;
        let items = read_items(&fields, &source).ok_or_else(unknown)?;
        // Until the first item, what the host says leads the history.
        if let ([Item::Message(message)], true, "system") =
            (items.as_slice(), self.tree.is_empty(), source.as_str())
        {
            self.instructions.push(message.clone());
            self.records.list.push(StoredRecord::Whole(Raw::from(raw)));
            return Ok(());
        }
        self.records
            .add_record(raw, step_template(raw.get()), &items, fill_template);
        for item in items {
            let index = self.tree.len();
            self.tree.push(SessionNode {
                parent: index.checked_sub(1),
                // What came back of an action that was no call.
                origin: match (&item, source.as_str()) {
                    (Item::Message(message), "agent") if message.role == Role::User => Origin::Tool,
                    _ => origin_of(&item),
                },
                audience: audience_of(&item),
                item,
                message_id: None,
                created_at: timestamp_of(&fields),
                imported: Some(index),
            });
        }
        Ok(())
    }
}

/// The items of a step, in the order in which they came; `None` if a member is not what the format says.
fn read_items(fields: &Fields<'_>, source: &str) -> Option<Vec<Item>> {
    let (role, is_agent) = match source {
        "user" => (Role::User, false),
        "system" => (Role::System, false),
        "agent" => (Role::Assistant, true),
        _ => return None,
    };
    let mut items = Vec::new();
    // Before the message: a model thinks, and then speaks.
    if let Some(thought) = text_of(fields, "reasoning_content") {
        items.push(Item::Reasoning(Reasoning {
            content: Some(vec![Part::ReasoningText(TextPart::new(thought))]),
            ..Reasoning::default()
        }));
    }
    let message = read_content(fields.get(&["message"])?, is_agent)?;
    let is_empty = message.iter().all(|part| part.as_text() == Some(""));
    let observation = member(fields, "observation");
    // An agent that only calls says nothing; what a person says is there even if it is empty.
    if !is_empty || (!is_agent && observation.is_none()) {
        let message = Message {
            content: message,
            ..Message::text(role, "")
        };
        items.push(message.into());
    }
    if let Some(calls) = member(fields, "tool_calls") {
        let calls: Vec<&RawValue> = serde_json::from_str(calls.get()).ok()?;
        for call in calls {
            let call = Fields::parse(call.get()).ok()?;
            // As text: numbers keep the digits that they were written with.
            let arguments = call.get(&["arguments"])?.get();
            let name = text_of(&call, "function_name")?;
            let call = FunctionCall::new(text_of(&call, "tool_call_id")?, name, arguments);
            items.push(call.into());
        }
    }
    if let Some(observation) = observation {
        let observation = Fields::parse(observation.get()).ok()?;
        let results: Vec<&RawValue> =
            serde_json::from_str(observation.get(&["results"])?.get()).ok()?;
        for result in results {
            items.push(read_result(&Fields::parse(result.get()).ok()?)?);
        }
    }
    Some(items)
}

/// The value of a member; `null` is none.
fn member<'f>(fields: &Fields<'f>, name: &'static str) -> Option<&'f RawValue> {
    fields.get(&[name]).filter(|value| value.get() != "null")
}

fn read_result(fields: &Fields<'_>) -> Option<Item> {
    let content = match member(fields, "content") {
        Some(content) => read_content(content, false)?,
        // It is in the trajectory of a sub-agent.
        None => vec![Part::InputText(TextPart::default())],
    };
    let Some(call) = text_of(fields, "source_call_id") else {
        let message = Message {
            content,
            ..Message::text(Role::User, "")
        };
        return Some(message.into());
    };
    let output = match content.as_slice() {
        [Part::InputText(text)] => Output::Text(text.text.clone()),
        _ => Output::Parts(content),
    };
    let extra = fields
        .get(&["extra"])
        .and_then(|raw| Fields::parse(raw.get()).ok());
    let is_error = extra.and_then(|extra| Some(extra.get(&["is_error"])?.get() == "true"));
    Some(Item::from(FunctionCallOutput {
        is_error: is_error.filter(|is_error| *is_error),
        ..FunctionCallOutput::new(call, output)
    }))
}

/// Content as parts: a text, or a list of texts and pictures. Sounds are said to be there.
fn read_content(raw: &RawValue, is_agent: bool) -> Option<Vec<Part>> {
    let text = |text: String| match is_agent {
        true => Part::OutputText(TextPart::new(text)),
        false => Part::InputText(TextPart::new(text)),
    };
    if let Ok(whole) = serde_json::from_str::<String>(raw.get()) {
        return Some(vec![text(whole)]);
    }
    let parts: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
    let read = |part: &RawValue| {
        let fields = Fields::parse(part.get()).ok()?;
        if let Some(said) = text_of(&fields, "text") {
            return Some(text(said));
        }
        let source = Fields::parse(fields.get(&["source"])?.get()).ok()?;
        let (path, media_type) = (text_of(&source, "path")?, text_of(&source, "media_type")?);
        Some(match text_of(&fields, "type")?.as_str() {
            "image" => Part::InputImage(ImagePart {
                image_url: Some(path),
                media_type: Some(media_type),
                ..ImagePart::default()
            }),
            _ => text(format!("[{media_type}: {path}]")),
        })
    };
    parts.into_iter().map(read).collect()
}

/// A step without what its items say.
fn step_template(step: &str) -> Option<Raw> {
    let fields = Fields::parse(step).ok()?;
    let mut form = step.to_owned();
    for name in SAID {
        if member(&fields, name).is_some() {
            form = with_member(&form, name, "null")?;
        }
    }
    Raw::parse(form).ok()
}

pub(super) fn fill_template(form: &Raw, items: &[&Item]) -> Option<String> {
    // Whose step it is stands in the form; of the step that is made here only what is said is taken.
    let step = Step::of_items("agent", items.iter().copied());
    let step = serde_json::to_string(&step).ok()?;
    let (made, fields) = (Fields::parse(&step).ok()?, form.fields()?);
    let mut out = form.get().to_owned();
    for name in SAID {
        match (made.get(&[name]), fields.get(&[name])) {
            (Some(value), Some(_)) => out = with_member(&out, name, value.get())?,
            // An empty message need not have been there.
            (Some(value), None) if value.get() != r#""""# => return None,
            _ => {}
        }
    }
    Some(out)
}
