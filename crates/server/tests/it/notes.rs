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
