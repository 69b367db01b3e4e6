//! `toolConfig`: the tools offered, and which of them may be used.

use contexture_ir::{
    Error, Extra, Fields, FunctionTool, ProviderTool, Raw, RequestOptions, ToolChoice,
    ToolDefinition, Transcript,
};
use serde_json::value::RawValue;

use super::block::{
    CACHE_POINT, append_cache_point, block_fields, parse_elements, single_member, unexpected_value,
};
use super::spec::{FORMAT, NAME_RULE};
use crate::model::format_extras::{hint, report_foreign_fields, set_hint, to_extras};
use crate::model::json::{ObjectWriter, as_object};
use crate::model::loss::{LossKind, Losses};

/// The input schema of a function without parameters: any object.
const ANY_OBJECT: &str = "{\"type\":\"object\"}";
/// The member with the tools, also the key of its unknown members.
const TOOL_CONFIG: &str = "toolConfig";

/// Reads `toolConfig`; what stays of it goes to `stored`.
pub(super) fn parse_tool_config(
    value: &RawValue,
    transcript: &mut Transcript,
    stored: &mut Extra,
) -> Result<(), Error> {
    let mut fields = Fields::parse(value.get())?;
    let tools = fields.get(&["tools"]).map(parse_elements).transpose();
    let tools = tools.map_err(|error| error.at_segment("tools"))?;
    if tools.is_none_or(|tools| tools.is_empty()) {
        // Without tools nothing of it can be said in items; the provider gets it back as it came.
        stored.set(TOOL_CONFIG, value.into());
        return Ok(());
    }
    if let Some(list) = fields.take_field(&["tools"])? {
        transcript.tools = parse_tools(list).map_err(|error| error.at_segment("tools"))?;
    }
    if let Some(choice) = fields.take_present(&["toolChoice"])? {
        let choice = parse_tool_choice(choice).map_err(|error| error.at_segment("toolChoice"))?;
        transcript.options.tool_choice = Some(choice);
    }
    if !fields.is_empty() {
        let rest = to_extras(fields.into_extra());
        stored.set(TOOL_CONFIG, Raw::from_value(&rest)?);
    }
    Ok(())
}

fn parse_tools(list: &RawValue) -> Result<Vec<ToolDefinition>, Error> {
    let mut tools: Vec<ToolDefinition> = Vec::new();
    for (index, tool) in parse_elements(list)?.into_iter().enumerate() {
        let fields = Fields::parse(tool.get()).map_err(|error| error.at_index(index))?;
        match single_member(&fields) {
            Some((member, spec)) if member == "toolSpec" => {
                let function = parse_function(spec);
                let function = function.map_err(|error| error.at_segment("toolSpec"));
                let function = function.map_err(|error| error.at_index(index))?;
                tools.push(ToolDefinition::Function(function));
            }
            // A point belongs to the function before it; other tools are kept as they came, and so is their point.
            Some((member, point))
                if member == "cachePoint" && attach_cache_point(tools.last_mut(), point) => {}
            Some((member, value)) => {
                let name = Fields::parse(value.get()).ok();
                let name = name.and_then(|mut fields| fields.take_string(&["name"]).ok()?);
                tools.push(provider_tool(name.unwrap_or(member), tool));
            }
            None => tools.push(provider_tool("tool".to_owned(), tool)),
        }
    }
    Ok(tools)
}

fn provider_tool(kind: String, tool: &RawValue) -> ToolDefinition {
    ToolDefinition::Provider(ProviderTool {
        format: FORMAT.to_owned(),
        kind,
        raw: tool.into(),
    })
}

fn attach_cache_point(before: Option<&mut ToolDefinition>, point: &RawValue) -> bool {
    let Some(ToolDefinition::Function(tool)) = before else {
        return false;
    };
    let mut wire = tool.extra.wire_fields(FORMAT);
    if wire.get(CACHE_POINT).is_some() {
        return false;
    }
    wire.set(CACHE_POINT, point.into());
    tool.extra.set_wire_fields(FORMAT, wire);
    true
}

fn parse_function(spec: &RawValue) -> Result<FunctionTool, Error> {
    let mut fields = Fields::parse(spec.get())?;
    let mut function = FunctionTool {
        name: fields.need_string(&["name"])?,
        strict: fields.take_as(&["strict"], "a boolean")?,
        ..FunctionTool::default()
    };
    // An empty description is refused, so none is written; one that came stays among the rest.
    if fields
        .get(&["description"])
        .is_some_and(|text| text.get() != "\"\"")
    {
        function.description = fields.take_string(&["description"])?;
    }
    let schema = fields.get(&["inputSchema"]).and_then(|schema| {
        let schema = Fields::parse(schema.get()).ok()?;
        let (_, value) = single_member(&schema).filter(|(member, _)| member == "json")?;
        Some(value)
    });
    let mut wire = Extra::new();
    if let Some(schema) = schema {
        fields.take_field(&["inputSchema"])?;
        if !is_object_schema(schema.get()) {
            set_hint(&mut wire, "~inputSchema", "own");
        }
        function.parameters = Some(schema.into());
    }
    wire.extend(to_extras(fields.into_extra()));
    function.extra.set_wire_fields(FORMAT, wire);
    Ok(function)
}

fn is_object_schema(schema: &str) -> bool {
    let fields = Fields::parse(schema).unwrap_or_default();
    fields
        .get(&["type"])
        .is_some_and(|kind| kind.get() == "\"object\"")
}

fn parse_tool_choice(value: &RawValue) -> Result<ToolChoice, Error> {
    let fields = Fields::parse(value.get())?;
    let choice = single_member(&fields).and_then(|(member, value)| {
        let mut inner = Fields::parse(value.get()).ok()?;
        let name = inner.take_string(&["name"]).ok()?;
        let choice = match (member.as_str(), name) {
            ("auto", None) => ToolChoice::Auto,
            ("any", None) => ToolChoice::Required,
            ("tool", Some(name)) => ToolChoice::Function { name },
            _ => return None,
        };
        inner.is_empty().then_some(choice)
    });
    if choice.is_none() && fields.is_empty() {
        return Err(unexpected_value("`auto`, `any` or `tool`", value.get()));
    }
    Ok(choice.unwrap_or_else(|| ToolChoice::Other {
        format: FORMAT.to_owned(),
        raw: value.into(),
    }))
}

/// Writes `toolConfig`; `None` if nothing is offered.
pub(super) fn encode_tool_config(
    request: &Transcript,
    stored: &Extra,
    losses: &mut Losses,
) -> Option<String> {
    let tools = encode_tools(&request.tools, losses);
    let options = &request.options;
    if options.parallel_tool_calls == Some(false) {
        let why = "no word for one call at a time";
        losses.push("options.parallel_tool_calls", LossKind::Option, why);
    }
    if tools.is_empty() {
        if options.tool_choice.is_some() {
            let why = "a choice without tools is refused";
            losses.push("options.tool_choice", LossKind::Option, why);
        }
        return stored.get(TOOL_CONFIG).map(|raw| raw.get().to_owned());
    }
    let mut object = ObjectWriter::new();
    object.array("tools", tools);
    object.raw_if_some("toolChoice", encode_tool_choice(options, losses));
    if let Some(rest) = stored.get(TOOL_CONFIG).and_then(Raw::fields) {
        object.extra_fields(&rest.into_extra());
    }
    Some(object.finish())
}

fn encode_tools(tools: &[ToolDefinition], losses: &mut Losses) -> Vec<String> {
    let mut written = Vec::with_capacity(tools.len());
    for (index, tool) in tools.iter().enumerate() {
        let path = format!("tools[{index}]");
        match tool {
            ToolDefinition::Function(function) => {
                written.push(encode_function(function, &path, losses));
                append_cache_point(&mut written, &function.extra.wire_fields(FORMAT));
            }
            ToolDefinition::Provider(tool) if tool.format == FORMAT => {
                written.push(tool.raw.get().to_owned());
            }
            ToolDefinition::Provider(tool) => {
                let why = format!("`{}` is a tool of {}", tool.kind, tool.format);
                losses.push(path, LossKind::Tool, why);
            }
        }
    }
    written
}

fn encode_function(tool: &FunctionTool, path: &str, losses: &mut Losses) -> String {
    report_foreign_fields(&tool.extra, FORMAT, path, losses);
    let wire = tool.extra.wire_fields(FORMAT);
    let mut object = ObjectWriter::new();
    object.string("name", &NAME_RULE.sanitize_name(&tool.name, path, losses));
    let description = tool.description.as_deref();
    object.string_if_some("description", description.filter(|text| !text.is_empty()));
    let parameters = tool.parameters.as_ref();
    if parameters.is_some() || wire.get("inputSchema").is_none() {
        let schema = match parameters {
            Some(own) if hint(&wire, "~inputSchema").is_some() => own.get().to_owned(),
            parameters => encode_input_schema(parameters, path, losses),
        };
        object.raw("inputSchema", &format!(r#"{{"json":{schema}}}"#));
    }
    object.value_if_some("strict", tool.strict);
    object.extra_fields(&block_fields(&wire));
    format!(r#"{{"toolSpec":{}}}"#, object.finish())
}

/// The schema of the arguments; models want `"type": "object"` spelt out.
fn encode_input_schema(parameters: Option<&Raw>, path: &str, losses: &mut Losses) -> String {
    let Some(parameters) = parameters else {
        return ANY_OBJECT.to_owned();
    };
    let place = format!("{path}.parameters");
    let Some(text) = as_object(parameters.get()) else {
        let why = "a schema that is not an object becomes any object";
        losses.push(place, LossKind::Value, why);
        return ANY_OBJECT.to_owned();
    };
    if is_object_schema(text) {
        return text.to_owned();
    }
    let why = "a schema of arguments gets the type object";
    losses.push(place, LossKind::Value, why);
    let mut fields = Fields::parse(text).unwrap_or_default();
    // A type that stands there (null, a list) would contradict ours.
    let _replaced = fields.take_field(&["type"]);
    let mut object = ObjectWriter::new();
    object
        .string("type", "object")
        .extra_fields(&to_extras(fields.into_extra()));
    object.finish()
}

/// Writes `toolChoice`; `None` where the provider's default says the same.
fn encode_tool_choice(options: &RequestOptions, losses: &mut Losses) -> Option<String> {
    let why = match options.tool_choice.as_ref()? {
        ToolChoice::Other { format, raw } if format == FORMAT => {
            return Some(raw.get().to_owned());
        }
        ToolChoice::Auto => return Some(r#"{"auto":{}}"#.to_owned()),
        ToolChoice::Required => return Some(r#"{"any":{}}"#.to_owned()),
        ToolChoice::Function { name } => {
            let mut inner = ObjectWriter::new();
            let name = NAME_RULE.sanitize_name(name, "options.tool_choice", losses);
            inner.string("name", &name);
            return Some(format!(r#"{{"tool":{}}}"#, inner.finish()));
        }
        // The tools stay: a history with calls is refused without them.
        ToolChoice::None => "no word for a ban on tools; the model decides".to_owned(),
        ToolChoice::Other { format, .. } => format!("a choice of {format}; the model decides"),
    };
    losses.push("options.tool_choice", LossKind::Tool, why);
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::json::json_array;

    #[test]
    fn a_cache_point_belongs_to_the_function_before_it() {
        for text in [
            r#"[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object"}}}},{"cachePoint":{"type":"default","ttl":"1h"}}]"#,
            r#"[{"systemTool":{"name":"nova_grounding"}},{"cachePoint":{"type":"default"}}]"#,
            r#"[{"cachePoint":{"type":"default"}},{"cachePoint":{"type":"default"}}]"#,
        ] {
            let list = serde_json::from_str(text).unwrap();
            let tools = parse_tools(list).unwrap();
            let written = encode_tools(&tools, &mut Losses::default());
            assert_eq!(json_array(written), text);
        }
    }
}
