//! The tools offered.

use contexture_ir::{Error, Extra, Fields, FunctionTool, ProviderTool, Raw, ToolDefinition, quote};
use serde_json::value::RawValue;

use super::media;
use super::names::{Names, camel, peek, unexpected};
use super::schema::to_json_schema;
use super::words::FORMAT;
use crate::carry::{START, hint, keep, tell_foreign};
use crate::function_name::GEMINI;
use crate::json::{Object, array};
use crate::loss::{LossKind, Losses};

/// Reads `tools`.
pub(super) fn read(value: &RawValue) -> Result<Vec<ToolDefinition>, Error> {
    let groups: Vec<&RawValue> =
        serde_json::from_str(value.get()).map_err(|_| unexpected("an array", value.get()))?;
    let mut tools = Vec::new();
    for (index, group) in groups.into_iter().enumerate() {
        read_group(group, &mut tools).map_err(|error| error.at_index(index))?;
    }
    Ok(tools)
}

/// One element: functions, or a tool of the provider's, or both at once.
fn read_group(group: &RawValue, tools: &mut Vec<ToolDefinition>) -> Result<(), Error> {
    let mut fields = Fields::parse(group.get())?;
    let functions = peek(&fields, "functionDeclarations").filter(|list| list.get() != "[]");
    let Some(functions) = functions else {
        let kind = fields
            .iter()
            .next()
            .map_or_else(|| "tool".to_owned(), |(key, _)| camel(key));
        tools.push(ToolDefinition::Provider(ProviderTool {
            format: FORMAT.to_owned(),
            kind,
            raw: group.into(),
        }));
        return Ok(());
    };
    let mut names = Names::default();
    names.take(&mut fields, "functionDeclarations")?;
    let snake = names.spell("functionDeclarations") != "functionDeclarations";
    let list: Vec<&RawValue> = serde_json::from_str(functions.get())
        .map_err(|_| unexpected("an array", functions.get()).at("functionDeclarations"))?;
    let follows = matches!(tools.last(), Some(ToolDefinition::Function(_)));
    let mut start = Extra::new();
    if follows {
        hint(&mut start, START, "tool");
    }
    if snake {
        hint(&mut start, "~functions", "snake");
    }
    media::nest(&mut start, "(tool)", fields)?;
    for (index, function) in list.into_iter().enumerate() {
        let mut function = read_function(function)
            .map_err(|error| error.at_index(index).at("functionDeclarations"))?;
        if !start.is_empty() {
            let mut wire = function.extra.wire(FORMAT);
            wire.extend(std::mem::take(&mut start));
            function.extra.set_wire(FORMAT, wire);
        }
        tools.push(ToolDefinition::Function(function));
    }
    Ok(())
}

fn read_function(function: &RawValue) -> Result<FunctionTool, Error> {
    let mut fields = Fields::parse(function.get())?;
    let mut names = Names::default();
    let mut wire = Extra::new();
    let mut tool = FunctionTool {
        name: fields.need_string(&["name"])?,
        description: fields.take_string(&["description"])?,
        ..FunctionTool::default()
    };
    if let Some(schema) = names.take(&mut fields, "parametersJsonSchema")? {
        tool.parameters = Some(schema.into());
    } else if let Some(schema) = fields.take_present(&["parameters"])? {
        let schema = Raw::from(schema);
        tool.parameters = Some(to_json_schema(&schema));
        wire.set("~parameters", schema);
    }
    names.note(&mut wire);
    wire.extend(keep(fields.rest()));
    tool.extra.set_wire(FORMAT, wire);
    Ok(tool)
}

/// Writes `tools`; `None` if there are none.
pub(super) fn write(tools: &[ToolDefinition], losses: &mut Losses) -> Option<String> {
    let mut written: Vec<String> = Vec::new();
    let mut group: Option<Functions> = None;
    for (index, tool) in tools.iter().enumerate() {
        let path = format!("tools[{index}]");
        match tool {
            ToolDefinition::Function(function) => {
                let wire = function.extra.wire(FORMAT);
                if wire.get(START).is_some() {
                    written.extend(group.take().map(Functions::finish));
                }
                let group = group.get_or_insert_with(Functions::default);
                group.snake |= wire.get("~functions").is_some();
                group.beside.extend(media::nested(&wire, "(tool)"));
                group.list.push(one(function, wire, &path, losses));
            }
            ToolDefinition::Provider(tool) if tool.format == FORMAT => {
                written.extend(group.take().map(Functions::finish));
                written.push(tool.raw.get().to_owned());
            }
            ToolDefinition::Provider(tool) => {
                let why = format!("`{}` is a tool of {}", tool.kind, tool.format);
                losses.push(path, LossKind::Tool, why);
            }
        }
    }
    written.extend(group.map(Functions::finish));
    (!written.is_empty()).then(|| array(written))
}

/// One element of functions being made.
#[derive(Default)]
struct Functions {
    list: Vec<String>,
    snake: bool,
    beside: Extra,
}

impl Functions {
    fn finish(self) -> String {
        let name = if self.snake {
            "function_declarations"
        } else {
            "functionDeclarations"
        };
        let mut object = Object::new();
        object
            .renamed("functionDeclarations", name, &array(self.list))
            .carried(&self.beside);
        object.finish()
    }
}

fn one(tool: &FunctionTool, mut wire: Extra, path: &str, losses: &mut Losses) -> String {
    tell_foreign(&tool.extra, FORMAT, path, losses);
    if tool.strict == Some(true) {
        let why = "calls cannot be bound to the schema strictly";
        losses.push(format!("{path}.strict"), LossKind::Field, why);
    }
    wire.remove("(tool)");
    let names = Names::of(&wire);
    let mut object = Object::new();
    object.string("name", &GEMINI.write(&tool.name, path, losses));
    object.maybe(
        "description",
        tool.description.as_deref().map(quote).as_deref(),
    );
    if let Some(schema) = &tool.parameters {
        match wire
            .get("~parameters")
            .filter(|own| to_json_schema(own) == *schema)
        {
            Some(own) => object.raw("parameters", own.get()),
            None => {
                let name = names.spell("parametersJsonSchema");
                object.renamed("parametersJsonSchema", &name, schema.get())
            }
        };
    }
    object.carried(&wire);
    object.finish()
}
