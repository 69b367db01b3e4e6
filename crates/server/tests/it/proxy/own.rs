//! Tools that the proxy answers itself: a client sees what the model says, and neither the calls nor their outputs.

use contexture::ir::{FinishReason, Item, ResponseFormat, ToolChoice, Transcript, Usage};
use contexture::{Engine, Format, Owner};
use contexture_upstream_testkit::{
    Provider as _, Received, ScriptedProvider, UpstreamResponse as Scripted,
};
use futures_util::FutureExt as _;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::own_talk::{MODES, Mode, OWN, READS, Talk, offers, output, spoken, text_streamed};

/// What of items is no call of ours, as text and names of tools.
fn seen(rounds: &[Transcript]) -> (String, Vec<String>) {
    let items = || rounds.iter().flat_map(|round| &round.items);
    let calls = items().filter_map(|item| match item {
        Item::FunctionCall(call) if call.name != OWN => Some(call.name.clone()),
        _ => None,
    });
    (rounds.iter().map(spoken).collect(), calls.collect())
}

fn usage(of: &Transcript) -> Usage {
    of.response.clone().unwrap().usage.unwrap()
}

/// Whether a request shows the model an output of ours that says this.
fn was_told(asked: &Transcript, what: &str) -> bool {
    let own: Vec<&str> = asked
        .items
        .iter()
        .filter_map(|item| match item {
            Item::FunctionCall(call) if call.name == OWN => Some(call.call_id.as_str()),
            _ => None,
        })
        .collect();
    asked.items.iter().any(|item| match item {
        Item::FunctionCallOutput(output) => {
            own.contains(&output.call_id.as_str()) && item.text().contains(what)
        }
        _ => false,
    })
}

/// Asks for one thing more, which is found where the conversation ends, also once the index was made anew.
async fn goes_on(talk: &mut Talk) {
    let id = talk.only().await["id"].as_str().unwrap().parse().unwrap();
    for text in ["Thanks.", "And thanks again."] {
        let got = talk.ask(text).await;
        let outcome = &got.outcome;
        assert_eq!(
            (
                &outcome["matched"],
                &outcome["appended"],
                &outcome["failed"]
            ),
            (&json!("prefix"), &json!(1), &Value::Null),
            "{outcome}"
        );
        talk.only().await;
        let owner = Owner::new("local").unwrap();
        let engine = &talk.proxied.stand.engine;
        let index = engine.store().path_index().unwrap();
        index.put_paths(&owner, &id, 999, Vec::new()).await.unwrap();
        assert!(engine.rebuild_paths(&owner, &id).await.unwrap() > 0);
    }
}

#[tokio::test]
async fn server_tool_call_is_answered_and_hidden_from_client() {
    for format in text_streamed() {
        for mode in MODES {
            for rounds in [1, 2, 8] {
                let mut talk = Talk::new(format, mode).await;
                let order =
                    format!("upstream: again {rounds} read_context {{\"query\":\"needle-7431\"}}");
                let got = talk.ask(&order).await;
                let (asked, answered) = (talk.asked(), talk.answered());
                assert_eq!(asked.len(), rounds + 1, "{format} {mode:?}");
                assert!(asked.iter().all(offers), "{format}");
                assert!(!was_told(&asked[0], "needle"));
                assert!(
                    was_told(&asked[rounds], "line 60 has the needle-7431"),
                    "{format}"
                );
                // What the model said, and nothing else.
                let (text, calls) = seen(&answered);
                assert_eq!(
                    (got.text(), got.calls().len()),
                    (text, calls.len()),
                    "{format}"
                );
                assert!(got.text().contains("needle-7431"), "{}", got.text());
                let told = got.answer.text.contains(OWN);
                let echoes =
                    format == Format::OpenAiResponses && got.document["tools"] != json!([]);
                assert!(
                    !told || echoes || got.text().contains(OWN),
                    "{}",
                    got.answer.text
                );
                let finish = got.said.response.clone().unwrap().finish;
                assert_eq!(finish, Some(FinishReason::Stop), "{format}");
                // All that was used.
                let sum = |of: fn(&Usage) -> Option<u64>| -> u64 {
                    answered.iter().filter_map(|one| of(&usage(one))).sum()
                };
                let (input, read) = (
                    sum(|one| one.input_tokens),
                    sum(|one| one.cache_read_tokens),
                );
                let own = usage(&got.said);
                assert_eq!(own.input_tokens, Some(input), "{format} {mode:?}");
                assert_eq!(own.output_tokens, Some(sum(|one| one.output_tokens)));
                assert_eq!(own.cache_read_tokens.unwrap_or(0), read);
                assert_eq!(got.outcome["answer"]["input_tokens"], input);
                assert_eq!(got.outcome["answer"]["cache_read_tokens"], read);
                goes_on(&mut talk).await;
                let last = talk.asked().pop().unwrap();
                assert!(offers(&last) && was_told(&last, "needle-7431"), "{format}");
            }
        }
    }
}

#[tokio::test]
async fn mixed_calls_pass_client_calls_and_answer_server_calls() {
    for format in text_streamed() {
        for mode in MODES {
            let mut talk = Talk::new(format, mode).await;
            let got = talk
                .ask(&format!(
                    "upstream: call ls {{}}\n{READS}\nupstream: call ls {{\"a\":1}}"
                ))
                .await;
            assert_eq!(talk.asked().len(), 1, "{format} {mode:?}");
            assert_eq!(
                (got.text().as_str(), got.calls()),
                ("I look that up.", vec!["ls", "ls"])
            );
            let finish = got.said.response.clone().unwrap().finish;
            assert_eq!(finish, Some(FinishReason::ToolCalls), "{format}");
            let calls = got.said.items.iter().filter_map(|item| match item {
                Item::FunctionCall(call) => Some(output(&call.call_id, "two files")),
                _ => None,
            });
            talk.items.extend(calls);
            let got = talk.send().await;
            assert_eq!(
                (&got.outcome["matched"], &got.outcome["appended"]),
                (&json!("prefix"), &json!(2)),
                "{format} {mode:?} {}",
                got.outcome
            );
            let last = talk.asked().pop().unwrap();
            assert!(was_told(&last, "needle-7431"), "{format} {mode:?}");
            let outputs = last.items.iter().filter(|item| item.text() == "two files");
            assert_eq!(outputs.count(), 2, "{format} {mode:?}");
            goes_on(&mut talk).await;
        }
    }
}

#[tokio::test]
async fn a_model_that_reads_and_reads_must_answer_in_the_end() {
    for format in text_streamed() {
        for mode in MODES {
            let mut talk = Talk::new(format, mode).await;
            let order = "upstream: again 99 read_context {\"query\":\"needle-7431\"}";
            let got = talk.ask(order).await;
            let asked = talk.asked();
            assert_eq!(asked.len(), 9, "{format}");
            let choices = asked.iter().map(|asked| asked.options.tool_choice.clone());
            let choices: Vec<Option<ToolChoice>> = choices.collect();
            assert!(choices[..8].iter().all(Option::is_none), "{choices:?}");
            assert_eq!(choices[8], Some(ToolChoice::None), "{format}");
            assert_eq!(got.text(), "I look that up.".repeat(9));
            assert_eq!(got.calls(), Vec::<&str>::new());
            let finish = got.said.response.clone().unwrap().finish;
            assert_eq!(finish, Some(FinishReason::Stop), "{format}");
            goes_on(&mut talk).await;
        }
    }
}

#[tokio::test]
async fn server_tool_is_offered_only_when_useful_and_allowed() {
    for format in text_streamed() {
        let mut own = Talk::new(format, Mode::Whole).await;
        own.offer(OWN);
        let got = own.ask(READS).await;
        assert_eq!(got.calls(), [OWN], "it is the client's: {format}");
        assert_eq!(own.asked().len(), 1);

        for choice in [ToolChoice::None, ToolChoice::Required] {
            let mut bound = Talk::new(format, Mode::Whole).await;
            bound.options.tool_choice = Some(choice);
            bound.ask("Hello").await;
            assert!(!offers(&bound.asked()[0]), "{format}");
        }
        let mut json = Talk::new(format, Mode::Whole).await;
        json.options.response_format = Some(ResponseFormat::JsonObject);
        json.ask("Hello").await;
        if format != Format::Anthropic {
            assert!(!offers(&json.asked()[0]), "{format}");
        }
        // Nothing is left out of a short history.
        let mut short = Talk::new(format, Mode::Whole).await;
        short.items.clear();
        short.ask("Hello").await;
        assert!(!offers(&short.asked()[0]), "{format}");
    }
    let mut kept = Talk::new(Format::OpenAiResponses, Mode::Streamed).await;
    kept.more = json!({});
    kept.ask("Hello").await;
    assert!(!offers(&kept.asked()[0]));
    let several = [
        (Format::OpenAiChat, json!({"n": 2})),
        (Format::OpenAiResponses, json!({"background": true})),
        (
            Format::Gemini,
            json!({"generationConfig": {"candidateCount": 2}}),
        ),
    ];
    for (format, more) in several {
        let mut talk = Talk::new(format, Mode::Whole).await;
        talk.more = more;
        talk.ask("Hello").await;
        assert!(!offers(&talk.asked()[0]), "{format}");
    }
}

#[tokio::test]
async fn where_it_is_not_called_nothing_of_an_answer_is_changed() {
    for format in text_streamed() {
        for mode in MODES {
            let mut talk = Talk::new(format, mode).await;
            let got = talk
                .ask("upstream: words 40\nupstream: pieces 7\nupstream: call ls {\"a\":[1,2]}")
                .await;
            let received = talk.proxied.upstream.received_requests();
            assert!(offers(&talk.asked()[0]));
            let sent = ScriptedProvider::default().respond_to(&received[0]);
            let sent = String::from_utf8(sent.body().to_vec()).unwrap();
            assert_eq!(got.answer.text, sent, "{format} {mode:?}");
        }
    }
}

/// A scripted provider whose answer behind an output of ours is another one.
fn and_then(
    change: impl Fn(Scripted) -> Scripted + Send + Sync + 'static,
) -> impl Fn(&Received) -> Scripted + Send + Sync + 'static {
    let scripted = ScriptedProvider::default();
    let times = std::sync::atomic::AtomicUsize::new(0);
    move |received| {
        let answer = scripted.respond_to(received);
        let body = String::from_utf8_lossy(&received.body);
        let is_told = body.contains("found, best first");
        match is_told && times.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 {
            true => change(answer),
            false => answer,
        }
    }
}

#[tokio::test]
async fn later_round_provider_error_is_forwarded_and_retry_succeeds() {
    for format in text_streamed() {
        let provider = and_then(|_| Scripted::json(429, &json!({"error": {"message": "slower"}})));
        let mut talk = Talk::to(format, Mode::Whole, provider, Engine::in_memory()).await;
        talk.ask("Hello").await;
        talk.items.push(super::own_talk::user(&format!(
            "upstream: words 0\n{READS}"
        )));
        let refused = talk.proxied.stand.send(talk.request()).await;
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{format}");
        assert_eq!(refused.json(), json!({"error": {"message": "slower"}}));
        let outcome = talk.proxied.outcome(&refused).await;
        assert_eq!(outcome["failed"], Value::Null, "{outcome}");
        let got = talk.send().await;
        assert!(
            got.text().contains("needle-7431"),
            "{format}: {}",
            got.text()
        );
        goes_on(&mut talk).await;
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_in_a_later_round_breaks_off() {
    for format in text_streamed() {
        for mode in MODES {
            let provider = and_then(|answer| answer.dropped_at(500));
            let mut talk = Talk::to(format, mode, provider, Engine::in_memory()).await;
            talk.ask("Hello").await;
            talk.items.push(super::own_talk::user(READS));
            let broken = talk.request().send().await.unwrap();
            let id = broken.headers()["x-contexture-request"].clone();
            assert!(broken.text().await.is_err(), "{format} {mode:?}");
            let path = format!("/api/v1/requests/{}", id.to_str().unwrap());
            while talk.proxied.stand.get(&path).await.ok()["done"] != true {
                tokio::task::yield_now().await;
            }
            // Asked again, it is answered; what came before stands beside it.
            let got = talk.send().await;
            assert!(
                got.text().contains("needle-7431"),
                "{format}: {}",
                got.text()
            );
            assert_eq!(got.outcome["matched"], "retry", "{}", got.outcome);
            assert_eq!(talk.proxied.conversations().await.len(), 1);
            talk.asked();
        }
    }
}

#[tokio::test]
async fn store_fault_between_rounds_returns_first_round_to_client() {
    for format in text_streamed() {
        for mode in MODES {
            let engine = Engine::in_memory();
            let (scripted, shared) = (ScriptedProvider::default(), engine.clone());
            let provider = move |received: &Received| {
                if String::from_utf8_lossy(&received.body).contains("upstream: again") {
                    // Somebody deletes the conversation while the model thinks.
                    let owner = Owner::new("local").unwrap();
                    let list = shared
                        .list_conversations(&owner, Default::default())
                        .now_or_never();
                    for one in list.unwrap().unwrap().conversations {
                        shared
                            .delete_conversation(&owner, &one.id)
                            .now_or_never()
                            .unwrap()
                            .unwrap();
                    }
                }
                scripted.respond_to(received)
            };
            let mut talk = Talk::to(format, mode, provider, engine).await;
            let got = talk.ask(READS).await;
            assert_eq!(talk.asked().len(), 1, "{format}");
            assert_eq!(
                (got.text().as_str(), got.calls().len()),
                ("I look that up.", 0)
            );
            assert_eq!(got.outcome["failed"], "store", "{}", got.outcome);
            let finish = got.said.response.clone().unwrap().finish;
            assert_eq!(finish, Some(FinishReason::Stop), "{format}");
        }
    }
}

/// Answers with one document where the history has no output of ours yet, with the other where it has.
fn one_and_other(
    one: Value,
    other: Value,
) -> impl Fn(&Received) -> Scripted + Send + Sync + 'static {
    move |received| {
        let body = String::from_utf8_lossy(&received.body);
        let answer = match body.contains("found, best first") {
            true => &other,
            false => &one,
        };
        Scripted::json(200, answer)
    }
}

#[tokio::test]
async fn thoughts_go_back_to_the_model_with_its_calls_and_are_shown() {
    let query = json!({"query": "needle-7431"});
    let anthropic = |content: Value, stop: &str| {
        json!({"id": format!("msg_{stop}"), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": content, "stop_reason": stop, "stop_sequence": null,
            "usage": {"input_tokens": 5, "output_tokens": 7}})
    };
    let thought = |text: &str| json!({"type": "thinking", "thinking": text, "signature": format!("sig-{text}")});
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": OWN, "input": query});
    let text = json!({"type": "text", "text": "It is there."});
    let provider = one_and_other(
        anthropic(json!([thought("one"), call]), "tool_use"),
        anthropic(json!([thought("two"), text]), "end_turn"),
    );
    let mut talk = Talk::to(
        Format::Anthropic,
        Mode::Whole,
        provider,
        Engine::in_memory(),
    )
    .await;
    talk.options.max_output_tokens = Some(5_000);
    talk.more = json!({"thinking": {"type": "enabled", "budget_tokens": 2_000}});
    let got = talk.ask("Where is it?").await;
    assert_eq!(
        got.document["content"],
        json!([thought("one"), thought("two"), text])
    );
    assert_eq!(got.document["usage"]["output_tokens"], 14);
    let second = talk.proxied.upstream.received_requests()[1].json();
    let messages = second["messages"].as_array().unwrap();
    assert_eq!(
        messages[messages.len() - 2]["content"],
        json!([thought("one"), call])
    );
    goes_on(&mut talk).await;

    let gemini = |parts: Value| {
        json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12},
            "modelVersion": "gemini-2.5-flash", "responseId": "r"})
    };
    let call =
        json!({"functionCall": {"name": OWN, "args": query}, "thoughtSignature": "c2lnbmVk"});
    let provider = one_and_other(
        gemini(json!([call])),
        gemini(json!([{"text": "It is there."}])),
    );
    let mut talk = Talk::to(Format::Gemini, Mode::Whole, provider, Engine::in_memory()).await;
    let got = talk.ask("Where is it?").await;
    assert_eq!(
        (got.text().as_str(), got.calls().len()),
        ("It is there.", 0)
    );
    assert_eq!(got.document["usageMetadata"]["totalTokenCount"], 24);
    let second = talk.proxied.upstream.received_requests()[1].json();
    let contents = second["contents"].as_array().unwrap();
    let back = &contents[contents.len() - 2]["parts"][0];
    assert_eq!(back["thoughtSignature"], "c2lnbmVk", "{second}");
    goes_on(&mut talk).await;
}

#[tokio::test]
async fn ledger_counts_later_rounds_with_no_passed_cost() {
    let mut talk = Talk::new(Format::OpenAiChat, Mode::Streamed).await;
    talk.ask("upstream: again 2 read_context {\"query\":\"needle-7431\"}")
        .await;
    let id = talk.only().await["id"].as_str().unwrap().to_owned();
    let ledger = talk
        .proxied
        .stand
        .find("/api/v1/ledger", &[("conversation", &id)])
        .await
        .ok();
    let entries = ledger["entries"].as_array().unwrap();
    assert_eq!(
        (entries.len(), &ledger["total"]["calls"]),
        (3, &json!(3)),
        "{ledger:#}"
    );
    for (number, entry) in entries.iter().enumerate() {
        let (sent, passed) = (&entry["sent_pico_dollars"], &entry["passed_pico_dollars"]);
        assert!(sent.as_i64().unwrap() > 0, "{entry:#}");
        assert_eq!(passed.as_i64().unwrap() > 0, number == 0, "{entry:#}");
    }
}

#[tokio::test]
async fn what_is_no_answer_or_has_no_end_passes_as_it_came() {
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": "and then"}, "finish_reason": null}]});
    let bodies = [
        Scripted::text(200, "whatever"),
        Scripted::json(200, &json!([1, 2])),
        Scripted::event_stream([format!("data: {chunk}\n\n")]),
        Scripted::event_stream([
            ": nothing yet\n\n".to_owned(),
            "data: whatever\n\n".to_owned(),
        ]),
    ];
    for body in bodies {
        let (said, expected) = (body.clone(), body.body());
        let provider = move |_: &Received| said.clone();
        let engine = Engine::in_memory();
        let mut talk = Talk::to(Format::OpenAiChat, Mode::Streamed, provider, engine).await;
        talk.items.push(super::own_talk::user("Hello"));
        let answer = talk.proxied.stand.send(talk.request()).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.text.as_bytes(), expected);
        talk.proxied.outcome(&answer).await;
        assert!(offers(&talk.asked()[0]));
    }
}

#[tokio::test]
async fn packed_answers_are_unpacked_where_they_are_put_together() {
    for mode in MODES {
        let scripted = ScriptedProvider::default();
        let provider = move |received: &Received| {
            let answer = scripted.respond_to(received);
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut packed, &answer.body()).unwrap();
            let kind = answer.headers()[0].1.clone();
            let packed = Scripted::from_body(200, &kind, packed.finish().unwrap());
            packed
                .with_header("content-encoding", "gzip")
                .in_pieces_of(50)
        };
        let engine = Engine::in_memory();
        let mut talk = Talk::to(Format::Anthropic, mode, provider, engine).await;
        let got = talk.ask(READS).await;
        assert!(!got.answer.headers.contains_key("content-encoding"));
        assert!(
            got.text().contains("line 60 has the needle-7431"),
            "{}",
            got.text()
        );
    }
}
