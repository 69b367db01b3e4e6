//! Futures polled by hand, that know whether they were woken.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A future and whether it was woken since it was last polled.
pub(crate) struct Task<T> {
    future: Pin<Box<dyn Future<Output = T>>>,
    flag: Arc<Flag>,
}

impl<T> Task<T> {
    pub(crate) fn new(future: impl Future<Output = T> + 'static) -> Self {
        Self {
            future: Box::pin(future),
            flag: Arc::new(Flag(AtomicBool::new(false))),
        }
    }

    pub(crate) fn poll(&mut self) -> Poll<T> {
        self.flag.0.store(false, Ordering::SeqCst);
        let waker = Waker::from(Arc::clone(&self.flag));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    pub(crate) fn was_woken(&self) -> bool {
        self.flag.0.load(Ordering::SeqCst)
    }
}
