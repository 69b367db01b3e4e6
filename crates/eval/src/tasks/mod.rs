//! The tasks: what a person says one after the other, the tools at hand, and a check of what has become of the world.
//!
//! Success is judged from the state of the world and from the calls that were made, never from words. A world is the same
//! at every start, so that runs can be compared.
//!
//! Not here: who plays them.

mod coding;
mod desk;

use serde_json::Value;

/// What kind of work a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// Requests to a clerk with a database of orders.
    Desk,
    /// Changes of a tree of source files.
    Coding,
}

/// A task. Its turns are said one after the other in one conversation.
#[derive(Clone, Debug)]
pub struct EvalTask {
    /// Name by which it is chosen, unique.
    pub name: &'static str,
    /// Kind of its work.
    pub kind: TaskKind,
    /// What it asks of the agent, in one line.
    pub summary: &'static str,
    /// Whether it needs what was said or found more than three turns before, and no tool can find again.
    pub needs_history: bool,
    /// Instructions of the agent: its system prompt.
    pub instructions: &'static str,
    /// What the person says, turn by turn.
    pub turns: &'static [&'static str],
    /// Tools that are offered in every call.
    pub tools: &'static [ToolSpec],
    world: fn() -> Box<dyn World>,
}

/// A tool as it is offered to the model.
#[derive(Clone, Copy, Debug)]
pub struct ToolSpec {
    /// Name of the function.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// Parameters: name, JSON type, description. One whose description begins with `optional` may be left out.
    pub parameters: &'static [(&'static str, &'static str, &'static str)],
}

/// What the tools of a task act on.
pub trait World: Send {
    /// Runs a tool.
    ///
    /// # Errors
    /// A text for the model: what is wrong with the call and what is expected.
    fn call_tool(&mut self, tool: &str, arguments: &Value) -> Result<String, String>;

    /// Returns what is not as the task wants it, one line each; empty if the task is done.
    fn faults(&self) -> Vec<String>;
}

impl EvalTask {
    /// Returns the world as the task finds it.
    ///
    /// ```
    /// use contexture_eval::all_tasks;
    /// use serde_json::json;
    ///
    /// let task = all_tasks().into_iter().find(|task| task.name == "desk-approval-code").expect("it exists");
    /// let mut world = task.start_world();
    /// assert!(world.call_tool("get_order", &json!({"order": 1004})).is_ok());
    /// assert!(!world.faults().is_empty());
    /// ```
    #[must_use]
    pub fn start_world(&self) -> Box<dyn World> {
        (self.world)()
    }
}

/// Returns all tasks, those of the desk first.
#[must_use]
pub fn all_tasks() -> Vec<EvalTask> {
    desk::desk_tasks()
        .into_iter()
        .chain(coding::coding_tasks())
        .collect()
}

// Arguments of tool calls are read as models write them: a number may come as text.

/// Reads a text that must be there.
pub(crate) fn read_text<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, String> {
    find_text(arguments, name).ok_or_else(|| format!("`{name}` is missing: expected a text"))
}

/// Finds a text that may be left out; an empty one counts as left out.
pub(crate) fn find_text<'a>(arguments: &'a Value, name: &str) -> Option<&'a str> {
    let text = arguments.get(name)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// Reads the number of an order.
pub(crate) fn read_order(arguments: &Value) -> Result<u32, String> {
    let value = arguments.get("order").unwrap_or(&Value::Null);
    let number = match value {
        Value::String(text) => text.trim().trim_start_matches('#').parse().ok(),
        value => value.as_u64().and_then(|number| u32::try_from(number).ok()),
    };
    number.ok_or_else(|| format!("`order` is {value}: expected a number such as 1001"))
}

/// Reads an amount of dollars, in cents.
pub(crate) fn read_cents(arguments: &Value) -> Result<i64, String> {
    let value = arguments.get("amount").unwrap_or(&Value::Null);
    let dollars = match value {
        Value::String(text) => text.trim().trim_start_matches('$').parse().ok(),
        value => value.as_f64(),
    };
    let dollars: Option<f64> = dollars.filter(|dollars| (0.01..1e6).contains(dollars));
    let dollars =
        dollars.ok_or_else(|| format!("`amount` is {value}: expected dollars such as 12.50"))?;
    // Below a million dollars, so a number of cents always fits.
    Ok((dollars * 100.0).round() as i64)
}
