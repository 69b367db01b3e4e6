//! What calls cost: by day, model, key and conversation, what policies saved or lost, and the dearest breaks of a cached prefix.

use futures_util::future::join5;
use maud::{Markup, html};

use crate::api::{Api, ApiError};
use crate::document::View;
use crate::exchange::{Parameters, Reply};
use crate::figures::{encode, money, number, printable, share, short_id, time, words};
use crate::layout::{Screen, Viewer, empty_state, figure, link, page};

/// Lengths of time that a reader may choose, as the API writes them.
const PERIODS: [(&str, &str); 4] = [
    ("1d", "a day"),
    ("7d", "a week"),
    ("30d", "a month"),
    ("90d", "three months"),
];
const DEFAULT_PERIOD: &str = "30d";
/// Newest calls among which breaks are looked for: the largest page of the API.
const CALLS: &str = "500";
/// Rows of a table.
const ROWS: usize = 20;
const BREAKS: usize = 10;

pub(crate) async fn show(
    api: &impl Api,
    viewer: &Viewer,
    query: &Parameters,
) -> Result<Reply, ApiError> {
    let since = query
        .get("since")
        .filter(|since| PERIODS.iter().any(|(known, _)| known == since));
    let since = since.unwrap_or(DEFAULT_PERIOD);
    let conversation = query.get("conversation");
    let usage = |by: &str| {
        link(
            "/api/v1/usage",
            &[
                ("by", Some(by)),
                ("since", Some(since)),
                ("conversation", conversation),
            ],
        )
    };
    let calls = [
        ("include", Some("band")),
        ("limit", Some(CALLS)),
        ("since", Some(since)),
        ("conversation", conversation),
    ];
    let [days, models, keys, conversations] = ["day", "model", "key", "conversation"].map(usage);
    let calls = link("/api/v1/calls", &calls);
    let by_conversation = async {
        match conversation {
            // Of one conversation they would be the total.
            Some(_) => Ok(None),
            None => api.get(&conversations).await.map(Some),
        }
    };
    let (days, models, keys, by_conversation, calls) = join5(
        api.get(&days),
        api.get(&models),
        api.get(&keys),
        by_conversation,
        api.get(&calls),
    )
    .await;
    let (days, calls) = (days?, calls?);
    let total = days.view().at("total");
    let content = html! {
        h1 { "Money" @if let Some(id) = conversation { " " small { "of " a href={ "/ui/c/" (encode(id)) } { (id) } } } }
        (period_choice(since, conversation))
        @if total.count("calls") == 0 {
            (empty_state("No calls in this time", &html! { "Choose a longer time above. Calls through the proxy are counted, and those that programs record." }))
        } @else {
            (totals(total))
            (day_section(days.view()))
            (group_section("By model", "model", models?.view(), |_| None))
            (group_section("By key", "key", keys?.view(), |_| None))
            @if let Some(groups) = by_conversation? {
                (group_section("By conversation", "conversation", groups.view(), |id| Some(format!("/ui/c/{}", encode(id)))))
            }
            (break_section(calls.view()))
        }
    };
    Ok(Reply::page(page(viewer, Screen::Money, "Money", &content)))
}

fn period_choice(since: &str, conversation: Option<&str>) -> Markup {
    html! {
        nav.choice aria-label="Time" { @for (value, name) in PERIODS {
            a href=(link("/ui/money", &[("since", Some(value)), ("conversation", conversation)])) aria-current=[(value == since).then_some("true")] { (name) }
        } }
    }
}

fn totals(total: View<'_>) -> Markup {
    let (input, read, predicted) = (
        total.count("input_tokens"),
        total.count("cache_read_tokens"),
        total.count("predicted_read_tokens"),
    );
    html! {
        dl.figures.large {
            (figure("spent", &money(total.text_of("dollars"))))
            (figure("saved by policies", &saved(total)))
            (figure("calls", &number(total.count("calls"))))
            (figure("without an answer", &html! { span.bad[total.count("failed") > 0] { (number(total.count("failed"))) } }))
            (figure("from the cache", &share(read, input)))
            (figure("predicted from the cache", &share(predicted, input)))
        }
    }
}

/// Formats the savings; a loss is marked as one.
fn saved(sum: View<'_>) -> Markup {
    match sum.text_of("saved_dollars") {
        // A policy may cost more than it saves; a page that hid that would be an advertisement.
        Some(lost) if lost.starts_with('-') => html! { span.bad { (money(Some(lost))) } },
        saved => money(saved),
    }
}

fn day_section(days: View<'_>) -> Markup {
    let groups: Vec<View<'_>> = days.list("groups").collect();
    // Bars are to the dearest day, not to a round number: their lengths are compared, not read.
    let most = groups.iter().map(dollars_of).fold(0.0, f64::max);
    html! {
        section { h2 { "By day" }
            div.wide tabindex="0" role="region" aria-label="By day" { table {
                (sum_head("day (UTC)"))
                tbody { @for group in groups.iter().rev().take(92) { tr {
                    th scope="row" { (group.text("day")) }
                    (sum_cells(*group))
                    td.bar aria-hidden="true" { (bar(dollars_of(group), most)) }
                } } }
            } }
        }
    }
}

/// A bar of a width without a style, which a strict policy would not let through.
fn bar(value: f64, most: f64) -> Markup {
    let width = if most > 0.0 {
        value / most * 100.0
    } else {
        0.0
    };
    html! { svg.spark width="120" height="10" { rect x="0" y="0" height="10" width={ (format!("{width:.1}")) "%" } {} } }
}

fn group_section(
    title: &str,
    name: &str,
    groups: View<'_>,
    link_of: impl Fn(&str) -> Option<String>,
) -> Markup {
    let mut rows: Vec<View<'_>> = groups.list("groups").collect();
    // The dearest first; sums are decimals, and a page compares them only to sort.
    rows.sort_by(|one, two| dollars_of(two).total_cmp(&dollars_of(one)));
    let all = rows.len();
    html! {
        section { h2 { (title) @if all > ROWS { " " small { "the dearest " (ROWS) " of " (number(all as u64)) } } }
            div.wide tabindex="0" role="region" aria-label=(title) { table {
                (sum_head(name))
                tbody { @for row in rows.iter().take(ROWS) { tr {
                    th scope="row" { @let value = row.text(name);
                        @match (value.is_empty(), link_of(value)) {
                            (true, _) => span.unknown { "none" },
                            (_, Some(path)) => a href=(path) { (printable(value)) },
                            (_, None) => (printable(value)),
                        }
                    }
                    (sum_cells(*row)) td {}
                } } }
            } }
        }
    }
}

fn sum_head(name: &str) -> Markup {
    html! { thead { tr {
        th scope="col" { (name) } th.n scope="col" { "calls" } th.n scope="col" { "tokens in" } th.n scope="col" { "cached" }
        th.n scope="col" { "tokens out" } th.n scope="col" { "spent" } th.n scope="col" { "saved" } td {}
    } } }
}

fn sum_cells(sum: View<'_>) -> Markup {
    html! {
        td.n { (number(sum.count("calls"))) @if sum.count("failed") > 0 { " " span.bad { "(" (sum.count("failed")) " failed)" } } }
        td.n { (number(sum.count("input_tokens"))) }
        td.n { (share(sum.count("cache_read_tokens"), sum.count("input_tokens"))) }
        td.n { (number(sum.count("output_tokens"))) }
        td.n { (money(sum.text_of("dollars"))) }
        td.n { (saved(sum)) }
    }
}

fn break_section(calls: View<'_>) -> Markup {
    let mut breaks: Vec<View<'_>> = calls
        .list("calls")
        .filter(|call| cost_of_break(*call) > 0)
        .collect();
    breaks.sort_by_key(|call| std::cmp::Reverse(cost_of_break(*call)));
    html! {
        section { h2 { "Dearest breaks of a cached prefix " small { "of the newest " (CALLS) " calls" } }
            @if breaks.is_empty() { p.hint { "None of them cost anything." } }
            @else { div.wide tabindex="0" role="region" aria-label="Dearest breaks" { table {
                thead { tr { th scope="col" { "call" } th scope="col" { "conversation" } th scope="col" { "why" } th.n scope="col" { "tokens read again" } th.n scope="col" { "cost" } th scope="col" { "when (UTC)" } } }
                tbody { @for call in breaks.iter().take(BREAKS) {
                    @let broken = call.at("band").at("prefix_break");
                    tr {
                        th scope="row" { a href={ "/ui/call/" (encode(call.text("id"))) } { (short_id(call.text("id"))) } }
                        td { @if let Some(id) = call.text_of("conversation") { a href={ "/ui/c/" (encode(id)) } { (id) } } }
                        td { (words(broken.text("reason"))) }
                        td.n { (number(broken.count("lost_tokens"))) } td.n { (money(broken.text_of("dollars"))) } td { (time(call.text("at"))) }
                    }
                } }
            } } }
        }
    }
}

/// What a sum comes to, to sort and to draw by; the page shows the decimal itself.
fn dollars_of(sum: &View<'_>) -> f64 {
    sum.text("dollars").parse().unwrap_or_default()
}

fn cost_of_break(call: View<'_>) -> u64 {
    call.at("band").at("prefix_break").count("pico_dollars")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn losses_are_admitted() {
        let lost = json!({"saved_dollars": "-0.5"});
        let shown = saved(View::new(&lost)).into_string();
        assert!(shown.contains("class=\"bad\"") && shown.contains("−$0.5000"));
    }

    #[test]
    fn the_dearest_break_is_first() {
        let call = |id: &str, pico: u64| json!({"id": id, "band": {"prefix_break": {"reason": "history_trimmed", "pico_dollars": pico}}});
        let calls =
            json!({"calls": [call("req_aaaaaa", 5), {"id": "req_none"}, call("req_bbbbbb", 50)]});
        let shown = break_section(View::new(&calls)).into_string();
        let at = |id: &str| shown.find(id).unwrap();
        assert!(at("bbbbbb") < at("aaaaaa") && !shown.contains("req_none"));
    }
}
