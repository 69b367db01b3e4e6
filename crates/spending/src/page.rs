//! Spending as one page.
//!
//! The page is a single file: no scripts, no links, nothing to load, and its own policy forbids them. It follows the reader's
//! choice of dark or light, and wide tables scroll within themselves. Every part of a picture has its figure in a table too.
//! Titles, folders and names of models come from logs and are never markup.

use std::fmt::Write as _;

use contexture_catalogue::Money;
use contexture_report::escape_html;
use contexture_report::number_format::{count_with_noun, group_thousands};

use crate::figures::{BreakFigures, PolicySavings, SessionRow, Spending, SpendingGroup, Tally};

const STYLE: &str = include_str!("page.css");

/// How many rows a table of models or folders has at most; the rest is one row.
const LISTED: usize = 20;

/// Draws spending as an HTML page.
#[must_use]
pub fn render_page(spending: &Spending) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>What the agents cost</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>What the agents cost</h1>\n{span}{facts}{days}{breaks}{policy}{models}{projects}{sessions}{estimates}{notes}\
         </main>\n</body>\n</html>\n",
        span = span_line(spending),
        facts = facts(spending),
        days = day_bars(spending),
        breaks = break_section(spending),
        policy = spending
            .policy
            .as_ref()
            .map_or_else(String::new, policy_section),
        models = group_table("By model", "model", &spending.models),
        projects = group_table("By folder", "folder", &spending.projects),
        sessions = session_table(&spending.dearest_sessions),
        estimates = estimate_table(spending),
        notes = note_list(spending),
    )
}

/// Dollars to the cent.
fn cents(money: Money) -> String {
    let cents = money.pico_dollars().saturating_add(5_000_000_000) / 10_000_000_000;
    let whole = u64::try_from(cents / 100).unwrap_or(u64::MAX);
    format!("${}.{:02}", group_thousands(whole), cents % 100)
}

/// The cost of a sum; a dash where nothing of it has a price.
fn cost_cell(tally: &Tally) -> String {
    match (tally.is_unpriced(), tally.unpriced_calls) {
        (true, _) => "no price".to_owned(),
        (false, 0) => cents(tally.cost),
        (false, _) => format!("{} +", cents(tally.cost)),
    }
}

fn span_line(spending: &Spending) -> String {
    let span = match spending.first.is_empty() {
        true => "no calls".to_owned(),
        false => format!(
            "{} to {} ({})",
            escape_html(&spending.first),
            escape_html(&spending.last),
            escape_html(&spending.time_zone)
        ),
    };
    let filters: String = spending
        .filters
        .iter()
        .map(|filter| format!(" · {}", escape_html(filter)))
        .collect();
    format!("<p class=\"dim\">{span}{filters}</p>\n")
}

fn facts(spending: &Spending) -> String {
    let total = &spending.total;
    let share = |part: u64| match total.input_tokens {
        0 => String::new(),
        whole => format!("{} %", u128::from(part) * 100 / u128::from(whole)),
    };
    let facts = [
        (cost_cell(total), "at list prices".to_owned()),
        (
            group_thousands(spending.sessions),
            format!("sessions, {}", count_with_noun(total.calls, "call")),
        ),
        (group_thousands(total.input_tokens), "tokens in".to_owned()),
        (
            share(total.cache_read_tokens),
            format!(
                "of them from the cache: {}",
                group_thousands(total.cache_read_tokens)
            ),
        ),
        (
            group_thousands(total.output_tokens),
            "tokens out".to_owned(),
        ),
        (
            cents(spending.breaks.total.cost),
            format!(
                "lost to {}: {} % of all",
                count_with_noun(spending.breaks.total.breaks, "cache break"),
                spending.breaks.share_percent
            ),
        ),
    ];
    let mut out = "<div class=\"facts\">\n".to_owned();
    for (figure, words) in facts {
        let _ = writeln!(
            out,
            "<div><b>{}</b>{}</div>",
            escape_html(&figure),
            escape_html(&words)
        );
    }
    out.push_str("</div>\n");
    out
}

/// A bar for each day, as high as its cost; by tokens where nothing has a price.
fn day_bars(spending: &Spending) -> String {
    // Calls without a time are in the table alone.
    let days: Vec<&SpendingGroup> = spending
        .days
        .iter()
        .filter(|day| !day.name.is_empty())
        .collect();
    let (Some(first), Some(last)) = (days.first(), days.last()) else {
        return String::new();
    };
    let by_cost = days.iter().any(|day| day.tally.cost > Money::ZERO);
    let weight = |day: &SpendingGroup| match by_cost {
        true => day.tally.cost.pico_dollars(),
        false => u128::from(day.tally.input_tokens),
    };
    let most = days.iter().map(|day| weight(day)).max().unwrap_or(1).max(1);
    let mut out = "<section>\n<h2>By day</h2>\n<div class=\"days\">".to_owned();
    for day in &days {
        // At least one per cent, so that a day is seen.
        let height = (weight(day).saturating_mul(100) / most).max(1);
        let _ = write!(
            out,
            "<span style=\"height:{height}%\" title=\"{}: {}, {}\"></span>",
            escape_html(&day.name),
            escape_html(&cost_cell(&day.tally)),
            count_with_noun(day.tally.calls, "call")
        );
    }
    let _ = writeln!(
        out,
        "</div>\n<p class=\"ends\"><span>{}</span><span>{}</span></p>\n<details><summary>The figures</summary>{}</details>\n\
         </section>",
        escape_html(&first.name),
        escape_html(&last.name),
        tally_table(
            "day",
            spending
                .days
                .iter()
                .map(|day| (day.name.as_str(), &day.tally))
        )
    );
    out
}

/// A table of sums.
fn tally_table<'a>(what: &str, rows: impl Iterator<Item = (&'a str, &'a Tally)>) -> String {
    let mut out = format!(
        "<div class=\"scroll\"><table>\n<tr><th>{what}</th><th class=\"n\">cost</th><th class=\"n\">calls</th>\
         <th class=\"n\">tokens in</th><th class=\"n\">from cache</th><th class=\"n\">written</th>\
         <th class=\"n\">tokens out</th></tr>\n"
    );
    for (name, tally) in rows {
        let name = if name.is_empty() { "not said" } else { name };
        let _ = write!(
            out,
            "<tr><td class=\"t\">{}</td><td class=\"n\">{}</td>",
            escape_html(name),
            cost_cell(tally)
        );
        let figures = [
            tally.calls,
            tally.input_tokens,
            tally.cache_read_tokens,
            tally.cache_written_tokens,
            tally.output_tokens,
        ];
        for figure in figures {
            let _ = write!(out, "<td class=\"n\">{}</td>", group_thousands(figure));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
    out
}

fn group_table(heading: &str, what: &str, groups: &[SpendingGroup]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let rows = groups.iter().take(LISTED);
    let rows = rows.map(|group| (group.name.as_str(), &group.tally));
    let more = match groups.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(
            "<p class=\"dim\">and {} more, in the JSON document</p>\n",
            group_thousands(more as u64)
        ),
    };
    format!(
        "<section>\n<h2>{heading}</h2>\n{}{more}</section>\n",
        tally_table(what, rows)
    )
}

fn break_section(spending: &Spending) -> String {
    let breaks = &spending.breaks;
    if spending.total.calls == 0 {
        return String::new();
    }
    let mut out = "<section>\n<h2>What broke the prompt cache</h2>\n".to_owned();
    if breaks.total.breaks == 0 {
        out.push_str(
            "<p>Nothing: each request found what the one before it had left.</p>\n</section>\n",
        );
        return out;
    }
    let _ = writeln!(
        out,
        "<p>{}, {} tokens billed again: {}, {} % of the cost.</p>",
        count_with_noun(breaks.total.breaks, "break"),
        group_thousands(breaks.total.tokens),
        cents(breaks.total.cost),
        breaks.share_percent
    );
    out.push_str(&reason_bar(breaks));
    out.push_str(&reason_table(breaks));
    out.push_str(&dearest_breaks(breaks));
    out.push_str("</section>\n");
    out
}

/// A bar of all that breaks cost, a part for each reason.
fn reason_bar(breaks: &BreakFigures) -> String {
    // At least 1, since shares are divided by it: breaks of models without a price cost nothing that is known.
    let whole = breaks.total.cost.pico_dollars().max(1);
    let mut out = "<div class=\"bar\">".to_owned();
    for (class, sum) in breaks.reasons.iter().enumerate() {
        // Whole numbers: the same report gives the same page on every machine.
        let share = sum.cost.pico_dollars().saturating_mul(100_000) / whole;
        let _ = write!(
            out,
            "<span class=\"r{class}\" style=\"width:{}.{:03}%\" title=\"{}\"></span>",
            share / 1_000,
            share % 1_000,
            sum.reason.map_or("", |reason| reason.as_str())
        );
    }
    out.push_str("</div>\n");
    out
}

fn reason_table(breaks: &BreakFigures) -> String {
    let mut out = "<div class=\"scroll\"><table>\n<tr><th>reason</th><th class=\"n\">cost</th><th class=\"n\">breaks</th>\
         <th class=\"n\">tokens billed again</th><th>what helps</th></tr>\n"
        .to_owned();
    for (class, sum) in breaks.reasons.iter().enumerate() {
        let _ = writeln!(
            out,
            "<tr><td><i class=\"r{class}\"></i> {}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"t\">{}</td></tr>",
            sum.reason.map_or("", |reason| reason.as_str()),
            cents(sum.cost),
            group_thousands(sum.breaks),
            group_thousands(sum.tokens),
            sum.reason.map_or("", |reason| reason.advice())
        );
    }
    out.push_str("</table></div>\n");
    out
}

fn dearest_breaks(breaks: &BreakFigures) -> String {
    let mut out = "<h2>The dearest breaks</h2>\n<div class=\"scroll\"><table>\n<tr><th>when</th><th class=\"n\">cost</th>\
        <th>reason</th><th class=\"n\">tokens</th><th>file and line</th></tr>\n"
        .to_owned();
    for row in &breaks.dearest {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"t\">{}:{}</td></tr>",
            escape_html(&row.at),
            cents(row.cost),
            row.reason.as_str(),
            group_thousands(row.tokens),
            escape_html(&row.file),
            row.line
        );
    }
    out.push_str("</table></div>\n");
    out
}

fn policy_section(policy: &PolicySavings) -> String {
    if policy.calls == 0 {
        return "<section>\n<h2>What a policy would have saved</h2>\n<p>Not known: no call of the dearest sessions could be \
                compiled again.</p>\n</section>\n"
            .to_owned();
    }
    let saved = policy.saved_percent();
    let words = match saved < 0.0 {
        true => format!("It would have cost <b>{} % more</b>.", -saved),
        false => format!("It would have saved <b>{saved} %</b> of the input's cost."),
    };
    let rows = policy_rows(policy);
    // Admitted where there is something to admit.
    let dearer = match policy.dearer_sessions {
        0 => String::new(),
        sessions => format!(
            "In {} the policy costs more, {} in all. ",
            count_with_noun(sessions, "session"),
            cents(policy.dearer)
        ),
    };
    format!(
        "<section>\n<h2>What a policy would have saved</h2>\n<p>{words} Policy <b>{}</b>: {}.</p>\n\
         <p class=\"dim\">Replayed: {} of {}; {} could not be. The prediction for the calls as they were is {} the bill. {dearer}Answers are taken to be the same; their quality and calls to read \
         what was shortened are not in it.</p>\n\
         <div class=\"scroll\"><table>\n<tr><th>input of these calls</th><th class=\"n\">cost</th><th class=\"n\">tokens</th></tr>\n\
         {rows}</table></div>\n</section>\n",
        escape_html(&policy.policy),
        escape_html(&policy.description),
        count_with_noun(policy.calls, "call"),
        count_with_noun(policy.sessions, "session"),
        count_with_noun(policy.skipped_calls, "call"),
        policy.prediction_error(),
    )
}

/// The three sums that are compared. A bill has no prediction of its tokens.
fn policy_rows(policy: &PolicySavings) -> String {
    let rows = [
        (
            "as billed, by the logs",
            cents(policy.billed),
            String::new(),
        ),
        (
            "as it was sent, predicted",
            cents(policy.predicted),
            group_thousands(policy.predicted_tokens),
        ),
        (
            "under the policy, predicted",
            cents(policy.with_policy),
            group_thousands(policy.policy_tokens),
        ),
    ];
    rows.iter()
        .map(|(what, cost, tokens)| {
            format!(
                "<tr><td>{what}</td><td class=\"n\">{cost}</td><td class=\"n\">{tokens}</td></tr>\n"
            )
        })
        .collect()
}

fn session_table(sessions: &[SessionRow]) -> String {
    if sessions.is_empty() {
        return String::new();
    }
    let mut out = "<section>\n<h2>The dearest sessions</h2>\n<div class=\"scroll\"><table>\n<tr><th>began</th>\
        <th class=\"n\">cost</th><th class=\"n\">breaks</th><th class=\"n\">calls</th><th>title</th><th>folder</th></tr>\n"
        .to_owned();
    for row in sessions {
        let title = if row.title.is_empty() {
            &row.id
        } else {
            &row.title
        };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"t\">{}</td>\
             <td class=\"t\">{}</td></tr>",
            escape_html(&row.first),
            cost_cell(&row.tally),
            cents(row.break_cost),
            group_thousands(row.tally.calls),
            escape_html(title),
            escape_html(&row.project)
        );
    }
    out.push_str("</table></div>\n</section>\n");
    out
}

fn estimate_table(spending: &Spending) -> String {
    if spending.estimates.is_empty() {
        return String::new();
    }
    let mut out = "<section>\n<h2>Logs that report no usage</h2>\n<p class=\"dim\">Estimates, in none of the sums above: each \
        answer is taken to have been given the whole history before it.</p>\n<div class=\"scroll\"><table>\n<tr><th>format</th>\
        <th class=\"n\">sessions</th><th class=\"n\">calls</th><th class=\"n\">tokens in</th><th class=\"n\">tokens out</th></tr>\n"
        .to_owned();
    for row in &spending.estimates {
        let _ = write!(out, "<tr><td>{}</td>", row.format);
        for figure in [row.sessions, row.calls, row.input_tokens, row.output_tokens] {
            let _ = write!(out, "<td class=\"n\">{}</td>", group_thousands(figure));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n</section>\n");
    out
}

fn note_list(spending: &Spending) -> String {
    let mut notes = vec![
        "Tokens are those that the logs report; cost is theirs by list prices, without discounts or subscriptions.".to_owned(),
    ];
    let files = &spending.files;
    notes.push(format!(
        "{} read, {} passed over.",
        count_with_noun(files.logs, "log"),
        count_with_noun(files.others, "other file")
    ));
    if spending.total.unpriced_calls > 0 {
        notes.push(format!(
            "{} of models without a price in the catalogue: their tokens are counted, their cost is not known.",
            count_with_noun(spending.total.unpriced_calls, "call")
        ));
    }
    if spending.copied_calls > 0 {
        notes.push(format!(
            "{} in copies of sessions, counted once.",
            count_with_noun(spending.copied_calls, "answer")
        ));
    }
    // Said because it makes the sum too low, and nobody would see that from the figures.
    if spending.unfinished_calls > 0 {
        notes.push(format!(
            "{} whose output is not all in the log: output tokens are at least what is shown.",
            count_with_noun(spending.unfinished_calls, "answer")
        ));
    }
    for damaged in &files.damaged {
        notes.push(format!("Damaged: {}: {}.", damaged.file, damaged.what));
    }
    let notes: String = notes
        .iter()
        .map(|note| format!("<li>{}</li>\n", escape_html(note)))
        .collect();
    format!("<section>\n<h2>Notes</h2>\n<ul>\n{notes}</ul>\n</section>\n")
}
