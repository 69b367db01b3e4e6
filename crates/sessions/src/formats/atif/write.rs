//! Writes a session as a trajectory.

use contexture_ir::{Item, Raw, Role};
use serde::Serialize;

use super::document::{Agent, Step, Trajectory, TrajectoryExtra};
use super::read::fill_template;
use crate::error::SessionError;
use crate::format::SessionFormat;
use crate::formats::request_body::linear_tree;
use crate::json::with_member;
use crate::kept_records::Records;
use crate::session::{Session, SessionNode};

/// The version that is written.
const VERSION: &str = "ATIF-v1.8";

/// Items that become one step.
struct StepItems<'s> {
    source: &'static str,
    items: Vec<&'s Item>,
    created_at: Option<i64>,
}

/// Puts items into steps: an output into that of its call, the thoughts, the message and the calls of one answer into one.
fn steps_of<'s>(nodes: impl Iterator<Item = &'s SessionNode>) -> Vec<StepItems<'s>> {
    let mut steps: Vec<StepItems<'s>> = Vec::new();
    for node in nodes {
        let item = &node.item;
        let source = match item {
            Item::Message(message) => match message.role {
                Role::User => "user",
                Role::Assistant => "agent",
                Role::System | Role::Developer => "system",
            },
            Item::FunctionCallOutput(_) | Item::Compaction(_) => "system",
            Item::FunctionCall(_) | Item::Reasoning(_) | Item::Extension(_) => "agent",
        };
        let place = match item {
            // Other answers may stand between a call and its output. Ids repeat, so the last step that has it is meant.
            Item::FunctionCallOutput(output) => steps
                .iter_mut()
                .rfind(|step| step.has_call(&output.call_id)),
            _ => steps.last_mut().filter(|step| step.may_take(item, source)),
        };
        match place {
            Some(step) => step.items.push(item),
            None => steps.push(StepItems {
                source,
                items: vec![item],
                created_at: node.created_at,
            }),
        }
    }
    steps
}

impl StepItems<'_> {
    fn has_call(&self, id: &str) -> bool {
        let is_it = |item: &&Item| matches!(item, Item::FunctionCall(call) if call.call_id == id);
        self.items.iter().any(is_it)
    }

    /// Whether an item goes on with the same answer of the model.
    fn may_take(&self, item: &Item, source: &str) -> bool {
        let only = |allowed: fn(&Item) -> bool| self.items.iter().all(|item| allowed(item));
        self.source == "agent"
            && source == "agent"
            && match item {
                Item::Reasoning(_) | Item::Message(_) => {
                    only(|item| matches!(item, Item::Reasoning(_)))
                }
                Item::FunctionCall(_) => only(|item| {
                    matches!(
                        item,
                        Item::Reasoning(_) | Item::Message(_) | Item::FunctionCall(_)
                    )
                }),
                _ => false,
            }
    }
}

/// Writes steps as JSON; their numbers are set by the caller.
fn write_steps<'s>(nodes: impl Iterator<Item = &'s SessionNode>) -> Vec<Step<'s>> {
    // What neither people nor models see is bookkeeping of ours.
    let nodes = nodes.filter(|node| node.audience.user || node.audience.model);
    let written = steps_of(nodes).into_iter().map(|one| {
        let mut step = Step::of_items(one.source, one.items.into_iter());
        step.timestamp = one.created_at.and_then(time_text);
        step
    });
    written.collect()
}

fn time_text(ms: i64) -> Option<String> {
    let time = jiff::Timestamp::from_millisecond(ms).ok()?;
    Some(time.to_string())
}

pub(crate) fn write_session(session: &Session) -> Result<String, SessionError> {
    if session.format == SessionFormat::Atif {
        return write_again(session);
    }
    let instructions = session.instructions.iter().cloned().map(Item::from);
    let (instructions, _) = linear_tree(instructions.collect());
    let mut steps = write_steps(instructions.iter().chain(session.main_path()));
    // Only now is it known how many steps there are before one.
    for (number, step) in (1..).zip(&mut steps) {
        step.step_id = number;
    }
    let agent = match session.format {
        SessionFormat::Wire(_) => Agent {
            name: "contexture",
            version: env!("CARGO_PKG_VERSION"),
        },
        other => Agent {
            name: other.as_str(),
            version: "unknown",
        },
    };
    let trajectory = Trajectory {
        schema_version: VERSION,
        session_id: &session.source_id,
        agent,
        steps,
        extra: session
            .title
            .as_deref()
            .map(|title| TrajectoryExtra { title }),
    };
    to_json(&trajectory)
}

/// Writes a trajectory that was read: each step as it was, with what was added since behind them.
fn write_again(session: &Session) -> Result<String, SessionError> {
    let damaged = |what: &str| SessionError::Metadata {
        what: what.to_owned(),
    };
    let records = Records::from_metadata(&session.metadata)?;
    let (filled, added) = records.fill_records(session, fill_template);
    let mut steps: Vec<String> = filled
        .into_iter()
        .map(|step| step.unwrap_or_else(str::to_owned))
        .collect();
    for step in write_steps(added.into_iter()) {
        steps.push(to_json(&step)?);
    }
    // Numbered anew: a step may be gone, of a branch that is not written, and the format wants no gaps.
    let numbered = (1..).zip(&steps).map(|(number, step): (usize, _)| {
        with_member(step, "step_id", &number.to_string())
            .ok_or_else(|| damaged("a step is no object"))
    });
    let numbered = numbered.collect::<Result<Vec<_>, _>>()?;
    let rest = records.rest.as_ref().map_or("{}", Raw::get);
    with_member(rest, "steps", &format!("[{}]", numbered.join(",")))
        .ok_or_else(|| damaged("`rest` is not an object"))
}

fn to_json(value: &impl Serialize) -> Result<String, SessionError> {
    serde_json::to_string(value).map_err(|error| SessionError::Metadata {
        what: error.to_string(),
    })
}
