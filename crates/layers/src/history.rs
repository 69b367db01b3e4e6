//! How layers change the way the history is shown.

use std::sync::Arc;

use contexture_compile::{HistoryPolicy, Pass};

/// How the history is shown. Layers change it one after the other; the tree keeps everything.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    /// The window, and what is cleared, previewed, cut. It starts as the target's.
    pub policy: HistoryPolicy,
    /// Passes over the items. A call with passes is kept for replay as hashes only.
    pub passes: Vec<Arc<dyn Pass>>,
}
