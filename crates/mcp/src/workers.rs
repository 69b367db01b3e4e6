//! Where requests are worked on.

use std::fmt;
use std::sync::Arc;

use contexture::Owner;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

/// Function that does the work of an owner, somewhere else than here.
type SpawnWork = Arc<dyn Fn(Owner, BoxFuture<'static, ()>) + Send + Sync>;

/// Where requests are worked on: compiling counts tokens without pausing, and on the threads of a server it would hold up
/// other requests. Clones are the same. Default: a thread of the runtime's blocking pool for each.
///
/// ```
/// use contexture_mcp::{HttpOptions, Workers};
///
/// // A program with threads of its own for such work would hand it to them here.
/// let workers = Workers::new(|_owner, work| {
///     tokio::spawn(work);
/// });
/// let options = HttpOptions { workers, ..HttpOptions::default() };
/// # let _ = options;
/// ```
#[derive(Clone)]
pub struct Workers(SpawnWork);

impl Workers {
    /// Work that this function begins. It must not wait for the work's end.
    #[must_use]
    pub fn new(spawn: impl Fn(Owner, BoxFuture<'static, ()>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(spawn))
    }

    pub(crate) fn spawn(&self, owner: Owner, work: impl Future<Output = ()> + Send + 'static) {
        (self.0)(owner, work.boxed());
    }
}

impl Default for Workers {
    fn default() -> Self {
        Self::new(|_, work| {
            let runtime = Handle::current();
            // Its end is told by the work itself.
            drop(tokio::task::spawn_blocking(move || runtime.block_on(work)));
        })
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Workers").finish_non_exhaustive()
    }
}
