//! What a failed command says: what happened, to what, and what to do.
//!
//! Never a stack, a type's name or a debug dump. How other crates' errors become failures is in
//! `explain`.

use std::io;

use serde_json::{Value, json};

use crate::output::exit::Exit;

/// Why a command, or one line of a stream, failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The exit code it leads to.
    pub(crate) exit: Exit,
    /// A stable word for programs.
    pub(crate) kind: &'static str,
    /// What happened, to what: lower case, no full stop.
    pub(crate) message: String,
    /// More of it, a line each, for people.
    pub(crate) notes: Vec<String>,
    /// The same for programs.
    pub(crate) details: Option<Box<Value>>,
    /// What to do.
    pub(crate) hint: Option<String>,
}

/// What a command gives.
pub(crate) type Outcome<T = Exit> = Result<T, Failure>;

impl Failure {
    /// A failure without notes, details and hint.
    pub(crate) fn new(exit: Exit, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit,
            kind,
            message: message.into(),
            notes: Vec::new(),
            details: None,
            hint: None,
        }
    }

    /// The input is not what it should be.
    pub(crate) fn bad_input(kind: &'static str, message: impl Into<String>) -> Self {
        Self::new(Exit::BadInput, kind, message)
    }

    /// The command line is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", message)
    }

    /// The same with a hint, which replaces an earlier one.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with one more line for people.
    pub(crate) fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The same with details for programs.
    pub(crate) fn with_details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// The same, said of `what`: a file's name, a line.
    pub(crate) fn with_context(mut self, what: impl std::fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// Whether it is only that nobody reads on: `contexture … | head`.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.kind == "closed_pipe"
    }

    /// The object under `error`.
    pub(crate) fn to_json(&self) -> Value {
        let mut error = json!({ "kind": self.kind, "message": self.message });
        if let Value::Object(fields) = &mut error {
            if let Some(details) = &self.details {
                fields.insert("details".to_owned(), Value::clone(details));
            }
            if let Some(hint) = &self.hint {
                fields.insert("hint".to_owned(), hint.as_str().into());
            }
        }
        json!({ "error": error })
    }
}

/// Of writing results; reading has messages of its own, which name the file.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        // `contexture … | head` closes the pipe when it has enough: the command did its work.
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Exit::Done, "closed_pipe", "nobody reads the output");
        }
        Self::new(
            Exit::Stream,
            "write",
            format!("cannot write the output: {error}"),
        )
    }
}
