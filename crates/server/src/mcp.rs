//! The Model Context Protocol at `/mcp`, for the callers of the API.
//!
//! Not here: what is offered, and how it is asked for (`contexture-mcp`).

use axum::Router;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use contexture_mcp::{Access, Caller, HttpOptions, Workers, http_service};

use crate::access::Principal;
use crate::config::AccessScope;
use crate::http::extractors::ReadAccess;
use crate::state::App;

/// Where it is.
const PATH: &str = "/mcp";

/// The protocol, for whoever may read; tools that change something for those who may write as well.
pub(crate) fn router(app: &App) -> Router<App> {
    // Both were looked at when the caller was authenticated, by the rule of all routes.
    let options = HttpOptions {
        hosts: Vec::new(),
        origins: None,
        workers: pool_workers(app),
        ..HttpOptions::default()
    };
    let service = http_service(app.engine().clone(), options, mcp_caller);
    Router::new()
        .route_service(PATH, service)
        .route_layer(from_fn(require_read_access))
}

/// Work of the protocol is done where all heavy work is, owners in turn.
fn pool_workers(app: &App) -> Workers {
    let app = app.clone();
    Workers::new(move |owner, work| {
        let app_of_work = app.clone();
        let owner_of_work = owner.clone();
        let work = async move {
            // Most tools read whole conversations.
            let permits = app_of_work.stored_work();
            let _permit = permits.acquire_permit(Some(&owner_of_work)).await;
            work.await;
        };
        app.work_pool().spawn(&owner, work);
    })
}

/// Refuses those who may not read.
async fn require_read_access(_: ReadAccess, request: Request, next: Next) -> Response {
    next.run(request).await
}

fn mcp_caller(parts: &Parts) -> Option<Caller> {
    let principal: &Principal = parts.extensions.get()?;
    let access = match principal.require_scope(AccessScope::Write) {
        Ok(()) => Access::Write,
        Err(_) => Access::Read,
    };
    Some(Caller::new(principal.owner.clone(), access))
}
