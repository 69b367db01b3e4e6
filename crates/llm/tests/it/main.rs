//! Scripts and recordings answer as they promise.

use contexture_ir::{FinishReason, Item};
use contexture_llm::{
    Exchange, Matching, Model, ModelError, ModelRequest, ModelResponse, ReplayModel, ScriptedModel,
    text_response,
};
use contexture_wire::{Format, Kind, lift};

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
        why: "overloaded".into(),
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
        .asked()
        .into_iter()
        .map(|request| request.payload)
        .collect();
    assert_eq!(asked, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_model_can_stand_behind_the_trait() {
    let model: Box<dyn Model> = Box::new(ScriptedModel::by(|request| {
        Ok(ModelResponse::new(request.payload.to_uppercase()))
    }));
    assert_eq!(model.answer(request("abc")).await.unwrap().body, "ABC");
}

#[test]
fn a_scripted_text_is_an_answer_in_every_format() {
    for format in Format::PROVIDERS {
        let lifted = lift(format, &text_response(format, "say \"x\"\n")).unwrap();
        assert_eq!(lifted.kind, Kind::Response, "{format}");
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
        let exchanges: Vec<Exchange> = whole
            .map(|one| Exchange {
                request: one.request.get().to_owned(),
                response: one.response.as_ref().unwrap().get().to_owned(),
            })
            .collect();
        assert!(exchanges.len() > 10, "{format}");
        let by_order = ReplayModel::new(exchanges.clone(), Matching::Order);
        let by_payload = ReplayModel::new(exchanges.clone(), Matching::Payload);
        for exchange in &exchanges {
            let request = ModelRequest {
                format,
                ..request(&exchange.request)
            };
            let first = by_order.answer(request.clone()).await.unwrap();
            let second = by_payload.answer(request).await.unwrap();
            assert_eq!(
                (
                    first.body == exchange.response,
                    second.body == exchange.response
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
    let exchange = |response: &str| Exchange {
        request: r#"{"a":1,"b":[2]}"#.into(),
        response: response.into(),
    };
    let model = ReplayModel::new([exchange("first"), exchange("second")], Matching::Payload);
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
