//! Items, written.

use contexture_ir::{
    Compaction, ContentHash, Extra, FunctionCall, FunctionCallOutput, Item, Message, Output, Part,
    Reasoning, Role, Status, quote,
};

use super::part::{self, Native, Voice, own, tell_wires};
use super::read::id_prefix;
use super::words::{NAME, Place};
use crate::carry::hinted;
use crate::chunk::Dialect;
use crate::compaction::retold;
use crate::function_name::OPENAI;
use crate::json::{Object, array};
use crate::loss::{LossKind, Losses};
use crate::openai::OMITTED;
use crate::system_tag::system_tag;

/// Where an item is written, and what it is called in reports.
pub(super) struct Site<'a> {
    pub(super) dialect: &'a Dialect,
    pub(super) place: Place,
    pub(super) path: &'a str,
    /// What sets made-up ids of equal items apart.
    pub(super) salt: usize,
}

impl Site<'_> {
    fn made_up(&self, prefix: &str, text: &str) -> String {
        let hash = ContentHash::of(format!("{}:{text}", self.salt).as_bytes());
        format!("{prefix}_{hash}")
    }
}

/// The item's id if this provider takes it.
fn kept_id<'a>(item: &'a Item, hints: &Extra) -> Option<&'a str> {
    let kept = hinted(hints, "~id").is_some();
    item.id()
        .filter(|id| kept || (id.starts_with(id_prefix(item)) && id.len() <= 64))
}

fn write_status(
    status: Option<Status>,
    site: &Site<'_>,
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

/// Writes an item that is not an extension; nothing if nothing of it can be said.
pub(super) fn write_item(
    item: &Item,
    call_id: &str,
    site: &Site<'_>,
    losses: &mut Losses,
) -> Option<String> {
    if let Some(extra) = item.extra() {
        tell_wires(extra, site.path, losses);
    }
    let hints = item
        .extra()
        .map(|extra| extra.wire(NAME))
        .unwrap_or_default();
    let id = kept_id(item, &hints);
    match item {
        Item::Message(message) => write_message(message, id, &hints, site, losses),
        Item::FunctionCall(call) => Some(write_call(call, id, call_id, site, losses)),
        Item::FunctionCallOutput(output) => Some(write_output(output, id, call_id, site, losses)),
        Item::Reasoning(reasoning) => write_reasoning(reasoning, id, &hints, site, losses),
        Item::Compaction(compaction) => write_compaction(compaction, id, &hints, site, losses),
        Item::Extension(_) => None,
    }
}

fn write_message(
    message: &Message,
    id: Option<&str>,
    hints: &Extra,
    site: &Site<'_>,
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
        return Some(short("user", &quote(&system_tag(&texts.join("\n")))));
    }
    let voice = if model { Voice::Model } else { Voice::User };
    let mut natives = Vec::new();
    for (at, part) in message.content.iter().enumerate() {
        let path = format!("{}.content[{at}]", site.path);
        natives.extend(part::write(part, voice, &path, losses));
    }
    let shape = hinted(hints, "~content");
    if natives.is_empty() && shape.is_none() {
        let lost = message.content.iter().any(|part| part.as_text().is_none());
        return (lost && message.role == Role::User).then(|| short("user", &quote(OMITTED)));
    }
    // In an answer every message has an id, unless the host that wrote it gave it none.
    let answered = site.place == Place::Output && model && hinted(hints, "~id").is_none();
    Some(if id.is_some() || answered {
        long(message, id, &natives, hints, site, losses)
    } else {
        write_short(message, &natives, hints, site, losses)
    })
}

fn short(role: &str, content: &str) -> String {
    let mut object = Object::new();
    object.string("role", role).raw("content", content);
    object.finish()
}

/// The form with `type`, `id` and `status`.
fn long(
    message: &Message,
    id: Option<&str>,
    natives: &[Native],
    hints: &Extra,
    site: &Site<'_>,
    losses: &mut Losses,
) -> String {
    let content = array(natives.iter().map(|native| &native.json));
    let mut object = Object::new();
    if hinted(hints, "~type").as_deref() != Some("absent") {
        object.string("type", "message");
    }
    let made_up = match hinted(hints, "~id") {
        None if id.is_none() => Some(site.made_up("msg", &content)),
        _ => None,
    };
    object.maybe("id", id.or(made_up.as_deref()).map(quote).as_deref());
    object.string("role", role(message.role, site, losses));
    let mut status = write_status(message.status, site, losses);
    let model = message.role == Role::Assistant;
    if model && hinted(hints, "~status").is_none() && message.extra.get("status").is_none() {
        status = status.or(Some("completed"));
    }
    object.maybe("status", status.map(quote).as_deref());
    match (hinted(hints, "~content").as_deref(), natives) {
        (Some("absent"), []) => {}
        (Some("string"), [native]) if native.plain.is_some() => {
            object.string("content", native.plain.as_deref().unwrap_or_default());
        }
        _ => {
            object.raw("content", &content);
        }
    }
    object.carried(&own(&message.extra));
    object.finish()
}

/// The form of `role` and `content`.
fn write_short(
    message: &Message,
    natives: &[Native],
    hints: &Extra,
    site: &Site<'_>,
    losses: &mut Losses,
) -> String {
    let model = message.role == Role::Assistant;
    let mut object = Object::new();
    if hinted(hints, "~type").is_some() {
        object.string("type", "message");
    }
    object.string("role", role(message.role, site, losses));
    let shape = hinted(hints, "~content");
    let content = match (natives, shape.as_deref()) {
        ([], Some("absent")) => None,
        ([native], None) if native.plain.is_some() => native.plain.as_deref().map(quote),
        (natives, Some(_)) => Some(array(natives.iter().map(|native| &native.json))),
        (natives, None) if model => Some(quote(&model_text(message, natives, site, losses))),
        (natives, None) => Some(array(natives.iter().map(|native| &native.json))),
    };
    object.maybe("content", content.as_deref());
    let status = write_status(message.status, site, losses);
    if !model || hinted(hints, "~status").is_some() {
        object.maybe("status", status.map(quote).as_deref());
    } else if status.is_some_and(|status| status != "completed") {
        losses.push(
            format!("{}.status", site.path),
            LossKind::Field,
            "the short form of a message has no status",
        );
    }
    object.carried(&own(&message.extra));
    object.finish()
}

/// What a model said, as one text: the short form takes no parts of the model's.
fn model_text(
    message: &Message,
    natives: &[Native],
    site: &Site<'_>,
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

fn role(role: Role, site: &Site<'_>, losses: &mut Losses) -> &'static str {
    if role == Role::Developer && !site.dialect.developer_role {
        losses.push(site.path, LossKind::Role, "the model knows no developer");
        return Role::System.as_str();
    }
    role.as_str()
}

fn write_call(
    call: &FunctionCall,
    id: Option<&str>,
    call_id: &str,
    site: &Site<'_>,
    losses: &mut Losses,
) -> String {
    let mut object = Object::new();
    object.string("type", "function_call");
    object.maybe("id", id.map(quote).as_deref());
    let name = match site.place {
        Place::Input => OPENAI.write(&call.name, site.path, losses),
        Place::Output => call.name.as_str().into(),
    };
    object.string("call_id", call_id).string("name", &name);
    object.string("arguments", &call.arguments);
    object.maybe(
        "status",
        write_status(call.status, site, losses)
            .map(quote)
            .as_deref(),
    );
    object.carried(&own(&call.extra));
    object.finish()
}

fn write_output(
    output: &FunctionCallOutput,
    id: Option<&str>,
    call_id: &str,
    site: &Site<'_>,
    losses: &mut Losses,
) -> String {
    if output.is_error == Some(true) {
        let why = "an output does not say that the function failed";
        losses.push(format!("{}.is_error", site.path), LossKind::Field, why);
    }
    let mut object = Object::new();
    object.string("type", "function_call_output");
    object.maybe("id", id.map(quote).as_deref());
    object.string("call_id", call_id);
    match &output.output {
        Output::Text(text) => {
            object.string("output", text);
        }
        Output::Parts(parts) => {
            let mut natives = Vec::new();
            for (at, part) in parts.iter().enumerate() {
                let path = format!("{}.output[{at}]", site.path);
                natives.extend(part::write(part, Voice::User, &path, losses));
            }
            if natives.is_empty() && !parts.is_empty() {
                object.string("output", OMITTED);
            } else {
                object.raw("output", &array(natives.iter().map(|native| &native.json)));
            }
        }
    }
    object.maybe(
        "status",
        write_status(output.status, site, losses)
            .map(quote)
            .as_deref(),
    );
    object.carried(&own(&output.extra));
    object.finish()
}

/// Whether opaque fields of this format are this provider's to read.
fn ours(format: Option<&str>) -> bool {
    format.is_none_or(|format| format.starts_with("openai-responses"))
}

fn write_reasoning(
    reasoning: &Reasoning,
    id: Option<&str>,
    hints: &Extra,
    site: &Site<'_>,
    losses: &mut Losses,
) -> Option<String> {
    let format_came = hinted(hints, "~format").is_some();
    let ours = format_came || (ours(reasoning.format.as_deref()) && reasoning.signature.is_none());
    let mut content = reasoning.content.clone();
    if !ours {
        let opaque = reasoning.encrypted_content.is_some() || reasoning.signature.is_some();
        let readable = content
            .iter()
            .flatten()
            .chain(&reasoning.summary)
            .any(|part| part.as_text().is_some());
        let what = if opaque {
            LossKind::Opaque
        } else {
            LossKind::Item
        };
        if site.place == Place::Input || !readable {
            losses.push(site.path, what, "thoughts of another provider");
            return None;
        }
        if opaque {
            losses.push(
                site.path,
                what,
                "the opaque form of another provider's thoughts",
            );
        }
    }
    let encrypted = reasoning.encrypted_content.as_deref().filter(|_| ours);
    let salted = content
        .as_ref()
        .map(|parts| array(parts.iter().map(json)))
        .unwrap_or_default();
    let made_up = match hinted(hints, "~id") {
        None if id.is_none() => Some(site.made_up("rs", encrypted.unwrap_or(&salted))),
        _ => None,
    };
    let mut object = Object::new();
    object.string("type", "reasoning");
    object.maybe("id", id.or(made_up.as_deref()).map(quote).as_deref());
    if hinted(hints, "~summary").is_none() {
        object.raw("summary", &array(reasoning.summary.iter().map(json)));
    }
    if let Some(parts) = content.take() {
        object.raw("content", &array(parts.iter().map(json)));
    }
    object.maybe("encrypted_content", encrypted.map(quote).as_deref());
    if format_came {
        object.maybe(
            "signature",
            reasoning.signature.as_deref().map(quote).as_deref(),
        );
        object.maybe("format", reasoning.format.as_deref().map(quote).as_deref());
    }
    object.maybe(
        "status",
        write_status(reasoning.status, site, losses)
            .map(quote)
            .as_deref(),
    );
    object.carried(&own(&reasoning.extra));
    Some(object.finish())
}

/// A thought's part with its own fields.
fn json(part: &Part) -> String {
    let Some(text) = part.as_text() else {
        return serde_json::to_string(part).unwrap_or_else(|_| "null".to_owned());
    };
    let mut object = Object::new();
    object.string("type", part.kind()).string("text", text);
    object.carried(&part.extra().map(own).unwrap_or_default());
    object.finish()
}

fn write_compaction(
    compaction: &Compaction,
    id: Option<&str>,
    hints: &Extra,
    site: &Site<'_>,
    losses: &mut Losses,
) -> Option<String> {
    let format_came = hinted(hints, "~format").is_some();
    let ours = format_came || ours(compaction.format.as_deref());
    if let Some(encrypted) = compaction.encrypted_content.as_deref().filter(|_| ours) {
        let mut object = Object::new();
        object.string("type", "compaction");
        object.maybe("id", id.map(quote).as_deref());
        object.string("encrypted_content", encrypted);
        if format_came {
            object.maybe("format", compaction.format.as_deref().map(quote).as_deref());
        }
        object.carried(&own(&compaction.extra));
        return Some(object.finish());
    }
    if site.place == Place::Output {
        losses.push(
            site.path,
            LossKind::Item,
            "an answer takes no other provider's compaction",
        );
        return None;
    }
    retold(compaction, site.path, losses).map(|text| short("user", &quote(&text)))
}
