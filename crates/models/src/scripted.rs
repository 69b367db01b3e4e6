//! A model that answers by script and keeps its requests.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use contexture_wire::Format;

use crate::call::{ModelRequest, ModelResponse};
use crate::canned_reply::CannedReply;
use crate::error::ModelError;
use crate::model::Model;
use crate::stream::ModelStream;

type ReplyResult = Result<CannedReply, ModelError>;
type ReplyHandler = Box<dyn FnMut(&ModelRequest) -> ReplyResult + Send>;

/// A model for tests: answers from a list, or by a function.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use contexture_models::{Model, ModelRequest, ScriptedModel};
/// use contexture_wire::Format;
///
/// let model = ScriptedModel::with_texts(Format::OpenAiChat, ["Bamako."]);
/// let request = ModelRequest {
///     format: Format::OpenAiChat,
///     model: "gpt-4o".into(),
///     payload: r#"{"messages":[]}"#.into(),
/// };
/// assert!(model.answer(request.clone()).await?.body.contains("Bamako."));
/// assert_eq!(model.requests(), [request]);
/// # Ok::<(), contexture_models::ModelError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ScriptedModel {
    state: Mutex<ScriptState>,
    refuses_overflow: bool,
}

struct ScriptState {
    requests: Vec<ModelRequest>,
    handler: ReplyHandler,
}

impl ScriptedModel {
    /// Answers that are given one after the other; behind the last one there is
    /// [`ModelError::NoAnswer`].
    #[must_use]
    pub fn new(answers: impl IntoIterator<Item = Result<ModelResponse, ModelError>>) -> Self {
        Self::from_replies(
            answers
                .into_iter()
                .map(|answer| answer.map(CannedReply::from)),
        )
    }

    /// Streams that are given one after the other, each as the data of its events; an error breaks the stream
    /// off where it stands. A caller that wants no stream is given what the stream comes to.
    #[must_use]
    pub fn with_streams(
        streams: impl IntoIterator<Item = Vec<Result<String, ModelError>>>,
    ) -> Self {
        Self::from_replies(
            streams
                .into_iter()
                .map(|events| Ok(CannedReply::Events(events))),
        )
    }

    fn from_replies(answers: impl Iterator<Item = ReplyResult>) -> Self {
        let mut answers: VecDeque<ReplyResult> = answers.collect();
        let mut call = 0;
        // Errors are used up like answers: a script may say that the second call fails.
        Self::from_handler(move |request| {
            call += 1;
            answers.pop_front().unwrap_or_else(|| {
                Err(ModelError::NoAnswer {
                    model: request.model.clone(),
                    call,
                    reason: format!("the script has {} answers", call - 1),
                })
            })
        })
    }

    /// Texts that are given one after the other, as whole answers in a format.
    #[must_use]
    pub fn with_texts<T: Into<String>>(format: Format, texts: impl IntoIterator<Item = T>) -> Self {
        let answer = |text: T| Ok(ModelResponse::new(text_response(format, &text.into())));
        Self::new(texts.into_iter().map(answer).collect::<Vec<_>>())
    }

    /// Answers by a function.
    #[must_use]
    pub fn with_fn(
        mut answering: impl FnMut(&ModelRequest) -> Result<ModelResponse, ModelError> + Send + 'static,
    ) -> Self {
        Self::from_handler(move |request| answering(request).map(CannedReply::from))
    }

    fn from_handler(answering: impl FnMut(&ModelRequest) -> ReplyResult + Send + 'static) -> Self {
        Self {
            state: Mutex::new(ScriptState {
                requests: Vec::new(),
                handler: Box::new(answering),
            }),
            refuses_overflow: false,
        }
    }

    /// The same, of a host that [refuses what is too long](Model::refuses_overflow).
    #[must_use]
    pub const fn with_refused_overflow(mut self) -> Self {
        self.refuses_overflow = true;
        self
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.lock_script().requests.clone()
    }

    fn next_reply(&self, request: &ModelRequest) -> ReplyResult {
        let mut script = self.lock_script();
        // Kept before the handler runs, so that a panic in it still shows what was asked.
        script.requests.push(request.clone());
        (script.handler)(request)
    }

    fn lock_script(&self) -> MutexGuard<'_, ScriptState> {
        // A function that panicked leaves a list of requests that is as good as before.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Model for ScriptedModel {
    fn refuses_overflow(&self) -> bool {
        self.refuses_overflow
    }

    async fn answer(&self, request: ModelRequest) -> Result<ModelResponse, ModelError> {
        self.next_reply(&request)?.into_response(&request).await
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        self.next_reply(&request)?.into_stream(&request)
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked = self.lock_script().requests.len();
        f.debug_struct("ScriptedModel")
            .field("asked", &asked)
            .finish_non_exhaustive()
    }
}

/// The smallest body by which a provider says a text and is done. What is no provider's format is answered
/// as Chat Completions would.
#[must_use]
pub fn text_response(format: Format, text: &str) -> String {
    let own = format.spec().text_response(text);
    own.or_else(|| Format::COMPATIBLE.spec().text_response(text))
        .unwrap_or_default()
}
