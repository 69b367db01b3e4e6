//! What is wrong is told to the model; what belongs to another owner is not there.

use serde_json::{Value, json};

use crate::support::{AIRLINE, Client, SMALL, STRANGE};

#[tokio::test]
async fn wrong_arguments_are_told_to_the_model() {
    let client = Client::recorded().await;
    for (tool, arguments, expected) in [
        (
            "read_conversation",
            json!({}),
            "missing field `conversation`",
        ),
        (
            "read_conversation",
            json!({ "conversation": 5 }),
            "expected a string",
        ),
        (
            "read_conversation",
            json!({ "conversation": SMALL, "page": 2 }),
            "unknown field `page`",
        ),
        (
            "read_conversation",
            json!({ "conversation": SMALL, "from": -1 }),
            "invalid value",
        ),
        (
            "read_conversation",
            json!({ "conversation": SMALL, "from": 1, "around": "x" }),
            "give one of them",
        ),
        (
            "read_conversation",
            json!({ "conversation": SMALL, "around": "nowhere" }),
            "not found",
        ),
        (
            "read_conversation",
            json!({ "conversation": SMALL, "branch": "gone" }),
            "list_branches",
        ),
        (
            "search_conversations",
            json!({ "query": "?!" }),
            "no word to look for",
        ),
        (
            "search_conversations",
            json!({ "query": "x".repeat(5_000) }),
            "limit",
        ),
        (
            "search_conversations",
            json!({ "query": "x", "kinds": ["dream"] }),
            "unknown variant",
        ),
        (
            "search_conversations",
            json!({ "query": "x", "cursor": "y" }),
            "no cursor",
        ),
        (
            "search_conversations",
            json!({ "query": "x", "branch": "main" }),
            "said twice",
        ),
        (
            "list_conversations",
            json!({ "cursor": "1~a/b" }),
            "no cursor",
        ),
        (
            "check_budget",
            json!({ "conversation": SMALL }),
            "no answer among the last items of this branch names one",
        ),
        (
            "check_budget",
            json!({ "conversation": SMALL, "model": "nobody-knows" }),
            "name a model",
        ),
        (
            "check_budget",
            json!({ "conversation": SMALL, "model": "gpt-4.1", "format": "xml" }),
            "anthropic",
        ),
        (
            "check_budget",
            json!({ "conversation": SMALL, "model": "gpt-4.1", "window": 10 }),
            "What to do",
        ),
        (
            "compact_conversation",
            json!({ "conversation": SMALL, "model": "gpt-4.1", "keep": 101 }),
            "per cent",
        ),
        (
            "compact_conversation",
            json!({ "conversation": SMALL, "model": "gpt-4.1", "summary": " " }),
            "is empty",
        ),
        (
            "create_branch",
            json!({ "conversation": SMALL, "name": "a b" }),
            "branch name",
        ),
        (
            "switch_branch",
            json!({ "conversation": SMALL, "name": "gone" }),
            "list_branches",
        ),
        (
            "restore_checkpoint",
            json!({ "conversation": SMALL, "name": "gone" }),
            "list_branches",
        ),
        (
            "read_link",
            json!({ "link": "context://vfs/x", "conversation": SMALL }),
            "no link",
        ),
    ] {
        let (_, said) = client.refused(tool, arguments).await;
        assert!(said.contains(expected), "{tool}: {said}");
    }
}

#[tokio::test]
async fn absent_may_be_said_with_null() {
    let client = Client::recorded().await;
    let arguments = json!({ "query": "flight", "kinds": null, "limit": null, "cursor": null });
    let result = client
        .call("search_conversations", arguments)
        .await
        .unwrap();
    assert_eq!(result.is_error, Some(false));
}

#[tokio::test]
async fn another_owners_conversation_is_not_there() {
    let client = Client::recorded().await;
    let all = client.peer.list_all_tools().await.unwrap();
    let mut looked = 0;
    for tool in &all {
        let properties = tool.input_schema["properties"].as_object().unwrap();
        if !properties.contains_key("conversation") {
            continue;
        }
        let refused = async |id: &str| {
            let mut arguments = json!({ "conversation": id });
            for required in tool
                .input_schema
                .get("required")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                let value = match required.as_str().unwrap() {
                    "conversation" => continue,
                    "link" => "context://vfs/0123456789abcdef0123456789abcdef",
                    "model" => "gpt-4.1",
                    _ => "word",
                };
                arguments[required.as_str().unwrap()] = value.into();
            }
            let (kind, said) = client.refused(&tool.name, arguments).await;
            assert_eq!(kind, "not_found", "{}: {said}", tool.name);
            said
        };
        let theirs = refused(STRANGE).await;
        let nobodys = refused("nobodys").await;
        assert_eq!(theirs.replace(STRANGE, "nobodys"), nobodys, "{}", tool.name);
        looked += 1;
    }
    assert_eq!(looked, 17);
    let found = client
        .ask("search_conversations", json!({ "query": "eve" }))
        .await;
    assert_eq!(found["hits"], json!([]));
    let listed = client.ask("list_conversations", json!({})).await;
    assert!(!listed.to_string().contains(STRANGE));
}

#[tokio::test]
async fn what_is_no_call_is_an_error_of_the_protocol() {
    let client = Client::recorded().await;
    let unknown = client.call("drop_table", json!({})).await.unwrap_err();
    assert!(unknown.to_string().contains("-32602"), "{unknown}");
    let long = client
        .call(&"x".repeat(5_000), json!({}))
        .await
        .unwrap_err();
    assert!(long.to_string().len() < 300, "{long}");
}

#[tokio::test]
async fn answers_are_bounded_whatever_is_asked_for() {
    let client = Client::recorded().await;
    let huge = u64::MAX;
    for (tool, arguments) in [
        ("list_conversations", json!({ "limit": huge })),
        (
            "search_conversations",
            json!({ "query": "flight", "limit": huge }),
        ),
        (
            "read_conversation",
            json!({ "conversation": AIRLINE, "limit": huge }),
        ),
        (
            "read_conversation",
            json!({ "conversation": AIRLINE, "from": huge, "limit": huge }),
        ),
        (
            "read_conversation",
            json!({ "conversation": AIRLINE, "limit": 0 }),
        ),
        (
            "list_branches",
            json!({ "conversation": AIRLINE, "from": huge }),
        ),
    ] {
        let result = client.call(tool, arguments).await.unwrap();
        assert_eq!(result.is_error, Some(false), "{tool}: {result:?}");
        let answer: Value = result.structured_content.unwrap();
        assert!(answer.to_string().len() < 60_000, "{tool}");
    }
}
