//! A call: its window, its figures, the request as it was sent and as it came, the difference to the call before, and the answer.

use contexture_wire::Format;
use contexture_wire::ResponseMode;
use maud::{Markup, html};
use serde_json::json;

use crate::api::{Api, ApiError, Method};
use crate::document::{Document, View};
use crate::exchange::Reply;
use crate::figures::{
    clip, duration, encode, known_number, money, number, per_cent, printable, short_id, time, words,
};
use crate::layout::{Screen, Viewer, empty_state, figure, link, page};
use crate::screens::messages::{item_block, rest_of};
use crate::screens::thread::outcome_class;
use crate::screens::what_if::window_form;
use crate::window::Window;

/// Characters of a request that the page shows; the whole one is a link away.
const REQUEST_CHARACTERS: usize = 20_000;

pub(crate) async fn show(api: &impl Api, viewer: &Viewer, id: &str) -> Result<Reply, ApiError> {
    let path = format!(
        "/api/v1/calls/{}?include=sent,came,report,answer",
        encode(id)
    );
    let found = api.get(&path).await?;
    let call = found.view();
    let before = find_call_before(api, call).await;
    // A page that cannot compare still shows the call.
    let difference = match &before {
        Some(before) => Some(compare_calls(api, before, call.text("id")).await),
        None => None,
    };
    let content = html! {
        (head(call))
        (window_section(call))
        (counts_section(call))
        (difference_section(call, before.as_deref(), difference.as_ref()))
        (answer_section(call))
        (request_section(call, "sent", "As it was sent"))
        (request_section(call, "came", "As it came"))
        (report_section(call))
        (curl_section(call))
    };
    let title = format!("Call {}", short_id(call.text("id")));
    Ok(Reply::page(page(
        viewer,
        Screen::Conversations,
        &title,
        &content,
    )))
}

/// The call of the same conversation that came before; `None` if there is none, or the call has no conversation.
async fn find_call_before(api: &impl Api, call: View<'_>) -> Option<String> {
    let asked = [
        ("conversation", Some(call.text_of("conversation")?)),
        // The list is of calls before this time, so the call itself is not on it.
        ("until", Some(call.text("at"))),
        ("limit", Some("1")),
    ];
    let found = api.get(&link("/api/v1/calls", &asked)).await.ok()?;
    let before = found.view().list("calls").next()?;
    Some(before.text("id").to_owned())
}

/// Compares the requests of two calls as the provider's cache does.
pub(crate) async fn compare_calls(
    api: &impl Api,
    first: &str,
    second: &str,
) -> Result<Document, ApiError> {
    let body = json!({"first": {"call": first}, "second": {"call": second}});
    api.send(Method::Post, "/api/v1/diff", Some(&body)).await
}

fn head(call: View<'_>) -> Markup {
    let conversation = call.text_of("conversation");
    let tokens = call.at("tokens");
    let read = per_cent(tokens.count("cache_read"), tokens.count("input"));
    html! {
        nav.crumbs aria-label="Where this is" {
            a href="/ui/" { "Conversations" } " / "
            @if let Some(id) = conversation {
                a href=(link(&format!("/ui/c/{}", encode(id)), &[("call", Some(call.text("id")))])) { (id) } " / "
            }
            span { (short_id(call.text("id"))) }
        }
        h1 { "Call of " (printable(call.text_of("model").unwrap_or("no model"))) }
        p.sub {
            span.outcome.(outcome_class(call.text("outcome"))) { (call.text("outcome")) }
            @if let Some(status) = call.number("status") { " · HTTP " (status) }
            @if let Some(refusal) = call.text_of("refusal") { " · " span.bad { (words(refusal)) } }
            @if let Some(finish) = call.text_of("finish") { " · stopped: " (words(finish)) }
            " · " (time(call.text("at"))) " UTC · " code { (call.text("id")) }
        }
        dl.figures {
            (figure("tokens in", &known_number(tokens.number("input"))))
            (figure("from the cache", &html! { @match read { Some(share) => { (share) " %" }, None => "–" } }))
            (figure("tokens out", &known_number(tokens.number("output"))))
            (figure("cost", &money(call.text_of("dollars"))))
            (figure("first byte", &duration(call.number("first_byte_ms"))))
            (figure("duration", &duration(call.number("duration_ms"))))
            (figure("attempts", &number(call.count("attempts"))))
            (figure("upstream", &html! { (printable(call.text("upstream"))) }))
            (figure("policy", &html! { (printable(call.text_of("policy").unwrap_or("–"))) }))
            (figure("key", &html! { (printable(call.text_of("key").unwrap_or("–"))) }))
        }
        @for (flag, text) in [
            ("rewritten", "Something else was sent than came."),
            ("estimated", "The tokens are an estimate: the provider reported none."),
            ("damaged", "Bytes of the answer could not be read."),
            ("own", "No client made this call: it is a further round of a server tool, or a summary."),
        ] { @if call.is(flag) { p.hint { (text) } } }
    }
}

fn window_section(call: View<'_>) -> Markup {
    let Some(window) = Window::of_call(call) else {
        return html! {};
    };
    let thread = call.text_of("conversation");
    let thread = thread.map(|id| format!("/ui/c/{}", encode(id)));
    // Its texts are on the page of the conversation.
    let part = |at: usize| {
        let query = [
            ("call", Some(call.text("id"))),
            ("part", Some(&*at.to_string())),
        ];
        thread.as_ref().map(|path| link(path, &query) + "#part")
    };
    html! {
        section.panel {
            h2 { "Window" }
            (window.summary())
            (window.picture("window"))
            (window.left_out())
            (window.table(part))
            (window_form(call))
        }
    }
}

/// What was predicted, beside what the provider reported.
fn counts_section(call: View<'_>) -> Markup {
    let (sent, passed, tokens) = (
        call.at("prediction").at("sent"),
        call.at("prediction").at("passed"),
        call.at("tokens"),
    );
    if sent.is_missing() {
        return html! {};
    }
    let all = |side: View<'_>| side.count("read") + side.count("written") + side.count("fresh");
    // Providers report what was read and written; the rest is what they read anew.
    let fresh = tokens.number("input").map(|input| {
        input
            .saturating_sub(tokens.count("cache_read"))
            .saturating_sub(tokens.count("cache_written"))
    });
    let rows = [
        (
            "read from the cache",
            passed.count("read"),
            sent.count("read"),
            tokens.number("cache_read"),
        ),
        (
            "written to the cache",
            passed.count("written"),
            sent.count("written"),
            tokens.number("cache_written"),
        ),
        ("neither", passed.count("fresh"), sent.count("fresh"), fresh),
        ("all input", all(passed), all(sent), tokens.number("input")),
    ];
    html! {
        section {
            h2 { "Predicted and reported" }
            div.wide tabindex="0" role="region" aria-label="Predicted and reported tokens" { table {
                thead { tr { th scope="col" { "input tokens" } th.n scope="col" { "had it gone as it came" } th.n scope="col" { "predicted, as sent" } th.n scope="col" { "reported" } th.n scope="col" { "off by" } } }
                tbody { @for (name, passed, sent, reported) in rows { tr {
                    th scope="row" { (name) } td.n { (number(passed)) } td.n { (number(sent)) } td.n { (known_number(reported)) }
                    td.n { @if let Some(share) = reported.and_then(|reported| per_cent(reported.abs_diff(sent), reported.max(sent))) { (share) " %" } @else { "–" } }
                } } }
                tfoot { tr {
                    th scope="row" { "cost of the input" } td.n { (money(call.at("prediction").text_of("passed_dollars"))) }
                    td.n { (money(call.at("prediction").text_of("sent_dollars"))) } td {} td {}
                } }
            } }
        }
    }
}

fn difference_section(
    call: View<'_>,
    before: Option<&str>,
    difference: Option<&Result<Document, ApiError>>,
) -> Markup {
    html! {
        section {
            h2 { "Difference to the call before" }
            @match (before, difference) {
                (Some(before), Some(Ok(difference))) => {
                    (difference_block(difference.view()))
                    p.links { a href=(link("/ui/compare", &[("a", Some(before)), ("b", Some(call.text("id")))])) { "Both side by side" } }
                },
                (Some(_), Some(Err(error))) => p.hint { "They cannot be compared: " (printable(&error.detail)) "." },
                _ => p.hint { "This is the first call of its conversation, or it has none." },
            }
        }
    }
}

/// Where a request leaves the cache of another one, and what that costs.
pub(crate) fn difference_block(difference: View<'_>) -> Markup {
    let first = difference.at("first_difference");
    html! {
        p.summary {
            @if difference.is("holds") { strong.good { "The cached prefix holds" } ": " }
            @else { strong.bad { "The cached prefix breaks" } ": " }
            (number(difference.count("read"))) " of " (number(difference.count("tokens"))) " tokens read from the cache"
            @if difference.count("rebilled") > 0 {
                ", " (number(difference.count("rebilled"))) " paid again: " (money(difference.text_of("rebilled_dollars")))
                " instead of " (money(difference.text_of("cached_dollars")))
            }
        }
        @if !first.is_missing() {
            p { "First difference at " code { (printable(first.text("path"))) } ", byte " (number(first.count("byte"))) " of " (number(first.count("bytes")))
                @if let Some(tool) = first.text_of("tool") { ", tool " code { (printable(tool)) } } " · " (words(first.text("reason"))) }
            div.pair {
                div { h3 { "before" } pre.removed tabindex="0" { (clip(first.text("before"), 2_000).0) } }
                div { h3 { "now" } pre.added tabindex="0" { (clip(first.text("after"), 2_000).0) } }
            }
            p.hint { (printable(first.text("hint"))) }
        }
        @if !difference.is("exact") { p.hint { "A request was made again of what is stored, and may not be what was sent byte for byte." } }
    }
}

fn answer_section(call: View<'_>) -> Markup {
    let answer = call.at("answer");
    let conversation = call.text("conversation");
    html! {
        section {
            h2 { "Answer" }
            @match answer.text_of("missing") {
                Some(missing) => (empty_state("There is no answer to show", &html! { (printable(missing)) })),
                None => @for node in answer.list("items") { (item_block(conversation, node)) },
            }
        }
    }
}

fn request_section(call: View<'_>, view: &str, title: &str) -> Markup {
    let document = call.at(view);
    let request = document.at("request");
    let text = serde_json::to_string_pretty(request.json()).unwrap_or_default();
    let (shown, more) = clip(&text, REQUEST_CHARACTERS);
    html! {
        section {
            h2 { (title) " " small {
                @match document.at("exact").json().as_bool() {
                    Some(true) => "byte for byte",
                    Some(false) => "made again; not byte for byte what went over the wire",
                    None => "",
                }
            } }
            @match request.present() {
                None => p.hint { (printable(document.text_of("missing").unwrap_or("it is not known"))) },
                Some(_) => {
                    details.fold { summary { span.kind { "JSON" } span.state { (number(text.len() as u64)) " bytes, indented" } }
                        pre tabindex="0" { (shown) }
                        (rest_of(more))
                    }
                    p.links { a href={ "/ui/call/" (encode(call.text("id"))) "/" (view) ".json" } { "The whole request" } }
                },
            }
        }
    }
}

fn report_section(call: View<'_>) -> Markup {
    let document = call.at("report");
    let report = document.at("report");
    html! {
        section {
            h2 { "Report " small { "of the compiler" } }
            @match report.present() {
                None => p.hint { (printable(document.text_of("missing").unwrap_or("this request was not compiled"))) },
                Some(report) => {
                    @let omitted: Vec<View<'_>> = report.list("omitted").collect();
                    @let repairs: Vec<View<'_>> = report.list("repairs").collect();
                    p { "Epoch " (report.at("epoch").count("number")) @if report.at("epoch").is("opened") { ", opened by this call" } ": " (words(report.at("epoch").text("reason"))) }
                    @if omitted.is_empty() && repairs.is_empty() { p.hint { "Everything of the conversation was sent, and nothing had to be repaired." } }
                    @if !omitted.is_empty() {
                        h3 { "Not sent" }
                        ul { @for one in &omitted { li { "items " (one.count("first")) "–" (one.count("last")) ": " (words(one.text("reason"))) } } }
                    }
                    @if !repairs.is_empty() {
                        h3 { "Repaired" }
                        ul { @for one in &repairs { li { (printable(one.text("what"))) ": " (printable(one.text("why"))) } } }
                    }
                    details.fold { summary { span.kind { "JSON" } } (crate::screens::messages::json_block(report)) }
                },
            }
        }
    }
}

/// The call as a command, with the key from the environment.
fn curl_section(call: View<'_>) -> Markup {
    let Some(command) = curl_command(call) else {
        return html! {};
    };
    html! {
        section {
            h2 { "As a command" }
            details.fold { summary { span.kind { "curl" } span.state { "with the key of your environment" } }
                pre #curl tabindex="0" { (clip(&command, REQUEST_CHARACTERS).0) }
            }
            p.links { button.quiet type="button" hidden data-copy=(command) { "Copy as curl" } }
        }
    }
}

/// Returns the command that sends a request again to its provider; `None` where the request or its provider's address is not known.
fn curl_command(call: View<'_>) -> Option<String> {
    let format: Format = call.text("format").parse().ok()?;
    let request = call.at("sent").at("request").present()?;
    let profile = format.spec().http()?;
    // The stream is asked for in the body or in the path, as the provider has it.
    let mode = match request.is("stream") {
        true => ResponseMode::Stream,
        false => ResponseMode::Whole,
    };
    let steps = profile.path.call_steps(call.text("model"), mode);
    let path: Vec<String> = steps.iter().map(|step| encode(step)).collect();
    // The name of a variable, and never a key: what is copied ends in chats and tickets.
    let variable = profile.api_key_variables.first()?;
    let mut command = format!(
        "curl -sS '{}/{}'",
        profile.base_url.trim_end_matches('/'),
        path.join("/")
    );
    command += &format!(
        " \\\n  -H 'content-type: application/json' \\\n  -H \"{}: {}${variable}\"",
        profile.key_header, profile.key_prefix
    );
    if let Some((name, value)) = profile.version_header {
        command += &format!(" \\\n  -H '{name}: {value}'");
    }
    // In JSON a line break within a text is escaped, so no line of it can end the document.
    let body = serde_json::to_string_pretty(request.json()).ok()?;
    Some(format!(
        "{command} \\\n  --data-binary @- <<'REQUEST'\n{body}\nREQUEST\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_a_command_without_its_key() {
        let call = json!({"format": "anthropic", "model": "claude-sonnet-4-5",
            "sent": {"request": {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "it's\nREQUEST\n$(rm)"}]}}});
        let command = curl_command(View::new(&call)).unwrap();
        assert!(
            command.starts_with("curl -sS 'https://api.anthropic.com/v1/messages'"),
            "{command}"
        );
        assert!(
            command.contains("-H \"x-api-key: $ANTHROPIC_API_KEY\"")
                && command.contains("anthropic-version")
        );
        // Only the last line ends the document.
        assert_eq!(command.lines().filter(|line| *line == "REQUEST").count(), 1);
        assert!(
            curl_command(View::new(
                &json!({"format": "anthropic", "sent": {"request": null}})
            ))
            .is_none()
        );
    }
}
