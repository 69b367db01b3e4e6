//! What a call did: by which key arguments it is known, which ids it returned, and whether it succeeded.
//!
//! Not here: whether it changed something (`call_effect`), and how many changes a manifest names (`manifest`).

use contexture_ir::{Fields, FunctionCall, quote_json};
use contexture_text::fact_words::{FactKind, extract_facts};
use contexture_text::{one_line, one_line_title, shorten_line};
use serde_json::value::RawValue;

use crate::extract::errors;
use crate::extract::tool_effects::{ToolEffects, split_identifier};

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Succeeded,
    /// With the first line of what was reported.
    Failed(String),
}

/// Maximum length of what is told of the arguments of a call, in bytes.
const ARGUMENTS: usize = 96;
/// Maximum length of one value among them, in characters.
const VALUE: usize = 40;
/// Maximum length of the reason of a failure, in characters.
const REASON: usize = 80;
/// Maximum length of a command, in bytes.
const COMMAND: usize = 160;
/// Maximum number of ids that are told of an output.
const IDS: usize = 3;
/// Maximum number of values of arguments or of an output that are looked at.
const LOOKED_AT: usize = 256;
/// How deep values are looked for.
const DEPTH: usize = 3;

/// What identifies a call among others of its tool: its command, or the arguments that tell most.
pub(crate) fn key_arguments(call: &FunctionCall, effects: &ToolEffects) -> String {
    if let Some(command) = &effects.command {
        return shorten_line(command, COMMAND);
    }
    let arguments = call.arguments.trim();
    let Ok(fields) = Fields::parse(arguments) else {
        return shorten_line(arguments, ARGUMENTS);
    };
    let mut values = Vec::new();
    collect_scalars(&fields, 0, &mut values);
    // The most telling ones first, as long as they have room; they are written in the order of the call.
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by_key(|at| values.get(*at).map(Scalar::rank));
    let mut left = ARGUMENTS;
    let mut chosen = vec![false; values.len()];
    for at in order {
        let length = values.get(at).map_or(0, |value| value.told().len() + 2);
        if let Some(chosen) = chosen.get_mut(at)
            && length <= left
        {
            left -= length;
            *chosen = true;
        }
    }
    let all = chosen.iter().all(|chosen| *chosen);
    let told = values.iter().zip(chosen).filter(|(_, chosen)| *chosen);
    let mut told: Vec<String> = told.map(|(value, _)| value.told()).collect();
    if !all {
        told.push("…".to_owned());
    }
    told.join(", ")
}

/// A string, a number or a truth value, with its name.
struct Scalar {
    name: String,
    value: String,
    depth: usize,
    is_text: bool,
}

impl Scalar {
    /// Whether its value says by itself what it is.
    fn is_identifier(&self) -> bool {
        self.is_text && is_identifier(&self.value)
    }

    /// The lower, the more it tells.
    fn rank(&self) -> (usize, bool, bool) {
        (self.depth, !self.is_identifier(), !self.is_text)
    }

    fn told(&self) -> String {
        let is_plain = |c: char| !c.is_whitespace() && !"\",()".contains(c);
        let value = one_line_title(&self.value, VALUE);
        let value = match self.is_text && !value.chars().all(is_plain) {
            true => quote_json(&value),
            false => value,
        };
        // A number or a plain word means little without its name.
        match self.is_identifier() || self.name.is_empty() {
            true => value,
            false => format!("{}={value}", one_line(&self.name)),
        }
    }
}

/// Whether a value is one word with digits, or an address.
fn is_identifier(value: &str) -> bool {
    let has_letters = value.chars().any(char::is_alphabetic);
    let has_digits = value.bytes().any(|byte| byte.is_ascii_digit());
    value.len() <= 64
        && !value.contains(char::is_whitespace)
        && (value.contains('@') || has_letters && has_digits)
}

fn collect_scalars(fields: &Fields<'_>, depth: usize, values: &mut Vec<Scalar>) {
    for (name, value) in fields.iter() {
        collect_scalar(name, value, depth, values);
    }
}

fn collect_scalar(name: &str, value: &RawValue, depth: usize, values: &mut Vec<Scalar>) {
    // Outside input may hold millions of values: the first ones are enough.
    if values.len() >= LOOKED_AT {
        return;
    }
    let json = value.get();
    let scalar = |value: String, is_text| Scalar {
        name: name.to_owned(),
        value,
        depth,
        is_text,
    };
    match json.as_bytes().first() {
        Some(b'"') => {
            let text: String = serde_json::from_str(json).unwrap_or_default();
            if !text.trim().is_empty() {
                values.push(scalar(text, true));
            }
        }
        Some(b'-' | b'0'..=b'9' | b't' | b'f') => values.push(scalar(json.to_owned(), false)),
        Some(b'{') if depth < DEPTH => {
            if let Ok(fields) = Fields::parse(json) {
                collect_scalars(&fields, depth + 1, values);
            }
        }
        Some(b'[') if depth < DEPTH => {
            let list: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
            for value in list {
                collect_scalar(name, value, depth + 1, values);
            }
        }
        _ => {}
    }
}

/// Returns the ids that an output names and its call did not.
pub(crate) fn returned_ids(call: &FunctionCall, output: &str) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    let mut offer = |id: &str| {
        let id = one_line(id);
        let is_new = !call.arguments.contains(id.as_str()) && !ids.contains(&id);
        if is_new && !id.is_empty() && ids.len() < IDS {
            ids.push(id);
        }
    };
    let output = output.trim();
    if let Ok(fields) = Fields::parse(output) {
        let mut values = Vec::new();
        collect_scalars(&fields, 0, &mut values);
        values.sort_by_key(|value| value.depth);
        for value in values.iter().filter(|value| value.depth < 2) {
            let is_word = value.value.len() <= 64 && !value.value.contains(char::is_whitespace);
            if is_word && is_id_name(&value.name) {
                offer(&value.value);
            }
        }
    } else {
        // Only the beginning: a long text is about something else than what was made.
        for (kind, word) in extract_facts(&shorten_line(output, 200)) {
            if matches!(kind, FactKind::Identifier | FactKind::Url) {
                offer(word);
            }
        }
    }
    ids
}

/// Whether a member is named like an id.
fn is_id_name(name: &str) -> bool {
    let words = split_identifier(name);
    let last = words.last().map(String::as_str);
    let names = [
        "id",
        "uuid",
        "number",
        "no",
        "reference",
        "ref",
        "code",
        "key",
        "url",
        "link",
        "sha",
        "hash",
        "ticket",
        "version",
        "confirmation",
    ];
    last.is_some_and(|last| names.contains(&last))
}

/// Decides whether a call succeeded, by what its output reports.
pub(crate) fn outcome_of(is_error: bool, text: &str, is_command: bool) -> Outcome {
    let text = text.trim();
    if is_command && let Some(code) = errors::exit_code(text) {
        return match code {
            0 => Outcome::Succeeded,
            code => Outcome::Failed(format!("exit {code}")),
        };
    }
    let reason = reported_failure(text);
    match reason {
        Some(reason) => Outcome::Failed(reason),
        None if is_error => Outcome::Failed(one_line_title(text, REASON)),
        None => Outcome::Succeeded,
    }
}

/// Returns the reason of a failure that an output reports in its members, or with its first word.
fn reported_failure(text: &str) -> Option<String> {
    const BEGINNINGS: [&str; 12] = [
        "error",
        "failed",
        "failure",
        "exception",
        "traceback",
        "fatal",
        "invalid",
        "cannot ",
        "could not ",
        "unable to ",
        "permission denied",
        "access denied",
    ];
    let Ok(fields) = Fields::parse(text) else {
        // A tool may return its sentence as JSON.
        let said: Option<String> = serde_json::from_str(text).ok();
        let text = said.as_deref().unwrap_or(text);
        let beginning: String = text.chars().take(24).collect();
        let beginning = beginning.to_lowercase();
        let is_failure = BEGINNINGS.iter().any(|word| beginning.starts_with(word));
        return (is_failure || refuses(text)).then(|| one_line_title(text, REASON));
    };
    let raw = |name: &str| fields.get(&[name]).map(RawValue::get);
    let word = |name: &str| raw(name).map(|value| value.trim_matches('"').to_lowercase());
    let is_empty = |value: &str| {
        matches!(
            value,
            "null" | "false" | "\"\"" | "[]" | "{}" | "0" | "\"none\""
        )
    };
    let error = raw("error")
        .or_else(|| raw("errors"))
        .filter(|value| !is_empty(value));
    let denies = |name: &str| word(name).as_deref() == Some("false");
    let status = word("status");
    let failed = [
        "error",
        "failed",
        "failure",
        "denied",
        "rejected",
        "declined",
        "not_found",
    ];
    // Codes of HTTP.
    let has_code = ["status", "code", "statusCode", "status_code"]
        .iter()
        .filter_map(|name| word(name)?.parse::<u16>().ok())
        .any(|code| (400..600).contains(&code));
    let is_failure = error.is_some()
        || has_code
        || denies("success")
        || denies("ok")
        || ["isError", "is_error"]
            .iter()
            .any(|name| word(name).as_deref() == Some("true"))
        || status.is_some_and(|status| failed.contains(&status.as_str()));
    let reason = || {
        let message = ["message", "detail", "reason"]
            .iter()
            .find_map(|name| raw(name));
        let reason = error
            .filter(|error| error.starts_with('"'))
            .or(message)
            .or(error);
        let reason = reason.unwrap_or(text);
        let plain: Option<String> = serde_json::from_str(reason).ok();
        one_line_title(plain.as_deref().unwrap_or(reason), REASON)
    };
    is_failure.then(reason)
}

/// Whether the first clause of a text says that nothing came of the call: "Reservation not found", "Booking rejected: …".
fn refuses(text: &str) -> bool {
    /// Longest clause that says no more than that, in bytes.
    const CLAUSE: usize = 80;
    const REFUSALS: [&str; 16] = [
        "not found",
        "rejected",
        "declined",
        "denied",
        "refused",
        "failed",
        "not allowed",
        "not permitted",
        "not available",
        "unavailable",
        "does not exist",
        "doesn't exist",
        "forbidden",
        "unauthorized",
        "timed out",
        "no such",
    ];
    const SUCCESSES: [&str; 10] = [
        "0 ",
        "no error",
        "none",
        "success",
        "booked",
        "created",
        "updated",
        "confirmed",
        "sent",
        "done",
    ];
    let clause = text
        .split(['.', ':', ';', ',', '!', '\n'])
        .next()
        .unwrap_or_default();
    let clause = clause.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|words| clause.contains(words));
    clause.len() <= CLAUSE && says(&REFUSALS) && !says(&SUCCESSES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &str) -> FunctionCall {
        FunctionCall::new("c", name, arguments)
    }

    #[test]
    fn a_call_is_told_by_its_key_arguments() {
        let check = |name: &str, arguments: &str, expected: &str| {
            let call = call(name, arguments);
            assert_eq!(key_arguments(&call, &ToolEffects::of_call(&call)), expected);
        };
        check(
            "book",
            r#"{"user_id":"user_3","flight":"HAT103"}"#,
            "user_3, HAT103",
        );
        check(
            "pay",
            r#"{"amount":250.50,"now":true,"to":"Ada Lovelace","mail":"ada@example.com","note":null}"#,
            r#"amount=250.50, now=true, to="Ada Lovelace", ada@example.com"#,
        );
        check(
            "Bash",
            r#"{"command":"git push\n  origin"}"#,
            "git push origin",
        );
        check("free", "some text", "some text");
        check("none", "{}", "");
        let long = format!(
            r#"{{"text":"{}","id":"A1","more":[{{"id":"B2"}}]}}"#,
            "word ".repeat(99)
        );
        check(
            "long",
            &long,
            r#"text="word word word word word word word word …", A1, B2"#,
        );
    }

    #[test]
    fn outcome_and_ids_are_read_from_the_output() {
        let check = |text: &str, failed: Option<&str>, ids: &[&str]| {
            let expected = failed.map_or(Outcome::Succeeded, |why| Outcome::Failed(why.to_owned()));
            assert_eq!(outcome_of(false, text, false), expected, "{text}");
            let call = call("book", r#"{"user_id":"user_3"}"#);
            assert_eq!(returned_ids(&call, text), ids, "{text}");
        };
        check(
            r#"{"reservation_id":"HATHAT","user_id":"user_3","street":"1 Main"}"#,
            None,
            &["HATHAT"],
        );
        check(
            "Error: not enough seats",
            Some("Error: not enough seats"),
            &[],
        );
        check(
            r#"{"error":{"message":"no"}}"#,
            Some(r#"{"message":"no"}"#),
            &[],
        );
        check(
            r#"{"success":false,"message":"too late"}"#,
            Some("too late"),
            &[],
        );
        check(
            r#"{"error":null,"status":"confirmed","id":7}"#,
            None,
            &["7"],
        );
        check("Created issue PROJ-12.", None, &["PROJ-12"]);
        check(
            r#"{"status":404,"message":"no such flight"}"#,
            Some("no such flight"),
            &[],
        );
        for refusal in [
            "Reservation not found",
            "Booking rejected: the flight is full",
            "Payment declined.",
        ] {
            check(refusal, Some(refusal), &[]);
        }
        check(
            r#""Reservation not found""#,
            Some("Reservation not found"),
            &[],
        );
        check(r#"{"status":200,"code":"A1"}"#, None, &["A1"]);
        for success in [
            "Booked. A seat map was not found.",
            "Booked, though the meal was declined",
            "3 mails sent and 0 failed",
        ] {
            check(success, None, &[]);
        }
        check("", None, &[]);
        assert_eq!(
            outcome_of(false, "Exit code 2", true),
            Outcome::Failed("exit 2".to_owned())
        );
    }

    #[test]
    fn hostile_calls_are_survived() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(50_000), "]".repeat(50_000));
        let wide = format!("{{\"a\":[{}1]}}", "1,".repeat(50_000));
        for arguments in ["", "{", "null", "[1]", &deep, &wide] {
            let call = call("x", arguments);
            key_arguments(&call, &ToolEffects::of_call(&call));
            returned_ids(&call, arguments);
            reported_failure(arguments);
        }
    }
}
