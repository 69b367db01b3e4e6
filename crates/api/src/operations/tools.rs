//! The tools of a document, in the format of whatever provider, and the choice among them.
//!
//! A proxied request is forwarded as it came. Here a document's tools become part of a request that is promised to be accepted,
//! so what no provider would take is refused with its place.

use std::cmp::Reverse;

use contexture::ir::{Item, Raw, ToolChoice, ToolDefinition, Transcript};
use contexture::tools::SchemaValidator;
use contexture::wire::forget_tool_shapes;
use contexture::{Format, lift};
use serde_json::Value;

use crate::operations::OperationError;
use crate::policy::PolicyConfig;

/// The choices that are one word in every format.
const WORDS: &str = "auto, none or required, or a choice as a provider writes it";

/// Reads tools and the choice among them; `None`: the document says nothing of either.
///
/// # Errors
/// A tool that no provider takes; a choice that is none, or is of a function that is not offered.
pub(crate) fn read_tool_settings(
    own: Format,
    tools: Option<&[Raw]>,
    choice: Option<&Raw>,
) -> Result<Option<Transcript>, OperationError> {
    if tools.is_none() && choice.is_none() {
        return Ok(None);
    }
    let mut settings = read_tools(own, tools.unwrap_or_default())?;
    check_tools(&settings.tools)?;
    settings.options.tool_choice = choice.map(|choice| read_choice(own, choice)).transpose()?;
    if tools.is_some() {
        check_choice(&settings, "is not among `tools`")?;
    }
    Ok(Some(settings))
}

/// Takes out the tools that a policy forbids, and those that it does not select for this history.
///
/// # Errors
/// The choice is of one that is forbidden.
pub(crate) fn retain_offered_tools<'a>(
    settings: &mut Transcript,
    policy: &PolicyConfig,
    history: impl Iterator<Item = &'a Item> + Clone,
) -> Result<(), OperationError> {
    match policy.tools.retain_offered(settings, history) {
        true => check_choice(settings, "is a tool that the policy does not allow"),
        false => Ok(()),
    }
}

/// Reads a choice in the format in which it means something that all formats can say; `own` goes before others.
fn read_choice(own: Format, choice: &Raw) -> Result<ToolChoice, OperationError> {
    match choice.as_string().as_deref() {
        None if choice.fields().is_none() => {
            let found = choice.get();
            return Err(choice_error(format!("expected {WORDS}, found {found}")));
        }
        None => {}
        Some("auto") => return Ok(ToolChoice::Auto),
        Some("none") => return Ok(ToolChoice::None),
        Some("required") => return Ok(ToolChoice::Required),
        Some(other) => return Err(choice_error(format!("expected {WORDS}, found {other:?}"))),
    }
    let read = |format: Format| {
        let members = format.spec().members()?;
        let (history, member) = (members.history, members.tool_choice.first()?);
        let value = choice.get();
        let request = format!("{{\"model\":\"m\",\"{history}\":[],\"{member}\":{value}}}");
        lift(format, &request).ok()?.transcript.options.tool_choice
    };
    let own_reading = read(own);
    let others = Format::PROVIDERS.into_iter().filter(|other| *other != own);
    let readings = own_reading.iter().cloned();
    let mut readings = readings.chain(others.filter_map(read));
    let is_common = |choice: &ToolChoice| !matches!(choice, ToolChoice::Other { .. });
    let found = readings.find(is_common).or(own_reading);
    found.ok_or_else(|| choice_error(format!("expected {WORDS}")))
}

fn choice_error(detail: String) -> OperationError {
    OperationError::member("tool_choice", detail)
}

/// Refuses a choice that the tools cannot follow.
fn check_choice(settings: &Transcript, why: &str) -> Result<(), OperationError> {
    match &settings.options.tool_choice {
        Some(ToolChoice::Function { name }) => {
            match settings.tools.iter().any(|tool| tool.name() == name) {
                true => Ok(()),
                false => Err(choice_error(format!("{name:?} {why}"))),
            }
        }
        Some(ToolChoice::Required) if settings.tools.is_empty() => Err(choice_error(
            "a call is required, but no tool is offered".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Reads tools in the format in which most of them are functions with a schema; `own` goes before others.
fn read_tools(own: Format, tools: &[Raw]) -> Result<Transcript, OperationError> {
    let texts: Vec<&str> = tools.iter().map(Raw::get).collect();
    let list = format!("[{}]", texts.join(","));
    let read = |format: Format| {
        let spec = format.spec();
        let members = spec.members();
        let history = members.map_or("messages", |members| members.history);
        let settings = match spec.tool_paths().first() {
            Some([outer, inner]) => format!("\"{outer}\":{{\"{inner}\":{list}}}"),
            _ => format!("\"tools\":{list}"),
        };
        let request = format!("{{\"model\":\"m\",\"{history}\":[],{settings}}}");
        lift(format, &request).map(|lifted| lifted.transcript)
    };
    let own_reading = read(own);
    let others = Format::PROVIDERS.into_iter().filter(|other| *other != own);
    let readings = own_reading.iter().cloned();
    let readings = readings.chain(others.filter_map(|other| read(other).ok()));
    // Of readings that are equally good the first one is taken.
    let best = readings.min_by_key(|reading| Reverse(count_functions(reading)));
    match (best, own_reading) {
        (Some(mut best), _) if count_functions(&best) > (0, 0) || tools.is_empty() => {
            forget_tool_shapes(&mut best.tools);
            Ok(best)
        }
        (_, Ok(own)) if own.tools.len() == tools.len() => Ok(own),
        (_, Err(error)) => Err(OperationError::member("tools", error.to_string())),
        _ => {
            let detail = "no provider's format has tools of this shape";
            Err(OperationError::member("tools", detail))
        }
    }
}

/// Returns how many tools are functions with a schema, and how many are functions.
fn count_functions(read: &Transcript) -> (usize, usize) {
    let functions = read.tools.iter().filter_map(|tool| match tool {
        ToolDefinition::Function(function) => Some(function.parameters.is_some()),
        ToolDefinition::Provider(_) => None,
    });
    functions.fold((0, 0), |(with, all), has| {
        (with + usize::from(has), all + 1)
    })
}

/// Refuses what no provider takes for a tool.
fn check_tools(tools: &[ToolDefinition]) -> Result<(), OperationError> {
    for (index, tool) in tools.iter().enumerate() {
        let refuse = |why: String| Err(OperationError::member(&format!("tools[{index}]"), why));
        match tool {
            ToolDefinition::Provider(tool) if is_shapeless(&tool.raw, &tool.kind) => {
                return refuse(
                    "expected a function with a `name`, or a tool of the provider with its `type`"
                        .to_owned(),
                );
            }
            ToolDefinition::Function(function) if function.name.is_empty() => {
                return refuse("the function has an empty name".to_owned());
            }
            ToolDefinition::Function(function) => {
                let schema = function.parameters.as_ref();
                if let Some(why) = schema.and_then(find_schema_fault) {
                    return refuse(format!(
                        "{}: the schema of its arguments: {why}",
                        function.name
                    ));
                }
            }
            ToolDefinition::Provider(_) => {}
        }
    }
    Ok(())
}

/// Whether an object says neither which function it is nor which tool of a provider: no format wants its members.
fn is_shapeless(tool: &Raw, kind: &str) -> bool {
    let value: Value = serde_json::from_str(tool.get()).unwrap_or_default();
    let Some(fields) = value.as_object() else {
        return true;
    };
    let is_function = kind == "function" && fields.get("function").is_none();
    let is_typed = fields.contains_key("type");
    // A provider's tool without a type is an object whose one member is its name: `{"googleSearch": {}}`.
    let is_named = fields.len() == 1 && fields.values().all(Value::is_object);
    (is_function && !fields.contains_key("name")) || (!is_typed && !is_named)
}

/// Returns why a schema cannot be that of a function's arguments; `None` if it can.
fn find_schema_fault(schema: &Raw) -> Option<String> {
    let value: Value = serde_json::from_str(schema.get()).ok()?;
    let Some(fields) = value.as_object() else {
        return Some(format!("expected an object, found {}", schema.get()));
    };
    match fields.get("type") {
        None => {}
        // In capitals with one provider.
        Some(Value::String(word)) if word.eq_ignore_ascii_case("object") => {}
        Some(other) => return Some(format!("its `type` must be \"object\", found {other}")),
    }
    SchemaValidator::new(schema)
        .err()
        .map(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tools: &str, choice: Option<&str>) -> Result<Option<Transcript>, String> {
        let tools: Vec<Raw> = serde_json::from_str(tools).unwrap();
        let choice = choice.map(|choice| Raw::parse(choice).unwrap());
        let own = Format::of_provider("");
        read_tool_settings(own, Some(&tools), choice.as_ref()).map_err(|error| error.to_string())
    }

    #[test]
    fn tools_that_no_provider_takes_are_refused_with_place() {
        for (tools, words) in [
            (r#"[{"foo":1}]"#, "tools"),
            (r#"["f"]"#, "tools"),
            (r#"[{"type":"function"}]"#, "tools"),
            (
                r#"[{"type":"function","function":{"name":"f","parameters":{"type":"objekt"}}}]"#,
                "`tools[0]`: f: the schema of its arguments: its `type` must be \"object\"",
            ),
            (
                r#"[{"name":"g"},{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"strin"}}}}]"#,
                "`tools[1]`: f: the schema of its arguments",
            ),
            (
                r#"[{"name":"f","input_schema":[]}]"#,
                "`tools[0]`: f: the schema of its arguments: expected an object",
            ),
        ] {
            let error = read(tools, None).unwrap_err();
            assert!(error.contains(words), "{tools}: {error}");
        }
    }

    #[test]
    fn functions_of_every_shape_become_the_same() {
        let schema = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
        for tool in [
            format!(r#"{{"type":"function","function":{{"name":"f","parameters":{schema}}}}}"#),
            format!(r#"{{"type":"function","name":"f","parameters":{schema}}}"#),
            format!(r#"{{"name":"f","parameters":{schema}}}"#),
            format!(r#"{{"name":"f","input_schema":{schema}}}"#),
            format!(r#"{{"functionDeclarations":[{{"name":"f","parameters":{schema}}}]}}"#),
            format!(r#"{{"toolSpec":{{"name":"f","inputSchema":{{"json":{schema}}}}}}}"#),
        ] {
            let read = read(&format!("[{tool}]"), Some("\"required\"")).unwrap();
            let read = read.unwrap();
            let [ToolDefinition::Function(function)] = &read.tools[..] else {
                panic!("{tool}: {:?}", read.tools);
            };
            assert_eq!(function.name, "f", "{tool}");
            let found = function.parameters.as_ref().map(Raw::get);
            assert_eq!(found, Some(schema), "{tool}");
            assert_eq!(read.options.tool_choice, Some(ToolChoice::Required));
        }
        // A tool of a provider stays as it is.
        assert!(read(r#"[{"type":"web_search"}]"#, None).is_ok());
    }

    #[test]
    fn a_choice_that_cannot_be_followed_is_refused() {
        let tools = r#"[{"name":"f"}]"#;
        for (choice, words) in [
            ("\"must\"", "expected auto, none or required"),
            ("3", "expected auto, none or required"),
            (
                r#"{"type":"function","name":"g"}"#,
                "\"g\" is not among `tools`",
            ),
            (
                r#"{"type":"function","function":{"name":"g"}}"#,
                "\"g\" is not among `tools`",
            ),
            (
                r#"{"type":"tool","name":"g"}"#,
                "\"g\" is not among `tools`",
            ),
        ] {
            let error = read(tools, Some(choice)).unwrap_err();
            assert!(error.contains(words), "{choice}: {error}");
        }
        let error = read("[]", Some("\"required\"")).unwrap_err();
        assert!(error.contains("no tool is offered"), "{error}");
        for choice in ["\"auto\"", r#"{"type":"function","name":"f"}"#] {
            assert!(read(tools, Some(choice)).is_ok(), "{choice}");
        }
    }
}
