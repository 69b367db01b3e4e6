//! Requests: what stands around the contents.

use contexture_ir::{Cancel, Error, Extra, Fields, Transcript};

use super::names::SnakeCaseFields;
use super::spec::FORMAT;
use super::{config, encode, parse, tools};
use crate::Envelope;
use crate::model::format_extras::{report_foreign_fields_as, set_hint, to_extras};
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};

pub(super) fn lift_request(
    mut fields: Fields<'_>,
    cancel: Option<&Cancel>,
) -> Result<Transcript, Error> {
    let mut names = SnakeCaseFields::default();
    let mut kept = Extra::new();
    let mut transcript = Transcript {
        model: fields.take_string(&["model"])?,
        ..Transcript::default()
    };
    if transcript.model.is_some() {
        set_hint(&mut kept, "~model", "body");
    }
    if let Some(system) = names.take_field(&mut fields, "systemInstruction")? {
        let message = parse::parse_system_instruction(system)
            .map_err(|error| error.at_segment("systemInstruction"))?;
        if message.content.is_empty() {
            kept.set("systemInstruction", system.into());
        } else {
            transcript.instructions.push(message);
        }
    }
    if let Some(contents) = fields.take_field(&["contents"])? {
        transcript.items = parse::parse_contents(contents, cancel)
            .map_err(|error| error.at_segment("contents"))?;
    }
    if fields
        .get(&["tools"])
        .is_some_and(|tools| tools.get() != "[]")
        && let Some(value) = fields.take_present(&["tools"])?
    {
        transcript.tools =
            tools::parse_tools(value, &mut kept).map_err(|error| error.at_segment("tools"))?;
    }
    let options = &mut transcript.options;
    if let Some(value) = names.take_field(&mut fields, "toolConfig")? {
        config::parse_tool_config(value, options, &mut names, &mut kept)
            .map_err(|error| error.at_segment("toolConfig"))?;
    }
    if let Some(value) = names.take_field(&mut fields, "generationConfig")? {
        config::parse_generation_config(value, options, &mut names, &mut kept)
            .map_err(|error| error.at_segment("generationConfig"))?;
    }
    names.save_to(&mut kept);
    kept.extend(to_extras(fields.into_extra()));
    transcript.extra.set_wire_fields(FORMAT, kept);
    Ok(transcript)
}

pub(super) fn lower_envelope(request: &Transcript) -> Envelope {
    let mut losses = Losses::default();
    let kept = request.extra.wire_fields(FORMAT);
    let names = SnakeCaseFields::from_wire(&kept);
    let mut before = ObjectWriter::new();
    if let Some(model) = request
        .model
        .as_deref()
        .filter(|_| kept.get("~model").is_some())
    {
        before.string("model", model);
    }
    let tools = tools::encode_tools(&request.tools, &kept, &mut losses);
    before.raw_if_some("tools", tools.as_ref());
    if let Some(system) = encode::encode_system_instruction(&request.instructions, &mut losses) {
        let key = "systemInstruction";
        before.raw_as(key, &names.spelled_name(key), &system);
    }
    let mut after = ObjectWriter::new();
    if let Some(json) = config::encode_tool_config(
        &request.options,
        tools.is_some(),
        &names,
        &kept,
        &mut losses,
    ) {
        after.raw_as("toolConfig", &names.spelled_name("toolConfig"), &json);
    }
    if let Some(json) = config::encode_generation_config(request, &names, &kept, &mut losses) {
        after.raw_as(
            "generationConfig",
            &names.spelled_name("generationConfig"),
            &json,
        );
    }
    after.mark_written(&before, "contents").extra_fields(&kept);
    report_foreign_fields_as(&request.extra, FORMAT, "", LossKind::Option, &mut losses);
    let comma = if before.is_empty() { "" } else { "," };
    let after = match after.inner_json() {
        "" => "]}".to_owned(),
        members => format!("],{members}}}"),
    };
    Envelope {
        before: format!("{{{}{comma}\"contents\":[", before.inner_json()),
        lead: String::new(),
        after,
        losses: losses.into_vec(),
    }
}
