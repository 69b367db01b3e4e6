//! What is answered is what is described: Schemathesis asks everything that the description allows, and much that it does
//! not.

use std::process::Stdio;

use crate::clients::installed::Installed;
use crate::messages::talk;
use crate::stand::Stand;

/// Runs it as its command does.
const SCRIPT: &str =
    "import sys\nfrom schemathesis.cli import schemathesis\nschemathesis(sys.argv[1:])\n";
/// Most of what it asks is asked of a conversation that is there.
const SETTINGS: &str = r#"
[parameters]
"path.conversation" = "a"
"path.branch" = "main"

[[operations]]
include-name = "DELETE /api/v1/conversations/{conversation}"
parameters = { "path.conversation" = "b" }
"#;
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_answered_is_described() {
    let Some(installed) = Installed::find() else {
        return;
    };
    let stand = Stand::new().await;
    talk(&stand, "a", &["Hello", "What is the weather?"]).await;
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("run.py");
    std::fs::write(&script, SCRIPT).unwrap();
    std::fs::write(folder.path().join("schemathesis.toml"), SETTINGS).unwrap();
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
