//! What a request says, whatever its format.

use serde_json::Value;

use crate::scripted::dialect::ProviderApi;

/// What a request says.
#[derive(Debug)]
pub(crate) struct Prompt {
    /// The model's name, where the body has it.
    pub(crate) model: Option<String>,
    /// How many messages are a person's.
    pub(crate) turns: usize,
    /// The texts of the last message, a person's or a tool's.
    pub(crate) last_text: String,
    /// Whether that is the output of tools.
    pub(crate) last_speaker: Speaker,
    /// The texts of the last message of a person.
    pub(crate) last_user_text: String,
    /// How many messages of tools came since.
    pub(crate) outputs: usize,
    /// Everything a model reads, in the order in which a cache knows it.
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    Person,
    Tool,
}

impl Prompt {
    pub(crate) fn from_body(dialect: ProviderApi, body: &Value) -> Self {
        let no_one = Vec::new();
        let given = &body[dialect.messages_field()];
        // One string stands for one message.
        let messages = given.as_array().unwrap_or(&no_one);
        let mut last = Vec::new();
        let mut by = Speaker::Person;
        let trailing = messages.iter().rev();
        for message in trailing.take_while(|message| message_speaker(message).is_some()) {
            let speaker = message_speaker(message).unwrap_or(Speaker::Person);
            // Outputs of one round of calls may be several messages; of a person's only the last counts.
            if !last.is_empty() && (speaker != by || by == Speaker::Person) {
                break;
            }
            by = speaker;
            last.push(joined_texts(message));
        }
        last.reverse();
        let said = given.as_str().map_or(last.concat(), str::to_owned);
        let spoken = messages
            .iter()
            .rev()
            .filter_map(|message| Some((message_speaker(message)?, message)));
        let mut since = spoken.skip_while(|(speaker, _)| *speaker == Speaker::Tool);
        let asked = since.next().map(|(_, message)| joined_texts(message));
        let of_tools = messages.iter().rev().filter_map(message_speaker);
        let outputs = of_tools
            .take_while(|speaker| *speaker == Speaker::Tool)
            .count();
        let is_persons = |message: &&Value| message_speaker(message) == Some(Speaker::Person);
        // In the order in which providers build prompts: tools, then instructions, then the history.
        let parts = ["tools", "system", "instructions", "systemInstruction"];
        let parts = parts.iter().map(|part| body[part].to_string());
        let history = messages.iter().map(Value::to_string);
        Self {
            model: body["model"].as_str().map(str::to_owned),
            // One string as the input counts as one message.
            turns: messages.iter().filter(is_persons).count().max(1),
            last_speaker: by,
            last_user_text: asked.unwrap_or_else(|| said.clone()),
            outputs,
            text: parts
                .chain(history)
                .chain([given.as_str().unwrap_or_default().to_owned()])
                .collect(),
            last_text: said,
        }
    }

    /// Four bytes are a token.
    pub(crate) fn token_count(&self) -> usize {
        self.text.len().div_ceil(4)
    }
}

/// Who speaks in a message; nothing if it is the model.
fn message_speaker(message: &Value) -> Option<Speaker> {
    let kind = message["type"].as_str().unwrap_or("message");
    // Responses and Chat Completions mark outputs on the message, the others within its parts.
    if kind.ends_with("_output") || message["role"] == "tool" {
        return Some(Speaker::Tool);
    }
    if kind != "message" || message["role"] != "user" {
        return None;
    }
    let parts = message["content"]
        .as_array()
        .or(message["parts"].as_array());
    let is_output =
        |part: &Value| part["type"] == "tool_result" || part.get("functionResponse").is_some();
    match parts.is_some_and(|parts| parts.iter().any(is_output)) {
        true => Some(Speaker::Tool),
        false => Some(Speaker::Person),
    }
}

/// The texts of a message, an output's included.
fn joined_texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .map(joined_texts)
            .collect::<Vec<_>>()
            .join("\n"),
        Value::Object(fields) => {
            let inner = ["content", "parts", "text", "output"].iter();
            let inner = inner.filter_map(|name| fields.get(*name)).map(joined_texts);
            let output = fields
                .get("functionResponse")
                // Gemini's outputs are JSON and not text.
                .map(|output| output["response"].to_string());
            inner.chain(output).collect()
        }
        _ => String::new(),
    }
}
