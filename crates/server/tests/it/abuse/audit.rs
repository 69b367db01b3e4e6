//! Who did what is told, and nothing of what was said.

use contexture::Engine;
use contexture_upstream_testkit::{ScriptedProvider, Upstream};
use reqwest::Method;
use serde_json::json;

use super::capture::Capture;
use crate::keys::key;
use crate::proxy::{chat, configuration, says};
use crate::test_support::Stand;

#[tokio::test]
async fn what_changes_and_what_is_refused_is_told() {
    const SAID: &str = "something private";
    let capture = Capture::begin();
    let upstream = Upstream::start(ScriptedProvider::default()).await;
    let (ada, first) = key("laptop-of-ada", "acme/ada", &["read", "write", "proxy"]);
    let (bob, second) = key("reader", "acme/bob", &["read"]);
    let config = configuration(&upstream.base_url(), &format!("{first}{second}"));
    let mut stand = Stand::over(Engine::in_memory(), &config).await;
    let path = "/api/v1/conversations";

    stand.as_bearer(Some(&ada));
    stand
        .post(path, &json!({"id": "a", "title": SAID}))
        .await
        .ok();
    let message = json!({"messages": [{"role": "user", "content": SAID}]});
    let appended = stand.post(&format!("{path}/a/messages"), &message).await;
    stand.get(&format!("{path}/a")).await.ok();
    let request = stand
        .request(Method::POST, "/v1/chat/completions?trace=private")
        .header("content-type", "application/json")
        .header("x-contexture-wait", "ingest")
        .header("x-contexture-conversation", "a")
        .body(chat(&[says(SAID)]).to_string());
    stand.send(request).await.ok();
    stand
        .call(Method::DELETE, &format!("{path}/a"), &json!({}))
        .await
        .ok();
    stand.as_bearer(Some(&bob));
    stand
        .post(path, &json!({"id": "b"}))
        .await
        .refused(403, "missing_scope");
    stand.as_bearer(Some("ctx_private"));
    stand.get(path).await.refused(401, "unauthenticated");
    stand.get("/openai/v1/models").await;

    let by_ada = r#"audit: message=answered key="laptop-of-ada" owner="acme/ada""#;
    let route = "/api/v1/conversations/{conversation}";
    let expected = [
        format!(r#"{by_ada} method="POST" route="{path}" status=201"#),
        format!(
            r#"{by_ada} method="POST" route="{route}/messages" conversation="a" status={}"#,
            appended.status.as_u16()
        ),
        format!(r#"{by_ada} method="POST" route="provider" conversation="a" status=200"#),
        format!(r#"{by_ada} method="DELETE" route="{route}" conversation="a" status=204"#),
        format!(
            r#"audit: message=answered key="reader" owner="acme/bob" method="POST" route="{path}" status=403"#
        ),
        format!(r#"audit: message=answered method="GET" route="{path}" status=401"#),
        r#"audit: message=answered method="GET" route="provider" status=401"#.to_owned(),
    ];
    let told = capture.of("audit");
    let missing = expected.iter().filter(|line| !told.contains(line));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0], "{told:#?}");
    for line in &told {
        assert!(
            !line.contains("private") && !line.contains("ctx_"),
            "{line}"
        );
    }
}
