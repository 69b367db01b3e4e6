//! Edits of parsed JSON: members by name and by pointer, and texts put together from parts that stay as written.

use std::borrow::Cow;

use contexture_ir::{Fields, quote_json};
use serde_json::Value;

/// Returns the value at a pointer; null if there is none.
pub(crate) fn pointer_or_null<'v>(value: &'v Value, pointer: &str) -> &'v Value {
    static NOTHING: Value = Value::Null;
    value.pointer(pointer).unwrap_or(&NOTHING)
}

/// Sets a member of an object; a value of another kind stays as it is.
pub(crate) fn set_member(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Some(object) = object.as_object_mut() {
        object.insert(name.to_owned(), value.into());
    }
}

/// Sets a member of an object within a value, if that exists.
pub(crate) fn set_member_in(value: &mut Value, pointer: &str, name: &str, new: impl Into<Value>) {
    if let Some(inner) = value.pointer_mut(pointer) {
        set_member(inner, name, new);
    }
}

/// Removes a member of an object, keeping the order of the others.
pub(crate) fn remove_member(object: &mut Value, name: &str) -> Option<Value> {
    object.as_object_mut()?.shift_remove(name)
}

/// Reports whether a value is null, an empty text or an empty list.
pub(crate) fn is_empty_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// Writes an object of these members, whose values are JSON already.
pub(crate) fn json_object<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let members = members.into_iter();
    let members: Vec<String> = members
        .map(|(name, value)| format!("{}:{value}", quote_json(name)))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// Returns an object with one member edited, all else as written; `None` if it has no such member or `edit` changes nothing.
pub(crate) fn edit_member(
    object: &str,
    name: &str,
    edit: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let fields = Fields::parse(object).ok()?;
    let mut is_changed = false;
    let members: Vec<(&str, Cow<'_, str>)> = fields
        .iter()
        .map(|(other, value)| {
            let edited = (other == name).then(|| edit(value.get())).flatten();
            is_changed |= edited.is_some();
            (other, edited.map_or(Cow::Borrowed(value.get()), Cow::Owned))
        })
        .collect();
    let members = members.iter().map(|(name, value)| (*name, value.as_ref()));
    is_changed.then(|| json_object(members))
}

/// Returns an object without a member, all else as written; `None` if it has no such member.
pub(crate) fn without_member(object: &str, name: &str) -> Option<String> {
    let fields = Fields::parse(object).ok()?;
    fields.get(&[name])?;
    let others = fields.iter().filter(|(other, _)| *other != name);
    Some(json_object(
        others.map(|(other, value)| (other, value.get())),
    ))
}

/// Replaces a member of a request, by whichever of its names it has, and puts it at the end under the first one. A body that
/// cannot be read stays as it is.
pub(crate) fn replace_member(
    body: &str,
    names: &[&str],
    new: impl FnOnce(Option<Value>) -> Value,
) -> String {
    let Ok(fields) = Fields::parse(body) else {
        return body.to_owned();
    };
    let old = fields
        .get(names)
        .and_then(|old| serde_json::from_str(old.get()).ok());
    let new = new(old).to_string();
    let others = fields.iter().filter(|(name, _)| !names.contains(name));
    let mut members: Vec<(&str, &str)> = others.map(|(name, value)| (name, value.get())).collect();
    members.extend(names.first().map(|name| (*name, new.as_str())));
    json_object(members)
}

#[cfg(test)]
mod tests {
    use crate::Format;

    #[test]
    fn tool_choice_is_replaced_and_all_else_stays() {
        for (format, body, expected) in [
            (
                Format::OpenAiChat,
                r#"{"tool_choice":"auto","n":1.0}"#,
                r#"{"n":1.0,"tool_choice":"none"}"#,
            ),
            (
                Format::Anthropic,
                r#"{"x": 1e2}"#,
                r#"{"x":1e2,"tool_choice":{"type":"none"}}"#,
            ),
            (
                Format::Gemini,
                r#"{"toolConfig":{"retrievalConfig":{"languageCode":"en"}}}"#,
                r#"{"toolConfig":{"retrievalConfig":{"languageCode":"en"},"functionCallingConfig":{"mode":"NONE"}}}"#,
            ),
            (
                Format::Bedrock,
                r#"{"n": 1e2, "toolConfig": {"tools": [ ], "toolChoice": {"any": {}}}}"#,
                r#"{"n":1e2,"toolConfig":{"tools":[ ]}}"#,
            ),
        ] {
            let edits = format.spec().proxy().unwrap();
            assert_eq!(edits.forbid_tool_calls(body), expected);
        }
    }
}
