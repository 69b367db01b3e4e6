//! Standing rules: what the user asked to hold, dropped and put into force again.

use contexture::{Target, assistant_text, user};
use contexture_mcp::Access;
use serde_json::{Value, json};

use crate::support::{Client, SMALL, ada, empty, eve, small, text};

fn texts(rules: &Value) -> Vec<&str> {
    let rules = rules["rules"].as_array().unwrap().iter();
    let in_force = rules.filter(|rule| rule["dropped"] == false);
    in_force.map(|rule| text(rule, "text")).collect()
}

#[tokio::test]
async fn a_rule_is_listed_dropped_and_restored() {
    let engine = empty();
    small(&engine, &ada(), SMALL, "the quick brown fox").await;
    let chat = engine.conversation(SMALL).owner(ada().as_str());
    let chat = chat.open().await.unwrap();
    chat.save([user("Always answer in French.".to_owned())])
        .await
        .unwrap();
    // Out of view in a small window, so that only the quotation can show it.
    for turn in 0..20 {
        let text = format!("Go on with step {turn}. {}", "Take your time. ".repeat(40));
        chat.save([assistant_text("Done."), user(text)])
            .await
            .unwrap();
    }
    let target = Target::openai_chat("gpt-4o").window(2_000).reserve(300);
    let is_quoted = async || {
        let call = chat.compile(&target).await.unwrap();
        call.payload.to_json().contains("Always answer in French.")
    };
    let client = Client::of(&engine, Access::Write).await;
    let here = json!({ "conversation": SMALL });
    let listed = client.ask("list_rules", here.clone()).await;
    assert_eq!(texts(&listed), ["Always answer in French."]);
    assert!(is_quoted().await);
    let id = text(&listed["rules"][0], "id").to_owned();
    let rule = json!({ "conversation": SMALL, "rule": id });
    for (tool, changed, left) in [
        ("drop_rule", true, 0),
        ("drop_rule", false, 0),
        ("restore_rule", true, 1),
        ("restore_rule", false, 1),
    ] {
        let answer = client.ask(tool, rule.clone()).await;
        assert_eq!(answer, json!({ "changed": changed }), "{tool}");
        let listed = client.ask("list_rules", here.clone()).await;
        assert_eq!(texts(&listed).len(), left, "{tool}");
        assert_eq!(is_quoted().await, left == 1, "{tool}");
    }
    let unknown = json!({ "conversation": SMALL, "rule": "nothing" });
    assert_eq!(client.refused("drop_rule", unknown).await.0, "not_found");
    // Another owner's rules are not there.
    let stranger = Client::of_owner(&engine, eve(), Access::Write).await;
    for (tool, arguments) in [("list_rules", here), ("drop_rule", rule)] {
        assert_eq!(
            stranger.refused(tool, arguments).await.0,
            "not_found",
            "{tool}"
        );
    }
}
