//! What recorded exchanges say of themselves: their model, and what was billed for them.

use contexture_testdata::Exchange;
use contexture_wire::Format;
use serde_json::Value;

/// What a call was billed for.
#[derive(Debug)]
pub(crate) struct Billed {
    /// All input tokens.
    pub(crate) input: u64,
    /// Of those, what was read from the cache, if it is told.
    pub(crate) read: Option<u64>,
}

/// What the answer, or each event of the stream that tells, reports.
pub(crate) fn billed(format: Format, exchange: &Exchange) -> impl Iterator<Item = Billed> {
    let whole = exchange.response.iter().map(|json| json.get());
    let events = exchange.stream.iter().flat_map(|stream| stream.lines());
    let events = events.filter_map(|line| line.strip_prefix("data:"));
    whole
        .chain(events)
        .filter_map(|json| serde_json::from_str(json).ok())
        .filter_map(move |value: Value| match format {
            Format::Gemini => {
                let usage = &value["usageMetadata"];
                // What is not told was not read.
                let read = usage["cachedContentTokenCount"].as_u64().unwrap_or(0);
                Some(Billed {
                    input: usage["promptTokenCount"].as_u64()?,
                    read: Some(read),
                })
            }
            // Bedrock counts what it read from and wrote to the cache apart.
            Format::Bedrock => {
                let usage = &value["usage"];
                let read = usage["cacheReadInputTokens"].as_u64();
                let written = usage["cacheWriteInputTokens"].as_u64();
                let cached = read.unwrap_or(0) + written.unwrap_or(0);
                Some(Billed {
                    input: usage["inputTokens"].as_u64()? + cached,
                    read,
                })
            }
            Format::OpenAiChat => {
                let usage = &value["usage"];
                Some(Billed {
                    input: usage["prompt_tokens"].as_u64()?,
                    read: usage["prompt_tokens_details"]["cached_tokens"].as_u64(),
                })
            }
            Format::OpenAiResponses => usage_in(&value, "response", |usage| {
                Some(Billed {
                    input: usage["input_tokens"].as_u64()?,
                    read: usage["input_tokens_details"]["cached_tokens"].as_u64(),
                })
            }),
            // Anthropic counts what it read from and wrote to the cache apart.
            _ => usage_in(&value, "message", |usage| {
                let read = usage["cache_read_input_tokens"].as_u64();
                let written = usage["cache_creation_input_tokens"].as_u64();
                let cached = read.unwrap_or(0) + written.unwrap_or(0);
                Some(Billed {
                    input: usage["input_tokens"].as_u64()? + cached,
                    read,
                })
            }),
        })
}

/// The usage of an answer, or of the answer that an event holds.
fn usage_in(
    value: &Value,
    holder: &str,
    read: impl Fn(&Value) -> Option<Billed>,
) -> Option<Billed> {
    read(&value["usage"]).or_else(|| read(&value[holder]["usage"]))
}

/// The model that was asked. Gemini's and Bedrock's requests name it in the address.
pub(crate) fn model_of(exchange: &Exchange) -> Option<String> {
    let request: Value = serde_json::from_str(exchange.request.get()).ok()?;
    let in_url = || {
        let rest = exchange.url.split("/models/").nth(1)?;
        rest.split(':').next()
    };
    let of_bedrock = || {
        let rest = exchange.url.split("/model/").nth(1)?;
        Some(rest.split('/').next()?.replace("%3A", ":"))
    };
    let named = request["model"].as_str().or_else(in_url);
    named.map(str::to_owned).or_else(of_bedrock)
}
