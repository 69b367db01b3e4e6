//! Cancellation: a tree of aborts that propagates to children, never to parents.
//!
//! An [`Abort`] gets a reason once; later ones are ignored. All existing children are aborted before [`Abort::abort`]
//! returns, and children created later are aborted from the start. Dropped children leave nothing in their parent.
//!
//! Not here: what is cancelled (work opts in by [`Abort::run_until_aborted`]), and cleaning up.

use std::future::Future;
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// The work was cancelled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cancelled: {reason}")]
pub struct Cancelled {
    /// Reason given by the caller that cancelled it.
    pub reason: Arc<str>,
}

/// Cancels work, with a reason. A clone refers to the same abort; a [`child`](Abort::child) is aborted with it.
///
/// ```
/// use contexture_runs::Abort;
///
/// let run = Abort::new();
/// let part = run.child();
/// part.abort("not needed");
/// assert!(run.reason().is_none());
///
/// let other = run.child();
/// run.abort("the user left");
/// run.abort("too late to say so");
/// assert_eq!(&*other.reason().unwrap().reason, "the user left");
/// assert_eq!(&*part.reason().unwrap().reason, "not needed");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Abort {
    node: Arc<AbortNode>,
}

#[derive(Debug, Default)]
struct AbortNode {
    /// The reason. Set before the token is cancelled, or copied from an ancestor on first use; once set it never changes.
    reason: OnceLock<Cancelled>,
    token: CancellationToken,
    parent: Option<Arc<AbortNode>>,
}

impl Abort {
    /// Creates an abort without a parent.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a child: aborting this aborts the child, aborting the child leaves this alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            node: Arc::new(AbortNode {
                reason: OnceLock::new(),
                token: self.node.token.child_token(),
                parent: Some(Arc::clone(&self.node)),
            }),
        }
    }

    /// Aborts this and its children. Does nothing if it was aborted before.
    pub fn abort(&self, reason: impl Into<Arc<str>>) {
        if self.reason().is_some() {
            return;
        }
        // Reason first, then token: whoever sees the token cancelled finds a reason. Of two concurrent aborts, the
        // first reason counts.
        let reason = reason.into();
        self.node.reason.get_or_init(|| Cancelled { reason });
        self.node.token.cancel();
    }

    /// Returns the reason, if it was aborted.
    #[must_use]
    pub fn reason(&self) -> Option<Cancelled> {
        self.node
            .token
            .is_cancelled()
            .then(|| self.node.effective_reason())
    }

    /// Returns an error if it was aborted, for points at which work may end.
    ///
    /// ```
    /// use contexture_runs::Abort;
    ///
    /// let abort = Abort::new();
    /// assert!(abort.ensure_not_aborted().is_ok());
    /// abort.abort("the user left");
    /// assert!(abort.ensure_not_aborted().is_err());
    /// ```
    ///
    /// # Errors
    /// [`Cancelled`], with the reason.
    pub fn ensure_not_aborted(&self) -> Result<(), Cancelled> {
        self.reason().map_or(Ok(()), Err)
    }

    /// Waits until it is aborted.
    pub async fn wait_for_abort(&self) -> Cancelled {
        self.node.token.cancelled().await;
        self.node.effective_reason()
    }

    /// Runs work until it is done or this is aborted, whichever is first; an abort drops the work at its current await.
    /// Work does not start after an abort; a result that is ready at the moment of the abort is returned.
    ///
    /// # Errors
    /// [`Cancelled`], with the reason.
    pub async fn run_until_aborted<F: Future>(&self, work: F) -> Result<F::Output, Cancelled> {
        // Checked before the first poll: a poll may already have side effects.
        self.ensure_not_aborted()?;
        tokio::select! {
            // Biased towards the work: a result that is ready when the abort happens is not discarded.
            biased;
            done = work => Ok(done),
            cancelled = self.wait_for_abort() => Err(cancelled),
        }
    }
}

impl AbortNode {
    /// Returns the reason of a node whose token is cancelled: its own, or that of the nearest ancestor that has one.
    fn effective_reason(&self) -> Cancelled {
        // Read lazily: the token cancels all descendants at once, but copying the reason down would need a list of
        // them.
        let inherited = || {
            let above =
                std::iter::successors(self.parent.as_deref(), |node| node.parent.as_deref());
            let mut reasons = above.filter_map(|node| node.reason.get());
            let found = reasons.next().cloned();
            debug_assert!(found.is_some(), "a reason is set before its token");
            found.unwrap_or_else(|| Cancelled {
                reason: "no reason given".into(),
            })
        };
        self.reason.get_or_init(inherited).clone()
    }
}

/// Drops a chain of parents in a loop: recursion would overflow the stack in a very deep one.
impl Drop for AbortNode {
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            next = node.parent.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;

    fn said(abort: &Abort) -> Option<String> {
        abort.reason().map(|cancelled| cancelled.reason.to_string())
    }

    #[test]
    fn the_first_reason_wins_and_goes_down_only() {
        let root = Abort::new();
        let (left, right) = (root.child(), root.child());
        let below = left.child();
        left.abort("left");
        left.abort("again");
        assert_eq!(said(&left).as_deref(), Some("left"));
        assert_eq!(said(&below).as_deref(), Some("left"));
        assert_eq!(said(&root), None);
        assert_eq!(said(&right), None);
        root.abort("all");
        below.abort("late");
        assert_eq!(said(&right).as_deref(), Some("all"));
        assert_eq!(said(&left).as_deref(), Some("left"));
        assert_eq!(said(&below).as_deref(), Some("left"));
        assert_eq!(said(&root.child().child()).as_deref(), Some("all"));
    }

    #[test]
    fn a_child_whose_parent_was_dropped_still_hears_what_is_above() {
        let root = Abort::new();
        let below = root.child().child();
        root.abort("all");
        assert_eq!(said(&below).as_deref(), Some("all"));
    }

    #[test]
    fn dropped_children_leave_nothing_and_long_chains_unwind() {
        let root = Abort::new();
        let child: Weak<AbortNode> = Arc::downgrade(&root.child().node);
        assert!(child.upgrade().is_none());
        assert_eq!(Arc::strong_count(&root.node), 1);
        let mut deep = root.clone();
        for _ in 0..100_000 {
            deep = deep.child();
        }
        drop(deep);
        assert_eq!(Arc::strong_count(&root.node), 1);
    }

    #[tokio::test]
    async fn work_ends_with_the_abort_and_is_not_begun_after_it() {
        let abort = Abort::new();
        assert_eq!(abort.run_until_aborted(async { 1 }).await, Ok(1));
        let never = std::future::pending::<()>();
        let child = abort.child();
        let (ended, ()) = tokio::join!(child.run_until_aborted(never), async {
            abort.abort("enough")
        });
        assert_eq!(ended.unwrap_err().to_string(), "cancelled: enough");
        let mut begun = false;
        let late = child.run_until_aborted(async { begun = true }).await;
        assert!(late.is_err() && !begun);
    }

    #[test]
    fn of_many_aborts_at_once_one_reason_is_said_everywhere() {
        for _ in 0..200 {
            let root = Abort::new();
            let child = root.child();
            let heard = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4)
                    .map(|n| {
                        let (root, child) = (&root, &child);
                        scope.spawn(move || {
                            let at = if n % 2 == 0 { root } else { child };
                            at.abort(format!("{n}"));
                            (said(root), said(child))
                        })
                    })
                    .collect();
                let heard: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
                heard
            });
            for (of_root, of_child) in heard {
                assert!(of_root.is_none() || of_root == said(&root));
                assert_eq!(of_child, said(&child));
            }
        }
    }
}
