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
use crate::silence::is_silent;

/// The side an item is on for a target; `None` for bookkeeping that stands with whatever surrounds it.
///
/// A compaction is written as a user message, except that Anthropic writes its own into the model's turn; where nobody is sent
/// anything, in `Ui` and `Items`, it stands as it came.
#[must_use]
pub fn side(item: &Item, target: Format) -> Option<Side> {
    target.spec().structure().side(item)
}

/// The side on which an item says something to a target; `None` for what stands with whatever surrounds it, be it
/// bookkeeping or an item that the target has no word for.
///
/// Two turns of one side between which only such an item stands are one turn: Gemini refuses a call in the second of two
/// (google-gemini/gemini-cli#11814).
#[must_use]
pub fn spoken_side(item: &Item, target: Format) -> Option<Side> {
    let side = side(item, target)?;
    // Thoughts stand in the model's turn whether or not they are written; calls and outputs always are.
    let may_be_silent = matches!(
        item,
        Item::Extension(_) | Item::Compaction(_) | Item::Message(_)
    );
    (!may_be_silent || !is_silent(item, target)).then_some(side)
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
    let mut runs: Vec<RoleRun<'r, 'a>> = Vec::new();
    let mut start = 0;
    let mut current = None;
    for (index, entry) in entries.iter().enumerate() {
        let own = spoken_side(entry.item, target);
        if let (Some(own), Some(before)) = (own, current)
            && own != before
        {
            runs.extend(entries.get(start..index).map(|entries| RoleRun {
                side: before,
                start,
                entries,
                follows_user: false,
            }));
            start = index;
        }
        // What stands silently at the very start counts as the user's side.
        current = own.or(current).or(Some(Side::User));
    }
    if let (Some(side), Some(rest)) = (current, entries.get(start..))
        && !rest.is_empty()
    {
        runs.push(RoleRun {
            side,
            start,
            entries: rest,
            follows_user: false,
        });
    }
    runs
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
    let parts = [
        plain_parts(last, "user", key)?,
        plain_parts(next, "user", key)?,
    ];
    let parts = parts.concat();
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

/// How a message ends that another continues; see [`continued_message`].
pub const MESSAGE_END: &str = "]}";

/// How many bytes of the second chunk's beginning are left out, and [`MESSAGE_END`] of the first with them, so that its
/// first message goes on from the last of the first chunk.
///
/// `None` where the provider takes two messages in a row of one side, and where the two are of different sides or have
/// fields of their own beside their content.
#[must_use]
pub fn continued_message(target: Format, first: &str, second: &str) -> Option<usize> {
    let structure = target.spec().structure();
    let key = structure
        .merged_parts
        .filter(|_| structure.alternating_turns)?;
    let (before, after) = (parse_elements(first)?, parse_elements(second)?);
    let (last, next) = (before.last()?, after.first()?);
    let has_parts = |message: &RawValue, role: &str| {
        plain_parts(message, role, key).is_some_and(|parts| !parts.is_empty())
    };
    let joins = |role: &str| has_parts(last, role) && has_parts(next, role);
    let opening = second.find('[')? + 1;
    ((joins("user") || joins("assistant")) && first.ends_with(MESSAGE_END)).then_some(opening)
}

/// The elements of two chunks of the user's side, of which the first ends with the host's words: those are put last, and
/// with the host's words that the second ends with they are one message.
///
/// Nothing where there is nothing to put last, or where a message of the host's has fields of its own.
#[must_use]
pub fn put_host_last(target: Format, first: &str, second: &str) -> Option<Vec<String>> {
    let key = target.spec().structure().merged_parts?;
    let (before, mut after) = (parse_elements(first)?, parse_elements(second)?);
    let (last, before) = before.split_last()?;
    let mut parts = plain_parts(last, "system", key)?;
    if let Some(own) = after
        .last()
        .and_then(|last| plain_parts(last, "system", key))
    {
        parts.extend(own);
        after.pop();
    }
    let mut host = ObjectWriter::new();
    host.string("role", "system");
    host.array(key, parts.iter().map(|part| part.get()));
    let rest = before.iter().chain(&after).map(|one| one.get().to_owned());
    Some(rest.chain([host.finish()]).collect())
}

fn parse_elements(chunk: &str) -> Option<Vec<Box<RawValue>>> {
    serde_json::from_str(&format!("[{chunk}]")).ok()
}

/// The parts of a message of a role that is nothing but that.
fn plain_parts(message: &RawValue, of: &str, key: &'static str) -> Option<Vec<Box<RawValue>>> {
    let mut fields = Fields::parse(message.get()).ok()?;
    let role = fields.take_string(&["role"]).ok()??;
    let parts = fields.take_field(&[key]).ok()??;
    // A message with fields of its own (a name, a marker) cannot be joined without losing whose
    // they are.
    let plain = role == of && fields.is_empty();
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
