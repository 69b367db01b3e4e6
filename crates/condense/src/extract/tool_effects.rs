//! Effects of a tool call: which files it touches, which command it runs, which tasks it sets.
//!
//! Tools are recognised by their names and the names of their arguments: shells, the editors of Claude Code, Codex and
//! SWE-agent, `str_replace_editor`, `apply_patch`, task lists. For any other tool, arguments that are named like paths
//! are paths, and the tool's name says whether it changes them.

use contexture_ir::{Fields, FunctionCall};
use serde_json::value::RawValue;

use crate::extract::shell::{self, FileAccess};
use contexture_text::fact_words::is_path;

/// Effects of one call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolEffects {
    pub(crate) files: Vec<(FileAccess, String)>,
    pub(crate) command: Option<String>,
    /// The tasks that this call sets, with whether they are done; `None` if it sets none.
    pub(crate) tasks: Option<Vec<(String, bool)>>,
    /// Whether it changes the file that was opened last, which it does not name.
    pub(crate) edits_open_file: bool,
    /// Whether it opens the first of its files.
    pub(crate) opens: bool,
}

/// Names of arguments that are paths.
const PATHS: &[&str] = &[
    "absolute_path",
    "abs_path",
    "directory",
    "dir",
    "dir_path",
    "file",
    "file_name",
    "file_path",
    "filename",
    "filepath",
    "filePath",
    "files",
    "folder",
    "notebook_path",
    "old_path",
    "new_path",
    "path",
    "paths",
    "relative_workspace_path",
    "target_file",
];
/// Names of arguments that are paths if their values look like paths.
const ENDS: &[&str] = &["destination", "from", "source", "target", "to"];
/// Names of arguments that are commands.
const COMMANDS: &[&str] = &["command", "cmd", "script", "command_line"];
/// Words in names of tools that change files.
const CHANGING: &[&str] = &[
    "append",
    "apply",
    "create",
    "edit",
    "insert",
    "modify",
    "move",
    "multiedit",
    "notebookedit",
    "overwrite",
    "patch",
    "rename",
    "replace",
    "save",
    "touch",
    "undo",
    "update",
    "upload",
    "write",
];
const REMOVING: &[&str] = &["delete", "remove", "rm", "unlink"];
/// Words in names of tools that run commands.
const SHELLS: &[&str] = &[
    "bash",
    "shell",
    "exec",
    "terminal",
    "cmd",
    "powershell",
    "command",
    "sh",
    "zsh",
];
/// Names of arguments that contain the text of a patch.
const PATCHES: &[&str] = &["input", "patch", "diff", "patch_text"];

impl ToolEffects {
    /// Determines the effects of a call.
    pub(crate) fn of_call(call: &FunctionCall) -> Self {
        let mut effects = Self::default();
        let words = split_identifier(&call.name);
        let is = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        let Ok(arguments) = Fields::parse(call.arguments.trim()) else {
            // Free-form tools take text instead of JSON.
            effects.add_patched_files(&call.arguments);
            if is(SHELLS) && effects.files.is_empty() {
                effects.add_command(call.arguments.trim());
            }
            return effects;
        };
        // A command itself shows what it touches; the other arguments are about how it is run.
        if is(SHELLS) || words.iter().any(|word| word == "run") {
            let command = arguments.get(COMMANDS).and_then(command_text);
            if let Some(command) = command {
                effects.add_command(&command);
                return effects;
            }
        }
        effects.tasks = parse_tasks(&arguments);
        // `str_replace_editor` names its operation in an argument.
        let verb = arguments
            .get(&["command", "action", "operation"])
            .and_then(string_value);
        let verb_words = verb.map(|verb| split_identifier(&verb)).unwrap_or_default();
        let does = |list: &[&str]| verb_words.iter().any(|word| list.contains(&word.as_str()));
        // `str_replace_editor` with `view` reads, although its name says otherwise.
        let views = does(&["view", "read", "open", "list", "search"]);
        let touch = if does(REMOVING) || is(REMOVING) {
            FileAccess::Removes
        } else if !views && (does(CHANGING) || does(&["str"]) || is(CHANGING)) {
            FileAccess::Writes
        } else {
            FileAccess::Reads
        };
        for (name, value) in arguments.iter() {
            let path = PATHS.contains(&name)
                || ENDS.contains(&name) && string_value(value).is_some_and(|text| is_path(&text));
            if path {
                effects
                    .files
                    .extend(string_values(value).into_iter().map(|path| (touch, path)));
            } else if PATCHES.contains(&name)
                && let Some(text) = string_value(value)
            {
                effects.add_patched_files(&text);
            }
        }
        effects.files.retain(|(_, path)| is_plausible_path(path));
        // Some editors open a file first and then edit without naming it again.
        effects.edits_open_file = touch == FileAccess::Writes && effects.files.is_empty();
        effects.opens = is(&["open", "create", "view", "goto", "read"]);
        effects
    }

    fn add_command(&mut self, command: &str) {
        self.add_patched_files(command);
        self.files.extend(shell::touched_files(command));
        self.files.retain(|(_, path)| is_plausible_path(path));
        self.command = Some(command.to_owned());
    }

    /// Adds the files of a patch, in Codex's format or as a unified diff.
    fn add_patched_files(&mut self, text: &str) {
        const MARKS: [(&str, FileAccess); 5] = [
            ("*** Update File: ", FileAccess::Writes),
            ("*** Add File: ", FileAccess::Writes),
            ("*** Move to: ", FileAccess::Writes),
            ("*** Delete File: ", FileAccess::Removes),
            ("+++ b/", FileAccess::Writes),
        ];
        for line in text.lines() {
            let found = MARKS
                .iter()
                .find_map(|(mark, touch)| Some((*touch, line.strip_prefix(mark)?)));
            if let Some((touch, path)) = found {
                self.files.push((touch, path.trim().to_owned()));
            }
        }
    }
}

/// Parses the tasks of a task list: `todos`, `plan` or `tasks`, objects with a text and a status.
fn parse_tasks(arguments: &Fields<'_>) -> Option<Vec<(String, bool)>> {
    let list = arguments.get(&["todos", "plan", "tasks"])?;
    let list: Vec<&RawValue> = serde_json::from_str(list.get()).ok()?;
    let read = |task: &&RawValue| {
        let fields = Fields::parse(task.get()).ok()?;
        let text = fields
            .get(&["content", "step", "title", "task", "description"])
            .and_then(string_value)?;
        let status = fields.get(&["status", "state"]).and_then(string_value);
        let done = status.is_some_and(|status| {
            matches!(
                status.as_str(),
                "completed" | "done" | "cancelled" | "canceled"
            )
        });
        Some((text, done))
    };
    Some(list.iter().filter_map(read).collect())
}

/// Returns a command's text: a string, or a list of words, of which a shell's `-c` runs the last.
fn command_text(value: &RawValue) -> Option<String> {
    if let Some(text) = string_value(value) {
        return Some(text);
    }
    let words: Vec<String> = serde_json::from_str(value.get()).ok()?;
    match words.as_slice() {
        [shell, flag, script]
            if flag.starts_with('-') && flag.ends_with('c') && shell.ends_with("sh") =>
        {
            Some(script.clone())
        }
        words => Some(words.join(" ")),
    }
}

fn string_value(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

fn string_values(value: &RawValue) -> Vec<String> {
    match string_value(value) {
        Some(text) => vec![text],
        None => serde_json::from_str(value.get()).unwrap_or_default(),
    }
}

/// Whether a text can be a path: one line, not a URL, not too long.
fn is_plausible_path(path: &str) -> bool {
    !path.is_empty()
        && path.len() <= 1_024
        && !path.contains("://")
        && !path.chars().any(char::is_control)
}

/// Splits a name in `camelCase`, `snake_case` or with dots into words in lower case.
pub(crate) fn split_identifier(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in name.chars() {
        let starts = c.is_uppercase() && before.is_lowercase();
        if !c.is_alphanumeric() || starts {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, arguments: &str, files: &[(FileAccess, &str)], command: Option<&str>) {
        let effects = ToolEffects::of_call(&FunctionCall::new("c", name, arguments));
        let found: Vec<(FileAccess, &str)> = effects
            .files
            .iter()
            .map(|(touch, path)| (*touch, path.as_str()))
            .collect();
        assert_eq!(found, files, "{name} {arguments}");
        assert_eq!(effects.command.as_deref(), command, "{name} {arguments}");
    }

    #[test]
    fn the_tools_of_known_agents_are_understood() {
        use FileAccess::{Reads, Removes, Writes};
        check(
            "Read",
            r#"{"file_path":"/a/b.rs","limit":5}"#,
            &[(Reads, "/a/b.rs")],
            None,
        );
        check(
            "Edit",
            r#"{"file_path":"b.rs","old_string":"x","new_string":"y"}"#,
            &[(Writes, "b.rs")],
            None,
        );
        check(
            "MultiEdit",
            r#"{"file_path":"b","edits":[]}"#,
            &[(Writes, "b")],
            None,
        );
        check(
            "NotebookEdit",
            r#"{"notebook_path":"n.ipynb"}"#,
            &[(Writes, "n.ipynb")],
            None,
        );
        check(
            "Grep",
            r#"{"pattern":"a/b.c","path":"src"}"#,
            &[(Reads, "src")],
            None,
        );
        check(
            "Bash",
            r#"{"command":"cat x.py","description":"d"}"#,
            &[(Reads, "x.py")],
            Some("cat x.py"),
        );
        check(
            "shell",
            r#"{"command":["bash","-lc","rm x.py"]}"#,
            &[(Removes, "x.py")],
            Some("rm x.py"),
        );
        check("exec_command", r#"{"cmd":"ls"}"#, &[], Some("ls"));
        check(
            "str_replace_editor",
            r#"{"command":"view","path":"/r/a.py"}"#,
            &[(Reads, "/r/a.py")],
            None,
        );
        check(
            "str_replace_editor",
            r#"{"command":"str_replace","path":"/r/a.py"}"#,
            &[(Writes, "/r/a.py")],
            None,
        );
        check(
            "str_replace_based_edit_tool",
            r#"{"command":"create","path":"a"}"#,
            &[(Writes, "a")],
            None,
        );
        check(
            "open",
            r#"{"path":"setup.py"}"#,
            &[(Reads, "setup.py")],
            None,
        );
        check(
            "create",
            r#"{"filename":"r.py"}"#,
            &[(Writes, "r.py")],
            None,
        );
        check(
            "mcp__fs__delete_file",
            r#"{"path":"old.txt"}"#,
            &[(Removes, "old.txt")],
            None,
        );
        check(
            "get_order",
            r#"{"order_id":"W1","destination":"SEA"}"#,
            &[],
            None,
        );
        check(
            "move_file",
            r#"{"source":"a.rs","destination":"b/c.rs"}"#,
            &[(Writes, "a.rs"), (Writes, "b/c.rs")],
            None,
        );
        let patch =
            "*** Begin Patch\n*** Update File: a.rs\n@@\n*** Delete File: b.rs\n*** End Patch";
        check(
            "apply_patch",
            patch,
            &[(Writes, "a.rs"), (Removes, "b.rs")],
            None,
        );
        let quoted = contexture_ir::quote_json(patch);
        check(
            "apply_patch",
            &format!(r#"{{"input":{quoted}}}"#),
            &[(Writes, "a.rs"), (Removes, "b.rs")],
            None,
        );
    }

    #[test]
    fn a_list_of_tasks_is_read() {
        let call = FunctionCall::new(
            "c",
            "TodoWrite",
            r#"{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"pending"}]}"#,
        );
        let tasks = ToolEffects::of_call(&call).tasks.unwrap();
        assert_eq!(tasks, [("a".to_owned(), true), ("b".to_owned(), false)]);
    }

    #[test]
    fn broken_arguments_are_survived() {
        for arguments in [
            "",
            "{",
            "[]",
            "null",
            r#"{"path":5,"files":[1],"todos":{}}"#,
            r#"{"command":{}}"#,
        ] {
            for name in ["Bash", "Edit", "", "é_É", "TodoWrite"] {
                ToolEffects::of_call(&FunctionCall::new("c", name, arguments));
            }
        }
    }
}
