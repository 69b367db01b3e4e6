//! Trajectories in the Agent Trajectory Interchange Format: one object with `schema_version`, `agent` and `steps`.
//!
//! A step is what a person or the host says, or one turn of the agent: its thoughts, its message, its calls and what they returned.
//! Read: versions 1.0 to 1.8. Written: 1.8, from any session, without usage, which a session does not have.
//!
//! Not here: trajectories of sub-agents that stand in their parent's, which are kept and not read.

use contexture_ir::{
    ContentHash, Fields, FunctionCall, FunctionCallOutput, ImagePart, Item, Message, Origin,
    Output, Part, Raw, Reasoning, Role, TextPart,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::error::SessionError;
use crate::format::SessionFormat;
use crate::json::{excerpt, text_of, timestamp_of, with_member};
use crate::kept_records::{Records, StoredRecord};
use crate::session::{
    ReadOptions, Session, SessionInfo, SessionNode, Skipped, audience_of, main_head, origin_of,
    title_of,
};

const EXPECTED: &str = "an object with `schema_version`, `agent` and `steps`";
/// The version that is written.
const VERSION: &str = "ATIF-v1.8";
/// Members of a step that repeat what its items say.
const SAID: [&str; 4] = ["message", "reasoning_content", "tool_calls", "observation"];
/// Types of pictures that the format knows.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

pub(crate) fn read_session(text: &str, options: &ReadOptions<'_>) -> Result<Session, SessionError> {
    let wrong = || SessionError::WrongShape {
        format: "atif",
        expected: EXPECTED,
    };
    let fields = Fields::parse(text).map_err(|_| wrong())?;
    let steps = fields.get(&["steps"]).ok_or_else(wrong)?;
    let steps: Vec<&RawValue> = serde_json::from_str(steps.get()).map_err(|_| wrong())?;
    let mut reader = StepReader::default();
    for (index, step) in steps.into_iter().enumerate() {
        let Err(found) = reader.read_step(step) else {
            continue;
        };
        if !options.keep_going {
            return Err(SessionError::Record {
                place: "step",
                number: index + 1,
                expected: "a step of a trajectory",
                found,
                read: index - reader.skipped.len(),
            });
        }
        // Kept whole and in its place, so that writing gives back what could not be read.
        let stored = StoredRecord::Whole(Raw::from(step));
        reader.records.list.push(stored);
        reader.skipped.push(Skipped {
            number: index + 1,
            what: found,
        });
    }
    let StepReader {
        mut records,
        instructions,
        tree,
        skipped,
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
    skipped: Vec<Skipped>,
}

impl StepReader {
    fn read_step(&mut self, raw: &RawValue) -> Result<(), String> {
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
    let observation = fields
        .get(&["observation"])
        .filter(|raw| raw.get() != "null");
    // An agent that only calls says nothing; what a person says is there even if it is empty.
    if !is_empty || (!is_agent && observation.is_none()) {
        let message = Message {
            content: message,
            ..Message::text(role, "")
        };
        items.push(message.into());
    }
    let calls = fields
        .get(&["tool_calls"])
        .filter(|raw| raw.get() != "null");
    if let Some(calls) = calls {
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

fn read_result(fields: &Fields<'_>) -> Option<Item> {
    let content = fields.get(&["content"]).filter(|raw| raw.get() != "null");
    let content = match content {
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
        if fields
            .get(&[name])
            .is_some_and(|value| value.get() != "null")
        {
            form = with_member(&form, name, "null")?;
        }
    }
    Raw::parse(form).ok()
}

fn fill_template(form: &Raw, items: &[&Item]) -> Option<String> {
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

/// A trajectory as it is written.
#[derive(Serialize)]
struct Trajectory<'s> {
    schema_version: &'static str,
    session_id: &'s str,
    agent: Agent,
    steps: Vec<Step<'s>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<TrajectoryExtra<'s>>,
}

#[derive(Serialize)]
struct TrajectoryExtra<'s> {
    title: &'s str,
}

#[derive(Serialize)]
struct Agent {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct Step<'s> {
    step_id: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    source: &'static str,
    message: Content<'s>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall<'s>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observation: Option<Observation<'s>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<StepExtra<'s>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'s> {
    Text(String),
    Parts(Vec<ContentPart<'s>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum ContentPart<'s> {
    Text { text: String },
    Image { source: ImageSource<'s> },
}

#[derive(Serialize)]
struct ImageSource<'s> {
    media_type: &'s str,
    path: &'s str,
}

#[derive(Serialize)]
struct ToolCall<'s> {
    tool_call_id: &'s str,
    function_name: &'s str,
    arguments: Raw,
}

#[derive(Default, Serialize)]
struct Observation<'s> {
    results: Vec<ObservationResult<'s>>,
}

#[derive(Serialize)]
struct ObservationResult<'s> {
    #[serde(skip_serializing_if = "Option::is_none")]
    source_call_id: Option<&'s str>,
    content: Content<'s>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<ResultExtra>,
}

#[derive(Serialize)]
struct ResultExtra {
    is_error: bool,
}

/// What the format has no member for.
#[derive(Serialize)]
struct StepExtra<'s> {
    /// An item of another kind, whole.
    item: &'s Raw,
}

impl<'s> Step<'s> {
    /// Makes a step of items, which are one turn of the agent or one message of another. Its number is 0.
    fn of_items(source: &'static str, items: impl Iterator<Item = &'s Item>) -> Self {
        let mut step = Self {
            step_id: 0,
            timestamp: None,
            source,
            message: Content::Text(String::new()),
            reasoning_content: None,
            tool_calls: Vec::new(),
            observation: None,
            extra: None,
        };
        let mut has_message = false;
        for item in items {
            match item {
                Item::Message(message) if !has_message => {
                    step.message = Content::of_parts(&message.content);
                    has_message = true;
                }
                // What came back of an action that was no call: reading made a message of it.
                Item::Message(message) => step.push_result(None, &message.content, false),
                Item::FunctionCall(call) => step.tool_calls.push(ToolCall {
                    tool_call_id: &call.call_id,
                    function_name: &call.name,
                    arguments: arguments_of(&call.arguments),
                }),
                Item::FunctionCallOutput(output) => {
                    // Behind the calls nothing is the message of the step any more.
                    has_message = true;
                    let call = Some(output.call_id.as_str());
                    let content = match &output.output {
                        Output::Text(text) => Content::Text(text.clone()),
                        Output::Parts(parts) => Content::of_parts(parts),
                    };
                    let is_error = output.is_error == Some(true);
                    step.push_content(call, content, is_error);
                }
                Item::Reasoning(_) => {
                    let text = item.text();
                    let thoughts = step.reasoning_content.get_or_insert_default();
                    if !thoughts.is_empty() {
                        thoughts.push('\n');
                    }
                    thoughts.push_str(&text);
                }
                Item::Compaction(_) => step.message = Content::Text(item.text()),
                Item::Extension(extension) => {
                    step.extra = Some(StepExtra {
                        item: &extension.raw,
                    });
                }
            }
        }
        step
    }

    fn push_result(&mut self, call: Option<&'s str>, parts: &'s [Part], is_error: bool) {
        self.push_content(call, Content::of_parts(parts), is_error);
    }

    fn push_content(&mut self, call: Option<&'s str>, content: Content<'s>, is_error: bool) {
        let observation = self.observation.get_or_insert_default();
        observation.results.push(ObservationResult {
            source_call_id: call,
            content,
            extra: is_error.then_some(ResultExtra { is_error }),
        });
    }
}

impl<'s> Content<'s> {
    /// One text is written as such, several parts as a list.
    fn of_parts(parts: &'s [Part]) -> Self {
        let part = |part: &'s Part| match (part, part.as_text()) {
            (_, Some(text)) => ContentPart::Text {
                text: text.to_owned(),
            },
            (Part::InputImage(image), None) => image_part(image),
            // The format has no member for it.
            (other, None) => ContentPart::Text {
                text: format!("[{}]", other.kind()),
            },
        };
        let mut parts: Vec<ContentPart<'s>> = parts.iter().map(part).collect();
        match (parts.len(), parts.pop()) {
            (0, _) | (_, None) => Self::Text(String::new()),
            (1, Some(ContentPart::Text { text })) => Self::Text(text),
            (_, Some(last)) => {
                parts.push(last);
                Self::Parts(parts)
            }
        }
    }
}

/// A picture, if it has an address and a type that the format knows; else a text that says it was there.
fn image_part(image: &ImagePart) -> ContentPart<'_> {
    let Some(path) = image.image_url.as_deref() else {
        let id = image.file_id.as_deref().unwrap_or_default();
        return ContentPart::Text {
            text: format!("[image: {id}]"),
        };
    };
    let stated = image.media_type.as_deref();
    let from_data = || Some(path.strip_prefix("data:")?.split_once(';')?.0);
    let media_type = stated.or_else(from_data).unwrap_or("image/png");
    match IMAGES.contains(&media_type) {
        true => ContentPart::Image {
            source: ImageSource { media_type, path },
        },
        false => ContentPart::Text {
            text: format!("[{media_type}]"),
        },
    }
}

/// Arguments as an object: text that is none, as of custom tools, stands in one member.
fn arguments_of(text: &str) -> Raw {
    let is_object = text.trim_start().starts_with('{');
    let object = Raw::parse(text).ok().filter(|_| is_object);
    object.unwrap_or_else(|| {
        let json = match text.trim() {
            "" => "{}".to_owned(),
            _ => format!(r#"{{"input":{}}}"#, contexture_ir::quote_json(text)),
        };
        Raw::parse(json).unwrap_or_else(|_| Raw::null())
    })
}

/// Items that become one step.
struct StepItems<'s> {
    source: &'static str,
    items: Vec<&'s Item>,
    created_at: Option<i64>,
}

/// Puts items into steps: an output into that of its call, the thoughts, the message and the calls of one answer into one.
fn steps_of<'s>(nodes: impl Iterator<Item = &'s SessionNode>) -> Vec<StepItems<'s>> {
    let mut steps: Vec<StepItems<'s>> = Vec::new();
    for node in nodes {
        let item = &node.item;
        let source = match item {
            Item::Message(message) => match message.role {
                Role::User => "user",
                Role::Assistant => "agent",
                Role::System | Role::Developer => "system",
            },
            Item::FunctionCallOutput(_) | Item::Compaction(_) => "system",
            Item::FunctionCall(_) | Item::Reasoning(_) | Item::Extension(_) => "agent",
        };
        let place = match item {
            // Other answers may stand between a call and its output. Ids repeat, so the last step that has it is meant.
            Item::FunctionCallOutput(output) => steps
                .iter_mut()
                .rfind(|step| step.has_call(&output.call_id)),
            _ => steps.last_mut().filter(|step| step.may_take(item, source)),
        };
        match place {
            Some(step) => step.items.push(item),
            None => steps.push(StepItems {
                source,
                items: vec![item],
                created_at: node.created_at,
            }),
        }
    }
    steps
}

impl StepItems<'_> {
    fn has_call(&self, id: &str) -> bool {
        let is_it = |item: &&Item| matches!(item, Item::FunctionCall(call) if call.call_id == id);
        self.items.iter().any(is_it)
    }

    /// Whether an item goes on with the same answer of the model.
    fn may_take(&self, item: &Item, source: &str) -> bool {
        let only = |allowed: fn(&Item) -> bool| self.items.iter().all(|item| allowed(item));
        self.source == "agent"
            && source == "agent"
            && match item {
                Item::Reasoning(_) | Item::Message(_) => {
                    only(|item| matches!(item, Item::Reasoning(_)))
                }
                Item::FunctionCall(_) => only(|item| {
                    matches!(
                        item,
                        Item::Reasoning(_) | Item::Message(_) | Item::FunctionCall(_)
                    )
                }),
                _ => false,
            }
    }
}

/// Writes steps as JSON; their numbers are set by the caller.
fn write_steps<'s>(nodes: impl Iterator<Item = &'s SessionNode>) -> Vec<Step<'s>> {
    // What neither people nor models see is bookkeeping of ours.
    let nodes = nodes.filter(|node| node.audience.user || node.audience.model);
    let written = steps_of(nodes).into_iter().map(|one| Step {
        timestamp: one.created_at.and_then(time_text),
        ..Step::of_items(one.source, one.items.into_iter())
    });
    written.collect()
}

fn time_text(ms: i64) -> Option<String> {
    let time = jiff::Timestamp::from_millisecond(ms).ok()?;
    Some(time.to_string())
}

pub(crate) fn write_session(session: &Session) -> Result<String, SessionError> {
    if session.format == SessionFormat::Atif {
        return write_again(session);
    }
    let instructions: Vec<SessionNode> =
        session.instructions.iter().map(instruction_node).collect();
    let path = session.heads.first().map(|head| session.path_to(head.node));
    let path = path.into_iter().flatten();
    let nodes = path.filter_map(|index| session.tree.get(index));
    let mut steps = write_steps(instructions.iter().chain(nodes));
    // Only now is it known how many steps there are before one.
    for (number, step) in (1..).zip(&mut steps) {
        step.step_id = number;
    }
    let agent = match session.format {
        SessionFormat::Wire(_) => Agent {
            name: "contexture",
            version: env!("CARGO_PKG_VERSION"),
        },
        other => Agent {
            name: other.as_str(),
            version: "unknown",
        },
    };
    let trajectory = Trajectory {
        schema_version: VERSION,
        session_id: &session.source_id,
        agent,
        steps,
        extra: session
            .title
            .as_deref()
            .map(|title| TrajectoryExtra { title }),
    };
    to_json(&trajectory)
}

/// An instruction as a node, to be written like one.
fn instruction_node(message: &Message) -> SessionNode {
    let item = Item::from(message.clone());
    SessionNode {
        parent: None,
        origin: origin_of(&item),
        audience: audience_of(&item),
        item,
        message_id: None,
        created_at: None,
        imported: None,
    }
}

/// Writes a trajectory that was read: each step as it was, with what was added since behind them.
fn write_again(session: &Session) -> Result<String, SessionError> {
    let damaged = |what: &str| SessionError::Metadata {
        what: what.to_owned(),
    };
    let records = Records::from_metadata(&session.metadata)?;
    let (filled, added) = records.fill_records(session, fill_template);
    let mut steps: Vec<String> = filled
        .into_iter()
        .map(|step| step.unwrap_or_else(str::to_owned))
        .collect();
    for step in write_steps(added.into_iter()) {
        steps.push(to_json(&step)?);
    }
    // Numbered anew: a step may be gone, of a branch that is not written, and the format wants no gaps.
    let numbered = (1..).zip(&steps).map(|(number, step): (usize, _)| {
        with_member(step, "step_id", &number.to_string())
            .ok_or_else(|| damaged("a step is no object"))
    });
    let numbered = numbered.collect::<Result<Vec<_>, _>>()?;
    let rest = records.rest.as_ref().map_or("{}", Raw::get);
    with_member(rest, "steps", &format!("[{}]", numbered.join(",")))
        .ok_or_else(|| damaged("`rest` is not an object"))
}

fn to_json(value: &impl Serialize) -> Result<String, SessionError> {
    serde_json::to_string(value).map_err(|error| SessionError::Metadata {
        what: error.to_string(),
    })
}
