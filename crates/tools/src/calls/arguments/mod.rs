//! The arguments of a call, read as the model wrote them.
//!
//! Models and cut streams leave arguments that are not quite JSON. [`parse_arguments`] gives back a valid document untouched, byte
//! for byte, large integers and repeated keys included; anything else is mended where only one reading is possible, and
//! every change is an [`Issue`] with its place. Where a value would have to be guessed there is an error instead.
//!
//! Not here: whether the arguments are what the tool wants (`validate`).

mod outcome;
mod repair;

use contexture_ir::{Fields, Raw};

use crate::registry::nests_at_most;
use contexture_ir::excerpt;
use outcome::{DEPTH, empty_object};

pub use outcome::{Arguments, ArgumentsError, Issue, IssueKind};

/// Reads arguments. Takes time in proportion to the text.
///
/// ```
/// use contexture_tools::{IssueKind, arguments};
///
/// let read = arguments::parse_arguments(r#"{city: 'Oslo', "days": 3,"#)?;
/// assert_eq!(read.raw.get(), r#"{"city":"Oslo","days":3}"#);
/// assert_eq!(read.issues[0].kind, IssueKind::UnquotedKey);
/// assert!(!read.is_complete());
/// # Ok::<(), contexture_tools::ArgumentsError>(())
/// ```
pub fn parse_arguments(text: &str) -> Result<Arguments, ArgumentsError> {
    parse_nested(text, 2)
}

fn parse_nested(text: &str, unpack: usize) -> Result<Arguments, ArgumentsError> {
    let inner = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{FEFF}');
    let note = |kind| vec![Issue { at: 0, kind }];
    if inner.is_empty() || inner == "null" {
        return Ok(Arguments {
            raw: empty_object(),
            issues: note(IssueKind::Empty),
        });
    }
    let Ok(raw) = Raw::parse(inner) else {
        return repair::repair_arguments(text);
    };
    if !nests_at_most(inner, DEPTH) {
        return Err(ArgumentsError::TooDeep);
    }
    if inner.starts_with('{') {
        let issues = repeated_keys(inner);
        return Ok(Arguments { raw, issues });
    }
    match (raw.as_string(), unpack.checked_sub(1)) {
        (Some(packed), Some(unpack)) if packed.trim_start().starts_with('{') => {
            let mut read = parse_nested(&packed, unpack)?;
            read.issues.splice(0..0, note(IssueKind::DoublyEncoded));
            Ok(read)
        }
        _ => Err(ArgumentsError::NotAnObject {
            found: excerpt(inner, 60),
        }),
    }
}

/// Keys that stand twice in one object, anywhere in a valid document; each told where its object begins.
fn repeated_keys(text: &str) -> Vec<Issue> {
    let mut issues = Vec::new();
    scan_keys(text, text, DEPTH, &mut issues);
    issues
}

fn scan_keys(whole: &str, text: &str, depth: usize, issues: &mut Vec<Issue>) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    match text.as_bytes().first() {
        Some(b'{') => {
            let Ok(fields) = Fields::parse(text) else {
                return;
            };
            let mut keys: Vec<&str> = fields.iter().map(|(key, _)| key).collect();
            keys.sort_unstable();
            if keys.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) {
                issues.push(Issue {
                    at: (text.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize),
                    kind: IssueKind::RepeatedKey,
                });
            }
            for (_, value) in fields.iter() {
                scan_keys(whole, value.get(), depth, issues);
            }
        }
        Some(b'[') => {
            let values: Result<Vec<&serde_json::value::RawValue>, _> = serde_json::from_str(text);
            for value in values.unwrap_or_default() {
                scan_keys(whole, value.get(), depth, issues);
            }
        }
        _ => {}
    }
}
