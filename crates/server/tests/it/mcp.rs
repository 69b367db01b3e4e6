//! The Model Context Protocol at `/mcp`: who may ask, and for what.

use reqwest::Method;
use serde_json::{Value, json};

use crate::keys::key;
use crate::test_support::{Answer, Stand};

async fn ask(stand: &Stand, method: &str, params: Value, headers: &[(&str, &str)]) -> Answer {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let request = stand
        .request(Method::POST, "/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25");
    let headers = headers.iter();
    let request = headers.fold(request, |request, (name, value)| {
        request.header(*name, *value)
    });
    stand.send(request.body(body.to_string())).await
}

async fn tools(stand: &Stand, headers: &[(&str, &str)]) -> Vec<String> {
    let listed = ask(stand, "tools/list", json!({}), headers).await.ok();
    let tools = listed["result"]["tools"].as_array().unwrap();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

async fn conversations(stand: &Stand, headers: &[(&str, &str)]) -> Value {
    let params = json!({ "name": "list_conversations", "arguments": {} });
    let said = ask(stand, "tools/call", params, headers).await.ok();
    said["result"]["structuredContent"]["conversations"].clone()
}

#[tokio::test]
async fn without_keys_it_is_the_local_owners_and_pages_are_refused() {
    let stand = Stand::new().await;
    let path = "/api/v1/conversations";
    stand.post(path, &json!({"id": "support-42"})).await.ok();
    assert!(
        tools(&stand, &[])
            .await
            .contains(&"create_branch".to_owned())
    );
    let listed = conversations(&stand, &[]).await;
    assert_eq!(listed[0]["id"], "support-42");
    for foreign in [
        ("host", "evil.example"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
    ] {
        let refused = ask(&stand, "tools/list", json!({}), &[foreign]).await;
        refused.refused(403, "foreign_origin");
    }
    assert_eq!(stand.get("/mcp").await.status, 405);
}

#[tokio::test]
async fn mcp_with_keys_enforces_owner_and_scopes() {
    let (ada, first) = key("ada", "acme/ada", &["read", "write"]);
    let (eve, second) = key("eve", "acme/eve", &["read"]);
    let (proxy, third) = key("proxy", "acme/ada", &["proxy"]);
    let stand = Stand::with(&[first, second, third].concat()).await;
    let engine = stand.engine.conversation("support-42").owner("acme/ada");
    engine.open().await.unwrap();

    let nobody = ask(&stand, "tools/list", json!({}), &[]).await;
    nobody.refused(401, "unauthenticated");
    let wrong = [("authorization", "Bearer ctx_wrong")];
    let wrong = ask(&stand, "tools/list", json!({}), &wrong).await;
    wrong.refused(401, "unauthenticated");
    let proxy = [("x-contexture-key", &*proxy)];
    let proxy = ask(&stand, "tools/list", json!({}), &proxy).await;
    proxy.refused(403, "missing_scope");

    // By the name that a proxy in front gives it.
    let ada = format!("Bearer {ada}");
    let ada = [("authorization", &*ada), ("host", "contexture.example")];
    let eve = [("x-contexture-key", &*eve)];
    let writes = "create_branch".to_owned();
    assert!(tools(&stand, &ada).await.contains(&writes));
    assert!(!tools(&stand, &eve).await.contains(&writes));
    assert_eq!(conversations(&stand, &ada).await[0]["id"], "support-42");
    assert_eq!(conversations(&stand, &eve).await, json!([]));
}
