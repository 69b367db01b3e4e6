//! The tools offered.

use contexture_ir::{Error, Fields, FunctionTool, ProviderTool, Raw, ToolDefinition};
use serde_json::value::RawValue;

use super::parse::unexpected_value;
use super::spec::FORMAT;
use super::spec::NAME_RULE;
use crate::model::format_extras::{report_foreign_fields, set_hint, to_extras};
use crate::model::json::{ObjectWriter, as_object, json_array};
use crate::model::loss::{LossKind, Losses};

/// The input schema of a function without parameters: any object.
const ANY_OBJECT: &str = "{\"type\":\"object\"}";

/// Reads the array `tools`; the provider's own tools are stored as JSON.
pub(super) fn parse_tools(value: &RawValue) -> Result<Vec<ToolDefinition>, Error> {
    let tools: Vec<&RawValue> =
        serde_json::from_str(value.get()).map_err(|_| unexpected_value("an array", value.get()))?;
    let read = |(index, tool)| parse_tool(tool).map_err(|e: Error| e.at_index(index));
    tools.into_iter().enumerate().map(read).collect()
}

fn parse_tool(tool: &RawValue) -> Result<ToolDefinition, Error> {
    let mut fields = Fields::parse(tool.get())?;
    let kind = fields.take_string(&["type"])?;
    if let Some(kind) = kind.as_deref()
        && kind != "custom"
    {
        return Ok(ToolDefinition::Provider(ProviderTool {
            format: FORMAT.to_owned(),
            kind: kind.to_owned(),
            raw: tool.into(),
        }));
    }
    let mut function = FunctionTool {
        name: fields.need_string(&["name"])?,
        description: fields.take_string(&["description"])?,
        parameters: fields.take_present(&["input_schema"])?.map(Raw::from),
        strict: fields.take_as(&["strict"], "a boolean")?,
        ..FunctionTool::default()
    };
    let mut wire = to_extras(fields.into_extra());
    if kind.is_some() {
        set_hint(&mut wire, "~type", "custom");
    }
    if function.parameters.is_none() {
        set_hint(&mut wire, "~input_schema", "absent");
    }
    function.extra.set_wire_fields(FORMAT, wire);
    Ok(ToolDefinition::Function(function))
}

/// Writes `tools`; `None` if there are none.
pub(super) fn encode_tools(tools: &[ToolDefinition], losses: &mut Losses) -> Option<String> {
    let mut written = Vec::with_capacity(tools.len());
    for (index, tool) in tools.iter().enumerate() {
        let path = format!("tools[{index}]");
        match tool {
            ToolDefinition::Function(function) => {
                written.push(encode_function(function, &path, losses))
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
    (!written.is_empty()).then(|| json_array(written))
}

fn encode_function(tool: &FunctionTool, path: &str, losses: &mut Losses) -> String {
    report_foreign_fields(&tool.extra, FORMAT, path, losses);
    let wire = tool.extra.wire_fields(FORMAT);
    let mut object = ObjectWriter::new();
    if wire.get("~type").is_some() {
        object.string("type", "custom");
    }
    object.string("name", &NAME_RULE.sanitize_name(&tool.name, path, losses));
    object.string_if_some("description", tool.description.as_deref());
    if tool.parameters.is_some() || wire.get("~input_schema").is_none() {
        object.raw(
            "input_schema",
            &encode_input_schema(tool.parameters.as_ref(), path, losses),
        );
    }
    object.value_if_some("strict", tool.strict);
    object.extra_fields(&wire);
    object.finish()
}

/// The schema of the arguments; the provider wants `"type": "object"` spelt out.
fn encode_input_schema(parameters: Option<&Raw>, path: &str, losses: &mut Losses) -> String {
    let Some(parameters) = parameters else {
        return ANY_OBJECT.to_owned();
    };
    let place = format!("{path}.parameters");
    let Some(text) = as_object(parameters.get()) else {
        losses.push(
            place,
            LossKind::Value,
            "a schema that is not an object becomes any object",
        );
        return ANY_OBJECT.to_owned();
    };
    let mut fields = Fields::parse(text).unwrap_or_default();
    if fields
        .get(&["type"])
        .is_some_and(|kind| kind.get() == "\"object\"")
    {
        return text.to_owned();
    }
    losses.push(
        place,
        LossKind::Value,
        "a schema of arguments gets the type object",
    );
    // A type that stands there (null, a list) would contradict ours.
    let _replaced = fields.take_field(&["type"]);
    let mut object = ObjectWriter::new();
    object
        .string("type", "object")
        .extra_fields(&to_extras(fields.into_extra()));
    object.finish()
}
