//! The tools of an agent: which there are, which of them a model is offered, what its calls mean and whether they may run.
//!
//! A [`Registry`] holds tools and groups. [`Registry::offer`] picks those that a [`Choice`] keeps, in an order that holds
//! from call to call, with a reason for each that is left out. [`Registry::resolve`] takes a [`Call`] to its tool by any
//! route, under a [`Policy`]; [`arguments::parse_arguments`] mends arguments that are not quite JSON, and [`Registry::check_arguments`] holds
//! them against the tool's schema.
//!
//! All state ([`Registry`], [`Choice`], [`Selection`], [`LoadedToolkits`], [`Policy`]) is plain data that serde stores.
//!
//! Not here: running tools, and what a provider's request looks like (`contexture-wire`).

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod arguments;
mod call;
mod choice;
mod definition;
mod error;
mod index;
mod keywords;
mod name;
mod namespace;
mod native;
mod near;
mod offer;
mod pattern;
mod policy;
mod registry;
mod removed;
mod resolve;
mod tool;
mod toolkit;
mod validate;
mod words;

pub use arguments::{Arguments, ArgumentsError, Issue, IssueKind};
pub use call::{Call, CallError};
pub use choice::{Choice, Combine, Criterion};
pub use error::ToolError;
pub use index::{Index, IndexedUnit, Ranked};
pub use name::{LOADER, Name, ToolId};
pub use namespace::ArgsSchema;
pub use native::{ToolSearchMode, ToolSupport};
pub use offer::{Offer, OfferRequest, OfferSlot, Selection};
pub use pattern::Pattern;
pub use policy::{Decision, Policy, PolicyVerdict, Rule, RuleTarget};
pub use registry::{Batch, Registry};
pub use removed::{ExcludedTool, ExclusionReason, ExclusionReasons};
pub use resolve::{ResolveError, Resolved, Route};
pub use tool::{GroupKind, PropertyOrder, Tool, ToolGroup};
pub use toolkit::LoadedToolkits;
pub use validate::{ArgumentFault, SchemaError, SchemaValidator};
