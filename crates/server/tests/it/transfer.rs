//! Conversations out and in.

use reqwest::Method;

use crate::messages::talk;
use crate::stand::{Answer, Stand};

async fn import(stand: &Stand, lines: &str) -> Answer {
    let request = stand
        .request(Method::POST, "/api/v1/import")
        .header("content-type", "application/jsonl");
    stand.send(request.body(lines.to_owned())).await
}

#[tokio::test]
async fn what_goes_out_comes_in_the_same() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["one", "two"]).await;
    talk(&stand, "b", &["three"]).await;
    let lines = stand.get(&format!("{path}/export")).await;
    assert_eq!(lines.headers["content-type"], "application/jsonl");
    let other = Stand::new().await;
    assert_eq!(
        import(&other, &lines.text).await.ok()["conversations"],
        serde_json::json!(["a"])
    );
    assert_eq!(other.get(&format!("{path}/export")).await.text, lines.text);
    assert_eq!(
        other.get(&format!("{path}/items")).await.ok(),
        stand.get(&format!("{path}/items")).await.ok()
    );
    let all = stand.get("/api/v1/export").await;
    let third = Stand::new().await;
    assert_eq!(
        import(&third, &all.text).await.ok()["conversations"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let anthropic = stand.get(&format!("{path}/export?format=anthropic")).await;
    assert!(anthropic.text.contains("\"one\""), "{}", anthropic.text);
    let unknown = stand.get(&format!("{path}/export?format=none")).await;
    assert_eq!(unknown.problem().0, 422);
}

#[tokio::test]
async fn what_is_broken_is_refused_whole() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["one", "two"]).await;
    let lines = stand.get(&format!("{path}/export")).await.text;
    let refused = import(&stand, &lines).await;
    refused.refused(409, "already_exists");
    let other = Stand::new().await;
    let cut: String = lines
        .lines()
        .take(2)
        .map(|line| format!("{line}\n"))
        .collect();
    for broken in [cut.as_str(), "{}\n", "x", "\u{0}\n", "\n"] {
        let answer = import(&other, broken).await;
        assert_eq!(answer.problem().0, 422, "{}", answer.text);
    }
    other.get(&path).await.refused(404, "not_found");
    let json = stand
        .request(Method::POST, "/api/v1/import")
        .header("content-type", "application/json")
        .body("{}");
    stand
        .send(json)
        .await
        .refused(415, "unsupported_media_type");
}
