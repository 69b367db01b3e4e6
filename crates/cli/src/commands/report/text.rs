//! Spending as a page for the terminal, no line wider than it.

use std::path::Path;

use contexture::catalogue::Money;
use contexture_spending::{BreakReason, BreakRow, PolicySavings, Spending, SpendingGroup, Tally};
use owo_colors::OwoColorize as _;
use unicode_width::UnicodeWidthChar as _;

use crate::output::printable::{
    LongWords, count_with_noun, display_width, group_thousands, one_line, wrap_words,
};
use crate::output::table::{Column, format_table};

/// How many days, models and folders are shown; the rest is in the JSON document.
const LISTED: usize = 10;
/// Columns that words keep: enough for the name of a model.
const MIN_WORDS: usize = 18;
/// Columns below which the place of a break stands on a line of its own.
const NARROW: usize = 76;
/// The longest bar, in columns.
const BAR: u128 = 10;

/// Formats the report for so many columns.
pub(super) fn render_text(spending: &Spending, columns: usize) -> String {
    let mut page = Page {
        out: String::new(),
        columns,
    };
    page.add_summary(spending);
    page.add_breaks(spending);
    if let Some(policy) = &spending.policy {
        page.add_policy(policy);
    }
    page.add_days(spending);
    page.add_groups("By model", "model", &spending.models);
    page.add_groups("By folder", "folder", &spending.projects);
    page.add_sessions(spending);
    page.add_estimates(spending);
    page.add_notes(spending);
    page.out
}

struct Page {
    out: String,
    columns: usize,
}

impl Page {
    fn add_heading(&mut self, text: &str) {
        self.out.push_str(&format!("\n{}\n", text.bold()));
    }

    /// A paragraph, broken between words.
    fn add_words(&mut self, text: &str) {
        let width = self.columns.saturating_sub(2);
        for line in wrap_words(text, width, 0, LongWords::Break).lines() {
            self.out.push_str(&format!("  {line}\n"));
        }
    }

    /// A table. Its last columns are left out where words would have less than [`MIN_WORDS`] columns.
    fn add_table(&mut self, columns: &[Column], rows: &[Vec<String>]) {
        let table = format_table(columns, rows, self.columns.saturating_sub(2));
        for line in table.lines() {
            self.out.push_str(&format!("  {line}\n"));
        }
    }

    fn add_summary(&mut self, spending: &Spending) {
        let total = &spending.total;
        self.out
            .push_str(&format!("{}\n", "What the agents cost".bold()));
        if spending.first.is_empty() {
            self.add_words("no calls");
        } else {
            let (first, last) = (&spending.first, &spending.last);
            self.add_words(&format!("{first} to {last} ({})", spending.time_zone));
        }
        if !spending.filters.is_empty() {
            self.add_words(&format!("only {}", spending.filters.join(", ")));
        }
        self.out.push('\n');
        let side = match spending.side.calls {
            0 => String::new(),
            calls => format!(", {} by sub-agents", group_thousands(calls)),
        };
        let cost = match total.is_unpriced() {
            true => "cost not known".to_owned(),
            false => format!("{} by list prices", cost_cell(total)),
        };
        self.add_words(&format!(
            "{cost} · {}, {}{side}",
            count_with_noun(spending.sessions, "session"),
            count_with_noun(total.calls, "call")
        ));
        self.add_words(&format!(
            "{} tokens in: {} from the cache{}, {} written to it, {} neither · {} out",
            group_thousands(total.input_tokens),
            group_thousands(total.cache_read_tokens),
            share(total.cache_read_tokens, total.input_tokens),
            group_thousands(total.cache_written_tokens),
            group_thousands(total.fresh_tokens()),
            group_thousands(total.output_tokens)
        ));
    }

    fn add_breaks(&mut self, spending: &Spending) {
        let breaks = &spending.breaks;
        if spending.total.calls == 0 {
            return;
        }
        self.add_heading("What broke the prompt cache");
        if breaks.total.breaks == 0 {
            self.add_words("Nothing: each request found what the one before it had left.");
            return;
        }
        self.add_words(&format!(
            "{}, {} tokens billed again: {}, {} % of the cost",
            count_with_noun(breaks.total.breaks, "break"),
            group_thousands(breaks.total.tokens),
            cents(breaks.total.cost),
            breaks.share_percent
        ));
        self.out.push('\n');
        let head = [
            Column::words("reason", MIN_WORDS),
            Column::figure("cost"),
            Column::figure("breaks"),
            Column::figure("tokens"),
            Column::words("what helps", MIN_WORDS),
        ];
        let rows = breaks.reasons.iter().map(|sum| {
            vec![
                sum.reason.map_or("", |reason| reason.as_str()).to_owned(),
                cents(sum.cost),
                group_thousands(sum.breaks),
                short_count(sum.tokens),
                sum.reason.map_or("", |reason| reason.advice()).to_owned(),
            ]
        });
        self.add_table(&head, &rows.collect::<Vec<_>>());
        self.add_heading("The dearest breaks");
        self.add_dearest_breaks(&breaks.dearest);
    }

    /// When, how much, why and where. In a narrow terminal the place stands below, for without it nobody finds the break.
    fn add_dearest_breaks(&mut self, rows: &[BreakRow]) {
        let is_narrow = self.columns < NARROW;
        let mut head = vec![
            Column::words("when", MIN_WORDS),
            Column::figure("cost"),
            Column::figure("tokens"),
            Column::words("reason", MIN_WORDS),
        ];
        if !is_narrow {
            head.push(Column::words("file and line", MIN_WORDS));
        }
        let place = |row: &BreakRow| format!("{}:{}", file_name(&row.file), row.line);
        let room = self.columns.saturating_sub(60).max(20);
        let cells = rows.iter().map(|row| {
            let pause = row
                .pause_seconds
                .filter(|_| row.reason == BreakReason::Paused);
            let reason = match pause {
                Some(seconds) => format!("paused {}", duration(seconds)),
                None => row.reason.as_str().to_owned(),
            };
            vec![
                row.at.clone(),
                cents(row.cost),
                short_count(row.tokens),
                reason,
                clip_start(&place(row), room),
            ]
        });
        if !is_narrow {
            self.add_table(&head, &cells.collect::<Vec<_>>());
            return;
        }
        let cells: Vec<_> = cells.collect();
        let table = format_table(&head, &cells, self.columns.saturating_sub(2));
        let places = std::iter::once(None).chain(rows.iter().map(Some));
        for (line, row) in table.lines().zip(places) {
            self.out.push_str(&format!("  {line}\n"));
            if let Some(row) = row {
                let place = clip_start(&one_line(&place(row)), self.columns.saturating_sub(4));
                self.out.push_str(&format!("    {place}\n"));
            }
        }
    }

    fn add_policy(&mut self, policy: &PolicySavings) {
        self.add_heading("What a policy would have saved");
        if policy.calls == 0 {
            self.add_words(
                "Not known: no call of the dearest sessions could be compiled again. Their models are not in the catalogue, or \
                 their histories not in the logs.",
            );
            return;
        }
        let saved = policy.saved_percent();
        let verdict = match saved < 0.0 {
            true => format!("would have cost {} % more", -saved),
            false => format!("would have saved {saved} % of the input's cost"),
        };
        self.add_words(&format!(
            "`{}` ({}) {verdict}.",
            policy.policy, policy.description
        ));
        self.out.push('\n');
        let head = [
            Column::words("input, by prediction", MIN_WORDS),
            Column::figure("cost"),
            Column::figure("tokens"),
        ];
        let rows = [
            ("as it was sent", policy.predicted, policy.predicted_tokens),
            ("under the policy", policy.with_policy, policy.policy_tokens),
        ];
        let rows = rows.map(|(what, cost, tokens)| {
            vec![what.to_owned(), cents(cost), group_thousands(tokens)]
        });
        self.add_table(&head, &rows);
        self.out.push('\n');
        let skipped = match policy.skipped_calls {
            0 => String::new(),
            calls => format!(", {} could not be", group_thousands(calls)),
        };
        let sessions = match policy.sessions {
            1 => "the dearest session".to_owned(),
            many => format!("the {} dearest sessions", group_thousands(many)),
        };
        let dearer = match policy.dearer_sessions {
            0 => String::new(),
            sessions => format!(
                "In {} it costs more, {} in all. ",
                count_with_noun(sessions, "session"),
                cents(policy.dearer)
            ),
        };
        self.add_words(&format!(
            "{} of {sessions} replayed without a model{skipped}. {dearer}As they were sent they were billed {}; the prediction is {} \
             that. Not in it: the answers, which are taken to be the same, their quality, and calls to read what was shortened.",
            count_with_noun(policy.calls, "call"),
            cents(policy.billed),
            policy.prediction_error()
        ));
    }

    fn add_days(&mut self, spending: &Spending) {
        if spending.days.is_empty() {
            return;
        }
        let skipped = spending.days.len().saturating_sub(LISTED);
        self.add_heading(match skipped {
            0 => "By day",
            _ => "By day, the last ones",
        });
        let most = spending
            .days
            .iter()
            .map(|day| day.tally.cost.pico_dollars());
        let most = most.max().unwrap_or(0).max(1);
        let mut head = tally_head("day");
        head.push(Column::words("", MIN_WORDS));
        let rows = spending.days.iter().skip(skipped).map(|day| {
            let mut row = tally_row(&day.name, &day.tally);
            let bar = day
                .tally
                .cost
                .pico_dollars()
                .saturating_mul(BAR)
                .div_ceil(most);
            row.push("█".repeat(usize::try_from(bar).unwrap_or(0)));
            row
        });
        self.add_table(&head, &rows.collect::<Vec<_>>());
    }

    fn add_groups(&mut self, heading: &str, what: &'static str, groups: &[SpendingGroup]) {
        if groups.is_empty() {
            return;
        }
        self.add_heading(heading);
        let rows = groups.iter().take(LISTED);
        let rows: Vec<_> = rows
            .map(|group| tally_row(&group.name, &group.tally))
            .collect();
        self.add_table(&tally_head(what), &rows);
        if groups.len() > LISTED {
            let more = group_thousands((groups.len() - LISTED) as u64);
            self.add_words(&format!("and {more} more, with --json"));
        }
    }

    fn add_sessions(&mut self, spending: &Spending) {
        if spending.dearest_sessions.is_empty() {
            return;
        }
        self.add_heading("The dearest sessions");
        let head = [
            Column::words("began", MIN_WORDS),
            Column::figure("cost"),
            Column::words("title", MIN_WORDS),
            Column::figure("calls"),
            Column::figure("breaks"),
            Column::words("folder", MIN_WORDS),
        ];
        let rows = spending.dearest_sessions.iter().map(|row| {
            let title = if row.title.is_empty() {
                &row.id
            } else {
                &row.title
            };
            vec![
                row.first.clone(),
                cost_cell(&row.tally),
                one_line(title),
                group_thousands(row.tally.calls),
                cents(row.break_cost),
                clip_start(&row.project, 30),
            ]
        });
        self.add_table(&head, &rows.collect::<Vec<_>>());
    }

    fn add_estimates(&mut self, spending: &Spending) {
        if spending.estimates.is_empty() {
            return;
        }
        self.add_heading("Logs that report no usage: estimates, in no sum above");
        let head = [
            Column::words("format", MIN_WORDS),
            Column::figure("sessions"),
            Column::figure("calls"),
            Column::figure("tokens in"),
            Column::figure("out"),
        ];
        let rows = spending.estimates.iter().map(|row| {
            let mut cells = vec![row.format.to_string(), group_thousands(row.sessions)];
            cells.push(group_thousands(row.calls));
            // Marked, for they were counted by us and not by whoever billed them.
            let tokens = [row.input_tokens, row.output_tokens];
            cells.extend(tokens.map(|tokens| format!("~{}", group_thousands(tokens))));
            cells
        });
        self.add_table(&head, &rows.collect::<Vec<_>>());
    }

    fn add_notes(&mut self, spending: &Spending) {
        let files = &spending.files;
        let others = match files.others {
            0 => String::new(),
            others => format!(", {} passed over", count_with_noun(others, "other file")),
        };
        let mut notes = vec![format!(
            "{} read{others}",
            count_with_noun(files.logs, "log")
        )];
        let mut note = |count: u64, what: &str, rest: &str| {
            if count > 0 {
                notes.push(format!("{} {rest}", count_with_noun(count, what)));
            }
        };
        note(
            spending.total.unpriced_calls,
            "call",
            "of models without a price: their cost is not in it",
        );
        note(
            spending.copied_calls,
            "answer",
            "in copies of sessions, counted once",
        );
        note(
            spending.unfinished_calls,
            "answer",
            "whose log breaks off: their output is at least what is shown",
        );
        self.out.push('\n');
        for note in &notes {
            self.add_words(note);
        }
        for damaged in files.damaged.iter().take(LISTED) {
            let lines = match damaged.lines {
                0 => String::new(),
                lines => format!(", {}", count_with_noun(lines, "damaged line")),
            };
            self.add_words(&one_line(&format!(
                "damaged: {}: {}{lines}",
                damaged.file, damaged.what
            )));
        }
        if files.damaged.len() > LISTED {
            let more = group_thousands((files.damaged.len() - LISTED) as u64);
            self.add_words(&format!("and {more} more damaged files, with --json"));
        }
    }
}

fn tally_head(what: &'static str) -> Vec<Column> {
    let mut head = vec![Column::words(what, MIN_WORDS)];
    head.extend(["cost", "calls", "in", "cached", "out"].map(Column::figure));
    head
}

fn tally_row(name: &str, tally: &Tally) -> Vec<String> {
    let name = if name.is_empty() { "not said" } else { name };
    vec![
        clip_start(&one_line(name), 40),
        cost_cell(tally),
        group_thousands(tally.calls),
        short_count(tally.input_tokens),
        share(tally.cache_read_tokens, tally.input_tokens)
            .trim_matches([' ', '(', ')'])
            .to_owned(),
        short_count(tally.output_tokens),
    ]
}

/// What a sum cost; a dash where nothing of it has a price, a plus where some has none.
fn cost_cell(tally: &Tally) -> String {
    match (tally.is_unpriced(), tally.unpriced_calls) {
        (true, _) => "no price".to_owned(),
        (false, 0) => cents(tally.cost),
        (false, _) => format!("{}+", cents(tally.cost)),
    }
}

/// Dollars to the cent, or to a hundredth of one where that would be nothing.
fn cents(money: Money) -> String {
    let pico = money.pico_dollars();
    if pico > 0 && pico < 10_000_000_000 {
        return money.to_rounded_string();
    }
    let cents = pico.saturating_add(5_000_000_000) / 10_000_000_000;
    let whole = u64::try_from(cents / 100).unwrap_or(u64::MAX);
    format!("${}.{:02}", group_thousands(whole), cents % 100)
}

/// ` (88 %)`; nothing of nothing.
fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => String::new(),
        whole => format!(" ({} %)", u128::from(part) * 100 / u128::from(whole)),
    }
}

/// Three figures or so: `9,412`, `512k`, `4.51M`, `1.20B`.
fn short_count(count: u64) -> String {
    match count {
        0..10_000 => group_thousands(count),
        10_000..1_000_000 => format!("{}k", count / 1_000),
        1_000_000..1_000_000_000 => format!("{}.{:02}M", count / 1_000_000, count / 10_000 % 100),
        _ => format!(
            "{}.{:02}B",
            group_thousands(count / 1_000_000_000),
            count / 10_000_000 % 100
        ),
    }
}

/// A time as people say it: `45 s`, `88 min`, `3 h`, `2 d`.
fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..7_200 => format!("{} min", seconds / 60),
        7_200..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

fn file_name(path: &str) -> String {
    let name = Path::new(path).file_name();
    name.map_or_else(
        || path.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// The end of a text that is too wide: of a path it says more than the beginning.
fn clip_start(text: &str, columns: usize) -> String {
    if display_width(text) <= columns {
        return text.to_owned();
    }
    // One column is kept for the mark that something is missing.
    let mut left = columns.saturating_sub(1);
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        let Some(rest) = left.checked_sub(c.width().unwrap_or(0)) else {
            break;
        };
        (left, start) = (rest, at);
    }
    format!("…{}", text.get(start..).unwrap_or_default())
}
