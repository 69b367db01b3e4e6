//! Usage in Claude Code's logs.
//!
//! One answer is several records with one message id. They repeat the usage; `output_tokens` grows, and only the record with
//! a `stop_reason` has all of it, so the largest one counts. Records are linked by `parentUuid`: the call before another one
//! is the last one above it, whatever stands between them in the file (sub-agents, other branches).

use std::collections::BTreeMap;

use contexture_ir::{ContentHash, Fields};
use contexture_text::one_line_title;
use serde_json::value::RawValue;

use crate::json::{text_of, timestamp_of};
use crate::session::TITLE_CHARS;
use crate::usage::{
    AnswerIdentity, LogEvent, LogEvents, LogUsage, LoggedCall, PlacedRecord, ReportedTokens,
    number_of, object_of,
};

/// The name that the program gives answers of its own, which no model gave: errors and interruptions.
const OWN_MODEL: &str = "<synthetic>";

/// Commands of the program after which its list of tools may be another one.
const TOOL_COMMANDS: [&str; 4] = ["/mcp", "/plugin", "/plugins", "/agents"];
/// Commands after which its instructions may be others.
const SETTING_COMMANDS: [&str; 6] = [
    "/output-style",
    "/memory",
    "/init",
    "/add-dir",
    "/config",
    "/effort",
];

/// What is known at a record: the last call at or above it, and what happened since.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    call: Option<usize>,
    events: LogEvents,
    at_ms: Option<i64>,
}

#[derive(Debug, Default)]
pub(super) struct ClaudeUsage {
    /// Whether any record named its parent so far.
    linked: bool,
    by_uuid: BTreeMap<ContentHash, Standing>,
    /// The last standing of the main conversation, for logs without links.
    last: Standing,
    by_answer: BTreeMap<ContentHash, usize>,
    /// For each call, whether another one went on from it.
    continued: Vec<bool>,
    version: Option<String>,
    thinking: Option<String>,
    title: Option<String>,
}

impl ClaudeUsage {
    pub(super) fn given_title(&self) -> Option<String> {
        self.title.clone()
    }

    pub(super) fn read_record(&mut self, record: &PlacedRecord<'_>, usage: &mut LogUsage) {
        let fields = &record.fields;
        let kind = text_of(fields, "type").unwrap_or_default();
        self.read_facts(record, &kind, usage);
        let uuid = text_of(fields, "uuid");
        // Records without an id of their own are notes beside the conversation.
        if uuid.is_none() && fields.get(&["message"]).is_none() {
            return;
        }
        let is_side = has_flag(fields, "isSidechain");
        let above = text_of(fields, "parentUuid").or_else(|| text_of(fields, "logicalParentUuid"));
        self.linked |= above.is_some();
        let mut standing = match above {
            Some(above) => self.standing_at(&above),
            None if self.linked || is_side => Standing::default(),
            None => self.last,
        };
        self.note_events(record, &kind, &mut standing.events);
        if has_flag(fields, "isCompactSummary") {
            usage.context_starts.push(record.record);
            standing.events.insert(LogEvent::Compacted);
        }
        let at_ms = timestamp_of(fields);
        if kind == "assistant"
            && let Some(answer) = read_answer(fields, uuid.as_deref())
        {
            let place = (record, at_ms, is_side);
            standing = self.count_answer(answer, &standing, place, usage);
        }
        // A record's time may be missing; what is known of the one before is then the best there is.
        standing.at_ms = at_ms.max(standing.at_ms);
        if let Some(uuid) = uuid {
            self.by_uuid
                .insert(ContentHash::of(uuid.as_bytes()), standing);
        }
        if !is_side {
            self.last = standing;
        }
    }

    fn standing_at(&self, uuid: &str) -> Standing {
        let known = self.by_uuid.get(&ContentHash::of(uuid.as_bytes()));
        known.copied().unwrap_or_default()
    }

    /// What is said once of a session: its id, its folder, its title.
    fn read_facts(&mut self, record: &PlacedRecord<'_>, kind: &str, usage: &mut LogUsage) {
        let fields = &record.fields;
        if usage.session_id.is_none() {
            usage.session_id = text_of(fields, "sessionId");
        }
        if usage.project.is_none() {
            usage.project = text_of(fields, "cwd");
        }
        let given = match kind {
            "summary" => text_of(fields, "summary"),
            "custom-title" => text_of(fields, "customTitle"),
            "ai-title" => text_of(fields, "aiTitle"),
            "user" if usage.title.is_none() && !is_hidden(fields) => {
                usage.title = first_words(fields);
                None
            }
            _ => None,
        };
        if let Some(title) = given {
            self.title = Some(one_line_title(&title, TITLE_CHARS));
        }
    }

    /// What a record shows that may change the prefix of the next request.
    fn note_events(&mut self, record: &PlacedRecord<'_>, kind: &str, events: &mut LogEvents) {
        let fields = &record.fields;
        // One process is of one version: another one means that the program was started again.
        if let Some(version) = text_of(fields, "version") {
            let before = self.version.replace(version.clone());
            if before.is_some_and(|before| before != version) {
                events.insert(LogEvent::Resumed);
            }
        }
        match kind {
            "system" => match text_of(fields, "subtype").as_deref() {
                Some("compact_boundary") => events.insert(LogEvent::Compacted),
                Some("microcompact_boundary") => events.insert(LogEvent::Cleared),
                _ => {}
            },
            "attachment" => {
                let kind = object_of(fields, "attachment").and_then(|one| text_of(&one, "type"));
                if kind.is_some_and(|kind| kind.contains("tools_delta") || kind.starts_with("mcp"))
                {
                    events.insert(LogEvent::ToolsChanged);
                }
            }
            "user" => self.note_user_events(fields, events),
            _ => {}
        }
        if kind != "user" && kind != "assistant" && record.text.contains("SessionStart:resume") {
            events.insert(LogEvent::Resumed);
        }
    }

    fn note_user_events(&mut self, fields: &Fields<'_>, events: &mut LogEvents) {
        // How much a model may think is part of what a cache is kept for.
        if let Some(thinking) = fields.get(&["thinkingMetadata"]).map(RawValue::get) {
            let before = self.thinking.replace(thinking.to_owned());
            if before.is_some_and(|before| before != thinking) {
                events.insert(LogEvent::SettingsChanged);
            }
        }
        let Some(command) = command_name(fields) else {
            return;
        };
        if TOOL_COMMANDS.contains(&command.as_str()) {
            events.insert(LogEvent::ToolsChanged);
        } else if SETTING_COMMANDS.contains(&command.as_str()) {
            events.insert(LogEvent::SettingsChanged);
        }
    }

    /// Counts an answer, or adds to one that is counted what a later record of it says.
    fn count_answer(
        &mut self,
        answer: FoundAnswer,
        above: &Standing,
        (record, at_ms, is_side): (&PlacedRecord<'_>, Option<i64>, bool),
        usage: &mut LogUsage,
    ) -> Standing {
        if let Some(&known) = self.by_answer.get(&answer.identity)
            && let Some(call) = usage.calls.get_mut(known)
        {
            if answer.tokens.output >= call.tokens.output {
                call.tokens = answer.tokens;
            }
            call.is_unfinished &= answer.is_unfinished;
            return Standing {
                call: Some(known),
                ..Standing::default()
            };
        }
        let number = usage.calls.len();
        let mut events = above.events;
        // Two calls that go on from the same one: the later one edits or takes back what came between.
        if let Some(continued) = above.call.and_then(|call| self.continued.get_mut(call))
            && std::mem::replace(continued, true)
        {
            events.insert(LogEvent::TakenBack);
        }
        self.continued.push(false);
        self.by_answer.insert(answer.identity, number);
        usage.calls.push(LoggedCall {
            identity: AnswerIdentity::Answer(answer.identity),
            record: record.record,
            line: record.line,
            at_ms,
            asked_ms: above.at_ms,
            model: answer.model,
            tokens: answer.tokens,
            previous: above.call,
            events,
            is_side,
            is_unfinished: answer.is_unfinished,
        });
        Standing {
            call: Some(number),
            ..Standing::default()
        }
    }
}

/// An answer as one record tells of it.
struct FoundAnswer {
    identity: ContentHash,
    model: String,
    tokens: ReportedTokens,
    is_unfinished: bool,
}

/// Reads the answer of a record; `None` if no model gave it, or the record has no usage.
fn read_answer(fields: &Fields<'_>, uuid: Option<&str>) -> Option<FoundAnswer> {
    let message = object_of(fields, "message")?;
    let model = text_of(&message, "model").unwrap_or_default();
    let used = object_of(&message, "usage").filter(|_| model != OWN_MODEL)?;
    let id = text_of(&message, "id");
    // An answer without an id is known by its record alone.
    let id = id.as_deref().or(uuid)?;
    let request = text_of(fields, "requestId").unwrap_or_default();
    let written = number_of(&used, "cache_creation_input_tokens");
    let times = object_of(&used, "cache_creation").unwrap_or_default();
    let long = number_of(&times, "ephemeral_1h_input_tokens").min(written);
    Some(FoundAnswer {
        identity: ContentHash::of(format!("{id}\n{request}").as_bytes()),
        model,
        tokens: ReportedTokens {
            fresh: number_of(&used, "input_tokens"),
            cache_read: number_of(&used, "cache_read_input_tokens"),
            cache_write: written - long,
            cache_write_long: long,
            output: number_of(&used, "output_tokens"),
        },
        is_unfinished: message
            .get(&["stop_reason"])
            .is_some_and(|reason| reason.get() == "null"),
    })
}

fn has_flag(fields: &Fields<'_>, name: &str) -> bool {
    fields.get(&[name]).is_some_and(|raw| raw.get() == "true")
}

/// Whether a record is shown to the model only, or belongs to a sub-agent.
fn is_hidden(fields: &Fields<'_>) -> bool {
    ["isMeta", "isSidechain", "isCompactSummary"]
        .into_iter()
        .any(|name| has_flag(fields, name))
}

/// The text of a user's record: its content, or the first text in it.
fn said_text(fields: &Fields<'_>) -> Option<String> {
    let message = object_of(fields, "message")?;
    if let Some(text) = text_of(&message, "content") {
        return Some(text);
    }
    let parts: Vec<&RawValue> = serde_json::from_str(message.get(&["content"])?.get()).ok()?;
    parts
        .iter()
        .find_map(|part| text_of(&Fields::parse(part.get()).ok()?, "text"))
}

/// The beginning of what a user said, if it was said and not put in by the program.
fn first_words(fields: &Fields<'_>) -> Option<String> {
    let text = said_text(fields)?;
    let words = one_line_title(&text, TITLE_CHARS);
    (!words.is_empty() && !words.starts_with('<')).then_some(words)
}

/// The command of the program that a user's record tells of.
fn command_name(fields: &Fields<'_>) -> Option<String> {
    let message = object_of(fields, "message")?;
    // Such records are one string; a list of blocks is the outputs of tools, which may be megabytes.
    let text = text_of(&message, "content")?;
    let (_, rest) = text.split_once("<command-name>")?;
    let (name, _) = rest.split_once("</command-name>")?;
    let name = name.trim().trim_start_matches('/');
    Some(format!("/{name}"))
}
