//! Usage in Codex's rollouts.
//!
//! `token_count` events carry the running total of the session and the usage of the last answer; newer versions also write a
//! `token_usage_record` for each answer. Either is counted by what it adds to the total, so no answer counts twice and a
//! repeated event adds nothing. `input_tokens` includes what was read from the cache and written to it.
//!
//! A forked rollout begins with the records of the session that it was forked from, their times often set to that of the
//! fork. Whoever reads several rollouts knows such copies by their totals.

use contexture_ir::{ContentHash, Fields};
use contexture_text::one_line_title;
use serde_json::value::RawValue;

use crate::json::{text_of, timestamp_of};
use crate::session::TITLE_CHARS;
use crate::usage::{
    AnswerIdentity, LogEvent, LogEvents, LogUsage, LoggedCall, PlacedRecord, ReportedTokens,
    number_of, object_of,
};

/// Members of a `turn_context` that are part of what a request begins with, or may be.
const SETTINGS: [&str; 8] = [
    "user_instructions",
    "developer_instructions",
    "collaboration_mode",
    "effort",
    "personality",
    "approval_policy",
    "sandbox_policy",
    "tools",
];

/// Items that a model makes, by their type; messages are the assistant's.
const MODEL_ITEMS: [&str; 6] = [
    "reasoning",
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "web_search_call",
    "tool_search_call",
];

/// The usage of one answer or of a session, in the rollout's own counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    input: u64,
    cached: u64,
    written: u64,
    output: u64,
}

impl Counts {
    fn read(fields: &Fields<'_>) -> Self {
        Self {
            input: number_of(fields, "input_tokens"),
            cached: number_of(fields, "cached_input_tokens"),
            written: number_of(fields, "cache_write_input_tokens"),
            output: number_of(fields, "output_tokens"),
        }
    }

    const fn plus(self, more: Self) -> Self {
        Self {
            input: self.input.saturating_add(more.input),
            cached: self.cached.saturating_add(more.cached),
            written: self.written.saturating_add(more.written),
            output: self.output.saturating_add(more.output),
        }
    }

    /// What this has more than an earlier total; `None` if it is not later.
    fn since(self, earlier: Self) -> Option<Self> {
        Some(Self {
            input: self.input.checked_sub(earlier.input)?,
            cached: self.cached.checked_sub(earlier.cached)?,
            written: self.written.checked_sub(earlier.written)?,
            output: self.output.checked_sub(earlier.output)?,
        })
    }

    const fn is_zero(self) -> bool {
        self.input == 0 && self.output == 0
    }

    fn tokens(self) -> ReportedTokens {
        let cached = self.cached.min(self.input);
        let written = self.written.min(self.input - cached);
        ReportedTokens {
            fresh: self.input - cached - written,
            cache_read: cached,
            cache_write: written,
            cache_write_long: 0,
            output: self.output,
        }
    }
}

/// Where the answer under way began.
#[derive(Clone, Copy, Debug)]
struct AnswerStart {
    record: usize,
    line: usize,
    asked_ms: Option<i64>,
}

#[derive(Debug, Default)]
pub(super) struct CodexUsage {
    has_meta: bool,
    is_side: bool,
    model: String,
    settings: Option<String>,
    total: Counts,
    events: LogEvents,
    /// Time of the last record.
    at_ms: Option<i64>,
    start: Option<AnswerStart>,
}

impl CodexUsage {
    pub(super) fn read_record(&mut self, record: &PlacedRecord<'_>, usage: &mut LogUsage) {
        let fields = &record.fields;
        let at_ms = timestamp_of(fields);
        let payload = object_of(fields, "payload");
        match (text_of(fields, "type").as_deref(), &payload) {
            (Some("session_meta"), Some(meta)) => self.read_meta(meta, usage),
            (Some("turn_context"), Some(context)) => self.read_context(context, usage),
            (Some("event_msg"), Some(event)) => self.read_event(event, (record, at_ms), usage),
            (Some("token_usage_record"), Some(told)) => {
                if let Some(counts) = object_of(told, "usage") {
                    let counts = Counts::read(&counts);
                    self.count_answer(counts, self.total.plus(counts), (record, at_ms), usage);
                }
            }
            (Some("compacted"), Some(_)) => {
                self.events.insert(LogEvent::Compacted);
                usage.context_starts.push(record.record);
            }
            (Some("response_item"), Some(item)) => self.read_item(item, record, usage),
            // The first line of an older rollout, and its items without an envelope.
            (None, _) => self.read_meta(fields, usage),
            (Some(_), None) => self.read_item(fields, record, usage),
            _ => {}
        }
        self.at_ms = at_ms.or(self.at_ms);
    }

    fn read_meta(&mut self, meta: &Fields<'_>, usage: &mut LogUsage) {
        let id = text_of(meta, "id");
        if id.is_none() {
            return;
        }
        if self.has_meta {
            // A second head: the program was started again, or what follows was copied from another session.
            self.events.insert(LogEvent::Resumed);
            usage.is_fork |= id != usage.session_id;
            return;
        }
        self.has_meta = true;
        usage.is_fork = text_of(meta, "forked_from_id").is_some();
        self.is_side = text_of(meta, "thread_source").as_deref() == Some("subagent");
        usage.session_id = id;
        usage.project = text_of(meta, "cwd");
    }

    fn read_context(&mut self, context: &Fields<'_>, usage: &mut LogUsage) {
        self.model = text_of(context, "model").unwrap_or_else(|| std::mem::take(&mut self.model));
        if usage.project.is_none() {
            usage.project = text_of(context, "cwd");
        }
        let said = SETTINGS.map(|name| context.get(&[name]).map_or("", RawValue::get));
        let said = said.join("\n");
        let before = self.settings.replace(said.clone());
        if before.is_some_and(|before| before != said) {
            self.events.insert(LogEvent::SettingsChanged);
        }
    }

    fn read_event(
        &mut self,
        event: &Fields<'_>,
        (record, at_ms): (&PlacedRecord<'_>, Option<i64>),
        usage: &mut LogUsage,
    ) {
        let kind = text_of(event, "type").unwrap_or_default();
        match kind.as_str() {
            "token_count" => {
                let Some(info) = object_of(event, "info") else {
                    return;
                };
                let total = object_of(&info, "total_token_usage").map(|one| Counts::read(&one));
                let last = object_of(&info, "last_token_usage").map(|one| Counts::read(&one));
                self.read_totals(total, last, (record, at_ms), usage);
            }
            "context_compacted" => self.events.insert(LogEvent::Compacted),
            "thread_rolled_back" => self.events.insert(LogEvent::TakenBack),
            "thread_settings_applied" => {
                let model =
                    object_of(event, "thread_settings").and_then(|one| text_of(&one, "model"));
                self.model = model.unwrap_or_else(|| std::mem::take(&mut self.model));
            }
            "user_message" if usage.title.is_none() => {
                let text = text_of(event, "message").unwrap_or_default();
                let words = one_line_title(&text, TITLE_CHARS);
                usage.title = Some(words).filter(|words| !words.is_empty());
            }
            kind if kind.starts_with("mcp_startup") || kind.starts_with("mcp_list_tools") => {
                self.events.insert(LogEvent::ToolsChanged);
            }
            _ => {}
        }
    }

    /// Counts what a running total has more than what was counted so far.
    fn read_totals(
        &mut self,
        total: Option<Counts>,
        last: Option<Counts>,
        place: (&PlacedRecord<'_>, Option<i64>),
        usage: &mut LogUsage,
    ) {
        let total = total.unwrap_or_else(|| self.total.plus(last.unwrap_or_default()));
        let added = match total.since(self.total) {
            Some(added) if added.is_zero() => return,
            // A total that begins above nothing, with no answer to it, is the baseline that a fork inherits.
            Some(_) if last.is_some_and(Counts::is_zero) => {
                self.total = total;
                return;
            }
            Some(added) => added,
            // The total went back: it was begun anew, and only the last answer is sure.
            None => last.unwrap_or(total),
        };
        self.count_answer(added, total, place, usage);
    }

    fn count_answer(
        &mut self,
        counts: Counts,
        total: Counts,
        (record, at_ms): (&PlacedRecord<'_>, Option<i64>),
        usage: &mut LogUsage,
    ) {
        self.total = total;
        if counts.is_zero() {
            return;
        }
        let start = self.start.take().unwrap_or(AnswerStart {
            record: record.record,
            line: record.line,
            asked_ms: self.at_ms,
        });
        let number = usage.calls.len();
        let known = format!("{}\n{total:?}\n{counts:?}", self.model);
        usage.calls.push(LoggedCall {
            identity: AnswerIdentity::Total(ContentHash::of(known.as_bytes())),
            record: start.record,
            line: start.line,
            at_ms,
            asked_ms: start.asked_ms,
            model: self.model.clone(),
            tokens: counts.tokens(),
            previous: number.checked_sub(1),
            events: std::mem::take(&mut self.events),
            is_side: self.is_side,
            is_unfinished: false,
        });
    }

    fn read_item(&mut self, item: &Fields<'_>, record: &PlacedRecord<'_>, usage: &mut LogUsage) {
        let kind = text_of(item, "type").unwrap_or_default();
        let role = text_of(item, "role").unwrap_or_default();
        if (kind == "message" && role == "assistant") || MODEL_ITEMS.contains(&kind.as_str()) {
            // The first item of an answer is where it begins; its usage follows the last one.
            self.start.get_or_insert(AnswerStart {
                record: record.record,
                line: record.line,
                asked_ms: self.at_ms,
            });
        } else if role == "user" && usage.title.is_none() {
            usage.title = first_words(item);
        }
    }
}

/// The beginning of a user's message, if it was said and not put in by the program.
fn first_words(item: &Fields<'_>) -> Option<String> {
    let parts: Vec<&RawValue> = serde_json::from_str(item.get(&["content"])?.get()).ok()?;
    let text = parts
        .iter()
        .find_map(|part| text_of(&Fields::parse(part.get()).ok()?, "text"))?;
    let words = one_line_title(&text, TITLE_CHARS);
    let is_said = !words.is_empty() && !words.starts_with(['<', '#']);
    is_said.then_some(words)
}
