//! Every user message of the recorded sessions and requests. Whoever changes the phrases reads what is found.

use std::collections::BTreeSet;

use contexture_condense::find_statements;
use contexture_ir::{Item, Message, Origin, Role};
use contexture_testdata as data;
use serde_json::Value;

/// Adds the texts of a user message's content.
fn add_texts(content: &Value, out: &mut Vec<String>) {
    match content {
        Value::String(text) => out.push(text.clone()),
        Value::Array(parts) => {
            out.extend(
                parts
                    .iter()
                    .filter_map(|part| part["text"].as_str())
                    .map(str::to_owned),
            );
        }
        _ => {}
    }
}

fn is_user(message: &&Value) -> bool {
    message["role"] == "user"
}

/// The texts of all user messages.
fn user_texts() -> Vec<String> {
    let mut out = Vec::new();
    for (_, history) in data::chat_histories() {
        let messages = history.as_array().into_iter().flatten();
        for message in messages.filter(is_user) {
            add_texts(&message["content"], &mut out);
        }
    }
    for name in data::list_files("claude-code")
        .iter()
        .filter(|name| name.ends_with(".jsonl"))
    {
        for line in data::read_text(&format!("claude-code/{name}")).lines() {
            let line: Value = serde_json::from_str(line).unwrap_or_default();
            add_texts(&line["message"]["content"], &mut out);
        }
    }
    out
}

#[test]
fn recorded_users_state_these_rules() {
    let texts = user_texts();
    assert!(texts.len() > 1_400, "{}", texts.len());
    let mut found = BTreeSet::new();
    for text in &texts {
        let item = Item::from(Message::text(Role::User, text.as_str()));
        let statements = find_statements(Origin::User, &item).into_iter();
        found.extend(statements.map(|one| one.text));
    }
    // Preferences and facts about the person, each of which holds beyond its turn; read one by one.
    let expected: BTreeSet<String> = include_str!("../fixtures/recorded_rules.txt")
        .lines()
        .map(str::to_owned)
        .collect();
    let new: Vec<&String> = found.difference(&expected).collect();
    let gone: Vec<&String> = expected.difference(&found).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "new: {new:#?}\ngone: {gone:#?}"
    );
}
