//! `contexture mcp` as its clients meet it: started, spoken to on its standard streams, left.

use std::process::Stdio;

use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, JsonObject};
use rmcp::service::{RoleClient, RunningService};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::command::Place;
use crate::sample::support;

/// Starts the command and begins with it.
async fn start(place: &Place, arguments: &[&str]) -> (RunningService<RoleClient, ()>, Child) {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("contexture"))
        .arg("mcp")
        .args(arguments)
        .env_clear()
        .env("XDG_DATA_HOME", place.path("data"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let streams = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    (().serve(streams).await.unwrap(), child)
}

/// Leaves; the command has ended well then, and complained of nothing.
async fn leave(client: RunningService<RoleClient, ()>, child: Child) {
    client.cancel().await.unwrap();
    let ended = child.wait_with_output().await.unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success(), "{said}");
    assert_eq!(said, "");
}

async fn ask(client: &RunningService<RoleClient, ()>, tool: &str, arguments: Value) -> Value {
    let arguments: JsonObject = serde_json::from_value(arguments).unwrap();
    let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let result = client.call_tool(request).await.unwrap();
    assert_eq!(result.is_error, Some(false), "{tool}: {result:?}");
    result.structured_content.unwrap()
}

#[tokio::test]
async fn a_client_reads_and_changes_what_the_command_line_shows() {
    let place = Place::new();
    let place = tokio::task::spawn_blocking(move || {
        support(&place);
        place
    });
    let place = place.await.unwrap();
    let (client, child) = start(&place, &[]).await;
    assert_eq!(client.list_all_tools().await.unwrap().len(), 18);
    let found = json!({ "query": "gloves", "conversation": "support-42" });
    let found = ask(&client, "search_conversations", found).await;
    assert_eq!(found["hits"][0]["conversation"], json!("support-42"));
    let back = json!({ "conversation": "support-42", "name": "before-refund" });
    let back = ask(&client, "restore_checkpoint", back).await;
    leave(client, child).await;
    let listed = place.ok("branch list support-42");
    assert!(listed.contains(back["name"].as_str().unwrap()), "{listed}");
}

#[tokio::test]
async fn it_begins_without_a_database_and_may_be_told_to_read_only() {
    let place = Place::new();
    let (client, child) = start(&place, &[]).await;
    let note = json!({ "key": "tone", "value": "brief" });
    ask(&client, "create_memory", note).await;
    leave(client, child).await;
    let (client, child) = start(&place, &["--read-only"]).await;
    let notes = ask(&client, "read_memory", json!({})).await;
    assert_eq!(notes["notes"][0]["value"], json!("brief"));
    let tools = client.list_all_tools().await.unwrap();
    assert!(tools.iter().all(|tool| tool.name != "create_memory"));
    leave(client, child).await;
    let (client, child) = start(&place, &["--owner", "acme/eve"]).await;
    let listed = ask(&client, "list_conversations", json!({})).await;
    assert_eq!(listed["conversations"], json!([]));
    leave(client, child).await;
}

#[test]
fn nothing_but_the_protocol_is_on_standard_output() {
    let place = Place::new();
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" }
    });
    let begin = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let begun = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let input = format!("{begin}\n{begun}\nplain words\n{list}\n");
    for line in ["mcp", "mcp --json", "mcp --color always"] {
        let run = place.feed(line, input.clone());
        assert_eq!(run.code, 0, "{run:?}");
        let lines: Vec<Value> = run
            .out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(
            lines.iter().all(|line| line["jsonrpc"] == json!("2.0")),
            "{run:?}"
        );
        assert!(lines.iter().any(|line| line["id"] == json!(2)), "{run:?}");
    }
    let run = place.feed("mcp", "");
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{run:?}");
    let run = place.feed("mcp", format!("{list}\n"));
    assert!(
        run.out
            .lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok()),
        "{run:?}"
    );
}

/// The official client in Python, as it is: where the tests are given a Python that has it.
#[test]
fn the_official_python_client_is_served() {
    let Some(python) = std::env::var_os("CONTEXTURE_TEST_PYTHON") else {
        println!("NOT TESTED: CONTEXTURE_TEST_PYTHON names no Python with the package `mcp`");
        return;
    };
    let place = Place::new();
    support(&place);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/mcp_client.py");
    let run = std::process::Command::new(python)
        .arg(script)
        .arg(assert_cmd::cargo::cargo_bin!("contexture"))
        .arg(place.database())
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8(run.stdout).unwrap(),
        String::from_utf8(run.stderr).unwrap(),
    );
    assert!(run.status.success(), "{out}{err}");
    let said: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(said["tools"], json!(15));
    assert_eq!(said["order"], json!("same"));
    assert_eq!(said["conversation"], json!("support-42"));
    assert_eq!(said["refused"], json!(true));
    assert!(
        said["resource"]
            .as_str()
            .unwrap()
            .contains("Shall I refund the gloves too?"),
        "{out}"
    );
}

#[tokio::test]
async fn some_tools_are_offered_if_so_told() {
    let place = Place::new();
    let size = async |arguments: &[&str]| {
        let (client, child) = start(&place, arguments).await;
        let listed = client.list_all_tools().await.unwrap();
        let names: Vec<String> = listed.iter().map(|tool| tool.name.to_string()).collect();
        let bytes = serde_json::to_string(&listed).unwrap().len();
        leave(client, child).await;
        (names, bytes)
    };
    let (all, everything) = size(&[]).await;
    let (some, less) = size(&["--tools", "search,read_link"]).await;
    assert_eq!(
        some,
        ["list_conversations", "read_link", "search_conversations"]
    );
    assert!(
        all.len() == 18 && everything < 25_000 && less < 8_500,
        "{everything} {less}"
    );
    let (reading, _) = size(&["--tools", "memory", "--read-only"]).await;
    assert_eq!(reading, ["read_memory"]);
    let unknown = place.run("mcp --tools serch");
    assert!(
        unknown.code == 2 && unknown.err.contains("expected search, read"),
        "{}",
        unknown.err
    );
}
