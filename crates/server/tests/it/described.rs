//! What is answered is what is described: Schemathesis asks everything that the description allows, and much that it does
//! not.

use std::process::Stdio;

use contexture::Engine;
use contexture::compile::Link;
use contexture::store::NodeQuery;
use contexture_upstream_testkit::ScriptedProvider;
use reqwest::Method;
use serde_json::json;

use crate::clients::installed::Installed;
use crate::messages::talk;
use crate::proxy::{Proxied, chat, says};
use crate::running::waiting;
use crate::skills::{forms, shown};

/// Runs it as its command does.
const SCRIPT: &str =
    "import sys\nfrom schemathesis.cli import schemathesis\nschemathesis(sys.argv[1:])\n";
/// Most of what it asks is asked of things that are there; what it deletes is nothing that others are asked of.
const SETTINGS: &str = r#"
[parameters]
"path.conversation" = "a"
"path.branch" = "main"
"path.checkpoint" = "before"
"path.note" = "language"
"path.item" = "ITEM"
"path.blob" = "BLOB"
"path.run" = "RUN"
"path.compaction" = "COMPACTION"
"path.request" = "REQUEST"
"path.call" = "REQUEST"
"path.skill" = "forms"
"path.rule" = "RULE"
"query.path" = "references/fields.md"
"query.branch" = "main"
"query.conversation" = "a"
"query.link" = "LINK"

[[operations]]
include-name = "DELETE /api/v1/conversations/{conversation}"
parameters = { "path.conversation" = "b" }

[[operations]]
include-name = "DELETE /api/v1/conversations/{conversation}/branches/{branch}"
parameters = { "path.branch" = "aside" }

[[operations]]
include-name = "DELETE /api/v1/conversations/{conversation}/checkpoints/{checkpoint}"
parameters = { "path.checkpoint" = "past" }

[[operations]]
include-name = "DELETE /api/v1/conversations/{conversation}/memory/{note}"
parameters = { "path.note" = "old" }

[[operations]]
include-name = "PUT /api/v1/conversations/{conversation}/memory/{note}"
parameters = { "path.note" = "written" }
"#;
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_answered_is_described() {
    let Some(installed) = Installed::find() else {
        return;
    };
    let skills = forms();
    let provider = ScriptedProvider::default();
    let shown = shown(&[skills.path()]);
    let proxied = Proxied::to(provider, Engine::in_memory(), &shown).await;
    let stand = &proxied.stand;
    let settings = settings(&proxied).await;
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("run.py");
    std::fs::write(&script, SCRIPT).unwrap();
    std::fs::write(folder.path().join("schemathesis.toml"), settings).unwrap();
    let mut command = installed.command(&script, folder.path());
    command
        .args(["run", &format!("http://{}/openapi.json", stand.address)])
        // Lines of JSON are a type it cannot make; what comes of them is shown elsewhere.
        .args(["--exclude-path", "/api/v1/import"])
        // It never ends, and its type is that of a stream; `owner_events` reads it.
        .args(["--exclude-path", "/api/v1/events"])
        .args(["--checks", CHECKS])
        .args(["--phases", "coverage,fuzzing"])
        .args(["--max-examples", "6", "--seed", "1"])
        // Longer than any answer may take: a busy machine is no fault of the server's.
        .args(["--request-timeout", "120"])
        .args(["--generation-database", "none", "--no-color"]);
    let output = command.stdin(Stdio::null()).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{failed}");
    // What the settings name is there.
    assert!(!said.contains("Missing test data"), "{said}");
    // All but the two that were left out.
    let number = |before: &str| {
        let digits = said.split(before).nth(1).unwrap().trim_start();
        let digits = digits.split_whitespace().next().unwrap();
        digits.parse::<usize>().unwrap()
    };
    assert_eq!(number("selected /") - 2, number("Tested:"), "{said}");
}

/// Makes what the settings name.
async fn settings(proxied: &Proxied) -> String {
    let stand = &proxied.stand;
    // Long enough that something shorter can stand for it.
    let story = "It rained for days. ".repeat(500);
    let rule = "Never push to main without asking me.";
    let path = talk(stand, "a", &["Hello", &story, "What is the weather?", rule]).await;
    talk(stand, "b", &["Bye"]).await;
    let aside = json!({"name": "aside"});
    stand.post(&format!("{path}/branches"), &aside).await.ok();
    for name in ["before", "past"] {
        let at = format!("{path}/checkpoints/{name}");
        stand.call(Method::PUT, &at, &json!({})).await.ok();
    }
    for key in ["language", "old"] {
        for scope in ["resource", "owner", "path"] {
            let at = format!("{path}/memory/{key}?scope={scope}");
            let note = json!({"value": "Portuguese"});
            stand.call(Method::PUT, &at, &note).await.ok();
        }
    }
    let (_, turn) = waiting(stand, "a").await;
    let items = stand.get(&format!("{path}/items")).await.ok();
    let item = items["items"][0]["id"].as_str().unwrap();
    let rules = stand.get(&format!("{path}/rules")).await.ok();
    let compact =
        json!({"model": "claude-sonnet-5", "first": item, "last": items["items"][1]["id"]});
    let compacted = stand.post(&format!("{path}/compactions"), &compact).await;
    let asked = proxied
        .ask("/v1/chat/completions", &chat(&[says("Hi")]))
        .await;
    proxied.outcome(&asked).await;
    let request = asked.headers["x-contexture-request"].to_str().unwrap();
    let chat = stand
        .engine
        .conversation("a")
        .open_existing()
        .await
        .unwrap();
    let store = stand.engine.store();
    let id = NodeQuery::Id(item.parse().unwrap());
    let nodes = store.find_nodes(chat.owner(), chat.id(), id).await.unwrap();
    let bytes = b"0123456789".as_slice().into();
    let blob = store
        .put_blob(chat.owner(), chat.id(), bytes)
        .await
        .unwrap();
    SETTINGS
        .replace("ITEM", item)
        .replace("LINK", &Link::new(nodes[0].content_hash).to_string())
        .replace("COMPACTION", compacted.ok()["compaction"].as_str().unwrap())
        .replace("REQUEST", request)
        .replace("BLOB", &blob.to_string())
        .replace("RUN", &turn.run.to_string())
        .replace("RULE", rules["rules"][0]["id"].as_str().unwrap())
}
