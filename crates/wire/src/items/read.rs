//! Documents of items, read.

use contexture_ir::{
    Cancel, Error, Extra, Fields, FinishReason, FunctionTool, Item, Message, ProviderTool, Raw,
    ReasoningOptions, RequestOptions, ResponseFormat, ResponseInfo, ToolChoice, ToolDefinition,
    Transcript, Usage,
};
use serde_json::Number;
use serde_json::value::RawValue;

use crate::Lifted;
use crate::model::conversion::DocumentKind;
use crate::model::error::WireError;
use crate::model::format::Format;
use crate::model::loss::{LossKind, Losses};

pub(crate) fn lift(text: &str, cancel: Option<&Cancel>) -> Result<Lifted, WireError> {
    let invalid = |source| WireError::Invalid {
        format: Format::Items,
        source,
    };
    if text.trim_start().starts_with('[') {
        return Ok(Lifted {
            kind: DocumentKind::Messages,
            transcript: transcript_from_items(
                Item::parse_all_unless(text, cancel).map_err(invalid)?,
            ),
            losses: Vec::new(),
        });
    }
    let fields = Fields::parse(text).ok();
    // An object without `items` is some other document, not an empty one.
    let Some(fields) = fields.filter(|fields| fields.get(&["items"]).is_some()) else {
        return Err(WireError::WrongShape {
            format: Format::Items,
            expected: "an array of items or an object with `items`",
        });
    };
    let mut losses = Losses::default();
    let transcript = parse_transcript(fields, cancel, &mut losses).map_err(invalid)?;
    Ok(Lifted {
        // Only an answer says how it ended; everything else is read as a request.
        kind: if transcript.response.is_some() {
            DocumentKind::Response
        } else {
            DocumentKind::Request
        },
        transcript,
        losses: losses.into_vec(),
    })
}

fn transcript_from_items(items: Vec<Item>) -> Transcript {
    let mut transcript = Transcript::default();
    for item in items {
        match item {
            Item::Message(message)
                // The host's messages are instructions at the beginning; later ones keep their
                // place.
                if message.role.is_instruction() && transcript.items.is_empty() =>
            {
                transcript.instructions.push(message);
            }
            other => transcript.items.push(other),
        }
    }
    transcript
}

fn parse_transcript(
    mut fields: Fields<'_>,
    cancel: Option<&Cancel>,
    losses: &mut Losses,
) -> Result<Transcript, Error> {
    let mut transcript = Transcript {
        model: fields.take_string(&["model"])?,
        ..Transcript::default()
    };
    if let Some(list) = fields.take_present(&["instructions"])? {
        transcript.instructions = parse_instructions(list.get())?;
    }
    if let Some(list) = fields.take_present(&["items"])? {
        transcript.items = Item::parse_all_unless(list.get(), cancel)
            .map_err(|error| error.at_segment("items"))?;
    }
    if let Some(list) = fields.take_present(&["tools"])? {
        transcript.tools = parse_array(list, "an array of tools", parse_tool)
            .map_err(|e| e.at_segment("tools"))?;
    }
    if let Some(value) = fields.take_present(&["options"])? {
        let read = Fields::parse(value.get()).and_then(|fields| parse_options(fields, losses));
        transcript.options = read.map_err(|error| error.at_segment("options"))?;
    }
    if let Some(value) = fields.take_present(&["response"])? {
        let read = Fields::parse(value.get()).and_then(|fields| parse_response(fields, losses));
        transcript.response = Some(read.map_err(|error| error.at_segment("response"))?);
    }
    // Unknown members of the document have a place; those of its parts do not and are reported.
    transcript.extra = fields.into_extra();
    Ok(transcript)
}

fn parse_array<T>(
    list: &RawValue,
    expected: &'static str,
    read: impl Fn(&str) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let list: Vec<&RawValue> =
        serde_json::from_str(list.get()).map_err(|_| unexpected_value(expected, list.get()))?;
    let read = |(index, value): (usize, &&RawValue)| {
        read(value.get()).map_err(|error| error.at_index(index))
    };
    list.iter().enumerate().map(read).collect()
}

fn unexpected_value(expected: &'static str, found: &str) -> Error {
    Error::Unexpected {
        path: String::new(),
        expected,
        found: found.chars().take(60).collect(),
    }
}

fn parse_instructions(list: &str) -> Result<Vec<Message>, Error> {
    let items = Item::parse_all(list).map_err(|error| error.at_segment("instructions"))?;
    let message = |(index, item): (usize, Item)| match item {
        Item::Message(message) => Ok(message),
        other => Err(unexpected_value("a message", other.kind())
            .at_index(index)
            .at_segment("instructions")),
    };
    items.into_iter().enumerate().map(message).collect()
}

fn parse_tool(text: &str) -> Result<ToolDefinition, Error> {
    let mut fields = Fields::parse(text)?;
    match fields.need_string(&["type"])?.as_str() {
        "function" => Ok(ToolDefinition::Function(FunctionTool {
            name: fields.need_string(&["name"])?,
            description: fields.take_string(&["description"])?,
            parameters: fields.take_present(&["parameters"])?.map(Raw::from),
            strict: fields.take_as(&["strict"], "a boolean")?,
            // Last, so that it holds only what no field above has taken.
            extra: fields.into_extra(),
        })),
        "provider" => Ok(ToolDefinition::Provider(ProviderTool {
            format: fields.need_string(&["format"])?,
            kind: fields.need_string(&["kind"])?,
            raw: fields
                .take_field(&["raw"])?
                .map(Raw::from)
                .ok_or_else(|| missing_field("raw"))?,
        })),
        other => Err(unexpected_value("`function` or `provider`", other).at_segment("type")),
    }
}

fn missing_field(field: &'static str) -> Error {
    Error::Missing {
        path: String::new(),
        field,
    }
}

fn parse_options(mut fields: Fields<'_>, losses: &mut Losses) -> Result<RequestOptions, Error> {
    let number =
        |fields: &mut Fields<'_>, name: &'static str| fields.take_as::<Number>(&[name], "a number");
    let read = RequestOptions {
        max_output_tokens: fields.take_as(&["max_output_tokens"], "a whole number")?,
        temperature: number(&mut fields, "temperature")?,
        top_p: number(&mut fields, "top_p")?,
        stop: fields
            .take_as(&["stop"], "an array of strings")?
            .unwrap_or_default(),
        tool_choice: parse_optional(&mut fields, "tool_choice", parse_tool_choice)?,
        parallel_tool_calls: fields.take_as(&["parallel_tool_calls"], "a boolean")?,
        response_format: parse_optional(&mut fields, "response_format", parse_response_format)?,
        reasoning: parse_optional(&mut fields, "reasoning", |text| {
            let mut fields = Fields::parse(text)?;
            Ok(ReasoningOptions {
                effort: fields.take_string(&["effort"])?,
                budget_tokens: fields.take_as(&["budget_tokens"], "a whole number")?,
                summary: fields.take_string(&["summary"])?,
            })
        })?,
        stream: fields.take_as(&["stream"], "a boolean")?,
    };
    report_unknown_fields(&fields, "options", losses);
    Ok(read)
}

fn report_unknown_fields(fields: &Fields<'_>, path: &str, losses: &mut Losses) {
    for (name, _) in fields.iter() {
        let why = "not a field of this format";
        losses.push(format!("{path}.{name}"), LossKind::Field, why);
    }
}

fn parse_optional<T>(
    fields: &mut Fields<'_>,
    name: &'static str,
    read: impl FnOnce(&str) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    let Some(value) = fields.take_present(&[name])? else {
        return Ok(None);
    };
    read(value.get())
        .map(Some)
        .map_err(|error| error.at_segment(name))
}

fn parse_tool_choice(text: &str) -> Result<ToolChoice, Error> {
    match text {
        "\"auto\"" => return Ok(ToolChoice::Auto),
        "\"none\"" => return Ok(ToolChoice::None),
        "\"required\"" => return Ok(ToolChoice::Required),
        _ => {}
    }
    let expected = "`auto`, `none`, `required` or an object";
    let mut fields = Fields::parse(text).map_err(|_| unexpected_value(expected, text))?;
    match fields.need_string(&["type"])?.as_str() {
        "function" => Ok(ToolChoice::Function {
            name: fields.need_string(&["name"])?,
        }),
        "other" => Ok(ToolChoice::Other {
            format: fields.need_string(&["format"])?,
            raw: fields
                .take_field(&["raw"])?
                .map(Raw::from)
                .ok_or_else(|| missing_field("raw"))?,
        }),
        other => Err(unexpected_value("`function` or `other`", other).at_segment("type")),
    }
}

fn parse_response_format(text: &str) -> Result<ResponseFormat, Error> {
    let mut fields = Fields::parse(text)?;
    match fields.need_string(&["type"])?.as_str() {
        "text" => Ok(ResponseFormat::Text),
        "json_object" => Ok(ResponseFormat::JsonObject),
        "json_schema" => Ok(ResponseFormat::JsonSchema {
            name: fields.take_string(&["name"])?,
            description: fields.take_string(&["description"])?,
            schema: fields
                .take_field(&["schema"])?
                .map(Raw::from)
                .ok_or_else(|| missing_field("schema"))?,
            strict: fields.take_as(&["strict"], "a boolean")?,
        }),
        other => Err(
            unexpected_value("`text`, `json_object` or `json_schema`", other).at_segment("type"),
        ),
    }
}

fn parse_response(mut fields: Fields<'_>, losses: &mut Losses) -> Result<ResponseInfo, Error> {
    let read = ResponseInfo {
        id: fields.take_string(&["id"])?,
        finish: parse_optional(&mut fields, "finish", parse_finish_reason)?,
        usage: parse_optional(&mut fields, "usage", |text| {
            parse_usage(Fields::parse(text)?, losses)
        })?,
    };
    report_unknown_fields(&fields, "response", losses);
    Ok(read)
}

fn parse_finish_reason(text: &str) -> Result<FinishReason, Error> {
    Ok(match text {
        "\"stop\"" => FinishReason::Stop,
        "\"tool_calls\"" => FinishReason::ToolCalls,
        "\"length\"" => FinishReason::Length,
        "\"content_filter\"" => FinishReason::ContentFilter,
        other => {
            let expected = "`stop`, `tool_calls`, `length`, `content_filter` or an object";
            // A reason that only one provider knows stands in an object, apart from the known
            // words.
            let mut fields = Fields::parse(other).map_err(|_| unexpected_value(expected, other))?;
            FinishReason::Other(fields.need_string(&["other"])?)
        }
    })
}

fn parse_usage(mut fields: Fields<'_>, losses: &mut Losses) -> Result<Usage, Error> {
    let tokens = |fields: &mut Fields<'_>, name: &'static str| {
        fields.take_as::<u64>(&[name], "a whole number")
    };
    let read = Usage {
        input_tokens: tokens(&mut fields, "input_tokens")?,
        output_tokens: tokens(&mut fields, "output_tokens")?,
        total_tokens: tokens(&mut fields, "total_tokens")?,
        cache_read_tokens: tokens(&mut fields, "cache_read_tokens")?,
        cache_write_tokens: tokens(&mut fields, "cache_write_tokens")?,
        reasoning_tokens: tokens(&mut fields, "reasoning_tokens")?,
        extra: fields
            .take_as::<Extra>(&["extra"], "an object")?
            .unwrap_or_default(),
    };
    report_unknown_fields(&fields, "response.usage", losses);
    Ok(read)
}
