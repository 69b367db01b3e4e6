//! The conversations of an owner, the one that was written to last first; or what a search finds in them.

use maud::{Markup, html};

use crate::api::{Api, ApiError};
use crate::document::View;
use crate::exchange::{Parameters, Reply};
use crate::figures::{self, encode, money, number, printable, time};
use crate::layout::{Screen, Viewer, empty_state, link, page};

/// Conversations of one page.
const PAGE: &str = "50";
/// Hits of one page.
const HITS: &str = "30";

pub(crate) async fn show(
    api: &impl Api,
    viewer: &Viewer,
    query: &Parameters,
) -> Result<Reply, ApiError> {
    let content = match query.get("q") {
        Some(words) => search(api, words, query).await?,
        None => list(api, query).await?,
    };
    let content = html! { h1 { "Conversations" } (filters(query)) (content) };
    Ok(Reply::page(page(
        viewer,
        Screen::Conversations,
        "Conversations",
        &content,
    )))
}

fn filters(query: &Parameters) -> Markup {
    let value = |name: &str| query.get(name).unwrap_or_default().to_owned();
    html! {
        form.filters method="get" action="/ui/" role="search" {
            label.grow { span { "Search what was said" } input type="search" name="q" value=(value("q")); }
            label { span { "Title" } input type="text" name="title" value=(value("title")); }
            label { span { "Resource" } input type="text" name="resource" value=(value("resource")); }
            button type="submit" { "Find" }
            @if ["q", "title", "resource"].iter().any(|name| query.get(name).is_some()) { a.quiet href="/ui/" { "All" } }
        }
    }
}

async fn list(api: &impl Api, query: &Parameters) -> Result<Markup, ApiError> {
    let (title, resource) = (query.get("title"), query.get("resource"));
    let asked = [
        ("include", Some("overview")),
        ("limit", Some(PAGE)),
        ("title", title),
        ("resource", resource),
        ("after", query.get("after")),
    ];
    let found = api.get(&link("/api/v1/conversations", &asked)).await?;
    let document = found.view();
    let next = document.text_of("next");
    let next = next.map(|next| {
        link(
            "/ui/",
            &[
                ("title", title),
                ("resource", resource),
                ("after", Some(next)),
            ],
        )
    });
    let mut conversations = document.list("conversations").peekable();
    if conversations.peek().is_none() {
        return Ok(match &next {
            Some(next) => none_yet(next),
            None => nothing_found(title.or(resource).is_some()),
        });
    }
    Ok(html! {
        div.wide tabindex="0" role="region" aria-label="Conversations" { table.cards {
            thead { tr {
                th scope="col" { "conversation" } th scope="col" { "model" } th.n scope="col" { "messages" }
                th.n scope="col" { "branches" } th.n scope="col" { "calls" } th.n scope="col" { "tokens in" }
                th.n scope="col" { "cost" } th scope="col" { "last write (UTC)" }
            } }
            tbody { @for one in conversations { (row(one)) } }
        } }
        @if let Some(next) = next { p.pager { a href=(next) rel="next" { "Older conversations" } } }
    })
}

/// A page that looked at many conversations, of which none is wanted: older ones may be.
fn none_yet(next: &str) -> Markup {
    html! {
        p.hint { "None of the conversations that were looked at so far is like that." }
        p.pager { a href=(next) rel="next" { "Older conversations" } }
    }
}

fn nothing_found(is_filtered: bool) -> Markup {
    match is_filtered {
        true => empty_state(
            "No conversation is like that",
            &html! { a href="/ui/" { "Show all conversations" } },
        ),
        false => empty_state(
            "Nothing has been said yet",
            &html! {
                "Point a client at this server, or bring in what you have: " code { "contexture import ~/.claude/projects" }
            },
        ),
    }
}

fn row(one: View<'_>) -> Markup {
    let (overview, usage) = (one.at("overview"), one.at("overview").at("usage"));
    let id = one.text("id");
    // Conversations of the proxy have no title; what a person asked first tells them apart better than an id.
    let name = overview
        .text_of("preview")
        .or(one.text_of("title"))
        .unwrap_or(id);
    html! {
        tr {
            th scope="row" {
                a.name href={ "/ui/c/" (encode(id)) } { bdi { (printable(one.text_of("title").unwrap_or(name))) } }
                @if one.text_of("title").is_some() && name != id { div.preview { bdi { (printable(name)) } } }
                div.sub { (id) @if let Some(resource) = one.text_of("resource") { " · " bdi { (printable(resource)) } } }
            }
            td.model data-label="model" { @match overview.text_of("last_model") { Some(model) => (printable(model)), None => span.unknown { "no call" } } }
            td.n data-label="messages" { (number(one.count("messages"))) }
            td.n data-label="branches" { (number(one.count("branches"))) }
            td.n data-label="calls" { (number(usage.count("calls"))) @if usage.count("failed") > 0 { " " span.bad title="calls without an answer" { "(" (usage.count("failed")) " failed)" } } }
            td.n data-label="tokens in" { (number(usage.count("input_tokens"))) }
            td.n data-label="cost" { (money(usage.text_of("dollars"))) }
            td data-label="last write" { (time(one.text("updated"))) }
        }
    }
}

async fn search(api: &impl Api, words: &str, query: &Parameters) -> Result<Markup, ApiError> {
    let after = query.get("after");
    let asked = [
        ("query", Some(words)),
        ("limit", Some(HITS)),
        ("after", after),
    ];
    let found = api.get(&link("/api/v1/search", &asked)).await?;
    let document = found.view();
    let mut hits = document.list("hits").peekable();
    if hits.peek().is_none() {
        return Ok(empty_state(
            "Nothing was found",
            &html! { "Any of the words is enough, so none of them was ever said. " a href="/ui/" { "Show all conversations" } },
        ));
    }
    let next = document.text_of("next");
    let next = next.map(|next| link("/ui/", &[("q", Some(words)), ("after", Some(next))]));
    Ok(html! {
        ol.hits { @for hit in hits { (hit_row(hit)) } }
        // Said here because what is missing would otherwise be taken for "never said".
        @if !document.is("complete") { p.hint { "Only the newest candidates were searched." } }
        @if let Some(next) = next { p.pager { a href=(next) rel="next" { "More" } } }
    })
}

fn hit_row(hit: View<'_>) -> Markup {
    let (conversation, node) = (encode(hit.text("conversation")), encode(hit.text("id")));
    let snippet = hit.at("snippet");
    html! {
        li {
            p.snippet dir="auto" { (marked(snippet)) }
            p.sub {
                a href={ "/ui/c/" (conversation) } { (hit.text("conversation")) } " · "
                a href={ "/ui/c/" (conversation) "/item/" (node) } { (figures::words(hit.text("kind"))) } " · "
                (time(hit.text("created")))
                @if !hit.at("replaced").is_missing() { " · " span.bad { "a newer statement replaces this" } }
            }
        }
    }
}

/// A snippet with its matches marked.
fn marked(snippet: View<'_>) -> Markup {
    let text = snippet.text("text");
    let mut end_before = 0;
    let mut pieces = Vec::new();
    for range in snippet.list("matches") {
        let bound = |at: usize| {
            let number = range.json().get(at).and_then(serde_json::Value::as_u64);
            number.and_then(|number| usize::try_from(number).ok())
        };
        // Ranges are bytes of this text and in order; another one would be a fault, and marks nothing.
        let (Some(start), Some(end)) = (bound(0), bound(1)) else {
            continue;
        };
        let (Some(plain), Some(hit)) = (text.get(end_before..start), text.get(start..end)) else {
            continue;
        };
        pieces.push((plain, hit));
        end_before = end;
    }
    let rest = text.get(end_before..).unwrap_or_default();
    html! { @for (plain, hit) in pieces { (printable(plain)) mark { (printable(hit)) } } (printable(rest)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn matches_are_marked_and_texts_are_no_markup() {
        let snippet =
            json!({"text": "a <b> late parcel", "matches": [[6, 10], [11, 17], [90, 99]]});
        let shown = marked(View::new(&snippet)).into_string();
        assert_eq!(shown, "a &lt;b&gt; <mark>late</mark> <mark>parcel</mark>");
    }

    #[test]
    fn a_conversation_without_calls_has_a_row() {
        let one = json!({"id": "a", "title": null, "messages": 3, "updated": "2026-11-20T12:00:00Z",
            "overview": {"preview": "<script>", "last_model": null, "usage": {"calls": 0, "dollars": "0"}}});
        let shown = row(View::new(&one)).into_string();
        assert!(
            shown.contains("&lt;script&gt;")
                && shown.contains("no call")
                && shown.contains("/ui/c/a")
        );
    }
}
