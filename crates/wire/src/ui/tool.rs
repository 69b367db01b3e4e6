//! Tool parts ↔ a call, its approval and its output.
//!
//! The state of a part is not kept: it follows from what the call has. An approval without an answer
//! is requested, with one responded; an output makes it available, an error or (refused) denied.
//! `input` is the call's arguments verbatim; an output that is not a string is its JSON text.

use contexture_ir::{
    Extension, Extra, Fields, FunctionCall, FunctionCallOutput, Item, Output, Part, Raw, Status,
    quote_json,
};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::metadata::{OPENAI, OWN, ProviderMetadata, provider_alias, record_alias};
use super::schema::{ApprovalAnswer, ExpectedValue, PartKind, ToolState, approval_fields};
use super::ui_only_fields::part_hints;
use super::validate_part::{CheckedPart, check_members, decode_string};

/// The output of a call that was refused without a reason.
const DENIED: &str = "Tool call execution denied.";

/// A tool part, read.
pub(super) struct LiftedTool {
    pub(super) call: FunctionCall,
    /// The hints to store with the call.
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

pub(super) fn lift_tool(checked: &CheckedPart<'_>, dynamic: bool, state: ToolState) -> LiftedTool {
    let text = |name: &str| {
        checked
            .get(name)
            .map(|raw| decode_string(raw.get()).0.into_owned())
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
        hints.set("~dynamic", flag_json(true));
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
        // Only in this state may the input still be incomplete.
        call.status = Some(Status::InProgress);
    }
    lift_call_metadata(checked, &mut call, &mut hints);
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

/// Reads the provider's metadata of a call: what items have a field for moves there, the rest becomes a hint.
fn lift_call_metadata(checked: &CheckedPart<'_>, call: &mut FunctionCall, hints: &mut Extra) {
    let Some(raw) = checked.get("callProviderMetadata") else {
        return;
    };
    // Metadata that is no object of objects is kept as it came.
    let Some(mut metadata) = ProviderMetadata::parse(raw.get()) else {
        return hints.set("callProviderMetadata", raw.to_raw());
    };
    if let Some((name, id)) = metadata.take_string(OPENAI, "itemId") {
        record_alias(hints, OPENAI, name);
        call.id = Some(id);
    }
    metadata.extract_linked_fields(hints, &mut call.extra);
    if let Some(rest) = metadata.remaining_json() {
        hints.set("callProviderMetadata", rest);
    }
}

fn flag_json(value: bool) -> Raw {
    Raw::parse(value.to_string()).unwrap_or_else(|_| Raw::null())
}

/// The arguments: the text as the model wrote it where it is there, else the input.
fn lift_input(checked: &CheckedPart<'_>, hints: &mut Extra) -> String {
    let raw = checked.get("rawInput");
    let Some(input) = checked.get("input") else {
        // Without `input` the raw text is what the model wrote; the hint says in which form it
        // came.
        return match raw {
            None => String::new(),
            Some(raw) if raw.get().starts_with('"') => {
                hints.set("~raw", Raw::string("text"));
                decode_string(raw.get()).0.into_owned()
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
    // The approval is JSON already and goes in byte for byte.
    let raw = format!(
        r#"{{"type":"ctx:approval","call_id":{},"approval":{approval}}}"#,
        quote_json(call_id)
    );
    Item::Extension(Extension {
        kind: "ctx:approval".to_owned(),
        id: None,
        raw: Raw::parse(raw).unwrap_or_else(|_| Raw::null()),
    })
}

fn lift_output(
    checked: &CheckedPart<'_>,
    state: ToolState,
    call_id: &str,
) -> Option<FunctionCallOutput> {
    let mut hints = Extra::new();
    let mut out = FunctionCallOutput::new(call_id, Output::Text(String::new()));
    match state {
        ToolState::OutputAvailable => {
            out.output = lift_output_value(checked.get("output")?.get(), &mut hints);
        }
        ToolState::OutputError => {
            out.output = Output::Text(
                decode_string(checked.get("errorText")?.get())
                    .0
                    .into_owned(),
            );
            out.is_error = Some(true);
        }
        ToolState::OutputDenied => {
            // To the model a denial is the output of a failed call: it has to learn that nothing
            // was run.
            out.output = Output::Text(refusal_text(checked.get("approval")?.get()));
            out.is_error = Some(true);
        }
        _ => return None,
    }
    match checked.get("preliminary") {
        // A preliminary output may still be replaced by a later one.
        Some(raw) if raw.get() == "true" => out.status = Some(Status::InProgress),
        Some(raw) => hints.set("preliminary", raw.to_raw()),
        None => {}
    }
    if let Some(raw) = checked.get("resultProviderMetadata") {
        match ProviderMetadata::parse(raw.get()) {
            Some(mut metadata) => {
                out.id = metadata.take_string(&[OWN], "id").map(|(_, id)| id);
                if let Some(rest) = metadata.remaining_json() {
                    hints.set("resultProviderMetadata", rest);
                }
            }
            None => hints.set("resultProviderMetadata", raw.to_raw()),
        }
    }
    out.extra.set_wire_fields("ui", hints);
    Some(out)
}

fn refusal_text(approval: &str) -> String {
    let reason = Fields::parse(approval).ok().and_then(|fields| {
        fields
            .get(&["reason"])
            .map(|raw| decode_string(raw.get()).0.into_owned())
    });
    reason.unwrap_or_else(|| DENIED.to_owned())
}

fn lift_output_value(value: &str, hints: &mut Extra) -> Output {
    if value.starts_with('"') {
        let text = decode_string(value).0.into_owned();
        // Text that looks like JSON would come back as JSON; the hint keeps it a string.
        if as_json(&text).is_some() {
            hints.set("~output", Raw::string("text"));
        }
        return Output::Text(text);
    }
    match parse_output_parts(value) {
        Some(parts) => Output::Parts(parts),
        None => Output::Text(value.to_owned()),
    }
}

/// An output of parts as this crate writes it: an array of texts, pictures, files and providers' blocks
/// that come out as the same value.
fn parse_output_parts(value: &str) -> Option<Vec<Part>> {
    // Most outputs are no list of parts; this spares parsing them.
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
    // Only if nothing would be lost on the way back; otherwise the value stays JSON text.
    let written = Raw::from_value(&parts).ok()?;
    let same = written.parse_as::<serde_json::Value>().ok()?
        == serde_json::from_str::<serde_json::Value>(value).ok()?;
    same.then_some(parts)
}

/// A text that is one JSON value other than a string, without space around it.
fn as_json(text: &str) -> Option<Raw> {
    // The first character tells most texts from JSON without parsing them.
    let first = text.chars().next()?;
    if !matches!(first, '{' | '[' | 't' | 'f' | 'n' | '-' | '0'..='9') {
        return None;
    }
    let raw = Raw::parse(text).ok()?;
    // White space around the value would be lost, so such a text stays a text.
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
    fn part_state(&self) -> (ToolState, Option<Raw>) {
        let given = |answer: ApprovalAnswer| {
            let fields = Fields::parse(self.approval?.get()).ok()?;
            let raw = fields.get(&["approval"])?;
            let members =
                check_members(Fields::parse(raw.get()).ok()?, approval_fields(answer)).ok()?;
            let approved = members.list.iter().find(|(key, _)| *key == "approved");
            let approved = approved.map(|(_, value)| value.get() == "true");
            // Unknown keys would be refused nowhere, but dropped by the next validation.
            members
                .dropped
                .is_empty()
                .then(|| (Raw::from(raw), approved))
        };
        let answered = given(ApprovalAnswer::Given);
        match self.output {
            // A denied call was never run, so its output is the refusal itself.
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
            None => match (answered, given(ApprovalAnswer::Open)) {
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

    /// Builds the tool part of the call, with its state, approval and output.
    pub(super) fn fold_part(&self) -> Raw {
        let dynamic = self
            .hints
            .get("~dynamic")
            .is_some_and(|raw| raw.get() == "true");
        let (state, approval) = self.part_state();
        let mut fields = CollectedFields::default();
        fields.push_field("toolName", Raw::string(&self.call.name));
        fields.push_field("toolCallId", Raw::string(&self.call.call_id));
        fields.push_field("state", Raw::string(state.as_str()));
        for name in [
            "dynamic",
            "title",
            "toolMetadata",
            "providerExecuted",
            "inputEncoding",
        ] {
            fields.push_if_some(name, self.hints.get(name).cloned());
        }
        fields.push_if_some("callProviderMetadata", self.call_metadata());
        fields.push_if_some("approval", approval);
        self.fold_input(state, &mut fields);
        if let Some(output) = self.output {
            fold_output(output, state, &mut fields);
        }
        let type_name = if dynamic {
            "dynamic-tool".to_owned()
        } else {
            format!("tool-{}", self.call.name)
        };
        fields.build_part(&type_name, dynamic, state)
    }

    fn call_metadata(&self) -> Option<Raw> {
        let kept = self.hints.get("callProviderMetadata");
        let mut metadata = match kept.map(|raw| ProviderMetadata::parse(raw.get())) {
            Some(None) => return kept.cloned(),
            read => read.flatten().unwrap_or_default(),
        };
        if let Some(id) = &self.call.id {
            metadata.set_string(provider_alias(&self.hints, OPENAI), "itemId", id);
        }
        metadata.insert_linked_fields(&self.hints, &self.call.extra);
        metadata.remaining_json()
    }

    fn fold_input(&self, state: ToolState, fields: &mut CollectedFields) {
        let arguments = self.call.arguments.as_str();
        let json = Raw::parse(arguments).ok();
        let optional = matches!(state, ToolState::InputStreaming | ToolState::OutputError);
        match self.hints.get("~raw").and_then(Raw::as_string).as_deref() {
            Some("text") if optional => {
                return fields.push_field("rawInput", Raw::string(arguments));
            }
            Some("json") if optional => return fields.push_if_some("rawInput", json),
            _ => {}
        }
        if optional {
            fields.push_if_some("rawInput", self.hints.get("rawInput").cloned());
        }
        match json {
            Some(json) => fields.push_field("input", json),
            None if arguments.is_empty() && optional => {}
            // An input is required here; a call without arguments has an empty object.
            None if arguments.is_empty() => {
                fields.push_field("input", Raw::parse("{}").unwrap_or_else(|_| Raw::null()));
            }
            // Half a JSON text is no `input` yet.
            None if state == ToolState::InputStreaming => {
                fields.push_field("rawInput", Raw::string(arguments));
            }
            None => fields.push_field("input", Raw::string(arguments)),
        }
    }
}

fn fold_output(output: &FunctionCallOutput, state: ToolState, fields: &mut CollectedFields) {
    let hints = part_hints(&output.extra);
    match state {
        ToolState::OutputError => {
            fields.push_field("errorText", Raw::string(&error_text(&output.output)))
        }
        ToolState::OutputAvailable => {
            let keep_text = hints.get("~output").is_some();
            let value = match &output.output {
                Output::Text(text) if keep_text => Raw::string(text),
                Output::Text(text) => as_json(text).unwrap_or_else(|| Raw::string(text)),
                Output::Parts(parts) => Raw::from_value(parts).unwrap_or_else(|_| Raw::null()),
            };
            fields.push_field("output", value);
            if output.status == Some(Status::InProgress) {
                fields.push_field("preliminary", flag_json(true));
            } else {
                fields.push_if_some("preliminary", hints.get("preliminary").cloned());
            }
        }
        // A denied call has no output member; the reason stands in its approval.
        _ => return,
    }
    let kept = hints.get("resultProviderMetadata");
    let metadata = match kept.map(|raw| ProviderMetadata::parse(raw.get())) {
        Some(None) => kept.cloned(),
        read => {
            let mut metadata = read.flatten().unwrap_or_default();
            if let Some(id) = &output.id {
                metadata.set_string(OWN, "id", id);
            }
            metadata.remaining_json()
        }
    };
    fields.push_if_some("resultProviderMetadata", metadata);
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
struct CollectedFields(Vec<(&'static str, Raw)>);

impl CollectedFields {
    fn push_field(&mut self, name: &'static str, value: Raw) {
        self.0.push((name, value));
    }

    fn push_if_some(&mut self, name: &'static str, value: Option<Raw>) {
        if let Some(value) = value {
            self.push_field(name, value);
        }
    }

    fn build_part(&self, type_name: &str, dynamic: bool, state: ToolState) -> Raw {
        Raw::from_value(&OrderedFields {
            type_name,
            fields: &self.0,
            shape: PartKind::tool_fields(dynamic, state),
        })
        .unwrap_or_else(|_| Raw::null())
    }
}

struct OrderedFields<'a> {
    type_name: &'a str,
    fields: &'a [(&'static str, Raw)],
    shape: super::schema::FieldTable,
}

impl Serialize for OrderedFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.type_name)?;
        // Members are written in the order of the schema, whatever order they were collected in.
        for field in self.shape {
            let found = self.fields.iter().find(|(name, _)| *name == field.name);
            if let Some((_, value)) = found
                && field.check != ExpectedValue::Never
            {
                map.serialize_entry(field.name, value)?;
            }
        }
        map.end()
    }
}
