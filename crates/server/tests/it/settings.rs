//! What the server is set up with: the caller, the models, the policies.

use contexture::Engine;
use serde_json::json;

use crate::keys::key;
use crate::test_support::Stand;

const POLICIES: &str = r#"
[upstreams.openai]
format = "openai"
base_url = "http://127.0.0.1:9"

[policies.frugal]
window = { turns = 20 }
redact = { kinds = ["api_key"] }
limit_tokens = 6000

[policies.plain]

[[routes]]
model = "gpt-*"
policy = "frugal"

[[routes]]
policy = "plain"

[[routes]]
model = "claude-*"
policy = "frugal"
"#;

#[tokio::test]
async fn callers_learn_who_they_are() {
    let stand = Stand::new().await;
    let caller = stand.get("/api/v1/whoami").await.ok();
    assert_eq!(caller["owner"], "local");
    assert_eq!(caller["key"], json!(null));
    assert_eq!(caller["scopes"], json!(["read", "write", "proxy", "admin"]));
    let (ada, section) = key("ada", "acme/ada", &["read"]);
    let mut stand = Stand::with(&section).await;
    stand.as_bearer(Some(&ada));
    let caller = stand.get("/api/v1/whoami").await.ok();
    assert_eq!(
        (&caller["owner"], &caller["key"]),
        (&json!("acme/ada"), &json!("ada"))
    );
    assert_eq!(caller["scopes"], json!(["read"]));
    assert!(!caller.to_string().contains(&ada));
    stand.as_bearer(None);
    stand
        .get("/api/v1/whoami")
        .await
        .refused(401, "unauthenticated");
}

#[tokio::test]
async fn pages_of_models_are_the_catalogue() {
    let stand = Stand::new().await;
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let mut query = vec![("limit", "50")];
        query.extend(after.as_deref().map(|after| ("after", after)));
        let page = stand.find("/api/v1/models", &query).await.ok();
        let models = page["models"].as_array().unwrap();
        seen.extend(
            models
                .iter()
                .map(|model| model["id"].as_str().unwrap().to_owned()),
        );
        assert_eq!(page["more"], page.get("next").is_some());
        let Some(next) = page.get("next") else { break };
        after = Some(next.as_str().unwrap().to_owned());
    }
    let engine = Engine::in_memory();
    let models = engine.catalogue().models();
    let mut known: Vec<String> = models.map(|model| model.id.clone()).collect();
    known.sort();
    assert!(known.len() > 50);
    assert_eq!(seen, known);
    let of_one = [("provider", "anthropic"), ("limit", "500")];
    let page = stand.find("/api/v1/models", &of_one).await.ok();
    let models = page["models"].as_array().unwrap();
    let claude = models.iter().find(|model| model["id"] == "claude-sonnet-5");
    let claude = claude.unwrap();
    assert!(claude["context_window"].as_u64().unwrap() >= 200_000);
    assert!(claude["prices"]["input"].is_number() || claude["prices"]["input"].is_string());
    assert!(models.iter().all(|model| model["provider"] == "anthropic"));
}

#[tokio::test]
async fn policies_are_shown_with_their_routes() {
    let stand = Stand::with(POLICIES).await;
    let document = stand.get("/api/v1/policies").await.ok();
    let policies = document["policies"].as_array().unwrap();
    let names: Vec<_> = policies.iter().map(|policy| &policy["name"]).collect();
    assert_eq!(names, ["frugal", "plain"]);
    let frugal = &policies[0];
    assert_eq!(frugal["source"], "configuration");
    assert_eq!(frugal["settings"]["window"]["turns"], 20);
    assert_eq!(frugal["settings"]["redact"]["kinds"], json!(["api_key"]));
    assert_eq!(frugal["settings"]["memory"], false);
    assert_eq!(frugal["settings"].get("skills"), None);
    assert_eq!(frugal["skills"], json!([]));
    let places: Vec<_> = frugal["routes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|route| &route["place"])
        .collect();
    assert_eq!(places, [1, 3]);
    assert_eq!(policies[1]["settings"]["limit_tokens"], json!(null));
}
