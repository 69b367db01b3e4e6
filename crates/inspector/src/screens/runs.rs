//! Runs of agents: how each ended, what it spent, and the calls that wait for somebody's decision.

use maud::{Markup, html};

use crate::api::{Api, ApiError};
use crate::document::View;
use crate::exchange::{Parameters, Reply};
use crate::figures::{clip, encode, money, printable, short_id, time, words};
use crate::layout::{Screen, Viewer, empty_state, link, page};
use crate::screens::messages::json_block;

/// Runs of one page.
const PAGE: &str = "50";

pub(crate) async fn show(
    api: &impl Api,
    viewer: &Viewer,
    query: &Parameters,
) -> Result<Reply, ApiError> {
    let conversation = query.get("conversation");
    let asked = [
        ("conversation", conversation),
        ("limit", Some(PAGE)),
        ("after", query.get("after")),
    ];
    let found = api.get(&link("/api/v1/runs", &asked)).await?;
    let document = found.view();
    let runs: Vec<View<'_>> = document.list("runs").collect();
    let waiting = |run: &&View<'_>| {
        run.list("waiting")
            .any(|call| call.at("decided").is_missing())
    };
    let content = html! {
        h1 { "Runs" @if let Some(id) = conversation { " " small { "of " a href={ "/ui/c/" (encode(id)) } { (id) } } } }
        @if runs.is_empty() {
            (empty_state("No run yet", &html! { "An agent's run appears with its first step, and its calls that wait for a decision are on top." }))
        }
        // On top: somebody waits for it, and nothing else here is urgent.
        @if runs.iter().any(|run| waiting(&run)) {
            section.panel.urgent { h2 { "Waiting for a decision" }
                @for run in runs.iter().filter(waiting) { @for call in run.list("waiting") { (waiting_call(viewer, *run, call)) } }
            }
        }
        @if !runs.is_empty() { (run_table(&runs)) }
        @if let Some(next) = document.text_of("next") {
            p.pager { a href=(link("/ui/runs", &[("conversation", conversation), ("after", Some(next))])) rel="next" { "Older runs" } }
        }
    };
    Ok(Reply::page(page(viewer, Screen::Runs, "Runs", &content)))
}

pub(crate) fn waiting_call(viewer: &Viewer, run: View<'_>, call: View<'_>) -> Markup {
    let path = format!(
        "/ui/runs/{}/{}/decide",
        encode(run.text("conversation")),
        encode(run.text("run"))
    );
    html! {
        article.waiting {
            h3 { code { (printable(call.text("tool"))) } " " small { "asked by " (printable(run.text("agent"))) " in "
                a href={ "/ui/c/" (encode(run.text("conversation"))) } { (run.text("conversation")) } } }
            (json_block(call.at("arguments")))
            @if let Some(decided) = call.at("decided").present() { (decision(decided)) }
            @else if let Some(token) = viewer.token() {
                form.decide method="post" action=(path) {
                    input type="hidden" name="token" value=(token);
                    input type="hidden" name="call" value=(call.text("call"));
                    label.grow { span { "Reason, for the model, if you deny" } input type="text" name="reason" maxlength="500"; }
                    // Two buttons of one form: the one that is pressed is sent, also without scripts.
                    button.primary type="submit" name="decision" value="allow" { "Allow" }
                    button.danger type="submit" name="decision" value="deny" { "Deny" }
                }
            }
            (who_decides(viewer))
        }
    }
}

/// Says who may decide, to those who may and to those who may not.
fn who_decides(viewer: &Viewer) -> Markup {
    html! {
        p.hint { @match (viewer.token(), &viewer.key) {
            (Some(_), Some(key)) => { "You may decide: your key " code { (printable(key)) } " has the scope " code { "write" } ". So may everybody whose key has it, and the first decision holds." },
            (Some(_), None) => "You may decide: this server has no keys, so everybody who uses this machine may. The first decision holds.",
            (None, _) => { "Here you can only look. Whoever has a key of this owner with the scope " code { "write" } " may decide, by the API or on a page of a server that lets pages write." },
        } }
    }
}

fn decision(decided: View<'_>) -> Markup {
    html! {
        p.sub {
            (decided.text("what")) @if let Some(reason) = decided.text_of("reason") { ": " (printable(reason)) }
            @if let Some(by) = decided.text_of("by") { " · by " (printable(by)) } " · " (time(decided.text("at")))
        }
    }
}

fn run_table(runs: &[View<'_>]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Runs" { table.cards {
            thead { tr { th scope="col" { "agent" } th scope="col" { "state" } th scope="col" { "conversation" } th scope="col" { "result" } th.n scope="col" { "cost" } th scope="col" { "began (UTC)" } th scope="col" { "ended (UTC)" } } }
            tbody { @for run in runs { tr {
                th scope="row" { a.name href={ "/ui/runs/" (encode(run.text("conversation"))) "/" (encode(run.text("run"))) } { (printable(run.text("agent"))) } div.sub { (short_id(run.text("run"))) @if let Some(parent) = run.text_of("parent") { " · child of " (short_id(parent)) } } }
                td data-label="state" { span.outcome.(status_class(run.text("status"))) { (words(run.text("status"))) } }
                td data-label="conversation" { a href=(link(&format!("/ui/c/{}", encode(run.text("conversation"))), &[("branch", run.text_of("branch"))])) { (run.text("conversation")) } }
                td data-label="result" { (clip(run.text_of("result").or(run.text_of("why")).unwrap_or("–"), 160).0) }
                td.n data-label="cost" { (money(run.at("spent").text_of("cost"))) }
                td data-label="began" { (time(run.text("began"))) }
                td data-label="ended" { @match run.text_of("ended") { Some(at) => (time(at)), None => "–" } }
            } } }
        } }
    }
}

pub(crate) fn status_class(status: &str) -> &'static str {
    match status {
        "completed" => "good",
        "failed" | "aborted" => "bad",
        _ => "plain",
    }
}
