//! The API's resources, a file each. Handlers are thin: what they do is the engine's.

mod conversations;
mod page;
mod refusals;

use utoipa_axum::router::OpenApiRouter;

use crate::app::App;

pub(crate) use refusals::ReadRefusals;

/// The routes of all resources.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().nest(
        "/api/v1",
        OpenApiRouter::new().merge(conversations::router()),
    )
}
