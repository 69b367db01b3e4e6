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

#[tokio::test]
async fn pins_are_listed_set_and_deleted() {
    let stand = Stand::new().await;
    let path = told(&stand).await;
    let log = stand.get(&format!("{path}/log")).await.ok();
    let nodes = log["entries"].as_array().unwrap().iter();
    let nodes: Vec<&str> = nodes
        .filter_map(|node| node["id"].as_str())
        .take(2)
        .collect();
    let change = async |method: Method, node: &str| {
        let one = format!("{path}/pins/{node}");
        stand.send(stand.request(method, &one)).await
    };
    let list = async |query: &str| stand.get(&format!("{path}/pins{query}")).await.ok();
    assert_eq!(list("").await, json!({"pins": [], "next": null}));
    // Each twice: what is so already stays so.
    for node in [nodes[0], nodes[1], nodes[0]] {
        assert_eq!(change(Method::PUT, node).await.status, 204);
    }
    let listed = list("").await;
    assert_eq!(listed["pins"].as_array().map(Vec::len), Some(2), "{listed}");
    let first = list("?limit=1").await;
    let next = first["next"].as_str().unwrap();
    let second = list(&format!("?limit=1&after={next}")).await;
    assert_eq!(
        (&first["pins"][0], &second["pins"][0], &second["next"]),
        (&listed["pins"][0], &listed["pins"][1], &json!(null))
    );
    for _ in 0..2 {
        assert_eq!(change(Method::DELETE, nodes[0]).await.status, 204);
    }
    assert_eq!(list("").await["pins"], json!([{"node": nodes[1]}]));
    let unknown = "00000000000000000000000000000001";
    for method in [Method::PUT, Method::DELETE] {
        let refused = change(method, unknown).await;
        assert_eq!(refused.status, 404, "{}", refused.text);
    }
}

#[tokio::test]
async fn compactions_are_listed_by_pages() {
    let stand = Stand::new().await;
    let path = told(&stand).await;
    let compact = json!({"to": "openai-chat", "model": "gpt-4o", "window": 2000, "keep": 40});
    let made = stand.post(&format!("{path}/compactions"), &compact).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let listed = stand.get(&format!("{path}/compactions?limit=1")).await.ok();
    assert_eq!(listed["compactions"].as_array().map(Vec::len), Some(1));
    assert_eq!(listed["next"], json!(null));
}
