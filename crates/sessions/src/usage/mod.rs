//! What the calls of a log used, as the log itself reports it, read line by line.
//!
//! Two logs report usage: Claude Code's and Codex's. Their sessions need not be read whole for that: [`UsageReader`] takes
//! one line at a time and keeps a few numbers a call, so that a log of any size can be summed up.
//!
//! Each answer counts once. Claude Code writes an answer as several records, which repeat its usage and of which only the
//! last one has all of its output; Codex tells of an answer up to twice, with running totals. Copies in *other* logs (a
//! session that was resumed or forked begins with the records of the one before) are known by [`AnswerIdentity`]; whoever
//! reads several logs compares them.
//!
//! Not here: prices, and why a cache was missed.

mod claude;
mod codex;

use contexture_ir::{ContentHash, Fields};

use self::claude::ClaudeUsage;
use self::codex::CodexUsage;
use crate::format::SessionFormat;

/// Tokens of one answer as its log reports them; no token is in two members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportedTokens {
    /// Input tokens that were neither read from a cache nor written to one.
    pub fresh: u64,
    /// Input tokens that were read from the provider's cache.
    pub cache_read: u64,
    /// Input tokens that were written to the cache for the usual time.
    pub cache_write: u64,
    /// Input tokens that were written to the cache for the longer time.
    pub cache_write_long: u64,
    /// Tokens of the answer, reasoning included.
    pub output: u64,
}

impl ReportedTokens {
    /// Returns all input tokens.
    #[must_use]
    pub const fn input(&self) -> u64 {
        self.fresh
            .saturating_add(self.cache_read)
            .saturating_add(self.written())
    }

    /// Returns the tokens that were written to the cache, for whatever time.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.cache_write.saturating_add(self.cache_write_long)
    }
}

/// Something that a log shows between two calls and that may change what a provider's cache can still serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEvent {
    /// The history was replaced by a summary.
    Compacted,
    /// The program cleared old content of the history.
    Cleared,
    /// The program was started again with the session.
    Resumed,
    /// The list of tools changed, or a server of tools was started.
    ToolsChanged,
    /// Instructions or settings changed.
    SettingsChanged,
    /// Turns were taken back, or an earlier message was edited.
    TakenBack,
}

/// A set of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogEvents(u8);

impl LogEvents {
    /// Adds an event.
    pub const fn insert(&mut self, event: LogEvent) {
        self.0 |= 1 << event as u8;
    }

    /// Returns whether an event is among them.
    #[must_use]
    pub const fn contains(self, event: LogEvent) -> bool {
        self.0 & (1 << event as u8) != 0
    }
}

/// By what an answer is known that stands in several logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnswerIdentity {
    /// The provider's id: the same answer wherever it stands.
    Answer(ContentHash),
    /// Running totals of a session: the same answer only where two logs begin alike, as a forked session does.
    Total(ContentHash),
}

/// One answer of a model, and what the log says of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedCall {
    /// By what copies of it are known.
    pub identity: AnswerIdentity,
    /// Index of the record that its answer begins with, blank lines not counted: that of the nodes it became
    /// ([`Session::node_records`](crate::Session::node_records)).
    pub record: usize,
    /// Number of that record's line, counted from 1.
    pub line: usize,
    /// Time of the answer in milliseconds since 1970; `None` if the log has none.
    pub at_ms: Option<i64>,
    /// Time of the last record before the answer: about when it was asked for.
    pub asked_ms: Option<i64>,
    /// Name of the model; empty if the log does not say.
    pub model: String,
    /// What it used.
    pub tokens: ReportedTokens,
    /// Index of the call whose request this one goes on from; `None` for the first of a history.
    pub previous: Option<usize>,
    /// What the log shows between the two.
    pub events: LogEvents,
    /// Whether a sub-agent made it.
    pub is_side: bool,
    /// Whether the log ends within the answer, so that its output is not all there.
    pub is_unfinished: bool,
}

/// What a log says of its calls.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogUsage {
    /// Format of the log.
    pub format: SessionFormat,
    /// Id of the session; `None` if the log has none.
    pub session_id: Option<String>,
    /// Folder that the session was about, the first one if it moved; `None` if the log has none.
    pub project: Option<String>,
    /// Title of the session, else the beginning of the first text of a user.
    pub title: Option<String>,
    /// Whether the log says that it began as a copy of another one.
    pub is_fork: bool,
    /// Its calls, in the order of their first records.
    pub calls: Vec<LoggedCall>,
    /// Indices of the records with which the model's view of the history began anew, ascending.
    pub context_starts: Vec<usize>,
    /// Number of lines that were read, blank ones not counted.
    pub records: usize,
    /// Number of lines that are no JSON object.
    pub damaged_lines: usize,
    /// Number of the first such line, counted from 1.
    pub first_damaged_line: Option<usize>,
}

/// Reads the usage of a log, line by line.
///
/// ```
/// use contexture_sessions::{SessionFormat, UsageReader};
/// let line = r#"{"type":"assistant","uuid":"a","message":{"id":"m","model":"claude-sonnet-4-5",
///     "usage":{"input_tokens":3,"cache_read_input_tokens":9000,"output_tokens":120}}}"#;
/// let mut reader = UsageReader::new(SessionFormat::ClaudeCode).expect("a log with usage");
/// reader.read_line(&line.replace('\n', " "));
/// let usage = reader.finish();
/// assert_eq!(usage.calls[0].tokens.input(), 9_003);
/// ```
#[derive(Debug)]
pub struct UsageReader {
    log: LogKind,
    usage: LogUsage,
    line: usize,
}

#[derive(Debug)]
enum LogKind {
    Claude(Box<ClaudeUsage>),
    Codex(Box<CodexUsage>),
}

/// A record that is being read, and where it stands.
struct PlacedRecord<'a> {
    fields: Fields<'a>,
    text: &'a str,
    line: usize,
    record: usize,
}

impl UsageReader {
    /// Begins a log; `None` for a format whose logs report no usage.
    #[must_use]
    pub fn new(format: SessionFormat) -> Option<Self> {
        let log = match format {
            SessionFormat::ClaudeCode => LogKind::Claude(Box::default()),
            SessionFormat::Codex => LogKind::Codex(Box::default()),
            _ => return None,
        };
        let usage = LogUsage {
            format,
            session_id: None,
            project: None,
            title: None,
            is_fork: false,
            calls: Vec::new(),
            context_starts: Vec::new(),
            records: 0,
            damaged_lines: 0,
            first_damaged_line: None,
        };
        Some(Self {
            log,
            usage,
            line: 0,
        })
    }

    /// Reads the next line. One that is no JSON object is counted and otherwise passed over.
    pub fn read_line(&mut self, line: &str) {
        self.line += 1;
        let text = line.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return;
        }
        let record = self.usage.records;
        self.usage.records += 1;
        let Ok(fields) = Fields::parse(text) else {
            self.count_damage();
            return;
        };
        let record = PlacedRecord {
            fields,
            text,
            line: self.line,
            record,
        };
        match &mut self.log {
            LogKind::Claude(log) => log.read_record(&record, &mut self.usage),
            LogKind::Codex(log) => log.read_record(&record, &mut self.usage),
        }
    }

    /// Counts a line that cannot be given as text: one that is too long, or no UTF-8.
    pub fn skip_line(&mut self) {
        self.line += 1;
        self.usage.records += 1;
        self.count_damage();
    }

    /// Ends the log.
    #[must_use]
    pub fn finish(self) -> LogUsage {
        let mut usage = self.usage;
        if let LogKind::Claude(log) = self.log {
            // A title that somebody gave the session wins over its first words, wherever it stands.
            usage.title = log.given_title().or(usage.title);
        }
        usage
    }

    fn count_damage(&mut self) {
        self.usage.damaged_lines += 1;
        self.usage.first_damaged_line.get_or_insert(self.line);
    }
}

/// The number that a member holds; 0 where it holds none.
fn number_of(fields: &Fields<'_>, key: &str) -> u64 {
    let value = fields.get(&[key]);
    value
        .and_then(|value| value.get().parse().ok())
        .unwrap_or(0)
}

/// The members of the object that a member holds.
fn object_of<'a>(fields: &Fields<'a>, key: &str) -> Option<Fields<'a>> {
    Fields::parse(fields.get(&[key])?.get()).ok()
}
