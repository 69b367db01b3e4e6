//! What is shown where nothing can be: an error in the API's words with what to do, and the page that asks for a key.

use maud::{Markup, html};

use crate::api::ApiError;
use crate::figures::printable;
use crate::layout::{Screen, Viewer, alert, bare_page, page};

/// Draws the page of an error. Without a viewer it has no navigation.
#[must_use]
pub fn failure_page(viewer: Option<&Viewer>, error: &ApiError) -> String {
    let title = match error.status {
        404 => "Not found",
        401 | 403 => "Not allowed",
        409 => "Somebody was faster",
        429 => "Too many requests",
        500.. => "The server failed",
        _ => "That is not possible",
    };
    let content = html! {
        div.narrow {
            h1 { (title) }
            p.lead { (printable(&error.detail)) "." }
            p { (advice(error)) }
            p.code { (error.status) " · " (printable(&error.code)) }
        }
    };
    match viewer {
        Some(viewer) => page(viewer, Screen::None, title, &content),
        None => bare_page(title, &content),
    }
}

fn advice(error: &ApiError) -> Markup {
    html! {
        @match error.status {
            404 => { "It may have been deleted, or belong to another owner. " a href="/ui/" { "All conversations" } },
            401 | 403 => { "Open this address yourself, or sign in with another key. " a href="/ui/" { "Start page" } },
            409 => { "Look at what is there now, and decide again. " a href="/ui/" { "All conversations" } },
            429 => "Wait a moment, then load the page again.",
            500.. => "The server's log says why.",
            _ => { a href="/ui/" { "All conversations" } },
        }
    }
}

/// Draws the page that asks for a key. `next` is the page that was wanted, and `refused` says why a key did not do.
#[must_use]
pub fn sign_in_page(next: &str, refused: Option<&str>) -> String {
    let content = html! {
        div.narrow {
            h1 { "Sign in" }
            p.lead { "This server shows its conversations to those who have a key." }
            @if let Some(refused) = refused { (alert(refused)) }
            form.stack method="post" action="/ui/sign-in" {
                input type="hidden" name="next" value=(next);
                label for="key" { "Key" }
                input #key type="password" name="key" autocomplete="current-password" required autofocus spellcheck="false";
                button.primary type="submit" { "Sign in" }
            }
            p.hint {
                "The key is exchanged for a cookie that no script can read. "
                code { "contexture keys new" } " makes a key; the scope " code { "read" } " is enough to look."
            }
            p.hint { "Came here by a link, and signed in already? " a href=(next) { "Continue" } }
        }
    };
    bare_page("Sign in", &content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_addresses_are_no_markup() {
        let error = ApiError {
            status: 404,
            code: "not_found".to_owned(),
            detail: "no <b>\u{202e}".to_owned(),
        };
        let page = failure_page(None, &error);
        assert!(page.contains("no &lt;b&gt;\u{fffd}") && !page.contains("<nav"));
        assert!(sign_in_page("/ui/\"><script>", None).contains("&quot;&gt;&lt;script&gt;"));
    }
}
