//! Heavy requests of the API and MCP: those that compute for long run on threads of their own, in turn by owner.
//!
//! A body is read first, on the runtime: a slow client must not hold a place of the pool. Not here: the proxy, which decides
//! for each step of a request (`proxy::forward`).

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use contexture::ir::Cancel;

use crate::access::Principal;
use crate::http::body::read_whole_body;
use crate::problem::{Code, Problem};
use crate::state::App;
use crate::state::body_memory::estimate_work_bytes;
use crate::state::work_pool::HEAVY_BYTES;

/// Routes whose work depends on what is stored and not on the body: they compile, make a past request again, or read a whole
/// conversation.
const HEAVY_ROUTES: [&str; 11] = [
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
];
/// The route of a call, which makes its request again where a part of it is asked for.
const CALL_ROUTE: &str = "/calls/{call}";

/// The list of calls, which reads a whole conversation where those of one branch are asked for.
const CALLS_ROUTE: &str = "/calls";

fn is_heavy_route(route: &str, query: Option<&str>) -> bool {
    let makes_again = route.ends_with(CALL_ROUTE) && query.is_some();
    let names_branch = query.is_some_and(|query| query.contains("branch="));
    makes_again
        || (route.ends_with(CALLS_ROUTE) && names_branch)
        || HEAVY_ROUTES.iter().any(|end| route.ends_with(end))
}

/// Reads the body of a request, and runs it in the pool if it is heavy. Handlers find a [`Cancel`] among its extensions: it is
/// cancelled when nobody waits for the answer any more.
pub(crate) async fn run_heavy_requests(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let Some(principal) = request.extensions().get::<Principal>() else {
        return Err(Problem::new(
            Code::Unauthenticated,
            "nobody is known to call",
        ));
    };
    let owner = principal.owner.clone();
    let route = request.extensions().get::<MatchedPath>();
    let is_heavy_route =
        route.is_some_and(|route| is_heavy_route(route.as_str(), request.uri().query()));
    let (parts, body) = request.into_parts();
    let lease = app.body_memory().lease(&owner);
    let bytes = read_whole_body(body, lease, &app.config().server.limits).await?;
    let is_heavy = is_heavy_route || bytes.len() > HEAVY_BYTES;
    let work_bytes = is_heavy.then(|| estimate_work_bytes(&bytes));
    let mut request = Request::from_parts(parts, Body::from(bytes));
    let Some(work_bytes) = work_bytes else {
        let cancel = Cancel::new();
        let _called_off = cancel.cancel_on_drop();
        request.extensions_mut().insert(cancel);
        return Ok(next.run(request).await);
    };
    // Held until the answer begins: by then what was parsed of the body is gone.
    let mut work_memory = app.body_memory().lease(&owner);
    work_memory.grow_to(work_bytes).await?;
    let response = app.work_pool().run(&owner, |cancel| {
        request.extensions_mut().insert(cancel);
        next.run(request)
    });
    Ok(response.await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_requests_of_stored_items_is_heavy() {
        let chat = "/api/v1/conversations/{conversation}";
        for (route, query, is_heavy) in [
            (format!("{chat}/what-if"), None, true),
            (format!("{chat}/log"), None, true),
            (format!("{chat}/messages"), Some("limit=5"), false),
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
            assert_eq!(is_heavy_route(&route, query), is_heavy, "{route} {query:?}");
        }
    }
}
