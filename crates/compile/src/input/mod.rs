//! What a compile is given: the path, contributions, the plan of the call before, the request with its policies.
//!
//! Terms:
//! * A *path* is the list of items from the first to the head, with their hashes and audiences.
//! * A *contribution* is a text, or items, that layers and hosts add to one call. Its *band* says where it stands.
//! * A *plan* is what one compile hands to the next, so that what was sent is sent again unchanged.
//! * A *pass* is a transformation of the items that the host brings along.
//! * The *call context* is what a host says with every call: texts, state, guardrails.
//!
//! * A *target adapter* is a program's own writer of requests, for a provider that no format describes.
//!
//! Data with constructors only. Nothing here knows a format, counts tokens or looks at a report.

mod adapter;
mod calibrated_range;
mod call_context;
mod contribution;
mod guardrails;
mod item_path;
mod pass;
mod plan;
mod policy;
mod request;
mod retry_budget;
mod rule_id;
mod state;
mod tool_offer;

pub use adapter::{AdapterError, SharedAdapter, TargetAdapter};
pub use calibrated_range::{BudgetCount, CalibratedRange};
pub(crate) use calibrated_range::{PARTS, is_comparable};
pub use call_context::CallContext;
pub use contribution::{Band, Budget, Content, Contribution, Stability};
pub use guardrails::{GuardrailError, Guardrails};
pub use item_path::{GrowingPath, PathItems};
pub(crate) use item_path::{ItemIdentity, KnownBeginning};
pub use pass::{Pass, PassPoint, ViewItem};
pub(crate) use plan::PlanDecisions;
pub use plan::{Advice, ClearFrontier, CompactAdvice, LatchedRules, Plan, TrimFrontier};
pub use policy::{
    CachePolicy, Clear, ClearPolicy, HistoryPolicy, StandingRulesPolicy, TrimPolicy, Window,
};
pub use request::{CompileInput, CompileRequest, Cover, PathItem};
pub use retry_budget::RetryBudget;
pub use rule_id::RuleId;
pub(crate) use rule_id::node_name;
pub use state::{Placement, StateError};
pub use tool_offer::{OfferedTools, ToolOffer};
