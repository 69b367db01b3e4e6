//! The tools of an agent: registration, selection for a call, what calls mean and whether they may run.
//!
//! A [`Registry`] holds tools and groups. [`Registry::offer`] picks those that a [`Choice`] keeps, in an order that holds
//! from call to call, with a reason for each that is left out. [`Registry::resolve`] takes a [`Call`] to its tool by any
//! route, under a [`Policy`]; [`arguments::parse_arguments`] repairs arguments that are not quite JSON, and
//! [`Registry::check_arguments`] holds
//! them against the tool's schema.
//!
//! Terms: a *flat tool* is offered by itself; a *namespace* is a group that is offered as one tool; a *toolkit* is a group
//! whose tools are offered once the model has loaded it. A *choice* says what is shown, a *policy* what may run.
//!
//! All state ([`Registry`], [`Choice`], [`Selection`], [`LoadedToolkits`], [`Policy`]) is plain data that serde stores.
//!
//! Features: `validate`, on by default, checks arguments against schemas ([`SchemaValidator`],
//! [`Registry::check_arguments`]).
//!
//! Not here: running tools, and what a provider's request looks like (`contexture-wire`).

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod calls;
mod error;
mod names;
mod offer;
mod policy;
mod registry;
mod schema;

pub use calls::{
    Arguments, ArgumentsError, Call, CallError, Issue, IssueKind, ResolveError, Resolved, Route,
    arguments,
};
pub use error::ToolError;
pub use names::{LOADER, Name, Pattern, ToolId};
pub use offer::{
    Choice, Combine, Criterion, ExcludedTool, ExclusionReason, ExclusionReasons, Offer,
    OfferRequest, OfferSlot, Selection, ToolSearchMode, ToolSupport,
};
pub use policy::{Decision, Policy, PolicyVerdict, Rule, RuleTarget};
pub use registry::{
    ArgsSchema, Batch, GroupKind, Index, IndexedUnit, LoadedToolkits, PropertyOrder, Ranked,
    Registry, Tool, ToolGroup,
};
#[cfg(feature = "validate")]
pub use schema::{ArgumentFault, SchemaError, SchemaValidator};
