//! The task list: maintained by the model, shown at the very end of every call.
//!
//! It has one tool, `update_plan`, which replaces the list or changes tasks by id. The list belongs to the path, so
//! rewinding restores it; a child run starts with an empty one.
//!
//! Not here: doing the tasks, or checking that they were done.

use async_trait::async_trait;
use contexture_compile::{Band, Budget, Contribution, Stability};
use contexture_ir::{Fragment, Raw};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::function_args::{encode_result, parse_arguments, schema_literal, unknown_function};
use crate::contract::{
    FunctionError, FunctionSpec, HookContext, Layer, LayerError, LayerId, LayerSpec, RecallInput,
};

/// Maximum number of tasks.
const TASKS: usize = 50;
/// Maximum number of characters of a task.
const CHARACTERS: usize = 500;
/// Maximum number of characters of a task's id.
const ID: usize = 32;

/// The task list as a layer, named `plan`.
///
/// Limits: 50 tasks of 500 characters, ids of 32 characters. If its 2,000 tokens do not hold all tasks, finished ones
/// are left out first.
///
/// ```
/// use contexture_ir::{BranchName, ConversationId, Owner, Raw};
/// use contexture_layers::builtin::{PlanLayer, TaskStatus};
/// use contexture_layers::{HookContext, Layers};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let layers = Layers::new().with_layer(PlanLayer::new())?;
/// let chat = ConversationId::new("example")?;
/// let context = HookContext::new(Owner::new("ada")?, chat, BranchName::main());
/// let mut states = layers.restore_states([]);
/// layers.init_states(&mut states, &context).await?;
///
/// let whole = r#"{"tasks":[{"text":"read"},{"text":"write"}]}"#;
/// layers.call_function(&mut states, "update_plan", &Raw::parse(whole)?, &context).await?;
/// let change = r#"{"changes":[{"id":"1","status":"done"}]}"#;
/// layers.call_function(&mut states, "update_plan", &Raw::parse(change)?, &context).await?;
/// assert_eq!(layers.state::<PlanLayer>(&states)?.tasks[0].status, TaskStatus::Done);
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PlanLayer {
    id: LayerId,
}

/// State of [`PlanLayer`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanState {
    /// The tasks, in the order of the list.
    pub tasks: Vec<PlanTask>,
}

/// A task of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanTask {
    /// Its id within the list.
    pub id: String,
    /// Description of the task.
    pub text: String,
    /// Status of the task.
    pub status: TaskStatus,
}

/// Status of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Work on it has not started.
    #[default]
    Pending,
    /// Work on it has started.
    InProgress,
    /// It was finished successfully.
    Done,
    /// It was given up.
    Dropped,
}

impl TaskStatus {
    /// Returns the name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Done => "done",
            Self::Dropped => "dropped",
        }
    }

    const fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Dropped)
    }
}

/// The arguments of `update_plan`.
#[derive(Deserialize)]
struct PlanUpdate {
    tasks: Option<Vec<NewTask>>,
    changes: Option<Vec<TaskChange>>,
}

#[derive(Deserialize)]
struct NewTask {
    id: Option<String>,
    text: String,
    #[serde(default)]
    status: TaskStatus,
}

#[derive(Deserialize)]
struct TaskChange {
    id: String,
    text: Option<String>,
    status: Option<TaskStatus>,
}

impl PlanLayer {
    /// Creates a layer with an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self {
            id: LayerId::built_in("plan"),
        }
    }
}

impl Default for PlanLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl PlanState {
    fn apply_update(&mut self, update: PlanUpdate) -> Result<(), String> {
        // The list first, then changes: if a call does both, its changes apply to the new list. An error in between
        // loses nothing, because the runner drops the copy of the state.
        if let Some(tasks) = update.tasks {
            if tasks.len() > TASKS {
                return Err(format!("{} tasks, the limit is {TASKS}", tasks.len()));
            }
            self.tasks.clear();
            for task in tasks {
                // Ids do not change while the list is not replaced, so the model can name a task in a later call.
                let id = task.id.unwrap_or_else(|| self.free_id());
                if self.tasks.iter().any(|other| other.id == id) {
                    return Err(format!("two tasks have the id {id:?}"));
                }
                check_length("id", &id, ID)?;
                check_length("text", &task.text, CHARACTERS)?;
                self.tasks.push(PlanTask {
                    id,
                    text: task.text,
                    status: task.status,
                });
            }
        }
        for change in update.changes.unwrap_or_default() {
            let Some(task) = self.tasks.iter_mut().find(|task| task.id == change.id) else {
                // The error lists the ids, so that the model can correct itself without asking for the plan.
                let there: Vec<&str> = self.tasks.iter().map(|task| task.id.as_str()).collect();
                let there = there.join(", ");
                return Err(format!(
                    "there is no task {:?}; there are: {there}",
                    change.id
                ));
            };
            if let Some(text) = change.text {
                check_length("text", &text, CHARACTERS)?;
                task.text = text;
            }
            task.status = change.status.unwrap_or(task.status);
        }
        Ok(())
    }

    /// Returns the smallest number from the position in the list on that is not used as an id.
    fn free_id(&self) -> String {
        let mut number = self.tasks.len() + 1;
        loop {
            let id = number.to_string();
            if self.tasks.iter().all(|task| task.id != id) {
                return id;
            }
            number += 1;
        }
    }
}

fn check_length(what: &str, text: &str, limit: usize) -> Result<(), String> {
    let length = text.chars().count();
    if text.trim().is_empty() {
        return Err(format!("the {what} of a task is empty"));
    }
    if length > limit {
        return Err(format!(
            "the {what} of a task has {length} characters, the limit is {limit}"
        ));
    }
    Ok(())
}

#[async_trait]
impl Layer for PlanLayer {
    type State = PlanState;

    fn spec(&self) -> LayerSpec {
        LayerSpec {
            budget: Budget::at_most(2_000),
            ..LayerSpec::new(self.id.clone()).with_position(Band::Tail, 100, Stability::Volatile)
        }
    }

    async fn recall(
        &self,
        state: &PlanState,
        call: &RecallInput<'_>,
    ) -> Result<Vec<Contribution>, LayerError> {
        if state.tasks.is_empty() {
            return Ok(Vec::new());
        }
        // Open tasks first: they stay if the budget cuts off the end.
        let (over, open): (Vec<&PlanTask>, Vec<&PlanTask>) =
            state.tasks.iter().partition(|task| task.status.is_over());
        let shown = open.into_iter().chain(over).map(|task| {
            let status = task.status.as_str();
            Fragment::new("task", format!("{} [{status}] {}", task.id, task.text))
        });
        Ok(vec![call.contribution_from_fragments(shown)])
    }

    async fn on_spawn(
        &self,
        _: &PlanState,
        _: &HookContext,
    ) -> Result<Option<PlanState>, LayerError> {
        // A child has its own task; its parent's plan would only distract it.
        Ok(Some(PlanState::default()))
    }

    fn functions(&self) -> Vec<FunctionSpec> {
        let status = json!({"enum": ["pending", "in_progress", "done", "dropped"]});
        let input = schema_literal(&json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "tasks": {
                    "type": "array",
                    "maxItems": TASKS,
                    "description": "The whole list, which replaces the one there is.",
                    "items": {
                        "type": "object",
                        "additionalProperties": false,
                        "required": ["text"],
                        "properties": {"id": {"type": "string"}, "text": {"type": "string"}, "status": status},
                    },
                },
                "changes": {
                    "type": "array",
                    "maxItems": TASKS,
                    "description": "Changes of tasks, by id.",
                    "items": {
                        "type": "object",
                        "additionalProperties": false,
                        "required": ["id"],
                        "properties": {"id": {"type": "string"}, "text": {"type": "string"}, "status": status},
                    },
                },
            },
        }));
        let description = "Keeps your list of tasks. Give the whole list as `tasks`, or `changes` of some of them. \
             Set a task in_progress before you begin it, and done once it is.";
        vec![
            FunctionSpec::new(&self.id, "update", description, input).with_tool_name("update_plan"),
        ]
    }

    async fn call_function(
        &self,
        state: &mut PlanState,
        function: &str,
        arguments: &Raw,
        context: &HookContext,
    ) -> Result<Raw, FunctionError> {
        if function != "update" {
            return Err(unknown_function(&self.id, function));
        }
        state
            .apply_update(parse_arguments(arguments)?)
            .map_err(FunctionError::Refused)?;
        let plan = encode_result(&state.tasks)?;
        context.emit(&self.id, "plan:changed", plan.clone());
        Ok(plan)
    }
}
