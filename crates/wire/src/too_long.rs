//! [`TooLong`]: what a provider's refusal says of a request that its model cannot hold.
//!
//! Providers say it in a sentence, some also with a code. The sentences are known from their documentation and from
//! errors that users quote in public; most hosts that speak a provider's format have words of their own, so all
//! sentences are looked for in every format.
//!
//! Not here: refusals of what is too large in bytes, which a shorter count of tokens does not mend by itself.

use crate::stream::StreamFailure;

/// A request that was refused because its model cannot hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TooLong {
    /// Tokens of the request's input as the provider counted them; `None` if it does not say.
    pub tokens: Option<u64>,
    /// The most tokens of input that would have been accepted, beside the answer that was asked for; `None` if it does
    /// not say.
    pub limit: Option<u64>,
}

/// Codes that say it.
const CODES: &[&str] = &[
    // OpenAI, and hosts of its format.
    "context_length_exceeded",
    // llama.cpp.
    "exceed_context_size_error",
];

/// Words that say it, in small letters.
const SENTENCES: &[&str] = &[
    // Anthropic: "prompt is too long: 208310 tokens > 200000 maximum".
    "prompt is too long",
    // Anthropic: "input length and `max_tokens` exceed context limit: 189136 + 20000 > 204648, decrease …".
    "exceed context limit",
    // OpenAI and many hosts: "This model's maximum context length is 128000 tokens. However, your messages resulted in
    // 204308 tokens." Mistral: "too large for model with 32768 maximum context length".
    "maximum context length",
    // OpenAI Responses: "Your input exceeds the context window of this model."
    "exceeds the context window",
    // OpenAI: "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 290000 tokens."
    "input tokens exceed",
    // Google: "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576)."
    "exceeds the maximum number of tokens",
    // Bedrock: "Input is too long for requested model."
    "input is too long",
    // xAI: "This model's maximum prompt length is 131072 but the request contains 537812 tokens."
    "maximum prompt length",
    // Moonshot: "Your request exceeded model token limit: 131072".
    "exceeded model token limit",
    // llama.cpp: "the request exceeds the available context size".
    "exceeds the available context size",
];

impl TooLong {
    /// Reads a refusal; `None` if it was refused for another reason.
    #[must_use]
    pub fn from_failure(failure: &StreamFailure) -> Option<Self> {
        let words = failure.message.to_ascii_lowercase();
        let code = failure.code.as_deref().unwrap_or_default();
        let is_coded = CODES.contains(&code) || CODES.contains(&failure.kind.as_str());
        let is_said = SENTENCES.iter().any(|known| words.contains(known));
        if !is_coded && !is_said {
            return None;
        }
        let (tokens, limit) = read_figures(&words);
        Some(Self { tokens, limit })
    }
}

/// Reads the input's tokens and the most there may be.
fn read_figures(words: &str) -> (Option<u64>, Option<u64>) {
    // "… exceed context limit: INPUT + ANSWER > WINDOW"
    if let Some(rest) = behind(words, "exceed context limit:") {
        let mut numbers = numbers(rest);
        let (tokens, answer, window) = (numbers.next(), numbers.next(), numbers.next());
        let limit = window
            .zip(answer)
            .map(|(window, answer)| window.saturating_sub(answer));
        return (tokens, limit);
    }
    // "prompt is too long: INPUT tokens > LIMIT maximum"
    if let Some(rest) = behind(words, "prompt is too long:") {
        let mut numbers = numbers(rest);
        return (numbers.next(), numbers.next());
    }
    // "the input token count (INPUT) exceeds the maximum number of tokens allowed (LIMIT)": older models leave the
    // first one out.
    if let Some((before, after)) = words.split_once("exceeds the maximum number of tokens") {
        let tokens = behind(before, "token count").and_then(|rest| numbers(rest).next());
        return (tokens, numbers(after).next());
    }
    let limits = [
        "maximum context length is",
        "maximum prompt length is",
        "configured limit of",
        "model token limit:",
        "large for model with",
    ];
    let limit = limits.iter().find_map(|known| first_number(words, known));
    // "N in the messages, M in functions, K in the completion": all but the answer is input.
    let parts = [
        "in the messages",
        "in your prompt",
        "of text input",
        "of tool input",
        "in functions",
        "in the functions",
        "input tokens",
    ];
    let said: Vec<u64> = parts
        .iter()
        .filter_map(|known| last_number(words, known))
        .collect();
    let answers = ["in the completion", "for the completion", "in the output"];
    let answer = answers.iter().find_map(|known| last_number(words, known));
    let tokens = match said.is_empty() {
        false => Some(
            said.iter()
                .fold(0, |sum: u64, part| sum.saturating_add(*part)),
        ),
        // The whole of it, where no parts are told.
        true => [
            "resulted in",
            "request contains",
            "prompt contains",
            "requested:",
        ]
        .iter()
        .find_map(|known| first_number(words, known)),
    };
    (
        tokens,
        limit.map(|limit| limit.saturating_sub(answer.unwrap_or(0))),
    )
}

fn behind<'t>(words: &'t str, known: &str) -> Option<&'t str> {
    words.split_once(known).map(|(_, rest)| rest)
}

/// The first number behind some words.
fn first_number(words: &str, known: &str) -> Option<u64> {
    numbers(behind(words, known)?).next()
}

/// The number right before some words: "3222 in the messages".
fn last_number(words: &str, known: &str) -> Option<u64> {
    let before = words.split_once(known)?.0.trim_end();
    let digits = before.bytes().rev().take_while(u8::is_ascii_digit).count();
    before.get(before.len() - digits..)?.parse().ok()
}

/// The numbers of a text, in order. Those that no counter could reach are left out.
fn numbers(words: &str) -> impl Iterator<Item = u64> {
    words
        .split(|letter: char| !letter.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, expected: Option<(Option<u64>, Option<u64>)>) {
        let read = TooLong::from_failure(&StreamFailure::from_body(body));
        let expected = expected.map(|(tokens, limit)| TooLong { tokens, limit });
        assert_eq!(read, expected, "{body}");
    }

    /// What providers document, and what users quote of their errors.
    #[test]
    fn documented_refusals_give_count_and_limit() {
        check(
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}"#,
            Some((Some(208_310), Some(200_000))),
        );
        check(
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 189136 + 20000 > 204648, decrease input length or `max_tokens` and try again"}}"#,
            Some((Some(189_136), Some(184_648))),
        );
        check(
            r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            Some((Some(204_308), Some(128_000))),
        );
        check(
            r#"{"error":{"message":"This model's maximum context length is 4097 tokens. However, you requested 4972 tokens (3222 in the messages, 1750 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            Some((Some(3_222), Some(2_347))),
        );
        check(
            r#"{"error":{"message":"This model's maximum context length is 4097 tokens, however you requested 4116 tokens (1044 in your prompt; 3072 for the completion). Please reduce your prompt; or completion length.","type":"invalid_request_error"}}"#,
            Some((Some(1_044), Some(1_025))),
        );
        check(
            r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}"#,
            Some((None, None)),
        );
        check(
            r#"{"error":{"message":"Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 290113 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            Some((Some(290_113), Some(272_000))),
        );
        check(
            r#"[{"error":{"code":400,"message":"The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
            Some((Some(1_200_293), Some(1_048_576))),
        );
        check(
            r#"{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
            Some((None, Some(1_048_576))),
        );
        check(
            r#"{"message":"Input is too long for requested model."}"#,
            Some((None, None)),
        );
        check(
            r#"{"code":400,"error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
            Some((Some(537_812), Some(131_072))),
        );
        check(
            r#"{"object":"error","message":"Prompt contains 40012 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","code":"3051"}"#,
            Some((Some(40_012), Some(32_768))),
        );
        check(
            r#"{"error":{"message":"This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of text input). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400}}"#,
            Some((Some(42_832), Some(32_768))),
        );
    }

    #[test]
    fn other_refusals_are_not_about_length() {
        check(
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit of 30000 input tokens per minute"}}"#,
            None,
        );
        check(
            r#"{"error":{"message":"max_tokens is too large: 200000. This model supports at most 16384 completion tokens","type":"invalid_request_error","code":"invalid_value"}}"#,
            None,
        );
        check("", None);
        // A number that no counter could reach is none, and a hostile text is read in one pass.
        check(
            r#"{"error":{"message":"prompt is too long: 99999999999999999999999 tokens"}}"#,
            Some((None, None)),
        );
    }
}
