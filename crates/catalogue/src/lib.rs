//! Models as data: context windows, prices, encodings, capabilities.
//!
//! [`Catalogue::builtin`] is a table of the current models of the large providers, compiled in and read on first use;
//! no network is involved. A user's own data, as JSON or TOML text, is laid over it and wins
//! ([`Catalogue::with_json`], [`Catalogue::with_toml`]); a model nobody lists is a [`ModelSpec`] made by hand.
//!
//! ```
//! use contexture_catalogue::{Catalogue, Encoding, Usage};
//!
//! let catalogue = Catalogue::builtin();
//! let model = catalogue.resolve("anthropic/claude-opus-4.8")?;
//! assert_eq!(model.id, "claude-opus-4-8");
//! assert_eq!(model.encoding, Encoding::ClaudeV2);
//!
//! let mut usage = Usage::default();
//! usage.input = Some(1_000);
//! usage.output = Some(200);
//! let cost = model.prices.cost(&usage);
//! assert!(cost.is_complete());
//! assert_eq!(cost.to_string(), "$0.01");
//!
//! let error = catalogue.resolve("claude-opus-48").unwrap_err();
//! assert!(error.to_string().contains("claude-opus-4-8"));
//! # Ok::<(), contexture_catalogue::CatalogueError>(())
//! ```
//!
//! Invariants: prices are integers and costs are computed without rounding; what is not known is absent, never
//! zero; the order of models never depends on a hash. Not here: counting tokens (see the tokens crate), and anything
//! that asks a provider.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod aliases;
mod catalogue;
mod encoding;
mod error;
mod media;
mod models_file;
mod money;
mod price;
mod spec;

pub use catalogue::Catalogue;
pub use encoding::{Encoding, UnknownEncoding};
pub use error::CatalogueError;
pub use media::{AutoDetail, Bounds, ImageRule, MediaRules, PatchLimit};
pub use money::{Money, MoneyError};
pub use price::{Cost, Meter, Price, PriceTier, Prices, Usage};
pub use spec::{CacheKind, CacheSupport, Capabilities, ModelSpec, Overflow, ToolPrompt};
