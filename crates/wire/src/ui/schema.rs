//! The shapes of UI message parts as tables: which fields, in which order, of which type.
//!
//! Order and strictness are those of the AI SDK's own validation, version 7.0.173: a field that is
//! required must be there even when its value may be anything. Reading a part by its table is
//! [`super::validate_part`]'s work.

use ApprovalAnswer::{Denied, Given, Granted, Open};
use ExpectedValue::{
    Approval, Citations, Encoding, False, Flag, Json, Metadata, Never, Object, SteeringParts, Text,
    TextRecord, TextState, True,
};

/// What a field's value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedValue {
    /// A JSON string.
    Text,
    /// A JSON boolean.
    Flag,
    /// The value `true`.
    True,
    /// The value `false`.
    False,
    /// Any JSON value.
    Json,
    /// No value: the field must be absent.
    Never,
    /// `streaming` or `done`.
    TextState,
    /// `json` or `text`.
    Encoding,
    /// An object whose values are objects.
    Metadata,
    /// Any JSON object.
    Object,
    /// An object whose values are strings.
    TextRecord,
    /// An array of the citations that support a text.
    Citations,
    /// A request for approval with the answer that it must hold.
    Approval(ApprovalAnswer),
    /// The text and file parts of a steering message.
    SteeringParts,
}

/// The answer that an approval must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApprovalAnswer {
    /// No answer yet.
    Open,
    /// Either answer, yes or no.
    Given,
    /// The answer yes: `approved` is `true`.
    Granted,
    /// The answer no: `approved` is `false`.
    Denied,
}

/// One field of a part.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) required: bool,
    pub(super) check: ExpectedValue,
}

/// The fields of a part behind its `type`, in order.
pub(super) type FieldTable = &'static [Field];

/// The kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartKind {
    Text,
    Reasoning,
    File,
    Steering,
    StepStart,
    Tool {
        dynamic: bool,
        state: ToolState,
    },
    /// A part that is stored verbatim: data, a source, custom content, a file of reasoning.
    Plain,
}

/// How far a tool call got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolState {
    InputStreaming,
    InputAvailable,
    ApprovalRequested,
    ApprovalResponded,
    OutputAvailable,
    OutputError,
    OutputDenied,
}

impl ToolState {
    pub(super) const ALL: [Self; 7] = [
        Self::InputStreaming,
        Self::InputAvailable,
        Self::ApprovalRequested,
        Self::ApprovalResponded,
        Self::OutputAvailable,
        Self::OutputError,
        Self::OutputDenied,
    ];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::InputStreaming => "input-streaming",
            Self::InputAvailable => "input-available",
            Self::ApprovalRequested => "approval-requested",
            Self::ApprovalResponded => "approval-responded",
            Self::OutputAvailable => "output-available",
            Self::OutputError => "output-error",
            Self::OutputDenied => "output-denied",
        }
    }

    pub(super) fn from_wire(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

macro_rules! fields {
    ($($need:ident $name:literal $check:expr),* $(,)?) => {
        &[$(Field { name: $name, required: fields!(@ $need), check: $check }),*]
    };
    (@ must) => { true };
    (@ may) => { false };
}

pub(super) const TEXT: FieldTable = fields![
    must "text" Text, may "citations" Citations, may "state" TextState,
    may "providerMetadata" Metadata,
];
pub(super) const REASONING: FieldTable = fields![
    may "id" Text, must "text" Text, may "state" TextState, may "providerMetadata" Metadata,
];
const CUSTOM: FieldTable = fields![must "kind" Text, may "providerMetadata" Metadata];
const SOURCE_URL: FieldTable = fields![
    must "sourceId" Text, must "url" Text, may "title" Text, may "providerMetadata" Metadata,
];
const SOURCE_DOCUMENT: FieldTable = fields![
    must "sourceId" Text, must "mediaType" Text, must "title" Text, may "filename" Text,
    may "providerMetadata" Metadata,
];
pub(super) const FILE: FieldTable = fields![
    must "mediaType" Text, may "filename" Text, must "url" Text,
    may "providerReference" TextRecord, may "providerMetadata" Metadata,
];
const REASONING_FILE: FieldTable =
    fields![must "mediaType" Text, must "url" Text, may "providerMetadata" Metadata];
const STEERING: FieldTable = fields![must "id" Text, must "parts" SteeringParts];
/// A text inside a steering message.
pub(super) const STEERING_TEXT: FieldTable =
    fields![must "text" Text, may "providerMetadata" Metadata];
const DATA: FieldTable = fields![may "id" Text, must "data" Json];

/// Returns the fields of an approval that must hold the given answer.
pub(super) const fn approval_fields(answer: ApprovalAnswer) -> FieldTable {
    match answer {
        Open => fields![
            must "id" Text, may "approved" Never, may "descriptor" Json, may "requestReason" Text,
            may "reason" Never, may "isAutomatic" Flag, may "signature" Text,
            may "inputSchemaInput" Json,
        ],
        Given => fields![
            must "id" Text, must "approved" Flag, may "descriptor" Json, may "requestReason" Text,
            may "reason" Text, may "isAutomatic" Flag, may "signature" Text,
            may "inputSchemaInput" Json,
        ],
        Granted => fields![
            must "id" Text, must "approved" True, may "descriptor" Json, may "requestReason" Text,
            may "reason" Text, may "isAutomatic" Flag, may "signature" Text,
            may "inputSchemaInput" Json,
        ],
        Denied => fields![
            must "id" Text, must "approved" False, may "descriptor" Json, may "requestReason" Text,
            may "reason" Text, may "isAutomatic" Flag, may "signature" Text,
            may "inputSchemaInput" Json,
        ],
    }
}

pub(super) const CITATION: FieldTable = fields![
    must "source" Object, may "startIndex" Json, may "endIndex" Json, may "citedText" Text,
];
pub(super) const CITATION_URL: FieldTable = fields![
    must "sourceType" Text, must "id" Text, must "url" Text, may "title" Text,
    may "providerMetadata" Metadata,
];
pub(super) const CITATION_DOCUMENT: FieldTable = fields![
    must "sourceType" Text, must "id" Text, must "mediaType" Text, must "title" Text,
    may "filename" Text, may "providerMetadata" Metadata,
];

/// Returns the fields of a call of a tool that the host knows: `tool-<name>`.
const fn static_tool_fields(state: ToolState) -> FieldTable {
    match state {
        ToolState::InputStreaming => fields![
            must "toolCallId" Text, may "title" Text, may "toolMetadata" Object, must "state" Text,
            may "providerExecuted" Flag, may "callProviderMetadata" Metadata, may "input" Json,
            may "rawInput" Text, may "inputEncoding" Encoding, may "output" Never,
            may "errorText" Never, may "approval" Never,
        ],
        ToolState::InputAvailable => fields![
            must "toolCallId" Text, may "title" Text, may "toolMetadata" Object, must "state" Text,
            may "providerExecuted" Flag, must "input" Json, may "output" Never,
            may "errorText" Never, may "callProviderMetadata" Metadata, may "approval" Never,
        ],
        ToolState::ApprovalRequested => fields![
            must "toolCallId" Text, may "title" Text, may "toolMetadata" Object, must "state" Text,
            must "input" Json, may "providerExecuted" Flag, may "output" Never,
            may "errorText" Never, may "callProviderMetadata" Metadata,
            must "approval" Approval(Open),
        ],
        ToolState::ApprovalResponded => fields![
            must "toolCallId" Text, may "title" Text, may "toolMetadata" Object, must "state" Text,
            must "input" Json, may "providerExecuted" Flag, may "output" Never,
            may "errorText" Never, may "callProviderMetadata" Metadata,
            must "approval" Approval(Given),
        ],
        ToolState::OutputAvailable => fields![
            must "toolCallId" Text, may "title" Text, may "toolMetadata" Object, must "state" Text,
            may "providerExecuted" Flag, must "input" Json, must "output" Json,
            may "errorText" Never, may "callProviderMetadata" Metadata,
            may "resultProviderMetadata" Metadata, may "preliminary" Flag,
            may "approval" Approval(Granted),
        ],
        ToolState::OutputError => fields![
            must "toolCallId" Text, may "title" Text, may "toolMetadata" Object, must "state" Text,
            may "providerExecuted" Flag, may "input" Json, may "rawInput" Json,
            may "output" Never, must "errorText" Text, may "callProviderMetadata" Metadata,
            may "resultProviderMetadata" Metadata, may "approval" Approval(Granted),
        ],
        ToolState::OutputDenied => fields![
            must "toolCallId" Text, may "title" Text, may "toolMetadata" Object, must "state" Text,
            may "providerExecuted" Flag, must "input" Json, may "output" Never,
            may "errorText" Never, may "callProviderMetadata" Metadata,
            must "approval" Approval(Denied),
        ],
    }
}

/// Returns the fields of a call of a tool that the host does not know: `dynamic-tool`.
const fn dynamic_tool_fields(state: ToolState) -> FieldTable {
    match state {
        ToolState::InputStreaming => fields![
            may "dynamic" False, must "toolName" Text, must "toolCallId" Text, may "title" Text,
            may "toolMetadata" Object, must "state" Text, may "input" Json, may "rawInput" Text,
            may "inputEncoding" Encoding, may "providerExecuted" Flag,
            may "callProviderMetadata" Metadata, may "output" Never, may "errorText" Never,
            may "approval" Never,
        ],
        ToolState::InputAvailable => fields![
            may "dynamic" False, must "toolName" Text, must "toolCallId" Text, may "title" Text,
            may "toolMetadata" Object, must "state" Text, must "input" Json,
            may "providerExecuted" Flag, may "output" Never, may "errorText" Never,
            may "callProviderMetadata" Metadata, may "approval" Never,
        ],
        ToolState::ApprovalRequested => fields![
            may "dynamic" False, must "toolName" Text, must "toolCallId" Text, may "title" Text,
            may "toolMetadata" Object, must "state" Text, must "input" Json,
            may "providerExecuted" Flag, may "output" Never, may "errorText" Never,
            may "callProviderMetadata" Metadata, must "approval" Approval(Open),
        ],
        ToolState::ApprovalResponded => fields![
            may "dynamic" False, must "toolName" Text, must "toolCallId" Text, may "title" Text,
            may "toolMetadata" Object, must "state" Text, must "input" Json,
            may "providerExecuted" Flag, may "output" Never, may "errorText" Never,
            may "callProviderMetadata" Metadata, must "approval" Approval(Given),
        ],
        ToolState::OutputAvailable => fields![
            may "dynamic" False, must "toolName" Text, must "toolCallId" Text, may "title" Text,
            may "toolMetadata" Object, must "state" Text, must "input" Json,
            may "providerExecuted" Flag, must "output" Json, may "errorText" Never,
            may "callProviderMetadata" Metadata, may "resultProviderMetadata" Metadata,
            may "preliminary" Flag, may "approval" Approval(Granted),
        ],
        ToolState::OutputError => fields![
            may "dynamic" False, must "toolName" Text, must "toolCallId" Text, may "title" Text,
            may "toolMetadata" Object, must "state" Text, may "input" Json, may "rawInput" Json,
            may "providerExecuted" Flag, may "output" Never, must "errorText" Text,
            may "callProviderMetadata" Metadata, may "resultProviderMetadata" Metadata,
            may "approval" Approval(Granted),
        ],
        ToolState::OutputDenied => fields![
            may "dynamic" False, must "toolName" Text, must "toolCallId" Text, may "title" Text,
            may "toolMetadata" Object, must "state" Text, must "input" Json,
            may "providerExecuted" Flag, may "output" Never, may "errorText" Never,
            may "callProviderMetadata" Metadata, must "approval" Approval(Denied),
        ],
    }
}

impl PartKind {
    /// Returns the kind and the fields of a part that is no tool call; `None` for tool calls and unknown types.
    pub(super) fn from_type_name(type_name: &str) -> Option<(Self, FieldTable)> {
        Some(match type_name {
            "text" => (Self::Text, TEXT),
            "reasoning" => (Self::Reasoning, REASONING),
            "file" => (Self::File, FILE),
            "steering-message" => (Self::Steering, STEERING),
            "step-start" => (Self::StepStart, fields![]),
            "custom" => (Self::Plain, CUSTOM),
            "source-url" => (Self::Plain, SOURCE_URL),
            "source-document" => (Self::Plain, SOURCE_DOCUMENT),
            "reasoning-file" => (Self::Plain, REASONING_FILE),
            data if data.starts_with("data-") => (Self::Plain, DATA),
            _ => return None,
        })
    }

    /// Reports whether the tool of a tool call is unknown to the host; `None` if the type names no tool call.
    pub(super) fn parse_tool_type(type_name: &str) -> Option<bool> {
        if type_name == "dynamic-tool" {
            Some(true)
        } else {
            type_name.starts_with("tool-").then_some(false)
        }
    }

    /// Returns the fields of a tool call in a state.
    pub(super) const fn tool_fields(dynamic: bool, state: ToolState) -> FieldTable {
        if dynamic {
            dynamic_tool_fields(state)
        } else {
            static_tool_fields(state)
        }
    }
}
