//! A trajectory as JSON, and how items become a step of it.
//!
//! Not here: which items are one step (`write`).

use contexture_ir::{ImagePart, Item, Output, Part, Raw};
use contexture_wire::DataUrl;
use serde::Serialize;

/// Types of pictures that the format knows.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// A trajectory as it is written.
#[derive(Serialize)]
pub(super) struct Trajectory<'s> {
    pub(super) schema_version: &'static str,
    pub(super) session_id: &'s str,
    pub(super) agent: Agent,
    pub(super) steps: Vec<Step<'s>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extra: Option<TrajectoryExtra<'s>>,
}

#[derive(Serialize)]
pub(super) struct TrajectoryExtra<'s> {
    pub(super) title: &'s str,
}

#[derive(Serialize)]
pub(super) struct Agent {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
}

#[derive(Serialize)]
pub(super) struct Step<'s> {
    pub(super) step_id: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timestamp: Option<String>,
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
    pub(super) fn of_items(source: &'static str, items: impl Iterator<Item = &'s Item>) -> Self {
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
                Item::Message(message) => {
                    step.push_result(None, Content::of_parts(&message.content), false);
                }
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
                    step.push_result(call, content, is_error);
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

    fn push_result(&mut self, call: Option<&'s str>, content: Content<'s>, is_error: bool) {
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
    let in_data = DataUrl::parse(path).and_then(|url| url.media_type.split(';').next());
    // The format wants a type; where nobody stated one, most pictures are of this.
    let media_type = stated.or(in_data).unwrap_or("image/png");
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
