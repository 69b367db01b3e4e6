//! Tools, which of them the model may use, and the form of its answer.

use contexture_ir::{
    Error, Extra, Fields, FunctionTool, ProviderTool, Raw, ResponseFormat, ToolChoice,
    ToolDefinition,
};
use serde_json::value::RawValue;

use super::spec::{FORMAT, NAME};
use crate::model::format::Format;
use crate::model::format_extras::{hint, report_foreign_fields_as, set_hint, to_extras};
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};
use crate::openai::shared::NAME_RULE;
use crate::openai::shared::custom_tools::chat_custom_to_responses;
use crate::openai::shared::options;

/// The type of a tool that is a function.
const FUNCTION: &str = "function";
/// The hint of a tool that came without a type.
const TYPE: &str = "~type";
/// Arguments of a function that states none; this format demands a schema.
const NO_ARGUMENTS: &str = "{\"type\":\"object\",\"properties\":{}}";
/// The name of an answer's schema that has none; this format demands one.
const SCHEMA_NAME: &str = "response";
/// The other format of this provider.
const OTHER: Format = Format::OpenAiChat;

/// Reads `tools`; a tool that is not a function is stored whole.
pub(super) fn parse_tools(value: &RawValue) -> Result<Vec<ToolDefinition>, Error> {
    options::parse_tools(value, parse_tool)
}

fn parse_tool(text: &str) -> Result<ToolDefinition, Error> {
    let mut fields = Fields::parse(text)?;
    let kind = fields.take_string(&["type"])?;
    if let Some(kind) = kind.as_deref().filter(|kind| *kind != FUNCTION) {
        return Ok(ToolDefinition::Provider(ProviderTool {
            format: NAME.to_owned(),
            kind: kind.to_owned(),
            raw: Raw::parse(text)?,
        }));
    }
    let mut hints = Extra::new();
    // Hosts take a tool without a type for a function.
    if kind.is_none() {
        set_hint(&mut hints, TYPE, "absent");
    }
    // The writer adds both where they are missing; the hints say that the document did without.
    for (field, name) in [("parameters", "~parameters"), ("strict", "~strict")] {
        if fields.get(&[field]).is_none() {
            set_hint(&mut hints, name, "absent");
        }
    }
    let mut tool = FunctionTool {
        name: fields.need_string(&["name"])?,
        description: fields.take_string(&["description"])?,
        parameters: fields.take_present(&["parameters"])?.map(Raw::from),
        strict: fields.take_as(&["strict"], "a boolean")?,
        extra: Extra::new(),
    };
    hints.extend(to_extras(fields.into_extra()));
    tool.extra.set_wire_fields(NAME, hints);
    Ok(ToolDefinition::Function(tool))
}

/// Writes a tool; nothing, with a loss, if it is another provider's.
pub(super) fn encode_tool(
    tool: &ToolDefinition,
    path: &str,
    losses: &mut Losses,
) -> Option<String> {
    let tool = match tool {
        ToolDefinition::Function(tool) => tool,
        ToolDefinition::Provider(tool) if tool.format == NAME => {
            return Some(tool.raw.get().to_owned());
        }
        ToolDefinition::Provider(tool) => {
            if tool.format == OTHER.as_str()
                && let Some(json) = chat_custom_to_responses(&tool.raw, path, losses)
            {
                return Some(json);
            }
            let why = format!("`{}` is a tool of {}", tool.kind, tool.format);
            losses.push(path, LossKind::Tool, why);
            return None;
        }
    };
    report_foreign_fields_as(&tool.extra, NAME, path, LossKind::Field, losses);
    let wire = tool.extra.wire_fields(NAME);
    let unsaid = |field: &str, name: &str| wire.get(field).is_none() && hint(&wire, name).is_none();
    let mut object = ObjectWriter::new();
    let name = NAME_RULE.sanitize_name(&tool.name, path, losses);
    if hint(&wire, TYPE).is_none() {
        object.string("type", FUNCTION);
    }
    object.string("name", &name);
    object.string_if_some("description", tool.description.as_deref());
    match &tool.parameters {
        Some(schema) => {
            object.raw("parameters", schema.get());
        }
        // The format requires a schema; this one is of a function without arguments.
        None if unsaid("parameters", "~parameters") => {
            object.raw("parameters", NO_ARGUMENTS);
        }
        None => {}
    }
    match tool.strict {
        Some(strict) => {
            object.raw("strict", &strict.to_string());
        }
        // Unsaid means strict here and not strict elsewhere.
        None if unsaid("strict", "~strict") => {
            object.raw("strict", "false");
        }
        None => {}
    }
    object.extra_fields(&wire);
    Some(object.finish())
}

/// Reads `tool_choice`; a choice that not every format can express is stored whole.
pub(super) fn parse_tool_choice(value: &RawValue) -> ToolChoice {
    options::parse_tool_choice(value, FORMAT, |text| {
        let mut fields = Fields::parse(text).ok()?;
        let kind = fields.take_string(&["type"]).ok()??;
        let name = fields.take_string(&["name"]).ok()??;
        // Read only if no member is left over, because the typed choice has no place for one.
        (kind == "function" && fields.is_empty()).then_some(name)
    })
}

/// Writes `tool_choice`; nothing, with a loss, if only another format can say it.
pub(super) fn encode_tool_choice(choice: &ToolChoice, losses: &mut Losses) -> Option<String> {
    Some(match choice {
        ToolChoice::Auto => "\"auto\"".to_owned(),
        ToolChoice::None => "\"none\"".to_owned(),
        ToolChoice::Required => "\"required\"".to_owned(),
        ToolChoice::Function { name } => {
            let mut object = ObjectWriter::new();
            let name = NAME_RULE.sanitize_name(name, "options.tool_choice", losses);
            object.string("type", "function").string("name", &name);
            object.finish()
        }
        ToolChoice::Other { format, raw } if format == NAME => raw.get().to_owned(),
        ToolChoice::Other { format, raw } => {
            if format == OTHER.as_str()
                && let Some(json) = chat_custom_to_responses(raw, "options.tool_choice", losses)
            {
                return Some(json);
            }
            losses.push(
                "options.tool_choice",
                LossKind::Tool,
                format!("only {format} can say this choice"),
            );
            return None;
        }
    })
}

/// Reads `text.format`; `None` if it says more than every format can.
pub(super) fn parse_response_format(text: &str) -> Option<ResponseFormat> {
    let mut fields = Fields::parse(text).ok()?;
    let format = match fields.take_string(&["type"]).ok()??.as_str() {
        "text" => ResponseFormat::Text,
        "json_object" => ResponseFormat::JsonObject,
        "json_schema" => ResponseFormat::JsonSchema {
            name: Some(fields.take_string(&["name"]).ok()??),
            description: fields.take_string(&["description"]).ok()?,
            schema: fields.take_present(&["schema"]).ok()??.into(),
            strict: fields.take_as(&["strict"], "a boolean").ok()?,
        },
        _ => return None,
    };
    // Read only if no member is left over, because the typed format has no place for one.
    fields.is_empty().then_some(format)
}

/// Writes `text.format`; a schema without a name is called `response`.
pub(super) fn encode_response_format(format: &ResponseFormat) -> String {
    let mut object = ObjectWriter::new();
    match format {
        ResponseFormat::Text => {
            object.string("type", "text");
        }
        ResponseFormat::JsonObject => {
            object.string("type", "json_object");
        }
        ResponseFormat::JsonSchema {
            name,
            description,
            schema,
            strict,
        } => {
            object.string("type", "json_schema");
            // The provider requires a name here, while other formats have none.
            object.string("name", name.as_deref().unwrap_or(SCHEMA_NAME));
            object.string_if_some("description", description.as_deref());
            object.raw("schema", schema.get());
            object.value_if_some("strict", *strict);
        }
    }
    object.finish()
}
