//! What is answered is what is described: Schemathesis asks everything that the description allows, and much that it does
//! not.

use std::process::Stdio;

use reqwest::Method;
use serde_json::json;

use crate::clients::installed::Installed;
use crate::messages::talk;
use crate::running::waiting;
use crate::stand::Stand;

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
"query.link" = "context://vfs/ITEM"

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
"#;
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_answered_is_described() {
    let Some(installed) = Installed::find() else {
        return;
    };
    let stand = Stand::new().await;
    let settings = settings(&stand).await;
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("run.py");
    std::fs::write(&script, SCRIPT).unwrap();
    std::fs::write(folder.path().join("schemathesis.toml"), settings).unwrap();
    let mut command = installed.command(&script, folder.path());
    command
        .args(["run", &format!("http://{}/openapi.json", stand.address)])
        // Lines of JSON are a type it cannot make; what comes of them is shown elsewhere.
        .args(["--exclude-path", "/api/v1/import"])
        .args(["--checks", CHECKS])
        .args(["--phases", "coverage,fuzzing"])
        .args(["--max-examples", "20", "--seed", "1"])
        .args(["--generation-database", "none", "--no-color"]);
    let output = command.stdin(Stdio::null()).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{failed}");
    // All but the one that was left out.
    let number = |before: &str| {
        let digits = said.split(before).nth(1).unwrap().trim_start();
        let digits = digits.split_whitespace().next().unwrap();
        digits.parse::<usize>().unwrap()
    };
    assert_eq!(number("selected /") - 1, number("Tested:"), "{said}");
}

/// Makes what the settings name.
async fn settings(stand: &Stand) -> String {
    let path = talk(stand, "a", &["Hello", "What is the weather?"]).await;
    talk(stand, "b", &["Bye"]).await;
    let aside = json!({"name": "aside"});
    stand.post(&format!("{path}/branches"), &aside).await.ok();
    for name in ["before", "past"] {
        let at = format!("{path}/checkpoints/{name}");
        stand.call(Method::PUT, &at, &json!({})).await.ok();
    }
    for key in ["language", "old"] {
        let at = format!("{path}/memory/{key}");
        let note = json!({"value": "Portuguese"});
        stand.call(Method::PUT, &at, &note).await.ok();
    }
    let (_, turn) = waiting(stand, "a").await;
    let items = stand.get(&format!("{path}/items")).await.ok();
    let chat = stand.engine.conversation("a").existing().await.unwrap();
    let store = stand.engine.store();
    let bytes = b"0123456789".as_slice().into();
    let blob = store
        .put_blob(chat.owner(), chat.id(), bytes)
        .await
        .unwrap();
    SETTINGS
        .replace("ITEM", items["items"][0]["id"].as_str().unwrap())
        .replace("BLOB", &blob.to_string())
        .replace("RUN", &turn.run.to_string())
}
