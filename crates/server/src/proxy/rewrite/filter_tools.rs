//! Filters the tools of a request: those that may not be offered are taken out of its text, all else stays as written.
//!
//! It fails closed: what cannot be read does not pass, and of a tool with several names each must be allowed, because hosts
//! differ in which of them they read.

use axum::http::StatusCode;
use contexture::Format;
use contexture::ir::Fields;
use serde_json::value::RawValue;

use crate::config::ToolsConfig;
use crate::proxy::json::{json_array, json_object};
use crate::proxy::refusal::ProxyRefusal;

/// Fields that list tools.
const TOOL_LISTS: [&str; 2] = ["tools", "functions"];
/// Fields that are tools by themselves, under their own names.
const STANDALONE_TOOL_FIELDS: [&str; 2] = ["web_search_options", "mcp_servers"];
/// Fields that only make sense beside tools.
const TOOL_OPTION_FIELDS: [&str; 6] = [
    "tool_choice",
    "function_call",
    "parallel_tool_calls",
    "toolConfig",
    "tool_config",
    "allowed_tools",
];
/// Types of tools that have a name of their own; other types of OpenAI are known by their type.
const NAMED_TOOL_TYPES: [&str; 3] = ["function", "custom", "namespace"];
/// Where Gemini lists functions within a tool.
const FUNCTION_LISTS: [&str; 2] = ["functionDeclarations", "function_declarations"];

/// A member of a request as the rule leaves it.
struct RestrictedMember {
    /// `None`: nothing of it is left.
    value: Option<String>,
    is_changed: bool,
    /// Whether it still offers a tool.
    has_tools: bool,
}

/// Returns the request with those of its tools that may be offered; `None` if those are all it has.
///
/// # Errors
/// It cannot be read, or insists on a tool that may not be offered.
pub(crate) fn restrict_tools(
    format: Format,
    body: &str,
    rule: &ToolsConfig,
) -> Result<Option<String>, ProxyRefusal> {
    // Members are kept as text and in order: parsing to values would lose duplicates and the
    // spelling of numbers.
    let fields = Fields::parse(body).map_err(|_| unreadable_request())?;
    let mut members: Vec<(&str, String)> = Vec::new();
    let (mut is_changed, mut has_tools) = (false, false);
    for (name, value) in fields.iter() {
        let restricted = restrict_member(format, name, value, rule)?;
        is_changed |= restricted.is_changed;
        has_tools |= restricted.has_tools;
        members.extend(restricted.value.map(|value| (name, value)));
    }
    // Checked even if no tool was taken out: a choice may name a tool that is not listed at all.
    check_tool_options(&members, rule)?;
    if !is_changed {
        return Ok(None);
    }
    // Providers refuse a choice among tools where none are left.
    members.retain(|(name, _)| has_tools || !TOOL_OPTION_FIELDS.contains(name));
    let members = members.iter().map(|(name, value)| (*name, value.as_str()));
    Ok(Some(json_object(members)))
}

/// Takes forbidden tools out of one member of a request.
fn restrict_member(
    format: Format,
    name: &str,
    value: &RawValue,
    rule: &ToolsConfig,
) -> Result<RestrictedMember, ProxyRefusal> {
    let tools: Option<Vec<&RawValue>> = match TOOL_LISTS.contains(&name) {
        true => serde_json::from_str(value.get()).map_err(|_| unreadable_request())?,
        false => None,
    };
    // These have no list to filter, so they stay or go as a whole. `null` offers nothing.
    let is_standalone = STANDALONE_TOOL_FIELDS.contains(&name) && value.get() != "null";
    if is_standalone && !rule.allows(name) {
        return Ok(RestrictedMember {
            value: None,
            is_changed: true,
            has_tools: false,
        });
    }
    let Some(tools) = tools else {
        return Ok(RestrictedMember {
            value: Some(value.get().to_owned()),
            is_changed: false,
            has_tools: is_standalone,
        });
    };
    let mut allowed = Vec::new();
    for tool in &tools {
        allowed.extend(restrict_tool(format, tool.get(), rule)?);
    }
    let is_unchanged = allowed.len() == tools.len()
        && allowed
            .iter()
            .zip(&tools)
            .all(|(allowed, tool)| allowed == tool.get());
    Ok(RestrictedMember {
        value: match is_unchanged {
            // Byte for byte: white space in a list that stays is part of what the client sent.
            true => Some(value.get().to_owned()),
            false if allowed.is_empty() => None,
            false => Some(json_array(allowed.iter().map(String::as_str))),
        },
        is_changed: !is_unchanged,
        has_tools: !allowed.is_empty(),
    })
}

/// Refuses a request that insists on a tool which may not be offered: sent without it, it would mean something else.
fn check_tool_options(members: &[(&str, String)], rule: &ToolsConfig) -> Result<(), ProxyRefusal> {
    for (name, value) in members {
        let is_option = TOOL_OPTION_FIELDS.contains(name);
        let Some(choice) = Fields::parse(value).ok().filter(|_| is_option) else {
            continue;
        };
        if let Some(tool) = stated_names(&choice)?
            .iter()
            .find(|tool| !rule.allows(tool))
        {
            let message = format!("`{name}` asks for the tool {tool:?}, which may not be offered");
            return Err(ProxyRefusal::new(
                StatusCode::FORBIDDEN,
                "tool_denied",
                message,
            ));
        }
    }
    Ok(())
}

/// Returns a tool, or the part of it that may be offered.
fn restrict_tool(
    format: Format,
    tool: &str,
    rule: &ToolsConfig,
) -> Result<Option<String>, ProxyRefusal> {
    let fields = Fields::parse(tool).map_err(|_| unreadable_request())?;
    // A tool of Gemini is a group: each function in it, and each built-in member, is allowed or not by itself.
    if format == Format::Gemini {
        return restrict_gemini_tool(tool, &fields, rule);
    }
    Ok(is_tool_allowed(format, &fields, rule)?.then(|| tool.to_owned()))
}

fn is_tool_allowed(
    format: Format,
    fields: &Fields<'_>,
    rule: &ToolsConfig,
) -> Result<bool, ProxyRefusal> {
    let names = tool_names(format, fields)?;
    Ok(names.iter().all(|name| rule.allows(name)))
}

fn restrict_gemini_tool(
    tool: &str,
    fields: &Fields<'_>,
    rule: &ToolsConfig,
) -> Result<Option<String>, ProxyRefusal> {
    let mut members: Vec<(&str, String)> = Vec::new();
    let mut is_changed = false;
    for (name, value) in fields.iter() {
        if !FUNCTION_LISTS.contains(&name) {
            // Gemini reads both spellings, so a rule in one must hold for the other.
            let is_allowed = rule.allows_spelled(&case_spellings(name));
            is_changed |= !is_allowed;
            if is_allowed {
                members.push((name, value.get().to_owned()));
            }
            continue;
        }
        let functions: Vec<&RawValue> =
            serde_json::from_str(value.get()).map_err(|_| unreadable_request())?;
        let mut allowed = Vec::new();
        for function in &functions {
            let fields = Fields::parse(function.get()).map_err(|_| unreadable_request())?;
            let is_allowed = is_tool_allowed(Format::Gemini, &fields, rule)?;
            allowed.extend(is_allowed.then_some(function.get()));
        }
        is_changed |= allowed.len() != functions.len();
        if !allowed.is_empty() {
            members.push((name, json_array(allowed)));
        }
    }
    Ok(match is_changed {
        false => Some(tool.to_owned()),
        // An empty group offers nothing, and a list of such groups would count as having tools.
        true if members.is_empty() => None,
        true => Some(json_object(
            members.iter().map(|(name, value)| (*name, value.as_str())),
        )),
    })
}

/// Returns both spellings under which Gemini reads a member: `googleSearch` and `google_search`.
fn case_spellings(name: &str) -> [String; 2] {
    let (mut camel, mut snake) = (String::new(), String::new());
    let mut begins = false;
    for letter in name.chars() {
        match (letter, begins) {
            ('_', _) => {}
            (_, true) => camel.push(letter.to_ascii_uppercase()),
            (_, false) => camel.push(letter),
        }
        begins = letter == '_';
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    [camel, snake]
}

/// Returns all names of a tool, at least one: those it states, and its type where it is known by that.
fn tool_names(format: Format, fields: &Fields<'_>) -> Result<Vec<String>, ProxyRefusal> {
    let mut names = stated_names(fields)?;
    let is_openai = matches!(format, Format::OpenAiChat | Format::OpenAiResponses);
    // Taken before types are added: a type counts as a name where the tool has no other.
    let is_unnamed = names.is_empty();
    let types = member_texts(fields, "type")?;
    let is_known_by =
        |kind: &String| is_unnamed || is_openai && !NAMED_TOOL_TYPES.contains(&kind.as_str());
    names.extend(types.into_iter().filter(is_known_by));
    for list in member_values(fields, &["tools"]) {
        let tools: Vec<Fields<'_>> =
            serde_json::from_str(list).map_err(|_| unreadable_request())?;
        for tool in &tools {
            names.extend(stated_names(tool)?);
        }
    }
    match names.is_empty() {
        true => Err(unreadable_request()),
        false => Ok(names),
    }
}

/// Returns every name that a tool or a choice states, itself or in its function.
fn stated_names(fields: &Fields<'_>) -> Result<Vec<String>, ProxyRefusal> {
    let mut names = member_texts(fields, "name")?;
    for inner in member_values(fields, &["function", "custom"]) {
        let inner = Fields::parse(inner).map_err(|_| unreadable_request())?;
        names.extend(member_texts(&inner, "name")?);
    }
    Ok(names)
}

/// Returns the texts of a member, however often it is written: hosts differ in which of duplicates they read.
fn member_texts(fields: &Fields<'_>, name: &str) -> Result<Vec<String>, ProxyRefusal> {
    let text = |value| serde_json::from_str(value).map_err(|_| unreadable_request());
    member_values(fields, &[name]).map(text).collect()
}

/// Returns the values of members of these names that are not null.
fn member_values<'a>(fields: &Fields<'a>, names: &[&str]) -> impl Iterator<Item = &'a str> {
    let members = fields.iter().filter(|(name, _)| names.contains(name));
    members
        .map(|(_, value)| value.get())
        .filter(|value| *value != "null")
}

fn unreadable_request() -> ProxyRefusal {
    let message = "the request cannot be read, and which tools may be offered is restricted here";
    ProxyRefusal::new(StatusCode::BAD_REQUEST, "unreadable", message)
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
            restrict_tools(format, body, &rule).unwrap().as_deref(),
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
    fn every_name_of_a_tool_must_be_allowed() {
        let rule = ToolsConfig {
            allow: Some(["ls", "mcp_toolset"].map(str::to_owned).into()),
            deny: ["rm".to_owned()].into(),
            ..ToolsConfig::default()
        };
        let left = |format, tool: &str| {
            let body = format!(r#"{{"tools":[{tool}]}}"#);
            restrict_tools(format, &body, &rule).unwrap().is_none()
        };
        for tool in [
            r#"{"type":"function","function":{"name":"ls","name":"rm"}}"#,
            r#"{"type":"function","function":{"name":"rm","name":"ls"}}"#,
            r#"{"type":"function","function":{"name":"ls"},"function":{"name":"rm"}}"#,
            r#"{"type":"function","name":"ls","function":{"name":"rm"}}"#,
            r#"{"type":"function","name":"rm","function":{"name":"ls"}}"#,
            r#"{"type":"custom","name":"ls","custom":{"name":"rm"}}"#,
            r#"{"type":"function","name":"ls","n\u0061me":"rm"}"#,
            r#"{"type":"web_search","name":"ls"}"#,
            r#"{"type":"function","type":"web_search","name":"ls"}"#,
            r#"{"type":"namespace","name":"ls","tools":[{"type":"function","name":"rm"}]}"#,
        ] {
            assert!(!left(Format::OpenAiChat, tool), "{tool}");
            assert!(!left(Format::OpenAiResponses, tool), "{tool}");
        }
        for tool in [
            r#"{"type":"function","name":"ls","function":null}"#,
            r#"{"type":"function","name":"ls","name":"ls"}"#,
            r#"{"type":"namespace","name":"ls","tools":[{"type":"function","name":"ls"}]}"#,
        ] {
            assert!(left(Format::OpenAiResponses, tool), "{tool}");
        }
        assert!(left(
            Format::Anthropic,
            r#"{"type":"ls_20250124","name":"ls"}"#
        ));
        assert!(left(Format::Anthropic, r#"{"type":"mcp_toolset"}"#));
        let twice = r#"{"functionDeclarations":[{"name":"ls","name":"rm"}]}"#;
        assert!(!left(Format::Gemini, twice));
    }

    #[test]
    fn tools_of_geminis_have_two_spellings() {
        for (name, said) in [
            ("googleSearch", "google_search"),
            ("google_search", "googleSearch"),
            ("codeExecution", "codeExecution"),
        ] {
            let body = format!(r#"{{"tools":[{{"{said}":{{}}}}]}}"#);
            let names = || [name.to_owned()].into();
            let allow = ToolsConfig {
                allow: Some(names()),
                ..ToolsConfig::default()
            };
            assert_eq!(restrict_tools(Format::Gemini, &body, &allow).unwrap(), None);
            let deny = ToolsConfig {
                deny: names(),
                ..ToolsConfig::default()
            };
            let left = restrict_tools(Format::Gemini, &body, &deny).unwrap();
            assert_eq!(left.as_deref(), Some("{}"));
        }
    }

    #[test]
    fn what_is_offered_beside_the_lists_is_a_tool_of_its_name() {
        let only = |names: &[&str]| ToolsConfig {
            allow: Some(names.iter().map(|name| (*name).to_owned()).collect()),
            ..ToolsConfig::default()
        };
        for (format, name) in [
            (Format::OpenAiChat, "web_search_options"),
            (Format::Anthropic, "mcp_servers"),
        ] {
            let body = format!(r#"{{"a":1,"{name}":{{}},"tool_choice":"auto"}}"#);
            let restricted = |rule: &ToolsConfig| restrict_tools(format, &body, rule).unwrap();
            assert_eq!(restricted(&only(&["ls"])).as_deref(), Some(r#"{"a":1}"#));
            assert_eq!(restricted(&only(&[name])), None);
            let other = ToolsConfig {
                deny: ["rm".to_owned()].into(),
                ..ToolsConfig::default()
            };
            assert_eq!(restricted(&other), None);
        }
        let nothing = r#"{"mcp_servers":null}"#;
        let restricted = restrict_tools(Format::Anthropic, nothing, &only(&["ls"]));
        assert_eq!(restricted.unwrap(), None);
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
            r#"{"tools":[],"tool_choice":{"type":"tool","name":"ls","name":"rm"}}"#,
            r#"{"tools":[{"type":"function","name":7}]}"#,
            r#"{"tools":[{"type":"function","name":"ls","function":"rm"}]}"#,
        ] {
            restrict_tools(Format::OpenAiChat, body, &rule).unwrap_err();
        }
    }
}
