//! Calls that are no function's: custom tools such as Codex' `apply_patch`, shells, patches, and tools of MCP servers that the
//! provider calls itself.
//!
//! They are read as calls of functions, so that what they did is named like what others did.
//!
//! Not here: computers and searches of the provider, which change nothing that could be done twice.

use contexture_ir::{Extension, Fields, FunctionCall, quote_json};
use serde_json::value::RawValue;

/// What an item of a provider's own says about a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ExtensionCall {
    /// It is a call; its `call_id` is what the output repeats.
    Call(FunctionCall),
    /// It answers the call with this id.
    Output(String, CallOutput),
    /// It is a call that the provider made, with its output if it has one.
    Answered(FunctionCall, Option<CallOutput>),
}

/// What a call came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallOutput {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// Reads an item of a provider's own; `None` if it is no call that could have changed something.
pub(crate) fn read_extension_call(item: &Extension) -> Option<ExtensionCall> {
    let fields = item.raw.fields()?;
    let id = || string_of(&fields, "call_id").or_else(|| string_of(&fields, "id"));
    let call = |name: &str, arguments: String| {
        Some(ExtensionCall::Call(FunctionCall::new(
            id()?,
            name,
            arguments,
        )))
    };
    match item.kind.as_str() {
        "custom_tool_call" => call(&string_of(&fields, "name")?, string_of(&fields, "input")?),
        "local_shell_call" => {
            let action = object_of(&fields, "action")?;
            let command = action.get(&["command"])?.get();
            call("local_shell", format!("{{\"command\":{command}}}"))
        }
        "shell_call" => {
            let action = object_of(&fields, "action")?;
            let commands = action.get(&["commands"]).map(RawValue::get)?;
            let commands: Vec<String> = serde_json::from_str(commands).ok()?;
            let command = quote_json(&commands.join("\n"));
            call("shell", format!("{{\"command\":{command}}}"))
        }
        "apply_patch_call" => call("apply_patch", read_operation(&fields)?),
        "custom_tool_call_output"
        | "local_shell_call_output"
        | "shell_call_output"
        | "apply_patch_call_output" => Some(ExtensionCall::Output(id()?, read_output(&fields))),
        "mcp_call" => {
            let arguments = string_of(&fields, "arguments").unwrap_or_default();
            let name = string_of(&fields, "name")?;
            let call = FunctionCall::new(id()?, name, arguments);
            let error = fields.get(&["error"]).filter(|error| error.get() != "null");
            let has_output = error.is_some() || fields.get(&["output"]).is_some_and(is_said);
            Some(ExtensionCall::Answered(
                call,
                has_output.then(|| read_output(&fields)),
            ))
        }
        "anthropic:mcp_tool_use" => {
            let block = object_of(&fields, "block")?;
            let arguments = block.get(&["input"]).map_or("{}", RawValue::get);
            let id = string_of(&block, "id")?;
            let name = string_of(&block, "name")?;
            Some(ExtensionCall::Call(FunctionCall::new(id, name, arguments)))
        }
        "anthropic:mcp_tool_result" => {
            let block = object_of(&fields, "block")?;
            let id = string_of(&block, "tool_use_id")?;
            Some(ExtensionCall::Output(id, read_output(&block)))
        }
        _ => None,
    }
}

/// The operation of a patch as arguments: with a `path` for a file that is removed, else as Codex writes it.
fn read_operation(fields: &Fields<'_>) -> Option<String> {
    let operation = object_of(fields, "operation")?;
    let path = string_of(&operation, "path")?;
    let mark = match string_of(&operation, "type")?.as_str() {
        "create_file" => "Add",
        "delete_file" => "Delete",
        _ => "Update",
    };
    Some(format!("*** {mark} File: {path}"))
}

/// The text of an output: a string, parts with a text, or what a shell printed; and whether it says that it failed.
fn read_output(fields: &Fields<'_>) -> CallOutput {
    let error = fields.get(&["error"]).filter(|error| is_said(error));
    let flag = fields.get(&["is_error"]).map(RawValue::get);
    let status = string_of(fields, "status");
    let mut is_error = error.is_some()
        || flag == Some("true")
        || matches!(status.as_deref(), Some("failed" | "incomplete"));
    let mut texts = Vec::new();
    let said = error.or_else(|| fields.get(&["output", "content"]));
    if let Some(output) = said {
        is_error |= add_texts(output, DEPTH, &mut texts);
    }
    CallOutput {
        text: texts.join("\n"),
        is_error,
    }
}

/// How deep lists of texts are read: providers nest them once, and outside input may nest them at will.
const DEPTH: usize = 3;

/// Adds the texts of a string, an object or a list of them; returns whether one of them is of a command that failed.
fn add_texts(output: &RawValue, depth: usize, texts: &mut Vec<String>) -> bool {
    if let Ok(text) = serde_json::from_str::<String>(output.get()) {
        texts.push(text);
        return false;
    }
    let Some(below) = depth.checked_sub(1) else {
        return false;
    };
    if let Ok(parts) = serde_json::from_str::<Vec<&RawValue>>(output.get()) {
        let mut has_failed = false;
        for part in parts {
            has_failed |= add_texts(part, below, texts);
        }
        return has_failed;
    }
    let Ok(part) = Fields::parse(output.get()) else {
        return false;
    };
    for name in ["text", "stdout", "stderr", "message"] {
        let text = string_of(&part, name);
        texts.extend(text.filter(|text| !text.is_empty()));
    }
    let exit = object_of(&part, "outcome").and_then(|outcome| {
        let code = outcome.get(&["exit_code"])?;
        serde_json::from_str::<i64>(code.get()).ok()
    });
    if let Some(code) = exit {
        texts.push(format!("exit code: {code}"));
    }
    exit.is_some_and(|code| code != 0)
}

fn is_said(value: &RawValue) -> bool {
    !matches!(value.get(), "null" | "\"\"" | "false")
}

fn string_of(fields: &Fields<'_>, name: &str) -> Option<String> {
    serde_json::from_str(fields.get(&[name])?.get()).ok()
}

fn object_of<'f>(fields: &Fields<'f>, name: &str) -> Option<Fields<'f>> {
    Fields::parse(fields.get(&[name])?.get()).ok()
}

#[cfg(test)]
mod tests {
    use contexture_ir::Item;

    use super::*;
    use crate::manifest::{CoveredItem, Manifest};

    #[test]
    fn outputs_that_nest_for_ever_are_survived() {
        let nested = "[".repeat(50_000) + &"]".repeat(50_000);
        let json = format!(r#"{{"output":{nested}}}"#);
        let output = read_output(&Fields::parse(&json).unwrap());
        assert_eq!((output.text.as_str(), output.is_error), ("", false));
        let text = r#"{"output":[[{"text":"done"}]]}"#;
        assert_eq!(read_output(&Fields::parse(text).unwrap()).text, "done");
    }

    /// Checks the text of a manifest of items, without its first line.
    #[track_caller]
    fn check(items: &[&str], expected: &str) {
        let items: Vec<Item> = items
            .iter()
            .map(|json| Item::parse(json).unwrap())
            .collect();
        let text = Manifest::from_items(&CoveredItem::of_items(&items)).to_string();
        let (_, lists) = text.split_once('\n').unwrap_or_default();
        assert_eq!(lists, expected, "{items:?}");
    }

    #[test]
    fn files_of_a_custom_patch_are_listed() {
        let call = r#"{"type":"custom_tool_call","call_id":"c","name":"apply_patch","input":"*** Begin Patch\n*** Update File: a.rs\n+x\n*** Delete File: b.rs\n*** End Patch"}"#;
        let done = r#"{"type":"custom_tool_call_output","call_id":"c","output":"Success. Updated the following files:\nM a.rs\nD b.rs"}"#;
        check(&[call, done], "Files:\n edited: a.rs\n removed: b.rs");
        let failed = r#"{"type":"custom_tool_call_output","call_id":"c","output":"Failed to find expected lines in a.rs"}"#;
        check(
            &[call, failed],
            "Errors:\n Failed to find expected lines in a.rs\nFiles:\n edit failed: a.rs b.rs",
        );
    }

    #[test]
    fn other_calls_are_named_with_their_outcomes() {
        check(
            &[
                r#"{"type":"custom_tool_call","call_id":"c","name":"send_note","input":"hello"}"#,
                r#"{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_text","text":"sent"}]}"#,
            ],
            "Calls that changed something:\n send_note(hello) → ok",
        );
        check(
            &[
                r#"{"type":"mcp_call","id":"m1","name":"create_issue","server_label":"github","arguments":"{\"title\":\"A1\"}","output":"{\"number\":77}"}"#,
                r#"{"type":"mcp_call","id":"m2","name":"create_issue","server_label":"github","arguments":"{\"title\":\"A2\"}","error":"not allowed","output":null}"#,
                r#"{"type":"mcp_call","id":"m3","name":"get_issue","server_label":"github","arguments":"{\"number\":77}","output":"open"}"#,
            ],
            "Calls that changed something:\n create_issue(A1) → 77 ok\n create_issue(A2) → failed: not allowed\nErrors:\n not allowed",
        );
        check(
            &[
                r#"{"type":"local_shell_call","id":"i","call_id":"s","action":{"type":"exec","command":["bash","-lc","git push"]},"status":"completed"}"#,
                r#"{"type":"local_shell_call_output","id":"s","output":"rejected\nexit code: 1"}"#,
                r#"{"type":"shell_call","call_id":"t","action":{"commands":["mkdir x","git tag v2"]}}"#,
                r#"{"type":"shell_call_output","call_id":"t","output":[{"stdout":"","stderr":"","outcome":{"type":"exit","exit_code":0}}]}"#,
            ],
            "Calls that changed something:\n local_shell(git push) → failed: exit 1\n shell(mkdir x git tag v2) → ok\nFiles:\n edited: x",
        );
        check(
            &[
                r#"{"type":"apply_patch_call","call_id":"p","operation":{"type":"update_file","path":"a.rs","diff":"+x"}}"#,
                r#"{"type":"apply_patch_call_output","call_id":"p","status":"completed"}"#,
                r#"{"type":"apply_patch_call","call_id":"q","operation":{"type":"delete_file","path":"b.rs"}}"#,
                r#"{"type":"apply_patch_call_output","call_id":"q","status":"failed","output":"no such file"}"#,
            ],
            "Errors:\n no such file\nFiles:\n edited: a.rs\n edit failed: b.rs",
        );
        check(
            &[
                r#"{"type":"anthropic:mcp_tool_use","block":{"type":"mcp_tool_use","id":"m","name":"book_room","server_name":"s","input":{"room":"R12"}}}"#,
                r#"{"type":"anthropic:mcp_tool_result","block":{"type":"mcp_tool_result","tool_use_id":"m","is_error":false,"content":[{"type":"text","text":"booked as B-77"}]}}"#,
            ],
            "Calls that changed something:\n book_room(R12) → B-77 ok",
        );
    }

    #[test]
    fn a_call_without_its_output_says_so() {
        check(
            &[r#"{"type":"custom_tool_call","call_id":"c","name":"send_note","input":"hello"}"#],
            "Calls that changed something:\n send_note(hello) → no output",
        );
    }

    #[test]
    fn what_is_no_call_is_passed_over() {
        for json in [
            r#"{"type":"web_search_call","id":"w","status":"completed"}"#,
            r#"{"type":"custom_tool_call","call_id":"c"}"#,
            r#"{"type":"mcp_call","id":"m"}"#,
            r#"{"type":"shell_call","call_id":"c","action":{"commands":7}}"#,
            r#"{"type":"anthropic:mcp_tool_use","block":[]}"#,
        ] {
            let Ok(Item::Extension(item)) = Item::parse(json) else {
                panic!("{json} is an item of a provider's own");
            };
            assert_eq!(read_extension_call(&item), None, "{json}");
        }
    }
}
