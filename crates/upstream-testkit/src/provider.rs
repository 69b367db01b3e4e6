//! Who decides what is answered.

use crate::answer::Answer;
use crate::received::Received;

/// What an upstream answers.
pub trait Provider: Send + Sync + 'static {
    /// The answer to a request.
    fn answer(&self, request: &Received) -> Answer;
}

impl<F: Fn(&Received) -> Answer + Send + Sync + 'static> Provider for F {
    fn answer(&self, request: &Received) -> Answer {
        self(request)
    }
}
