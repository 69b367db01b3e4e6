//! Behind which head something goes.

use contexture_ir::NodeId;

/// Behind which head a draft goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum ExpectedHead {
    /// Whichever there is.
    #[default]
    Tip,
    /// This one, as far as an answer of a model is in it.
    Answer(Option<NodeId>),
    /// This one and no other.
    Only(Option<NodeId>),
}
