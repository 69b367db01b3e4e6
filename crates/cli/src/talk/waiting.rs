//! Calls of a run that wait for a person's word: what they would do, and the commands that give it.

use std::collections::BTreeSet;

use contexture::ir::{BranchName, ConversationId, NodeId, RunId};
use contexture::runs::RunEntry;
use contexture::store::{At, Error as StoreError, NodeKind, ReadRequest};
use contexture::{Engine, Item, Owner};
use owo_colors::OwoColorize as _;
use serde_json::{Value, json};

use crate::again;
use crate::failure::Outcome;
use crate::printable::{clip, one_line, short};
use crate::tree::item;

/// Columns of a call's arguments.
const ARGUMENTS: usize = 80;

/// A call that waits.
#[derive(Clone, Debug)]
pub(crate) struct WaitingCall {
    node: String,
    tool: String,
    arguments: String,
}

/// The calls of a listed run that have no output yet, oldest first; none if its branch is gone.
///
/// # Errors
/// The store's.
pub(crate) async fn waiting_calls(
    engine: &Engine,
    owner: &Owner,
    entry: &RunEntry,
) -> Outcome<Vec<WaitingCall>> {
    let (run, branch) = (entry.id(), entry.branch.parse().ok());
    let (Some(run), Some(branch), Some(conversation)) = (run, branch, &entry.conversation) else {
        return Ok(Vec::new());
    };
    open_calls(engine, owner, conversation, branch, run).await
}

/// The calls of a run that have no output yet.
pub(super) async fn open_calls(
    engine: &Engine,
    owner: &Owner,
    conversation: &ConversationId,
    branch: BranchName,
    run: RunId,
) -> Outcome<Vec<WaitingCall>> {
    let request = ReadRequest::whole(At::Branch(branch));
    let page = match engine.store().read(owner, conversation, request).await {
        Ok(page) => page,
        Err(StoreError::NotFound { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let answered: BTreeSet<NodeId> = page.nodes.iter().filter_map(|node| node.answers).collect();
    let mut calls = Vec::new();
    for node in page.nodes {
        let open = node.run == Some(run) && !answered.contains(&node.id);
        if !open || node.kind != NodeKind::FunctionCall {
            continue;
        }
        if let Item::FunctionCall(call) = item(&node)? {
            calls.push(WaitingCall {
                node: node.id.to_string(),
                tool: call.name,
                arguments: call.arguments,
            });
        }
    }
    Ok(calls)
}

/// A tool and its arguments on one line, cut where they are long.
pub(crate) fn call_line(tool: &str, arguments: &str) -> String {
    let arguments = clip(&one_line(arguments), ARGUMENTS);
    format!("{} {}", one_line(tool), arguments.dimmed())
}

impl WaitingCall {
    /// Its id, the tool and its arguments on one line.
    pub(crate) fn line(&self) -> String {
        let call = call_line(&self.tool, &self.arguments);
        format!("{}  {call}", short(&self.node).magenta())
    }

    /// The call for programs.
    pub(crate) fn document(&self) -> Value {
        let text = self.arguments.as_str();
        let arguments = serde_json::from_str::<Value>(text);
        json!({
            "call": self.node,
            "tool": self.tool,
            "arguments": arguments.unwrap_or_else(|_| text.into()),
        })
    }
}

/// What waits, and the commands that allow or deny it and go on; `options` are those the run was given.
pub(crate) fn what_to_do(run: &str, calls: &[WaitingCall], options: &[String]) -> String {
    let run = short(run);
    let mut out = String::from("waits for your word:\n");
    for call in calls {
        out.push_str(&format!("  {}\n", call.line()));
    }
    let options = match options {
        [] => String::new(),
        options => format!(" {}", again::line(options)),
    };
    let each = |option: &str| -> String {
        let calls = calls.iter().map(|call| short(&call.node));
        calls.map(|call| format!(" {option} {call}")).collect()
    };
    out.push_str(&format!(
        "to allow  contexture resume {run}{}{options}\n\
         to deny   contexture resume {run}{} --reason 'why not'{options}\n",
        each("--allow"),
        each("--deny"),
    ));
    out
}
