//! Rewriting: what a policy takes out of a client's request, and what it sends in its place.
//!
//! `redact` and the filter of tools (`ProxyEdits` of the format) enforce restrictions and fail closed: what they cannot read is
//! refused. All else is
//! optimisation and fails open, with the client's own request: `plan` compiles the conversation at what the client sent,
//! with selected tools (`contexture_api::policy`) and injected layers, `cost_check` decides whether that is worth sending, and
//! `replace_history` (`contexture::wire`) puts it into the client's text.
//!
//! Not here: which policy applies (`route::policy`), what is compiled (`contexture-compile`).

pub(super) mod cost_check;
pub(super) mod injected_layers;
mod plan;
pub(super) mod redact;

pub(super) use plan::{
    HostTraits, PricedRequest, RefusedRequest, RewritePlan, RewrittenRequest, ToolRound, now_ms,
    rewrite_request, rewrite_timeout,
};
