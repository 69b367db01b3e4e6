//! Tokens of images, files and sound, by the rule of the model they are sent to.
//!
//! ```
//! use contexture_catalogue::Catalogue;
//! use contexture_tokens::media::{Detail, Dimensions, image_tokens, rules_of};
//!
//! let model = Catalogue::builtin().resolve("gpt-4o")?;
//! let size = Dimensions { width: 1024, height: 1024 };
//! assert_eq!(image_tokens(rules_of(model), Some(size), Detail::High).count, 765);
//! # Ok::<(), contexture_catalogue::CatalogueError>(())
//! ```
//!
//! All counts here are estimates with bounds: providers publish their rules but reserve the right to differ. What
//! cannot be measured (a remote image, a broken header) counts as the largest that the rule allows, and each function
//! says what that is. Not here: fetching anything, and decoding pixels; only headers are read.

mod dimensions;
mod document;
mod image;
mod rules;
mod sound;

pub use dimensions::Dimensions;
pub use document::{document_tokens, pdf_pages};
pub use image::{Detail, UnknownDetail, image_tokens};
pub use rules::rules_of;
pub use sound::audio_tokens;
