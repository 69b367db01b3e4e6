//! Heavy requests of the API and MCP: those that compute for long run on threads of their own, in turn by owner.
//!
//! A body is read first, on the runtime: a slow client must not hold a place of the pool, and its time is not the answer's.
//! What reads a whole stored conversation takes as long, and as much memory, as that is large: only a few run at once. Not here:
//! the proxy, which decides for each step of a request (`proxy::forward`, `proxy::capture`).

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use contexture::Owner;
use contexture::ir::{Cancel, ConversationId};
use http_body_util::BodyExt as _;

use crate::http::body::read_whole_body;
use crate::http::extractors::{find_conversation_name, find_principal};
use crate::problem::Problem;
use crate::state::App;
use crate::state::body_memory::{MemoryLease, estimate_stored_bytes, estimate_work_bytes};
use crate::state::work_pool::HEAVY_BYTES;

/// Ends of routes whose work depends on what is stored and not on the body: they compile, make a past request again, or read a
/// whole conversation. The messages of one are not among them: most are short, and whoever lists them sees that.
const STORED_ROUTES: [&str; 15] = [
    "/compile",
    "/what-if",
    "/explain",
    "/resolve",
    "/handle",
    "/compactions",
    "/export",
    "/log",
    "/diff",
    "/calls/{call}/items",
    "/timeline",
    "/rules",
    "/rules/{rule}",
    "/read",
    "/blobs/{blob}",
];
/// The route of a call, which makes its request again where a part of it is asked for.
const CALL_ROUTE: &str = "/calls/{call}";

/// The list of calls, which reads a whole conversation where those of one branch are asked for.
const CALLS_ROUTE: &str = "/calls";

fn reads_all_that_is_stored(route: &str, query: Option<&str>) -> bool {
    let makes_again = route.ends_with(CALL_ROUTE) && query.is_some();
    let names_branch = query.is_some_and(|query| query.contains("branch="));
    makes_again
        || (route.ends_with(CALLS_ROUTE) && names_branch)
        || STORED_ROUTES.iter().any(|end| route.ends_with(end))
}

/// The whole body of a request, beside the request itself: its bytes are shared.
#[derive(Clone)]
struct WholeBody(Bytes);

/// Reads the body of a request, before the time of its answer begins.
pub(crate) async fn read_body_first(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let owner = find_principal(request.extensions())?.owner.clone();
    let (parts, body) = request.into_parts();
    let lease = app.body_memory().lease(&owner);
    let bytes = read_whole_body(body, lease, &app.config().server.limits).await?;
    let mut request = Request::from_parts(parts, Body::from(bytes.clone()));
    request.extensions_mut().insert(WholeBody(bytes));
    Ok(next.run(request).await)
}

/// Runs a request in the pool if it is heavy. Handlers find a [`Cancel`] among its extensions: it is cancelled when nobody waits
/// for the answer any more. A large answer counts as memory until it is sent.
pub(crate) async fn run_heavy_requests(
    State(app): State<App>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let owner = find_principal(request.extensions())?.owner.clone();
    let route = request.extensions().get::<MatchedPath>();
    let reads_all =
        route.is_some_and(|route| reads_all_that_is_stored(route.as_str(), request.uri().query()));
    let WholeBody(bytes) = request
        .extensions_mut()
        .remove()
        .unwrap_or(WholeBody(Bytes::new()));
    let is_large = bytes.len() > HEAVY_BYTES;
    // Held until the answer begins: by then what was parsed of the body is gone.
    let mut work_memory = app.body_memory().lease(&owner);
    if reads_all || is_large {
        let stored = match reads_all {
            true => stored_bytes(&app, &owner, &mut request).await,
            false => 0,
        };
        let work = estimate_work_bytes(&bytes);
        // One that would take more than there is works alone.
        let most = app.body_memory().share_bytes().max(work);
        work_memory
            .grow_to(work.saturating_add(stored).min(most))
            .await?;
    }
    drop(bytes);
    let work = |cancel| {
        request.extensions_mut().insert(cancel);
        next.run(request)
    };
    let response = if reads_all {
        app.run_stored_work(&owner, work).await
    } else if is_large {
        app.work_pool().run(&owner, work).await
    } else {
        let cancel = Cancel::new();
        let _called_off = cancel.cancel_on_drop();
        work(cancel).await
    };
    drop(work_memory);
    lease_answer(app.body_memory().lease(&owner), response).await
}

/// Estimates the memory of the conversation that a request's path names, once it is read whole; 0 where it names none that there is.
async fn stored_bytes(app: &App, owner: &Owner, request: &mut Request) -> usize {
    let name = find_conversation_name(request).await;
    let Some(id) = name.and_then(|name| name.parse::<ConversationId>().ok()) else {
        return 0;
    };
    // What keeps it from being loaded is for the handler to say.
    let record = app.engine().store().load_conversation(owner, &id).await;
    record.map_or(0, |record| estimate_stored_bytes(record.nodes))
}

/// Has a large answer hold its memory until it is sent, however slowly its client reads it. Answers that are made while they are
/// sent hold none.
async fn lease_answer(mut lease: MemoryLease, response: Response) -> Result<Response, Problem> {
    let length = response.body().size_hint().exact().unwrap_or(0);
    if length <= HEAVY_BYTES as u64 {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    // All of it is there: only such a body knows its length.
    let whole = body.collect().await;
    let whole = whole.map_err(|error| Problem::internal_error("internal", &error))?;
    let bytes = whole.to_bytes();
    lease.grow_to(bytes.len()).await?;
    Ok(Response::from_parts(
        parts,
        Body::from(lease.attach_to_bytes(bytes)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_whole_conversations_is_heavy() {
        let chat = "/api/v1/conversations/{conversation}";
        for (route, query, is_heavy) in [
            (format!("{chat}/what-if"), None, true),
            (format!("{chat}/log"), None, true),
            (format!("{chat}/messages"), Some("limit=5"), false),
            (format!("{chat}/items"), Some("limit=5"), false),
            (format!("{chat}/rules"), None, true),
            (format!("{chat}/read"), Some("link=a"), true),
            (format!("{chat}/blobs/{{blob}}"), None, true),
            ("/api/v1/diff".to_owned(), None, true),
            (format!("/api/v1{CALL_ROUTE}"), Some("include=sent"), true),
            (format!("/api/v1{CALL_ROUTE}"), None, false),
            (format!("/api/v1{CALL_ROUTE}/items"), None, true),
            ("/api/v1/calls".to_owned(), Some("limit=5"), false),
            (
                "/api/v1/calls".to_owned(),
                Some("conversation=a&branch=main"),
                true,
            ),
            (format!("{chat}/runs/{{run}}/timeline"), None, true),
        ] {
            let reads_all = reads_all_that_is_stored(&route, query);
            assert_eq!(reads_all, is_heavy, "{route} {query:?}");
        }
    }
}
