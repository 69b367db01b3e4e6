//! Scripts and recordings answer as they promise.

use contexture_ir::{FinishReason, Item};
use contexture_models::{
    CannedReply, Model, ModelError, ModelRequest, ModelResponse, RecordedExchange, ReplayMatching,
    ReplayModel, ScriptedModel, text_response,
};
use contexture_wire::{DocumentKind, Format, StreamEvent, StreamFailure, lift};

fn request(payload: &str) -> ModelRequest {
    ModelRequest {
        format: Format::OpenAiChat,
        model: "model".into(),
        payload: payload.into(),
    }
}

#[tokio::test]
async fn a_script_answers_in_order_and_then_has_no_answer() {
    let failure = ModelError::Unavailable {
        model: "model".into(),
        reason: "overloaded".into(),
        retry_after_ms: Some(10),
    };
    let model = ScriptedModel::new([Ok(ModelResponse::new("one")), Err(failure.clone())]);
    assert_eq!(model.answer(request("a")).await.unwrap().body, "one");
    let error = model.answer(request("b")).await.unwrap_err();
    assert_eq!(
        (error.is_retryable(), error.kind()),
        (true, "model_unavailable")
    );
    assert_eq!(error, failure);
    let end = model.answer(request("c")).await.unwrap_err();
    assert_eq!(
        end.to_string(),
        "no answer to call 3 of model: the script has 2 answers"
    );
    let asked: Vec<String> = model
        .requests()
        .into_iter()
        .map(|request| request.payload)
        .collect();
    assert_eq!(asked, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_model_can_stand_behind_the_trait() {
    let model: Box<dyn Model> = Box::new(ScriptedModel::with_fn(|request| {
        Ok(ModelResponse::new(request.payload.to_uppercase()))
    }));
    assert_eq!(model.answer(request("abc")).await.unwrap().body, "ABC");
}

#[test]
fn a_scripted_text_is_an_answer_in_every_format() {
    for format in Format::PROVIDERS {
        let lifted = lift(format, &text_response(format, "say \"x\"\n")).unwrap();
        assert_eq!(lifted.kind, DocumentKind::Response, "{format}");
        let texts: Vec<String> = lifted.transcript.items.iter().map(Item::text).collect();
        assert_eq!(texts, ["say \"x\"\n"], "{format}");
        let finish = lifted.transcript.response.unwrap().finish;
        assert_eq!(finish, Some(FinishReason::Stop), "{format}");
    }
}

#[tokio::test]
async fn recorded_traffic_is_replayed() {
    for format in Format::PROVIDERS {
        let recorded = contexture_testdata::exchanges(format.as_str());
        let whole = recorded
            .iter()
            .filter(|one| one.status == 200 && one.response.is_some());
        let exchanges: Vec<RecordedExchange> = whole
            .map(|one| RecordedExchange {
                request: one.request.get().to_owned(),
                response: one.response.as_ref().unwrap().get().into(),
            })
            .collect();
        assert!(exchanges.len() > 10, "{format}");
        let by_order = ReplayModel::new(exchanges.clone(), ReplayMatching::Order);
        let by_payload = ReplayModel::new(exchanges.clone(), ReplayMatching::Payload);
        for exchange in &exchanges {
            let request = ModelRequest {
                format,
                ..request(&exchange.request)
            };
            let first = by_order.answer(request.clone()).await.unwrap();
            let second = by_payload.answer(request).await.unwrap();
            assert_eq!(
                (
                    CannedReply::from(first) == exchange.response,
                    CannedReply::from(second) == exchange.response
                ),
                (true, true)
            );
        }
        let more = by_order.answer(request("{}")).await.unwrap_err();
        assert_eq!(more.kind(), "no_answer");
        assert!(
            by_payload
                .answer(request("{\"no\":\"such\"}"))
                .await
                .is_err()
        );
    }
}

#[tokio::test]
async fn a_request_is_known_by_what_it_says() {
    let exchange = |response: &str| RecordedExchange {
        request: r#"{"a":1,"b":[2]}"#.into(),
        response: response.into(),
    };
    let model = ReplayModel::new(
        [exchange("first"), exchange("second")],
        ReplayMatching::Payload,
    );
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(
            model
                .answer(request(r#"{ "b": [2], "a": 1 }"#))
                .await
                .unwrap()
                .body,
        );
    }
    assert_eq!(answers, ["first", "second", "second"]);
}

fn text_of(events: &[StreamEvent]) -> String {
    let deltas = events.iter().filter_map(|event| match event {
        StreamEvent::TextDelta { delta, .. } => Some(delta.as_str()),
        _ => None,
    });
    deltas.collect()
}

const CHUNKS: [&str; 3] = [
    r#"{"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"Ba"}}]}"#,
    r#"{"id":"1","choices":[{"index":0,"delta":{"content":"mako"},"finish_reason":"stop"}]}"#,
    "[DONE]",
];

fn chunks(count: usize) -> Vec<Result<String, ModelError>> {
    let chunks = CHUNKS.iter().take(count);
    chunks.map(|chunk| Ok((*chunk).to_owned())).collect()
}

#[tokio::test]
async fn a_script_streams_and_what_it_comes_to_is_an_answer() {
    let model = ScriptedModel::with_streams([chunks(3), chunks(3)]);
    let mut stream = model.stream(request("a")).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event.unwrap());
    }
    assert_eq!(text_of(&events), "Bamako");
    let body = stream.finish().await.unwrap().body;
    assert_eq!(model.answer(request("b")).await.unwrap().body, body);
    let items = lift(Format::OpenAiChat, &body).unwrap().transcript.items;
    assert_eq!(items[0].text(), "Bamako");
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn a_whole_answer_streams_in_one_piece() {
    for format in Format::PROVIDERS {
        let model: Box<dyn Model> = Box::new(ScriptedModel::with_texts(format, ["Bamako."]));
        let asked = ModelRequest {
            format,
            ..request("a")
        };
        let mut stream = model.stream(asked).await.unwrap();
        let mut events = Vec::new();
        while let Some(event) = stream.next().await {
            events.push(event.unwrap());
        }
        let names: Vec<&str> = events.iter().map(StreamEvent::name).collect();
        let expected = [
            "response.created",
            "response.output_item.added",
            "response.output_text.delta",
            "response.output_item.done",
            "contexture:response.usage",
            "response.completed",
        ];
        assert_eq!(
            (names.as_slice(), text_of(&events).as_str()),
            (expected.as_slice(), "Bamako.")
        );
        assert_eq!(
            stream.finish().await.unwrap().body,
            text_response(format, "Bamako.")
        );
    }
}

#[tokio::test]
async fn a_stream_that_breaks_keeps_what_came() {
    let broken = ModelError::Unreachable {
        model: "model".into(),
        reason: "connection reset".into(),
    };
    let mut events = chunks(1);
    events.push(Err(broken.clone()));
    let failed = r#"{"error":{"type":"server_error","message":"busy"}}"#.to_owned();
    let mut failing = chunks(1);
    failing.push(Ok(failed));
    let mut late = chunks(2);
    late.push(Err(broken.clone()));
    let model = ScriptedModel::with_streams([events, failing, chunks(1), late]);
    for kind in [
        "model_unreachable",
        "model_unavailable",
        "model_unreachable",
    ] {
        let mut stream = model.stream(request("a")).await.unwrap();
        let mut error = None;
        while let Some(event) = stream.next().await {
            error = event.err();
        }
        assert_eq!(error.as_ref().unwrap().kind(), kind);
        let lifted = lift(Format::OpenAiChat, &stream.partial_response().body).unwrap();
        assert_eq!(lifted.transcript.items[0].text(), "Ba");
        let finish = lifted.transcript.response.unwrap().finish;
        assert_eq!(finish, Some(FinishReason::Other("incomplete".into())));
        assert_eq!(stream.finish().await.unwrap_err(), error.unwrap());
    }
    // What goes wrong behind a whole answer does not matter.
    assert!(model.answer(request("a")).await.is_ok());
}

#[tokio::test]
async fn recorded_streams_are_replayed() {
    for format in Format::PROVIDERS {
        let recorded = contexture_testdata::exchanges(format.as_str());
        let streams: Vec<RecordedExchange> = recorded
            .iter()
            .filter_map(|one| {
                let bytes = one.stream.as_ref().map(|stream| stream.as_bytes());
                let mut frames = format.spec().frame_reader();
                frames.push(bytes.or(one.event_stream.as_deref())?);
                let frames = std::iter::from_fn(|| frames.next_frame().unwrap());
                let data = frames.filter_map(|frame| frame.data);
                let events: Vec<_> = data.map(Ok).collect();
                (!events.is_empty()).then(|| RecordedExchange {
                    request: one.request.get().to_owned(),
                    response: CannedReply::Events(events),
                })
            })
            .collect();
        assert!(!streams.is_empty());
        let model = ReplayModel::new(streams.clone(), ReplayMatching::Order);
        for exchange in streams {
            let asked = ModelRequest {
                format,
                ..request(&exchange.request)
            };
            let stream = model.stream(asked).await.unwrap();
            let body = stream.finish().await.unwrap().body;
            assert_eq!(lift(format, &body).unwrap().kind, DocumentKind::Response);
        }
    }
}

#[test]
fn a_failure_s_words_decide_what_to_do() {
    let kind = |kind: &str, code: Option<&str>, message: &str, status: Option<u16>| {
        let failure = StreamFailure {
            kind: kind.into(),
            code: code.map(str::to_owned),
            message: message.into(),
        };
        ModelError::from_failure("m", &failure, status, None)
    };
    for (error, word, retry) in [
        (
            kind("rate_limit_error", None, "", Some(429)),
            "model_rate_limited",
            true,
        ),
        (
            kind("insufficient_quota", None, "", Some(429)),
            "model_forbidden",
            false,
        ),
        (
            kind("overloaded_error", None, "", None),
            "model_unavailable",
            true,
        ),
        (
            kind("UNAVAILABLE", Some("503"), "", None),
            "model_unavailable",
            true,
        ),
        (kind("", None, "", Some(502)), "model_unavailable", true),
        (
            kind("authentication_error", None, "", Some(401)),
            "model_forbidden",
            false,
        ),
        (
            kind("invalid_request_error", None, "x", Some(400)),
            "model_refused",
            false,
        ),
    ] {
        assert_eq!(
            (error.kind(), error.is_retryable()),
            (word, retry),
            "{error}"
        );
    }
    let long = [
        kind(
            "invalid_request_error",
            Some("context_length_exceeded"),
            "",
            Some(400),
        ),
        kind(
            "invalid_request_error",
            None,
            "prompt is too long: 2 > 1",
            Some(400),
        ),
        kind("request_too_large", None, "", Some(413)),
    ];
    for error in long {
        assert!(
            matches!(
                error,
                ModelError::Refused {
                    too_long: Some(_),
                    ..
                }
            ),
            "{error}"
        );
    }
}
