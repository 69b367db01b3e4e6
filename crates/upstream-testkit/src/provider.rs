//! Who decides what is answered.

use crate::answer::UpstreamResponse;
use crate::received::Received;

/// What an upstream answers.
pub trait Provider: Send + Sync + 'static {
    /// The answer to a request.
    fn respond_to(&self, request: &Received) -> UpstreamResponse;
}

impl<F: Fn(&Received) -> UpstreamResponse + Send + Sync + 'static> Provider for F {
    fn respond_to(&self, request: &Received) -> UpstreamResponse {
        self(request)
    }
}
