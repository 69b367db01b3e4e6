//! Recorded traffic, sessions and schemas for the tests of every crate.
//!
//! Only for tests: everything here panics when its file is not as expected, for then the test suite
//! itself is broken. Files are packed with gzip; `data/README.md` names sources and licences.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test data: a file that is not as expected is a broken test suite"
)]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The folder of the data.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data")
}

/// A file's text, unpacked if its name ends in `.gz`.
#[must_use]
pub fn read(path: &str) -> String {
    let full = folder().join(path);
    let bytes = fs::read(&full).unwrap_or_else(|error| panic!("{}: {error}", full.display()));
    if !path.ends_with(".gz") {
        return String::from_utf8(bytes).unwrap();
    }
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice())
        .read_to_string(&mut text)
        .unwrap();
    text
}

/// The names of a folder's files, sorted.
#[must_use]
pub fn list(folder_name: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder().join(folder_name))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// One recorded exchange with a provider.
#[derive(Debug, Deserialize)]
pub struct Exchange {
    /// The recording it is from.
    pub file: String,
    /// Its place in the recording.
    pub index: usize,
    /// Where it went.
    pub url: String,
    /// The status of the answer.
    pub status: u16,
    /// The request's body.
    pub request: Box<RawValue>,
    /// The answer's body, if it was not a stream.
    pub response: Option<Box<RawValue>>,
    /// The answer's server-sent events, if it was a stream.
    pub stream: Option<String>,
}

/// The exchanges with the generation endpoint of a format: `openai-chat`, `openai-responses`,
/// `anthropic` or `gemini`.
#[must_use]
pub fn exchanges(format: &str) -> Vec<Exchange> {
    lines(&format!("exchanges/{format}.jsonl.gz"))
}

/// One recorded answer of the AI SDK's fixtures.
#[derive(Debug, Deserialize)]
pub struct Recording {
    /// The file it is from.
    pub file: String,
    /// The body of an answer.
    pub response: Option<Box<RawValue>>,
    /// The events of a stream, one a line.
    pub chunks: Option<Vec<String>>,
}

/// The AI SDK's recordings of a provider: `openai`, `anthropic`, `google` or `open-responses`.
#[must_use]
pub fn ai_sdk(provider: &str) -> Vec<Recording> {
    lines(&format!("ai-sdk/{provider}.jsonl.gz"))
}

fn lines<T: for<'a> Deserialize<'a>>(path: &str) -> Vec<T> {
    read(path)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The text of the 200 tau-bench sessions, one JSON array.
#[must_use]
pub fn tau_bench() -> String {
    read("tau-bench/gpt-4o-airline.json.gz")
}

/// The SWE-agent sessions: name and text.
#[must_use]
pub fn swe_agent() -> Vec<(String, String)> {
    list("swe-agent")
        .into_iter()
        .filter(|name| name.ends_with(".traj"))
        .map(|name| (name.clone(), read(&format!("swe-agent/{name}"))))
        .collect()
}

/// A JSON Schema by name: `anthropic.messages.request`, `openai.chat.response`, ….
#[must_use]
pub fn schema(name: &str) -> Value {
    serde_json::from_str(&read(&format!("schemas/{name}.json.gz"))).unwrap()
}

/// Checks documents against one JSON Schema.
#[derive(Debug)]
pub struct Validator(jsonschema::Validator);

impl Validator {
    /// Compiles a schema.
    #[must_use]
    pub fn new(schema: &Value) -> Self {
        Self(jsonschema::validator_for(schema).unwrap_or_else(|error| panic!("schema: {error}")))
    }

    /// What is wrong with a document, by path; at most five findings.
    #[must_use]
    pub fn findings(&self, document: &Value) -> Vec<String> {
        self.0
            .iter_errors(document)
            .take(5)
            .map(|error| {
                let text: String = error.to_string().chars().take(300).collect();
                format!("{}: {text}", error.instance_path())
            })
            .collect()
    }
}

/// The validator of a provider's requests. Gemini has no schema of the whole request: its contents
/// and tools are checked within an envelope of ours.
#[must_use]
pub fn request_validator(format: &str) -> Validator {
    Validator::new(&match format {
        "openai-chat" => schema("openai.chat.request"),
        "openai-responses" => schema("openai.responses.request"),
        "anthropic" => schema("anthropic.messages.request"),
        "gemini" => gemini_request(),
        other => panic!("no schema for {other}"),
    })
}

fn gemini_request() -> Value {
    let (content, tool) = (schema("gemini.Content"), schema("gemini.Tool"));
    let mut defs = content["$defs"].as_object().unwrap().clone();
    defs.extend(tool["$defs"].as_object().unwrap().clone());
    let body = |schema: &Value| {
        let mut schema = schema.clone();
        schema.as_object_mut().unwrap().remove("$defs");
        schema
    };
    defs.insert("ContextureContent".into(), body(&content));
    defs.insert("ContextureTool".into(), body(&tool));
    serde_json::json!({
        "type": "object",
        "required": ["contents"],
        "additionalProperties": false,
        "properties": {
            "model": {"type": "string"},
            "contents": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/ContextureContent"}},
            "systemInstruction": {"$ref": "#/$defs/ContextureContent"},
            "tools": {"type": "array", "items": {"$ref": "#/$defs/ContextureTool"}},
            "toolConfig": {"type": "object"},
            "generationConfig": {"type": "object"},
            "safetySettings": {"type": "array"},
            "cachedContent": {"type": "string"},
            "labels": {"type": "object"}
        },
        "$defs": defs
    })
}
