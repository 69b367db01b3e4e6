//! Standing rules: what the user asked to hold, once its message is out of view.

use serde_json::{Value, json};

use crate::command::Place;

/// The options of a window that has no room for the message with the rule.
const SMALL: &str = "--to openai-chat --model gpt-4o --window 2000 --reserve 300";

fn place() -> Place {
    let place = Place::new();
    let mut messages = vec![
        json!({"role": "user", "content": "Help me with the release of the shop."}),
        json!({"role": "assistant", "content": "Gladly."}),
        json!({"role": "user", "content": "Never push to main without asking me. Where do we begin?"}),
    ];
    for step in 0..60 {
        messages.push(json!({"role": "assistant", "content": format!("Step {step} is done. {}", "It took its time. ".repeat(8))}));
        messages.push(json!({"role": "user", "content": format!("Go on with step {}.", step + 1)}));
    }
    let chat = json!({"model": "gpt-4o", "messages": messages});
    place.write("chat.json", chat.to_string());
    place.ok("import chat.json --conversation shop");
    place
}

fn rules(place: &Place) -> Vec<Value> {
    place.json("rules shop --json")["rules"]
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn a_rule_is_quoted_until_it_is_dropped() {
    let place = place();
    let is_quoted = || {
        let payload = place.ok(&format!("compile shop {SMALL}"));
        payload.contains("turn 2: Never push to main without asking me.")
    };
    assert!(is_quoted());
    let listed = rules(&place);
    assert_eq!(listed.len(), 1, "{listed:?}");
    let rule = listed[0]["id"].as_str().unwrap();
    assert_eq!(
        (
            &listed[0]["text"],
            &listed[0]["turn"],
            &listed[0]["dropped"]
        ),
        (
            &json!("Never push to main without asking me."),
            &json!(2),
            &json!(false)
        )
    );
    assert!(place.ok("rules shop").contains("Never push to main"));

    place.ok(&format!("rules shop --drop {rule}"));
    assert!(!is_quoted());
    assert_eq!(rules(&place)[0]["dropped"], json!(true));
    place.ok(&format!("rules shop --restore {rule}"));
    assert!(is_quoted());
}

#[test]
fn an_unknown_rule_is_named_with_what_to_do() {
    let place = place();
    let run = place.run("rules shop --drop 01.02");
    assert_eq!(run.code, 3, "{}", run.err);
    assert!(run.err.contains("01.02"), "{}", run.err);
}

#[test]
fn a_policy_switches_rules_off() {
    let place = place();
    place.write("policy.toml", "rules = false\n");
    let payload = place.ok(&format!("compile shop {SMALL} --policy policy.toml"));
    assert!(!payload.contains("standing_rules"));
}
