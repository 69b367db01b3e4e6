//! The answers of several rounds as one: without calls of ours, with the usage of all.

use contexture::Format;
use serde_json::{Value, json};

use crate::proxy::json::{pointer_or_null, remove_member, set_member, set_member_in};
use crate::proxy::server_tools::tools::ServerTools;

/// Members of a message of Chat's that grow with each round.
const TEXT_MEMBERS: [&str; 3] = ["content", "reasoning_content", "reasoning"];
/// Where a part of Gemini's has its call.
const CALL_MEMBERS: [&str; 2] = ["functionCall", "function_call"];

/// Why an answer ends.
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

/// One answer of the rounds of a request that asked for one, each as it would be if it had not been streamed.
pub(crate) fn merge_rounds(
    format: Format,
    rounds: &[Value],
    own: &ServerTools,
    ending: MergedEnding,
) -> Value {
    let Some((last, before)) = rounds.split_last() else {
        return Value::Null;
    };
    let mut all = last.clone();
    let is_own = |name: &Value| {
        name.as_str()
            .is_some_and(|name| own.find_by_name(name).is_some())
    };
    match format {
        Format::OpenAiChat => {
            let mut message = pointer_or_null(last, "/choices/0/message").clone();
            for name in TEXT_MEMBERS {
                let texts = rounds.iter().map(|round| {
                    pointer_or_null(
                        pointer_or_null(round, "/choices/0/message"),
                        &format!("/{name}"),
                    )
                });
                join_texts(&mut message, name, texts);
            }
            let others = |call: &Value| !is_own(pointer_or_null(call, "/function/name"));
            retain_elements(&mut message, "tool_calls", others);
            if pointer_or_null(&message, "/tool_calls")
                .as_array()
                .is_some_and(Vec::is_empty)
            {
                remove_member(&mut message, "tool_calls");
            }
            if let Some(choice) = all.pointer_mut("/choices/0") {
                set_member(choice, "message", message);
                if ending == MergedEnding::Early {
                    set_member(choice, "finish_reason", "stop");
                }
            }
        }
        Format::OpenAiResponses => {
            let others = |item: &Value| {
                !(pointer_or_null(item, "/type") == "function_call"
                    && is_own(pointer_or_null(item, "/name")))
            };
            set_member(
                &mut all,
                "output",
                collect_elements(rounds, "/output", others),
            );
        }
        Format::Anthropic => {
            let others = |block: &Value| {
                !(pointer_or_null(block, "/type") == "tool_use"
                    && is_own(pointer_or_null(block, "/name")))
            };
            set_member(
                &mut all,
                "content",
                collect_elements(rounds, "/content", others),
            );
            if ending == MergedEnding::Early {
                set_member(&mut all, "stop_reason", "end_turn");
            }
        }
        Format::Gemini => {
            let others = |part: &Value| {
                let mut calls = CALL_MEMBERS.iter().filter_map(|name| part.get(name));
                !calls.any(|call| is_own(pointer_or_null(call, "/name")))
            };
            let parts = collect_elements(rounds, "/candidates/0/content/parts", others);
            if let Some(candidate) = all.pointer_mut("/candidates/0") {
                if !pointer_or_null(candidate, "/content").is_object() {
                    set_member(candidate, "content", json!({"role": "model"}));
                }
                set_member_in(candidate, "/content", "parts", parts);
                if ending == MergedEnding::Early {
                    set_member(candidate, "finishReason", "STOP");
                }
            }
        }
        Format::Ui | Format::Items => {}
    }
    let name = usage_name(format);
    for round in before.iter().rev() {
        let mut sum = round.get(name).cloned().unwrap_or_default();
        add_usage(&mut sum, all.get(name).unwrap_or(&Value::Null));
        if !sum.is_null() {
            set_member(&mut all, name, sum);
        }
    }
    all
}

/// Where an answer has its usage.
const fn usage_name(format: Format) -> &'static str {
    match format {
        Format::Gemini => "usageMetadata",
        _ => "usage",
    }
}

/// The texts of all rounds in a member, if there are any.
fn join_texts<'a>(message: &mut Value, name: &str, texts: impl Iterator<Item = &'a Value>) {
    let texts: Vec<&str> = texts.filter_map(Value::as_str).collect();
    if !texts.is_empty() {
        set_member(message, name, texts.concat());
    }
}

/// The elements of a list of all rounds that may be shown.
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

/// Adds figures to figures: member by member, elements of lists by what they are of. Words are those of `more`.
fn add_usage(sum: &mut Value, more: &Value) {
    match (&mut *sum, more) {
        (_, Value::Null) => {}
        (Value::Number(one), Value::Number(other)) => {
            let whole = one.as_u64().zip(other.as_u64());
            let parts = one.as_f64().zip(other.as_f64());
            *sum = match (whole, parts) {
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

/// Whether two figures are of the same thing: the tokens of texts, say.
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
