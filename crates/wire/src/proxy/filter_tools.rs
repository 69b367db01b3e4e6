//! Filters the tools of a request: those that may not be offered are taken out of its text, all else stays as written.
//!
//! It fails closed: what cannot be read does not pass, and of a tool with several names each must be allowed, because hosts
//! differ in which of them they read. The names of members are those of all providers, for the same reason; how one tool is
//! read is each format's own.

use std::borrow::Cow;

use contexture_ir::Fields;
use serde_json::value::RawValue;

use crate::model::json::json_array;
use crate::proxy::json_edit::json_object;

/// Reports whether a tool may be offered that has a name in these spellings.
pub type ToolRule<'a> = &'a dyn Fn(&[&str]) -> bool;

/// Returns a tool, or the part of it that may be offered.
pub(crate) type RestrictTool = fn(&str, ToolRule<'_>) -> Result<Option<String>, ToolFilterError>;

/// Why a request with restricted tools does not pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolFilterError {
    /// Its tools cannot be read.
    #[error("the tools of the request cannot be read")]
    Unreadable,
    /// It insists on a tool that may not be offered: sent without it, it would mean something else.
    #[error("`{option}` asks for the tool {tool:?}, which may not be offered")]
    Denied {
        /// The member of the request that asks for it.
        option: String,
        /// The tool's name.
        tool: String,
    },
}

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

/// A member of a request as the rule leaves it.
struct RestrictedMember<'v> {
    /// `None`: nothing of it is left. What stays is borrowed: a history can be megabytes.
    value: Option<Cow<'v, str>>,
    is_changed: bool,
    /// Whether it still offers a tool.
    has_tools: bool,
}

/// Returns the request with those of its tools that may be offered; `None` if those are all it has.
///
/// # Errors
/// It cannot be read, or insists on a tool that may not be offered.
pub(crate) fn filter_tool_lists(
    body: &str,
    rule: ToolRule<'_>,
    restrict_tool: RestrictTool,
) -> Result<Option<String>, ToolFilterError> {
    // Members are kept as text and in order: parsing to values would lose duplicates and the
    // spelling of numbers.
    let fields = Fields::parse(body).map_err(|_| ToolFilterError::Unreadable)?;
    let mut members: Vec<(&str, Cow<'_, str>)> = Vec::new();
    let (mut is_changed, mut has_tools) = (false, false);
    for (name, value) in fields.iter() {
        let restricted = restrict_member(name, value, rule, restrict_tool)?;
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
    let members = members.iter().map(|(name, value)| (*name, value.as_ref()));
    Ok(Some(json_object(members)))
}

/// Takes forbidden tools out of one member of a request.
fn restrict_member<'v>(
    name: &str,
    value: &'v RawValue,
    rule: ToolRule<'_>,
    restrict_tool: RestrictTool,
) -> Result<RestrictedMember<'v>, ToolFilterError> {
    let tools: Option<Vec<&RawValue>> = match TOOL_LISTS.contains(&name) {
        // Gemini takes one tool without a list around it.
        true if value.get().starts_with('{') => Some(vec![value]),
        true => serde_json::from_str(value.get()).map_err(|_| ToolFilterError::Unreadable)?,
        false => None,
    };
    // These have no list to filter, so they stay or go as a whole. `null` offers nothing.
    let is_standalone = STANDALONE_TOOL_FIELDS.contains(&name) && value.get() != "null";
    if is_standalone && !rule(&[name]) {
        return Ok(RestrictedMember {
            value: None,
            is_changed: true,
            has_tools: false,
        });
    }
    let Some(tools) = tools else {
        return Ok(RestrictedMember {
            value: Some(value.get().into()),
            is_changed: false,
            has_tools: is_standalone,
        });
    };
    let mut allowed = Vec::new();
    for tool in &tools {
        allowed.extend(restrict_tool(tool.get(), rule)?);
    }
    let is_unchanged = allowed.len() == tools.len()
        && allowed
            .iter()
            .zip(&tools)
            .all(|(allowed, tool)| allowed == tool.get());
    Ok(RestrictedMember {
        value: match is_unchanged {
            // Byte for byte: white space in a list that stays is part of what the client sent.
            true => Some(value.get().into()),
            false if allowed.is_empty() => None,
            false => Some(json_array(&allowed).into()),
        },
        is_changed: !is_unchanged,
        has_tools: !allowed.is_empty(),
    })
}

/// Refuses a request that insists on a tool which may not be offered: sent without it, it would mean something else.
fn check_tool_options(
    members: &[(&str, Cow<'_, str>)],
    rule: ToolRule<'_>,
) -> Result<(), ToolFilterError> {
    for (name, value) in members {
        if !TOOL_OPTION_FIELDS.contains(name) {
            continue;
        }
        let Ok(choice) = Fields::parse(value) else {
            continue;
        };
        if let Some(tool) = stated_names(&choice)?.iter().find(|tool| !rule(&[tool])) {
            return Err(ToolFilterError::Denied {
                option: (*name).to_owned(),
                tool: tool.clone(),
            });
        }
    }
    Ok(())
}

/// Returns a tool if it may be offered. `named_types` are the types of tools that have a name beside it; a tool of another type
/// is known by its type. `None`: a type counts only where the tool has no other name.
pub(crate) fn restrict_tool(
    tool: &str,
    rule: ToolRule<'_>,
    named_types: Option<&[&str]>,
) -> Result<Option<String>, ToolFilterError> {
    let fields = Fields::parse(tool).map_err(|_| ToolFilterError::Unreadable)?;
    Ok(is_tool_allowed(&fields, rule, named_types)?.then(|| tool.to_owned()))
}

/// Reports whether all names of a tool are allowed.
pub(crate) fn is_tool_allowed(
    fields: &Fields<'_>,
    rule: ToolRule<'_>,
    named_types: Option<&[&str]>,
) -> Result<bool, ToolFilterError> {
    let names = tool_names(fields, named_types)?;
    Ok(names.iter().all(|name| rule(&[name])))
}

/// Returns all names of a tool, at least one: those it states, and its type where it is known by that.
fn tool_names(
    fields: &Fields<'_>,
    named_types: Option<&[&str]>,
) -> Result<Vec<String>, ToolFilterError> {
    let mut names = stated_names(fields)?;
    // Taken before types are added: a type counts as a name where the tool has no other.
    let is_unnamed = names.is_empty();
    let types = member_texts(fields, "type")?;
    let is_known_by = |kind: &String| {
        is_unnamed || named_types.is_some_and(|named| !named.contains(&kind.as_str()))
    };
    names.extend(types.into_iter().filter(is_known_by));
    for list in member_values(fields, &["tools"]) {
        let tools: Vec<Fields<'_>> =
            serde_json::from_str(list).map_err(|_| ToolFilterError::Unreadable)?;
        for tool in &tools {
            names.extend(stated_names(tool)?);
        }
    }
    match names.is_empty() {
        true => Err(ToolFilterError::Unreadable),
        false => Ok(names),
    }
}

/// Returns every name that a tool or a choice states, itself or in its function.
fn stated_names(fields: &Fields<'_>) -> Result<Vec<String>, ToolFilterError> {
    let mut names = member_texts(fields, "name")?;
    for inner in member_values(fields, &["function", "custom"]) {
        let inner = Fields::parse(inner).map_err(|_| ToolFilterError::Unreadable)?;
        names.extend(member_texts(&inner, "name")?);
    }
    Ok(names)
}

/// Returns the texts of a member, however often it is written: hosts differ in which of duplicates they read.
fn member_texts(fields: &Fields<'_>, name: &str) -> Result<Vec<String>, ToolFilterError> {
    let text = |value| serde_json::from_str(value).map_err(|_| ToolFilterError::Unreadable);
    member_values(fields, &[name]).map(text).collect()
}

/// Returns the values of members of these names that are not null.
fn member_values<'a>(fields: &Fields<'a>, names: &[&str]) -> impl Iterator<Item = &'a str> {
    let members = fields.iter().filter(|(name, _)| names.contains(name));
    members
        .map(|(_, value)| value.get())
        .filter(|value| *value != "null")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    /// Names that may be offered, as a configuration says them.
    #[derive(Default)]
    struct Names {
        allow: Option<Vec<&'static str>>,
        deny: Vec<&'static str>,
    }

    fn restrict_tools(
        format: Format,
        body: &str,
        names: &Names,
    ) -> Result<Option<String>, ToolFilterError> {
        let rule = |spellings: &[&str]| {
            let has = |set: &Vec<&str>| spellings.iter().any(|name| set.contains(name));
            names.allow.as_ref().is_none_or(has) && !has(&names.deny)
        };
        format.spec().proxy().unwrap().filter_tools(body, &rule)
    }

    fn check(format: Format, body: &str, expected: Option<&str>) {
        let rule = Names {
            deny: vec!["rm", "googleSearch"],
            ..Names::default()
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
        check(
            Format::Gemini,
            r#"{"tools":{"functionDeclarations":[{"name":"rm"},{"name":"ls"}]}}"#,
            Some(r#"{"tools":[{"functionDeclarations":[{"name":"ls"}]}]}"#),
        );
        check(
            Format::Gemini,
            r#"{"tools":{"functionDeclarations":[{"name":"ls"}]}}"#,
            None,
        );
        // A tool without a type is known by its name.
        check(
            Format::OpenAiChat,
            r#"{"tools":[{"function":{"name":"rm"}},{"function":{"name":"ls"}}]}"#,
            Some(r#"{"tools":[{"function":{"name":"ls"}}]}"#),
        );
    }

    #[test]
    fn every_name_of_a_tool_must_be_allowed() {
        let rule = Names {
            allow: Some(vec!["ls", "mcp_toolset"]),
            deny: vec!["rm"],
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
            let names = || vec![name];
            let allow = Names {
                allow: Some(names()),
                ..Names::default()
            };
            assert_eq!(restrict_tools(Format::Gemini, &body, &allow).unwrap(), None);
            let deny = Names {
                deny: names(),
                ..Names::default()
            };
            let left = restrict_tools(Format::Gemini, &body, &deny).unwrap();
            assert_eq!(left.as_deref(), Some("{}"));
        }
    }

    #[test]
    fn what_is_offered_beside_the_lists_is_a_tool_of_its_name() {
        let only = |names: &[&'static str]| Names {
            allow: Some(names.to_vec()),
            ..Names::default()
        };
        for (format, name) in [
            (Format::OpenAiChat, "web_search_options"),
            (Format::Anthropic, "mcp_servers"),
        ] {
            let body = format!(r#"{{"a":1,"{name}":{{}},"tool_choice":"auto"}}"#);
            let restricted = |rule: &Names| restrict_tools(format, &body, rule).unwrap();
            assert_eq!(restricted(&only(&["ls"])).as_deref(), Some(r#"{"a":1}"#));
            assert_eq!(restricted(&only(&[name])), None);
            let other = Names {
                deny: vec!["rm"],
                ..Names::default()
            };
            assert_eq!(restricted(&other), None);
        }
        let nothing = r#"{"mcp_servers":null}"#;
        let restricted = restrict_tools(Format::Anthropic, nothing, &only(&["ls"]));
        assert_eq!(restricted.unwrap(), None);
    }

    #[test]
    fn what_insists_or_cannot_be_read_does_not_pass() {
        let rule = Names {
            allow: Some(vec!["ls"]),
            ..Names::default()
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
