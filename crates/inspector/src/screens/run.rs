//! A run: what it did when, as bars on a time axis in the rows of a table, with the calls that wait for a decision.

use maud::{Markup, html};

use crate::api::{Api, ApiError};
use crate::document::View;
use crate::exchange::Reply;
use crate::figures::{
    clip, duration, encode, milliseconds_of, money, number, per_mille, printable, short_id, time,
    words,
};
use crate::layout::{Screen, Viewer, empty_state, figure, link, page};
use crate::screens::runs::{status_class, waiting_call};

/// Rows of the timeline; what is left out is said.
const ROWS: usize = 500;
/// Characters of a result that are shown.
const RESULT_CHARACTERS: usize = 4_000;

pub(crate) async fn show(
    api: &impl Api,
    viewer: &Viewer,
    conversation: &str,
    id: &str,
) -> Result<Reply, ApiError> {
    let path = format!(
        "/api/v1/conversations/{}/runs/{}/timeline",
        encode(conversation),
        encode(id)
    );
    let found = api.get(&path).await?;
    let (document, run) = (found.view(), found.view().at("run"));
    let waiting = run.list("waiting");
    let content = html! {
        (show_head(document, run))
        @if waiting.clone().any(|call| call.at("decided").is_missing()) {
            section.panel.urgent { h2 { "Waiting for a decision" }
                @for call in waiting { (waiting_call(viewer, run, call)) }
            }
        }
        (show_timeline(document))
        @if let Some(text) = run.text_of("result").or(run.text_of("why")) {
            section { h2 { @if run.text_of("result").is_some() { "Result" } @else { "Why it ended" } } div.text dir="auto" { (clip(text, RESULT_CHARACTERS).0) } }
        }
    };
    let title = format!("Run of {}", run.text("agent"));
    Ok(Reply::page(page(viewer, Screen::Runs, &title, &content)))
}

fn show_head(document: View<'_>, run: View<'_>) -> Markup {
    let conversation = run.text("conversation");
    let thread = link(
        &format!("/ui/c/{}", encode(conversation)),
        &[("branch", run.text_of("branch"))],
    );
    let steps = document.list("spans");
    let steps = steps.filter(|span| span.text("what") == "model").count();
    html! {
        nav.crumbs aria-label="Where this is" { a href="/ui/runs" { "Runs" } " / " a href=(thread) { (conversation) } " / " span { (short_id(run.text("run"))) } }
        h1 { "Run of " (printable(run.text("agent"))) }
        p.sub { span.outcome.(status_class(run.text("status"))) { (words(run.text("status"))) } " · " (time(run.text("began"))) " UTC · " code { (run.text("run")) }
            @if let Some(parent) = run.text_of("parent") { " · child of " a href={ "/ui/runs/" (encode(conversation)) "/" (encode(parent)) } { (short_id(parent)) } }
        }
        dl.figures {
            (figure("steps of the model", &number(steps as u64)))
            (figure(if run.at("ended").is_missing() { "so far" } else { "took" }, &duration(run_length(run.text("began"), document.text("until")))))
            (figure("cost", &money(run.at("spent").text_of("cost"))))
        }
    }
}

/// Milliseconds from one time to another one.
fn run_length(began: &str, ended: &str) -> Option<u64> {
    let length = milliseconds_of(ended)? - milliseconds_of(began)?;
    u64::try_from(length).ok()
}

fn show_timeline(document: View<'_>) -> Markup {
    let (run, until) = (document.at("run"), document.text("until"));
    let began = run.text("began");
    let spans: Vec<View<'_>> = document.list("spans").collect();
    // A run that ends where it begins still has a picture.
    let whole = run_length(began, until).unwrap_or_default().max(1);
    html! {
        section {
            h2 { "Timeline " small { "a bar begins when what came before it was stored" } }
            @if spans.len() < 2 { (empty_state("Nothing was done yet", &html! { "A run that is queued begins once a program has its agent." })) }
            div.wide tabindex="0" role="region" aria-label="Timeline" { table.timeline {
                thead { tr {
                    th scope="col" { "what" } th.n scope="col" { "step" }
                    th.axis scope="col" { span { "0" } span { (duration(Some(whole / 2))) } span { (duration(Some(whole))) } }
                    th.n scope="col" { "from" } th.n scope="col" { "took" }
                } }
                tbody { @for span in spans.iter().take(ROWS) { (span_row(run, *span, (began, until), whole)) } }
            } }
            @if spans.len() > ROWS { p.hint { "The first " (ROWS) " of " (number(spans.len() as u64)) ". The API has the rest." } }
        }
    }
}

fn span_row(run: View<'_>, span: View<'_>, (began, until): (&str, &str), whole: u64) -> Markup {
    let from = run_length(began, span.text("began")).unwrap_or_default();
    let took = run_length(span.text("began"), span.text_of("ended").unwrap_or(until));
    let what = span.text("what");
    let conversation = run.text("conversation");
    let name = match (what, span.text_of("tool")) {
        ("model", _) => "model".to_owned(),
        ("approval", Some(tool)) => format!("decision about {tool}"),
        (_, Some(tool)) => tool.to_owned(),
        _ => format!("run of {}", span.text("agent")),
    };
    let x = per_mille(from, whole);
    // At least a pixel or two of a bar, so that what took no time is seen to have happened.
    let width = per_mille(took.unwrap_or_default(), whole).clamp(3, 1_000);
    html! {
        tr class=(row_class(what)) {
            th scope="row" { span class={ "by-" (span.count("depth").min(4)) } {
                @if let Some(node) = span.text_of("node") { a href={ "/ui/c/" (encode(conversation)) "/item/" (encode(node)) } { (printable(&name)) } }
                @else if what == "run" && span.text("run") != run.text("run") { a href={ "/ui/runs/" (encode(conversation)) "/" (encode(span.text("run"))) } { (printable(&name)) } }
                @else { (printable(&name)) }
            } }
            td.n { @if let Some(step) = span.number("step") { (step) } }
            td.bars aria-hidden="true" { svg width="100%" height="18" {
                rect class=(row_class(what)) x={ (x.min(997) / 10) "." (x.min(997) % 10) "%" } y="3" height="12" rx="2" width={ (width / 10) "." (width % 10) "%" } {}
            } }
            td.n { "+" (duration(Some(from))) }
            td.n { (duration(took)) @if span.at("ended").is_missing() { " …" } }
        }
    }
}

/// The class of what happened; words of a later version look like a run.
fn row_class(what: &str) -> &'static str {
    match what {
        "model" => "of-model",
        "tool" => "of-tool",
        "approval" => "of-approval",
        _ => "of-run",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bars_stand_where_things_happened() {
        let run = json!({"run": "a", "conversation": "c", "began": "2026-11-20T12:00:00Z"});
        let span = |what: &str, began: &str, ended: Option<&str>| {
            let span = json!({"what": what, "tool": "send<b>", "began": began, "ended": ended, "node": "1", "step": 2});
            let times = ("2026-11-20T12:00:00Z", "2026-11-20T12:00:10Z");
            span_row(View::new(&run), View::new(&span), times, 10_000).into_string()
        };
        let tool = span(
            "tool",
            "2026-11-20T12:00:02.5Z",
            Some("2026-11-20T12:00:05Z"),
        );
        assert!(
            tool.contains("x=\"25.0%\"") && tool.contains("width=\"25.0%\""),
            "{tool}"
        );
        assert!(tool.contains("send&lt;b&gt;") && tool.contains("2.5 s"));
        let waits = span("approval", "2026-11-20T12:00:05Z", None);
        assert!(
            waits.contains("width=\"50.0%\"")
                && waits.contains("decision about")
                && waits.contains('…')
        );
        // A clock that went back makes no bar outside of the picture.
        let odd = span("tool", "2026-11-20T11:00:00Z", Some("2026-11-20T10:00:00Z"));
        assert!(
            odd.contains("x=\"0.0%\"") && odd.contains("width=\"0.3%\""),
            "{odd}"
        );
    }
}
