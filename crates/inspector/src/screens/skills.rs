//! The skills that the server lists to models.

use maud::html;

use crate::api::{Api, ApiError};
use crate::exchange::Reply;
use crate::figures::{encode, printable};
use crate::layout::{Screen, Viewer, empty_state, page};
use crate::screens::messages::pre_block;

pub(crate) async fn show_list(api: &impl Api, viewer: &Viewer) -> Result<Reply, ApiError> {
    let found = api.get("/api/v1/skills").await?;
    let mut skills = found.view().list("skills").peekable();
    let content = html! {
        h1 { "Skills" }
        @if skills.peek().is_none() {
            (empty_state("No skills", &html! { code { "server.skills" } " in the configuration names their folders." }))
        }
        dl.notes { @for skill in skills {
            dt { a href={ "/ui/skills/" (encode(skill.text("name"))) } { (printable(skill.text("name"))) } }
            dd { (printable(skill.text("description"))) }
        } }
    };
    Ok(Reply::page(page(
        viewer,
        Screen::Skills,
        "Skills",
        &content,
    )))
}

pub(crate) async fn show(api: &impl Api, viewer: &Viewer, name: &str) -> Result<Reply, ApiError> {
    let found = api.get(&format!("/api/v1/skills/{}", encode(name))).await?;
    let skill = found.view();
    let content = html! {
        nav.crumbs aria-label="Where this is" { a href="/ui/skills" { "Skills" } " / " span { (printable(name)) } }
        h1 { (printable(skill.text("name"))) }
        p.lead { (printable(skill.text("description"))) }
        @let tools: Vec<&str> = skill.texts("allowed_tools").collect();
        @if !tools.is_empty() { p.sub { "may use without asking: " @for tool in &tools { code { (printable(tool)) } " " } } }
        (pre_block(skill.text("instructions")))
    };
    Ok(Reply::page(page(viewer, Screen::Skills, name, &content)))
}
