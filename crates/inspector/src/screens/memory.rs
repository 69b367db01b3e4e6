//! What a conversation remembers: notes of its resource, its path and its owner, and the standing rules with the message they came from.

use futures_util::future::join4;
use maud::{Markup, html};

use crate::api::{Api, ApiError};
use crate::document::{Document, View};
use crate::exchange::{Parameters, Reply};
use crate::figures::{encode, number, printable, time};
use crate::layout::{Screen, Viewer, action, alert, empty_state, page};

pub(crate) async fn show(
    api: &impl Api,
    viewer: &Viewer,
    id: &str,
    _: &Parameters,
) -> Result<Reply, ApiError> {
    let base = format!("/api/v1/conversations/{}", encode(id));
    let [resource, path, owner] =
        ["resource", "path", "owner"].map(|scope| format!("{base}/memory?scope={scope}"));
    let rules = format!("{base}/rules");
    let (rules, resource, path, owner) = join4(
        api.get(&rules),
        api.get(&resource),
        api.get(&path),
        api.get(&owner),
    )
    .await;
    // Without its rules there is no such conversation; a kind of notes may be missing alone.
    let rules = rules?;
    let content = html! {
        nav.crumbs aria-label="Where this is" { a href="/ui/" { "Conversations" } " / " a href={ "/ui/c/" (encode(id)) } { (id) } " / " span { "Memory" } }
        h1 { "Memory of " (id) }
        (rules_section(viewer, id, rules.view()))
        (notes_section("Notes of its resource", &resource))
        (notes_section("Notes that rewind with the path", &path))
        (notes_section("Notes of the owner", &owner))
    };
    Ok(Reply::page(page(
        viewer,
        Screen::Conversations,
        "Memory",
        &content,
    )))
}

fn rules_section(viewer: &Viewer, id: &str, rules: View<'_>) -> Markup {
    let mut list = rules.list("rules").peekable();
    html! {
        section { h2 { "Standing rules " small { "what the user asked to hold from then on" } }
            @if list.peek().is_none() { (empty_state("No rule stands", &html! { "A sentence such as “always answer in German” becomes one." })) }
            ul.rules { @for rule in list {
                li.dropped[rule.is("dropped")] {
                    blockquote dir="auto" { (printable(rule.text("text"))) }
                    p.sub {
                        "turn " (rule.count("turn")) " · " @if rule.is("express") { "as a rule" } @else { "as a wish" }
                        @if rule.is("dropped") { " · dropped" }
                        @if let Some(node) = rule.text_of("node") { " · " a href={ "/ui/c/" (encode(id)) "/item/" (encode(node)) } { "its message" } }
                    }
                    @let (what, name) = if rule.is("dropped") { ("restore-rule", "Restore") } else { ("drop-rule", "Drop") };
                    (action(viewer, &format!("/ui/c/{}/{what}", encode(id)), &[("rule", rule.text("id"))], &html! { button.quiet type="submit" { (name) } }))
                }
            } }
        }
    }
}

fn notes_section(title: &str, notes: &Result<Document, ApiError>) -> Markup {
    html! {
        section { h2 { (title) }
            @match notes {
                Err(error) => (alert(&error.detail)),
                Ok(notes) => {
                    @if notes.view().list("notes").next().is_none() { p.hint { "None." } }
                    @else { dl.notes { @for note in notes.view().list("notes") { (note_block(note)) } } }
                },
            }
        }
    }
}

fn note_block(note: View<'_>) -> Markup {
    let earlier: Vec<View<'_>> = note.list("earlier").collect();
    html! {
        dt { (printable(note.text("key"))) @if let Some(about) = note.text_of("description") { " " small { (printable(about)) } } }
        dd {
            div.text dir="auto" { (printable(note.text("value"))) }
            p.sub {
                (time(note.text("updated"))) " · written " (number(note.count("updates"))) " times"
                @if let Some(importance) = note.number("importance") { " · importance " (importance) }
            }
            @if !earlier.is_empty() {
                details.fold { summary { "What it said before" }
                    @for was in &earlier { p.sub { (time(was.text("from"))) " to " (time(was.text("until"))) } div.text dir="auto" { (printable(was.text("value"))) } }
                }
            }
        }
    }
}
