//! Detects the format of a log from its content; the file name only breaks ties.

use contexture_ir::Fields;
use contexture_wire::{Evidence, Format};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::error::SessionError;
use crate::format::SessionFormat;
use crate::json::{excerpt, text_of};

/// A detected format, and the evidence for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// Format that the log seems to have.
    pub format: SessionFormat,
    /// Evidence for the format, as a phrase: "an array of objects with `traj`".
    pub evidence: String,
}

/// Number of lines of a log, or of elements of an array, that are looked at.
const MAX_SAMPLED_RECORDS: usize = 50;

/// Detects the format of a log.
///
/// # Errors
/// [`SessionError::NotJson`] if neither the text nor one of its first lines is JSON, [`SessionError::Unknown`] if
/// nothing in it indicates a format.
pub fn detect_format(text: &str, file_name: &str) -> Result<Detected, SessionError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // The whole text is checked first: a pretty-printed document has many lines, none of which is a record.
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) if text.trim_start().starts_with('[') => detect_array(text),
        Ok(_) => detect_object(text, file_name),
        // If no line is a record either, the error of the whole text is reported: it has the position that a person
        // looks for.
        Err(source) => detect_lines(text, file_name)?.ok_or_else(|| SessionError::NotJson {
            line: source.line(),
            column: source.column(),
            source,
        }),
    }
}

fn detected_as(format: SessionFormat, evidence: &str) -> Detected {
    Detected {
        format,
        evidence: evidence.to_owned(),
    }
}

/// A document in a wire format, if there is evidence for one.
fn detected_wire(found: Option<(Format, Evidence)>) -> Option<Detected> {
    found.map(|(format, evidence)| detected_as(SessionFormat::Wire(format), evidence.text))
}

/// Detects the format of a text with one record per line; `None` if none of its first lines is a JSON object.
fn detect_lines(text: &str, file_name: &str) -> Result<Option<Detected>, SessionError> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let several = lines.clone().nth(1).is_some();
    // Bounded, because a log may begin with megabytes of records that we do not know.
    let lines = lines.take(MAX_SAMPLED_RECORDS);
    // A broken line proves nothing: logs are cut off while they are written.
    let (lines, records): (Vec<&str>, Vec<Fields<'_>>) = lines
        .filter_map(|line| Some((line, Fields::parse(line).ok()?)))
        .unzip();
    if let Some(detected) = detect_records(&records) {
        return Ok(Some(detected));
    }
    match lines.first() {
        // Rollouts of the oldest versions have neither envelopes nor links; then their name must agree.
        Some(_) if file_name.starts_with("rollout-") && records.iter().any(is_old_rollout) => {
            let evidence = "a file named `rollout-…` of JSON lines";
            Ok(Some(detected_as(SessionFormat::Codex, evidence)))
        }
        Some(line) if several => Err(SessionError::Unknown {
            found: format!("JSON lines such as {}", excerpt(line)),
        }),
        _ => Ok(None),
    }
}

/// Whether a line may be one of a rollout without envelopes: its head, its state or an item.
fn is_old_rollout(fields: &Fields<'_>) -> bool {
    let has = |name: &str| fields.get(&[name]).is_some();
    let kind = text_of(fields, "type").unwrap_or_default();
    has("record_type")
        || (has("id") && has("timestamp"))
        || matches!(kind.as_str(), "message" | "function_call")
}

/// Detects the format of a log by some of its records: the first evidence counts, unless another record contradicts it.
fn detect_records(records: &[Fields<'_>]) -> Option<Detected> {
    let detected = records.iter().find_map(detect_record)?;
    // Forks of Gemini's command line link their records as Claude Code does.
    let is_gemini = |message: Fields<'_>| {
        message.get(&["parts"]).is_some() && message.get(&["content"]).is_none()
    };
    let is_foreign = detected.format == SessionFormat::ClaudeCode
        && records
            .iter()
            .any(|fields| message_of(fields).is_some_and(is_gemini));
    (!is_foreign).then_some(detected)
}

/// The members of the message that a record holds.
fn message_of<'a>(fields: &Fields<'a>) -> Option<Fields<'a>> {
    Fields::parse(fields.get(&["message"])?.get()).ok()
}

/// Detects the format of a log by one of its lines.
fn detect_record(fields: &Fields<'_>) -> Option<Detected> {
    let has = |name: &str| fields.get(&[name]).is_some();
    let kind = text_of(fields, "type")?;
    // `payload` is required too, because nearly every format with one record per line has a `type`.
    if has("payload") {
        let known = [
            "session_meta",
            "response_item",
            "event_msg",
            "turn_context",
            "compacted",
        ];
        if known.contains(&kind.as_str()) {
            let evidence = format!("a line of type `{kind}` with a `payload`");
            return Some(detected_as(SessionFormat::Codex, &evidence));
        }
    }
    // Older versions write only some of these fields. Other programs have a `sessionId` too, so it counts only beside a
    // message of Anthropic's.
    let says = || message_of(fields).is_some_and(|message| message.get(&["content"]).is_some());
    let is_linked = has("parentUuid") || has("leafUuid");
    if is_linked || (has("uuid") && has("message")) || (has("sessionId") && says()) {
        let evidence = format!("a line of type `{kind}` with `uuid`, `sessionId` or `leafUuid`");
        return Some(detected_as(SessionFormat::ClaudeCode, &evidence));
    }
    None
}

fn detect_object(text: &str, file_name: &str) -> Result<Detected, SessionError> {
    let unknown = |found: String| SessionError::Unknown { found };
    let Ok(fields) = Fields::parse(text) else {
        return Err(unknown(format!("the JSON value {}", excerpt(text))));
    };
    let has = |name: &str| fields.get(&[name]).is_some();
    // Members that are unique to one format are checked first; those that several formats share follow below.
    if has("traj") {
        return Ok(detected_as(
            SessionFormat::TauBench,
            "an object with `traj`",
        ));
    }
    // Other documents have a `history` beside `messages`; then the file extension must agree.
    if has("history") && (!has("messages") || file_name.ends_with(".traj")) {
        return Ok(detected_as(
            SessionFormat::SweAgent,
            "an object with `history`",
        ));
    }
    if has("steps") && text_of(&fields, "schema_version").is_some_and(|it| it.starts_with("ATIF")) {
        let evidence = "an object with `steps` and a `schema_version` of ATIF";
        return Ok(detected_as(SessionFormat::Atif, evidence));
    }
    // One record by itself is a log of one line.
    if let Some(detected) = detect_records(std::slice::from_ref(&fields)) {
        return Ok(detected);
    }
    if ["chat", "messages", "branches", "checkpoints"]
        .into_iter()
        .all(has)
    {
        return Ok(detected_as(
            SessionFormat::DeepAgents,
            "an object with `chat`, `messages`, `branches` and `checkpoints`",
        ));
    }
    if let Some(detected) = detected_wire(contexture_wire::detect_object(&fields)) {
        return Ok(detected);
    }
    // Only its messages can tell which format a request has.
    match fields.get(&["messages"]) {
        Some(list) => detect_array(list.get()),
        None => Err(unknown(describe_members(&fields))),
    }
}

/// Describes an object of no known format by its first members.
fn describe_members(fields: &Fields<'_>) -> String {
    // A few names are enough for a person to see what the file is.
    let names: Vec<String> = fields
        .iter()
        .take(8)
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if names.is_empty() {
        "an empty object".to_owned()
    } else {
        format!("an object with {}", names.join(", "))
    }
}

fn detect_array(text: &str) -> Result<Detected, SessionError> {
    let elements: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
    detect_messages(&elements)
}

fn detect_messages(elements: &[&RawValue]) -> Result<Detected, SessionError> {
    let Some(first) = elements.first() else {
        return Err(SessionError::Unknown {
            found: "an empty array".to_owned(),
        });
    };
    // A damaged run among others does not change what the file is.
    let is_run = |element: &&RawValue| {
        Fields::parse(element.get()).is_ok_and(|fields| fields.get(&["traj"]).is_some())
    };
    if elements.iter().take(MAX_SAMPLED_RECORDS).any(is_run) {
        return Ok(detected_as(
            SessionFormat::TauBench,
            "an array of objects with `traj`",
        ));
    }
    let unknown = || SessionError::Unknown {
        found: format!("an array of {}", excerpt(first.get())),
    };
    // The first element must be an object; a later one that is not counts as an empty message.
    Fields::parse(first.get()).map_err(|_| unknown())?;
    let messages: Vec<Fields<'_>> = elements
        .iter()
        .map(|one| Fields::parse(one.get()).unwrap_or_default())
        .collect();
    detected_wire(contexture_wire::detect_messages(&messages)).ok_or_else(unknown)
}
