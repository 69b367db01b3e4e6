//! For whom a request is answered.

use contexture::Owner;

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read: tools that change something are neither listed nor run.
    Read,
    /// Read and change.
    Write,
}

/// For whom a request is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub(crate) owner: Owner,
    pub(crate) access: Access,
}

impl Caller {
    /// Somebody who acts for an owner.
    #[must_use]
    pub const fn new(owner: Owner, access: Access) -> Self {
        Self { owner, access }
    }
}
