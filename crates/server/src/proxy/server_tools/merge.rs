//! Merges the answers of several rounds into one: without calls of server tools, with the usage of all rounds.

use contexture::Format;
use contexture::wire::proxy::MergedEnding;
use serde_json::{Value, json};

use crate::proxy::server_tools::tools::ServerTools;

/// Merges the documents of all rounds into the one answer that the client asked for. Each is the document of an answer that
/// is not streamed.
pub(crate) fn merge_rounds(
    format: Format,
    rounds: &[Value],
    server_tools: &ServerTools,
    ending: MergedEnding,
) -> Value {
    let Some((last, before)) = rounds.split_last() else {
        return Value::Null;
    };
    // Ids, model and fingerprints are the last round's: it is the one the client may continue from.
    let mut merged = last.clone();
    let is_server_tool = |name: &Value| {
        name.as_str()
            .is_some_and(|name| server_tools.find_by_name(name).is_some())
    };
    let spec = format.spec();
    if let Some(edits) = spec.proxy() {
        edits.merge_rounds(&mut merged, rounds, &is_server_tool, ending);
    }
    let Some(name) = spec.members().map(|members| members.usage) else {
        return merged;
    };
    // Backwards, so that words such as a service tier end up as the last round's.
    for round in before.iter().rev() {
        let mut sum = round.get(name).cloned().unwrap_or_default();
        add_usage(&mut sum, merged.get(name).unwrap_or(&Value::Null));
        if !sum.is_null()
            && let Some(merged) = merged.as_object_mut()
        {
            merged.insert(name.to_owned(), sum);
        }
    }
    merged
}

/// Adds usage to usage: member by member, elements of lists by their labels. Texts are those of `more`.
fn add_usage(sum: &mut Value, more: &Value) {
    match (&mut *sum, more) {
        (_, Value::Null) => {}
        (Value::Number(one), Value::Number(other)) => {
            // Token counts stay integers; costs, as some hosts report them, are fractions.
            let integers = one.as_u64().zip(other.as_u64());
            let fractions = one.as_f64().zip(other.as_f64());
            *sum = match (integers, fractions) {
                (Some((one, other)), _) => json!(one.saturating_add(other)),
                (None, Some((one, other))) => json!(one + other),
                (None, None) => more.clone(),
            };
        }
        (Value::Object(one), Value::Object(other)) => {
            for (name, more) in other {
                add_usage(one.entry(name.clone()).or_insert(Value::Null), more);
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            for more in other {
                match one.iter_mut().find(|one| has_same_labels(one, more)) {
                    Some(one) => add_usage(one, more),
                    None => one.push(more.clone()),
                }
            }
        }
        _ => *sum = more.clone(),
    }
}

/// Whether two elements count the same thing: the tokens of one modality, say.
fn has_same_labels(one: &Value, other: &Value) -> bool {
    let words = |value: &Value| -> Option<Vec<(String, Value)>> {
        let members = value.as_object()?.iter();
        let words = members.filter(|(_, value)| value.is_string());
        Some(
            words
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    };
    words(one).is_some_and(|words_of_one| Some(words_of_one) == words(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::server_tools::tools::ServerTool;

    fn check(format: Format, rounds: &[Value], expected: &Value) {
        let own = ServerTools::default().with_tool(ServerTool::ReadContext);
        assert_eq!(
            &merge_rounds(format, rounds, &own, MergedEnding::LastRound),
            expected
        );
    }

    #[test]
    fn texts_are_put_together_our_calls_left_out_and_usage_summed() {
        let chat = |text: Value, calls: Value, finish: &str, tokens: u64| {
            json!({"id": finish, "choices": [{"index": 0, "message":
                {"role": "assistant", "content": text, "tool_calls": calls}, "finish_reason": finish}],
                "usage": {"prompt_tokens": tokens, "prompt_tokens_details": {"cached_tokens": 1}, "cost": 0.5}})
        };
        let call = |name: &str| json!({"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}});
        check(
            Format::OpenAiChat,
            &[
                chat(
                    json!("one "),
                    json!([call("read_context")]),
                    "tool_calls",
                    10,
                ),
                chat(Value::Null, json!([call("read_context")]), "tool_calls", 5),
                chat(
                    json!("two"),
                    json!([call("ls"), call("read_context")]),
                    "tool_calls",
                    3,
                ),
            ],
            &json!({"id": "tool_calls", "choices": [{"index": 0, "message":
                {"role": "assistant", "content": "one two", "tool_calls": [call("ls")]}, "finish_reason": "tool_calls"}],
                "usage": {"prompt_tokens": 18, "prompt_tokens_details": {"cached_tokens": 3}, "cost": 1.5}}),
        );
        let gemini = |parts: Value, tokens: u64| {
            json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": tokens,
                    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]}})
        };
        check(
            Format::Gemini,
            &[
                gemini(
                    json!([{"functionCall": {"name": "read_context", "args": {}}}]),
                    2,
                ),
                gemini(json!([{"text": "x"}]), 3),
            ],
            &gemini(json!([{"text": "x"}]), 5),
        );
    }

    #[test]
    fn an_answer_that_ends_early_says_that_it_ends() {
        let own = ServerTools::default().with_tool(ServerTool::ReadContext);
        let round = json!({"content": [{"type": "text", "text": "x"},
            {"type": "tool_use", "id": "t", "name": "read_context", "input": {}}], "stop_reason": "tool_use"});
        let all = merge_rounds(Format::Anthropic, &[round], &own, MergedEnding::Early);
        let expected =
            json!({"content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn"});
        assert_eq!(all, expected);
    }
}
