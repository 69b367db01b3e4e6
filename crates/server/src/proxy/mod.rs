//! Requests to providers, passed on.

use axum::Router;

use crate::app::App;
use crate::nowhere::nothing_here;

/// Everything that is not the server's own.
pub(crate) fn router(app: &App) -> Router {
    let _ = app;
    Router::new().fallback(nothing_here)
}
