//! A small project in memory, and the tools to read and change it.
//!
//! The sources are made by a rule, long enough that reading a few of them fills a small window. They look like Python, but nothing
//! runs them: a task is judged by their text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::tasks::{ToolSpec, World};
use crate::tasks::{find_text, read_text};

/// Modules of the service.
const MODULES: u32 = 20;

/// Modules, from the first on, that call the function of the ledger.
pub(crate) const CALLING_MODULES: u32 = 15;

/// Name of the function that the modules call.
pub(crate) const OLD_NAME: &str = "fetch_rows";

/// Most lines that a search shows.
const MOST_HITS: usize = 60;

/// Tools over the files.
pub(crate) const FILE_TOOLS: &[ToolSpec] = &[
    ToolSpec {
        name: "list_files",
        description: "Lists the paths of all files.",
        parameters: &[],
    },
    ToolSpec {
        name: "read_file",
        description: "Shows a file.",
        parameters: &[("path", "string", "path of the file")],
    },
    ToolSpec {
        name: "search",
        description: "Finds the lines with a text, in all files.",
        parameters: &[("text", "string", "text to find, word for word")],
    },
    ToolSpec {
        name: "replace",
        description: "Replaces a text by another one, everywhere in one file.",
        parameters: &[
            ("path", "string", "path of the file"),
            ("old", "string", "text to replace, word for word"),
            (
                "new",
                "string",
                "optional: text to put in its place; without it, the old one is removed",
            ),
        ],
    },
    ToolSpec {
        name: "write_file",
        description: "Writes a file, new or over an old one.",
        parameters: &[
            ("path", "string", "path of the file"),
            ("content", "string", "complete content"),
        ],
    },
];

/// The files, by path.
pub(crate) type Files = BTreeMap<String, String>;

/// The project, and how it is judged.
pub(crate) struct FileTree {
    pub(crate) files: Files,
    check: fn(&Self) -> Vec<String>,
}

impl FileTree {
    pub(crate) fn new(check: fn(&Self) -> Vec<String>) -> Self {
        Self {
            files: original_files(),
            check,
        }
    }

    /// Compares all files with what is expected, save those under `except`.
    pub(crate) fn compare_files(&self, expected: &Files, except: &[&str]) -> Vec<String> {
        let mut faults = Vec::new();
        for path in self.files.keys().chain(expected.keys()) {
            let (found, wanted) = (self.files.get(path), expected.get(path));
            if found == wanted || except.contains(&path.as_str()) {
                continue;
            }
            let fault = match (found, wanted) {
                (None, _) => format!("{path} is missing"),
                (_, None) => format!("{path} was written, and nobody asked for it"),
                (Some(found), Some(wanted)) => describe_difference(path, found, wanted),
            };
            // A path that both have comes twice.
            if !faults.contains(&fault) {
                faults.push(fault);
            }
        }
        faults
    }

    fn file(&self, path: &str) -> Result<&String, String> {
        let unknown = || format!("there is no file {path}; list_files shows all");
        self.files.get(path).ok_or_else(unknown)
    }

    fn replace(&mut self, arguments: &Value) -> Result<String, String> {
        let path = read_text(arguments, "path")?;
        let old = read_text(arguments, "old")?;
        let new = find_text(arguments, "new").unwrap_or_default();
        let content = self.file(path)?;
        let count = content.matches(old).count();
        if count == 0 {
            return Err(format!("{path} does not contain that text"));
        }
        let content = content.replace(old, new);
        self.files.insert(path.to_owned(), content);
        Ok(format!("Replaced {count} times in {path}."))
    }

    fn search(&self, text: &str) -> String {
        let mut hits = Vec::new();
        for (path, content) in &self.files {
            for (number, line) in content.lines().enumerate() {
                if line.contains(text) {
                    hits.push(format!("{path}:{}: {}", number + 1, line.trim()));
                }
            }
        }
        let more = hits.len().saturating_sub(MOST_HITS);
        hits.truncate(MOST_HITS);
        match (hits.is_empty(), more) {
            (true, _) => "no line has that text".to_owned(),
            (false, 0) => hits.join("\n"),
            (false, more) => format!("{}\nand {more} lines more", hits.join("\n")),
        }
    }
}

impl World for FileTree {
    fn call_tool(&mut self, tool: &str, arguments: &Value) -> Result<String, String> {
        match tool {
            "list_files" => Ok(self.files.keys().cloned().collect::<Vec<_>>().join("\n")),
            "read_file" => self.file(read_text(arguments, "path")?).cloned(),
            "search" => Ok(self.search(read_text(arguments, "text")?)),
            "replace" => self.replace(arguments),
            "write_file" => {
                let path = read_text(arguments, "path")?;
                let content = read_text(arguments, "content")?;
                self.files.insert(path.to_owned(), content.to_owned());
                Ok(format!("Wrote {path}."))
            }
            other => Err(format!("there is no tool `{other}`")),
        }
    }

    fn faults(&self) -> Vec<String> {
        (self.check)(self)
    }
}

fn describe_difference(path: &str, found: &str, wanted: &str) -> String {
    let lines = found.lines().zip(wanted.lines()).enumerate();
    let mut differing = lines.filter(|(_, (found, wanted))| found != wanted);
    match differing.next() {
        Some((number, (found, wanted))) => format!(
            "{path}:{}: found `{}`, expected `{}`",
            number + 1,
            found.trim(),
            wanted.trim()
        ),
        None => format!("{path} has other lines at its end than expected"),
    }
}

/// Returns the project as each task finds it.
pub(crate) fn original_files() -> Files {
    let mut files: Files = (1..=MODULES)
        .map(|number| (module_path(number), module_source(number)))
        .collect();
    let ledger = format!(
        "\"\"\"The ledger.\"\"\"\n\n\ndef {OLD_NAME}(table, day):\n    return STORE.select(table, day=day)\n"
    );
    files.insert("service/ledger.py".to_owned(), ledger);
    files.insert("service/upload.py".to_owned(), UPLOAD.to_owned());
    let vendored = format!(
        "\"\"\"Not ours: copied from tablekit.\"\"\"\n\n\ndef {OLD_NAME}(cursor):\n    return list(cursor)\n"
    );
    files.insert("vendor/tablekit.py".to_owned(), vendored);
    files
}

const UPLOAD: &str = "\"\"\"Uploads days to the host of the ledger.\"\"\"\n\nBATCH_ROWS = 25000\nRETRIES = 3\n\n\n\
    def upload_day(host, rows):\n    for start in range(0, len(rows), BATCH_ROWS):\n        \
    host.send(rows[start:start + BATCH_ROWS], retries=RETRIES)\n";

/// Path of a module.
pub(crate) fn module_path(number: u32) -> String {
    format!("service/mod_{number:02}.py")
}

/// Makes a module: about 3,000 characters in ten functions.
fn module_source(number: u32) -> String {
    let mut text = format!("\"\"\"Module {number} of the service.\"\"\"\n\n");
    let mut seed = number * 7919;
    for function in 1..=10 {
        seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let rows = match number <= CALLING_MODULES && function % 5 == 1 {
            true => format!("{OLD_NAME}(\"accounts_{}\", day)", seed % 50),
            false => format!("CACHE.rows(\"accounts_{}\")", seed % 50),
        };
        // A string takes everything that is written to it.
        let _ = write!(
            text,
            "\ndef step_{number}_{function}(day, limit={}):\n    \"\"\"Sums region {} for the report.\"\"\"\n    \
             rows = {rows}\n    total = {}\n    for row in rows[:limit]:\n        if row.kind == \"k{}\":\n            \
             total += row.amount * {}\n    return total\n\n",
            seed % 900 + 100,
            seed / 3 % 40,
            seed / 5 % 10,
            seed / 7 % 30,
            seed / 11 % 9 + 1,
        );
    }
    text
}
