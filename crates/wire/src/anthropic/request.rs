//! Requests: what stands around the messages.

use contexture_ir::{Error, Fields, Transcript};

use super::words::FORMAT;
use super::{choice, options, read, tools, write};
use crate::Envelope;
use crate::carry::{keep, tell_foreign_as};
use crate::json::Object;
use crate::loss::{LossKind, Losses};

pub(super) fn lift(mut fields: Fields<'_>) -> Result<Transcript, Error> {
    let mut transcript = Transcript {
        model: fields.take_string(&["model"])?,
        ..Transcript::default()
    };
    if fields
        .get(&["system"])
        .is_some_and(|system| system.get() != "[]")
        && let Some(system) = fields.take_present(&["system"])?
    {
        let message = read::system(system).map_err(|error| error.at("system"))?;
        transcript.instructions.push(message);
    }
    if let Some(messages) = fields.take(&["messages"])? {
        transcript.items = read::messages(messages).map_err(|error| error.at("messages"))?;
    }
    if fields
        .get(&["tools"])
        .is_some_and(|tools| tools.get() != "[]")
        && let Some(value) = fields.take_present(&["tools"])?
    {
        transcript.tools = tools::read(value).map_err(|error| error.at("tools"))?;
    }
    let (typed, mut kept) = options::read(&mut fields)?;
    options::note_absent(&typed, &mut kept);
    kept.extend(keep(fields.rest()));
    transcript.options = typed;
    transcript.extra.set_wire(FORMAT, kept);
    Ok(transcript)
}

pub(super) fn envelope(request: &Transcript) -> Envelope {
    let mut losses = Losses::default();
    let kept = request.extra.wire(FORMAT);
    let mut before = Object::new();
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
    let tools = tools::write(&request.tools, &mut losses);
    before.maybe("tools", tools.as_deref());
    before.maybe(
        "system",
        write::system(&request.instructions, &mut losses).as_deref(),
    );
    let mut after = Object::new();
    options::write(&request.options, &kept, &mut after, &mut losses);
    after.maybe(
        "tool_choice",
        choice::write(&request.options, tools.is_some(), &mut losses).as_deref(),
    );
    after.beside(&before, "messages").carried(&kept);
    tell_foreign_as(&request.extra, FORMAT, "", LossKind::Option, &mut losses);
    let after = match after.members() {
        "" => "]}".to_owned(),
        members => format!("],{members}}}"),
    };
    Envelope {
        before: format!("{{{},\"messages\":[", before.members()),
        lead: String::new(),
        after,
        losses: losses.into_vec(),
    }
}
