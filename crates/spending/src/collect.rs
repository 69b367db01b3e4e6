//! Logs summed up, one after the other.
//!
//! Each answer counts once, in the first log that it stands in, in the order in which logs are given: give them in an order
//! that does not change. Memory grows with the number of answers (some tens of bytes each), not with the size of logs.

use std::collections::{BTreeMap, BTreeSet};

use contexture_catalogue::{Catalogue, Money};
use contexture_ir::ContentHash;
use contexture_sessions::{AnswerIdentity, LogUsage, LoggedCall, SessionFormat};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::breaks::{BreakReason, FoundBreak, find_break};
use crate::estimate::SessionEstimate;
use crate::figures::{
    BreakFigures, BreakRow, BreakSum, DamagedFile, EstimateRow, FileCounts, SessionRow, Spending,
    SpendingGroup, Tally, percent,
};
use crate::price::PriceBook;

/// Which calls are summed up, and how they are shown.
#[derive(Clone, Debug)]
pub struct SpendingOptions {
    /// Time zone of days and times.
    pub time_zone: TimeZone,
    /// Only answers at or after this time, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Only answers before this time.
    pub until_ms: Option<i64>,
    /// Only sessions whose folder contains this text.
    pub project: Option<String>,
    /// How many of the dearest sessions and breaks are listed.
    pub listed: usize,
}

impl Default for SpendingOptions {
    fn default() -> Self {
        Self {
            time_zone: TimeZone::UTC,
            since_ms: None,
            until_ms: None,
            project: None,
            listed: 10,
        }
    }
}

/// Sums up logs.
#[derive(Debug)]
pub struct SpendingCollector<'c> {
    options: SpendingOptions,
    prices: PriceBook<'c>,
    answers: BTreeSet<ContentHash>,
    /// Running totals that were seen, and whether a forked log had them.
    totals: BTreeMap<ContentHash, bool>,
    /// Ids of the sessions whose totals they are.
    total_sessions: BTreeSet<String>,
    files: FileCounts,
    span: Option<(i64, i64)>,
    total: Tally,
    side: Tally,
    copied_calls: u64,
    unfinished_calls: u64,
    days: BTreeMap<String, Tally>,
    models: BTreeMap<String, Tally>,
    projects: BTreeMap<String, Tally>,
    sessions: BTreeMap<(SessionFormat, String), SessionRow>,
    break_sums: BTreeMap<BreakReason, BreakSum>,
    dearest_breaks: Vec<BreakRow>,
    estimates: BTreeMap<SessionFormat, EstimateRow>,
}

impl<'c> SpendingCollector<'c> {
    /// Begins with nothing; prices are the catalogue's.
    #[must_use]
    pub fn new(catalogue: &'c Catalogue, options: SpendingOptions) -> Self {
        Self {
            options,
            prices: PriceBook::new(catalogue),
            answers: BTreeSet::new(),
            totals: BTreeMap::new(),
            total_sessions: BTreeSet::new(),
            files: FileCounts::default(),
            span: None,
            total: Tally::default(),
            side: Tally::default(),
            copied_calls: 0,
            unfinished_calls: 0,
            days: BTreeMap::new(),
            models: BTreeMap::new(),
            projects: BTreeMap::new(),
            sessions: BTreeMap::new(),
            break_sums: BTreeMap::new(),
            dearest_breaks: Vec::new(),
            estimates: BTreeMap::new(),
        }
    }

    /// Adds a log; `file` is how it is named in the report.
    pub fn add_log(&mut self, file: &str, log: &LogUsage) {
        self.files.logs += 1;
        if let Some(line) = log.first_damaged_line {
            self.files.damaged.push(DamagedFile {
                file: file.to_owned(),
                lines: log.damaged_lines as u64,
                what: format!("line {line} is no JSON object"),
            });
        }
        // Before the filters: what counts elsewhere does not depend on what is shown.
        let copies = self.find_copies(log);
        let project = log.project.clone().unwrap_or_default();
        if !self.is_in_project(&project) {
            return;
        }
        for (call, is_copy) in log.calls.iter().zip(copies) {
            if !self.is_in_time(call) {
                continue;
            }
            if is_copy {
                self.copied_calls += 1;
                continue;
            }
            self.add_call(file, log, call, &project);
        }
    }

    /// Adds a session of a log that reports no usage, by what was counted of it.
    pub fn add_estimate(&mut self, format: SessionFormat, estimate: SessionEstimate) {
        let row = self.estimates.entry(format).or_insert(EstimateRow {
            format,
            sessions: 0,
            calls: 0,
            input_tokens: 0,
            output_tokens: 0,
        });
        row.sessions += 1;
        row.calls += estimate.calls;
        row.input_tokens = row.input_tokens.saturating_add(estimate.input_tokens);
        row.output_tokens = row.output_tokens.saturating_add(estimate.output_tokens);
    }

    /// Counts a file whose sessions were added by [`add_estimate`](Self::add_estimate).
    pub const fn count_log(&mut self) {
        self.files.logs += 1;
    }

    /// Counts a file that is no log.
    pub const fn count_other_file(&mut self) {
        self.files.others += 1;
    }

    /// Notes a file or folder that could not be read, or a log that could not be understood.
    pub fn add_unreadable(&mut self, file: &str, what: impl Into<String>) {
        self.files.damaged.push(DamagedFile {
            file: file.to_owned(),
            lines: 0,
            what: what.into(),
        });
    }

    /// Tells for each call of a log whether it was counted with another log.
    fn find_copies(&mut self, log: &LogUsage) -> Vec<bool> {
        let id = log.session_id.clone().unwrap_or_default();
        // Logs of one session begin alike too: a copy in a backup, say.
        let is_again = !id.is_empty() && self.total_sessions.contains(&id);
        let is_alike = log.is_fork || is_again;
        let mut is_beginning = true;
        let mut copies = Vec::with_capacity(log.calls.len());
        for call in &log.calls {
            let is_copy = match call.identity {
                AnswerIdentity::Answer(answer) => !self.answers.insert(answer),
                AnswerIdentity::Total(total) => {
                    let known = self.totals.get(&total).copied();
                    // Equal totals prove a copy only at the beginning, and only where one of the two is a copy.
                    is_beginning &= known.is_some_and(|of_fork| is_alike || of_fork);
                    self.totals.entry(total).or_insert(is_alike);
                    is_beginning
                }
            };
            copies.push(is_copy);
        }
        let has_totals = |call: &LoggedCall| matches!(call.identity, AnswerIdentity::Total(_));
        if log.calls.iter().any(has_totals) {
            self.total_sessions.insert(id);
        }
        copies
    }

    fn is_in_project(&self, project: &str) -> bool {
        let wanted = self.options.project.as_deref();
        wanted.is_none_or(|wanted| project.contains(wanted))
    }

    fn is_in_time(&self, call: &LoggedCall) -> bool {
        let SpendingOptions {
            since_ms, until_ms, ..
        } = &self.options;
        // A call without a time is in no span of time.
        since_ms.is_none_or(|since| call.at_ms.is_some_and(|at| at >= since))
            && until_ms.is_none_or(|until| call.at_ms.is_some_and(|at| at < until))
    }

    fn add_call(&mut self, file: &str, log: &LogUsage, call: &LoggedCall, project: &str) {
        let model = self.prices.model(&call.model);
        let cost = PriceBook::cost(model, &call.tokens);
        // The call before may be a copy, or outside the span of time: it was in the cache all the same.
        let found = call
            .previous
            .and_then(|previous| log.calls.get(previous))
            .and_then(|previous| find_break(previous, call, model));
        let day = call.at_ms.map_or_else(String::new, |at| self.day_of(at));
        self.total.add_call(&call.tokens, cost);
        if call.is_side {
            self.side.add_call(&call.tokens, cost);
        }
        self.unfinished_calls += u64::from(call.is_unfinished);
        for (groups, name) in [
            (&mut self.days, day.as_str()),
            (&mut self.models, call.model.as_str()),
            (&mut self.projects, project),
        ] {
            // Looked up by name first: most calls are of a group that is there.
            match groups.get_mut(name) {
                Some(tally) => tally.add_call(&call.tokens, cost),
                None => {
                    let mut tally = Tally::default();
                    tally.add_call(&call.tokens, cost);
                    groups.insert(name.to_owned(), tally);
                }
            }
        }
        if let Some(at) = call.at_ms {
            let (first, last) = self.span.unwrap_or((at, at));
            self.span = Some((first.min(at), last.max(at)));
        }
        let break_cost = found.and_then(|found| found.pico_dollars).unwrap_or(0);
        let first = call.at_ms.map_or_else(String::new, |at| self.time_of(at));
        let session = self.session_of(file, log, project);
        session.tally.add_call(&call.tokens, cost);
        session.break_cost += Money::from_pico_dollars(break_cost);
        // Files are read by name and not by time, so a later one may begin earlier.
        if session.first.is_empty() || (!first.is_empty() && first < session.first) {
            session.first = first;
        }
        let session = session.id.clone();
        if let Some(found) = found {
            self.add_break(found, (file, session), call);
        }
    }

    fn session_of(&mut self, file: &str, log: &LogUsage, project: &str) -> &mut SessionRow {
        let id = log.session_id.clone().unwrap_or_else(|| file.to_owned());
        let key = (log.format, id.clone());
        let row = self.sessions.entry(key).or_insert_with(|| SessionRow {
            id,
            format: log.format,
            title: String::new(),
            project: project.to_owned(),
            files: Vec::new(),
            first: String::new(),
            tally: Tally::default(),
            break_cost: Money::ZERO,
        });
        if row.files.last().is_none_or(|last| last != file) {
            row.files.push(file.to_owned());
        }
        // What a sub-agent was told is no title of the session.
        if row.title.is_empty()
            && let Some(title) = log.title.as_ref()
        {
            row.title.clone_from(title);
        }
        row
    }

    fn add_break(&mut self, found: FoundBreak, (file, session): (&str, String), call: &LoggedCall) {
        let cost = Money::from_pico_dollars(found.pico_dollars.unwrap_or(0));
        let sum = self.break_sums.entry(found.reason).or_insert(BreakSum {
            reason: Some(found.reason),
            breaks: 0,
            tokens: 0,
            cost: Money::ZERO,
        });
        sum.breaks += 1;
        sum.tokens = sum.tokens.saturating_add(found.tokens);
        sum.cost += cost;
        let row = BreakRow {
            at: call.at_ms.map_or_else(String::new, |at| self.time_of(at)),
            reason: found.reason,
            tokens: found.tokens,
            cost,
            pause_seconds: found.pause_seconds,
            model: call.model.clone(),
            file: file.to_owned(),
            line: call.line,
            session,
        };
        self.dearest_breaks.push(row);
        // Kept short as it grows: only the dearest are shown.
        if self.dearest_breaks.len() > self.options.listed.saturating_mul(8).max(64) {
            self.sort_breaks();
        }
    }

    fn sort_breaks(&mut self) {
        // Equal ones in the order of files and lines, so that the report does not depend on how it came about.
        self.dearest_breaks.sort_by(|one, other| {
            (other.cost, other.tokens, &one.file, one.line).cmp(&(
                one.cost,
                one.tokens,
                &other.file,
                other.line,
            ))
        });
        self.dearest_breaks.truncate(self.options.listed);
    }

    fn day_of(&self, ms: i64) -> String {
        let time = Timestamp::from_millisecond(ms).ok();
        time.map(|time| self.options.time_zone.to_datetime(time).date().to_string())
            .unwrap_or_default()
    }

    fn time_of(&self, ms: i64) -> String {
        let Ok(time) = Timestamp::from_millisecond(ms) else {
            return String::new();
        };
        let time = self.options.time_zone.to_datetime(time);
        time.strftime("%Y-%m-%d %H:%M").to_string()
    }

    /// Ends the sum.
    #[must_use]
    pub fn finish(mut self) -> Spending {
        self.sort_breaks();
        let mut sessions: Vec<SessionRow> =
            std::mem::take(&mut self.sessions).into_values().collect();
        let count = sessions.len() as u64;
        sessions.sort_by(|one, other| {
            (other.tally.cost, other.tally.input_tokens, &one.id).cmp(&(
                one.tally.cost,
                one.tally.input_tokens,
                &other.id,
            ))
        });
        sessions.truncate(self.options.listed);
        let (first, last) = self.span.map_or_else(Default::default, |(first, last)| {
            (self.time_of(first), self.time_of(last))
        });
        let breaks = self.break_figures();
        self.files
            .damaged
            .sort_by(|one, other| one.file.cmp(&other.file));
        Spending {
            time_zone: zone_name(&self.options.time_zone),
            filters: self.filter_words(),
            files: self.files,
            first,
            last,
            sessions: count,
            total: self.total,
            side: self.side,
            copied_calls: self.copied_calls,
            unfinished_calls: self.unfinished_calls,
            days: groups_in_order(self.days),
            models: groups_by_cost(self.models),
            projects: groups_by_cost(self.projects),
            dearest_sessions: sessions,
            breaks,
            policy: None,
            estimates: self.estimates.into_values().collect(),
        }
    }

    fn break_figures(&mut self) -> BreakFigures {
        let mut reasons: Vec<BreakSum> =
            std::mem::take(&mut self.break_sums).into_values().collect();
        reasons.sort_by_key(|sum| std::cmp::Reverse((sum.cost, sum.tokens)));
        let mut total = BreakSum {
            reason: None,
            breaks: 0,
            tokens: 0,
            cost: Money::ZERO,
        };
        for sum in &reasons {
            total.breaks += sum.breaks;
            total.tokens = total.tokens.saturating_add(sum.tokens);
            total.cost += sum.cost;
        }
        BreakFigures {
            share_percent: percent(total.cost, self.total.cost),
            total,
            reasons,
            dearest: std::mem::take(&mut self.dearest_breaks),
        }
    }

    fn filter_words(&self) -> Vec<String> {
        let options = &self.options;
        let since = options
            .since_ms
            .map(|ms| format!("since {}", self.time_of(ms)));
        let until = options
            .until_ms
            .map(|ms| format!("until {}", self.time_of(ms)));
        let project = options
            .project
            .as_ref()
            .map(|text| format!("folders with `{text}`"));
        [since, until, project].into_iter().flatten().collect()
    }
}

fn zone_name(zone: &TimeZone) -> String {
    // A machine that does not say where it is: its times are those of UTC. Some call that a place.
    if zone.is_unknown() || zone.iana_name() == Some("Etc/UTC") {
        return "UTC".to_owned();
    }
    // Zones of a rule and not of a place have no name; what they are is said by their offset.
    zone.iana_name()
        .map_or_else(|| "local time".to_owned(), str::to_owned)
}

fn groups_in_order(groups: BTreeMap<String, Tally>) -> Vec<SpendingGroup> {
    groups
        .into_iter()
        .map(|(name, tally)| SpendingGroup { name, tally })
        .collect()
}

fn groups_by_cost(groups: BTreeMap<String, Tally>) -> Vec<SpendingGroup> {
    let mut groups = groups_in_order(groups);
    // A stable sort: equal ones stay in the order of their names.
    groups.sort_by_key(|group| std::cmp::Reverse((group.tally.cost, group.tally.input_tokens)));
    groups
}
