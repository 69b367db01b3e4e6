//! One call of a model: what it is compiled from, what came of it, its answer, and the calls in that.

use std::collections::BTreeMap;
use std::fmt;

use contexture::compile::{BudgetCount, PageItem};
use contexture::ir::Raw;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::documents::calls::{CallBandDocument, DifferenceDocument};
use crate::documents::text::LossDocument;
use crate::policy::{GuardrailsConfig, PolicyConfig};
use crate::schema::{
    AnsweredBySchema, MessageInputSchema, ProviderFormatSchema, RenderFormatSchema,
    SystemPromptSchema,
};

/// What a call is compiled from, and for whom.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CompileRequest)]
pub struct CompileDocument {
    /// Format of the request. Default: without `model` that of the newest answer, else that of the model's provider.
    #[schema(value_type = Option<ProviderFormatSchema>)]
    pub to: Option<String>,
    /// Name of the model that is called. Default: the model of the newest answer among the branch's last 256 items.
    pub model: Option<String>,
    /// Size of the context window in tokens. Default: the policy's, else the model's.
    pub window: Option<u64>,
    /// Tokens of the window that are kept free for the answer.
    pub reserve: Option<u64>,
    /// Count that the budget goes by: `likely` fills the window, and the provider may refuse the request as too long; `upper`
    /// fits in any case. Default: `upper`.
    #[schema(value_type = Option<String>)]
    pub count: Option<BudgetCount>,
    /// What may be shown of the history, and what is said beside it: the name of a policy of the server, or a policy. Default:
    /// all is shown, and as little as possible is cut where it does not fit.
    #[schema(inline)]
    pub policy: Option<PolicyChoice>,
    /// Tools that the model may call, in the format of any provider. Default: those of the request that the history came with.
    #[schema(value_type = Option<Vec<BTreeMap<String, serde_json::Value>>>)]
    pub tools: Option<Vec<Raw>>,
    /// Choice among the tools, in the format that they have, or one of `auto`, `none` and `required`.
    #[schema(value_type = Option<serde_json::Value>)]
    pub tool_choice: Option<Raw>,
    /// Top-level fields to add to the request, verbatim.
    #[schema(value_type = Option<BTreeMap<String, serde_json::Value>>)]
    pub params: Option<BTreeMap<String, Raw>>,
    /// What to add to the system prompt: a text, or fragments.
    #[schema(value_type = Option<SystemPromptSchema>, inline)]
    pub system: Option<Raw>,
    /// Format in which `system` and the fragments of the path are rendered. Default: `xml`.
    #[schema(value_type = Option<RenderFormatSchema>)]
    pub renderer: Option<String>,
    /// Texts that belong to this call alone, by name: what is open in an editor, say. They stand behind the history.
    #[serde(default)]
    pub context: BTreeMap<String, String>,
    /// What is so now, in the place of the policy's `state`.
    pub state: Option<Map<String, Value>>,
    /// How the model is to answer, in the place of the policy's `guardrails`.
    pub guardrails: Option<GuardrailsConfig>,
    /// Reminders, which stand last, behind the history.
    #[serde(default)]
    pub reminders: Vec<String>,
    /// Names of the server's skills that are listed to the model, which reads one by a tool that is answered here. Default: none.
    #[serde(default)]
    pub skills: Vec<String>,
    /// Maximum number of turns to send, newest first, in the place of the policy's `window`.
    pub turns: Option<u32>,
    /// Number of characters above which an output is shown as a preview, in the place of the policy's `preview`.
    pub preview: Option<u64>,
    /// History to compile, for a caller who keeps it: messages of the AI SDK, of a provider, or items. Not for a stored
    /// conversation.
    #[schema(value_type = Option<Vec<MessageInputSchema>>)]
    pub messages: Option<Vec<Raw>>,
    /// The `plan` of the call before, as it was given. Not for a stored conversation, which has its own. Default: none; the
    /// first call.
    #[schema(value_type = Option<serde_json::Value>)]
    pub plan: Option<Raw>,
    /// Input tokens of the call before, as its provider reported them: they narrow the counts of this one. Not for a stored
    /// conversation, which learns from its answers.
    pub reported_input_tokens: Option<u64>,
}

/// A policy by its name, or as it is.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum PolicyChoice {
    /// Name of a policy of the server.
    Named(String),
    /// A policy of this call alone.
    Inline(Box<PolicyConfig>),
}

impl<'de> Deserialize<'de> for PolicyChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PolicyChoiceVisitor)
    }
}

/// Reads a policy by what it is: an untagged enum would not say which member of it is wrong.
struct PolicyChoiceVisitor;

impl<'de> Visitor<'de> for PolicyChoiceVisitor {
    type Value = PolicyChoice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a policy, or a policy")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<PolicyChoice, E> {
        Ok(PolicyChoice::Named(name.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PolicyChoice, A::Error> {
        let policy = PolicyConfig::deserialize(MapAccessDeserializer::new(map))?;
        Ok(PolicyChoice::Inline(Box::new(policy)))
    }
}

/// A compiled call: the request, and the report on it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CompiledDocument {
    /// Id of the call, by which its answer is recorded within an hour; absent without a stored conversation. The same call
    /// compiled again has the same id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Request for the provider, to be sent as it is.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub payload: Raw,
    /// Report on what the request contains and leaves out; its schema is docs/schema/report.schema.json.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub report: Raw,
    /// What the next call takes as its `plan`: opaque, at most 64 KiB; absent for a stored conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub plan: Option<Raw>,
    /// Names of offered tools whose calls are answered here: see `…/handle`.
    pub own_tools: Vec<String>,
}

/// The report on a compile, in three forms.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ExplainedDocument {
    /// Report on the request, by the schema docs/schema/report.schema.json.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub report: Raw,
    /// Same report as a table of text.
    pub table: String,
    /// Same report as an HTML page with a picture of the window.
    pub html: String,
    /// Texts that the report is about; absent where they were not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<ExplainedTextDocument>,
}

/// The texts of what a request contains and leaves out.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ExplainedTextDocument {
    /// Texts of the system prompt as it is sent, in order.
    pub system: Vec<String>,
    /// Which items the segments of the report are about. A segment that is about none has no entry.
    pub segments: Vec<SegmentItemsDocument>,
    /// Items of the path, oldest first, those included that are not sent.
    pub items: Vec<ExplainedItemDocument>,
}

/// The items that a segment is about.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SegmentItemsDocument {
    /// Index of the segment in the report's `segments`.
    pub segment: usize,
    /// Index of the first item that it holds, stands for, or leaves out.
    pub first: usize,
    /// Index of the last one.
    pub last: usize,
}

/// An item of the path, and what became of it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ExplainedItemDocument {
    /// Index of the item on the path, from 0.
    pub index: usize,
    /// Id of its node.
    pub node: String,
    /// Kind of the item, such as `message` or `function_call_output`.
    pub kind: String,
    /// Text of the item as it is stored; of a call its name and arguments.
    pub text: String,
    /// Text as it is sent in its place; `null` if nothing is.
    pub sent: Option<String>,
    /// What became of it, such as `cleared` or `trimmed`; `null` if it is sent as it is.
    pub verdict: Option<&'static str>,
    /// The rule that decided, in a few words; `null` if it is sent as it is.
    pub rule: Option<String>,
    /// Tokens of the item as it is; `null` if it is sent as it is.
    pub tokens: Option<u64>,
    /// Tokens of what is sent in its place; `null` if it is sent as it is.
    pub sent_tokens: Option<u64>,
}

impl ExplainedItemDocument {
    /// Returns it as a page of a report shows it.
    pub(crate) fn to_page_item(&self) -> PageItem {
        PageItem {
            index: self.index,
            kind: self.kind.clone(),
            verdict: self.verdict.map(str::to_owned),
            text: self.text.clone(),
            sent: self.sent.clone(),
        }
    }
}

/// A call as it would be. Nothing was stored.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = WhatIf)]
pub struct WhatIfDocument {
    /// Request as it would be sent.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub payload: Raw,
    /// Report on it; its schema is docs/schema/report.schema.json.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub report: Raw,
    /// What it would be made of.
    pub band: CallBandDocument,
    /// What its input would cost in dollars, a decimal; `null` without prices.
    pub dollars: Option<String>,
    /// What each call after it would cost for the same input, as long as the provider's cache holds it, in dollars; `null` without
    /// prices.
    pub next_dollars: Option<String>,
    /// Id of the call before it on the path, with which it is compared; `null` if there is none that can be shown.
    pub against: Option<String>,
    /// What it would find in the cache that the call before has filled; `null` without one, or if that was of another format.
    pub difference: Option<DifferenceDocument>,
}

/// An answer of a model, and the call that it is the answer to.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RecordRequest)]
pub struct RecordDocument {
    /// Id of the call, as its compile gave it. Without, or after more than an hour, the answer is stored all the same, but the
    /// next compile decides anew what is cut.
    #[serde(default)]
    pub call: Option<String>,
    /// Answer of the provider, as it came: its document, or the text of its event stream as a string.
    #[schema(value_type = serde_json::Value)]
    pub response: Raw,
    /// Format of the answer. Default: that of the call, else detected.
    #[serde(default)]
    #[schema(value_type = Option<ProviderFormatSchema>)]
    pub format: Option<String>,
}

/// A stored answer.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RecordedDocument {
    /// Branch that the answer is on: one of its own if somebody appended while the model was thinking.
    pub branch: String,
    /// Head of that branch now.
    pub head: Option<String>,
    /// Ids of the stored items, in the order of the answer.
    pub nodes: Vec<String>,
    /// Whether the call was known: then its decisions hold for the next one, and it can be replayed.
    pub latched: bool,
    /// Whether the answer had been stored before; then nothing was stored now.
    pub replayed: bool,
    /// Id of the response, by which it is replayed; absent if the call was not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    /// Calls of tools in the answer, in its order.
    pub calls: Vec<ToolCallDocument>,
    /// What of the answer no item can hold.
    pub losses: Vec<LossDocument>,
}

/// A call of a tool.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ToolCallDocument {
    /// Id of the call, which its output names.
    pub call_id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments, as the model wrote them: JSON, as a rule.
    pub arguments: String,
    /// Who answers the call: `caller`, who runs the tool and appends its output, or `server`, by `…/handle`: a tool of its own, or
    /// a refusal.
    #[schema(value_type = AnsweredBySchema)]
    pub by: AnsweredBy,
    /// Why the call is not allowed; absent if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

/// Who answers a call of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AnsweredBy {
    /// The caller, who runs the tool and appends its output.
    Caller,
    /// This server, by `…/handle`: a tool of its own, or a refusal.
    Server,
}

/// Calls to be answered.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HandleRequest)]
pub struct HandleDocument {
    /// Id of the compiled call whose answer has them, by which notes, skills and rules for tools are known. Default: the newest call
    /// that was compiled in the last hour.
    pub call: Option<String>,
    /// Policy whose notes and rules for tools hold, in the place of the call's.
    #[schema(inline)]
    pub policy: Option<PolicyChoice>,
    /// Names of the skills that the model was shown, in the place of the call's.
    pub skills: Option<Vec<String>>,
}

/// Calls at the end of a branch, answered as far as they are the server's.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct HandledDocument {
    /// Head of the branch now.
    pub head: Option<String>,
    /// Calls that were answered, with their outputs, which are stored.
    pub answered: Vec<AnsweredCallDocument>,
    /// Calls that wait for the caller's outputs.
    pub waiting: Vec<ToolCallDocument>,
}

/// A call that was answered.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AnsweredCallDocument {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub name: String,
    /// Output, as the model reads it.
    pub output: String,
    /// Whether it is an error: the call is not allowed, or could not be answered.
    pub is_error: bool,
}

/// A call to be checked before it is made.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CheckRequest)]
pub struct CheckDocument {
    /// Name of the tool.
    pub name: String,
    /// Id of the compiled call whose rules hold. Default: those of `policy`.
    #[serde(default)]
    pub call: Option<String>,
    /// Policy whose rules hold. Default: none; every tool may be called.
    #[serde(default)]
    #[schema(inline)]
    pub policy: Option<PolicyChoice>,
}

/// Whether a call is allowed.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CheckedDocument {
    /// Whether the tool may be called.
    pub allowed: bool,
    /// Text to give the model in the place of an output; absent if the call is allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

impl From<&contexture::engine::Recorded> for RecordedDocument {
    fn from(recorded: &contexture::engine::Recorded) -> Self {
        Self {
            branch: recorded.branch.to_string(),
            head: recorded.head.map(|head| head.to_string()),
            nodes: recorded.nodes.iter().map(ToString::to_string).collect(),
            latched: true,
            replayed: recorded.replayed,
            response: Some(recorded.response.to_string()),
            calls: Vec::new(),
            losses: recorded.losses.iter().map(Into::into).collect(),
        }
    }
}

/// A request as a client sends it to a provider, to be matched to a conversation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IngestDocument {
    /// Format of the request, such as `openai-chat`.
    pub format: String,
    /// The request: its history, and whatever else it has.
    pub request: Raw,
    /// What the conversation is about, if it is created. Default: nothing.
    pub resource: Option<String>,
}

/// Where a request was stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IngestedDocument {
    /// Name of the branch that ends with what the request says.
    pub branch: String,
    /// Id of the last node of what it says; `null` if it says nothing.
    pub head: Option<String>,
    /// Ids of the nodes that were stored for it.
    pub items: Vec<String>,
    /// Whether the branch was opened for it, because its history differs from what the others have.
    pub opened: bool,
}
