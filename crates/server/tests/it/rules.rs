//! Standing rules over HTTP.

use reqwest::Method;
use serde_json::json;

use crate::messages::talk;
use crate::test_support::Stand;

/// A conversation whose second turn says a rule that is out of view in a small window.
async fn told(stand: &Stand) -> String {
    let path = talk(stand, "shop", &["Help me with the release of the shop."]).await;
    let message = |role: &str, text: &str| json!({"id": "", "role": role, "parts": [{"type": "text", "text": text}]});
    for turn in 2..40 {
        let text = match turn {
            2 => "Never push to main without asking me.".to_owned(),
            _ => format!("Go on with step {turn}. {}", "Take your time. ".repeat(20)),
        };
        let messages = json!({"messages": [message("assistant", "Done."), message("user", &text)]});
        stand
            .post(&format!("{path}/messages"), &messages)
            .await
            .ok();
    }
    path
}

async fn is_quoted(stand: &Stand, path: &str) -> bool {
    let asked = json!({"to": "openai-chat", "model": "gpt-4o", "window": 2000, "reserve": 300});
    let compiled = stand.post(&format!("{path}/compile"), &asked).await.ok();
    compiled["payload"]["messages"]
        .to_string()
        .contains("turn 2: Never push to main without asking me.")
}

#[tokio::test]
async fn rules_are_listed_dropped_and_restored() {
    let stand = Stand::new().await;
    let path = told(&stand).await;
    assert!(is_quoted(&stand, &path).await);
    let listed = stand.get(&format!("{path}/rules")).await.ok();
    let rule = listed["rules"][0]["id"].as_str().unwrap();
    assert_eq!(
        listed["rules"].as_array().map(Vec::len),
        Some(1),
        "{listed}"
    );
    let change = async |method: Method| {
        let one = format!("{path}/rules/{rule}");
        stand.send(stand.request(method, &one)).await.status
    };
    assert_eq!(change(Method::DELETE).await, 204);
    assert!(!is_quoted(&stand, &path).await);
    assert_eq!(change(Method::PUT).await, 204);
    assert!(is_quoted(&stand, &path).await);
    let unknown = stand.request(Method::DELETE, &format!("{path}/rules/01.02"));
    let unknown = stand.send(unknown).await;
    assert_eq!(unknown.status, 404, "{}", unknown.text);
}
