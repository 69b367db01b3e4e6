//! A response that is still coming.
//!
//! A model gives the data of events; what they say, and the body they come to, is read here, once for all
//! models. Not here: bytes and lines.

use std::collections::VecDeque;
use std::fmt;

use contexture_wire::{Accumulator, Format, StreamError, StreamEvent};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};

use crate::call::ModelResponse;
use crate::error::ModelError;
use crate::events_of_response;

/// A response that is still coming. Dropping it ends the call.
pub struct ModelStream {
    model: String,
    request_id: Option<String>,
    source: StreamSource,
    ready: VecDeque<StreamEvent>,
    /// What ended the stream before the response did, and whether it was reported.
    error: Option<ModelError>,
    ended: bool,
}

enum StreamSource {
    Events {
        events: BoxStream<'static, Result<String, ModelError>>,
        answer: Box<Accumulator>,
    },
    Whole(String),
}

impl ModelStream {
    /// The answer that the data of these events come to.
    ///
    /// # Errors
    /// [`ModelError::Refused`] for a format that has no streams.
    pub fn new(
        format: Format,
        model: &str,
        events: impl Stream<Item = Result<String, ModelError>> + Send + 'static,
    ) -> Result<Self, ModelError> {
        // Refused and not malformed: another format would help, another attempt would not.
        let answer = Accumulator::new(format).map_err(|error| ModelError::Refused {
            model: model.to_owned(),
            reason: error.to_string(),
            too_long: None,
        })?;
        Ok(Self::from_source(
            model,
            StreamSource::Events {
                events: events.boxed(),
                answer: Box::new(answer),
            },
        ))
    }

    /// An answer that is there already.
    #[must_use]
    pub fn from_response(format: Format, model: &str, response: ModelResponse) -> Self {
        let ready = events_of_response::events_of_response(format, &response.body);
        Self {
            ready,
            request_id: response.request_id,
            ..Self::from_source(model, StreamSource::Whole(response.body))
        }
    }

    fn from_source(model: &str, source: StreamSource) -> Self {
        Self {
            model: model.to_owned(),
            request_id: None,
            source,
            ready: VecDeque::new(),
            error: None,
            ended: false,
        }
    }

    /// With the provider's id of the call.
    #[must_use]
    pub fn with_request_id(self, request_id: Option<String>) -> Self {
        Self { request_id, ..self }
    }

    /// The provider's id of the call.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// What is said next; `None` at the end. An error is the last thing said.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<StreamEvent, ModelError>> {
        loop {
            // Events that were read before an error are given before it.
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if self.ended {
                return None;
            }
            if let Some(error) = self.read_event().await {
                self.ended = true;
                // Kept for `finish`, which must fail after the caller has seen the error.
                self.error = Some(error.clone());
                return Some(Err(error));
            }
        }
    }

    /// The whole answer, once it has come. What [`ModelStream::next`] did not give yet is skipped.
    ///
    /// # Errors
    /// What ended the stream before the answer did.
    pub async fn finish(mut self) -> Result<ModelResponse, ModelError> {
        while let Some(event) = self.next().await {
            event?;
        }
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(self.partial_response()),
        }
    }

    /// What came so far, as a body; of an answer that did not end yet, its unfinished items are
    /// `incomplete`.
    #[must_use]
    pub fn partial_response(&self) -> ModelResponse {
        let body = match &self.source {
            StreamSource::Events { answer, .. } => answer.finish_incomplete(),
            StreamSource::Whole(body) => body.clone(),
        };
        ModelResponse {
            body,
            request_id: self.request_id.clone(),
        }
    }

    /// Takes one event, or the end; gives what went wrong.
    async fn read_event(&mut self) -> Option<ModelError> {
        let StreamSource::Events { events, answer } = &mut self.source else {
            self.ended = true;
            return None;
        };
        match events.next().await {
            // Behind a whole answer nothing can go wrong that matters.
            Some(Err(error)) if !answer.is_complete() => Some(error),
            None | Some(Err(_)) => {
                // The provider may close without a last event; the accumulator knows whether the answer was
                // complete.
                self.ended = true;
                let error = answer.finish().err()?;
                Some(to_model_error(&self.model, error))
            }
            Some(Ok(data)) => match answer.push(&data) {
                Err(error) => Some(to_model_error(&self.model, error)),
                Ok(mut said) => {
                    let failed = matches!(said.last(), Some(StreamEvent::Failed(_)));
                    // A failure within the stream ends it, after the events that came with it.
                    let failure = said.pop_if(|_| failed);
                    self.ready.extend(said);
                    match failure? {
                        StreamEvent::Failed(failure) => {
                            Some(ModelError::from_failure(&self.model, &failure, None, None))
                        }
                        _ => None,
                    }
                }
            },
        }
    }
}

impl fmt::Debug for ModelStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelStream")
            .field("model", &self.model)
            .field("request_id", &self.request_id)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

fn to_model_error(model: &str, error: StreamError) -> ModelError {
    let model = model.to_owned();
    match error {
        StreamError::Failed(failure) => ModelError::from_failure(&model, &failure, None, None),
        // The connection broke: retrying may help, which a malformed answer would not allow.
        StreamError::Cut { .. } => ModelError::Unreachable {
            model,
            reason: error.to_string(),
        },
        error => ModelError::Malformed {
            model,
            reason: error.to_string(),
        },
    }
}
