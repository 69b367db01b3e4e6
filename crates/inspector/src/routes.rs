//! Which page a path leads to.
//!
//! Not here: that a reader may look, and that a form comes from one of these pages; the host checks both before.

use percent_encoding::percent_decode_str;

use crate::api::{Api, ApiError};
use crate::exchange::{Parameters, Reply, unknown_page};
use crate::layout::Viewer;
use crate::screens::failure::failure_page;
use crate::screens::{
    actions, call, compare, conversations, memory, money, raw, run, runs, skills, thread, what_if,
};

/// A request for a page.
#[derive(Clone, Debug)]
pub struct PageRequest<'a> {
    /// The path behind `/ui`, as it was sent.
    pub path: &'a str,
    /// The query, as it was sent, without its `?`.
    pub query: &'a str,
    /// Who looks at it.
    pub viewer: &'a Viewer,
}

/// A form that was sent.
#[derive(Clone, Debug)]
pub struct FormRequest<'a> {
    /// The path behind `/ui`, as it was sent.
    pub path: &'a str,
    /// The fields that were filled in.
    pub form: &'a Parameters,
    /// Who sent it.
    pub viewer: &'a Viewer,
}

/// Splits a path into its steps, decoded.
fn path_steps(path: &str) -> Vec<String> {
    let steps = path.split('/').filter(|step| !step.is_empty());
    steps
        .map(|step| percent_decode_str(step).decode_utf8_lossy().into_owned())
        .collect()
}

/// Draws the page of a path.
pub async fn show_page(api: &impl Api, request: PageRequest<'_>) -> Reply {
    let steps = path_steps(request.path);
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let (viewer, query) = (request.viewer, Parameters::parse(request.query));
    // Steps are decoded, so an id with a slash is one step here and no other page.
    let shown = match steps.as_slice() {
        [] => conversations::show(api, viewer, &query).await,
        ["c", id] => thread::show(api, viewer, id, &query).await,
        ["c", id, "bands.json"] => raw::show_bands(api, id, &query).await,
        ["c", id, "item", node] => raw::show_item(api, id, node).await,
        ["c", id, "memory"] => memory::show(api, viewer, id, &query).await,
        ["call", id] => call::show(api, viewer, id).await,
        ["call", id, "what-if"] => what_if::show(api, viewer, id, &query).await,
        ["call", id, "sent.json"] => raw::show_request(api, id, "sent").await,
        ["call", id, "came.json"] => raw::show_request(api, id, "came").await,
        ["compare"] => compare::show(api, viewer, &query).await,
        ["money"] => money::show(api, viewer, &query).await,
        ["runs", conversation, id] => run::show(api, viewer, conversation, id).await,
        ["runs"] => runs::show(api, viewer, &query).await,
        ["skills"] => skills::show_list(api, viewer).await,
        ["skills", name] => skills::show(api, viewer, name).await,
        _ => Err(unknown_page()),
    };
    shown.unwrap_or_else(|error| fail(viewer, &error))
}

/// Does what a form asks for.
pub async fn post_form(api: &impl Api, request: FormRequest<'_>) -> Reply {
    let steps = path_steps(request.path);
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let done = match steps.as_slice() {
        ["c", id, what] => actions::change_conversation(api, id, what, request.form).await,
        ["runs", id, run, "decide"] => actions::decide_call(api, id, run, request.form).await,
        _ => Err(unknown_page()),
    };
    match done {
        // Not the page itself: loading it again would send the form again.
        Ok(path) => Reply::Redirect(path),
        Err(error) => fail(request.viewer, &error),
    }
}

fn fail(viewer: &Viewer, error: &ApiError) -> Reply {
    Reply::Page {
        status: error.status,
        html: failure_page(Some(viewer), error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_a_path_are_decoded() {
        assert_eq!(path_steps("/c/a%2Fb//x"), ["c", "a/b", "x"]);
    }
}
