//! Replies that are known beforehand, whole or as the events of a stream.

use futures_util::stream;

use crate::call::{ModelRequest, ModelResponse};
use crate::error::ModelError;
use crate::stream::ModelStream;

/// A reply that was written down or recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CannedReply {
    /// A whole response, not streamed.
    Whole(ModelResponse),
    /// Streamed: the data of each event, or what broke the stream off.
    Events(Vec<Result<String, ModelError>>),
}

impl From<ModelResponse> for CannedReply {
    fn from(response: ModelResponse) -> Self {
        Self::Whole(response)
    }
}

impl From<String> for CannedReply {
    fn from(body: String) -> Self {
        Self::Whole(ModelResponse::new(body))
    }
}

impl From<&str> for CannedReply {
    fn from(body: &str) -> Self {
        Self::Whole(ModelResponse::new(body))
    }
}

impl CannedReply {
    pub(crate) async fn into_response(
        self,
        request: &ModelRequest,
    ) -> Result<ModelResponse, ModelError> {
        match self {
            Self::Whole(response) => Ok(response),
            // Read through a stream as a client would, so that a recorded failure ends the call as it ended
            // then.
            events => events.into_stream(request)?.finish().await,
        }
    }

    pub(crate) fn into_stream(self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        match self {
            Self::Whole(response) => Ok(ModelStream::from_response(
                request.format,
                &request.model,
                response,
            )),
            Self::Events(events) => {
                ModelStream::new(request.format, &request.model, stream::iter(events))
            }
        }
    }
}
