//! What a compile is given: the path, contributions, the plan of the call before, the request with its policies.
//!
//! Terms: a *path* is the list of items from the first to the head; a *contribution* is a text or items that layers and
//! hosts add to one call; a *plan* is what one compile hands to the next so that the sent beginning stays the same; a *pass*
//! is a transformation of the host's.
//!
//! Data with constructors only. Nothing here knows a format, counts tokens or looks at a report.

pub(crate) mod calibrated_range;
pub(crate) mod call_context;
pub(crate) mod contribution;
pub(crate) mod guardrails;
pub(crate) mod pass;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod request;
pub(crate) mod state;
pub(crate) mod tool_offer;
