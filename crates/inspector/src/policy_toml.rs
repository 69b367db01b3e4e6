//! A policy as a table of the server's configuration.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Writes a policy as `[policies.NAME]`, a member a line. Only `null` is left out, which TOML does not have: `rules = false` and
/// `redact = {}` say something.
pub(crate) fn write_policy(name: &str, settings: &Map<String, Value>) -> String {
    let mut out = format!("[policies.{}]\n", key(name));
    for (member, value) in settings {
        if !value.is_null() {
            let _ = writeln!(out, "{} = {}", key(member), inline_value(value));
        }
    }
    out
}

fn inline_value(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(inline_value).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Object(members) => {
            // TOML has no null: what is not there has its default.
            let members = members.iter().filter(|(_, value)| !value.is_null());
            let members: Vec<String> = members
                .map(|(name, value)| format!("{} = {}", key(name), inline_value(value)))
                .collect();
            match members.is_empty() {
                true => "{}".to_owned(),
                false => format!("{{ {} }}", members.join(", ")),
            }
        }
        // Numbers and truth values are written alike in both.
        other => other.to_string(),
    }
}

fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// A text in quotes. JSON escapes all that TOML does but one character.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_is_a_table_of_the_configuration() {
        let settings = json!({
            "clear": {"keep_recent": 3, "keep_tools": ["a\"b"], "always": true, "x": null},
            "limit_tokens": 32_000, "redact": {"kinds": null}, "rules": false, "window": null,
            "state": {"odd key": "\u{7f}\n"},
        });
        let written = write_policy("a b", settings.as_object().unwrap());
        assert_eq!(
            written,
            "[policies.\"a b\"]\n\
             clear = { keep_recent = 3, keep_tools = [\"a\\\"b\"], always = true }\n\
             limit_tokens = 32000\n\
             redact = {}\n\
             rules = false\n\
             state = { \"odd key\" = \"\\u007F\\n\" }\n"
        );
    }
}
