//! Requests to providers, passed on.
//!
//! A request finds its upstream by its path (`place`), its caller by the keys (`credentials`), and goes out as it came
//! (`pass`, `headers`): the same bytes, and the answer's bytes back, as they come. What a model is asked is listened to
//! beside that (`listen_in`): the request is stored in its conversation (`matching`), the answer behind it (`answer`) with
//! its entry in the ledger (`booking`, `ledger`), and what became of both is known by the request's id (`outcome`).
//! Whatever fails there fails beside the request, never in it.
//!
//! A policy (`choice`) may say that something else goes out: tools and secrets are taken out of the request's text
//! (`offered`, `redact`); a history is compiled once it is stored (`rewrite`, `splice`), where that pays (`scales`, `accounts`) or
//! something is to be said with it (`injected`). If that fails, the request goes as it came. What goes out then may
//! offer tools of ours, whose calls are answered here (`own`).
//!
//! Not here: how a conversation is found (`contexture-engine`), connections to providers (`contexture-models-http`).

pub(crate) mod accounts;
mod answer;
pub(crate) mod behind;
mod booking;
mod call;
mod came;
mod choice;
mod credentials;
mod failing;
mod headers;
mod injected;
pub(crate) mod ledger;
mod listen_in;
mod matching;
mod members;
mod offered;
pub(crate) mod outcome;
mod own;
mod pass;
mod place;
mod redact;
mod refusal;
mod rewrite;
mod scales;
mod select;
mod splice;
mod tee;
pub(crate) mod turns;
pub(crate) mod upstreams;
mod wishes;

use axum::Router;

use crate::app::App;

/// Everything that is not the server's own.
pub(crate) fn router(app: &App) -> Router {
    Router::new()
        .fallback(pass::proxy_request)
        .with_state(app.clone())
}
