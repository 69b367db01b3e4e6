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

/// Routes whose work depends on what is stored and not on the body: they compile, or read a whole conversation.
const HEAVY_ROUTES: [&str; 5] = [
    "/compile",
    "/explain",
    "/resolve",
    "/compactions",
    "/export",
];

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
        route.is_some_and(|route| HEAVY_ROUTES.iter().any(|end| route.as_str().ends_with(end)));
    let (parts, body) = request.into_parts();
    let lease = app.body_memory().lease(&owner);
    let bytes = read_whole_body(body, lease, &app.config().server.limits).await?;
    let is_heavy = is_heavy_route || bytes.len() > HEAVY_BYTES;
    let work_bytes = is_heavy.then(|| estimate_work_bytes(&bytes));
    let mut request = Request::from_parts(parts, Body::from(bytes));
    let Some(work_bytes) = work_bytes else {
        request.extensions_mut().insert(Cancel::new());
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
