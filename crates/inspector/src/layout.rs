//! What every page has: head, navigation, messages, the forms that change something.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::assets::ASSETS;
use crate::figures::{encode, printable, short_id};

/// Who looks at a page.
#[derive(Clone, Debug, Default)]
pub struct Viewer {
    /// The owner whose conversations are shown.
    pub owner: String,
    /// The name of the key with which the reader signed in; `None` where no key is needed.
    pub key: Option<String>,
    /// What the reader may change.
    pub access: WriteAccess,
}

/// Whether pages have forms that change something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WriteAccess {
    /// Pages only show.
    #[default]
    ReadOnly,
    /// Forms carry this token, without which nothing is changed.
    Token(String),
}

impl Viewer {
    /// Returns the token that forms carry; `None` where nothing may be changed.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        match &self.access {
            WriteAccess::ReadOnly => None,
            WriteAccess::Token(token) => Some(token),
        }
    }
}

/// The screens that every page leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Screen {
    Conversations,
    Runs,
    Money,
    Skills,
    None,
}

const SCREENS: [(Screen, &str, &str); 4] = [
    (Screen::Conversations, "/ui/", "Conversations"),
    (Screen::Runs, "/ui/runs", "Runs"),
    (Screen::Money, "/ui/money", "Money"),
    (Screen::Skills, "/ui/skills", "Skills"),
];

/// Draws a whole page.
pub(crate) fn page(viewer: &Viewer, screen: Screen, title: &str, content: &Markup) -> String {
    let navigation = html! {
        nav aria-label="Screens" {
            @for (one, path, name) in SCREENS {
                a href=(path) aria-current=[(one == screen).then_some("page")] { (name) }
            }
        }
        div.who {
            span.owner title="whose conversations these are" { (printable(&viewer.owner)) }
            @if viewer.token().is_none() { span.badge title="This server lets pages only read: see `inspector` in the configuration" { "read only" } }
            @if viewer.key.is_some() {
                form method="post" action="/ui/sign-out" { button.quiet type="submit" { "Sign out" } }
            }
        }
    };
    frame(title, &navigation, content)
}

/// Draws a page for somebody who is not known yet, or cannot be shown more.
pub(crate) fn bare_page(title: &str, content: &Markup) -> String {
    frame(title, &PreEscaped(String::new()), content)
}

fn frame(title: &str, navigation: &Markup, content: &Markup) -> String {
    let assets = &*ASSETS;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (printable(title)) " · Contexture" }
                link rel="icon" href={ "/ui/assets/" (assets.icon.name) };
                link rel="stylesheet" href={ "/ui/assets/" (assets.style.name) };
                // A module is deferred: the page is drawn before it runs, and it stands without it.
                script type="module" src={ "/ui/assets/" (assets.module.name) } {}
            }
            body {
                // First, so that a keyboard does not walk through the navigation of every page.
                a.skip href="#main" { "Skip to content" }
                header.top {
                    a.brand href="/ui/" {
                        img src={ "/ui/assets/" (assets.icon.name) } alt="" width="20" height="20";
                        "Contexture"
                    }
                    (navigation)
                }
                main #main { (content) }
            }
        }
    }
    .into_string()
}

/// A figure with its name, as one of a row.
pub(crate) fn figure(name: &str, value: &Markup) -> Markup {
    html! { div.figure { dt { (name) } dd { (value) } } }
}

/// A place where nothing is yet, and what makes something appear there.
pub(crate) fn empty_state(title: &str, advice: &Markup) -> Markup {
    html! { div.empty { p.title { (title) } p { (advice) } } }
}

/// Something that went wrong on a page that otherwise stands.
pub(crate) fn alert(text: &str) -> Markup {
    html! { p.alert role="alert" { (printable(text)) } }
}

/// A form that changes something; nothing where nothing may be changed.
pub(crate) fn action(
    viewer: &Viewer,
    path: &str,
    fields: &[(&str, &str)],
    controls: &Markup,
) -> Markup {
    html! {
        @if let Some(token) = viewer.token() {
            form.action method="post" action=(path) {
                input type="hidden" name="token" value=(token);
                @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
                (controls)
            }
        }
    }
}

/// What can be done at an item of a conversation, folded; nothing where nothing may be changed. `more` is what can be done besides.
pub(crate) fn node_menu(
    viewer: &Viewer,
    conversation: &str,
    node: &str,
    is_pinned: bool,
    more: &Markup,
) -> Markup {
    // Without a token the forms would only lead to a refusal.
    if viewer.token().is_none() {
        return html! {};
    }
    let path = format!("/ui/c/{}", encode(conversation));
    let (pin, pin_name) = match is_pinned {
        true => ("unpin", "Unpin"),
        false => ("pin", "Pin"),
    };
    let at = [("node", node)];
    html! {
        details.menu {
            summary aria-label={ "Actions at " (short_id(node)) } { "⋯" }
            div.actions {
                (action(viewer, &format!("{path}/rewind"), &at, &html! { button type="submit" { "Go back to here" } }))
                (action(viewer, &format!("{path}/{pin}"), &at, &html! { button type="submit" { (pin_name) } }))
                (action(viewer, &format!("{path}/branch"), &at, &html! {
                    input type="text" name="name" placeholder="name" aria-label="Name of the new branch" required maxlength="64";
                    button type="submit" { "Branch from here" }
                }))
                (more)
            }
        }
    }
}

/// A link with a query of these parameters; those without a value are left out.
pub(crate) fn link(path: &str, query: &[(&str, Option<&str>)]) -> String {
    let mut out = path.to_owned();
    let mut mark = '?';
    for (name, value) in query {
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            continue;
        };
        out.push(mark);
        out.push_str(name);
        out.push('=');
        out.push_str(&encode(value));
        mark = '&';
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_the_parameters_that_are_there() {
        let query = [("q", Some("a b&c")), ("after", None), ("title", Some(""))];
        assert_eq!(link("/ui/", &query), "/ui/?q=a%20b%26c");
    }

    #[test]
    fn titles_are_no_markup_and_forms_need_a_token() {
        let page = page(
            &Viewer::default(),
            Screen::None,
            "</title><script>",
            &html! {},
        );
        assert!(page.contains("&lt;/title&gt;&lt;script&gt;") && page.contains("read only"));
        let form = |viewer: &Viewer| action(viewer, "/ui/x", &[("node", "\"1")], &html! {});
        assert_eq!(form(&Viewer::default()).into_string(), "");
        let writer = Viewer {
            access: WriteAccess::Token("t".to_owned()),
            ..Viewer::default()
        };
        assert!(
            form(&writer)
                .into_string()
                .contains("name=\"node\" value=\"&quot;1\"")
        );
    }
}
