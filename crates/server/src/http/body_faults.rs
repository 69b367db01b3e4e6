//! All faults of a JSON body at once, so that a caller mends it in one go.
//!
//! Only bodies that were refused come here: which members there are is in the schema that describes the body, and what
//! they may be is said by its type, to which each is given alone. Words that are read only later, such as names of formats, are
//! compared with the list in the schema.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::schema::AdditionalProperties;
use utoipa::openapi::{Object, RefOr, Schema};

use crate::problem::{Code, Problem};

/// A member of a body that is wrong, missing or unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct BodyFault {
    /// Name of the member.
    member: String,
    /// What is wrong with it.
    detail: String,
}

/// Describes a body that is JSON of another shape than `T`, whose first fault the parser has found.
pub(crate) fn body_problem<T: DeserializeOwned + ToSchema>(
    bytes: &[u8],
    first: &serde_json::Error,
) -> Problem {
    let faults = find_faults::<T>(bytes);
    if faults.is_empty() {
        return Problem::new(Code::BadBody, first.to_string());
    }
    let texts = faults
        .iter()
        .map(|fault| format!("`{}`: {}", fault.member, fault.detail));
    let detail = texts.collect::<Vec<_>>().join("; ");
    Problem::new(Code::BadBody, detail).with_member("faults", serde_json::json!(faults))
}

fn find_faults<T: DeserializeOwned + ToSchema>(bytes: &[u8]) -> Vec<BodyFault> {
    let Ok(members) = serde_json::from_slice::<BTreeMap<String, Box<RawValue>>>(bytes) else {
        return Vec::new();
    };
    let RefOr::T(Schema::Object(described)) = T::schema() else {
        return Vec::new();
    };
    let missing = described.required.iter();
    let missing = missing.filter(|name| !members.contains_key(*name));
    let mut faults: Vec<BodyFault> = missing
        .map(|name| BodyFault {
            member: name.clone(),
            detail: "is missing".to_owned(),
        })
        .collect();
    let mut parts = Vec::new();
    T::schemas(&mut parts);
    for (member, value) in members {
        let detail = match described.properties.get(&member) {
            Some(property) => shape_fault::<T>(&member, &value)
                .or_else(|| word_fault(&value, &listed_words(property, &parts)?)),
            None => unknown_fault(&described),
        };
        faults.extend(detail.map(|detail| BodyFault { member, detail }));
    }
    faults
}

/// Returns what is said of a member that the body must not have; `None` where any other may stand.
fn unknown_fault(described: &Object) -> Option<String> {
    let closed = Some(AdditionalProperties::FreeForm(false));
    if described.additional_properties.as_deref() != closed.as_ref() {
        return None;
    }
    let names: Vec<String> = described
        .properties
        .keys()
        .map(|name| format!("`{name}`"))
        .collect();
    Some(format!("is unknown; known are {}", names.join(", ")))
}

/// Returns the words that a member may be, if its schema lists them; `parts` are the schemas it may name.
fn listed_words(
    property: &RefOr<Schema>,
    parts: &[(String, RefOr<Schema>)],
) -> Option<Vec<String>> {
    let property = serde_json::to_value(property).ok()?;
    // A member that may be left out is described as one of several: `null`, or what it may be.
    let choices = match property.get("oneOf").and_then(Value::as_array) {
        Some(choices) => choices.clone(),
        None => vec![property],
    };
    let mut listed = choices
        .iter()
        .filter(|choice| choice.get("type") != Some(&Value::from("null")));
    let choice = listed.next()?;
    if listed.next().is_some() {
        return None;
    }
    let named = choice.get("$ref").and_then(Value::as_str);
    let choice = match named.and_then(|path| path.rsplit('/').next()) {
        Some(name) => {
            let (_, part) = parts.iter().find(|(known, _)| known == name)?;
            serde_json::to_value(part).ok()?
        }
        None => choice.clone(),
    };
    let words = choice.get("enum")?.as_array()?.iter();
    let words = words.filter_map(Value::as_str).map(str::to_owned);
    Some(words.collect())
}

/// Returns what is wrong with a text that must be one of these words.
fn word_fault(value: &RawValue, words: &[String]) -> Option<String> {
    let word: String = serde_json::from_str(value.get()).ok()?;
    (!words.contains(&word)).then(|| format!("unknown {word:?}; expected {}", words.join(", ")))
}

/// Returns what is wrong with a member, which is read as if there was no other.
fn shape_fault<T: DeserializeOwned>(member: &str, value: &RawValue) -> Option<String> {
    let name = serde_json::to_string(member).ok()?;
    // The last line ends the body: an error there is about the members that were left out here.
    let body = format!("{{{name}:{}\n}}", value.get());
    let error = serde_json::from_str::<T>(&body).err()?;
    if error.line() == body.lines().count() {
        return None;
    }
    let text = error.to_string();
    let text = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(text, _)| text);
    Some(in_words_of_json(text))
}

/// Returns a parser's message in the words of JSON and of queries, which have no types of this program.
pub(crate) fn in_words_of_json(message: &str) -> String {
    const WORDS: [(&str, &str); 10] = [
        ("expected usize", "expected a whole number"),
        ("expected u64", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        ("expected i64", "expected a whole number"),
        ("expected f64", "expected a number"),
        ("a sequence", "a list"),
        ("a map", "an object"),
        ("invalid digit found in string", "expected a whole number"),
        (
            "number too large to fit in target type",
            "the number is too large",
        ),
        (
            "provided string was not `true` or `false`",
            "expected true or false",
        ),
    ];
    let message = message.split("expected struct ").enumerate();
    // The name of a type says nothing to a caller.
    let message = message.map(|(at, part)| match at {
        0 => part.to_owned(),
        _ => {
            let rest = part.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
            format!("expected an object{rest}")
        }
    });
    let message: String = message.collect();
    WORDS.into_iter().fold(message, |message, (theirs, ours)| {
        message.replace(theirs, ours)
    })
}

#[cfg(test)]
mod tests {
    use contexture_api::schema::ProviderFormatSchema;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, ToSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Asked {
        name: String,
        count: u64,
        inner: Option<Inner>,
        #[schema(value_type = Option<ProviderFormatSchema>)]
        to: Option<String>,
    }

    #[derive(Debug, Deserialize, ToSchema)]
    #[expect(dead_code, reason = "only read")]
    struct Inner {
        text: String,
    }

    #[track_caller]
    fn check(body: &str, expected: &[(&str, &str)]) {
        let found = find_faults::<Asked>(body.as_bytes());
        let found: Vec<_> = found
            .iter()
            .map(|fault| (fault.member.as_str(), fault.detail.as_str()))
            .collect();
        assert_eq!(found, expected, "{body}");
        let parsed = serde_json::from_str::<Asked>(body);
        assert_eq!(parsed.is_ok(), expected.is_empty(), "{body}");
    }

    #[test]
    fn no_type_of_this_program_is_named() {
        for (theirs, ours) in [
            (
                "invalid type: integer `3`, expected struct ClearConfig",
                "invalid type: integer `3`, expected an object",
            ),
            (
                "limit: invalid digit found in string",
                "limit: expected a whole number",
            ),
            (
                "invalid type: map, expected a sequence",
                "invalid type: map, expected a list",
            ),
        ] {
            assert_eq!(in_words_of_json(theirs), ours);
        }
    }

    #[test]
    fn all_faults_are_found_each_once() {
        let unknown = "is unknown; known are `name`, `count`, `inner`, `to`";
        check(r#"{"name": "a", "count": 1}"#, &[]);
        check(r#"{"name": "a", "count": 1, "inner": {"text": "b"}}"#, &[]);
        check("{}", &[("name", "is missing"), ("count", "is missing")]);
        check(
            r#"{"count": "one", "nam": "a", "inner": {"text": 1}}"#,
            &[
                ("name", "is missing"),
                (
                    "count",
                    "invalid type: string \"one\", expected a whole number",
                ),
                ("inner", "invalid type: integer `1`, expected a string"),
                ("nam", unknown),
            ],
        );
        // A word that is read only later.
        check(r#"{"name": "a", "count": 1, "to": "gemini"}"#, &[]);
        let words =
            "unknown \"zz\"; expected openai-chat, openai-responses, anthropic, gemini, bedrock";
        check(
            r#"{"nam": 1, "name": "a", "count": 1, "to": "zz"}"#,
            &[("nam", unknown), ("to", words)],
        );
        // A member of a part, over several lines, is a fault of the part.
        check(
            "{\"name\": \"a\", \"count\": 1, \"inner\": {\n}}",
            &[("inner", "missing field `text`")],
        );
        check(
            r#"{"name": "a", "count": 1, "x\"y": 1}"#,
            &[("x\"y", unknown)],
        );
    }
}
