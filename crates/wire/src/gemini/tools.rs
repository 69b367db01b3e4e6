//! The tools offered.

use contexture_ir::{Error, Extra, Fields, FunctionTool, ProviderTool, Raw, ToolDefinition};
use serde_json::value::RawValue;

use super::media;
use super::names::{SnakeCaseFields, peek_field, to_camel_case, unexpected_value};
use super::schema::to_json_schema;
use super::spec::FORMAT;
use super::spec::NAME_RULE;
use crate::model::format_extras::{START, report_foreign_fields, set_hint, to_extras};
use crate::model::json::{ObjectWriter, json_array};
use crate::model::loss::{LossKind, Losses};

/// The hint of a request whose `tools` are one object, which the provider reads as a list of one.
const TOOLS: &str = "~tools";

/// Reads the array `tools`; the provider's own tools are stored as JSON.
pub(super) fn parse_tools(
    value: &RawValue,
    kept: &mut Extra,
) -> Result<Vec<ToolDefinition>, Error> {
    let groups: Vec<&RawValue> = if value.get().starts_with('{') {
        set_hint(kept, TOOLS, "object");
        vec![value]
    } else {
        serde_json::from_str(value.get()).map_err(|_| unexpected_value("an array", value.get()))?
    };
    let mut tools = Vec::new();
    for (index, group) in groups.into_iter().enumerate() {
        parse_tool_group(group, &mut tools).map_err(|error| error.at_index(index))?;
    }
    Ok(tools)
}

/// Reads one element of `tools`: functions, a tool of the provider, or both.
fn parse_tool_group(group: &RawValue, tools: &mut Vec<ToolDefinition>) -> Result<(), Error> {
    let mut fields = Fields::parse(group.get())?;
    let functions = peek_field(&fields, "functionDeclarations").filter(|list| list.get() != "[]");
    let Some(functions) = functions else {
        let kind = fields
            .iter()
            .next()
            .map_or_else(|| "tool".to_owned(), |(key, _)| to_camel_case(key));
        tools.push(ToolDefinition::Provider(ProviderTool {
            format: FORMAT.to_owned(),
            kind,
            raw: group.into(),
        }));
        return Ok(());
    };
    let mut names = SnakeCaseFields::default();
    names.take_field(&mut fields, "functionDeclarations")?;
    let snake = names.spelled_name("functionDeclarations") != "functionDeclarations";
    let list: Vec<&RawValue> = serde_json::from_str(functions.get()).map_err(|_| {
        unexpected_value("an array", functions.get()).at_segment("functionDeclarations")
    })?;
    let follows = matches!(tools.last(), Some(ToolDefinition::Function(_)));
    let mut start = Extra::new();
    if follows {
        set_hint(&mut start, START, "tool");
    }
    if snake {
        set_hint(&mut start, "~functions", "snake");
    }
    media::store_nested(&mut start, "(tool)", fields)?;
    for (index, function) in list.into_iter().enumerate() {
        let mut function = parse_function(function)
            .map_err(|error| error.at_index(index).at_segment("functionDeclarations"))?;
        if !start.is_empty() {
            let mut wire = function.extra.wire_fields(FORMAT);
            wire.extend(std::mem::take(&mut start));
            function.extra.set_wire_fields(FORMAT, wire);
        }
        tools.push(ToolDefinition::Function(function));
    }
    Ok(())
}

fn parse_function(function: &RawValue) -> Result<FunctionTool, Error> {
    let mut fields = Fields::parse(function.get())?;
    let mut names = SnakeCaseFields::default();
    let mut wire = Extra::new();
    let mut tool = FunctionTool {
        name: fields.need_string(&["name"])?,
        description: fields.take_string(&["description"])?,
        ..FunctionTool::default()
    };
    if let Some(schema) = names.take_field(&mut fields, "parametersJsonSchema")? {
        tool.parameters = Some(schema.into());
    } else if let Some(schema) = fields.take_present(&["parameters"])? {
        let schema = Raw::from(schema);
        tool.parameters = Some(to_json_schema(&schema));
        wire.set("~parameters", schema);
    }
    names.save_to(&mut wire);
    wire.extend(to_extras(fields.into_extra()));
    tool.extra.set_wire_fields(FORMAT, wire);
    Ok(tool)
}

/// Writes `tools`, a single one as an object if it came so; `None` if there are none.
pub(super) fn encode_tools(
    tools: &[ToolDefinition],
    kept: &Extra,
    losses: &mut Losses,
) -> Option<String> {
    let written = encode_tool_groups(tools, losses);
    match written.as_slice() {
        [] => None,
        [one] if kept.get(TOOLS).is_some() => Some(one.clone()),
        many => Some(json_array(many)),
    }
}

/// Writes the elements of `tools`.
fn encode_tool_groups(tools: &[ToolDefinition], losses: &mut Losses) -> Vec<String> {
    let mut written: Vec<String> = Vec::new();
    let mut group: Option<FunctionGroup> = None;
    for (index, tool) in tools.iter().enumerate() {
        let path = format!("tools[{index}]");
        match tool {
            ToolDefinition::Function(function) => {
                let wire = function.extra.wire_fields(FORMAT);
                // The document had this function in another element of `tools`.
                if wire.get(START).is_some() {
                    written.extend(group.take().map(FunctionGroup::finish));
                }
                let group = group.get_or_insert_with(FunctionGroup::default);
                group.snake |= wire.get("~functions").is_some();
                group.extra.extend(media::nested_fields(&wire, "(tool)"));
                group
                    .list
                    .push(encode_function(function, wire, &path, losses));
            }
            // The order of tools is part of the cache key, so the functions before it are written
            // first.
            ToolDefinition::Provider(tool) if tool.format == FORMAT => {
                written.extend(group.take().map(FunctionGroup::finish));
                written.push(tool.raw.get().to_owned());
            }
            ToolDefinition::Provider(tool) => {
                let why = format!("`{}` is a tool of {}", tool.kind, tool.format);
                losses.push(path, LossKind::Tool, why);
            }
        }
    }
    written.extend(group.map(FunctionGroup::finish));
    written
}

/// One element of functions being made.
#[derive(Default)]
struct FunctionGroup {
    list: Vec<String>,
    snake: bool,
    extra: Extra,
}

impl FunctionGroup {
    fn finish(self) -> String {
        let name = if self.snake {
            "function_declarations"
        } else {
            "functionDeclarations"
        };
        let mut object = ObjectWriter::new();
        object
            .raw_as("functionDeclarations", name, &json_array(self.list))
            .extra_fields(&self.extra);
        object.finish()
    }
}

fn encode_function(
    tool: &FunctionTool,
    mut wire: Extra,
    path: &str,
    losses: &mut Losses,
) -> String {
    report_foreign_fields(&tool.extra, FORMAT, path, losses);
    if tool.strict == Some(true) {
        let why = "calls cannot be bound to the schema strictly";
        losses.push(format!("{path}.strict"), LossKind::Field, why);
    }
    wire.remove("(tool)");
    let names = SnakeCaseFields::from_wire(&wire);
    let mut object = ObjectWriter::new();
    object.string("name", &NAME_RULE.sanitize_name(&tool.name, path, losses));
    object.string_if_some("description", tool.description.as_deref());
    if let Some(schema) = &tool.parameters {
        match wire
            .get("~parameters")
            // The provider's own schema form is written back only while it still means the item's
            // schema.
            .filter(|own| to_json_schema(own) == *schema)
        {
            Some(own) => object.raw("parameters", own.get()),
            None => {
                let name = names.spelled_name("parametersJsonSchema");
                object.raw_as("parametersJsonSchema", &name, schema.get())
            }
        };
    }
    object.extra_fields(&wire);
    object.finish()
}
