//! A conversation's tree, a page at a time.

use serde_json::{Value, json};

use crate::messages::talk;
use crate::test_support::Stand;

#[tokio::test]
async fn a_tree_is_shown_page_by_page() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["one", "two", "three"]).await;
    let first = stand.get(&format!("{path}/items")).await.ok()["items"][0]["id"].clone();
    stand
        .post(&format!("{path}/rewind"), &json!({"node": first}))
        .await
        .ok();
    let said = crate::messages::said("other");
    stand.post(&format!("{path}/messages"), &said).await.ok();
    let whole = stand.get(&format!("{path}/log")).await.ok();
    let texts = |log: &Value| -> Vec<String> {
        let entries = log["entries"].as_array().unwrap().iter();
        entries
            .map(|entry| entry["text"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(texts(&whole).len(), 4);
    assert_eq!(texts(&whole).last().unwrap(), "one");
    let active = &whole["entries"][0];
    assert_eq!(
        (&active["text"], &active["active"]),
        (&json!("other"), &json!(true))
    );
    assert_eq!(active["parent"], first);
    assert_eq!(whole["branches"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&whole["hidden"], &whole["next"]),
        (&json!(0), &Value::Null)
    );

    let (mut seen, mut after) = (Vec::new(), String::new());
    for left in (0..4).rev() {
        let page = stand.get(&format!("{path}/log?limit=1{after}")).await.ok();
        assert_eq!(page["hidden"], left);
        seen.extend(texts(&page));
        after = format!("&after={}", page["next"].as_str().unwrap_or_default());
    }
    assert_eq!((seen, after.as_str()), (texts(&whole), "&after="));
    stand
        .get(&format!("{path}/log?after=x"))
        .await
        .refused(400, "bad_cursor");
}

#[tokio::test]
async fn state_is_listed_only_on_request() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["one", "two"]).await;
    let items = stand.get(&format!("{path}/items")).await.ok();
    let first = items["items"][0]["id"].as_str().unwrap();
    let chat = stand
        .engine
        .conversation("a")
        .open_existing()
        .await
        .unwrap();
    chat.pin(first.parse().unwrap()).await.unwrap();
    let log = stand.get(&format!("{path}/log")).await.ok();
    let entries = log["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "{log}");
    assert_eq!(
        (&entries[0]["text"], &entries[0]["active"]),
        (&json!("two"), &json!(true))
    );
    assert_eq!(
        (&entries[0]["pinned"], &entries[1]["pinned"]),
        (&json!(false), &json!(true))
    );
    let all = stand.get(&format!("{path}/log?state=true")).await.ok();
    assert_eq!(all["entries"].as_array().unwrap().len(), 3, "{all}");
    assert_eq!(all["entries"][0]["role"], "other");
}
