//! Two calls side by side: their windows, and where the later one leaves the cache of the earlier one.

use maud::{Markup, html};

use crate::api::{Api, ApiError};
use crate::document::{Document, View};
use crate::exchange::{Parameters, Reply};
use crate::figures::{encode, money, printable, short_id, time};
use crate::layout::{Screen, Viewer, page};
use crate::screens::call::{compare_calls, difference_block};
use crate::window::Window;

pub(crate) async fn show(
    api: &impl Api,
    viewer: &Viewer,
    query: &Parameters,
) -> Result<Reply, ApiError> {
    let ids = [query.get("a"), query.get("b")];
    let [Some(first), Some(second)] = ids else {
        return Ok(Reply::page(page(
            viewer,
            Screen::None,
            "Compare",
            &form(ids),
        )));
    };
    let read = |id: &str| format!("/api/v1/calls/{}", encode(id));
    let (one, two) = (api.get(&read(first)).await?, api.get(&read(second)).await?);
    let difference = compare_calls(api, first, second).await;
    let content = html! {
        (form(ids))
        section.panel { h2 { "Difference" }
            @match &difference {
                Ok(difference) => (difference_block(difference.view())),
                Err(error) => p.hint { "They cannot be compared: " (printable(&error.detail)) "." },
            }
        }
        (side(&one, "first")) (side(&two, "second"))
    };
    Ok(Reply::page(page(viewer, Screen::None, "Compare", &content)))
}

fn form(ids: [Option<&str>; 2]) -> Markup {
    let [first, second] = ids;
    html! {
        h1 { "Compare two calls" }
        form.filters method="get" action="/ui/compare" {
            label.grow { span { "Earlier call" } input type="text" name="a" value=(first.unwrap_or_default()) placeholder="req_…" required; }
            label.grow { span { "Later call" } input type="text" name="b" value=(second.unwrap_or_default()) placeholder="req_…" required; }
            button type="submit" { "Compare" }
        }
    }
}

fn side(call: &Document, id: &str) -> Markup {
    let call: View<'_> = call.view();
    html! {
        section.panel {
            h2 { a href={ "/ui/call/" (encode(call.text("id"))) } { "Call " (short_id(call.text("id"))) } " "
                small { (printable(call.text("model"))) " · " (time(call.text("at"))) " · " (money(call.text_of("dollars"))) " · " a href={ "/ui/call/" (encode(call.text("id"))) "/what-if" } { "another window, model or policy" } } }
            @match Window::of_call(call) {
                Some(window) => { (window.summary()) (window.picture(id)) details.fold { summary { "Parts as a table" } (window.table(|_| None)) } },
                None => p.unknown { "What it was made of is not known." },
            }
        }
    }
}
