//! The choice of a counter by encoding.
//!
//! A model whose encoding is known needs only its `encoding` in `crates/catalogue/data/facts.toml`. A new encoding is a variant of
//! [`Encoding`], and here either an exact counter (its vocabulary in `data/`, a static in `exact.rs`, a pattern in `split/`) or
//! the ratios of an estimate (`estimate.rs`).

use contexture_catalogue::Encoding;

use crate::counter::TokenCounter;
use crate::estimate::EstimatingCounter;
use crate::exact::ExactCounter;

/// The counter of an encoding: exact for `o200k_base` and `cl100k_base`, an estimate with bounds for the others.
///
/// For a model, pass `model.encoding`. Nothing is loaded before the first count.
#[must_use]
pub fn counter_for(encoding: Encoding) -> &'static dyn TokenCounter {
    match encoding {
        Encoding::O200kBase => ExactCounter::o200k_base(),
        Encoding::Cl100kBase => ExactCounter::cl100k_base(),
        estimated => EstimatingCounter::for_encoding(estimated),
    }
}
