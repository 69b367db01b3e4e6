//! The shapes of items, messages and fragments: what is known of each, with room for more.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, KnownFormat, SchemaFormat};
use utoipa::openapi::{Object, ObjectBuilder, Ref, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::schema::names::{ItemRoleSchema, ItemStatusSchema, UiRoleSchema, names_schema};

/// An item: one thing that happened in a conversation, in the format of Open Responses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ItemSchema {}

impl PartialSchema for ItemSchema {
    fn schema() -> RefOr<Schema> {
        // Not `oneOf`: what is read as another item may be any object, a message too.
        let builder = AnyOfBuilder::new()
            .item(Ref::from_schema_name(MessageItemSchema::name()))
            .item(Ref::from_schema_name(FunctionCallItemSchema::name()))
            .item(Ref::from_schema_name(FunctionCallOutputItemSchema::name()))
            .item(Ref::from_schema_name(ReasoningItemSchema::name()))
            .item(Ref::from_schema_name(CompactionItemSchema::name()))
            .item(Ref::from_schema_name(OtherItemSchema::name()));
        let text = "One thing that happened in a conversation, in the format of Open Responses. `type` says which of these it is.";
        Schema::AnyOf(builder.description(Some(text)).build()).into()
    }
}

impl ToSchema for ItemSchema {
    fn name() -> Cow<'static, str> {
        "Item".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        add_schema::<MessageItemSchema>(schemas);
        add_schema::<FunctionCallItemSchema>(schemas);
        add_schema::<FunctionCallOutputItemSchema>(schemas);
        add_schema::<ReasoningItemSchema>(schemas);
        add_schema::<CompactionItemSchema>(schemas);
        add_schema::<OtherItemSchema>(schemas);
    }
}

/// A message of a person, the model or the host.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessageItem)]
pub(crate) struct MessageItemSchema {
    #[serde(rename = "type")]
    #[schema(schema_with = message_type)]
    kind: &'static str,
    /// Id that the provider gave it.
    id: Option<String>,
    /// Speaker of the message.
    #[schema(value_type = ItemRoleSchema)]
    role: &'static str,
    /// State of its generation.
    #[schema(value_type = Option<ItemStatusSchema>)]
    status: Option<&'static str>,
    /// Content of the message.
    #[schema(value_type = Option<ContentSchema>)]
    content: Option<Value>,
    /// Other members, which are kept.
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

/// A call of a function by the model.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FunctionCallItem)]
pub(crate) struct FunctionCallItemSchema {
    #[serde(rename = "type")]
    #[schema(schema_with = function_call_type)]
    kind: &'static str,
    /// Id that the provider gave the item.
    id: Option<String>,
    /// Id by which the output names the call.
    call_id: String,
    /// Name of the function.
    name: String,
    /// Arguments as the model wrote them: JSON as text.
    arguments: String,
    /// State of its generation.
    #[schema(value_type = Option<ItemStatusSchema>)]
    status: Option<&'static str>,
    /// Other members, which are kept.
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

/// The output of a function.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FunctionCallOutputItem)]
pub(crate) struct FunctionCallOutputItemSchema {
    #[serde(rename = "type")]
    #[schema(schema_with = function_call_output_type)]
    kind: &'static str,
    /// Id of the item.
    id: Option<String>,
    /// Id of the call that it answers.
    call_id: String,
    /// Output of the function.
    #[schema(value_type = ContentSchema)]
    output: Value,
    /// Whether the function failed.
    is_error: Option<bool>,
    /// Other members, which are kept.
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

/// The thoughts of a model, shown or sealed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReasoningItem)]
pub(crate) struct ReasoningItemSchema {
    #[serde(rename = "type")]
    #[schema(schema_with = reasoning_type)]
    kind: &'static str,
    /// Id that the provider gave it.
    id: Option<String>,
    /// Summaries that are shown instead of the thoughts.
    #[schema(value_type = Option<Vec<ContentPartSchema>>)]
    summary: Option<Value>,
    /// The thoughts, where the provider shows them.
    #[schema(value_type = Option<Vec<ContentPartSchema>>)]
    content: Option<Value>,
    /// The thoughts, where the provider does not show them.
    encrypted_content: Option<String>,
    /// Other members, which are kept.
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

/// A summary that stands for earlier items.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CompactionItem)]
pub(crate) struct CompactionItemSchema {
    #[serde(rename = "type")]
    #[schema(schema_with = compaction_type)]
    kind: &'static str,
    /// Id that the provider gave it.
    id: Option<String>,
    /// Text that stands for the items.
    #[schema(value_type = Option<Vec<ContentPartSchema>>)]
    summary: Option<Value>,
    /// Form of a provider's own, which only it can read.
    encrypted_content: Option<String>,
    /// Other members, which are kept.
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

/// Any other item: of a provider's own type, `slug:type`, or of a type that this version does not know. Kept as it came.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OtherItem)]
pub(crate) struct OtherItemSchema {
    /// Type of the item.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Other members, which are kept.
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

/// The content of a message or an output: a text, or parts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ContentSchema {}

impl PartialSchema for ContentSchema {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String);
        let parts = ArrayBuilder::new().items(Ref::from_schema_name(ContentPartSchema::name()));
        let builder = AnyOfBuilder::new().item(text).item(parts);
        Schema::AnyOf(builder.description(Some("A text, or parts.")).build()).into()
    }
}

impl ToSchema for ContentSchema {
    fn name() -> Cow<'static, str> {
        "Content".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        add_schema::<ContentPartSchema>(schemas);
    }
}

/// A part of an item's content: text, an image, a file, or another type, which is kept as it came.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ContentPart)]
pub(crate) struct ContentPartSchema {
    /// Type of the part: `input_text`, `output_text`, `refusal`, `summary_text`, `reasoning_text`, `input_image`,
    /// `input_file` or another.
    #[serde(rename = "type")]
    kind: String,
    /// Text of the part, if it is text.
    text: Option<String>,
    /// Other members, which are kept.
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

/// A message in the format of the AI SDK (`UIMessage`).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UiMessage)]
pub struct UiMessageSchema {
    /// Id of the message. Default: one is made when it is stored.
    id: Option<String>,
    /// Speaker of the message.
    #[schema(value_type = UiRoleSchema)]
    role: &'static str,
    /// Whatever the application attached.
    metadata: Option<Value>,
    /// Parts of the message, in order.
    #[schema(value_type = Vec<UiPartSchema>)]
    parts: Value,
    /// Other members, which are kept.
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

/// A message as it is taken: of the AI SDK, of a provider, or an item.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MessageInputSchema {}

impl PartialSchema for MessageInputSchema {
    fn schema() -> RefOr<Schema> {
        let builder = AnyOfBuilder::new()
            .item(Ref::from_schema_name(UiMessageSchema::name()))
            .item(Ref::from_schema_name(ProviderMessageSchema::name()));
        let text = "A message of the AI SDK, of a provider, or an item.";
        Schema::AnyOf(builder.description(Some(text)).build()).into()
    }
}

impl ToSchema for MessageInputSchema {
    fn name() -> Cow<'static, str> {
        "MessageInput".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        add_schema::<UiMessageSchema>(schemas);
        add_schema::<ProviderMessageSchema>(schemas);
    }
}

/// A message as a provider's request has it, or an item.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ProviderMessage)]
pub(crate) struct ProviderMessageSchema {
    /// Speaker of the message, in the provider's word.
    role: Option<String>,
    /// Content of the message, in the provider's shape.
    content: Option<Value>,
    /// Other members, by format.
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

/// A part of a message of the AI SDK.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UiPart)]
pub(crate) struct UiPartSchema {
    /// Type of the part: `text`, `reasoning`, `file`, `tool-NAME`, `dynamic-tool`, `data-NAME` or another.
    #[serde(rename = "type")]
    kind: String,
    /// Text of the part, if it is text.
    text: Option<String>,
    /// Other members, which are kept.
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

/// A fragment of instructions: a name with its data, or a serialised one with a `type`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Fragment)]
pub struct FragmentSchema {
    /// Name of the fragment, such as `role`.
    name: Option<String>,
    /// Text, list, object or further fragments under the name.
    data: Option<Value>,
    /// Type of a serialised fragment, such as `hint`, in place of `name` and `data`.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Other members, by type.
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

/// What is added to a system prompt.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes what callers write; none is made here")]
pub(crate) enum SystemPromptSchema {
    /// A text, as it is.
    Text(String),
    /// Fragments, which are rendered.
    Fragments(Vec<FragmentSchema>),
}

/// A sequence of bytes. Text that is read as it comes, such as lines of JSON, is described so too, because generated
/// clients leave out what they would have to parse.
#[derive(Clone, Copy, Debug)]
pub enum BytesSchema {}

impl PartialSchema for BytesSchema {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::Binary);
        let builder = ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(format));
        Schema::Object(builder.build()).into()
    }
}

impl ToSchema for BytesSchema {
    fn name() -> Cow<'static, str> {
        "Bytes".into()
    }
}

fn add_schema<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}

fn message_type() -> Object {
    names_schema(["message"], "Type of the item.")
}

fn function_call_type() -> Object {
    names_schema(["function_call"], "Type of the item.")
}

fn function_call_output_type() -> Object {
    names_schema(["function_call_output"], "Type of the item.")
}

fn reasoning_type() -> Object {
    names_schema(["reasoning"], "Type of the item.")
}

fn compaction_type() -> Object {
    names_schema(["compaction"], "Type of the item.")
}
