//! Requests: what stands around the messages.

use contexture_ir::{Cancel, Error, Extra, Fields, Transcript};

use super::spec::FORMAT;
use super::{encode, options, parse, tools};
use crate::Envelope;
use crate::model::format_extras::{hint, report_foreign_fields_as, set_hint, to_extras};
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};

pub(super) fn lift_request(
    mut fields: Fields<'_>,
    cancel: Option<&Cancel>,
) -> Result<Transcript, Error> {
    let mut stored = Extra::new();
    let mut transcript = Transcript {
        // Only skeletons of the AWS tools have the model in the body.
        model: fields.take_string(&["modelId"])?,
        ..Transcript::default()
    };
    if transcript.model.is_some() {
        set_hint(&mut stored, "~model", "body");
    }
    if let Some(system) = fields.take_present(&["system"])? {
        let message =
            parse::parse_system_prompt(system).map_err(|error| error.at_segment("system"))?;
        if message.content.is_empty() {
            set_hint(&mut stored, "~system", "empty");
        } else {
            transcript.instructions.push(message);
        }
    }
    if let Some(messages) = fields.take_field(&["messages"])? {
        transcript.items = parse::parse_messages(messages, cancel)
            .map_err(|error| error.at_segment("messages"))?;
    }
    if let Some(config) = fields.take_present(&["toolConfig"])? {
        tools::parse_tool_config(config, &mut transcript, &mut stored)
            .map_err(|error| error.at_segment("toolConfig"))?;
    }
    options::parse_options(&mut fields, &mut transcript.options, &mut stored)?;
    stored.extend(to_extras(fields.into_extra()));
    transcript.extra.set_wire_fields(FORMAT, stored);
    Ok(transcript)
}

pub(super) fn lower_envelope(request: &Transcript) -> Envelope {
    let mut losses = Losses::default();
    let stored = request.extra.wire_fields(FORMAT);
    let mut before = ObjectWriter::new();
    let model = request.model.as_deref();
    // The model is named in the address.
    let in_body = hint(&stored, "~model").is_some();
    before.string_if_some("modelId", model.filter(|_| in_body));
    before.raw_if_some(
        "toolConfig",
        tools::encode_tool_config(request, &stored, &mut losses),
    );
    let system = encode::encode_system_prompt(&request.instructions, &mut losses);
    let empty = hint(&stored, "~system").map(|_| "[]".to_owned());
    before.raw_if_some("system", system.or(empty));
    let mut after = ObjectWriter::new();
    options::encode_options(&request.options, model, &stored, &mut after, &mut losses);
    let mut rest = stored;
    // Written above as far as they still hold; a value that does not must not come back.
    for key in options::MEMBERS.into_iter().chain(["toolConfig"]) {
        // `null` says nothing and stays.
        if rest.get(key).is_some_and(|value| value.get() != "null") {
            rest.remove(key);
        }
    }
    after.mark_written(&before, "messages").extra_fields(&rest);
    report_foreign_fields_as(&request.extra, FORMAT, "", LossKind::Option, &mut losses);
    let comma = if before.is_empty() { "" } else { "," };
    let after = match after.inner_json() {
        "" => "]}".to_owned(),
        members => format!("],{members}}}"),
    };
    Envelope {
        before: format!("{{{}{comma}\"messages\":[", before.inner_json()),
        lead: String::new(),
        after,
        losses: losses.into_vec(),
    }
}
