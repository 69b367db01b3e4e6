//! Tool parts ↔ a call, its approval and its output.
//!
//! The state of a part is not kept: it follows from what the call has. An approval without an answer
//! is requested, with one responded; an output makes it available, an error or (refused) denied.
//! `input` is the call's arguments verbatim; an output that is not a string is its JSON text.

use contexture_ir::{
    Extension, Extra, Fields, FunctionCall, FunctionCallOutput, Item, Output, Part, Raw, Status,
    quote,
};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::check::{Checked, check_members, decode};
use super::hints::part_hints;
use super::metadata::{Metadata, OPENAI, OWN, alias, note_alias};
use super::schema::{Answer, Check, PartKind, ToolState, approval};

/// The output of a call that was refused without a reason.
const DENIED: &str = "Tool call execution denied.";

/// A tool part, read.
pub(super) struct LiftedTool {
    pub(super) call: FunctionCall,
    /// The call's hints, to be kept with it.
    pub(super) hints: Extra,
    pub(super) approval: Option<Item>,
    pub(super) output: Option<FunctionCallOutput>,
}

/// Whether the provider ran the tool itself, so that its output stands inside the model's answer.
pub(super) fn is_provider_executed(hints: &Extra) -> bool {
    hints
        .get("providerExecuted")
        .is_some_and(|raw| raw.get() == "true")
}

pub(super) fn lift(checked: &Checked<'_>, dynamic: bool, state: ToolState) -> LiftedTool {
    let text = |name: &str| {
        checked
            .get(name)
            .map(|raw| decode(raw.get()).0.into_owned())
    };
    let call_id = text("toolCallId").unwrap_or_default();
    let name = if dynamic {
        text("toolName").unwrap_or_default()
    } else {
        checked
            .type_name
            .strip_prefix("tool-")
            .unwrap_or_default()
            .to_owned()
    };
    let mut hints = Extra::new();
    if dynamic {
        hints.set("~dynamic", flag(true));
    }
    for name in [
        "dynamic",
        "title",
        "toolMetadata",
        "providerExecuted",
        "inputEncoding",
    ] {
        if let Some(value) = checked.get(name) {
            hints.set(name, value.to_raw());
        }
    }
    let mut call = FunctionCall::new(call_id, name, lift_input(checked, &mut hints));
    if state == ToolState::InputStreaming {
        call.status = Some(Status::InProgress);
    }
    if let Some(raw) = checked.get("callProviderMetadata") {
        match Metadata::read(raw.get()) {
            Some(mut metadata) => {
                if let Some((name, id)) = metadata.take_string(OPENAI, "itemId") {
                    note_alias(&mut hints, OPENAI, name);
                    call.id = Some(id);
                }
                metadata.unlink(&mut hints, &mut call.extra);
                if let Some(rest) = metadata.rest() {
                    hints.set("callProviderMetadata", rest);
                }
            }
            None => hints.set("callProviderMetadata", raw.to_raw()),
        }
    }
    let approval = checked
        .get("approval")
        .map(|raw| lift_approval(&call.call_id, raw.get()));
    let output = lift_output(checked, state, &call.call_id);
    LiftedTool {
        call,
        hints,
        approval,
        output,
    }
}

fn flag(value: bool) -> Raw {
    Raw::parse(value.to_string()).unwrap_or_else(|_| Raw::null())
}

/// The arguments: the text as the model wrote it where it is there, else the input.
fn lift_input(checked: &Checked<'_>, hints: &mut Extra) -> String {
    let raw = checked.get("rawInput");
    let Some(input) = checked.get("input") else {
        return match raw {
            None => String::new(),
            Some(raw) if raw.get().starts_with('"') => {
                hints.set("~raw", Raw::string("text"));
                decode(raw.get()).0.into_owned()
            }
            Some(raw) => {
                hints.set("~raw", Raw::string("json"));
                raw.get().to_owned()
            }
        };
    };
    if let Some(raw) = raw {
        hints.set("rawInput", raw.to_raw());
    }
    input.get().to_owned()
}

fn lift_approval(call_id: &str, approval: &str) -> Item {
    let raw = format!(
        r#"{{"type":"ctx:approval","call_id":{},"approval":{approval}}}"#,
        quote(call_id)
    );
    Item::Extension(Extension {
        kind: "ctx:approval".to_owned(),
        id: None,
        raw: Raw::parse(raw).unwrap_or_else(|_| Raw::null()),
    })
}

fn lift_output(
    checked: &Checked<'_>,
    state: ToolState,
    call_id: &str,
) -> Option<FunctionCallOutput> {
    let mut hints = Extra::new();
    let mut out = FunctionCallOutput::new(call_id, Output::Text(String::new()));
    match state {
        ToolState::OutputAvailable => {
            out.output = lift_value(checked.get("output")?.get(), &mut hints);
        }
        ToolState::OutputError => {
            out.output = Output::Text(decode(checked.get("errorText")?.get()).0.into_owned());
            out.is_error = Some(true);
        }
        ToolState::OutputDenied => {
            out.output = Output::Text(refusal(checked.get("approval")?.get()));
            out.is_error = Some(true);
        }
        _ => return None,
    }
    match checked.get("preliminary") {
        Some(raw) if raw.get() == "true" => out.status = Some(Status::InProgress),
        Some(raw) => hints.set("preliminary", raw.to_raw()),
        None => {}
    }
    if let Some(raw) = checked.get("resultProviderMetadata") {
        match Metadata::read(raw.get()) {
            Some(mut metadata) => {
                out.id = metadata.take_string(&[OWN], "id").map(|(_, id)| id);
                if let Some(rest) = metadata.rest() {
                    hints.set("resultProviderMetadata", rest);
                }
            }
            None => hints.set("resultProviderMetadata", raw.to_raw()),
        }
    }
    out.extra.set_wire("ui", hints);
    Some(out)
}

fn refusal(approval: &str) -> String {
    let reason = Fields::parse(approval).ok().and_then(|fields| {
        fields
            .get(&["reason"])
            .map(|raw| decode(raw.get()).0.into_owned())
    });
    reason.unwrap_or_else(|| DENIED.to_owned())
}

fn lift_value(value: &str, hints: &mut Extra) -> Output {
    if value.starts_with('"') {
        let text = decode(value).0.into_owned();
        if as_json(&text).is_some() {
            hints.set("~output", Raw::string("text"));
        }
        return Output::Text(text);
    }
    match media_parts(value) {
        Some(parts) => Output::Parts(parts),
        None => Output::Text(value.to_owned()),
    }
}

/// An output of parts as this crate writes it: an array of texts, pictures, files and providers' blocks
/// that come out as the same value.
fn media_parts(value: &str) -> Option<Vec<Part>> {
    if !value.starts_with('[') || !value.contains("\"type\"") {
        return None;
    }
    let parts = Part::parse_all(value).ok()?;
    let ours = |part: &Part| match part {
        Part::InputText(_) | Part::InputImage(_) | Part::InputFile(_) => true,
        // A provider's own block, as its format keeps it.
        Part::Extension(other) => {
            let slug = other.kind.split_once(':').map(|(slug, _)| slug);
            matches!(slug, Some("anthropic" | "openai" | "gemini"))
        }
        _ => false,
    };
    if parts.is_empty() || !parts.iter().all(ours) {
        return None;
    }
    let written = Raw::from_value(&parts).ok()?;
    let same = written.to::<serde_json::Value>().ok()?
        == serde_json::from_str::<serde_json::Value>(value).ok()?;
    same.then_some(parts)
}

/// A text that is one JSON value other than a string, without space around it.
fn as_json(text: &str) -> Option<Raw> {
    let first = text.chars().next()?;
    if !matches!(first, '{' | '[' | 't' | 'f' | 'n' | '-' | '0'..='9') {
        return None;
    }
    let raw = Raw::parse(text).ok()?;
    (raw.get().len() == text.len()).then_some(raw)
}

/// A call with what answers it, while its message is put together.
#[derive(Debug)]
pub(super) struct ToolDraft<'a> {
    pub(super) call: &'a FunctionCall,
    pub(super) hints: Extra,
    pub(super) approval: Option<&'a Raw>,
    pub(super) output: Option<&'a FunctionCallOutput>,
}

impl ToolDraft<'_> {
    /// The approval, if it has the form its state demands, and the state.
    fn state(&self) -> (ToolState, Option<Raw>) {
        let given = |answer: Answer| {
            let fields = Fields::parse(self.approval?.get()).ok()?;
            let raw = fields.get(&["approval"])?;
            let members = check_members(Fields::parse(raw.get()).ok()?, approval(answer)).ok()?;
            let approved = members.list.iter().find(|(key, _)| *key == "approved");
            let approved = approved.map(|(_, value)| value.get() == "true");
            // Unknown keys would be refused nowhere, but dropped by the next validation.
            members
                .dropped
                .is_empty()
                .then(|| (Raw::from(raw), approved))
        };
        let answered = given(Answer::Given);
        match self.output {
            Some(_) if matches!(answered, Some((_, Some(false)))) => {
                (ToolState::OutputDenied, answered.map(|(raw, _)| raw))
            }
            Some(output) => {
                let state = if output.is_error == Some(true) {
                    ToolState::OutputError
                } else {
                    ToolState::OutputAvailable
                };
                (state, answered.map(|(raw, _)| raw))
            }
            None => match (answered, given(Answer::Open)) {
                (Some((raw, _)), _) => (ToolState::ApprovalResponded, Some(raw)),
                (None, Some((raw, _))) => (ToolState::ApprovalRequested, Some(raw)),
                (None, None) => match self.call.status {
                    Some(Status::InProgress | Status::Incomplete) => {
                        (ToolState::InputStreaming, None)
                    }
                    _ => (ToolState::InputAvailable, None),
                },
            },
        }
    }

    /// The part.
    pub(super) fn fold(&self) -> Raw {
        let dynamic = self
            .hints
            .get("~dynamic")
            .is_some_and(|raw| raw.get() == "true");
        let (state, approval) = self.state();
        let mut fields = Collected::default();
        fields.put("toolName", Raw::string(&self.call.name));
        fields.put("toolCallId", Raw::string(&self.call.call_id));
        fields.put("state", Raw::string(state.as_str()));
        for name in [
            "dynamic",
            "title",
            "toolMetadata",
            "providerExecuted",
            "inputEncoding",
        ] {
            fields.put_some(name, self.hints.get(name).cloned());
        }
        fields.put_some("callProviderMetadata", self.call_metadata());
        fields.put_some("approval", approval);
        self.fold_input(state, &mut fields);
        if let Some(output) = self.output {
            fold_output(output, state, &mut fields);
        }
        let type_name = if dynamic {
            "dynamic-tool".to_owned()
        } else {
            format!("tool-{}", self.call.name)
        };
        fields.write(&type_name, dynamic, state)
    }

    fn call_metadata(&self) -> Option<Raw> {
        let kept = self.hints.get("callProviderMetadata");
        let mut metadata = match kept.map(|raw| Metadata::read(raw.get())) {
            Some(None) => return kept.cloned(),
            read => read.flatten().unwrap_or_default(),
        };
        if let Some(id) = &self.call.id {
            metadata.put_string(alias(&self.hints, OPENAI), "itemId", id);
        }
        metadata.link(&self.hints, &self.call.extra);
        metadata.joined()
    }

    fn fold_input(&self, state: ToolState, fields: &mut Collected) {
        let arguments = self.call.arguments.as_str();
        let json = Raw::parse(arguments).ok();
        let optional = matches!(state, ToolState::InputStreaming | ToolState::OutputError);
        match self.hints.get("~raw").and_then(Raw::as_string).as_deref() {
            Some("text") if optional => return fields.put("rawInput", Raw::string(arguments)),
            Some("json") if optional => return fields.put_some("rawInput", json),
            _ => {}
        }
        if optional {
            fields.put_some("rawInput", self.hints.get("rawInput").cloned());
        }
        match json {
            Some(json) => fields.put("input", json),
            None if arguments.is_empty() && optional => {}
            None if arguments.is_empty() => {
                fields.put("input", Raw::parse("{}").unwrap_or_else(|_| Raw::null()));
            }
            None if state == ToolState::InputStreaming => {
                fields.put("rawInput", Raw::string(arguments));
            }
            None => fields.put("input", Raw::string(arguments)),
        }
    }
}

fn fold_output(output: &FunctionCallOutput, state: ToolState, fields: &mut Collected) {
    let hints = part_hints(&output.extra);
    match state {
        ToolState::OutputError => fields.put("errorText", Raw::string(&error_text(&output.output))),
        ToolState::OutputAvailable => {
            let keep_text = hints.get("~output").is_some();
            let value = match &output.output {
                Output::Text(text) if keep_text => Raw::string(text),
                Output::Text(text) => as_json(text).unwrap_or_else(|| Raw::string(text)),
                Output::Parts(parts) => Raw::from_value(parts).unwrap_or_else(|_| Raw::null()),
            };
            fields.put("output", value);
            if output.status == Some(Status::InProgress) {
                fields.put("preliminary", flag(true));
            } else {
                fields.put_some("preliminary", hints.get("preliminary").cloned());
            }
        }
        _ => return,
    }
    let kept = hints.get("resultProviderMetadata");
    let metadata = match kept.map(|raw| Metadata::read(raw.get())) {
        Some(None) => kept.cloned(),
        read => {
            let mut metadata = read.flatten().unwrap_or_default();
            if let Some(id) = &output.id {
                metadata.put_string(OWN, "id", id);
            }
            metadata.joined()
        }
    };
    fields.put_some("resultProviderMetadata", metadata);
}

/// An error is text; pictures beside it have no place.
pub(super) fn error_text(output: &Output) -> String {
    match output {
        Output::Text(text) => text.clone(),
        Output::Parts(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(Part::as_text).collect();
            texts.join("\n")
        }
    }
}

/// Fields by name, written in the order of a part's table.
#[derive(Default)]
struct Collected(Vec<(&'static str, Raw)>);

impl Collected {
    fn put(&mut self, name: &'static str, value: Raw) {
        self.0.push((name, value));
    }

    fn put_some(&mut self, name: &'static str, value: Option<Raw>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    fn write(&self, type_name: &str, dynamic: bool, state: ToolState) -> Raw {
        Raw::from_value(&Written {
            type_name,
            fields: &self.0,
            shape: PartKind::tool_shape(dynamic, state),
        })
        .unwrap_or_else(|_| Raw::null())
    }
}

struct Written<'a> {
    type_name: &'a str,
    fields: &'a [(&'static str, Raw)],
    shape: super::schema::Shape,
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.type_name)?;
        for field in self.shape {
            let found = self.fields.iter().find(|(name, _)| *name == field.name);
            if let Some((_, value)) = found
                && field.check != Check::Never
            {
                map.serialize_entry(field.name, value)?;
            }
        }
        map.end()
    }
}
