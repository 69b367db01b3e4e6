//! Notes of the memory layer.

use reqwest::Method;
use serde_json::json;

use crate::messages::talk;
use crate::test_support::Stand;

#[tokio::test]
async fn notes_are_made_changed_and_deleted() {
    let stand = Stand::new().await;
    let path = format!("{}/memory", talk(&stand, "a", &["Hello"]).await);
    let note = format!("{path}/language");
    let put = async |body: serde_json::Value| stand.call(Method::PUT, &note, &body).await;
    put(json!({"description": "x"}))
        .await
        .refused(404, "no_note");
    assert_eq!(
        put(json!({"value": "Portuguese", "importance": 7}))
            .await
            .ok()["done"],
        "created"
    );
    assert_eq!(
        put(json!({"expires": {"answers": 3}})).await.ok()["done"],
        "updated"
    );
    let shown = stand.get(&note).await.ok();
    assert_eq!(
        (&shown["value"], &shown["importance"], &shown["expires"]),
        (&json!("Portuguese"), &json!(7), &json!({"answers": 3}))
    );
    assert_eq!(stand.get(&path).await.ok()["notes"], json!([shown]));
    assert_eq!(
        stand.get(&format!("{path}?scope=path")).await.ok()["notes"],
        json!([])
    );
    assert_eq!(
        put(json!({"expires": "never"})).await.ok()["done"],
        "updated"
    );
    assert_eq!(
        stand
            .send(stand.request(Method::DELETE, &note))
            .await
            .status,
        204
    );
    stand.get(&note).await.refused(404, "no_note");
    stand
        .send(stand.request(Method::DELETE, &note))
        .await
        .refused(404, "no_note");
    for refused in [
        json!({"value": "x".repeat(10_000)}),
        json!({"value": "x", "importance": 101}),
    ] {
        put(refused).await.refused(422, "invalid_note");
    }
    stand
        .get(&format!("{path}?scope=all"))
        .await
        .refused(400, "bad_query");
}

#[tokio::test]
async fn several_notes_are_read_and_changed_at_once() {
    let stand = Stand::new().await;
    let path = format!("{}/memory", talk(&stand, "a", &["Hello"]).await);
    let once = async |operations: serde_json::Value| {
        let body = json!({"operations": operations});
        let answer = stand.post(&path, &body).await.ok();
        answer["results"].as_array().unwrap().clone()
    };
    let results = once(json!([
        {"op": "put", "key": "language", "value": "Portuguese", "importance": 7},
        {"op": "put", "key": "city", "value": "Lisbon", "expires": {"answers": 3}},
        {"op": "get", "key": "language"},
        {"op": "put", "key": "empty"},
        {"op": "put", "key": "long", "value": "x".repeat(10_000)},
        {"op": "delete", "key": "nothing"},
        {"op": "get", "key": "nothing"},
        {"op": "put", "key": "city", "value": "Porto"},
    ]))
    .await;
    // Each has its own result, in order; what fails leaves the others as they are.
    let done: Vec<_> = results
        .iter()
        .map(|result| match result["done"].as_str() {
            Some(done) => done.to_owned(),
            None => result["error"]["code"].as_str().unwrap().to_owned(),
        })
        .collect();
    assert_eq!(
        done,
        [
            "created",
            "created",
            "found",
            "no_note",
            "invalid_note",
            "no_note",
            "no_note",
            "updated"
        ]
    );
    // Each sees what those before it did, and says it as the note's own address does.
    let language = stand.get(&format!("{path}/language")).await.ok();
    assert_eq!(results[2]["note"], language);
    assert_eq!(
        (&results[0]["key"], &results[0]["note"]),
        (&json!("language"), &json!(null))
    );
    let city = stand.get(&format!("{path}/city")).await.ok();
    assert_eq!(city["value"], "Porto");
    assert_eq!(city["expires"], json!({"answers": 3}));
    let results =
        once(json!([{"op": "delete", "key": "city"}, {"op": "get", "key": "city"}])).await;
    assert_eq!(
        (&results[0]["done"], &results[1]["error"]["code"]),
        (&json!("deleted"), &json!("no_note"))
    );
    assert_eq!(stand.get(&path).await.ok()["notes"], json!([language]));
    let many: Vec<_> = (0..100)
        .map(|n| json!({"op": "put", "key": format!("k{n}"), "value": "v"}))
        .collect();
    assert_eq!(once(json!(many)).await.len(), 100);

    for (operations, code) in [
        (json!([]), "bad_body"),
        (
            json!(vec![json!({"op": "get", "key": "a"}); 101]),
            "bad_body",
        ),
        (json!([{"op": "get", "key": "a", "value": "x"}]), "bad_body"),
        (
            json!([{"op": "delete", "key": "a", "importance": 1}]),
            "bad_body",
        ),
        (json!([{"op": "move", "key": "a"}]), "bad_body"),
    ] {
        let body = json!({"operations": operations});
        stand.post(&path, &body).await.refused(400, code);
    }
    assert_eq!(stand.get(&format!("{path}/language")).await.ok(), language);
}
