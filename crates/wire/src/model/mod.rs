//! What all formats share: the vocabulary of a conversion.
//!
//! A conversion reads (*lifts*) a document of one [`Format`](format::Format) into items and writes
//! (*lowers*) items as a document of another. The terms of both directions are defined here:
//!
//! * **lifted document** ([`conversion`]): the items of a document, and what could not be read
//!   without loss;
//! * **loss** ([`loss`]): a place, a kind and a reason for everything a target cannot express;
//! * **extras** ([`format_extras`]): a format's own fields, stored with the item under `ctx:wire` so
//!   that the format gets them back; **hints** are extras that only say which of two equal shapes was
//!   written, so losing one is no loss;
//! * **paired item** ([`paired_item`]): an item with the call it answers; **role run**: consecutive
//!   items of one side, the unit that is lowered and cached;
//! * **chunk** and **envelope** ([`chunk`]): the lowered runs, and the request around them;
//! * **structure** ([`structure`]), **name rule** ([`name_rule`]), **repair rules**
//!   ([`repair_rules`]): what a format demands of a history, as data;
//! * **overhead** ([`overhead`]), **cache key rules** and **outline shape** ([`prompt_cache`]): what a
//!   provider bills and caches, as data;
//! * **evidence** ([`evidence`]): what in a document speaks for a format.
//!
//! JSON is written member by member ([`json`], [`json_builder`]) and never through a generic value:
//! the order of members and the spelling of numbers are part of a provider's cache key.
//!
//! Which output answers which call is decided in one place, [`pairing`], for every format and for
//! repair.
//!
//! Nothing here knows one format from another: what differs between formats is an argument, and each
//! format's folder states its own values (see `spec.rs`). Not here: reading and writing of any format.

pub(crate) mod call_ids;
pub(crate) mod chunk;
pub(crate) mod conversion;
pub(crate) mod error;
pub(crate) mod evidence;
pub(crate) mod format;
pub(crate) mod format_extras;
pub(crate) mod json;
pub(crate) mod json_builder;
pub(crate) mod loss;
pub(crate) mod media;
pub(crate) mod name_rule;
pub(crate) mod overhead;
pub(crate) mod paired_item;
pub(crate) mod pairing;
pub(crate) mod prompt_cache;
pub(crate) mod repair_rules;
pub(crate) mod structure;
pub(crate) mod text_fallback;
