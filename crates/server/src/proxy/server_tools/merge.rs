//! Merges the answers of several rounds into one: without calls of server tools, with the usage of all rounds.

use contexture::Format;
use serde_json::{Value, json};

use crate::proxy::json::{pointer_or_null, remove_member, set_member, set_member_in};
use crate::proxy::server_tools::tools::ServerTools;

/// Members of a Chat message whose texts are joined over all rounds.
const TEXT_MEMBERS: [&str; 3] = ["content", "reasoning_content", "reasoning"];
/// Members in which a part of Gemini has its call: hosts use both spellings.
const CALL_MEMBERS: [&str; 2] = ["functionCall", "function_call"];

/// How a merged answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergedEnding {
    /// As the last round says.
    LastRound,
    /// Because there is no other round, though the model asked for one.
    Early,
}

impl MergedEnding {
    /// The ending of an answer whose last round the model wants to go on from, or not.
    pub(crate) const fn of_round(goes_on: bool) -> Self {
        if goes_on {
            Self::Early
        } else {
            Self::LastRound
        }
    }
}

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
    match format {
        Format::OpenAiChat => merge_chat(&mut merged, rounds, is_server_tool, ending),
        Format::OpenAiResponses => merge_responses(&mut merged, rounds, is_server_tool),
        Format::Anthropic => merge_anthropic(&mut merged, rounds, is_server_tool, ending),
        Format::Gemini => merge_gemini(&mut merged, rounds, is_server_tool, ending),
        Format::Ui | Format::Items => {}
    }
    let name = usage_name(format);
    // Backwards, so that words such as a service tier end up as the last round's.
    for round in before.iter().rev() {
        let mut sum = round.get(name).cloned().unwrap_or_default();
        add_usage(&mut sum, merged.get(name).unwrap_or(&Value::Null));
        if !sum.is_null() {
            set_member(&mut merged, name, sum);
        }
    }
    merged
}

/// Chat has one message per answer: its texts are joined, its calls are those of the last round.
fn merge_chat(
    merged: &mut Value,
    rounds: &[Value],
    is_server_tool: impl Fn(&Value) -> bool,
    ending: MergedEnding,
) {
    let mut message = pointer_or_null(merged, "/choices/0/message").clone();
    for name in TEXT_MEMBERS {
        let texts = rounds.iter().map(|round| {
            pointer_or_null(
                pointer_or_null(round, "/choices/0/message"),
                &format!("/{name}"),
            )
        });
        // Without a separator: a client that streams puts the same pieces together in the same way.
        join_texts(&mut message, name, texts);
    }
    let is_shown = |call: &Value| !is_server_tool(pointer_or_null(call, "/function/name"));
    retain_elements(&mut message, "tool_calls", is_shown);
    // Clients take an empty list for a call that is missing.
    if pointer_or_null(&message, "/tool_calls")
        .as_array()
        .is_some_and(Vec::is_empty)
    {
        remove_member(&mut message, "tool_calls");
    }
    if let Some(choice) = merged.pointer_mut("/choices/0") {
        set_member(choice, "message", message);
        if ending == MergedEnding::Early {
            set_member(choice, "finish_reason", "stop");
        }
    }
}

/// Responses lists items: those of all rounds, one after another. Its status does not name calls, so no ending is set.
fn merge_responses(merged: &mut Value, rounds: &[Value], is_server_tool: impl Fn(&Value) -> bool) {
    let is_shown = |item: &Value| {
        !(pointer_or_null(item, "/type") == "function_call"
            && is_server_tool(pointer_or_null(item, "/name")))
    };
    let output = collect_elements(rounds, "/output", is_shown);
    set_member(merged, "output", output);
}

/// Anthropic lists content blocks: those of all rounds, one after another.
fn merge_anthropic(
    merged: &mut Value,
    rounds: &[Value],
    is_server_tool: impl Fn(&Value) -> bool,
    ending: MergedEnding,
) {
    let is_shown = |block: &Value| {
        !(pointer_or_null(block, "/type") == "tool_use"
            && is_server_tool(pointer_or_null(block, "/name")))
    };
    let content = collect_elements(rounds, "/content", is_shown);
    set_member(merged, "content", content);
    if ending == MergedEnding::Early {
        set_member(merged, "stop_reason", "end_turn");
    }
}

/// Gemini lists parts: those of all rounds, one after another.
fn merge_gemini(
    merged: &mut Value,
    rounds: &[Value],
    is_server_tool: impl Fn(&Value) -> bool,
    ending: MergedEnding,
) {
    let is_shown = |part: &Value| {
        let mut calls = CALL_MEMBERS.iter().filter_map(|name| part.get(name));
        !calls.any(|call| is_server_tool(pointer_or_null(call, "/name")))
    };
    let parts = collect_elements(rounds, "/candidates/0/content/parts", is_shown);
    if let Some(candidate) = merged.pointer_mut("/candidates/0") {
        // A last round without any part has no content object to put them in.
        if !pointer_or_null(candidate, "/content").is_object() {
            set_member(candidate, "content", json!({"role": "model"}));
        }
        set_member_in(candidate, "/content", "parts", parts);
        if ending == MergedEnding::Early {
            set_member(candidate, "finishReason", "STOP");
        }
    }
}

/// Returns the member in which an answer has its usage.
const fn usage_name(format: Format) -> &'static str {
    match format {
        Format::Gemini => "usageMetadata",
        _ => "usage",
    }
}

/// Joins the texts of all rounds in a member, if there are any.
fn join_texts<'a>(message: &mut Value, name: &str, texts: impl Iterator<Item = &'a Value>) {
    let texts: Vec<&str> = texts.filter_map(Value::as_str).collect();
    if !texts.is_empty() {
        set_member(message, name, texts.concat());
    }
}

/// Collects the elements of a list over all rounds that the client may see.
fn collect_elements(rounds: &[Value], list: &str, may: impl Fn(&Value) -> bool) -> Value {
    let lists = rounds
        .iter()
        .filter_map(|round| round.pointer(list)?.as_array());
    lists.flatten().filter(|one| may(one)).cloned().collect()
}

fn retain_elements(object: &mut Value, list: &str, may: impl Fn(&Value) -> bool) {
    if let Some(list) = object.get_mut(list).and_then(Value::as_array_mut) {
        list.retain(may);
    }
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
