//! The arguments of a call, read as the model wrote them.
//!
//! Models and cut streams leave arguments that are not quite JSON. [`parse_arguments`] gives back a valid document untouched, byte
//! for byte, large integers and repeated keys included; anything else is mended where only one reading is possible, and
//! every change is an [`Issue`] with its place. Where a value would have to be guessed there is an error instead.
//!
//! Not here: whether the arguments are what the tool wants (the schema module).

mod outcome;
mod repair;

use contexture_ir::{Fields, Raw};

use crate::registry::nests_at_most;
use contexture_ir::truncate_chars;
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
    // Two levels: a string within a string happens when two libraries each encode once. More would be a bomb.
    parse_nested(text, 2)
}

fn parse_nested(text: &str, unpack: usize) -> Result<Arguments, ArgumentsError> {
    // Byte order marks come from files that tools pasted into a prompt.
    let inner = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{FEFF}');
    let note = |kind| vec![Issue { offset: 0, kind }];
    // Models of several providers send nothing or `null` for a call without arguments.
    if inner.is_empty() || inner == "null" {
        return Ok(Arguments {
            raw: empty_object(),
            issues: note(IssueKind::Empty),
        });
    }
    let Ok(raw) = Raw::parse(inner) else {
        return repair::repair_arguments(text);
    };
    // After parsing and before anything walks the value: what follows recurses.
    if !nests_at_most(inner, DEPTH) {
        return Err(ArgumentsError::TooDeep);
    }
    if inner.starts_with('{') {
        let issues = repeated_keys(inner);
        return Ok(Arguments { raw, issues });
    }
    match (raw.as_string(), unpack.checked_sub(1)) {
        // Only a string that holds an object is unpacked. Any other string may be meant as it is, and guessing
        // is not allowed.
        (Some(packed), Some(unpack)) if packed.trim_start().starts_with('{') => {
            let mut read = parse_nested(&packed, unpack)?;
            // First in the list, because its place is the outer text's and all others are places within the
            // string.
            read.issues.splice(0..0, note(IssueKind::DoublyEncoded));
            Ok(read)
        }
        _ => Err(ArgumentsError::NotAnObject {
            found: truncate_chars(inner, 60),
        }),
    }
}

/// Finds keys that stand twice in one object, anywhere in a valid document; each is reported where its object
/// begins.
fn repeated_keys(text: &str) -> Vec<Issue> {
    let mut issues = Vec::new();
    scan_keys(text, text, DEPTH, &mut issues);
    issues
}

fn scan_keys(document: &str, text: &str, depth: usize, issues: &mut Vec<Issue>) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    match text.as_bytes().first() {
        Some(b'{') => {
            let Ok(fields) = Fields::parse(text) else {
                return;
            };
            // Sorted copies and not a set: almost every object has few keys and no repetition.
            let mut keys: Vec<&str> = fields.iter().map(|(key, _)| key).collect();
            keys.sort_unstable();
            if keys.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) {
                issues.push(Issue {
                    // `text` is a slice of the document, so its place follows from the addresses and need not
                    // be carried along.
                    offset: (text.as_ptr() as usize).saturating_sub(document.as_ptr() as usize),
                    kind: IssueKind::RepeatedKey,
                });
            }
            for (_, value) in fields.iter() {
                scan_keys(document, value.get(), depth, issues);
            }
        }
        Some(b'[') => {
            let values: Result<Vec<&serde_json::value::RawValue>, _> = serde_json::from_str(text);
            for value in values.unwrap_or_default() {
                scan_keys(document, value.get(), depth, issues);
            }
        }
        _ => {}
    }
}
