//! What a transcript says that UI messages have no word for.
//!
//! Empty lists and nulls say nothing and are no loss; nor are hints of other formats, whose names
//! begin with `~`.

use contexture_ir::{Extra, Item, Output, Part, Raw, Reasoning, Role, Status, Transcript};

use super::compaction;
use super::reasoning::visible_parts;
use super::tool::error_text;
use crate::model::loss::{LossKind, Losses};
use crate::model::paired_item::partner_indices;

/// Fields of other formats that a UI part carries as provider metadata.
const CARRIED: [(&str, &str); 2] = [
    ("gemini", "thoughtSignature"),
    ("anthropic", "cache_control"),
];
/// Fields of an item's own that become parts.
const SHOWN: [&str; 1] = ["annotations"];

/// Lists what lowering a transcript to UI messages loses.
pub(super) fn collect_losses(transcript: &Transcript) -> Losses {
    let mut losses = Losses::default();
    report_envelope_losses(transcript, &mut losses);
    for (index, message) in transcript.instructions.iter().enumerate() {
        let path = format!("instructions[{index}]");
        report_part_losses(&message.content, &path, &mut losses);
        report_developer_role(message.role, &path, &mut losses);
    }
    // Paired once for all items, because a search for each one would be quadratic.
    let partners = partner_indices(&transcript.items);
    for (index, (entry, partner)) in transcript.items.iter().zip(partners).enumerate() {
        report_item_losses(entry, partner, &format!("items[{index}]"), &mut losses);
    }
    losses
}

fn report_envelope_losses(transcript: &Transcript, losses: &mut Losses) {
    let nowhere = "UI messages have no place for it";
    if transcript.model.is_some() {
        losses.push("model", LossKind::Option, nowhere);
    }
    for index in 0..transcript.tools.len() {
        losses.push(format!("tools[{index}]"), LossKind::Tool, nowhere);
    }
    let options = &transcript.options;
    let set = [
        ("max_output_tokens", options.max_output_tokens.is_some()),
        ("temperature", options.temperature.is_some()),
        ("top_p", options.top_p.is_some()),
        ("stop", !options.stop.is_empty()),
        ("tool_choice", options.tool_choice.is_some()),
        ("parallel_tool_calls", options.parallel_tool_calls.is_some()),
        ("response_format", options.response_format.is_some()),
        ("reasoning", options.reasoning.is_some()),
        ("stream", options.stream.is_some()),
    ];
    for (name, set) in set {
        if set {
            losses.push(format!("options.{name}"), LossKind::Option, nowhere);
        }
    }
    if let Some(response) = &transcript.response {
        if response.finish.is_some() {
            losses.push("response.finish", LossKind::Field, nowhere);
        }
        if response.usage.is_some() {
            losses.push("response.usage", LossKind::Field, nowhere);
        }
    }
    report_extra_fields(&transcript.extra, "extra", losses);
}

fn has_content(value: &Raw) -> bool {
    // An empty value says nothing, so leaving it out is no loss.
    !matches!(value.get(), "null" | "[]" | "{}" | "\"\"")
}

fn report_extra_fields(extra: &Extra, path: &str, losses: &mut Losses) {
    if extra.is_empty() {
        return;
    }
    for (name, value) in extra.own_members() {
        if has_content(value) && !SHOWN.contains(&name) {
            losses.push(
                format!("{path}.{name}"),
                LossKind::Field,
                "no such field in UI messages",
            );
        }
    }
    for (format, fields) in extra.wire_fields_by_format() {
        // What came from UI messages goes back into them.
        if format == "ui" {
            continue;
        }
        for (name, value) in fields.iter() {
            let carried = CARRIED.contains(&(format.as_str(), name));
            // A name with `~` is a hint of ours about the document's shape, not content.
            if !name.starts_with('~') && !carried && has_content(value) {
                let why = format!("a field of {format}");
                losses.push(format!("{path}.{name}"), LossKind::Field, why);
            }
        }
    }
}

fn report_part_losses(parts: &[Part], path: &str, losses: &mut Losses) {
    for (index, part) in parts.iter().enumerate() {
        let path = format!("{path}.content[{index}]");
        match part {
            Part::Extension(other) => {
                let why = format!("no part for `{}`: written as data", other.kind);
                losses.push(path, LossKind::Part, why);
            }
            part => report_extra_fields(part.extra().unwrap_or(&Extra::new()), &path, losses),
        }
    }
}

fn report_developer_role(role: Role, path: &str, losses: &mut Losses) {
    if role == Role::Developer {
        let why = "developer is written as system";
        losses.push(format!("{path}.role"), LossKind::Role, why);
    }
}

fn report_item_losses(item: &Item, partner: Option<usize>, path: &str, losses: &mut Losses) {
    if let Some(fields) = item.extra() {
        report_extra_fields(fields, path, losses);
    }
    match item {
        Item::Message(message) => {
            report_part_losses(&message.content, path, losses);
            report_developer_role(message.role, path, losses);
            report_status_loss(message.status, path, losses);
        }
        Item::FunctionCall(call) => report_status_loss(call.status, path, losses),
        Item::FunctionCallOutput(output) => {
            if partner.is_none() {
                let why = "an output without a call: written as data";
                losses.push(path, LossKind::Item, why);
            }
            let text = error_text(&output.output);
            let media = matches!(&output.output, Output::Parts(parts) if parts.iter().any(|part| part.as_text().is_none()));
            if output.is_error == Some(true) && media {
                let why = format!("an error is text; kept {} bytes of it", text.len());
                losses.push(format!("{path}.output"), LossKind::Part, why);
            }
        }
        Item::Reasoning(item) => report_reasoning_losses(item, path, losses),
        Item::Compaction(item) if compaction::compaction_part(item).is_some() => {}
        Item::Compaction(_) => {
            losses.push(
                path,
                LossKind::Item,
                "no part for a compaction: written as data",
            );
        }
        Item::Extension(other) if other.kind.starts_with("ctx:") => {}
        Item::Extension(other) => {
            let why = format!("no part for `{}`: written as data", other.kind);
            losses.push(path, LossKind::Item, why);
        }
    }
}

fn report_reasoning_losses(item: &Reasoning, path: &str, losses: &mut Losses) {
    report_status_loss(item.status, path, losses);
    let content = item.content.as_deref().unwrap_or_default();
    if !content.is_empty() && !item.summary.is_empty() {
        let why = "a reasoning part has one text: the content";
        losses.push(format!("{path}.summary"), LossKind::Part, why);
    }
    for (index, part) in visible_parts(item).iter().enumerate() {
        if let Some(fields) = part.extra() {
            report_extra_fields(fields, &format!("{path}.content[{index}]"), losses);
        }
    }
}

fn report_status_loss(status: Option<Status>, path: &str, losses: &mut Losses) {
    if let Some(status @ (Status::Incomplete | Status::Failed)) = status {
        let why = format!("no state for `{}`", status.as_str());
        losses.push(format!("{path}.status"), LossKind::Value, why);
    }
}
