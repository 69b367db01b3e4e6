//! Requests that go on from recorded ones: every byte of the recorded request stays, but for the members that are free.

use contexture_ir::{FunctionCall, FunctionCallOutput, Item, Message, Output, Role};
use contexture_testdata as data;
use contexture_wire::{ContinueObstacle, DocumentKind, Format, continue_request, lift};

use crate::recorded::{findings, name, validators};

const QUESTION: &str = "Write the summary now.";

fn question() -> [Item; 1] {
    [Message::text(Role::User, QUESTION).into()]
}

/// Where two texts part, from the front and from the back, in bytes of the first.
fn shared_ends(first: &str, second: &str) -> (usize, usize) {
    let front = first.bytes().zip(second.bytes());
    let front = front.take_while(|(one, other)| one == other).count();
    let back = first.bytes().rev().zip(second.bytes().rev());
    let back = back.take_while(|(one, other)| one == other).count();
    (front, back)
}

/// The requests of all providers' recordings, each with a question behind it: what stands before the end of the last
/// message is the same, byte for byte, and what stands behind it is the same but for members that are free.
#[test]
fn recorded_requests_are_continued_byte_for_byte() {
    for format in Format::PROVIDERS {
        let (mut continued, mut obstacles) = (0, std::collections::BTreeMap::new());
        for exchange in data::exchanges(format.as_str()) {
            let sent = exchange.request.get();
            let next = match continue_request(format, sent, &question(), 4_096) {
                Ok(next) => next,
                Err(obstacle) => {
                    *obstacles.entry(obstacle.to_string()).or_insert(0) += 1;
                    continue;
                }
            };
            continued += 1;
            let lifted = lift(format, &next).unwrap();
            assert_eq!(lifted.kind, DocumentKind::Request);
            let last = lifted.transcript.items.last().unwrap();
            // Where one message holds all of a side, the question stands behind what it said before.
            assert!(last.text().ends_with(QUESTION), "{}", name(&exchange));
            // Without the free members both are equal up to the end of the history, and from there on.
            let bare = |text: &str| {
                let value: serde_json::Value = serde_json::from_str(text).unwrap();
                let serde_json::Value::Object(mut members) = value else {
                    panic!("no object");
                };
                let free = format.spec().cache_key().free;
                let names = free.not_streamed.iter().map(|(name, _)| *name);
                let names = names.chain(free.output_limit.iter().copied());
                for name in names.chain(free.stored.map(|stored| stored.member)) {
                    members.shift_remove(name);
                }
                serde_json::Value::Object(members).to_string()
            };
            let (before, after) = (bare(sent), bare(&next));
            let (front, back) = shared_ends(&before, &after);
            assert!(
                front + back >= before.len(),
                "{}: {before}\n{after}",
                name(&exchange)
            );
            // Whatever the recorded request was refused for is wrong with this one too.
            if findings(validators(format), sent).is_empty() {
                let findings = findings(validators(format), &next);
                assert!(findings.is_empty(), "{}: {findings:#?}", name(&exchange));
            }
        }
        println!("{format}: {continued} continued, not: {obstacles:?}");
        assert!(continued > 10, "{format}: {obstacles:?}");
    }
}

#[test]
fn obstacles_are_named() {
    let chat = |more: &str| {
        let body = format!(r#"{{"messages":[{{"role":"user","content":"hi"}}]{more}}}"#);
        continue_request(Format::OpenAiChat, &body, &question(), 4_096).map(|_| ())
    };
    for (more, expected) in [
        ("", Ok(())),
        (r#","tool_choice":"auto","n":1"#, Ok(())),
        (
            r#","tool_choice":"required""#,
            Err(ContinueObstacle::ForcedTool),
        ),
        (
            r#","tool_choice":{"type":"function","function":{"name":"f"}}"#,
            Err(ContinueObstacle::ForcedTool),
        ),
        (
            r#","response_format":{"type":"json_object"}"#,
            Err(ContinueObstacle::AnswerForm),
        ),
        (r#","n":2"#, Err(ContinueObstacle::SeveralAnswers)),
        (
            r#","transforms":["middle-out"]"#,
            Err(ContinueObstacle::ProviderEdits),
        ),
    ] {
        assert_eq!(chat(more), expected, "{more}");
    }
    let of = |format, body: &str| continue_request(format, body, &question(), 4_096).unwrap_err();
    let history = ContinueObstacle::ProviderHistory;
    let responses = r#"{"input":[{"role":"user","content":"a"}],"previous_response_id":"r"}"#;
    assert_eq!(of(Format::OpenAiResponses, responses), history);
    let text = r#"{"input":"a"}"#;
    assert_eq!(
        of(Format::OpenAiResponses, text),
        ContinueObstacle::NoMessages
    );
    let edits = r#"{"max_tokens":9,"messages":[{"role":"user","content":"a"}],"context_management":{"edits":[]}}"#;
    assert_eq!(
        of(Format::Anthropic, edits),
        ContinueObstacle::ProviderEdits
    );
    let prefill = r#"{"max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"{"}]}"#;
    assert_eq!(of(Format::Anthropic, prefill), ContinueObstacle::Prefill);
    let short = r#"{"contents":[{"role":"user","parts":[{"text":"a"}]}],"generationConfig":{"maxOutputTokens":100}}"#;
    assert_eq!(
        of(Format::Gemini, short),
        ContinueObstacle::ShortAnswer { limit: 100 }
    );
    let none = ContinueObstacle::Unreadable {
        format: Format::Anthropic,
    };
    assert_eq!(of(Format::Anthropic, "[]"), none);
}

/// Thoughts count as part of an answer, so the limit is what is needed beside them. A member that asks to keep the answer is
/// turned off where it stands, or where the provider keeps answers by default.
#[test]
fn free_members_are_set_and_all_else_stays() {
    let thinking = r#"{"messages":[{"role":"user","content":"a"} ] , "max_tokens": 1100,"thinking":{"type":"enabled","budget_tokens":1024}, "stream" : true}"#;
    let next = continue_request(Format::Anthropic, thinking, &question(), 4_096).unwrap();
    assert!(
        next.ends_with(r#" ] , "max_tokens": 5120,"thinking":{"type":"enabled","budget_tokens":1024}, "stream" : false}"#),
        "{next}"
    );
    let kept = r#"{"input":[{"role":"user","content":"a"}]}"#;
    let next = continue_request(Format::OpenAiResponses, kept, &question(), 4_096).unwrap();
    assert!(next.ends_with(r#"],"store":false}"#), "{next}");
    let chat = r#"{"messages":[{"role":"user","content":"a"}],"store":true,"stream":true,"stream_options":{"include_usage":true}}"#;
    let next = continue_request(Format::OpenAiChat, chat, &question(), 4_096).unwrap();
    assert!(
        next.ends_with(r#"],"store":false,"stream":false,"stream_options":null}"#),
        "{next}"
    );
}

/// A model that calls a tool instead of writing is told once that it cannot: the request goes on from the one before, again byte
/// for byte.
#[test]
fn a_tool_call_is_answered_behind_the_same_bytes() {
    for format in Format::PROVIDERS {
        let exchanges = data::exchanges(format.as_str());
        let first = exchanges.iter().find_map(|exchange| {
            continue_request(format, exchange.request.get(), &question(), 4_096).ok()
        });
        let first = first.unwrap();
        let answered: [Item; 3] = [
            FunctionCall::new("call_1", "look", "{}").into(),
            FunctionCallOutput::new("call_1", Output::Text("not available".to_owned())).into(),
            Message::text(Role::User, QUESTION).into(),
        ];
        let second = continue_request(format, &first, &answered, 4_096).unwrap();
        let (front, back) = shared_ends(&first, &second);
        assert!(front + back >= first.len(), "{format}: {first}\n{second}");
        let items = lift(format, &second).unwrap().transcript.items;
        assert!(items.iter().any(|item| item.text() == "not available"));
        let findings = findings(validators(format), &second);
        assert!(findings.is_empty(), "{format}: {findings:#?}");
    }
}
