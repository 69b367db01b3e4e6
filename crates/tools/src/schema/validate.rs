//! Arguments checked against a tool's JSON Schema.
//!
//! The one place that knows the `jsonschema` crate, which changes often. References out of the schema are never
//! followed: nothing is fetched. Schemas may be hostile, for tools come from servers of strangers, so the work of a check
//! is measured before it is done ([`crate::schema::cost_limit`]) and patterns may not backtrack without end.
//!
//! Not here: reading arguments that are not even JSON ([`crate::calls::arguments`]).

use std::fmt;

use contexture_ir::Raw;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use contexture_ir::truncate_chars;

use crate::schema::cost_limit;

/// The most faults reported.
const FINDINGS: usize = 20;
/// How often a pattern may go back over a text.
const BACKTRACKS: usize = 100_000;
/// The largest compiled pattern, in bytes.
const PATTERN_BYTES: usize = 1 << 20;

/// What is wrong with arguments, at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgumentFault {
    /// Where, as a JSON pointer; empty for the arguments as a whole.
    pub path: String,
    /// What the schema wants there.
    pub expected: String,
    /// What stands there.
    pub found: String,
}

impl fmt::Display for ArgumentFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() {
            "the arguments"
        } else {
            &self.path
        };
        write!(
            f,
            "{path}: expected {}, found {}",
            self.expected, self.found
        )
    }
}

/// Why arguments cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The schema is none that can be used.
    #[error("the schema cannot be used to check arguments: {reason}")]
    Unusable {
        /// What is wrong with it.
        reason: String,
    },
    /// A value is not of the schema.
    #[error("not of its schema: {}", format_faults(findings))]
    Mismatch {
        /// What is wrong with it: the path, what is expected there, and what was found.
        findings: Vec<ArgumentFault>,
    },
    /// Checking would take more steps than are allowed.
    #[error(
        "checking these arguments against the schema takes more than {} steps",
        cost_limit::STEPS
    )]
    TooCostly,
    /// The arguments hold a number or text that cannot be compared: beyond a double, or half a surrogate pair.
    #[error("the arguments cannot be compared: {reason}")]
    Unreadable {
        /// The reader's account.
        reason: String,
    },
}

/// A schema made ready to check arguments.
#[derive(Debug)]
pub struct SchemaValidator {
    /// Absent: everything goes.
    compiled: Option<(Value, Validator)>,
}

impl SchemaValidator {
    /// A checker to which everything is right.
    pub(crate) fn accept_all() -> Self {
        Self { compiled: None }
    }

    /// Makes a schema ready. What it refers to must stand in it, named by a JSON pointer.
    pub fn new(schema: &Raw) -> Result<Self, SchemaError> {
        let unusable = |reason: String| SchemaError::Unusable {
            reason: truncate_chars(&reason, 300),
        };
        let schema: Value =
            serde_json::from_str(schema.get()).map_err(|error| unusable(error.to_string()))?;
        cost_limit::check_references(&schema).map_err(unusable)?;
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(BACKTRACKS)
            .size_limit(PATTERN_BYTES)
            .dfa_size_limit(PATTERN_BYTES);
        let validator = jsonschema::options()
            // Offline: a reference that leaves the schema is an error and never a request.
            .offline()
            .with_pattern_options(patterns)
            .build(&schema)
            .map_err(|error| unusable(error.to_string()))?;
        Ok(Self {
            compiled: Some((schema, validator)),
        })
    }

    /// What is wrong with these arguments; at most 20 findings, none if all is well.
    pub fn check_arguments(&self, arguments: &Raw) -> Result<Vec<ArgumentFault>, SchemaError> {
        let Some((schema, validator)) = &self.compiled else {
            return Ok(Vec::new());
        };
        let unreadable = |error: serde_json::Error| SchemaError::Unreadable {
            reason: error.to_string(),
        };
        let arguments: Value = serde_json::from_str(arguments.get()).map_err(unreadable)?;
        // Before validation, which has no limit of its own.
        if !cost_limit::is_bounded(schema, &arguments) {
            return Err(SchemaError::TooCostly);
        }
        // A list of a million wrong elements yields twenty faults; the model mends the first ones first.
        let errors = validator.iter_errors(&arguments).take(FINDINGS);
        Ok(errors.map(|error| argument_fault(schema, &error)).collect())
    }

    /// Refuses a value that is not of the schema, naming each path with what is expected and what was found:
    /// for state that hosts show to models, which no model can mend.
    ///
    /// ```
    /// use contexture_ir::Raw;
    /// use contexture_tools::SchemaValidator;
    ///
    /// let schema = Raw::parse(r#"{"type":"object","properties":{"open":{"type":"integer"}}}"#)?;
    /// let error = SchemaValidator::new(&schema)?.check_value(&Raw::parse(r#"{"open":"two"}"#)?).unwrap_err();
    /// assert_eq!(error.to_string(), r#"not of its schema: /open: expected integer, found "two""#);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_value(&self, value: &Raw) -> Result<(), SchemaError> {
        let findings = self.check_arguments(value)?;
        if findings.is_empty() {
            Ok(())
        } else {
            Err(SchemaError::Mismatch { findings })
        }
    }
}

fn format_faults(findings: &[ArgumentFault]) -> String {
    let all = findings.iter().map(|finding| match finding.path.as_str() {
        // A fault of the whole value has no path to begin the line with.
        "" => format!("expected {}, found {}", finding.expected, finding.found),
        _ => finding.to_string(),
    });
    all.collect::<Vec<_>>().join("; ")
}

// Built from the error's parts and not from its text, which changes with versions of the library.
fn argument_fault(schema: &Value, error: &ValidationError<'_>) -> ArgumentFault {
    let shown = |value: &Value| truncate_chars(&value.to_string(), 80);
    let mut path = error.instance_path().as_str().to_owned();
    let instance = error.instance();
    // Containers are described, since quoting them would push out what matters.
    let mut found = match &**instance {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(values) => format!("a list of {}", values.len()),
        other => shown(other),
    };
    let expected = match error.kind() {
        ValidationErrorKind::Type { kind } => match kind {
            TypeKind::Single(kind) => kind.to_string(),
            TypeKind::Multiple(kinds) => {
                let kinds: Vec<String> = kinds.iter().map(|kind| kind.to_string()).collect();
                kinds.join(" or ")
            }
        },
        // The path points to the missing member, not to the object that lacks it: models go straight to the
        // place.
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            // The two escapes of JSON Pointer (RFC 6901), the tilde first.
            path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
            "nothing".clone_into(&mut found);
            "a value, for it is required".to_owned()
        }
        ValidationErrorKind::Enum { options } => format!("one of {}", shown(options)),
        ValidationErrorKind::Constant { expected_value } => shown(expected_value),
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            found = truncate_chars(&unexpected.join(", "), 80);
            "only the members it knows".to_owned()
        }
        ValidationErrorKind::BacktrackLimitExceeded { .. } => {
            "a text that its pattern can be tried on".to_owned()
        }
        // Any other keyword is shown with its value in the schema: `minimum 1`, `pattern "^a"`.
        kind => {
            let value = schema.pointer(error.schema_path().as_str());
            let value = value.map(shown).unwrap_or_default();
            format!("{} {value}", kind.keyword())
        }
    };
    ArgumentFault {
        path,
        expected,
        found,
    }
}
