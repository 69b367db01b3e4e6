//! The API's resources, a file each. Handlers are thin: what they do is the engine's.

mod blobs;
mod branches;
mod chat;
mod checkpoints;
mod compactions;
mod compile;
mod compress;
mod conversations;
mod etag;
mod events;
mod idempotency;
mod ledger;
mod log;
mod memory;
mod messages;
mod page;
mod reading;
mod refusals;
mod requests;
mod runs;
mod search;
mod sessions;
mod skills;
mod texts;
mod transfer;

use utoipa_axum::router::OpenApiRouter;

use crate::app::App;

pub(crate) use idempotency::run_idempotently;
pub(crate) use refusals::ReadRefusals;

/// The routes of all resources.
pub(crate) fn router() -> OpenApiRouter<App> {
    let resources = OpenApiRouter::new()
        .merge(conversations::router())
        .merge(messages::router())
        .merge(branches::router())
        .merge(checkpoints::router())
        .merge(log::router())
        .merge(search::router())
        .merge(events::router())
        .merge(reading::router())
        .merge(blobs::router())
        .merge(compile::router())
        .merge(compactions::router())
        .merge(memory::router())
        .merge(requests::router())
        .merge(ledger::router())
        .merge(runs::router())
        .merge(sessions::router())
        .merge(skills::router())
        .merge(texts::router())
        .merge(transfer::router());
    OpenApiRouter::new()
        .nest("/api/v1", resources)
        .merge(compress::router())
}

/// Routes whose answers may take as long as they like.
pub(crate) fn long_router() -> OpenApiRouter<App> {
    OpenApiRouter::new().nest("/api/v1", transfer::long_router())
}
