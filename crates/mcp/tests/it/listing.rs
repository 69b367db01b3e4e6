//! What is listed: always the same, in the same order, and what the documentation says.

use std::collections::BTreeMap;

use contexture_mcp::Access;
use serde_json::{Value, json};

use crate::support::{Client, empty};

async fn tools(client: &Client) -> Vec<Value> {
    let listed = client.peer.list_tools(None).await.unwrap();
    assert_eq!(listed.next_cursor, None);
    let listed = listed.tools.iter();
    listed
        .map(|tool| serde_json::to_value(tool).unwrap())
        .collect()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn the_list_is_the_same_each_time() {
    let client = Client::of(&empty(), Access::Write).await;
    let first = tools(&client).await;
    assert_eq!(first, tools(&client).await);
    let other = Client::of(&empty(), Access::Write).await;
    let again = tools(&other).await;
    assert_eq!(
        serde_json::to_string(&first).unwrap(),
        serde_json::to_string(&again).unwrap()
    );
    assert!(names(&first).is_sorted());
    insta::assert_json_snapshot!("tools", first);
    client.leave().await;
}

#[tokio::test]
async fn who_may_only_read_is_offered_what_reads() {
    let client = Client::of(&empty(), Access::Read).await;
    let listed = tools(&client).await;
    for tool in &listed {
        assert_eq!(tool["annotations"]["readOnlyHint"], json!(true), "{tool}");
    }
    let expected = [
        "check_budget",
        "list_branches",
        "list_conversations",
        "list_rules",
        "read_conversation",
        "read_link",
        "read_memory",
        "search_conversations",
    ];
    assert_eq!(names(&listed), expected);
    let note = json!({ "key": "k", "value": "v" });
    let refused = client.call("create_memory", note).await.unwrap_err();
    assert!(
        refused.to_string().contains("unknown tool: create_memory"),
        "{refused}"
    );
}

#[tokio::test]
async fn schemas_are_plain() {
    let client = Client::of(&empty(), Access::Write).await;
    for tool in tools(&client).await {
        // Programs go through pages; other answers are read by the model, and their schemas would only take room.
        let paged = [
            "list_branches",
            "list_conversations",
            "read_conversation",
            "search_conversations",
        ];
        let is_paged = paged.contains(&tool["name"].as_str().unwrap());
        assert_eq!(tool.get("outputSchema").is_some(), is_paged, "{tool}");
        for schema in ["inputSchema", "outputSchema"] {
            let Some(schema) = tool.get(schema) else {
                continue;
            };
            assert_eq!(schema["type"], json!("object"), "{tool}");
            let text = schema.to_string();
            for word in ["$ref", "$defs", "\"format\":\"", "null", "anyOf"] {
                assert!(!text.contains(word), "{}: {word} in {text}", tool["name"]);
            }
        }
        assert_eq!(tool["inputSchema"]["additionalProperties"], json!(false));
    }
}

#[tokio::test]
async fn the_documentation_lists_the_tools() {
    let client = Client::of(&empty(), Access::Write).await;
    let listed = tools(&client).await;
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mcp.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, tools) = page.split_once("\n## Tools\n").unwrap();
    let (tools, _) = tools.split_once("\n## ").unwrap();
    let rows = tools.lines().filter_map(|line| line.strip_prefix("| `"));
    let told: BTreeMap<&str, bool> = rows
        .filter_map(|row| {
            let (name, rest) = row.split_once("` |")?;
            Some((name, rest.split('|').next()?.trim() == "reads"))
        })
        .collect();
    let expected: BTreeMap<&str, bool> = listed
        .iter()
        .map(|tool| {
            let reads = tool["annotations"]["readOnlyHint"].as_bool().unwrap();
            (tool["name"].as_str().unwrap(), reads)
        })
        .collect();
    assert_eq!(told, expected);
}
