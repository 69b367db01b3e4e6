//! A model that says what was written down, and remembers what it was asked.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use contexture_ir::quote;
use contexture_wire::Format;

use crate::call::{ModelRequest, ModelResponse};
use crate::error::ModelError;
use crate::model::Model;
use crate::reply::Reply;
use crate::stream::ModelStream;

type Answer = Result<Reply, ModelError>;
type Answering = Box<dyn FnMut(&ModelRequest) -> Answer + Send>;

/// A model for tests: answers from a list, or by a function.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use contexture_llm::{Model, ModelRequest, ScriptedModel};
/// use contexture_wire::Format;
///
/// let model = ScriptedModel::saying(Format::OpenAiChat, ["Bamako."]);
/// let request = ModelRequest {
///     format: Format::OpenAiChat,
///     model: "gpt-4o".into(),
///     payload: r#"{"messages":[]}"#.into(),
/// };
/// assert!(model.answer(request.clone()).await?.body.contains("Bamako."));
/// assert_eq!(model.asked(), [request]);
/// # Ok::<(), contexture_llm::ModelError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ScriptedModel(Mutex<Script>);

struct Script {
    asked: Vec<ModelRequest>,
    answering: Answering,
}

impl ScriptedModel {
    /// Answers that are given one after the other; behind the last one there is
    /// [`ModelError::NoAnswer`].
    #[must_use]
    pub fn new(answers: impl IntoIterator<Item = Result<ModelResponse, ModelError>>) -> Self {
        Self::replies(answers.into_iter().map(|answer| answer.map(Reply::from)))
    }

    /// Streams that are given one after the other, each as the data of its events; an error breaks the stream
    /// off where it stands. A caller that wants no stream is given what the stream comes to.
    #[must_use]
    pub fn streaming(streams: impl IntoIterator<Item = Vec<Result<String, ModelError>>>) -> Self {
        Self::replies(streams.into_iter().map(|events| Ok(Reply::Events(events))))
    }

    fn replies(answers: impl Iterator<Item = Answer>) -> Self {
        let mut answers: VecDeque<Answer> = answers.collect();
        let mut call = 0;
        Self::answering(move |request| {
            call += 1;
            answers.pop_front().unwrap_or_else(|| {
                Err(ModelError::NoAnswer {
                    model: request.model.clone(),
                    call,
                    why: format!("the script has {} answers", call - 1),
                })
            })
        })
    }

    /// Texts that are given one after the other, as whole answers in a format.
    #[must_use]
    pub fn saying<T: Into<String>>(format: Format, texts: impl IntoIterator<Item = T>) -> Self {
        let answer = |text: T| Ok(ModelResponse::new(text_response(format, &text.into())));
        Self::new(texts.into_iter().map(answer).collect::<Vec<_>>())
    }

    /// Answers by a function.
    #[must_use]
    pub fn by(
        mut answering: impl FnMut(&ModelRequest) -> Result<ModelResponse, ModelError> + Send + 'static,
    ) -> Self {
        Self::answering(move |request| answering(request).map(Reply::from))
    }

    fn answering(answering: impl FnMut(&ModelRequest) -> Answer + Send + 'static) -> Self {
        Self(Mutex::new(Script {
            asked: Vec::new(),
            answering: Box::new(answering),
        }))
    }

    /// The requests so far.
    #[must_use]
    pub fn asked(&self) -> Vec<ModelRequest> {
        self.script().asked.clone()
    }

    fn reply(&self, request: &ModelRequest) -> Answer {
        let mut script = self.script();
        script.asked.push(request.clone());
        (script.answering)(request)
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        // A function that panicked leaves a list of requests that is as good as before.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Model for ScriptedModel {
    async fn answer(&self, request: ModelRequest) -> Result<ModelResponse, ModelError> {
        self.reply(&request)?.answer(&request).await
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        self.reply(&request)?.stream(&request)
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked = self.script().asked.len();
        f.debug_struct("ScriptedModel")
            .field("asked", &asked)
            .finish_non_exhaustive()
    }
}

/// The smallest body by which a provider says a text and is done. What is no provider's format is answered
/// as Chat Completions would.
#[must_use]
pub fn text_response(format: Format, text: &str) -> String {
    let text = quote(text);
    match format {
        Format::Anthropic => format!(
            r#"{{"id":"msg_1","type":"message","role":"assistant","model":"scripted","content":[{{"type":"text","text":{text}}}],"stop_reason":"end_turn","stop_sequence":null,"usage":{{"input_tokens":1,"output_tokens":1}}}}"#
        ),
        Format::OpenAiResponses => format!(
            r#"{{"id":"resp_1","object":"response","created_at":0,"status":"completed","model":"scripted","output":[{{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{{"type":"output_text","text":{text},"annotations":[]}}]}}],"usage":{{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}}"#
        ),
        Format::Gemini => format!(
            r#"{{"candidates":[{{"content":{{"role":"model","parts":[{{"text":{text}}}]}},"finishReason":"STOP","index":0}}],"usageMetadata":{{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}},"modelVersion":"scripted"}}"#
        ),
        _ => format!(
            r#"{{"id":"chatcmpl-1","object":"chat.completion","created":0,"model":"scripted","choices":[{{"index":0,"message":{{"role":"assistant","content":{text},"refusal":null}},"finish_reason":"stop","logprobs":null}}],"usage":{{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}}}"#
        ),
    }
}
