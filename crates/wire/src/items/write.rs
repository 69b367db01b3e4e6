//! Documents of items, written. Fields in the order of the module's example, absent ones left out.

use contexture_ir::{
    FinishReason, FunctionCall, FunctionCallOutput, Item, ReasoningOptions, RequestOptions,
    ResponseFormat, ResponseInfo, ToolChoice, ToolDefinition, Transcript, Usage,
};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use crate::Lowered;
use crate::model::chunk::{Chunk, Envelope};
use crate::model::conversion::DocumentKind;
use crate::model::loss::{LossKind, Losses};
use crate::model::paired_item::{PairedItem, RoleRun};
use crate::model::structure::Structure;

pub(crate) fn lower(kind: DocumentKind, transcript: &Transcript) -> Lowered {
    if kind == DocumentKind::Messages {
        return lower_array(transcript);
    }
    Lowered {
        // Serialising fails for keys that are no strings, and there are none.
        json: serde_json::to_string(&TranscriptJson(transcript)).unwrap_or_default(),
        losses: Vec::new(),
    }
}

/// Only instructions and items.
fn lower_array(transcript: &Transcript) -> Lowered {
    let mut losses = Losses::default();
    let left = [
        ("model", LossKind::Option, transcript.model.is_some()),
        ("tools", LossKind::Tool, !transcript.tools.is_empty()),
        (
            "options",
            LossKind::Option,
            transcript.options != RequestOptions::default(),
        ),
        ("response", LossKind::Field, transcript.response.is_some()),
        ("extra", LossKind::Field, !transcript.extra.is_empty()),
    ];
    for (path, what, lost) in left {
        if lost {
            losses.push(path, what, "a bare array has only items");
        }
    }
    let instructions = transcript.instructions.iter().cloned().map(Item::from);
    let all: Vec<Item> = instructions
        .chain(transcript.items.iter().cloned())
        .collect();
    Lowered {
        json: serde_json::to_string(&all).unwrap_or_default(),
        losses: losses.into_vec(),
    }
}

struct TranscriptJson<'a>(&'a Transcript);

impl Serialize for TranscriptJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        serialize_leading_members(&mut map, self.0)?;
        // Always written, even empty: the reader knows a transcript by this member.
        map.serialize_entry("items", &self.0.items)?;
        serialize_trailing_members(&mut map, self.0)?;
        map.end()
    }
}

/// The members of a document that stand before its items.
fn serialize_leading_members<M: SerializeMap>(
    map: &mut M,
    transcript: &Transcript,
) -> Result<(), M::Error> {
    serialize_if_some(map, "model", transcript.model.as_ref())?;
    if !transcript.instructions.is_empty() {
        let messages = transcript.instructions.iter().cloned();
        let list: Vec<Item> = messages.map(Item::from).collect();
        map.serialize_entry("instructions", &list)?;
    }
    Ok(())
}

/// The members of a document that stand after its items.
fn serialize_trailing_members<M: SerializeMap>(
    map: &mut M,
    transcript: &Transcript,
) -> Result<(), M::Error> {
    if !transcript.tools.is_empty() {
        let list: Vec<ToolJson<'_>> = transcript.tools.iter().map(ToolJson).collect();
        map.serialize_entry("tools", &list)?;
    }
    if transcript.options != RequestOptions::default() {
        map.serialize_entry("options", &OptionsJson(&transcript.options))?;
    }
    if let Some(response) = &transcript.response {
        map.serialize_entry("response", &ResponseJson(response))?;
    }
    for (key, value) in transcript.extra.iter() {
        map.serialize_entry(key, value)?;
    }
    Ok(())
}

/// A document without its items: what stands before and after them.
pub(super) fn encode_envelope(request: &Transcript) -> Envelope {
    let leading = encode_members(|map| serialize_leading_members(map, request));
    let trailing = encode_members(|map| serialize_trailing_members(map, request));
    let comma = |members: &str| if members.is_empty() { "" } else { "," };
    Envelope {
        before: format!("{{{leading}{}\"items\":[", comma(&leading)),
        after: format!("]{}{trailing}}}", comma(&trailing)),
        ..Envelope::default()
    }
}

/// The members of an object, without its braces.
fn encode_members(
    serialize: impl FnOnce(&mut MapSerializer<'_>) -> Result<(), serde_json::Error>,
) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut bytes);
    let written = Serializer::serialize_map(&mut serializer, None).and_then(|mut map| {
        serialize(&mut map)?;
        SerializeMap::end(map)
    });
    // Fails for keys that are no strings, and there are none.
    let json = written.ok().and_then(|()| String::from_utf8(bytes).ok());
    let members = json
        .as_deref()
        .and_then(|json| json.get(1..json.len().saturating_sub(1)));
    members.unwrap_or_default().to_owned()
}

type MapSerializer<'a> =
    serde_json::ser::Compound<'a, &'a mut Vec<u8>, serde_json::ser::CompactFormatter>;

/// One run of items, each an element of its own. Nothing is lost: items are written as they are stored, but for call ids
/// that repair made unique.
pub(super) fn encode_run(run: &RoleRun<'_, '_>) -> Chunk {
    let mut chunk = Chunk::default();
    let mut elements = Vec::new();
    for entry in run.entries {
        elements.push(encode_entry(entry));
        // An item without a side of its own stands with its run.
        let side = Structure::AS_STORED.side(entry.item).unwrap_or(run.side);
        chunk.facts.first.get_or_insert(side);
        chunk.facts.last = Some(side);
        chunk.facts.record_call_id(entry, &Structure::AS_STORED);
    }
    chunk.facts.elements = elements.len();
    chunk.json = elements.join(",");
    chunk
}

fn encode_entry(entry: &PairedItem<'_>) -> String {
    match (entry.item, entry.call_id) {
        (Item::FunctionCall(call), Some(id)) => Item::from(FunctionCall {
            call_id: id.to_owned(),
            ..call.clone()
        })
        .to_json(),
        (Item::FunctionCallOutput(output), Some(id)) => Item::from(FunctionCallOutput {
            call_id: id.to_owned(),
            ..output.clone()
        })
        .to_json(),
        (item, _) => item.to_json(),
    }
}

struct ToolJson<'a>(&'a ToolDefinition);

impl Serialize for ToolJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.0 {
            ToolDefinition::Function(tool) => {
                map.serialize_entry("type", "function")?;
                map.serialize_entry("name", &tool.name)?;
                serialize_if_some(&mut map, "description", tool.description.as_ref())?;
                serialize_if_some(&mut map, "parameters", tool.parameters.as_ref())?;
                serialize_if_some(&mut map, "strict", tool.strict.as_ref())?;
                for (key, value) in tool.extra.iter() {
                    map.serialize_entry(key, value)?;
                }
            }
            ToolDefinition::Provider(tool) => {
                map.serialize_entry("type", "provider")?;
                map.serialize_entry("format", &tool.format)?;
                map.serialize_entry("kind", &tool.kind)?;
                map.serialize_entry("raw", &tool.raw)?;
            }
        }
        map.end()
    }
}

fn serialize_if_some<M: SerializeMap, T: Serialize + ?Sized>(
    map: &mut M,
    key: &str,
    value: Option<&T>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(key, value))
}

struct OptionsJson<'a>(&'a RequestOptions);

impl Serialize for OptionsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let it = self.0;
        let mut map = serializer.serialize_map(None)?;
        serialize_if_some(&mut map, "max_output_tokens", it.max_output_tokens.as_ref())?;
        serialize_if_some(&mut map, "temperature", it.temperature.as_ref())?;
        serialize_if_some(&mut map, "top_p", it.top_p.as_ref())?;
        if !it.stop.is_empty() {
            map.serialize_entry("stop", &it.stop)?;
        }
        let choice = it.tool_choice.as_ref().map(ToolChoiceJson);
        serialize_if_some(&mut map, "tool_choice", choice.as_ref())?;
        serialize_if_some(
            &mut map,
            "parallel_tool_calls",
            it.parallel_tool_calls.as_ref(),
        )?;
        let format = it.response_format.as_ref().map(ResponseFormatJson);
        serialize_if_some(&mut map, "response_format", format.as_ref())?;
        let reasoning = it.reasoning.as_ref().map(reasoning_members);
        serialize_if_some(&mut map, "reasoning", reasoning.as_ref())?;
        serialize_if_some(&mut map, "stream", it.stream.as_ref())?;
        map.end()
    }
}

fn reasoning_members(options: &ReasoningOptions) -> Map<String, Value> {
    let members = [
        ("effort", options.effort.clone().map(Value::from)),
        ("budget_tokens", options.budget_tokens.map(Value::from)),
        ("summary", options.summary.clone().map(Value::from)),
    ];
    let set = members.into_iter();
    set.filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect()
}

struct ToolChoiceJson<'a>(&'a ToolChoice);

impl Serialize for ToolChoiceJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ToolChoice::Auto => serializer.serialize_str("auto"),
            ToolChoice::None => serializer.serialize_str("none"),
            ToolChoice::Required => serializer.serialize_str("required"),
            ToolChoice::Function { name } => {
                json!({"type": "function", "name": name}).serialize(serializer)
            }
            ToolChoice::Other { format, raw } => {
                // Not with `json!`, because the raw value has to keep its bytes.
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("type", "other")?;
                map.serialize_entry("format", format)?;
                map.serialize_entry("raw", raw)?;
                map.end()
            }
        }
    }
}

struct ResponseFormatJson<'a>(&'a ResponseFormat);

impl Serialize for ResponseFormatJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.0 {
            ResponseFormat::Text => map.serialize_entry("type", "text")?,
            ResponseFormat::JsonObject => map.serialize_entry("type", "json_object")?,
            ResponseFormat::JsonSchema {
                name,
                description,
                schema,
                strict,
            } => {
                map.serialize_entry("type", "json_schema")?;
                serialize_if_some(&mut map, "name", name.as_ref())?;
                serialize_if_some(&mut map, "description", description.as_ref())?;
                map.serialize_entry("schema", schema)?;
                serialize_if_some(&mut map, "strict", strict.as_ref())?;
            }
        }
        map.end()
    }
}

struct ResponseJson<'a>(&'a ResponseInfo);

impl Serialize for ResponseJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        serialize_if_some(&mut map, "id", self.0.id.as_ref())?;
        let finish = self.0.finish.as_ref().map(finish_reason_json);
        serialize_if_some(&mut map, "finish", finish.as_ref())?;
        let usage = self.0.usage.as_ref().map(UsageJson);
        serialize_if_some(&mut map, "usage", usage.as_ref())?;
        map.end()
    }
}

fn finish_reason_json(reason: &FinishReason) -> Value {
    match reason {
        // In an object, so that a provider's word is never taken for one of ours.
        FinishReason::Other(word) => json!({"other": word}),
        known => known.as_str().into(),
    }
}

struct UsageJson<'a>(&'a Usage);

impl Serialize for UsageJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let it = self.0;
        let mut map = serializer.serialize_map(None)?;
        serialize_if_some(&mut map, "input_tokens", it.input_tokens.as_ref())?;
        serialize_if_some(&mut map, "output_tokens", it.output_tokens.as_ref())?;
        serialize_if_some(&mut map, "total_tokens", it.total_tokens.as_ref())?;
        serialize_if_some(&mut map, "cache_read_tokens", it.cache_read_tokens.as_ref())?;
        serialize_if_some(
            &mut map,
            "cache_write_tokens",
            it.cache_write_tokens.as_ref(),
        )?;
        serialize_if_some(&mut map, "reasoning_tokens", it.reasoning_tokens.as_ref())?;
        if !it.extra.is_empty() {
            map.serialize_entry("extra", &it.extra)?;
        }
        map.end()
    }
}
