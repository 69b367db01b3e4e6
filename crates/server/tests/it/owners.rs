//! What belongs to another owner is not there: every route of the API, each with a row here.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::keys::key;
use crate::messages::said;
use crate::test_support::{Answer, Stand};

/// What a stranger sees of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sees {
    /// What anybody sees: it shows nothing of an owner.
    Open,
    /// Its own things, of which there are none.
    Own,
    /// Exactly what it sees of what is nowhere.
    Nothing,
}

use Sees::{Nothing, Open, Own};

/// The conversation's id is `{c}`, a node of it `{n}`.
fn rows() -> Vec<(&'static str, &'static str, Sees, Value)> {
    let none = || Value::Null;
    vec![
        ("get", "/health", Open, none()),
        ("get", "/health/live", Open, none()),
        ("get", "/health/ready", Open, none()),
        ("get", "/openapi.json", Open, none()),
        ("get", "/metrics", Open, none()),
        ("get", "/api/v1/conversations", Own, none()),
        ("post", "/api/v1/conversations", Own, json!({"id": "mine"})),
        (
            "get",
            "/api/v1/conversations/{conversation}",
            Nothing,
            none(),
        ),
        (
            "patch",
            "/api/v1/conversations/{conversation}",
            Nothing,
            json!({"title": "x"}),
        ),
        (
            "delete",
            "/api/v1/conversations/{conversation}",
            Nothing,
            none(),
        ),
        (
            "get",
            "/api/v1/conversations/{conversation}/messages",
            Nothing,
            none(),
        ),
        (
            "post",
            "/api/v1/conversations/{conversation}/messages",
            Nothing,
            said("hi"),
        ),
        (
            "get",
            "/api/v1/conversations/{conversation}/log",
            Nothing,
            none(),
        ),
        (
            "get",
            "/api/v1/conversations/{conversation}/items",
            Nothing,
            none(),
        ),
        (
            "get",
            "/api/v1/conversations/{conversation}/items/{item}",
            Nothing,
            none(),
        ),
        (
            "get",
            "/api/v1/conversations/{conversation}/branches",
            Nothing,
            none(),
        ),
        (
            "post",
            "/api/v1/conversations/{conversation}/branches",
            Nothing,
            json!({"name": "x"}),
        ),
        (
            "get",
            "/api/v1/conversations/{conversation}/branches/{branch}",
            Nothing,
            none(),
        ),
        (
            "delete",
            "/api/v1/conversations/{conversation}/branches/{branch}",
            Nothing,
            none(),
        ),
        (
            "post",
            "/api/v1/conversations/{conversation}/branches/{branch}/activate",
            Nothing,
            none(),
        ),
        (
            "post",
            "/api/v1/conversations/{conversation}/rewind",
            Nothing,
            json!({"node": "{item}"}),
        ),
        (
            "get",
            "/api/v1/conversations/{conversation}/checkpoints",
            Nothing,
            none(),
        ),
        (
            "get",
            "/api/v1/conversations/{conversation}/checkpoints/{checkpoint}",
            Nothing,
            none(),
        ),
        (
            "put",
            "/api/v1/conversations/{conversation}/checkpoints/{checkpoint}",
            Nothing,
            none(),
        ),
        (
            "delete",
            "/api/v1/conversations/{conversation}/checkpoints/{checkpoint}",
            Nothing,
            none(),
        ),
        (
            "post",
            "/api/v1/conversations/{conversation}/checkpoints/{checkpoint}/restore",
            Nothing,
            none(),
        ),
        (
            "get",
            "/api/v1/conversations/{conversation}/events",
            Nothing,
            none(),
        ),
        ("get", "/api/v1/events?since=1h&follow=false", Own, none()),
        ("get", "/api/v1/search?query=secret", Own, none()),
        ("get", "/api/v1/export", Own, none()),
        ("post", "/api/v1/import", Open, none()),
        (
            "post",
            "/api/v1/sessions?format=openai-chat&conversation=ada-2",
            Own,
            json!([{"role": "user", "content": "hi"}]),
        ),
        (
            "get",
            "/api/v1/conversations/{conversation}/export",
            Nothing,
            none(),
        ),
        (
            "get",
            "/api/v1/conversations/{conversation}/read?link=context://vfs/00000000000000000000000000000000",
            Nothing,
            none(),
        ),
        (
            "get",
            "/api/v1/conversations/{conversation}/blobs/{blob}",
            Nothing,
            none(),
        ),
        (
            "post",
            "/api/v1/conversations/{conversation}/resolve",
            Nothing,
            json!({}),
        ),
        (
            "post",
            "/api/v1/conversations/{conversation}/compile",
            Nothing,
            json!({"to": "anthropic", "model": "claude-sonnet-5"}),
        ),
        (
            "post",
            "/api/v1/conversations/{conversation}/record",
            Nothing,
            json!({"response": {"id": "c", "object": "chat.completion", "model": "gpt-4o", "choices": []}}),
        ),
        (
            "post",
            "/api/v1/conversations/{conversation}/handle",
            Nothing,
            json!({}),
        ),
        (
            "post",
            "/api/v1/conversations/{conversation}/check",
            Nothing,
            json!({"name": "look"}),
        ),
        (
            "post",
            "/api/v1/conversations/{conversation}/explain",
            Nothing,
            json!({"to": "anthropic", "model": "claude-sonnet-5"}),
        ),
        (
            "get",
            "/api/v1/conversations/{conversation}/rules",
            Nothing,
            none(),
        ),
        (
            "get",
            "/api/v1/conversations/{conversation}/pins",
            Nothing,
            none(),
        ),
        (
            "put",
            "/api/v1/conversations/{conversation}/pins/{node}",
            Nothing,
            none(),
        ),
        (
            "delete",
            "/api/v1/conversations/{conversation}/pins/{node}",
            Nothing,
            none(),
        ),
        (
            "delete",
            "/api/v1/conversations/{conversation}/rules/{rule}",
            Nothing,
            none(),
        ),
        (
            "put",
            "/api/v1/conversations/{conversation}/rules/{rule}",
            Nothing,
            none(),
        ),
        (
            "post",
            "/api/v1/conversations/{conversation}/what-if",
            Nothing,
            json!({"to": "anthropic", "model": "claude-sonnet-5"}),
        ),
        (
            "get",
            "/api/v1/conversations/{conversation}/compactions",
            Nothing,
            none(),
        ),
        (
            "post",
            "/api/v1/conversations/{conversation}/compactions",
            Nothing,
            json!({"model": "claude-sonnet-5"}),
        ),
        (
            "delete",
            "/api/v1/conversations/{conversation}/compactions/{compaction}",
            Nothing,
            none(),
        ),
        (
            "get",
            "/api/v1/conversations/{conversation}/memory",
            Nothing,
            none(),
        ),
        (
            "post",
            "/api/v1/conversations/{conversation}/memory",
            Nothing,
            json!({"operations": [{"op": "get", "key": "language"}]}),
        ),
        (
            "get",
            "/api/v1/conversations/{conversation}/memory/{note}",
            Nothing,
            none(),
        ),
        (
            "put",
            "/api/v1/conversations/{conversation}/memory/{note}",
            Nothing,
            json!({"value": "x"}),
        ),
        (
            "delete",
            "/api/v1/conversations/{conversation}/memory/{note}",
            Nothing,
            none(),
        ),
        // A request that was passed on, and is hers: `proxy::credentials`.
        ("get", "/api/v1/requests/{request}", Nothing, none()),
        ("get", "/api/v1/calls/{call}", Nothing, none()),
        ("get", "/api/v1/calls/{call}/items", Nothing, none()),
        (
            "post",
            "/api/v1/calls/{call}/what-if",
            Nothing,
            json!({"model": "gpt-4o"}),
        ),
        ("get", "/api/v1/calls", Own, none()),
        // Calls of another's are not there: `proxy::past`.
        (
            "post",
            "/api/v1/diff",
            Open,
            json!({"format": "openai-chat", "first": {"request": {"model": "m", "messages": []}}, "second": {"request": {"model": "m", "messages": []}}}),
        ),
        ("get", "/api/v1/usage", Own, none()),
        ("get", "/api/v1/ledger", Own, none()),
        ("get", "/api/v1/runs", Own, none()),
        (
            "post",
            "/api/v1/runs",
            Nothing,
            json!({"conversation": "{conversation}", "agent": "desk", "input": "hi"}),
        ),
        // What they show is the caller's or the server's.
        ("get", "/api/v1/whoami", Open, none()),
        ("get", "/api/v1/owners", Open, none()),
        ("get", "/api/v1/models", Open, none()),
        ("get", "/api/v1/policies", Open, none()),
        (
            "get",
            "/api/v1/conversations/{conversation}/runs/{run}",
            Nothing,
            none(),
        ),
        (
            "get",
            "/api/v1/conversations/{conversation}/runs/{run}/timeline",
            Nothing,
            none(),
        ),
        (
            "post",
            "/api/v1/conversations/{conversation}/runs/{run}/decisions",
            Nothing,
            json!({"call": "{item}", "decision": "allow"}),
        ),
        (
            "post",
            "/api/v1/conversations/{conversation}/runs/{run}/cancel",
            Nothing,
            json!({}),
        ),
        // They are the server's.
        ("get", "/api/v1/skills", Open, none()),
        ("get", "/api/v1/skills/{skill}", Nothing, none()),
        ("get", "/api/v1/skills/{skill}/file?path=a", Nothing, none()),
        ("post", "/api/v1/count", Open, json!({"texts": ["a"]})),
        ("post", "/api/v1/render", Open, json!({"fragments": []})),
        (
            "post",
            "/api/v1/convert",
            Open,
            json!({"document": [], "from": "items", "to": "ui"}),
        ),
        ("post", "/v1/compress", Open, json!({"messages": []})),
        (
            "post",
            "/api/v1/compile",
            Open,
            json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}),
        ),
    ]
}

/// The names of things: those of Ada, or of nobody.
struct Names {
    conversation: String,
    item: String,
}

impl Names {
    fn fill(&self, text: &str) -> String {
        text.replace("{conversation}", &self.conversation)
            .replace("{item}", &self.item)
            .replace("{node}", &self.item)
            .replace("{branch}", "main")
            .replace("{checkpoint}", "before")
            .replace("{rule}", "01.02")
            .replace("{note}", "language")
            .replace("{request}", &format!("req_{}", self.item))
            .replace("{call}", &format!("req_{}", self.item))
            .replace("{run}", "run-1")
            .replace("{skill}", "forms")
            .replace("{compaction}", &self.item)
            .replace("{blob}", &self.item)
    }

    async fn ask(&self, stand: &Stand, method: &str, path: &str, body: &Value) -> Answer {
        let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
        let path = self.fill(path);
        match body {
            Value::Null if path.ends_with("/import") => {
                let request = stand
                    .request(method, &path)
                    .header("content-type", "application/jsonl");
                stand.send(request.body("")).await
            }
            Value::Null => stand.send(stand.request(method, &path)).await,
            body => {
                let body = serde_json::from_str(&self.fill(&body.to_string())).unwrap();
                stand.call(method, &path, &body).await
            }
        }
    }

    /// What was answered, names left out.
    fn shape(&self, answer: &Answer) -> (u16, String) {
        let text = answer
            .text
            .replace(&self.conversation, "CONVERSATION")
            .replace(&self.item, "ITEM");
        (answer.status.as_u16(), text)
    }
}

async fn stand() -> (Stand, String, String) {
    let all = ["read", "write", "admin"];
    let (ada, first) = key("ada", "acme/ada", &all);
    let (bob, second) = key("bob", "acme/bob", &all);
    let stand = Stand::with(&[first, second].concat()).await;
    (stand, ada, bob)
}

#[tokio::test]
async fn every_route_has_a_row() {
    let (stand, ..) = stand().await;
    let description = stand.get("/openapi.json").await.ok();
    let mut described = BTreeSet::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        let methods = methods.as_object().unwrap().keys();
        described.extend(methods.map(|method| (method.clone(), path.clone())));
    }
    let rows = rows().into_iter();
    let listed: BTreeSet<_> = rows
        .map(|(method, path, ..)| {
            (
                method.to_owned(),
                path.split('?').next().unwrap().to_owned(),
            )
        })
        .collect();
    assert_eq!(described, listed);
}

#[tokio::test]
async fn strangers_see_what_they_would_see_of_nothing() {
    let (mut stand, ada, bob) = stand().await;
    stand.as_bearer(Some(&ada));
    let path = "/api/v1/conversations/ada-1";
    stand
        .post(
            "/api/v1/conversations",
            &json!({"id": "ada-1", "resource": "r"}),
        )
        .await
        .ok();
    let saved = stand
        .post(&format!("{path}/messages"), &said("a secret of Ada"))
        .await
        .ok();
    stand
        .send(stand.request(Method::PUT, &format!("{path}/checkpoints/before")))
        .await
        .ok();
    let hers = Names {
        conversation: "ada-1".to_owned(),
        item: saved["items"][0].as_str().unwrap().to_owned(),
    };
    let nobodys = Names {
        conversation: "none-1".to_owned(),
        item: "0".repeat(32),
    };
    let before = stand.get(path).await.ok();
    stand.as_bearer(Some(&bob));
    for (method, path, sees, body) in rows() {
        let answer = hers.ask(&stand, method, path, &body).await;
        match sees {
            Open => assert!(
                answer.status.is_success(),
                "{method} {path}: {}",
                answer.text
            ),
            Own => {
                assert!(
                    answer.status.is_success(),
                    "{method} {path}: {}",
                    answer.text
                );
                assert!(
                    !answer.text.contains("ada-1") && !answer.text.contains("secret of"),
                    "{method} {path}: {}",
                    answer.text
                );
            }
            Nothing => {
                let (status, code) = answer.problem();
                assert_eq!(
                    (status, code.as_str()),
                    (404, "not_found"),
                    "{method} {path}: {}",
                    answer.text
                );
                let nothing = nobodys.ask(&stand, method, path, &body).await;
                assert_eq!(
                    hers.shape(&answer),
                    nobodys.shape(&nothing),
                    "{method} {path}"
                );
            }
        }
    }
    // A thing of hers in a conversation of his.
    let his = Names {
        conversation: "mine".to_owned(),
        item: hers.item.clone(),
    };
    for (method, path) in [
        ("get", "/api/v1/conversations/{conversation}/items/{item}"),
        (
            "get",
            "/api/v1/conversations/{conversation}/items?at={item}",
        ),
    ] {
        let answer = his.ask(&stand, method, path, &Value::Null).await;
        assert_eq!(answer.problem().0, 404, "{}", answer.text);
    }
    stand.as_bearer(Some(&ada));
    assert_eq!(stand.get(path).await.ok(), before);
}
