//! The trait of a model: one payload in, one response out, whole or as a stream.
//!
//! Not here: requests and responses themselves (`call`), and the implementations (`scripted`, `replay`, and HTTP in
//! `contexture-models-http`).

use std::fmt;

use async_trait::async_trait;

use crate::call::{ModelRequest, ModelResponse};
use crate::error::ModelError;
use crate::stream::ModelStream;

/// Something that answers payloads: a provider behind HTTP, a script, a recording.
///
/// A call may be dropped at any time; what it cost until then is lost. An implementation keeps no memory
/// of earlier calls that changes what it answers, scripts and recordings apart.
#[async_trait]
pub trait Model: fmt::Debug + Send + Sync {
    /// Answers a payload.
    ///
    /// # Errors
    /// [`ModelError`]; [`ModelError::is_retryable`] says whether the same request may succeed later.
    async fn answer(&self, request: ModelRequest) -> Result<ModelResponse, ModelError>;

    /// Whether its host refuses a request that is longer than the model can hold, and says so. Only then may a caller fill
    /// the model's window by a count that is likely and not certain. Default: nothing is known, so it may cut such a
    /// request without a word.
    fn refuses_overflow(&self) -> bool {
        false
    }

    /// Answers a payload as a stream. By default the whole answer is streamed once it is there.
    ///
    /// The payload is the same as for [`Model::answer`]; an implementation that needs a word in it for that it
    /// wants a stream adds it. Dropping the stream ends the call.
    ///
    /// # Errors
    /// As [`Model::answer`], until the answer begins; what goes wrong later comes out of the stream.
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        // Taken before the request moves into the call.
        let (format, model) = (request.format, request.model.clone());
        Ok(ModelStream::from_response(
            format,
            &model,
            self.answer(request).await?,
        ))
    }
}
