//! JSON Schemas of requests and responses.

use serde_json::Value;

use crate::files::read_text;

/// A JSON Schema by name: `anthropic.messages.request`, `openai.chat.response`, ….
#[must_use]
pub fn schema(name: &str) -> Value {
    serde_json::from_str(&read_text(&format!("schemas/{name}.json.gz"))).unwrap()
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
    pub fn validation_errors(&self, document: &Value) -> Vec<String> {
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
        "bedrock" => schema("bedrock.converse.request"),
        other => panic!("no schema for {other}"),
    })
}

fn gemini_request() -> Value {
    let (content, tool) = (schema("gemini.Content"), schema("gemini.Tool"));
    // Both schemas have their definitions under the same root, so they can be merged into one.
    let mut defs = content["$defs"].as_object().unwrap().clone();
    defs.extend(tool["$defs"].as_object().unwrap().clone());
    // The definitions are lifted out, since references in them start at the root of the document.
    let body = |schema: &Value| {
        let mut schema = schema.clone();
        schema.as_object_mut().unwrap().remove("$defs");
        schema
    };
    defs.insert("ContextureContent".into(), body(&content));
    defs.insert("ContextureTool".into(), body(&tool));
    serde_json::json!({
        "type": "object",
        // Strict, so that a misspelt member fails the test and not the provider.
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
