//! A conversation: the window of one of its calls, its messages, and its tree in lanes.

use contexture_report::number_format::count_with_noun;
use futures_util::future::join3;
use maud::{Markup, PreEscaped, html};

use crate::api::{Api, ApiError};
use crate::document::{Document, View};
use crate::exchange::{Parameters, Reply};
use crate::figures::{encode, money, number, printable, share, short_id, time};
use crate::layout::{Screen, Viewer, action, empty_state, figure, link, node_menu, page};
use crate::screens::lanes::{HeadMark, place_in_lanes};
use crate::screens::messages::message_list;
use crate::screens::part::ChosenPart;
use crate::screens::what_if::window_form;
use crate::window::Window;

/// Messages and entries of the tree of one page.
const MESSAGES: &str = "30";
const ENTRIES: &str = "60";
/// Calls among which the one that is shown and its neighbours are looked for: the largest page of the API.
const CALLS: &str = "500";

pub(crate) async fn show(
    api: &impl Api,
    viewer: &Viewer,
    id: &str,
    query: &Parameters,
) -> Result<Reply, ApiError> {
    let base = format!("/api/v1/conversations/{}", encode(id));
    let conversation = api.get(&base).await?;
    let branch = query.get("branch");
    let wanted = query.get("call");
    let thread = ThreadPage {
        viewer,
        id,
        query,
        conversation: conversation.view(),
    };
    let calls = [
        ("conversation", Some(id)),
        ("branch", thread.branch_of_calls()),
        ("include", Some("band")),
        // The newest call has no neighbour but the one before it.
        ("limit", Some(if wanted.is_some() { CALLS } else { "2" })),
    ];
    let messages = [
        ("branch", branch),
        ("limit", Some(MESSAGES)),
        ("after", query.get("messages")),
    ];
    let tree = [
        ("limit", Some(ENTRIES)),
        ("usage", Some("true")),
        ("after", query.get("tree")),
    ];
    let paths = [
        link("/api/v1/calls", &calls),
        link(&format!("{base}/messages"), &messages),
        link(&format!("{base}/log"), &tree),
    ];
    // At once: each of them waits for the database alone.
    let [calls, messages, tree] = &paths;
    let (calls, messages, tree) = join3(api.get(calls), api.get(messages), api.get(tree)).await;
    // A database may keep no record of calls; the rest of the page stands without.
    let calls = calls.unwrap_or_default();
    let shown = thread.find_call(api, &calls, wanted).await?;
    let chosen = ChosenPart::load(api, shown.call.view(), query.get("part")).await;
    let content = html! {
        (thread.head())
        (thread.window_section(&shown, chosen.as_ref()))
        div.columns {
            (thread.messages_section(messages?.view()))
            (thread.tree_section(tree?.view()))
        }
    };
    Ok(Reply::page(page(
        viewer,
        Screen::Conversations,
        thread.title(),
        &content,
    )))
}

/// What all parts of the page know.
struct ThreadPage<'a> {
    viewer: &'a Viewer,
    id: &'a str,
    query: &'a Parameters,
    conversation: View<'a>,
}

/// The call whose window is shown.
#[derive(Default)]
struct ShownCall {
    call: Document,
    /// How many calls there are to move through.
    all: u64,
    /// How many of them are newer.
    newer: Option<usize>,
    older_id: Option<String>,
    newer_id: Option<String>,
}

impl ThreadPage<'_> {
    fn title(&self) -> &str {
        let preview = self.conversation.at("overview").text_of("preview");
        self.conversation
            .text_of("title")
            .or(preview)
            .unwrap_or(self.id)
    }

    fn path(&self) -> String {
        format!("/ui/c/{}", encode(self.id))
    }

    /// A link to this page with one thing changed.
    fn link_with(&self, name: &str, value: Option<&str>) -> String {
        let keep = |known: &'static str| {
            (
                known,
                if known == name {
                    value
                } else {
                    self.query.get(known)
                },
            )
        };
        link(
            &self.path(),
            &["branch", "call", "part", "messages", "tree"].map(keep),
        )
    }

    /// The branch whose calls are shown; `None` where there is one, so that all calls are of it, those without an answer too.
    fn branch_of_calls(&self) -> Option<&str> {
        let branch = self.query.get("branch");
        (self.conversation.count("branches") > 1)
            .then(|| branch.unwrap_or(self.conversation.text("active")))
    }

    async fn find_call(
        &self,
        api: &impl Api,
        calls: &Document,
        wanted: Option<&str>,
    ) -> Result<ShownCall, ApiError> {
        let counted = calls.view().number("total");
        let usage = self.conversation.at("overview").at("usage");
        let all = counted.unwrap_or(usage.count("calls"));
        let list: Vec<View<'_>> = calls.view().list("calls").collect();
        let at = match wanted {
            None => (!list.is_empty()).then_some(0),
            Some(id) => list.iter().position(|call| call.text("id") == id),
        };
        let id_at = |at: Option<usize>| {
            at.and_then(|at| list.get(at))
                .map(|call| call.text("id").to_owned())
        };
        if let (Some(at), Some(call)) = (at, at.and_then(|at| list.get(at))) {
            return Ok(ShownCall {
                call: Document::of(call.json().clone()),
                all,
                newer: Some(at),
                older_id: id_at(Some(at + 1)),
                newer_id: id_at(at.checked_sub(1)),
            });
        }
        // An old call, whose neighbours are pages away, or one of another branch.
        let Some(id) = wanted else {
            return Ok(ShownCall::default());
        };
        Ok(ShownCall {
            call: api.get(&format!("/api/v1/calls/{}", encode(id))).await?,
            all,
            ..ShownCall::default()
        })
    }

    fn head(&self) -> Markup {
        let (conversation, usage) = (
            self.conversation,
            self.conversation.at("overview").at("usage"),
        );
        let read = share(
            usage.count("cache_read_tokens"),
            usage.count("input_tokens"),
        );
        html! {
            nav.crumbs aria-label="Where this is" { a href="/ui/" { "Conversations" } " / " span { (self.id) } }
            h1 { bdi { (printable(self.title())) } }
            dl.figures {
                (figure("messages", &number(conversation.count("messages"))))
                (figure("branches", &number(conversation.count("branches"))))
                (figure("calls", &number(usage.count("calls"))))
                (figure("tokens in", &number(usage.count("input_tokens"))))
                (figure("tokens out", &number(usage.count("output_tokens"))))
                (figure("from the cache", &read))
                (figure("cost", &money(usage.text_of("dollars"))))
                @if let Some(saved) = usage.text_of("saved_dollars") { (figure("saved", &money(Some(saved)))) }
            }
            p.links {
                a href={ (self.path()) "/memory" } { "Memory and rules" } " "
                a href=(link("/ui/runs", &[("conversation", Some(self.id))])) { "Runs" } " "
                a href=(link("/ui/money", &[("conversation", Some(self.id))])) { "Money" }
            }
        }
    }

    fn window_section(&self, shown: &ShownCall, chosen: Option<&ChosenPart>) -> Markup {
        let call = shown.call.view();
        let Some(window) = Window::of_call(call) else {
            return html! {
                section.panel { h2 { "Window" }
                    @if call.is_missing() {
                        (empty_state("No call of a model was recorded here", &html! {
                            "Calls through the proxy, and those that a program records, appear with all that they were made of."
                        }))
                    } @else {
                        (self.call_line(shown))
                        p.unknown { "Neither was the request compiled here, nor did the provider report its tokens." }
                    }
                }
            };
        };
        let part = |at: usize| Some(self.part_link(call, at));
        let bands = link(
            &format!("{}/bands.json", self.path()),
            &[("branch", self.branch_of_calls())],
        );
        html! {
            // The attributes are for the module: where the bands are, and how many calls there are to move through.
            section.panel.window-of-call data-scrubber=(bands) data-call=(call.text("id")) data-calls=(shown.all) {
                (self.call_line(shown))
                (window.summary())
                (window.picture("window"))
                (window.left_out())
                details.fold data-parts { summary { "Parts as a table" } (window.table(part)) }
                @if let Some(chosen) = chosen { (chosen.block(self.viewer, call, &window)) }
                (window_form(call))
            }
        }
    }

    /// A link to a part of a call's window, with its texts.
    fn part_link(&self, call: View<'_>, at: usize) -> String {
        let query = [
            ("branch", self.query.get("branch")),
            ("call", Some(call.text("id"))),
            ("part", Some(&*at.to_string())),
        ];
        link(&self.path(), &query) + "#part"
    }

    fn call_line(&self, shown: &ShownCall) -> Markup {
        let (call, all) = (shown.call.view(), shown.all);
        // Calls are counted from the first, so that a link to a number means the same tomorrow.
        let number_of = shown.newer.and_then(|newer| all.checked_sub(newer as u64));
        let step = |id: &Option<String>, rel: &str, name: &str| {
            html! {
                @match id {
                    Some(id) => a.step rel=(rel) data-step=(rel) href=(self.link_with("call", Some(id))) { (name) },
                    None => span.step.off data-step=(rel) { (name) },
                }
            }
        };
        html! {
            div.call-line {
                h2 { "Window of " span data-position { @match number_of {
                    Some(at) => { "call " (number(at)) " of " (number(all)) },
                    None => { "call " (short_id(call.text("id"))) },
                } } }
                span.steps { (step(&shown.older_id, "prev", "◀ Before")) (step(&shown.newer_id, "next", "Next ▶")) }
                p.sub data-line {
                    (printable(call.text("model"))) " · " (time(call.text("at"))) " · "
                    span.outcome.(outcome_class(call.text("outcome"))) { (call.text("outcome")) } " · " (money(call.text_of("dollars")))
                }
                a.button data-open href={ "/ui/call/" (encode(call.text("id"))) } { "Open this call" }
            }
        }
    }

    fn messages_section(&self, messages: View<'_>) -> Markup {
        let older = messages
            .text_of("next")
            .map(|next| self.link_with("messages", Some(next)));
        let mut list = messages.list("messages").peekable();
        html! {
            section.messages-of aria-labelledby="messages" data-branch=(messages.text("branch"))
                data-events={ (self.path()) "/events?after=" (self.conversation.count("events")) } {
                h2 #messages { "Messages " small { "on " (printable(messages.text("branch"))) } }
                @if let Some(older) = older { p.pager { a href=(older) { "▲ Earlier messages" } } }
                @if list.peek().is_none() { (empty_state("This branch has no messages", &html! { "It begins when something is said." })) }
                (message_list(list))
                @if self.query.get("messages").is_some() { p.pager { a href=(self.link_with("messages", None)) { "▼ The newest messages" } } }
            }
        }
    }

    fn tree_section(&self, tree: View<'_>) -> Markup {
        let entries: Vec<View<'_>> = tree.list("entries").collect();
        let rows = place_in_lanes(
            entries
                .iter()
                .map(|one| (one.text("id"), one.text_of("parent"))),
        );
        html! {
            section.tree aria-labelledby="tree" {
                h2 #tree { "Tree " small { "newest first" } }
                ol.log {
                    @for (entry, row) in entries.iter().zip(&rows) {
                        @let heads: Vec<&str> = entry.texts("branches").collect();
                        li.active[entry.is("active")] {
                            (PreEscaped(row.to_svg(if heads.is_empty() { HeadMark::None } else { HeadMark::Head })))
                            (self.entry_block(*entry, &heads))
                        }
                    }
                }
                @if let Some(next) = tree.text_of("next") {
                    p.pager { a href=(self.link_with("tree", Some(next))) { "Older: " (number(tree.count("hidden"))) " more" } }
                }
            }
        }
    }

    fn entry_block(&self, entry: View<'_>, heads: &[&str]) -> Markup {
        let cost = entry
            .at("usage")
            .text_of("dollars")
            .filter(|dollars| *dollars != "0");
        html! {
            div.entry {
                p.line {
                    @for branch in heads {
                        a.tag href=(link(&self.path(), &[("branch", Some(branch))])) title="branch: show its messages" { (printable(branch)) } " "
                    }
                    @for checkpoint in entry.texts("checkpoints") { span.tag.mark title="checkpoint" { "◆ " (printable(checkpoint)) } " " }
                    @if entry.is("pinned") { span.tag title="pinned: its round is sent whole in every call" { "pinned" } " " }
                    span.role { (entry.text("role")) } " "
                    bdi.said { (printable(entry.text("text"))) }
                }
                p.sub {
                    (number(entry.count("tokens"))) " tok"
                    @if entry.count("calls") > 0 { " · " (count_with_noun(entry.count("calls"), "call")) }
                    @if let Some(cost) = cost { " · " (money(Some(cost))) }
                    " · " (time(entry.text("created")))
                }
                (self.entry_actions(entry))
            }
        }
    }

    /// What can be done at a message.
    fn entry_actions(&self, entry: View<'_>) -> Markup {
        let path = self.path();
        let more = html! {
            // The API sets checkpoints at the head of a branch, and nowhere else.
            @if entry.is("active") {
                (action(self.viewer, &format!("{path}/checkpoint"), &[], &html! {
                    input type="text" name="name" placeholder="name" aria-label="Name of the checkpoint" required maxlength="64";
                    button type="submit" { "Set a checkpoint here" }
                }))
            }
            @for branch in entry.texts("branches").filter(|_| !entry.is("active")) {
                (action(self.viewer, &format!("{path}/activate"), &[("branch", branch)], &html! { button type="submit" { "Switch to " (printable(branch)) } }))
            }
        };
        let node = entry.text("id");
        node_menu(self.viewer, self.id, node, entry.is("pinned"), &more)
    }
}

/// How an outcome looks.
pub(crate) fn outcome_class(outcome: &str) -> &'static str {
    match outcome {
        "completed" => "good",
        "incomplete" | "forwarded" => "plain",
        _ => "bad",
    }
}
