//! The built-in tool by which a model asks for a compaction itself: its definition, its arguments and its answer.
//!
//! The call changes nothing by itself: whoever prepares the next request sees that it was made, and compacts then.
//!
//! Not here: compacting.

use contexture_ir::{Fields, FunctionTool, Raw, ToolDefinition};

/// The name of the built-in tool.
pub const NEW_CONTEXT: &str = "new_context";

/// What its call is answered with.
pub const NEW_CONTEXT_REPLY: &str = "The earlier part of this conversation will be replaced before your next step by your summary, \
what the user said, the calls that changed something, and other facts. Go on.";

const DESCRIPTION: &str = "Makes room: before your next step the earlier part of this conversation is replaced by a list of what the user \
said, the calls that changed something, open tasks, errors, files and identifiers. Call it when a piece of work is done and \
its details are no longer needed. Give `summary` to say in your own words what must not be forgotten; it stands before the list.";

/// JSON Schema of the arguments. A literal, so that its bytes are always the same.
const PARAMETERS: &str = r#"{"type":"object","properties":{"summary":{"type":"string","description":"What must not be forgotten: the goal, what is done, what comes next."}},"additionalProperties":false}"#;

/// Returns the definition of the built-in tool; its bytes are always the same.
///
/// ```
/// use contexture_condense::{NEW_CONTEXT, new_context_summary, new_context_tool};
///
/// assert_eq!(new_context_tool().name(), NEW_CONTEXT);
/// let summary = new_context_summary(r#"{"summary":"The tests pass; next is the README."}"#);
/// assert_eq!(summary.as_deref(), Some("The tests pass; next is the README."));
/// ```
#[must_use]
pub fn new_context_tool() -> ToolDefinition {
    let parameters = Raw::parse(PARAMETERS);
    debug_assert!(parameters.is_ok(), "the schema is JSON");
    ToolDefinition::Function(FunctionTool {
        name: NEW_CONTEXT.to_owned(),
        description: Some(DESCRIPTION.to_owned()),
        parameters: parameters.ok(),
        ..FunctionTool::default()
    })
}

/// Returns the summary that a call of the tool gives; `None` if it gives none, or is not as the schema says: the call asks
/// for room all the same.
#[must_use]
pub fn new_context_summary(arguments: &str) -> Option<String> {
    let mut fields = Fields::parse(arguments).ok()?;
    let summary = fields.take_string(&["summary"]).ok()??;
    let summary = summary.trim();
    (!summary.is_empty()).then(|| summary.to_owned())
}
