//! Requests: what stands around the messages.

use contexture_ir::{Cancel, Error, Fields, Transcript};

use super::spec::FORMAT;
use super::{choice, encode, options, parse, tools};
use crate::Envelope;
use crate::model::format_extras::{report_foreign_fields_as, to_extras};
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};

pub(super) fn lift_request(
    mut fields: Fields<'_>,
    cancel: Option<&Cancel>,
) -> Result<Transcript, Error> {
    let mut transcript = Transcript {
        model: fields.take_string(&["model"])?,
        ..Transcript::default()
    };
    if fields
        .get(&["system"])
        .is_some_and(|system| system.get() != "[]")
        && let Some(system) = fields.take_present(&["system"])?
    {
        let message =
            parse::parse_system_prompt(system).map_err(|error| error.at_segment("system"))?;
        transcript.instructions.push(message);
    }
    if let Some(messages) = fields.take_field(&["messages"])? {
        transcript.items = parse::parse_messages(messages, cancel)
            .map_err(|error| error.at_segment("messages"))?;
    }
    if fields
        .get(&["tools"])
        .is_some_and(|tools| tools.get() != "[]")
        && let Some(value) = fields.take_present(&["tools"])?
    {
        transcript.tools = tools::parse_tools(value).map_err(|error| error.at_segment("tools"))?;
    }
    let (typed, mut stored) = options::parse_options(&mut fields)?;
    options::record_missing_max_tokens(&typed, &mut stored);
    stored.extend(to_extras(fields.into_extra()));
    transcript.options = typed;
    transcript.extra.set_wire_fields(FORMAT, stored);
    Ok(transcript)
}

pub(super) fn lower_envelope(request: &Transcript) -> Envelope {
    let mut losses = Losses::default();
    let stored = request.extra.wire_fields(FORMAT);
    let mut before = ObjectWriter::new();
    match &request.model {
        Some(model) => before.string("model", model),
        None => {
            losses.push(
                "model",
                LossKind::Value,
                "the provider demands a model; none is named",
            );
            before.string("model", "")
        }
    };
    let tools = tools::encode_tools(&request.tools, &mut losses);
    before.raw_if_some("tools", tools.as_ref());
    before.raw_if_some(
        "system",
        encode::encode_system_prompt(&request.instructions, &mut losses),
    );
    let mut after = ObjectWriter::new();
    options::encode_options(&request.options, &stored, &mut after, &mut losses);
    after.raw_if_some(
        "tool_choice",
        choice::encode_tool_choice(&request.options, tools.is_some(), &mut losses),
    );
    after
        .mark_written(&before, "messages")
        .extra_fields(&stored);
    report_foreign_fields_as(&request.extra, FORMAT, "", LossKind::Option, &mut losses);
    let after = match after.inner_json() {
        "" => "]}".to_owned(),
        members => format!("],{members}}}"),
    };
    Envelope {
        before: format!("{{{},\"messages\":[", before.inner_json()),
        lead: String::new(),
        after,
        losses: losses.into_vec(),
    }
}
