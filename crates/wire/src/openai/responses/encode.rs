//! Writes items as elements of `input` or `output`.

use contexture_ir::{
    Compaction, ContentHash, Extra, FunctionCall, FunctionCallOutput, Item, Message, Output, Part,
    Reasoning, Role, Status, quote_json,
};

use super::parse::{CONTENT, NULL, SUMMARY, id_prefix};
use super::part::{self, EncodedPart, Voice, own_fields, report_foreign_wires};
use super::spec::{ItemDirection, NAME};
use crate::model::chunk::Dialect;
use crate::model::format_extras::hint;
use crate::model::json::{ObjectWriter, json_array};
use crate::model::loss::{LossKind, Losses};
use crate::model::text_fallback::compaction_as_text;
use crate::model::text_fallback::system_tag;
use crate::openai::shared::NAME_RULE;
use crate::openai::shared::options::OMITTED;

/// Where an item is written, and what it is called in reports.
pub(super) struct EncodeContext<'a> {
    pub(super) dialect: &'a Dialect,
    pub(super) direction: ItemDirection,
    pub(super) path: &'a str,
    /// What sets made-up ids of equal items apart.
    pub(super) salt: usize,
}

impl EncodeContext<'_> {
    fn make_id(&self, prefix: &str, text: &str) -> String {
        let hash = ContentHash::of(format!("{}:{text}", self.salt).as_bytes());
        format!("{prefix}_{hash}")
    }
}

/// The item's id if this provider takes it.
fn reusable_id<'a>(item: &'a Item, hints: &Extra) -> Option<&'a str> {
    // Ids of other providers are refused. A host with ids of its own form leaves a hint that it
    // accepts them.
    let kept = hint(hints, "~id").is_some();
    item.id()
        .filter(|id| kept || (id.starts_with(id_prefix(item)) && id.len() <= 64))
}

fn encode_status(
    status: Option<Status>,
    site: &EncodeContext<'_>,
    losses: &mut Losses,
) -> Option<&'static str> {
    if status == Some(Status::Failed) {
        losses.push(
            format!("{}.status", site.path),
            LossKind::Value,
            "`failed` is written `incomplete`",
        );
        return Some(Status::Incomplete.as_str());
    }
    status.map(Status::as_str)
}

/// Writes an item that is not an extension; `None` if nothing of it can be expressed.
pub(super) fn encode_item(
    item: &Item,
    call_id: &str,
    site: &EncodeContext<'_>,
    losses: &mut Losses,
) -> Option<String> {
    if let Some(extra) = item.extra() {
        report_foreign_wires(extra, site.path, losses);
    }
    let hints = item
        .extra()
        .map(|extra| extra.wire_fields(NAME))
        .unwrap_or_default();
    let id = reusable_id(item, &hints);
    match item {
        Item::Message(message) => encode_message(message, id, &hints, site, losses),
        Item::FunctionCall(call) => Some(encode_call(call, id, call_id, site, losses)),
        Item::FunctionCallOutput(output) => Some(encode_output(output, id, call_id, site, losses)),
        Item::Reasoning(reasoning) => encode_reasoning(reasoning, id, &hints, site, losses),
        Item::Compaction(compaction) => encode_compaction(compaction, id, &hints, site, losses),
        Item::Extension(_) => None,
    }
}

fn encode_message(
    message: &Message,
    id: Option<&str>,
    hints: &Extra,
    site: &EncodeContext<'_>,
    losses: &mut Losses,
) -> Option<String> {
    let model = message.role == Role::Assistant;
    if message.role.is_instruction() && !site.dialect.mid_system && site.path.starts_with('[') {
        losses.push(
            site.path,
            LossKind::Role,
            "the model takes no system message here",
        );
        let texts: Vec<&str> = message.content.iter().filter_map(Part::as_text).collect();
        return Some(minimal_message(
            "user",
            &quote_json(&system_tag(&texts.join("\n"))),
        ));
    }
    let voice = if model { Voice::Model } else { Voice::User };
    let mut natives = Vec::new();
    for (at, part) in message.content.iter().enumerate() {
        let path = format!("{}.content[{at}]", site.path);
        natives.extend(part::encode_part(part, voice, &path, losses));
    }
    let shape = hint(hints, CONTENT);
    if natives.is_empty() && shape.is_none() {
        let lost = message.content.iter().any(|part| part.as_text().is_none());
        return (lost && message.role == Role::User)
            .then(|| minimal_message("user", &quote_json(OMITTED)));
    }
    // In an answer every message has an id, unless the host that wrote it gave it none. Only a message with an id has
    // parts of the model's, and a refusal beside a text must be one to stay apart from it.
    let refuses = |part: &Part| matches!(part, Part::Refusal(_));
    let mixed = model && natives.len() > 1 && message.content.iter().any(refuses);
    let answered = site.direction == ItemDirection::Output && model || mixed;
    Some(
        if id.is_some() || answered && hint(hints, "~id").is_none() {
            encode_long_message(message, id, &natives, hints, site, losses)
        } else {
            encode_short_message(message, &natives, hints, site, losses)
        },
    )
}

fn minimal_message(role: &str, content: &str) -> String {
    let mut object = ObjectWriter::new();
    object.string("role", role).raw("content", content);
    object.finish()
}

/// The form with `type`, `id` and `status`.
fn encode_long_message(
    message: &Message,
    id: Option<&str>,
    natives: &[EncodedPart],
    hints: &Extra,
    site: &EncodeContext<'_>,
    losses: &mut Losses,
) -> String {
    let content = json_array(natives.iter().map(|native| &native.json));
    let mut object = ObjectWriter::new();
    if hint(hints, "~type").as_deref() != Some("absent") {
        object.string("type", "message");
    }
    let made_up = match hint(hints, "~id") {
        None if id.is_none() => Some(site.make_id("msg", &content)),
        _ => None,
    };
    object.string_if_some("id", id.or(made_up.as_deref()));
    object.string("role", encode_role(message.role, site, losses));
    let mut status = encode_status(message.status, site, losses);
    let model = message.role == Role::Assistant;
    if model && hint(hints, "~status").is_none() && message.extra.get("status").is_none() {
        status = status.or(Some("completed"));
    }
    object.string_if_some("status", status);
    match (hint(hints, CONTENT).as_deref(), natives) {
        (Some("absent"), []) => {}
        (Some(NULL), []) => {
            object.raw("content", NULL);
        }
        (Some("string"), [native]) if native.plain.is_some() => {
            object.string("content", native.plain.as_deref().unwrap_or_default());
        }
        _ => {
            object.raw("content", &content);
        }
    }
    object.extra_fields(&own_fields(&message.extra));
    object.finish()
}

/// The form of `role` and `content`.
fn encode_short_message(
    message: &Message,
    natives: &[EncodedPart],
    hints: &Extra,
    site: &EncodeContext<'_>,
    losses: &mut Losses,
) -> String {
    let model = message.role == Role::Assistant;
    let mut object = ObjectWriter::new();
    if hint(hints, "~type").is_some() {
        object.string("type", "message");
    }
    object.string("role", encode_role(message.role, site, losses));
    let shape = hint(hints, CONTENT);
    // In the short form a model's content is one string; a user's may be a list of parts.
    let content = match (natives, shape.as_deref()) {
        ([], Some("absent")) => None,
        ([], Some(NULL)) => Some(NULL.to_owned()),
        ([native], None) if native.plain.is_some() => native.plain.as_deref().map(quote_json),
        (natives, Some(_)) => Some(json_array(natives.iter().map(|native| &native.json))),
        (natives, None) if model => Some(quote_json(&model_text(message, natives, site, losses))),
        (natives, None) => Some(json_array(natives.iter().map(|native| &native.json))),
    };
    object.raw_if_some("content", content);
    let status = encode_status(message.status, site, losses);
    if !model || hint(hints, "~status").is_some() {
        object.string_if_some("status", status);
    } else if status.is_some_and(|status| status != "completed") {
        losses.push(
            format!("{}.status", site.path),
            LossKind::Field,
            "the short form of a message has no status",
        );
    }
    object.extra_fields(&own_fields(&message.extra));
    object.finish()
}

/// Joins the text of a model's message: the short form has one string for it, no parts.
fn model_text(
    message: &Message,
    natives: &[EncodedPart],
    site: &EncodeContext<'_>,
    losses: &mut Losses,
) -> String {
    let mut text = String::new();
    for (at, part) in message.content.iter().enumerate() {
        let path = || format!("{}.content[{at}]", site.path);
        match part {
            Part::Refusal(part) => {
                losses.push(path(), LossKind::Value, "a refusal is written as text");
                text.push_str(&part.text);
            }
            Part::Extension(_) => losses.push(
                path(),
                LossKind::Part,
                "a message without id takes only text",
            ),
            part => {
                let says = |key| {
                    part.extra()
                        .and_then(|extra| extra.get(key))
                        .is_some_and(|raw| raw.get() != "[]")
                };
                if says("annotations") || says("logprobs") {
                    losses.push(
                        path(),
                        LossKind::Field,
                        "a message without id takes no annotations",
                    );
                }
                text.push_str(part.as_text().unwrap_or_default());
            }
        }
    }
    debug_assert!(
        !natives.is_empty(),
        "only called where something is written"
    );
    text
}

fn encode_role(role: Role, site: &EncodeContext<'_>, losses: &mut Losses) -> &'static str {
    if role == Role::Developer && !site.dialect.developer_role {
        losses.push(site.path, LossKind::Role, "the model knows no developer");
        return Role::System.as_str();
    }
    role.as_str()
}

fn encode_call(
    call: &FunctionCall,
    id: Option<&str>,
    call_id: &str,
    site: &EncodeContext<'_>,
    losses: &mut Losses,
) -> String {
    let mut object = ObjectWriter::new();
    object.string("type", "function_call");
    object.string_if_some("id", id);
    let name = match site.direction {
        ItemDirection::Input => NAME_RULE.sanitize_name(&call.name, site.path, losses),
        ItemDirection::Output => call.name.as_str().into(),
    };
    object.string("call_id", call_id).string("name", &name);
    object.string("arguments", &call.arguments);
    object.string_if_some("status", encode_status(call.status, site, losses));
    object.extra_fields(&own_fields(&call.extra));
    object.finish()
}

fn encode_output(
    output: &FunctionCallOutput,
    id: Option<&str>,
    call_id: &str,
    site: &EncodeContext<'_>,
    losses: &mut Losses,
) -> String {
    if output.is_error == Some(true) {
        let why = "an output does not say that the function failed";
        losses.push(format!("{}.is_error", site.path), LossKind::Field, why);
    }
    let mut object = ObjectWriter::new();
    object.string("type", "function_call_output");
    object.string_if_some("id", id);
    object.string("call_id", call_id);
    match &output.output {
        Output::Text(text) => {
            object.string("output", text);
        }
        Output::Parts(parts) => {
            let mut natives = Vec::new();
            for (at, part) in parts.iter().enumerate() {
                let path = format!("{}.output[{at}]", site.path);
                natives.extend(part::encode_part(part, Voice::User, &path, losses));
            }
            // An output must not be an empty array; a placeholder says that something was there.
            if natives.is_empty() && !parts.is_empty() {
                object.string("output", OMITTED);
            } else {
                object.array("output", natives.iter().map(|native| &native.json));
            }
        }
    }
    object.string_if_some("status", encode_status(output.status, site, losses));
    object.extra_fields(&own_fields(&output.extra));
    object.finish()
}

/// Whether opaque fields of this format are this provider's to read.
fn is_own_format(format: Option<&str>) -> bool {
    format.is_none_or(|format| format.starts_with("openai-responses"))
}

fn encode_reasoning(
    reasoning: &Reasoning,
    id: Option<&str>,
    hints: &Extra,
    site: &EncodeContext<'_>,
    losses: &mut Losses,
) -> Option<String> {
    let format_came = hint(hints, "~format").is_some();
    let ours = format_came
        || (is_own_format(reasoning.format.as_deref()) && reasoning.signature.is_none());
    if !ours && !keeps_foreign_reasoning(reasoning, site, losses) {
        return None;
    }
    let content = reasoning.content.as_ref();
    let content = content.map(|parts| json_array(parts.iter().map(encode_reasoning_part)));
    let encrypted = reasoning.encrypted_content.as_deref().filter(|_| ours);
    let made_up = match hint(hints, "~id") {
        None if id.is_none() => {
            Some(site.make_id("rs", encrypted.or(content.as_deref()).unwrap_or_default()))
        }
        _ => None,
    };
    let mut object = ObjectWriter::new();
    object.string("type", "reasoning");
    object.string_if_some("id", id.or(made_up.as_deref()));
    let summary = match hint(hints, SUMMARY).as_deref() {
        None => Some(json_array(
            reasoning.summary.iter().map(encode_reasoning_part),
        )),
        Some(NULL) => Some(NULL.to_owned()),
        Some(_) => None,
    };
    object.raw_if_some("summary", summary);
    let came_null = hint(hints, CONTENT).map(|_| NULL.to_owned());
    object.raw_if_some("content", content.or(came_null));
    object.string_if_some("encrypted_content", encrypted);
    if format_came {
        object.string_if_some("signature", reasoning.signature.as_deref());
        object.string_if_some("format", reasoning.format.as_deref());
    }
    object.string_if_some("status", encode_status(reasoning.status, site, losses));
    let mut own = own_fields(&reasoning.extra);
    // A `null` of another source is not repeated, because the schema wants a list.
    own.remove("content");
    object.extra_fields(&own);
    Some(object.finish())
}

/// A thought without the `null`s that stand where the schema wants a list; `None` if it has none.
///
/// OpenAI itself takes them, since Codex sends `"content": null` with every thought; xAI and the SDK's schema refuse them.
/// So a document that is converted to itself keeps them, and a history that is made ready to be sent loses them.
pub(super) fn without_null_lists(reasoning: &Reasoning) -> Option<Reasoning> {
    let mut hints = reasoning.extra.wire_fields(NAME);
    let mut has_null = false;
    for name in [CONTENT, SUMMARY] {
        if hint(&hints, name).as_deref() == Some(NULL) {
            hints.remove(name);
            has_null = true;
        }
    }
    has_null.then(|| {
        let mut legal = reasoning.clone();
        legal.extra.set_wire_fields(NAME, hints);
        legal
    })
}

/// Reports the loss of another provider's reasoning and returns whether its readable part is written.
fn keeps_foreign_reasoning(
    reasoning: &Reasoning,
    site: &EncodeContext<'_>,
    losses: &mut Losses,
) -> bool {
    let is_opaque = reasoning.encrypted_content.is_some() || reasoning.signature.is_some();
    let mut parts = reasoning.content.iter().flatten().chain(&reasoning.summary);
    let is_readable = parts.any(|part| part.as_text().is_some());
    let what = if is_opaque {
        LossKind::Opaque
    } else {
        LossKind::Item
    };
    // A request leaves another provider's thoughts out; a response shows what is readable.
    if site.direction == ItemDirection::Input || !is_readable {
        losses.push(site.path, what, "thoughts of another provider");
        return false;
    }
    if is_opaque {
        let why = "the opaque form of another provider's thoughts";
        losses.push(site.path, what, why);
    }
    true
}

/// A thought's part with its own fields.
fn encode_reasoning_part(part: &Part) -> String {
    let Some(text) = part.as_text() else {
        return serde_json::to_string(part).unwrap_or_else(|_| "null".to_owned());
    };
    let mut object = ObjectWriter::new();
    object.string("type", part.kind()).string("text", text);
    object.extra_fields(&part.extra().map(own_fields).unwrap_or_default());
    object.finish()
}

fn encode_compaction(
    compaction: &Compaction,
    id: Option<&str>,
    hints: &Extra,
    site: &EncodeContext<'_>,
    losses: &mut Losses,
) -> Option<String> {
    let format_came = hint(hints, "~format").is_some();
    let ours = format_came || is_own_format(compaction.format.as_deref());
    if let Some(encrypted) = compaction.encrypted_content.as_deref().filter(|_| ours) {
        let mut object = ObjectWriter::new();
        object.string("type", "compaction");
        object.string_if_some("id", id);
        object.string("encrypted_content", encrypted);
        if format_came {
            object.string_if_some("format", compaction.format.as_deref());
        }
        object.extra_fields(&own_fields(&compaction.extra));
        return Some(object.finish());
    }
    if site.direction == ItemDirection::Output {
        let why = "an answer takes no other provider's compaction";
        losses.push(site.path, LossKind::Item, why);
        return None;
    }
    compaction_as_text(compaction, site.path, losses)
        .map(|text| minimal_message("user", &quote_json(&text)))
}
