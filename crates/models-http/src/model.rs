//! A model that is called over HTTP.

use async_trait::async_trait;
use contexture_models::{Model, ModelError, ModelRequest, ModelResponse, ModelStream};
use contexture_telemetry::count_client_retry;
use contexture_wire::{Format, ResponseMode};
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use tokio::time::{Instant, sleep};

use crate::error::ClientError;
use crate::options::ClientOptions;
use crate::provider::{Provider, request_streaming};
use crate::response_body::{HttpCall, ResponseContentType, response_content_type};
use crate::retry;
use crate::root_certificates;

/// The response headers in which providers give the id of a request.
// The most specific first: Anthropic's and OpenAI's before Google's.
const REQUEST_IDS: [&str; 3] = ["request-id", "x-request-id", "x-goog-request-id"];

/// A model that is called over HTTP. It can be shared and cloned; its connections are reused by later calls.
///
/// ```no_run
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use contexture_models_http::{HttpModel, Provider};
/// use contexture_models::{Model, ModelRequest};
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

    /// A model of a provider, with these options.
    ///
    /// # Errors
    /// As [`HttpModel::new`].
    pub fn with_options(provider: Provider, options: ClientOptions) -> Result<Self, ClientError> {
        let client = Client::builder()
            .tls_backend_preconfigured(root_certificates::tls_config(&options.roots)?)
            .connect_timeout(options.time.connect)
            // A redirect could send the key to another host.
            .redirect(Policy::none())
            .user_agent(concat!("contexture/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| ClientError::Tls {
                why: error.to_string(),
            })?;
        Ok(Self {
            client,
            headers: provider.request_headers()?,
            provider,
            options,
        })
    }

    /// Sends the request, again if it fails, until an answer begins or no retry is left.
    async fn send_with_retries(
        &self,
        request: ModelRequest,
        mode: ResponseMode,
    ) -> Result<(HttpCall, Response), ModelError> {
        let time = self.options.time;
        let call = HttpCall {
            model: request.model.clone(),
            provider: self.provider.clone(),
            idle_limit: time.idle,
            total_limit: time.whole,
            // Set once: all attempts and the waits between them share the time limit of the whole call.
            deadline: Instant::now() + time.whole,
            max_body: self.options.max_body,
        };
        if request.format != self.provider.format() {
            let provider_format = self.provider.format();
            return Err(ModelError::Refused {
                model: request.model,
                reason: format!(
                    "the payload is {}, the provider speaks {provider_format}",
                    request.format
                ),
                too_long: None,
            });
        }
        let url = self.provider.endpoint_url(&request.model, mode);
        // Shared bytes: a retry sends the same buffer again, which may hold megabytes.
        let body = bytes::Bytes::from(match mode {
            ResponseMode::Whole => request.payload,
            ResponseMode::Stream => request_streaming(request.format, request.payload),
        });
        let mut attempts = 0;
        loop {
            attempts += 1;
            let ask = self.client.post(url.clone()).headers(self.headers.clone());
            let sent = ask.body(body.clone()).send();
            let answer = call.with_deadline(time.first_byte, "answer", sent).await;
            let error =
                // A response with an error status is read here, because it decides whether there is another attempt.
                match answer.and_then(|sent| sent.map_err(|error| self.send_error(&call, error))) {
                    Ok(response) if response.status().is_success() => return Ok((call, response)),
                    Ok(response) => call.read_error_response(response).await,
                    Err(error) => error,
                };
            // The jitter is drawn here, so that `retry_delay` stays a pure function that a table can test.
            let jitter = fastrand::f64();
            let wait = retry::retry_delay(&self.options.retries, attempts, &error, jitter);
            // A wait beyond the deadline would only turn this error into a timeout.
            match wait.filter(|wait| Instant::now() + *wait < call.deadline) {
                None => return Err(error),
                Some(wait) => {
                    count_client_retry(request.format, &request.model, error.kind());
                    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                    tracing::debug!(
                        tries = attempts,
                        wait_ms,
                        kind = error.kind(),
                        "the call is tried again"
                    );
                    sleep(wait).await;
                }
            }
        }
    }

    fn send_error(&self, call: &HttpCall, error: reqwest::Error) -> ModelError {
        // In the HTTP client only connecting has a timeout; all other timeouts are set around the futures.
        if error.is_timeout() {
            let limit = self.options.time.connect.as_millis();
            return ModelError::Timeout {
                model: call.model.clone(),
                awaited: "connection",
                limit_ms: limit.try_into().unwrap_or(u64::MAX),
            };
        }
        call.transport_error(error)
    }
}

#[async_trait]
impl Model for HttpModel {
    fn refuses_overflow(&self) -> bool {
        self.provider.is_at_own_host()
    }

    async fn answer(&self, request: ModelRequest) -> Result<ModelResponse, ModelError> {
        let format = request.format;
        let (call, response) = self.send_with_retries(request, ResponseMode::Whole).await?;
        let request_id = request_id(&response);
        match response_content_type(&response, call.framing()) {
            // The payload itself may ask for a stream.
            ResponseContentType::Events => model_stream(format, call, response)?.finish().await,
            ResponseContentType::Other(kind) if !kind.is_empty() => {
                Err(unexpected_content_error(&call, &kind))
            }
            ResponseContentType::Json | ResponseContentType::Other(_) => Ok(ModelResponse {
                body: call.read_body(response).await?,
                request_id,
            }),
        }
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let format = request.format;
        let (call, response) = self
            .send_with_retries(request, ResponseMode::Stream)
            .await?;
        let request_id = request_id(&response);
        match response_content_type(&response, call.framing()) {
            // Some hosts cannot stream and send the whole answer at once.
            ResponseContentType::Json => {
                let body = call.read_body(response).await?;
                let answer = ModelResponse { body, request_id };
                Ok(ModelStream::from_response(format, &call.model, answer))
            }
            ResponseContentType::Other(kind) if !kind.is_empty() => {
                Err(unexpected_content_error(&call, &kind))
            }
            ResponseContentType::Events | ResponseContentType::Other(_) => {
                model_stream(format, call, response)
            }
        }
    }
}

fn model_stream(
    format: Format,
    call: HttpCall,
    response: Response,
) -> Result<ModelStream, ModelError> {
    let model = call.model.clone();
    let request_id = request_id(&response);
    let stream = ModelStream::new(format, &model, call.into_event_stream(response))?;
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

fn unexpected_content_error(call: &HttpCall, kind: &str) -> ModelError {
    let framed = call.framing().content_type();
    let why = format!("expected application/json or {framed}, got {kind:?}");
    call.malformed_error(&why)
}
