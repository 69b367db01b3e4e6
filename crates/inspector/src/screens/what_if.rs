//! A call as it would have been with another window, model or policy: both windows, what each costs, and the policy to keep.

use contexture_report::number_format::group_thousands;
use futures_util::future::join;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use crate::api::{Api, ApiError, Method};
use crate::document::{Document, View};
use crate::exchange::{Parameters, Reply};
use crate::figures::{
    encode, format_dollars, known_number, money, number, printable, short_id, time,
};
use crate::layout::{Screen, Viewer, alert, link, page};
use crate::policy_toml::write_policy;
use crate::screens::call::difference_block;
use crate::window::Window;

/// Values of the field `policy` that are no names of policies, which have `policy:` in front.
const AS_THEN: &str = "";
const NO_POLICY: &str = "none";
const NAMED: &str = "policy:";

/// The name of the policy that is offered to be kept: a person gives it a better one.
const NEW_POLICY: &str = "what-if";

/// Members of a stored policy that a policy of one call cannot have: folders and secrets are the server's matter.
const SERVERS_OWN: [&str; 2] = ["skills", "redact"];

pub(crate) async fn show(
    api: &impl Api,
    viewer: &Viewer,
    id: &str,
    query: &Parameters,
) -> Result<Reply, ApiError> {
    let path = format!("/api/v1/calls/{}", encode(id));
    // At once: each of them waits for the database alone.
    let (found, policies) = join(api.get(&path), api.get("/api/v1/policies")).await;
    let found = found?;
    let call = found.view();
    // Without the list of policies there is still the choice of none.
    let policies = policies.unwrap_or_default();
    let choice = Choice::read(query);
    let both = match choice.request(call, policies.view()) {
        Err(fault) => alert(&fault),
        Ok(body) => compare(api, call, &body, &choice, policies.view()).await,
    };
    let content = html! { (show_head(call)) (choice.form(call, policies.view())) (both) };
    let title = format!("What if: call {}", short_id(id));
    Ok(Reply::page(page(
        viewer,
        Screen::Conversations,
        &title,
        &content,
    )))
}

/// Asks for another window of a call, with a link to all that may be asked; nothing for a call of which no history is stored.
pub(crate) fn window_form(call: View<'_>) -> Markup {
    let known = ["model", "conversation", "response"].map(|member| call.text_of(member));
    if known.contains(&None) {
        return html! {};
    }
    let path = format!("/ui/call/{}/what-if", encode(call.text("id")));
    html! {
        // For the module too, which moves it to the call that it shows.
        form.filters.what-if method="get" action=(path) data-what-if {
            label { span { "What if the window were" } input type="text" inputmode="numeric" name="window" placeholder="such as 32k" required; }
            button type="submit" { "Try" }
            a.quiet href=(path) { "Another model or policy" }
        }
    }
}

fn show_head(call: View<'_>) -> Markup {
    let id = call.text("id");
    html! {
        nav.crumbs aria-label="Where this is" {
            a href="/ui/" { "Conversations" } " / "
            @if let Some(conversation) = call.text_of("conversation") {
                a href=(link(&format!("/ui/c/{}", encode(conversation)), &[("call", Some(id))])) { (conversation) } " / "
            }
            a href={ "/ui/call/" (encode(id)) } { (short_id(id)) } " / " span { "What if" }
        }
        h1 { "What if this call had been another?" }
        p.sub { (printable(call.text_of("model").unwrap_or("no model"))) " · " (time(call.text("at"))) " UTC · nothing is sent or stored" }
        p.quiet { "What a program gave with a call that it compiled itself (instructions, tools, parameters) is not known here: such a call looks smaller than it was." }
    }
}

/// What is to be otherwise. Empty is as it was.
struct Choice<'a> {
    window: Option<&'a str>,
    model: Option<&'a str>,
    policy: &'a str,
    keep_recent: Option<&'a str>,
    preview: Option<&'a str>,
    turns: Option<&'a str>,
}

impl<'a> Choice<'a> {
    fn read(query: &'a Parameters) -> Self {
        Self {
            window: query.get("window"),
            model: query.get("model"),
            policy: query.get("policy").unwrap_or(AS_THEN),
            keep_recent: query.get("keep_recent"),
            preview: query.get("preview"),
            turns: query.get("turns"),
        }
    }

    fn form(&self, call: View<'_>, policies: View<'_>) -> Markup {
        let field = |name: &str, label: &str, value: Option<&str>, hint: &str| {
            html! { label { span { (label) } input type="text" inputmode="numeric" name=(name) value=(value.unwrap_or_default()) placeholder=(hint); } }
        };
        let option = |value: &str, name: &str| {
            html! { option value=(value) selected[self.policy == value] { (printable(name)) } }
        };
        let model = call.text_of("model").unwrap_or_default();
        let as_then = match call.text_of("policy") {
            Some(policy) => format!("as then: {policy}"),
            None => "as then: none".to_owned(),
        };
        html! {
            form.filters method="get" action={ "/ui/call/" (encode(call.text("id"))) "/what-if" } {
                (field("window", "Window, in tokens", self.window, "such as 32k"))
                label { span { "Model" } input type="text" name="model" value=(self.model.unwrap_or_default()) placeholder=(printable(model)); }
                label { span { "Policy" } select name="policy" {
                    (option(AS_THEN, &as_then))
                    @if call.text_of("policy").is_some() { (option(NO_POLICY, "none")) }
                    @for policy in policies.list("policies") { (option(&format!("{NAMED}{}", policy.text("name")), policy.text("name"))) }
                } }
                (field("keep_recent", "Keep only the newest outputs", self.keep_recent, "such as 3"))
                (field("preview", "Preview outputs longer than (characters)", self.preview, "such as 5000"))
                (field("turns", "Newest turns that are sent", self.turns, "all"))
                button.primary type="submit" { "Try" }
            }
        }
    }

    /// Returns the name of the policy that is chosen, if it is one.
    fn policy_name<'c>(&'c self, call: View<'c>) -> Option<&'c str> {
        match self.policy {
            AS_THEN => call.text_of("policy"),
            policy => policy.strip_prefix(NAMED),
        }
    }

    /// Returns the members of a policy that are changed by hand.
    fn changes(&self) -> Result<Map<String, Value>, String> {
        let mut changes = Map::new();
        if let Some(count) = read_count("Old outputs", self.keep_recent)? {
            // Whatever it costs and however short the history is: a policy that would not be applied here shows nothing.
            let clear = json!({"keep_recent": count, "above_percent": 0, "always": true});
            changes.insert("clear".to_owned(), clear);
        }
        if let Some(count) = read_count("Previews", self.preview)? {
            changes.insert("preview".to_owned(), count.into());
        }
        if let Some(count) = read_count("Newest turns", self.turns)? {
            changes.insert("window".to_owned(), json!({"turns": count}));
        }
        Ok(changes)
    }

    /// Returns the request of the API that asks for it; otherwise what is wrong with a field.
    fn request(&self, call: View<'_>, policies: View<'_>) -> Result<Value, String> {
        let mut body = Map::new();
        if let Some(window) = read_count("Window", self.window)? {
            body.insert("window".to_owned(), window.into());
        }
        if let Some(model) = self.model {
            body.insert("model".to_owned(), model.into());
        }
        let changes = self.changes()?;
        match (self.policy_name(call), changes.is_empty()) {
            (None, true) => {}
            (Some(name), true) => {
                body.insert("policy".to_owned(), name.into());
            }
            _ => {
                let mut policy = self.settings(call, policies)?;
                policy.retain(|member, _| !SERVERS_OWN.contains(&member.as_str()));
                body.insert("policy".to_owned(), policy.into());
            }
        }
        Ok(body.into())
    }

    /// Returns the settings of the chosen policy with what is changed by hand; otherwise what is wrong.
    fn settings(&self, call: View<'_>, policies: View<'_>) -> Result<Map<String, Value>, String> {
        let mut settings = Map::new();
        if let Some(name) = self.policy_name(call) {
            let mut known = policies.list("policies");
            let chosen = known.find(|policy| policy.text("name") == name);
            let chosen = chosen.and_then(|policy| policy.at("settings").json().as_object());
            // One that was renamed since the call must not look as if it had been applied.
            let gone = || format!("the server has no policy “{name}” any more: choose another one");
            settings = chosen.cloned().ok_or_else(gone)?;
        }
        settings.extend(self.changes()?);
        Ok(settings)
    }

    /// Returns the policy as a table of the configuration; `None` if there is nothing to keep that is not kept already.
    fn policy_toml(&self, call: View<'_>, policies: View<'_>) -> Option<String> {
        let window = read_count("Window", self.window).ok().flatten();
        let is_new = window.is_some() || !self.changes().ok()?.is_empty();
        let mut settings = self.settings(call, policies).ok()?;
        if let Some(window) = window {
            settings.insert("limit_tokens".to_owned(), window.into());
        }
        // The API lists a policy without its skills.
        let skills = "# Skills of the policy are not in this table: copy them from its own.\n";
        let is_named = match self.policy {
            AS_THEN => call.text_of("policy").is_some(),
            chosen => chosen != NO_POLICY,
        };
        let table = || write_policy(NEW_POLICY, &settings);
        is_new.then(|| match is_named {
            true => format!("{}{skills}", table()),
            false => table(),
        })
    }
}

/// Reads a number as people write it: `32000`, `32,000`, `32k`.
fn read_count(field: &str, text: Option<&str>) -> Result<Option<u64>, String> {
    let Some(text) = text else { return Ok(None) };
    let plain: String = text
        .trim()
        .chars()
        .filter(|c| !matches!(c, ',' | '_' | ' '))
        .collect();
    let (digits, factor) = match plain.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => match plain.strip_suffix(['m', 'M']) {
            Some(digits) => (digits, 1_000_000),
            None => (plain.as_str(), 1),
        },
    };
    let count: Option<u64> = digits.parse().ok();
    let count = count.and_then(|count| count.checked_mul(factor));
    count
        .map(Some)
        .ok_or_else(|| format!("“{field}” is {text:?}, expected a number such as 32000 or 32k"))
}

/// Asks for the call as it would have been, and draws both.
async fn compare(
    api: &impl Api,
    call: View<'_>,
    body: &Value,
    choice: &Choice<'_>,
    policies: View<'_>,
) -> Markup {
    let path = format!("/api/v1/calls/{}/what-if", encode(call.text("id")));
    let told = match api.send(Method::Post, &path, Some(body)).await {
        Ok(told) => told,
        Err(error) => return alert(&error.detail),
    };
    // Of a request that went as it came no parts are known: it is made again without a policy, so that there is something to compare.
    let as_it_came = match call.at("band").is_missing() {
        true => api.send(Method::Post, &path, Some(&json!({}))).await.ok(),
        false => None,
    };
    let (was, would) = (
        as_it_came.as_ref().map_or(call, Document::view),
        told.view(),
    );
    // Of a call that was made, what its input was expected to cost: the other side is an expectation too.
    let cost = match &as_it_came {
        Some(told) => told.view().text_of("dollars"),
        None => call.at("prediction").text_of("sent_dollars"),
    };
    html! {
        (figures(was, would, cost))
        section.panel {
            h2 { "As it was" @if as_it_came.is_some() { " " small { "without a policy, made again of what is stored" } } }
            (draw_picture(was, "was"))
        }
        section.panel { h2 { "As it would have been" } (draw_picture(would, "would")) }
        @if was.at("band").number("limit") != would.at("band").number("limit") { p.hint { "Each picture is as wide as its own window." } }
        @if let Some(difference) = would.at("difference").present() {
            section {
                h2 { "Cache " small { "after the call before" @if let Some(before) = would.text_of("against") { ", " a href={ "/ui/call/" (encode(before)) } { (short_id(before)) } } } }
                (difference_block(difference))
            }
        }
        @if let Some(toml) = choice.policy_toml(call, policies) { (policy_section(&toml)) }
    }
}

/// Draws a window; the same for a call and for what one would be, since both have a band.
fn draw_picture(document: View<'_>, id: &str) -> Markup {
    html! {
        @match Window::of_call(document) {
            Some(window) => {
                (window.summary()) (window.picture(id)) (window.left_out())
                details.fold { summary { "Parts as a table" } (window.table(|_| None)) }
            },
            None => p.unknown { "What it was made of is not known." },
        }
    }
}

/// The figures of both, side by side.
fn figures<'a>(was: View<'a>, would: View<'a>, cost: Option<&str>) -> Markup {
    let tokens = |document: View<'_>| document.at("band").number("tokens");
    let left_out = |document: View<'_>| {
        let parts = document.at("band").list("parts");
        parts.map(|part| part.count("omitted_tokens")).sum::<u64>()
    };
    let read = |document: View<'_>| document.at("band").number("cache_read");
    let next = |document: View<'a>| document.text_of("next_dollars");
    html! {
        div.wide tabindex="0" role="region" aria-label="Both in figures" { table.both {
            thead { tr { th scope="col" { "figure" } th.n scope="col" { "as it was" } th.n scope="col" { "as it would have been" } th.n scope="col" { "difference" } } }
            tbody {
                tr { th scope="row" { "tokens in the request" }
                    td.n { (known_number(tokens(was))) } td.n { (known_number(tokens(would))) }
                    td.n { (show_difference(tokens(was), tokens(would))) } }
                tr { th scope="row" { "tokens left out" }
                    td.n { (number(left_out(was))) } td.n { (number(left_out(would))) } td.n { (show_difference(Some(left_out(was)), Some(left_out(would)))) } }
                tr { th scope="row" { "expected from the cache" }
                    td.n { (known_number(read(was))) } td.n { (known_number(read(would))) } td.n { (show_difference(read(was), read(would))) } }
                tr { th scope="row" { "cost of the input, expected" }
                    td.n { (money(cost)) } td.n { (money(would.text_of("dollars"))) } td.n { (cost_difference(cost, would.text_of("dollars"))) } }
                tr { th scope="row" { "each call after it, with nothing new" }
                    td.n { (money(next(was))) } td.n { (money(next(would))) } td.n { (cost_difference(next(was), next(would))) } }
            }
        } }
    }
}

/// By how much a count changes, with its sign.
fn show_difference(was: Option<u64>, would: Option<u64>) -> Markup {
    html! { @match was.zip(would) {
        None => "–",
        Some((was, would)) if was == would => "=",
        Some((was, would)) if was < would => { "+" (group_thousands(would - was)) },
        Some((was, would)) => { "−" (group_thousands(was - would)) },
    } }
}

/// By how much a cost changes. For the eye alone: both amounts stand beside it, exact.
fn cost_difference(was: Option<&str>, would: Option<&str>) -> Markup {
    let amount = |decimal: Option<&str>| decimal.and_then(|decimal| decimal.parse::<f64>().ok());
    let (Some(was), Some(would)) = (amount(was), amount(would)) else {
        return html! { "–" };
    };
    let change = would - was;
    html! { @if change == 0.0 { "=" } @else if change > 0.0 { span.bad { "+" (format_dollars(&change.to_string())) } } @else { span.good { (format_dollars(&change.to_string())) } } }
}

fn policy_section(toml: &str) -> Markup {
    html! {
        section {
            h2 { "Keep it as a policy" }
            p { "Put this into the server's configuration and restart the server. Clients ask for it with the header "
                code { "x-contexture-policy: " (NEW_POLICY) } ", or a route leads to it." }
            pre #policy tabindex="0" { (printable(toml)) }
            p.links { button.quiet type="button" hidden data-copy=(toml) { "Copy" } }
            p.hint { "The server reads its configuration when it starts, and no page writes it: a policy holds for everybody who uses the server." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(query: &str) -> Parameters {
        Parameters::parse(query)
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (text, expected) in [
            ("32000", 32_000),
            ("32,000", 32_000),
            ("32k", 32_000),
            (" 1 M", 1_000_000),
        ] {
            assert_eq!(read_count("x", Some(text)), Ok(Some(expected)), "{text}");
        }
        assert_eq!(read_count("x", None), Ok(None));
        for wrong in [
            "",
            "k",
            "-1",
            "1.5k",
            "99999999999999999999",
            "20000000000000000M",
        ] {
            assert!(read_count("x", Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_choice_is_one_request_and_one_policy() {
        let call = json!({"id": "req_1", "policy": "tidy"});
        let policies = json!({"policies": [{"name": "tidy", "settings": {
            "preview": 3000, "clear": null, "skills": ["a"], "redact": false, "rules": true}}]});
        let (call, policies) = (View::new(&call), View::new(&policies));
        let ask = |query: &str| {
            let query = parameters(query);
            Choice::read(&query).request(call, policies)
        };
        assert_eq!(ask(""), Ok(json!({"policy": "tidy"})));
        assert_eq!(ask("policy=none&window=32k"), Ok(json!({"window": 32_000})));
        let changed = ask("keep_recent=2&model=gpt-4o").unwrap();
        assert_eq!(
            changed,
            json!({"model": "gpt-4o", "policy": {"preview": 3000, "rules": true, "clear": {"keep_recent": 2, "above_percent": 0, "always": true}}})
        );
        assert!(ask("turns=many").is_err());
        let query = parameters("policy=policy:tidy&window=32k");
        let toml = Choice::read(&query).policy_toml(call, policies);
        let toml = toml.unwrap();
        assert!(
            toml.contains("limit_tokens = 32000") && toml.contains("preview = 3000"),
            "{toml}"
        );
        let nothing = parameters("policy=policy:tidy");
        assert_eq!(Choice::read(&nothing).policy_toml(call, policies), None);
    }
}
