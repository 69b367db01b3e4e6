//! The handle of a run for those who do not drive it: [`RunHandle`] observes and cancels.

use std::sync::Arc;

use contexture_ir::RunId;

use crate::channels::Channels;
use crate::execution::LiveRun;
use crate::tasks::{Abort, Cancelled};

/// A handle for observers of a run: its id, its channels, and a way to abort it.
#[derive(Clone, Debug)]
pub struct RunHandle {
    id: RunId,
    abort: Abort,
    channels: Channels,
}

impl RunHandle {
    pub(crate) fn of(run: &LiveRun) -> Self {
        Self {
            id: run.id,
            abort: run.abort.clone(),
            channels: run.channels.bound_to(&run.abort),
        }
    }

    /// The run's id.
    #[must_use]
    pub const fn id(&self) -> RunId {
        self.id
    }

    /// Aborts the run and its children: calls in progress are cut off, finished work stays stored.
    pub fn abort(&self, reason: impl Into<Arc<str>>) {
        self.abort.abort(reason);
    }

    /// Returns why the run was aborted, if it was.
    #[must_use]
    pub fn abort_reason(&self) -> Option<Cancelled> {
        self.abort.reason()
    }

    /// The run's abort: for work that is to end with the run, such as [`Abort::run_until_aborted`].
    #[must_use]
    pub const fn abort_signal(&self) -> &Abort {
        &self.abort
    }

    /// The channels of the run's tree. An abort of the run ends every wait on them.
    #[must_use]
    pub const fn channels(&self) -> &Channels {
        &self.channels
    }
}
