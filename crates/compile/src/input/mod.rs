//! What a compile is given: the path, contributions, the plan of the call before, the request with its policies.
//!
//! Terms: a *path* is the list of items from the first to the head; a *contribution* is a text or items that layers and
//! hosts add to one call; a *plan* is what one compile hands to the next so that the sent beginning stays the same; a *pass*
//! is a transformation of the host's.
//!
//! Data with constructors only. Nothing here knows a format, counts tokens or looks at a report.

mod calibrated_range;
mod call_context;
mod contribution;
mod guardrails;
mod pass;
mod plan;
mod policy;
mod request;
mod state;
mod tool_offer;

pub use calibrated_range::CalibratedRange;
pub(crate) use calibrated_range::{PARTS, is_comparable};
pub use call_context::CallContext;
pub use contribution::{Band, Budget, Content, Contribution, Stability};
pub use guardrails::{GuardrailError, Guardrails};
pub use pass::{Pass, PassPoint, ViewItem};
pub(crate) use plan::PlanDecisions;
pub use plan::{
    Advice, ClearFrontier, CompactAdvice, EpochReason, EpochReport, Plan, Prefix, SentHistory,
    TrimFrontier,
};
pub use policy::{CachePolicy, Clear, ClearPolicy, HistoryPolicy, TrimPolicy, Window};
pub use request::{CompileInput, CompileRequest, Cover, PathItem};
pub use state::{Placement, StateError};
pub use tool_offer::{OfferedTools, ToolOffer};
