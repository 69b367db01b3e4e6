//! Requests: what stands around the contents.

use contexture_ir::{Error, Extra, Fields, Transcript};

use super::names::Names;
use super::words::FORMAT;
use super::{config, read, tools, write};
use crate::Envelope;
use crate::carry::{hint, keep, tell_foreign_as};
use crate::json::Object;
use crate::loss::{LossKind, Losses};

pub(super) fn lift(mut fields: Fields<'_>) -> Result<Transcript, Error> {
    let mut names = Names::default();
    let mut kept = Extra::new();
    let mut transcript = Transcript {
        model: fields.take_string(&["model"])?,
        ..Transcript::default()
    };
    if transcript.model.is_some() {
        hint(&mut kept, "~model", "body");
    }
    if let Some(system) = names.take(&mut fields, "systemInstruction")? {
        let message = read::system(system).map_err(|error| error.at("systemInstruction"))?;
        if message.content.is_empty() {
            kept.set("systemInstruction", system.into());
        } else {
            transcript.instructions.push(message);
        }
    }
    if let Some(contents) = fields.take(&["contents"])? {
        transcript.items = read::contents(contents).map_err(|error| error.at("contents"))?;
    }
    if fields
        .get(&["tools"])
        .is_some_and(|tools| tools.get() != "[]")
        && let Some(value) = fields.take_present(&["tools"])?
    {
        transcript.tools = tools::read(value).map_err(|error| error.at("tools"))?;
    }
    let options = &mut transcript.options;
    if let Some(value) = names.take(&mut fields, "toolConfig")? {
        config::read_tools(value, options, &mut names, &mut kept)
            .map_err(|error| error.at("toolConfig"))?;
    }
    if let Some(value) = names.take(&mut fields, "generationConfig")? {
        config::read_generation(value, options, &mut names, &mut kept)
            .map_err(|error| error.at("generationConfig"))?;
    }
    names.note(&mut kept);
    kept.extend(keep(fields.rest()));
    transcript.extra.set_wire(FORMAT, kept);
    Ok(transcript)
}

pub(super) fn envelope(request: &Transcript) -> Envelope {
    let mut losses = Losses::default();
    let kept = request.extra.wire(FORMAT);
    let names = Names::of(&kept);
    let mut before = Object::new();
    if let Some(model) = request
        .model
        .as_deref()
        .filter(|_| kept.get("~model").is_some())
    {
        before.string("model", model);
    }
    let tools = tools::write(&request.tools, &mut losses);
    before.maybe("tools", tools.as_deref());
    if let Some(system) = write::system(&request.instructions, &mut losses) {
        let key = "systemInstruction";
        before.renamed(key, &names.spell(key), &system);
    }
    let mut after = Object::new();
    if let Some(json) = config::write_tools(
        &request.options,
        tools.is_some(),
        &names,
        &kept,
        &mut losses,
    ) {
        after.renamed("toolConfig", &names.spell("toolConfig"), &json);
    }
    if let Some(json) = config::write_generation(&request.options, &names, &kept, &mut losses) {
        after.renamed("generationConfig", &names.spell("generationConfig"), &json);
    }
    after.beside(&before, "contents").carried(&kept);
    tell_foreign_as(&request.extra, FORMAT, "", LossKind::Option, &mut losses);
    let comma = if before.is_empty() { "" } else { "," };
    let after = match after.members() {
        "" => "]}".to_owned(),
        members => format!("],{members}}}"),
    };
    Envelope {
        before: format!("{{{}{comma}\"contents\":[", before.members()),
        lead: String::new(),
        after,
        losses: losses.into_vec(),
    }
}
