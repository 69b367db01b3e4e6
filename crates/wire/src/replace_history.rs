//! Replaces the history of a client's request by a compiled one. All else of it stays as written.

use contexture_ir::{Error, Fields, quote_json};

use crate::Format;
use crate::markers::automatic_marker_member;

/// Returns `original` with the instructions, tools and history of `compiled`.
///
/// # Errors
/// One of them is no JSON object.
pub fn replace_history(format: Format, original: &str, compiled: &str) -> Result<String, Error> {
    let (original, compiled) = (Fields::parse(original)?, Fields::parse(compiled)?);
    let spec = format.spec();
    // Each is a list of spellings, the compiler's own first.
    let names = spec.members().map_or(&[][..], |members| members.compiled);
    let automatic = automatic_marker_member(format);
    let of = |name: &str| names.iter().find(|names| names.contains(&name));
    let mut left: Vec<_> = names.to_vec();
    let mut members: Vec<(&str, &str)> = Vec::new();
    for (name, value) in original.iter() {
        let Some(names) = of(name) else {
            members.push((name, value.get()));
            continue;
        };
        // A second spelling of a member that was replaced already: sent twice, providers would read either.
        let Some(at) = left.iter().position(|one| one == names) else {
            continue;
        };
        // What stays in `left` to the end was not in the client's request and is added behind it.
        left.remove(at);
        match compiled.get(names) {
            Some(value) => members.push((name, value.get())),
            // The client's own cache options stay; any other member that the compile omits is dropped.
            None if Some(name) == automatic => members.push((name, value.get())),
            None => {}
        }
    }
    for names in left {
        let value = compiled.get(names);
        members.extend(
            names
                .first()
                .zip(value)
                .map(|(name, value)| (*name, value.get())),
        );
    }
    let members: Vec<String> = members
        .into_iter()
        .map(|(name, value)| format!("{}:{value}", quote_json(name)))
        .collect();
    Ok(format!("{{{}}}", members.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_is_replaced_and_all_else_stays() {
        let spliced = replace_history(
            Format::Anthropic,
            r#"{"max_tokens": 7,"messages":[1,2,3],"x":{ "y":1e2 },"system":"s","model":"m"}"#,
            r#"{"model":"n","messages":[2],"tools":[4],"max_tokens":9}"#,
        );
        assert_eq!(
            spliced.unwrap(),
            r#"{"max_tokens":7,"messages":[2],"x":{ "y":1e2 },"model":"m","tools":[4]}"#
        );
        let gemini = replace_history(
            Format::Gemini,
            r#"{"system_instruction":1,"contents":[]}"#,
            r#"{"contents":[5],"systemInstruction":2}"#,
        );
        assert_eq!(
            gemini.unwrap(),
            r#"{"system_instruction":2,"contents":[5]}"#
        );
    }
}
