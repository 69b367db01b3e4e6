//! What a policy shortens, models read again behind clients' backs: each client sees one answer.

use contexture_upstream_testkit::{ScriptedProvider, Upstream};
use serde_json::Value;

use super::installed::Installed;
use super::passing_to;
use super::script::Script;
use crate::test_support::Stand;

const POLICY: &str =
    "[policies.short]\npreview = 1000\npays = \"fits\"\n[[routes]]\npolicy = \"short\"\n";

/// Goes through a script with so many clients: each asks twice, for a line that the model reads, and once more.
async fn check(script: &str, clients: usize) {
    let Some(installed) = Installed::find() else {
        return;
    };
    let upstream = Upstream::start(ScriptedProvider::default()).await;
    let server = Stand::with(&format!("{}{POLICY}", passing_to(&upstream))).await;
    let script = Script::new(&installed, script);
    let saw = script.run(&format!("http://{}", server.address)).await;
    assert_eq!(saw.len(), clients, "{saw:#?}");
    for (client, saw) in &saw {
        let turn = |turn: usize| -> (&str, &Value, u64) {
            let turn = &saw[turn];
            let text = turn[0]
                .as_str()
                .unwrap_or_else(|| panic!("{client}: {saw:#}"));
            (text, &turn[1], turn[2].as_u64().unwrap())
        };
        let (text, calls, tokens) = turn(0);
        assert!(
            text.starts_with("I look that up.The tool says:"),
            "{client}: {text}"
        );
        assert!(text.contains("line 60 of a listing"), "{client}: {text}");
        // Four bytes are a token; the arguments of the call are no text.
        assert!(tokens > text.len() as u64 / 4, "{client}: {tokens}");
        assert_eq!(calls, 0, "{client}");
        let (text, calls, _) = turn(1);
        assert!(text.starts_with("Answer 3"), "{client}: {text}");
        assert_eq!(calls, 0, "{client}");
    }
    // The model was asked once more by the server.
    assert_eq!(upstream.received_requests().len(), 3 * clients);
    let listed = server.get("/api/v1/conversations?limit=100").await.ok();
    let listed = listed["conversations"].as_array().unwrap().clone();
    // Gemini's streams and the others' say the same: each is a conversation of its own.
    assert_eq!(listed.len(), clients, "{listed:#?}");
    for conversation in &listed {
        assert_eq!(conversation["branches"], 1, "{conversation}");
    }
}

#[tokio::test]
async fn what_models_read_no_client_for_python_sees() {
    check("reading.py", 8).await;
}

#[tokio::test]
async fn what_models_read_no_client_for_node_sees() {
    check("reading.mjs", 4).await;
}
