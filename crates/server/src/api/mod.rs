//! The API's resources, a file each. Handlers are thin: what they do is the engine's.

mod blobs;
mod calls;
mod compile;
mod compress;
mod conventions;
mod conversations;
mod ledger;
mod memory;
mod owner_events;
mod proxied_calls;
mod runs;
mod search;
mod sessions;
mod settings;
mod skills;
mod stateless;
mod transfer;

use utoipa_axum::router::OpenApiRouter;

use crate::state::App;

pub(crate) use conventions::error_responses::{OpenRefusals, ReadRefusals};
pub(crate) use conventions::idempotency::run_idempotently;
pub(crate) use conversations::events::LAST_EVENT;

/// Returns the routes of all resources.
pub(crate) fn router() -> OpenApiRouter<App> {
    // The OpenAPI description lists paths in this order, which clients diff: append, do not sort.
    let resources = OpenApiRouter::new()
        .merge(conversations::conversation::router())
        .merge(conversations::messages::router())
        .merge(conversations::branches::router())
        .merge(conversations::checkpoints::router())
        .merge(conversations::pins::router())
        .merge(conversations::rules::router())
        .merge(conversations::log::router())
        .merge(search::router())
        .merge(conversations::events::router())
        .merge(conversations::links::router())
        .merge(blobs::router())
        .merge(compile::router())
        .merge(conversations::compactions::router())
        .merge(memory::router())
        .merge(proxied_calls::router())
        .merge(ledger::router())
        .merge(runs::router())
        .merge(sessions::router())
        .merge(skills::router())
        .merge(stateless::router())
        .merge(transfer::router())
        .merge(settings::router())
        .merge(calls::router())
        .merge(owner_events::router());
    OpenApiRouter::new()
        .nest("/api/v1", resources)
        .merge(compress::router())
}

/// Routes whose answers may take as long as they like.
pub(crate) fn long_router() -> OpenApiRouter<App> {
    OpenApiRouter::new().nest("/api/v1", transfer::long_router())
}
