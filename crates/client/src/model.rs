//! A model behind HTTP.

use async_trait::async_trait;
use contexture_llm::{Model, ModelError, ModelRequest, ModelResponse, ModelStream};
use contexture_telemetry::client_retried;
use contexture_wire::Format;
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use tokio::time::{Instant, sleep};

use crate::error::ClientError;
use crate::exchange::{Call, Content, content};
use crate::options::ClientOptions;
use crate::payload;
use crate::provider::{Mode, Provider};
use crate::retry;
use crate::trust;

/// The headers in which providers name a call.
const REQUEST_IDS: [&str; 3] = ["request-id", "x-request-id", "x-goog-request-id"];

/// A model behind HTTP. It can be shared and cloned; its connections are kept for later calls.
///
/// ```no_run
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use contexture_client::{HttpModel, Provider};
/// use contexture_llm::{Model, ModelRequest};
/// use contexture_wire::Format;
///
/// let model = HttpModel::new(Provider::from_env(Format::Anthropic)?)?;
/// let request = ModelRequest {
///     format: Format::Anthropic,
///     model: "claude-haiku-4-5".into(),
///     payload: r#"{"model":"claude-haiku-4-5","max_tokens":64,"messages":[{"role":"user","content":"Hi"}]}"#.into(),
/// };
/// let mut stream = model.stream(request).await?;
/// while let Some(event) = stream.next().await {
///     println!("{}", event?.name());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct HttpModel {
    client: Client,
    provider: Provider,
    headers: HeaderMap,
    options: ClientOptions,
}

impl HttpModel {
    /// A model of a provider, with the default limits.
    ///
    /// # Errors
    /// [`ClientError::BadKey`], [`ClientError::Tls`].
    pub fn new(provider: Provider) -> Result<Self, ClientError> {
        Self::with_options(provider, ClientOptions::default())
    }

    /// A model of a provider, with limits.
    ///
    /// # Errors
    /// As [`HttpModel::new`].
    pub fn with_options(provider: Provider, options: ClientOptions) -> Result<Self, ClientError> {
        let client = Client::builder()
            .tls_backend_preconfigured(trust::tls(&options.roots)?)
            .connect_timeout(options.time.connect)
            .redirect(Policy::none())
            .user_agent(concat!("contexture/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| ClientError::Tls {
                why: error.to_string(),
            })?;
        Ok(Self {
            client,
            headers: provider.headers()?,
            provider,
            options,
        })
    }

    /// Asks until there is the beginning of an answer, or no more to be tried.
    async fn open(
        &self,
        request: ModelRequest,
        mode: Mode,
    ) -> Result<(Call, Response), ModelError> {
        let time = self.options.time;
        let call = Call {
            model: request.model.clone(),
            provider: self.provider.clone(),
            idle: time.idle,
            whole: time.whole,
            deadline: Instant::now() + time.whole,
            max_body: self.options.max_body,
        };
        if request.format != self.provider.format() {
            let spoken = self.provider.format();
            return Err(ModelError::Refused {
                model: request.model,
                why: format!(
                    "the payload is {}, the provider speaks {spoken}",
                    request.format
                ),
                too_long: false,
            });
        }
        let url = self.provider.address(&request.model, mode);
        let body = bytes::Bytes::from(match mode {
            Mode::Whole => request.payload,
            Mode::Stream => payload::streamed(request.format, request.payload),
        });
        let mut tries = 0;
        loop {
            tries += 1;
            let ask = self.client.post(url.clone()).headers(self.headers.clone());
            let sent = ask.body(body.clone()).send();
            let answer = call.within(time.first_byte, "answer", sent).await;
            let error =
                match answer.and_then(|sent| sent.map_err(|error| self.unsent(&call, error))) {
                    Ok(response) if response.status().is_success() => return Ok((call, response)),
                    Ok(response) => call.refused(response).await,
                    Err(error) => error,
                };
            let spread = fastrand::f64();
            let wait = retry::wait(&self.options.retries, tries, &error, spread);
            match wait.filter(|wait| Instant::now() + *wait < call.deadline) {
                None => return Err(error),
                Some(wait) => {
                    client_retried(request.format, &request.model, error.kind());
                    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                    tracing::debug!(
                        tries,
                        wait_ms,
                        kind = error.kind(),
                        "the call is tried again"
                    );
                    sleep(wait).await;
                }
            }
        }
    }

    fn unsent(&self, call: &Call, error: reqwest::Error) -> ModelError {
        if error.is_timeout() {
            let limit = self.options.time.connect.as_millis();
            return ModelError::Timeout {
                model: call.model.clone(),
                what: "connection",
                limit_ms: limit.try_into().unwrap_or(u64::MAX),
            };
        }
        call.broken(error)
    }
}

#[async_trait]
impl Model for HttpModel {
    async fn answer(&self, request: ModelRequest) -> Result<ModelResponse, ModelError> {
        let format = request.format;
        let (call, response) = self.open(request, Mode::Whole).await?;
        let request_id = request_id(&response);
        match content(&response) {
            // A payload may ask for a stream by itself.
            Content::Events => streamed(format, call, response)?.finish().await,
            Content::Other(kind) if !kind.is_empty() => Err(unexpected(&call, &kind)),
            Content::Json | Content::Other(_) => Ok(ModelResponse {
                body: call.body(response).await?,
                request_id,
            }),
        }
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let format = request.format;
        let (call, response) = self.open(request, Mode::Stream).await?;
        let request_id = request_id(&response);
        match content(&response) {
            // Some hosts cannot stream and answer whole.
            Content::Json => {
                let body = call.body(response).await?;
                let answer = ModelResponse { body, request_id };
                Ok(ModelStream::whole(format, &call.model, answer))
            }
            Content::Other(kind) if !kind.is_empty() => Err(unexpected(&call, &kind)),
            Content::Events | Content::Other(_) => streamed(format, call, response),
        }
    }
}

fn streamed(format: Format, call: Call, response: Response) -> Result<ModelStream, ModelError> {
    let model = call.model.clone();
    let request_id = request_id(&response);
    let stream = ModelStream::new(format, &model, call.events(response))?;
    Ok(stream.with_request_id(request_id))
}

fn request_id(response: &Response) -> Option<String> {
    let id = |name: &&str| {
        response
            .headers()
            .get(*name)?
            .to_str()
            .ok()
            .map(str::to_owned)
    };
    REQUEST_IDS.iter().find_map(id)
}

fn unexpected(call: &Call, kind: &str) -> ModelError {
    let why = format!("expected application/json or text/event-stream, got {kind:?}");
    call.malformed(&why)
}
