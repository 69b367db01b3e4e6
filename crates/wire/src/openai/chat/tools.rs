//! Tools, and which of them the model may use.

use contexture_ir::{
    Error, Fields, FunctionTool, ProviderTool, Raw, ResponseFormat, ToolChoice, ToolDefinition,
};
use serde_json::value::RawValue;

use super::content::extra_from_wire;
use super::spec::{FORMAT, NAME};
use crate::model::format::Format;
use crate::model::format_extras::{hint, report_foreign_fields_as, set_hint, to_extras};
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};
use crate::openai::shared::NAME_RULE;
use crate::openai::shared::custom_tools::responses_custom_to_chat;
use crate::openai::shared::options;
use crate::openai::shared::{strip_key_prefix, with_key_prefix, without_key_prefixes};

/// The type of a tool that is a function, and the member with its definition.
const FUNCTION: &str = "function";
/// The hint of a tool that came without a type.
const TYPE: &str = "~type";
/// The prefix of a tool's fields that stand beside its `function`.
const TOOL: &str = "tool.";
/// The name of a schema that has none; Chat demands one.
const SCHEMA_NAME: &str = "response";
/// The other format of this provider.
const OTHER: Format = Format::OpenAiResponses;

/// Reads `tools`; a tool that is not a plain function is stored whole.
pub(super) fn parse_tools(value: &RawValue) -> Result<Vec<ToolDefinition>, Error> {
    options::parse_tools(value, parse_tool)
}

fn parse_tool(text: &str) -> Result<ToolDefinition, Error> {
    let mut fields = Fields::parse(text)?;
    let kind = fields.take_string(&["type"])?;
    // Hosts take a tool without a type for a function.
    let is_function = kind.as_deref().is_none_or(|kind| kind == FUNCTION);
    let function = match fields.take_present(&[FUNCTION])? {
        Some(function) if is_function => function,
        // Also a function without its definition: what cannot be read is passed on as it came.
        _ => {
            return Ok(ToolDefinition::Provider(ProviderTool {
                format: NAME.to_owned(),
                kind: kind.unwrap_or_else(|| FUNCTION.to_owned()),
                raw: Raw::parse(text)?,
            }));
        }
    };
    let mut tool = parse_function(function.get()).map_err(|error| error.at_segment(FUNCTION))?;
    let mut wire = tool.extra.wire_fields(NAME);
    if kind.is_none() {
        set_hint(&mut wire, TYPE, "absent");
    }
    // The prefix keeps members beside `function` apart from those inside it.
    wire.extend(with_key_prefix(TOOL, fields.into_extra()).collect());
    tool.extra = extra_from_wire(wire);
    Ok(ToolDefinition::Function(tool))
}

/// A function as it stands inside a tool, or in the older `functions`.
pub(super) fn parse_function(text: &str) -> Result<FunctionTool, Error> {
    let mut fields = Fields::parse(text)?;
    Ok(FunctionTool {
        name: fields.need_string(&["name"])?,
        description: fields.take_string(&["description"])?,
        parameters: fields.take_present(&["parameters"])?.map(Raw::from),
        strict: fields.take_as(&["strict"], "a boolean")?,
        extra: extra_from_wire(to_extras(fields.into_extra())),
    })
}

/// Writes a tool; nothing, with a loss, if it is another provider's.
pub(super) fn encode_tool(
    tool: &ToolDefinition,
    path: &str,
    losses: &mut Losses,
) -> Option<String> {
    match tool {
        ToolDefinition::Provider(tool) if tool.format == NAME => Some(tool.raw.get().to_owned()),
        ToolDefinition::Provider(tool) => {
            // Both formats of this provider know custom tools, but write them differently.
            if tool.format == OTHER.as_str()
                && let Some(json) = responses_custom_to_chat(&tool.raw, path, losses)
            {
                return Some(json);
            }
            let why = format!("`{}` is a tool of {}", tool.kind, tool.format);
            losses.push(path, LossKind::Tool, why);
            None
        }
        ToolDefinition::Function(tool) => {
            let function = encode_function(tool, path, losses);
            let wire = tool.extra.wire_fields(NAME);
            let mut object = ObjectWriter::new();
            if hint(&wire, TYPE).is_none() {
                object.string("type", FUNCTION);
            }
            object.raw(FUNCTION, &function);
            object.extra_fields(&strip_key_prefix(TOOL, &wire));
            Some(object.finish())
        }
    }
}

/// Writes what stands inside a tool, or in the older `functions`.
pub(super) fn encode_function(tool: &FunctionTool, path: &str, losses: &mut Losses) -> String {
    report_foreign_fields_as(&tool.extra, NAME, path, LossKind::Field, losses);
    let mut object = ObjectWriter::new();
    object.string("name", &NAME_RULE.sanitize_name(&tool.name, path, losses));
    object.string_if_some("description", tool.description.as_deref());
    object.raw_if_some("parameters", tool.parameters.as_ref().map(Raw::get));
    object.value_if_some("strict", tool.strict);
    object.extra_fields(&without_key_prefixes(
        &[TOOL],
        &tool.extra.wire_fields(NAME),
    ));
    object.finish()
}

/// Reads `tool_choice`; a choice that not every format can express is stored whole.
pub(super) fn parse_tool_choice(value: &RawValue) -> ToolChoice {
    options::parse_tool_choice(value, FORMAT, |text| {
        let mut fields = Fields::parse(text).ok()?;
        let kind = fields.take_string(&["type"]).ok()??;
        let function = fields.take_field(&["function"]).ok()??;
        let mut inner = Fields::parse(function.get()).ok()?;
        let name = inner.take_string(&["name"]).ok()??;
        // Read only if no member is left over, because the typed choice has no place for one.
        (kind == "function" && fields.is_empty() && inner.is_empty()).then_some(name)
    })
}

/// Writes `tool_choice`; nothing, with a loss, if only another format can say it.
pub(super) fn encode_tool_choice(choice: &ToolChoice, losses: &mut Losses) -> Option<String> {
    Some(match choice {
        ToolChoice::Auto => "\"auto\"".to_owned(),
        ToolChoice::None => "\"none\"".to_owned(),
        ToolChoice::Required => "\"required\"".to_owned(),
        ToolChoice::Function { name } => {
            let mut function = ObjectWriter::new();
            function.string(
                "name",
                &NAME_RULE.sanitize_name(name, "options.tool_choice", losses),
            );
            let mut object = ObjectWriter::new();
            object
                .string("type", "function")
                .raw("function", &function.finish());
            object.finish()
        }
        ToolChoice::Other { format, raw } if format == NAME => raw.get().to_owned(),
        ToolChoice::Other { format, raw } => {
            if format == OTHER.as_str()
                && let Some(json) = responses_custom_to_chat(raw, "options.tool_choice", losses)
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

/// Reads `response_format`; `None` if it says more than every format can.
pub(super) fn parse_response_format(value: &RawValue) -> Option<ResponseFormat> {
    let mut fields = Fields::parse(value.get()).ok()?;
    let kind = fields.take_string(&["type"]).ok()??;
    if kind != "json_schema" {
        return match kind.as_str() {
            "text" if fields.is_empty() => Some(ResponseFormat::Text),
            "json_object" if fields.is_empty() => Some(ResponseFormat::JsonObject),
            _ => None,
        };
    }
    let schema = fields.take_field(&["json_schema"]).ok()??;
    let mut inner = Fields::parse(schema.get()).ok()?;
    let read = ResponseFormat::JsonSchema {
        name: Some(inner.take_string(&["name"]).ok()??),
        description: inner.take_string(&["description"]).ok()?,
        schema: inner.take_present(&["schema"]).ok()??.into(),
        strict: inner.take_as(&["strict"], "a boolean").ok()?,
    };
    // Read only if no member is left over, because the typed format has no place for one.
    (fields.is_empty() && inner.is_empty()).then_some(read)
}

/// Writes `response_format`; a schema without a name is called `response`.
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
            let mut inner = ObjectWriter::new();
            // The provider requires a name here, while other formats have none.
            inner.string("name", name.as_deref().unwrap_or(SCHEMA_NAME));
            inner.string_if_some("description", description.as_deref());
            inner.raw("schema", schema.get());
            inner.value_if_some("strict", *strict);
            object
                .string("type", "json_schema")
                .raw("json_schema", &inner.finish());
        }
    }
    object.finish()
}
