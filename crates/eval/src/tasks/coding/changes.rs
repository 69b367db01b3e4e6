//! The coding tasks.

use crate::tasks::coding::file_tree::{
    CALLING_MODULES, FILE_TOOLS, FileTree, OLD_NAME, module_path, original_files,
};
use crate::tasks::{EvalTask, TaskKind};

const INSTRUCTIONS: &str = "You are a programmer who works on a Python project with the tools at hand. Do what you are asked, \
    exactly and at once, and nothing else. Change no file that you were not asked to change. Answer in one or two sentences.";

/// Returns the coding tasks.
pub(crate) fn coding_tasks() -> Vec<EvalTask> {
    let task = |name, summary, turns| EvalTask {
        name,
        kind: TaskKind::Coding,
        summary,
        needs_history: true,
        instructions: INSTRUCTIONS,
        turns,
        tools: FILE_TOOLS,
        world: || Box::new(FileTree::new(check_separate)),
    };
    vec![
        EvalTask {
            world: || Box::new(FileTree::new(check_rename)),
            ..task(
                "code-rename",
                "a function is renamed in 16 files, and finished six turns after it was begun",
                RENAME_TURNS,
            )
        },
        EvalTask {
            world: || Box::new(FileTree::new(check_limit)),
            ..task(
                "code-distant-cause",
                "a fault whose cause was in a log that was shown nine turns before",
                LIMIT_TURNS,
            )
        },
        EvalTask {
            world: || Box::new(FileTree::new(check_conventions)),
            ..task(
                "code-conventions",
                "conventions said at the beginning hold for a file written ten turns later",
                CONVENTION_TURNS,
            )
        },
        EvalTask {
            needs_history: false,
            ..task(
                "code-separate-changes",
                "thirteen requests, none of which needs another",
                SEPARATE_TURNS,
            )
        },
    ]
}

const NEW_NAME: &str = "load_ledger_rows";

// A policy that cuts keeps the first message: in each task what must be remembered stands behind it.
const RENAME_TURNS: &[&str] = &[
    "What is the limit of step_18_4 in service/mod_18.py?",
    "We rename the function fetch_rows to load_ledger_rows everywhere in service/. Never touch vendor/: its function of that name \
     is not ours. Begin with service/mod_01.py and service/mod_02.py only.",
    "Before we go on: what is the limit of step_16_3 in service/mod_16.py?",
    "And of step_17_4 in service/mod_17.py?",
    "Which region does step_18_2 in service/mod_18.py sum?",
    "And step_19_7 in service/mod_19.py?",
    "What does step_20_9 in service/mod_20.py return when there are no rows?",
    "Which kinds of rows does service/mod_16.py look for?",
    "Now finish the rename that we began, in all files of service/ that still have the old name.",
];

fn check_rename(tree: &FileTree) -> Vec<String> {
    let mut expected = original_files();
    for (path, content) in &mut expected {
        if path.starts_with("service/") {
            *content = content.replace(OLD_NAME, NEW_NAME);
        }
    }
    tree.compare_files(&expected, &[])
}

const LIMIT_TURNS: &[&str] = &[
    "Which rows does service/mod_10.py read first?",
    "This is from the log of last night, in production:\n\
     02:11:07 upload begins, day 2026-03-09, 61204 rows\n\
     02:11:07 connected to ledger-eu, session 8f31c2\n\
     02:11:08 sending rows 0 to 25000\n\
     02:11:08 ledger-eu answers 413: batch has 25000 rows, at most 23917 are accepted\n\
     02:11:09 retry 1 of 3: 413\n\
     02:11:13 retry 2 of 3: 413\n\
     02:11:29 retry 3 of 3: 413\n\
     02:11:29 upload given up, 0 of 61204 rows sent\n\
     02:11:30 day 2026-03-09 is marked as open\n\
     Keep it in mind; we come back to it when we have looked at the modules. Which rows does service/mod_01.py read first?",
    "Which rows does service/mod_02.py read first?",
    "And service/mod_03.py?",
    "And service/mod_04.py?",
    "And service/mod_05.py?",
    "And service/mod_06.py?",
    "And service/mod_07.py?",
    "And service/mod_08.py?",
    "And service/mod_09.py?",
    "Back to the log of last night: change BATCH_ROWS in service/upload.py to the most that the host accepts.",
];

fn check_limit(tree: &FileTree) -> Vec<String> {
    let mut expected = original_files();
    if let Some(upload) = expected.get_mut("service/upload.py") {
        *upload = upload.replace("BATCH_ROWS = 25000", "BATCH_ROWS = 23917");
    }
    tree.compare_files(&expected, &[])
}

/// The line with which new files begin.
const OWNER_LINE: &str = "# owner: ledger-core";

/// The files to write, and the function of each.
const NEW_FILES: [(&str, &str); 2] = [
    ("service/open_books.py", "def open_books(day):"),
    ("service/close_books.py", "def close_books(day):"),
];

const CONVENTION_TURNS: &[&str] = &[
    "Which region does step_17_2 in service/mod_17.py sum?",
    "For everything you write here: always begin a new file with the line `# owner: ledger-core`. Never use print; always log with \
     audit.note(...). Write service/open_books.py with a function open_books(day) that logs the day and returns it.",
    "What is the limit of step_1_3 in service/mod_01.py?",
    "And of step_3_4 in service/mod_03.py?",
    "Which region does step_5_2 in service/mod_05.py sum?",
    "And step_7_7 in service/mod_07.py?",
    "Which kinds of rows does service/mod_09.py look for?",
    "And service/mod_11.py?",
    "What is the limit of step_13_1 in service/mod_13.py?",
    "And of step_15_1 in service/mod_15.py?",
    "And of step_18_1 in service/mod_18.py?",
    "Write service/close_books.py with a function close_books(day) that logs the day and returns it.",
];

fn check_conventions(tree: &FileTree) -> Vec<String> {
    let paths = NEW_FILES.map(|(path, _)| path);
    let mut faults = tree.compare_files(&original_files(), &paths);
    for (path, function) in NEW_FILES {
        let Some(content) = tree.files.get(path) else {
            faults.push(format!("{path} is missing"));
            continue;
        };
        if content.lines().next().map(str::trim) != Some(OWNER_LINE) {
            faults.push(format!("{path} does not begin with `{OWNER_LINE}`"));
        }
        // Annotations of types do no harm.
        let name = function.trim_end_matches("day):");
        if !content.contains(name) {
            faults.push(format!("{path} has no `{function}`"));
        }
        if !content.contains("audit.note(") || content.contains("print(") {
            faults.push(format!("{path} does not log with audit.note alone"));
        }
    }
    faults
}

const SEPARATE_TURNS: &[&str] = &[
    "Set RETRIES in service/upload.py to 5.",
    "What is the limit of step_2_3 in service/mod_02.py?",
    "And of step_4_4 in service/mod_04.py?",
    "Write the file service/version.py with the single line VERSION = 4.",
    "Which region does step_6_2 in service/mod_06.py sum?",
    "And step_8_7 in service/mod_08.py?",
    "Which kinds of rows does service/mod_10.py look for?",
    "What is the limit of step_14_3 in service/mod_14.py?",
    "And of step_16_4 in service/mod_16.py?",
    "Which region does step_17_2 in service/mod_17.py sum?",
    "And step_18_7 in service/mod_18.py?",
    "Which kinds of rows does service/mod_20.py look for?",
    "In service/mod_12.py, rename the function step_12_10 to last_step.",
];

fn check_separate(tree: &FileTree) -> Vec<String> {
    let mut expected = original_files();
    if let Some(upload) = expected.get_mut("service/upload.py") {
        *upload = upload.replace("RETRIES = 3", "RETRIES = 5");
    }
    if let Some(module) = expected.get_mut(&module_path(12)) {
        *module = module.replace("step_12_10", "last_step");
    }
    let version = "service/version.py";
    let mut faults = tree.compare_files(&expected, &[version]);
    let content = tree.files.get(version).map(|content| content.trim());
    if content != Some("VERSION = 4") {
        faults.push(format!("{version} is not the line VERSION = 4"));
    }
    faults
}

/// The rename covers the modules that call the function and the one that defines it.
const _: () = assert!(CALLING_MODULES + 1 == 16);
