//! Tools that change something: branches, checkpoints, compaction.

use serde_json::{Value, json};

use crate::support::{AIRLINE, CODING, Client, text};

async fn names(client: &Client, id: &str) -> (Vec<String>, Option<String>, Vec<String>) {
    let refs = client
        .ask("list_branches", json!({ "conversation": id }))
        .await;
    let name = |one: &Value| text(one, "name").to_owned();
    let branches = refs["branches"].as_array().unwrap();
    let active = branches
        .iter()
        .find(|branch| branch["active"] == json!(true));
    let checkpoints = refs["checkpoints"].as_array().unwrap();
    (
        branches.iter().map(name).collect(),
        active.map(name),
        checkpoints.iter().map(name).collect(),
    )
}

#[tokio::test]
async fn a_checkpoint_is_gone_back_to_on_a_new_branch() {
    let client = Client::recorded().await;
    let set = json!({ "conversation": AIRLINE, "name": "before" });
    let set = client.ask("create_checkpoint", set).await;
    let (branches, active, checkpoints) = names(&client, AIRLINE).await;
    assert_eq!(checkpoints, ["before"]);
    let back = json!({ "conversation": AIRLINE, "name": "before" });
    let back = client.ask("restore_checkpoint", back).await;
    assert_eq!(
        (&back["head"], &back["active"]),
        (&set["item"], &json!(true))
    );
    let (after, now, _) = names(&client, AIRLINE).await;
    assert_eq!(after.len(), branches.len() + 1);
    assert_eq!(now.as_deref(), Some(text(&back, "name")));
    assert_ne!(now, active);
}

#[tokio::test]
async fn a_branch_parts_where_it_is_told_to() {
    let client = Client::recorded().await;
    let fifth = json!({ "conversation": AIRLINE, "from": 5, "limit": 1 });
    let fifth = client.ask("read_conversation", fifth).await;
    let fifth = text(&fifth["items"][0], "id").to_owned();
    let (_, active, _) = names(&client, AIRLINE).await;
    let made = json!({ "conversation": AIRLINE, "name": "other-way", "at": fifth });
    let made = client.ask("create_branch", made).await;
    assert_eq!((&made["head"], &made["items"]), (&json!(fifth), &json!(5)));
    assert_eq!(made["active"], json!(false));
    assert_eq!(names(&client, AIRLINE).await.1, active);
    let end = json!({ "conversation": AIRLINE, "name": "aside" });
    assert_ne!(client.ask("create_branch", end).await["head"], made["head"]);
    let switched = json!({ "conversation": AIRLINE, "name": "other-way" });
    let switched = client.ask("switch_branch", switched).await;
    assert_eq!(switched["active"], json!(true));
    let read = client
        .ask("read_conversation", json!({ "conversation": AIRLINE }))
        .await;
    assert_eq!(
        (&read["total"], text(&read, "branch")),
        (&json!(5), "other-way")
    );
    let taken = json!({ "conversation": AIRLINE, "name": "aside" });
    let (kind, said) = client.refused("create_branch", taken).await;
    assert_eq!(kind, "already_exists");
    assert!(said.contains("choose another name"), "{said}");
}

#[tokio::test]
async fn compaction_makes_room_and_loses_nothing() {
    let client = Client::recorded().await;
    let budget =
        json!({ "conversation": CODING, "model": "gpt-4.1", "window": 12_000, "reserve": 1_000 });
    let before = client.ask("check_budget", budget.clone()).await;
    let first = json!({ "conversation": CODING, "from": 1, "limit": 1 });
    let first = client.ask("read_conversation", first).await;
    let dry =
        json!({ "conversation": CODING, "model": "gpt-4.1", "window": 12_000, "dry_run": true });
    let dry = client.ask("compact_conversation", dry).await;
    assert!(dry["compaction"].is_null());
    assert_eq!(client.ask("check_budget", budget.clone()).await, before);
    let summary = "The fix rounds the serialised time delta.";
    let done =
        json!({ "conversation": CODING, "model": "gpt-4.1", "window": 12_000, "summary": summary });
    let done = client.ask("compact_conversation", done).await;
    assert!(text(&done, "summary").starts_with(summary), "{done}");
    assert!(done["summary_tokens"].as_u64() < done["tokens"].as_u64());
    let after = client.ask("check_budget", budget).await;
    assert!(after["items"].as_u64() > before["items"].as_u64());
    let still = json!({ "conversation": CODING, "from": 1, "limit": 1 });
    let still = client.ask("read_conversation", still).await;
    assert_eq!(still["items"], first["items"]);
}
