//! Fragments rendered to text for a model: XML, Markdown, TOML, TOON, YAML, JSON.
//!
//! A [`Renderer`] turns a list of [`Fragment`](contexture_ir::Fragment)s into one string. It is a
//! pure function: the same list gives the same bytes on every machine. Three things hold for every
//! renderer here:
//!
//! * **Nothing breaks out.** No name, key or value can close the tag, table, string, bullet or
//!   heading it stands in, or open another.
//! * **Nothing is lost silently.** What a format cannot carry is named in its module's documentation:
//!   nulls (JSON and YAML keep them), and the difference between `1` and `"1"` where a format has no
//!   types.
//! * **Nothing overflows.** A tree deeper than [`MAX_DEPTH`](contexture_ir::MAX_DEPTH) is refused with
//!   [`RenderError::TooDeep`].
//!
//! Fragments that carry messages belong to the history and are left out; one that stands inside
//! another fragment's data is shown as the data it decodes to.
//!
//! ```
//! use contexture_ir::{fragment, hint, role, term};
//! use contexture_render::{Renderer, XmlRenderer};
//!
//! let fragments = [
//!     role("You are a bookkeeper."),
//!     fragment("domain", (hint("Amounts are in cents."), term("MRR", "monthly revenue"))),
//! ];
//! assert_eq!(
//!     XmlRenderer::default().render(&fragments)?,
//!     "<role>You are a bookkeeper.</role>\n\
//!      <domain>\n  <hint>Amounts are in cents.</hint>\n  <term>\n    <name>MRR</name>\n    \
//!      <definition>monthly revenue</definition>\n  </term>\n</domain>",
//! );
//! # Ok::<(), contexture_render::RenderError>(())
//! ```
//!
//! Features: `all-formats`, on by default, brings TOML, TOON and [`Format`], the list of all formats by name.
//!
//! Not here: fragments themselves (`contexture-ir`), where text stands in a prompt and what it costs
//! (`contexture-compile`).

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod document;
#[cfg(feature = "all-formats")]
mod format;
mod json;
mod markdown;
mod pluralize;
mod prepare;
mod primitives;
mod renderer;
#[cfg(feature = "all-formats")]
mod toml;
#[cfg(feature = "all-formats")]
mod toon;
mod xml;
mod yaml;

#[cfg(feature = "all-formats")]
pub use self::toml::TomlRenderer;
pub use document::{DataOptions, DocumentShape};
#[cfg(feature = "all-formats")]
pub use format::{Format, UnknownFormat};
pub use json::{JsonOptions, JsonRenderer};
pub use markdown::{MarkdownOptions, MarkdownRenderer};
pub use pluralize::{plural, singular};
pub use renderer::{Grouping, RenderError, Renderer};
#[cfg(feature = "all-formats")]
pub use toon::{TOON_SPEC, ToonRenderer};
pub use xml::{XmlElement, XmlOptions, XmlRenderer};
pub use yaml::YamlRenderer;
