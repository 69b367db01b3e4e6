//! Tools whose arguments and results are types of the program.
//!
//! Not here: tools whose schema is data, as those of an MCP server ([`ToolBox::add_tool`]).

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use async_trait::async_trait;
use contexture_ir::{FunctionTool, Raw, ToolDefinition};
use contexture_layers::Rerun;
use contexture_tools::{PropertyOrder, Tool, ToolError, ToolId};
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::handler::{
    ToolCall, ToolConcurrency, ToolFailure, ToolHandler, ToolOptions, ToolOutput,
};
use super::toolbox::ToolBox;

/// The arguments of a tool that takes none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

/// A tool whose arguments are a type of the program, from which their schema is made, and whose result is one that serde
/// writes. What stands in the type's documentation is what the model reads of it.
///
/// It runs alone, within two minutes, and after a crash the model is told that nobody knows whether it ran, unless the methods
/// say otherwise. A failure is any type with a text; the model reads that and can act on it.
///
/// ```
/// use contexture_runs::{ToolBox, ToolCall, TypedTool};
/// use contexture_tools::Policy;
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct FindOrder {
///     /// Number of the order, such as W8342.
///     order: String,
/// }
///
/// #[derive(Serialize)]
/// struct Order {
///     order: String,
///     state: &'static str,
/// }
///
/// let mut tools = ToolBox::new(Policy::deny_all().allow("find_order"));
/// let find = TypedTool::new("find_order", "Finds an order", |asked: FindOrder, _: ToolCall| async move {
///     match asked.order.as_str() {
///         "W8342" => Ok(Order { order: asked.order, state: "sent" }),
///         other => Err(format!("there is no order {other:?}: ask the user for its number")),
///     }
/// });
/// tools.add_typed(find.read_only())?;
/// # Ok::<(), contexture_tools::ToolError>(())
/// ```
pub struct TypedTool<A, F> {
    tool: Tool,
    options: ToolOptions,
    run: F,
    arguments: PhantomData<fn(A)>,
}

impl<A, F, Fut, T, E> TypedTool<A, F>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A, ToolCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send,
    T: Serialize,
    E: fmt::Display,
{
    /// Creates a tool with a name, what a model reads of it, and what runs it. [`ToolCall::run`] is the run it works in.
    #[must_use]
    pub fn new(name: &str, description: &str, run: F) -> Self {
        let mut tool = Tool::new(ToolDefinition::Function(FunctionTool {
            name: name.to_owned(),
            description: Some(description.to_owned()),
            parameters: schema_of_type::<A>(),
            ..FunctionTool::default()
        }));
        // In the order of the type's fields: models write arguments in the order of the schema.
        tool.order = PropertyOrder::AsWritten;
        Self {
            tool,
            options: ToolOptions::default(),
            run,
            arguments: PhantomData,
        }
    }
}

impl<A, F> TypedTool<A, F> {
    /// Says that it changes nothing: it runs beside other tools that allow it, is run again after a crash, and compactions do
    /// not list its calls among those that changed something.
    #[must_use]
    pub fn read_only(self) -> Self {
        let annotations = Raw::parse(r#"{"readOnlyHint":true}"#);
        let mut tool = self.parallel().with_rerun(Rerun::Repeat);
        if let (ToolDefinition::Function(function), Ok(annotations)) =
            (&mut tool.tool.definition, annotations)
        {
            function.extra.set("annotations", annotations);
        }
        tool
    }

    /// Lets it run beside other tools that allow it.
    #[must_use]
    pub const fn parallel(mut self) -> Self {
        self.options.concurrency = ToolConcurrency::Parallel;
        self
    }

    /// Sets what is done with a call that was started before a crash.
    #[must_use]
    pub const fn with_rerun(mut self, rerun: Rerun) -> Self {
        self.options.rerun = rerun;
        self
    }

    /// Sets the longest that it may take. Default 2 minutes.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Changes what the registry knows of it: tags, marks, its group.
    #[must_use]
    pub fn with_tool(mut self, change: impl FnOnce(Tool) -> Tool) -> Self {
        self.tool = change(self.tool);
        self
    }
}

#[async_trait]
impl<A, F, Fut, T, E> ToolHandler for TypedTool<A, F>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, ToolCall) -> Fut + Send + Sync,
    Fut: Future<Output = Result<T, E>> + Send,
    T: Serialize,
    E: fmt::Display,
{
    async fn run_call(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let arguments = serde_json::from_str(call.arguments.get());
        // The schema was checked before; a type may still refuse what no schema says.
        let arguments = arguments.map_err(|error| ToolFailure::BadArguments {
            reason: format!("{}: {error}", call.tool),
        })?;
        let result = (self.run)(arguments, call).await;
        write_result(&result.map_err(ToolFailure::from_message)?)
    }
}

/// Writes a result as a model reads it: a text as it is, anything else as JSON.
fn write_result(result: &impl Serialize) -> Result<ToolOutput, ToolFailure> {
    let json = serde_json::to_string(result).map_err(|error| {
        ToolFailure::from_message(format_args!("the result cannot be written: {error}"))
    })?;
    let text: Option<String> = serde_json::from_str(&json).ok();
    Ok(text.unwrap_or(json).into())
}

/// Returns the schema of a type, with subschemas in their places, where a provider's smaller dialect finds them, and
/// without the names of types, of which a model knows nothing.
pub(crate) fn schema_of_type<A: JsonSchema>() -> Option<Raw> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    // The description of the type is for its reader; that of the tool is given apart.
    schema.remove("description");
    RecursiveTransform(|schema: &mut Schema| {
        schema.remove("title");
    })
    .transform(&mut schema);
    // A schema is always JSON; without one anything would be accepted here, and the type would still check it.
    Raw::from_value(&schema).ok()
}

impl ToolBox {
    /// Adds a tool whose arguments are a type of the program.
    ///
    /// # Errors
    /// [`ToolError`] for a name that is taken, or arguments that are no object: `A` has to be a struct with named fields, or
    /// [`NoArguments`].
    pub fn add_typed<A, F>(&mut self, typed: TypedTool<A, F>) -> Result<ToolId, ToolError>
    where
        TypedTool<A, F>: ToolHandler + 'static,
    {
        self.add_tool_with(typed.tool.clone(), typed.options, typed)
    }
}

impl<A, F> fmt::Debug for TypedTool<A, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedTool")
            .field("tool", &self.tool)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
