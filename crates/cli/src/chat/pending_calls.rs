//! Calls of a run that wait for a person's word: what they would do, and the commands that give it.

use contexture::runs::{StoredDecision, WaitingCall};
use owo_colors::OwoColorize as _;

use crate::output::printable::{clip_to_width, display_width, one_line, short_id};
use crate::output::shell_command;
use crate::output::terminal::{Stream, column_count};

/// The most columns of a call's arguments.
const ARGUMENT_COLUMNS: usize = 80;
/// Columns that may stand before a call: an indent and its id.
const CALL_INDENT: usize = 18;

/// A tool and its arguments on one line, cut where they are long.
pub(crate) fn call_line(tool: &str, arguments: &str) -> String {
    let tool = one_line(tool);
    let room = column_count(Stream::Error).saturating_sub(display_width(&tool) + CALL_INDENT);
    let arguments = clip_to_width(&one_line(arguments), room.min(ARGUMENT_COLUMNS));
    format!("{tool} {}", arguments.dimmed())
}

/// A call's id, the tool and its arguments, for a table, which cuts and colours it.
pub(crate) fn waiting_text(call: &WaitingCall) -> String {
    let id = call.node.to_string();
    let decided = call.decided.as_ref();
    let decided = decided.map(|decided| format!(" ({})", decided_text(decided)));
    let decided = decided.unwrap_or_default();
    format!(
        "{} {} {}{decided}",
        short_id(&id),
        call.tool,
        call.arguments
    )
}

/// What was decided, and by whom.
fn decided_text(decided: &StoredDecision) -> String {
    let what = decided.decision.past_text();
    match &decided.by {
        Some(by) => format!("{what} by {by}"),
        None => what.to_owned(),
    }
}

/// A call's id, the tool and its arguments on one line.
fn waiting_line(call: &WaitingCall) -> String {
    let id = call.node.to_string();
    let line = call_line(&call.tool, &call.arguments);
    format!("{}  {line}", short_id(&id).magenta())
}

/// What waits, and the commands that allow or deny it and go on; `options` are those the run was given.
pub(crate) fn next_commands(run: &str, calls: &[WaitingCall], options: &[String]) -> String {
    let run = short_id(run);
    let mut out = String::from("waits for your word:\n");
    for call in calls {
        out.push_str(&format!("  {}\n", waiting_line(call)));
    }
    let options = match options {
        [] => String::new(),
        options => format!(" {}", shell_command::join_for_shell(options)),
    };
    // One command decides on all calls, so that it can be copied as it stands.
    let each = |option: &str| -> String {
        let calls = calls.iter().map(|call| call.node.to_string());
        calls
            .map(|call| format!(" {option} {}", short_id(&call)))
            .collect()
    };
    out.push_str(&format!(
        "to allow  contexture resume {run}{}{options}\n\
         to deny   contexture resume {run}{} --reason 'why not'{options}\n",
        each("--allow"),
        each("--deny"),
    ));
    out
}
