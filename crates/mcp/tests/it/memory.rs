//! Notes: whose they are, what they say, how they change.

use contexture_mcp::Access;
use serde_json::{Value, json};

use crate::support::{AIRLINE, Client, ada, empty, recorded, text};

fn keys(notes: &Value) -> Vec<&str> {
    let notes = notes["notes"].as_array().unwrap().iter();
    notes.map(|note| text(note, "key")).collect()
}

#[tokio::test]
async fn a_note_is_made_read_changed_and_deleted() {
    let client = Client::recorded().await;
    assert_eq!(keys(&client.ask("read_memory", json!({})).await), [""; 0]);
    let note = json!({ "key": "tone", "value": "brief", "importance": 7, "expires_in": 60 });
    let made = client.ask("create_memory", note.clone()).await;
    assert_eq!(made, json!({ "key": "tone", "done": "created" }));
    let (kind, said) = client.refused("create_memory", note).await;
    assert_eq!(kind, "already_exists");
    assert!(said.contains("update_memory"), "{said}");
    let change = json!({ "key": "tone", "value": "very brief", "expires_in": 0 });
    let changed = client.ask("update_memory", change.clone()).await;
    assert_eq!(text(&changed, "done"), "updated");
    assert_eq!(
        text(&client.ask("update_memory", change).await, "done"),
        "unchanged"
    );
    let notes = client.ask("read_memory", json!({ "key": "tone" })).await;
    let note = &notes["notes"][0];
    assert_eq!(
        (text(note, "value"), &note["importance"]),
        ("very brief", &json!(7))
    );
    assert!(note["expires"].is_null());
    let gone = client.ask("delete_memory", json!({ "key": "tone" })).await;
    assert_eq!(text(&gone, "done"), "deleted");
    for (tool, arguments) in [
        ("delete_memory", json!({ "key": "tone" })),
        ("update_memory", json!({ "key": "tone", "value": "x" })),
        ("read_memory", json!({ "key": "tone" })),
    ] {
        assert_eq!(
            client.refused(tool, arguments).await.0,
            "not_found",
            "{tool}"
        );
    }
}

#[tokio::test]
async fn notes_belong_to_the_owner_or_to_a_resource() {
    let engine = recorded().await;
    let client = Client::of(&engine, Access::Write).await;
    client
        .ask("create_memory", json!({ "key": "mine", "value": "1" }))
        .await;
    let about = json!({ "key": "seat", "value": "aisle", "resource": "mia" });
    client.ask("create_memory", about).await;
    assert_eq!(keys(&client.ask("read_memory", json!({})).await), ["mine"]);
    for by in [
        json!({ "resource": "mia" }),
        json!({ "conversation": AIRLINE }),
    ] {
        assert_eq!(keys(&client.ask("read_memory", by).await), ["seat"]);
    }
    let eve = contexture::Owner::new("acme/eve").unwrap();
    let eve = Client::of_owner(&engine, eve, Access::Write).await;
    assert_eq!(keys(&eve.ask("read_memory", json!({})).await), [""; 0]);
    for by in [
        json!({ "resource": "mia" }),
        json!({ "conversation": AIRLINE }),
    ] {
        assert_eq!(eve.refused("read_memory", by).await.0, "not_found");
    }
}

#[tokio::test]
async fn the_first_note_needs_no_conversation() {
    let engine = empty();
    let client = Client::of(&engine, Access::Write).await;
    assert_eq!(keys(&client.ask("read_memory", json!({})).await), [""; 0]);
    assert_eq!(
        client
            .refused("delete_memory", json!({ "key": "a" }))
            .await
            .0,
        "not_found"
    );
    assert_eq!(
        engine
            .list_conversations(&ada(), Default::default())
            .await
            .unwrap()
            .conversations
            .len(),
        0
    );
    client
        .ask("create_memory", json!({ "key": "a", "value": "b" }))
        .await;
    assert_eq!(keys(&client.ask("read_memory", json!({})).await), ["a"]);
}

#[tokio::test]
async fn limits_of_notes_are_told() {
    let client = Client::recorded().await;
    for (arguments, expected) in [
        (json!({ "key": "", "value": "x" }), "the key is empty"),
        (
            json!({ "key": "k".repeat(200), "value": "x" }),
            "the key has 200 bytes, the limit is 128",
        ),
        (
            json!({ "key": "k", "value": "x".repeat(9_000) }),
            "the value has 9000 bytes",
        ),
        (
            json!({ "key": "k", "value": "x", "importance": 101 }),
            "expected 0 to 100",
        ),
        (
            json!({ "key": "k", "value": "x", "resource": "a", "conversation": "b" }),
            "give one of them",
        ),
    ] {
        let (_, said) = client.refused("create_memory", arguments).await;
        assert!(said.contains(expected), "{said}");
    }
    for key in 0..40 {
        let note = json!({ "key": format!("k{key:02}"), "value": "v".repeat(2_000) });
        client.ask("create_memory", note).await;
    }
    let all = client.ask("read_memory", json!({})).await;
    assert_eq!(keys(&all).len(), 40);
    assert_eq!(all["notes"][3]["characters"], json!(2_000));
    assert!(all.to_string().len() < 40_000);
    let one = client.ask("read_memory", json!({ "key": "k03" })).await;
    assert_eq!(text(&one["notes"][0], "value").len(), 2_000);
}
