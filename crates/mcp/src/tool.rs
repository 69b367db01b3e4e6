//! What a tool is: a name, words for the model, what it takes, what it answers, what it does.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolResult, ContentBlock, JsonObject, Resource, Tool as Listed, ToolAnnotations,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::caller::Access;
use crate::schema;
use crate::tool_context::ToolContext;
use crate::tool_error::ToolError;

/// The effect of a call on what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolEffect {
    /// A call changes nothing.
    Reads,
    /// A call adds something and leaves everything else as it is.
    Adds,
    /// A call sets a value; repeating it changes nothing, and nothing is lost.
    Sets,
    /// A call may replace or delete something.
    Replaces,
}

/// A tool that models can call over MCP.
pub(crate) trait Tool: 'static {
    /// Name of the tool, which never changes.
    const NAME: &'static str;
    /// Title of the tool, for people.
    const TITLE: &'static str;
    /// Description of the tool, for the model.
    const ABOUT: &'static str;
    /// Effect of a call on what is stored.
    const EFFECT: ToolEffect;
    /// Whether programs go through the answers page by page. Only then the answer has a schema: each takes room in the
    /// prompt of every call, and a model reads the answer itself.
    const IS_PAGED: bool = false;
    /// Arguments of a call.
    type Arguments: DeserializeOwned + JsonSchema + Send + 'static;
    /// Answer to a call.
    type Answer: Serialize + JsonSchema + Send + 'static;

    /// Answers a call.
    fn call(
        context: ToolContext,
        arguments: Self::Arguments,
    ) -> impl Future<Output = Result<Self::Answer, ToolError>> + Send;

    /// Returns the resources that an answer links to; none by default.
    fn resource_links(_answer: &Self::Answer) -> Vec<Resource> {
        Vec::new()
    }
}

type CallHandler =
    fn(ToolContext, JsonObject) -> BoxFuture<'static, Result<CallToolResult, ToolError>>;

/// A tool in the table of all tools.
pub(crate) struct ToolEntry {
    pub(crate) definition: Listed,
    pub(crate) required_access: Access,
    pub(crate) handler: CallHandler,
}

impl ToolEntry {
    /// Creates the table entry of a tool.
    pub(crate) fn for_tool<T: Tool>() -> Self {
        let reads = T::EFFECT == ToolEffect::Reads;
        let mut hints = ToolAnnotations::with_title(T::TITLE)
            .read_only(reads)
            // No tool reaches beyond the database.
            .open_world(false);
        // The specification gives both hints a meaning only where a tool is not read-only.
        if !reads {
            hints = hints
                .destructive(T::EFFECT == ToolEffect::Replaces)
                .idempotent(T::EFFECT == ToolEffect::Sets);
        }
        let input = Arc::new(schema::input_schema::<T::Arguments>());
        let mut listed = Listed::new(T::NAME, T::ABOUT, input)
            .with_title(T::TITLE)
            .with_annotations(hints);
        if T::IS_PAGED {
            listed = listed.with_raw_output_schema(Arc::new(schema::output_schema::<T::Answer>()));
        }
        Self {
            definition: listed,
            required_access: if reads { Access::Read } else { Access::Write },
            handler: |context, arguments| invoke_tool::<T>(context, arguments).boxed(),
        }
    }
}

async fn invoke_tool<T: Tool>(
    context: ToolContext,
    mut arguments: JsonObject,
) -> Result<CallToolResult, ToolError> {
    // Models that must name every argument say null for absent.
    arguments.retain(|_, value| !value.is_null());
    let arguments = serde_json::from_value(Value::Object(arguments))
        .map_err(|error| ToolError::invalid_arguments(format!("{}: {error}", T::NAME)))?;
    let answer = T::call(context, arguments).await?;
    let links = T::resource_links(&answer);
    let value = serde_json::to_value(&answer)
        // The answer is a type of ours: this fails only by a mistake of ours.
        .map_err(|error| ToolError::new("internal", format!("{}: {error}", T::NAME)))?;
    // The same as text, for clients that read no structured content.
    let mut result = CallToolResult::structured(value);
    result
        .content
        // Links go behind the text, for clients that read resources by themselves.
        .extend(links.into_iter().map(ContentBlock::resource_link));
    Ok(result)
}
