//! Tools that may not be offered, taken out of a request's text. All else of it stays as it was written.
//!
//! It fails closed: what cannot be read does not pass.

use axum::http::StatusCode;
use contexture::Format;
use contexture::ir::Fields;
use serde_json::value::RawValue;

use crate::config::ToolsConfig;
use crate::proxy::members::{array, object};
use crate::proxy::refusal::Refusal;

/// Fields that list tools.
const LISTS: [&str; 2] = ["tools", "functions"];
/// Fields that make sense beside tools only.
const BESIDE: [&str; 6] = [
    "tool_choice",
    "function_call",
    "parallel_tool_calls",
    "toolConfig",
    "tool_config",
    "allowed_tools",
];
/// Where Gemini lists functions within a tool.
const DECLARED: [&str; 2] = ["functionDeclarations", "function_declarations"];

/// The request with those of its tools that all rules allow; `None` if those are all it has.
///
/// # Errors
/// It cannot be read, or insists on a tool that may not be offered.
pub(crate) fn restricted(
    format: Format,
    body: &str,
    rules: &[&ToolsConfig],
) -> Result<Option<String>, Refusal> {
    let may = |name: &str| rules.iter().all(|rule| rule.allows(name));
    let fields = Fields::parse(body).map_err(|_| unreadable())?;
    let mut members: Vec<(&str, String)> = Vec::new();
    let (mut changed, mut left) = (false, false);
    for (name, value) in fields.iter() {
        let list: Option<Vec<&RawValue>> = match LISTS.contains(&name) {
            true => serde_json::from_str(value.get()).map_err(|_| unreadable())?,
            false => None,
        };
        let Some(list) = list else {
            members.push((name, value.get().to_owned()));
            continue;
        };
        let mut kept = Vec::new();
        for tool in &list {
            kept.extend(allowed(format, tool.get(), &may)?);
        }
        let is_whole = kept.len() == list.len()
            && kept
                .iter()
                .zip(&list)
                .all(|(kept, tool)| kept == tool.get());
        changed |= !is_whole;
        left |= !kept.is_empty();
        match is_whole {
            true => members.push((name, value.get().to_owned())),
            false if kept.is_empty() => {}
            false => members.push((name, array(kept.iter().map(String::as_str)))),
        }
    }
    for (name, value) in &members {
        let insisted = BESIDE.contains(name).then(|| named(value)).flatten();
        if let Some(tool) = insisted.filter(|tool| !may(tool)) {
            let message = format!("`{name}` asks for the tool {tool:?}, which may not be offered");
            return Err(Refusal::new(StatusCode::FORBIDDEN, "tool_denied", message));
        }
    }
    if !changed {
        return Ok(None);
    }
    members.retain(|(name, _)| left || !BESIDE.contains(name));
    let members = members.iter().map(|(name, value)| (*name, value.as_str()));
    Ok(Some(object(members)))
}

/// A tool, or what of it may be offered.
fn allowed(
    format: Format,
    tool: &str,
    may: &impl Fn(&str) -> bool,
) -> Result<Option<String>, Refusal> {
    let fields = Fields::parse(tool).map_err(|_| unreadable())?;
    if format != Format::Gemini {
        let name = name(&fields).ok_or_else(unreadable)?;
        return Ok(may(&name).then(|| tool.to_owned()));
    }
    let mut members: Vec<(&str, String)> = Vec::new();
    let mut changed = false;
    for (key, value) in fields.iter() {
        if !DECLARED.contains(&key) {
            changed |= !may(key);
            if may(key) {
                members.push((key, value.get().to_owned()));
            }
            continue;
        }
        let list: Vec<&RawValue> = serde_json::from_str(value.get()).map_err(|_| unreadable())?;
        let mut kept = Vec::new();
        for function in &list {
            let fields = Fields::parse(function.get()).map_err(|_| unreadable())?;
            let name = name(&fields).ok_or_else(unreadable)?;
            kept.extend(may(&name).then_some(function.get()));
        }
        changed |= kept.len() != list.len();
        if !kept.is_empty() {
            members.push((key, array(kept)));
        }
    }
    Ok(match changed {
        false => Some(tool.to_owned()),
        true if members.is_empty() => None,
        true => Some(object(
            members.iter().map(|(name, value)| (*name, value.as_str())),
        )),
    })
}

/// What a tool is called: its name, that of the function in it, or else its type.
fn name(fields: &Fields<'_>) -> Option<String> {
    let text = |fields: &Fields<'_>, name: &str| -> Option<String> {
        serde_json::from_str(fields.get(&[name])?.get()).ok()
    };
    let inner = || {
        let inner = fields.get(&["function"]).or(fields.get(&["custom"]))?;
        text(&Fields::parse(inner.get()).ok()?, "name")
    };
    text(fields, "name")
        .or_else(inner)
        .or_else(|| text(fields, "type"))
}

/// The tool that a choice insists on.
fn named(choice: &str) -> Option<String> {
    let fields = Fields::parse(choice).ok()?;
    let text = |fields: &Fields<'_>| -> Option<String> {
        serde_json::from_str(fields.get(&["name"])?.get()).ok()
    };
    let inner = fields.get(&["function"]).or(fields.get(&["custom"]));
    let inner = inner.and_then(|inner| text(&Fields::parse(inner.get()).ok()?));
    text(&fields).or(inner)
}

fn unreadable() -> Refusal {
    let message = "the request cannot be read, and which tools may be offered is restricted here";
    Refusal::new(StatusCode::BAD_REQUEST, "unreadable", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: Format, body: &str, expected: Option<&str>) {
        let rule = ToolsConfig {
            deny: ["rm".to_owned(), "googleSearch".to_owned()].into(),
            ..ToolsConfig::default()
        };
        assert_eq!(
            restricted(format, body, &[&rule]).unwrap().as_deref(),
            expected
        );
    }

    #[test]
    fn only_tools_that_are_allowed_are_left_and_all_else_as_it_was() {
        check(
            Format::OpenAiChat,
            r#"{"a" : 1,"tools":[{"type":"function","function":{"name":"ls"}}]}"#,
            None,
        );
        check(
            Format::OpenAiChat,
            r#"{"a":{ "b":1.0 },"tools":[{"type":"function","function":{"name":"rm"}},{ "type":"function","function":{"name":"ls"}}]}"#,
            Some(r#"{"a":{ "b":1.0 },"tools":[{ "type":"function","function":{"name":"ls"}}]}"#),
        );
        check(
            Format::OpenAiResponses,
            r#"{"tools":[{"type":"function","name":"rm"}],"tool_choice":"auto","input":"x"}"#,
            Some(r#"{"input":"x"}"#),
        );
        check(
            Format::Anthropic,
            r#"{"tools":[{"name":"rm"},{"name":"ls"}],"tools":[{"name":"rm"}]}"#,
            Some(r#"{"tools":[{"name":"ls"}]}"#),
        );
        check(
            Format::Gemini,
            r#"{"tools":[{"functionDeclarations":[{"name":"rm"},{"name":"ls"}]},{"googleSearch":{}}]}"#,
            Some(r#"{"tools":[{"functionDeclarations":[{"name":"ls"}]}]}"#),
        );
    }

    #[test]
    fn what_insists_or_cannot_be_read_does_not_pass() {
        let rule = ToolsConfig {
            allow: Some(["ls".to_owned()].into()),
            ..ToolsConfig::default()
        };
        for body in [
            "",
            r#"{"tools":7}"#,
            r#"{"tools":[7]}"#,
            r#"{"tools":[],"tool_choice":{"type":"function","function":{"name":"rm"}}}"#,
            r#"{"tools":[],"tool_choice":{"type":"tool","name":"rm"}}"#,
        ] {
            restricted(Format::OpenAiChat, body, &[&rule]).unwrap_err();
        }
    }
}
