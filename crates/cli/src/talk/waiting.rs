//! Calls of a run that wait for a person's word: what they would do, and the commands that give it.

use contexture::runs::WaitingCall;
use owo_colors::OwoColorize as _;

use crate::again;
use crate::printable::{clip, one_line, short};

/// Columns of a call's arguments.
const ARGUMENTS: usize = 80;

/// A tool and its arguments on one line, cut where they are long.
pub(crate) fn call_line(tool: &str, arguments: &str) -> String {
    let arguments = clip(&one_line(arguments), ARGUMENTS);
    format!("{} {}", one_line(tool), arguments.dimmed())
}

/// A call's id, the tool and its arguments on one line.
pub(crate) fn waiting_line(call: &WaitingCall) -> String {
    let id = call.node.to_string();
    let line = call_line(&call.tool, &call.arguments);
    format!("{}  {line}", short(&id).magenta())
}

/// What waits, and the commands that allow or deny it and go on; `options` are those the run was given.
pub(crate) fn what_to_do(run: &str, calls: &[WaitingCall], options: &[String]) -> String {
    let run = short(run);
    let mut out = String::from("waits for your word:\n");
    for call in calls {
        out.push_str(&format!("  {}\n", waiting_line(call)));
    }
    let options = match options {
        [] => String::new(),
        options => format!(" {}", again::line(options)),
    };
    let each = |option: &str| -> String {
        let calls = calls.iter().map(|call| call.node.to_string());
        calls
            .map(|call| format!(" {option} {}", short(&call)))
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
