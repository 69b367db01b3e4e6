//! Responses.
//!
//! Typed are the id, the model, the output, the usage and why it ended; the echo of the request and
//! everything else stay verbatim. A response written for a transcript that came from elsewhere has
//! its required members made up deterministically: `created_at` 0, ids from the content's hash.

use contexture_ir::{
    ContentHash, Error, Extra, Fields, FinishReason, Item, Raw, ResponseInfo, Transcript, Usage,
};

use super::encode::{EncodeContext, encode_item};
use super::extension::encode_extension;
use super::parse::parse_items;
use super::spec::{FORMAT, ItemDirection, NAME, STRUCTURE};
use crate::model::chunk::Dialect;
use crate::model::conversion::DocumentKind;
use crate::model::conversion::{Lifted, Lowered};
use crate::model::format_extras::{hint, report_foreign_fields, set_hint, to_extras};
use crate::model::json::{ObjectWriter, json_array};
use crate::model::loss::{LossKind, Losses};
use crate::model::paired_item::{Side, paired_items};
use crate::openai::shared::{UsageFields, usage_fields};

/// The hint of the status as it came.
const STATUS: &str = "~status";
/// The hint of `incomplete_details` as they came.
const DETAILS: &str = "~incomplete_details";
/// Calls whose results the host owes.
const CALLS: [&str; 5] = [
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "apply_patch_call",
    "mcp_approval_request",
];

pub(super) fn lift_response(mut fields: Fields<'_>) -> Result<Lifted, Error> {
    let mut wire = Extra::new();
    let mut transcript = Transcript::default();
    if let Some(output) = fields.take_present(&["output"])? {
        transcript.items = parse_items(output.get(), ItemDirection::Output, None)
            .map_err(|error| error.at_segment("output"))?;
    }
    transcript.model = fields.take_string(&["model"])?;
    let usage = match fields.take_present(&["usage"])? {
        Some(usage) => Some(parse_usage(usage.get()).map_err(|error| error.at_segment("usage"))?),
        None => None,
    };
    for (field, name) in [("status", STATUS), ("incomplete_details", DETAILS)] {
        if let Some(value) = fields.take_field(&[field])? {
            wire.set(name, value.into());
        }
    }
    transcript.response = Some(ResponseInfo {
        id: fields.take_string(&["id"])?,
        finish: derive_finish_reason(&wire, &transcript.items),
        usage,
    });
    // Only the usual word is taken out; any other value stays among the rest.
    if fields
        .get(&["object"])
        .is_some_and(|value| value.get() == "\"response\"")
    {
        fields.take_field(&["object"])?;
    } else if fields.get(&["object"]).is_none() {
        set_hint(&mut wire, "~object", "absent");
    }
    wire.extend(to_extras(fields.into_extra()));
    transcript.extra.set_wire_fields(NAME, wire);
    Ok(Lifted {
        kind: DocumentKind::Response,
        transcript,
        losses: Vec::new(),
    })
}

/// Why it ended, by the status, its details and whether calls wait.
fn derive_finish_reason(wire: &Extra, items: &[Item]) -> Option<FinishReason> {
    let reason = || {
        let reason = wire
            .get(DETAILS)?
            .fields()?
            .get(&["reason"])?
            .get()
            .to_owned();
        serde_json::from_str::<String>(&reason).ok()
    };
    let waits = |item: &Item| match item {
        Item::FunctionCall(_) => true,
        Item::Extension(item) => CALLS.contains(&item.kind.as_str()),
        _ => false,
    };
    Some(match hint(wire, STATUS)?.as_str() {
        // The provider says `completed` even where it waits for a tool's output.
        "completed" if items.iter().any(waits) => FinishReason::ToolCalls,
        "completed" => FinishReason::Stop,
        "incomplete" => match reason().as_deref() {
            Some("max_output_tokens") => FinishReason::Length,
            Some("content_filter") => FinishReason::ContentFilter,
            Some(other) => FinishReason::Other(other.to_owned()),
            None => FinishReason::Other("incomplete".to_owned()),
        },
        // The answer has not ended, so there is no reason yet.
        "in_progress" | "queued" => return None,
        other => FinishReason::Other(other.to_owned()),
    })
}

pub(super) fn parse_usage(text: &str) -> Result<Usage, Error> {
    let fields = Fields::parse(text)?;
    let figures = UsageFields(&fields);
    let mut usage = Usage {
        input_tokens: figures.get("input_tokens"),
        output_tokens: figures.get("output_tokens"),
        total_tokens: figures.get("total_tokens"),
        cache_read_tokens: figures.get_nested("input_tokens_details", "cached_tokens"),
        cache_write_tokens: figures.get_nested("input_tokens_details", "cache_write_tokens"),
        reasoning_tokens: figures.get_nested("output_tokens_details", "reasoning_tokens"),
        extra: Extra::new(),
    };
    usage
        .extra
        .set_wire_fields(NAME, usage_fields(fields.into_extra()));
    Ok(usage)
}

fn encode_usage(usage: &Usage) -> String {
    let own = usage.extra.wire_fields(NAME);
    let mut object = ObjectWriter::new();
    // Figures of this format go back as they came, with members that have no typed field.
    if !own.is_empty() {
        object.extra_fields(&own);
        return object.finish();
    }
    // The format always has these members, so unknown figures are written as 0.
    let text = |figure: Option<u64>| figure.unwrap_or(0).to_string();
    let mut read = ObjectWriter::new();
    read.raw("cached_tokens", &text(usage.cache_read_tokens));
    read.raw("cache_write_tokens", &text(usage.cache_write_tokens));
    let mut written = ObjectWriter::new();
    written.raw("reasoning_tokens", &text(usage.reasoning_tokens));
    let (input, output) = (
        usage.input_tokens.unwrap_or(0),
        usage.output_tokens.unwrap_or(0),
    );
    object.raw("input_tokens", &input.to_string());
    object.raw("input_tokens_details", &read.finish());
    object.raw("output_tokens", &output.to_string());
    object.raw("output_tokens_details", &written.finish());
    let total = usage.total_tokens.unwrap_or(input.saturating_add(output));
    object.raw("total_tokens", &total.to_string());
    object.finish()
}

pub(super) fn lower_response(transcript: &Transcript) -> Lowered {
    let mut losses = Losses::default();
    let wire = transcript.extra.wire_fields(NAME);
    // A response from another format lacks members that are required here.
    let foreign = wire.is_empty();
    let info = transcript.response.clone().unwrap_or_default();
    let output = json_array(encode_output(transcript, &mut losses));
    let mut object = ObjectWriter::new();
    // Derived and not random: the same transcript gives the same bytes.
    let made_up = foreign.then(|| format!("resp_{}", ContentHash::of(output.as_bytes())));
    object.string_if_some("id", info.id.as_deref().or(made_up.as_deref()));
    if hint(&wire, "~object").is_none() && wire.get("object").is_none() {
        object.string("object", "response");
    }
    // Nothing here reads a clock, so a time that is not known is 0.
    object.raw_if_some(
        "created_at",
        wire.get("created_at")
            .map(Raw::get)
            .or(foreign.then_some("0")),
    );
    encode_status(&info, &wire, transcript, &mut object, &mut losses);
    let model = transcript.model.as_deref().or(foreign.then_some("unknown"));
    object.string_if_some("model", model);
    // Both `null` and `[]` have no items; `null` is written only where it was read.
    let null = output == "[]" && wire.get("output").is_some_and(|own| own.get() == "null");
    object.raw("output", if null { "null" } else { &output });
    object.raw_if_some("usage", info.usage.as_ref().map(encode_usage));
    if foreign {
        object
            .raw("error", "null")
            .raw("parallel_tool_calls", "true");
        object.raw("tool_choice", "\"auto\"").raw("tools", "[]");
    }
    report_foreign_fields(&transcript.extra, NAME, "", &mut losses);
    object.extra_fields(&wire);
    Lowered {
        json: object.finish(),
        losses: losses.into_vec(),
    }
}

fn encode_status(
    info: &ResponseInfo,
    wire: &Extra,
    transcript: &Transcript,
    object: &mut ObjectWriter,
    losses: &mut Losses,
) {
    // While the reason is the one that was read, status and details go back as they came.
    if !wire.is_empty() && info.finish == derive_finish_reason(wire, &transcript.items) {
        object.raw_if_some("status", wire.get(STATUS).map(Raw::get));
        object.raw_if_some("incomplete_details", wire.get(DETAILS).map(Raw::get));
        return;
    }
    let (status, reason) = match &info.finish {
        Some(FinishReason::Length) => ("incomplete", Some("max_output_tokens")),
        Some(FinishReason::ContentFilter) => ("incomplete", Some("content_filter")),
        Some(FinishReason::Other(word)) => {
            let why = format!("no such reason to end as `{word}`; written `completed`");
            losses.push("response.finish", LossKind::Value, why);
            ("completed", None)
        }
        Some(FinishReason::Stop | FinishReason::ToolCalls) | None => ("completed", None),
    };
    object.string("status", status);
    let details = reason.map(|reason| format!("{{\"reason\":\"{reason}\"}}"));
    object.raw("incomplete_details", details.as_deref().unwrap_or("null"));
}

fn encode_output(transcript: &Transcript, losses: &mut Losses) -> Vec<String> {
    let dialect = Dialect::of(FORMAT);
    let foreign = transcript.extra.wire_fields(NAME).is_empty();
    let mut output = Vec::new();
    for (index, entry) in paired_items(&transcript.items).iter().enumerate() {
        let path = format!("items[{index}]");
        let site = EncodeContext {
            dialect: &dialect,
            direction: ItemDirection::Output,
            path: &path,
            salt: index,
        };
        output.extend(match entry.item {
            Item::Extension(item) => encode_extension(item, &path, losses),
            // A document of this format may have such items in its output, and they go back there.
            Item::Message(_) | Item::FunctionCallOutput(_)
                if foreign && STRUCTURE.side(entry.item) == Some(Side::User) =>
            {
                losses.push(path, LossKind::Item, "a response holds what the model said");
                None
            }
            item => encode_item(item, entry.call_id(), &site, losses),
        });
    }
    output
}
