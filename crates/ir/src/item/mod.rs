//! Items: the things that happen in a conversation.
//!
//! An item reaches its final form once. [`Item::parse`] and [`Item::to_json`] are inverse up to key
//! order and white space; an [`Extension`] is kept byte for byte. Stores keep the bytes they were
//! given and never write an item anew.
//!
//! What is not checked here: whether calls and outputs pair, whether roles alternate. Any list of
//! items is a history; making one fit for a provider is repair, at lowering. Nor that a status is a word of
//! the specification, and that an extension has an id, which the specification wants of those who make
//! items: readers are to keep what they do not know, and stores hold such items.

mod part;
mod read;
mod write;

pub use part::{ExtensionPart, FilePart, ImagePart, Part, TextPart};

use crate::raw::{Extra, Raw};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// The message of a person, the model or the host.
    Message(Message),
    /// A call of a function by the model.
    FunctionCall(FunctionCall),
    /// The output of a function.
    FunctionCallOutput(FunctionCallOutput),
    /// The model's thoughts.
    Reasoning(Reasoning),
    /// A summary that stands for earlier items.
    Compaction(Compaction),
    /// Anything else: `slug:type`, or a type this version does not know; kept whole.
    Extension(Extension),
}

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// The person who talks to the model.
    User,
    /// The model itself.
    Assistant,
    /// The host; the older name.
    System,
    /// The host; the newer name.
    Developer,
}

impl Role {
    /// All roles of messages.
    pub const ALL: [Self; 4] = [Self::User, Self::Assistant, Self::System, Self::Developer];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
            Self::Developer => "developer",
        }
    }

    /// Reads the word on the wire; `None` for any other.
    #[must_use]
    pub fn from_wire(word: &str) -> Option<Self> {
        Some(match word {
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "system" => Self::System,
            "developer" => Self::Developer,
            _ => return None,
        })
    }

    /// Whether this is the host speaking.
    #[must_use]
    pub const fn is_instruction(self) -> bool {
        matches!(self, Self::System | Self::Developer)
    }
}

/// How far the generation of an item got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Still being generated.
    InProgress,
    /// The item is complete.
    Completed,
    /// The item was cut off.
    Incomplete,
    /// Ended in an error; our extension of the specification.
    Failed,
}

impl Status {
    /// All states of an item.
    pub const ALL: [Self; 4] = [
        Self::InProgress,
        Self::Completed,
        Self::Incomplete,
        Self::Failed,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
        }
    }

    /// Whether the model began it and did not finish.
    #[must_use]
    pub const fn is_incomplete(self) -> bool {
        matches!(self, Self::InProgress | Self::Incomplete)
    }

    fn from_wire(word: &str) -> Option<Self> {
        Some(match word {
            "in_progress" => Self::InProgress,
            "completed" => Self::Completed,
            "incomplete" => Self::Incomplete,
            "failed" => Self::Failed,
            _ => return None,
        })
    }
}

/// A message of a person, the model or the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The provider's id.
    pub id: Option<String>,
    /// Who says it.
    pub role: Role,
    /// How far it got; absent means complete.
    pub status: Option<Status>,
    /// What is said, in order. A bare string on the wire is read as one text part.
    pub content: Vec<Part>,
    /// Fields that have no member here.
    pub extra: Extra,
}

/// A call of a function by the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    /// The provider's id of the item.
    pub id: Option<String>,
    /// The id by which the output answers. Not unique, not even within one conversation.
    pub call_id: String,
    /// The function's name.
    pub name: String,
    /// The arguments as the model wrote them: JSON text, or what was to become it.
    pub arguments: String,
    /// How far it got; absent means complete.
    pub status: Option<Status>,
    /// Fields that have no member here.
    pub extra: Extra,
}

/// The output of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCallOutput {
    /// The provider's id of the item.
    pub id: Option<String>,
    /// The id of the call it answers.
    pub call_id: String,
    /// The output of the call.
    pub output: Output,
    /// Whether the function failed; absent means it did not. Our field: two providers carry it, the
    /// specification does not.
    pub is_error: Option<bool>,
    /// How far it got; absent means complete.
    pub status: Option<Status>,
    /// Fields that have no member here.
    pub extra: Extra,
}

/// A function's output: text, or parts where it holds pictures or files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Output as one text.
    Text(String),
    /// Parts, in order.
    Parts(Vec<Part>),
}

/// The model's thoughts, shown or sealed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasoning {
    /// The provider's id.
    pub id: Option<String>,
    /// Summaries shown instead of the thoughts.
    pub summary: Vec<Part>,
    /// The thoughts, where the provider shows them.
    pub content: Option<Vec<Part>>,
    /// The thoughts, where it does not: opaque, for the same provider only.
    pub encrypted_content: Option<String>,
    /// A signature over the content: opaque, for the same provider only.
    pub signature: Option<String>,
    /// Whose opaque fields these are: `anthropic-claude-v1`, `openai-responses-v1`,
    /// `google-gemini-v1`, or another's.
    pub format: Option<String>,
    /// How far it got; absent means complete.
    pub status: Option<Status>,
    /// Fields that have no member here.
    pub extra: Extra,
}

/// A summary or a provider's opaque form that stands for earlier items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// The provider's id.
    pub id: Option<String>,
    /// The text that stands for them, for every target.
    pub summary: Vec<Part>,
    /// A provider's opaque form, for the same provider only.
    pub encrypted_content: Option<String>,
    /// Whose opaque form this is, as in [`Reasoning::format`].
    pub format: Option<String>,
    /// Fields that have no member here.
    pub extra: Extra,
}

/// Anything else, kept as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Its `type`: `slug:type`, or a bare word of a newer specification.
    pub kind: String,
    /// Its `id`, if it has one that is a string.
    pub id: Option<String>,
    /// The whole object, byte for byte.
    pub raw: Raw,
}

impl Item {
    /// The item as JSON, snake_case, fields in the specification's order.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Serialisation fails for maps whose keys are no strings; the assertion tells a developer, a user never
        // sees it.
        let json = serde_json::to_string(self);
        debug_assert!(json.is_ok(), "items have string keys only");
        json.unwrap_or_default()
    }

    /// The `type` on the wire.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Message(_) => "message",
            Self::FunctionCall(_) => "function_call",
            Self::FunctionCallOutput(_) => "function_call_output",
            Self::Reasoning(_) => "reasoning",
            Self::Compaction(_) => "compaction",
            Self::Extension(extension) => &extension.kind,
        }
    }

    /// The provider's id of the item, if it has one.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Message(item) => item.id.as_deref(),
            Self::FunctionCall(item) => item.id.as_deref(),
            Self::FunctionCallOutput(item) => item.id.as_deref(),
            Self::Reasoning(item) => item.id.as_deref(),
            Self::Compaction(item) => item.id.as_deref(),
            Self::Extension(item) => item.id.as_deref(),
        }
    }

    /// The role, of a message.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        match self {
            Self::Message(message) => Some(message.role),
            _ => None,
        }
    }

    /// The fields no typed field claimed; `None` for an extension, which is kept whole.
    #[must_use]
    pub fn extra(&self) -> Option<&Extra> {
        match self {
            Self::Message(item) => Some(&item.extra),
            Self::FunctionCall(item) => Some(&item.extra),
            Self::FunctionCallOutput(item) => Some(&item.extra),
            Self::Reasoning(item) => Some(&item.extra),
            Self::Compaction(item) => Some(&item.extra),
            Self::Extension(_) => None,
        }
    }

    /// As [`Item::extra`], to change them.
    pub fn extra_mut(&mut self) -> Option<&mut Extra> {
        match self {
            Self::Message(item) => Some(&mut item.extra),
            Self::FunctionCall(item) => Some(&mut item.extra),
            Self::FunctionCallOutput(item) => Some(&mut item.extra),
            Self::Reasoning(item) => Some(&mut item.extra),
            Self::Compaction(item) => Some(&mut item.extra),
            Self::Extension(_) => None,
        }
    }

    /// Whether the model's side of the conversation produced it: its messages, calls and thoughts.
    #[must_use]
    pub fn is_model_output(&self) -> bool {
        match self {
            Self::Message(message) => message.role == Role::Assistant,
            Self::FunctionCall(_) | Self::Reasoning(_) => true,
            // A compaction counts as neither side: the engine or a provider made it, from what both had said.
            Self::FunctionCallOutput(_) | Self::Compaction(_) | Self::Extension(_) => false,
        }
    }

    /// The texts of the item, joined by line feeds: what search indexes and titles show.
    #[must_use]
    pub fn text(&self) -> String {
        let join = |parts: &[Part]| {
            parts
                .iter()
                .filter_map(Part::as_text)
                .collect::<Vec<_>>()
                .join("\n")
        };
        match self {
            Self::Message(message) => join(&message.content),
            Self::FunctionCall(call) => format!("{} {}", call.name, call.arguments),
            Self::FunctionCallOutput(output) => match &output.output {
                Output::Text(text) => text.clone(),
                Output::Parts(parts) => join(parts),
            },
            // Full thoughts where the provider shows them, and the summary otherwise; an empty list is as good
            // as none.
            Self::Reasoning(item) => join(
                item.content
                    .as_deref()
                    .filter(|c| !c.is_empty())
                    .unwrap_or(&item.summary),
            ),
            Self::Compaction(item) => join(&item.summary),
            Self::Extension(_) => String::new(),
        }
    }
}

impl Message {
    /// A whole message without an id.
    #[must_use]
    pub fn new(role: Role, content: Vec<Part>) -> Self {
        Self {
            id: None,
            role,
            status: None,
            content,
            extra: Extra::new(),
        }
    }

    /// A whole message of one text part: output text from the assistant, input text otherwise.
    #[must_use]
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self::new(role, vec![text_for(role, text.into())])
    }
}

impl FunctionCall {
    /// A whole call without an id of its own.
    #[must_use]
    pub fn new(
        call_id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        Self {
            id: None,
            call_id: call_id.into(),
            name: name.into(),
            arguments: arguments.into(),
            status: None,
            extra: Extra::new(),
        }
    }
}

impl FunctionCallOutput {
    /// A whole output without an id of its own.
    #[must_use]
    pub fn new(call_id: impl Into<String>, output: Output) -> Self {
        Self {
            id: None,
            call_id: call_id.into(),
            output,
            is_error: None,
            status: None,
            extra: Extra::new(),
        }
    }
}

// A bare string means text in the direction of the role, since the part types differ by direction.
fn text_for(role: Role, text: String) -> Part {
    if role == Role::Assistant {
        Part::output_text(text)
    } else {
        Part::input_text(text)
    }
}

impl From<Message> for Item {
    fn from(item: Message) -> Self {
        Self::Message(item)
    }
}

impl From<FunctionCall> for Item {
    fn from(item: FunctionCall) -> Self {
        Self::FunctionCall(item)
    }
}

impl From<FunctionCallOutput> for Item {
    fn from(item: FunctionCallOutput) -> Self {
        Self::FunctionCallOutput(item)
    }
}

impl From<Reasoning> for Item {
    fn from(item: Reasoning) -> Self {
        Self::Reasoning(item)
    }
}

impl From<Compaction> for Item {
    fn from(item: Compaction) -> Self {
        Self::Compaction(item)
    }
}
