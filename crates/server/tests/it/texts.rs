//! What needs no conversation: counting, rendering, converting, compressing.

use serde_json::{Value, json};

use crate::test_support::Stand;

#[tokio::test]
async fn texts_are_counted() {
    let stand = Stand::new().await;
    let counted = stand
        .post("/api/v1/count", &json!({"texts": ["Hello, world!", ""]}))
        .await
        .ok();
    assert_eq!(
        (&counted["tokens"], &counted["exact"], &counted["encoding"]),
        (&json!(4), &json!(true), &json!("o200k_base"))
    );
    assert_eq!(counted["texts"][1]["tokens"], 0);
    let estimated = stand
        .post(
            "/api/v1/count",
            &json!({"texts": ["Hello, world!"], "model": "claude-sonnet-5"}),
        )
        .await
        .ok();
    assert_eq!(estimated["exact"], false);
    assert!(estimated["low"].as_u64() <= estimated["high"].as_u64());
    stand
        .post("/api/v1/count", &json!({"texts": [], "encoding": "none"}))
        .await
        .refused(400, "bad_body");
    stand
        .post("/api/v1/count", &json!({"texts": [], "model": "none"}))
        .await
        .refused(422, "unknown_model");
}

#[tokio::test]
async fn fragments_are_rendered() {
    let stand = Stand::new().await;
    let rendered = async |format: &str| {
        let asked = json!({"fragments": [{"name": "hint", "data": "<b>"}, {"name": "hint", "data": "b"}], "format": format, "group": "everywhere"});
        stand.post("/api/v1/render", &asked).await
    };
    assert_eq!(
        rendered("xml").await.ok()["output"],
        "<hints>\n  <hint>&lt;b&gt;</hint>\n  <hint>b</hint>\n</hints>"
    );
    for format in ["markdown", "toml", "toon", "yaml", "json"] {
        assert!(
            !rendered(format).await.ok()["output"]
                .as_str()
                .unwrap()
                .is_empty()
        );
    }
    rendered("html").await.refused(400, "bad_body");
    stand
        .post("/api/v1/render", &json!({"fragments": [1]}))
        .await
        .refused(422, "bad_fragment");
}

#[tokio::test]
async fn documents_are_converted_with_their_losses() {
    let stand = Stand::new().await;
    let document = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}], "logit_bias": {"1": 2}});
    let converted = stand
        .post(
            "/api/v1/convert",
            &json!({"document": document, "to": "anthropic"}),
        )
        .await
        .ok();
    assert_eq!(converted["output"]["messages"][0]["role"], "user");
    assert!(
        converted["losses"].to_string().contains("logit_bias"),
        "{converted}"
    );
    let same = stand
        .post(
            "/api/v1/convert",
            &json!({"document": document, "to": "openai-chat"}),
        )
        .await
        .ok();
    assert_eq!((&same["output"], &same["losses"]), (&document, &json!([])));
    stand
        .post(
            "/api/v1/convert",
            &json!({"document": document, "to": "none"}),
        )
        .await
        .refused(400, "bad_body");
    let wrong = stand
        .post("/api/v1/convert", &json!({"document": 1, "to": "ui"}))
        .await;
    assert_eq!(wrong.problem().0, 422, "{}", wrong.text);
}

#[tokio::test]
async fn messages_are_compressed_never_lengthened() {
    let stand = Stand::new().await;
    let short =
        json!([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]);
    let same = stand
        .post(
            "/v1/compress",
            &json!({"messages": short, "model": "gpt-4o", "extra": 1}),
        )
        .await
        .ok();
    assert_eq!(
        (
            &same["messages"],
            &same["tokens_saved"],
            &same["transforms_applied"]
        ),
        (&short, &json!(0), &json!([]))
    );
    assert!(same["tokens_before"].as_u64().unwrap() > 0);

    let output: String = (0..3000)
        .map(|n| format!("row {n} is like the others\n"))
        .collect();
    let long = json!([
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Look"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": output},
    ]);
    let asked = json!({"messages": long, "model": "gpt-4o"});
    let less = stand.post("/v1/compress", &asked).await;
    let document = less.ok();
    assert!(
        document["tokens_after"].as_u64() < document["tokens_before"].as_u64(),
        "{document}"
    );
    assert!(document["compression_ratio"].as_f64().unwrap() < 0.5);
    let roles = |messages: &Value| {
        messages
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["role"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(roles(&document["messages"]), roles(&long));
    assert_eq!(stand.post("/v1/compress", &asked).await.text, less.text);

    // What cannot be read stays as it is.
    let unread = json!({"messages": [{"what": 1}]});
    assert_eq!(
        stand.post("/v1/compress", &unread).await.ok()["messages"],
        unread["messages"]
    );
    // Tokens of a model that nobody knows are estimates.
    let unknown = json!({"messages": long, "model": "nobody-knows-it"});
    let shorter = stand.post("/v1/compress", &unknown).await.ok();
    assert!(
        shorter["tokens_after"].as_u64() < shorter["tokens_before"].as_u64(),
        "{shorter}"
    );
    stand
        .post("/v1/compress", &json!({}))
        .await
        .refused(400, "bad_body");
    stand
        .post("/v1/compress", &json!({"messages": {}}))
        .await
        .refused(400, "bad_body");
}
