//! The turns of a history for a target format: which side speaks, where runs begin, which messages merge.
//!
//! Within a run Anthropic and Gemini get one message for what one side says. Chunks are written apart, so where a cut
//! brings two of them together their messages are joined here ([`join_messages`]), as if they were one run.
//!
//! Not here: the rules themselves, which are [`Structure`](crate::model::structure::Structure).

use serde_json::value::RawValue;

use contexture_ir::{Fields, Item};

use crate::model::format::Format;
use crate::model::json::ObjectWriter;
use crate::model::paired_item::{PairedItem, RoleRun, Side};

/// The side an item is on for a target; `None` for bookkeeping that stands with whatever surrounds it.
///
/// A compaction is written as a user message, except that Anthropic writes its own into the model's turn; where nobody is sent
/// anything, in `Ui` and `Items`, it stands as it came.
#[must_use]
pub fn side(item: &Item, target: Format) -> Option<Side> {
    target.spec().structure().side(item)
}

/// Reports whether calls after the item belong to another step than those before it: the user's side speaks,
/// or another UI message begins.
#[must_use]
pub fn ends_step(item: &Item, target: Format) -> bool {
    target.spec().structure().ends_step(item)
}

/// Cuts entries into runs for a target. Bookkeeping joins the run before it; at the very start it counts as the
/// user's side.
#[must_use]
pub fn role_runs<'r, 'a>(entries: &'r [PairedItem<'a>], target: Format) -> Vec<RoleRun<'r, 'a>> {
    target.spec().structure().role_runs(entries)
}

/// The elements of two chunks of people's words, the last message of one and the first of the other
/// joined into one.
///
/// Nothing where there is nothing to join: the target takes messages one by one, one of the two is not
/// the user's, or has fields of its own beside its content.
#[must_use]
pub fn join_messages(target: Format, first: &str, second: &str) -> Option<String> {
    let key = target.spec().structure().merged_parts?;
    let (before, after) = (parse_elements(first)?, parse_elements(second)?);
    // Only the two messages at the seam are joined; the others are copied as they are.
    let (last, before) = before.split_last()?;
    let (next, after) = after.split_first()?;
    let parts = [user_parts(last, key)?, user_parts(next, key)?].concat();
    let mut joined = ObjectWriter::new();
    joined.string("role", "user");
    joined.array(key, parts.iter().map(|part| part.get()));
    let joined = joined.finish();
    let all = before.iter().map(|one| one.get());
    let all: Vec<&str> = all
        .chain([joined.as_str()])
        .chain(after.iter().map(|one| one.get()))
        .collect();
    Some(all.join(","))
}

fn parse_elements(chunk: &str) -> Option<Vec<Box<RawValue>>> {
    serde_json::from_str(&format!("[{chunk}]")).ok()
}

/// The parts of a message of the user's that is nothing but that.
fn user_parts(message: &RawValue, key: &'static str) -> Option<Vec<Box<RawValue>>> {
    let mut fields = Fields::parse(message.get()).ok()?;
    let role = fields.take_string(&["role"]).ok()??;
    let parts = fields.take_field(&[key]).ok()??;
    // A message with fields of its own (a name, a marker) cannot be joined without losing whose
    // they are.
    let plain = role == "user" && fields.is_empty();
    plain.then(|| serde_json::from_str(parts.get()).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(target: Format, first: &str, second: &str, expected: Option<&str>) {
        assert_eq!(join_messages(target, first, second).as_deref(), expected);
    }

    #[test]
    fn only_plain_messages_of_the_user_are_joined() {
        let (a, b) = (
            r#"{"role":"user","content":[1,{"x" : 2}]}"#,
            r#"{"role":"user","content":[3]}"#,
        );
        let model = r#"{"role":"assistant","content":[0]}"#;
        check(
            Format::Anthropic,
            a,
            b,
            Some(r#"{"role":"user","content":[1,{"x" : 2},3]}"#),
        );
        check(
            Format::Anthropic,
            &format!("{model},{a}"),
            &format!("{b},{model}"),
            Some(&format!(
                r#"{model},{{"role":"user","content":[1,{{"x" : 2}},3]}},{model}"#
            )),
        );
        check(
            Format::Gemini,
            r#"{"role":"user","parts":[1]}"#,
            r#"{"role":"user","parts":[2]}"#,
            Some(r#"{"role":"user","parts":[1,2]}"#),
        );
        for other in [
            model,
            "",
            r#"{"role":"user","content":"x"}"#,
            r#"{"role":"user","content":[1],"x":1}"#,
            r#"{"role":"system","content":[1]}"#,
        ] {
            check(Format::Anthropic, a, other, None);
            check(Format::Anthropic, other, b, None);
        }
        check(Format::OpenAiChat, a, b, None);
    }
}
