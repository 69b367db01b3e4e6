//! A provider's host to which requests of others are passed on as they are: what came in goes out, byte for byte, and so
//! does the answer.
//!
//! The host is fixed when an [`Upstream`] is made. Nothing of a request can name another one, and redirects are not
//! followed. Nothing is unpacked, tried again or read.
//!
//! Not here: which headers belong to one connection only, and whose key is sent: whoever passes on decides both.

mod request_path;

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use contexture_wire::{HttpProfile, is_path_version};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Client, Method, StatusCode, Url};
use tokio::time::{Instant, timeout};

use crate::error::ClientError;
use crate::options::ClientOptions;
use crate::provider::parse_base_url;
use crate::response_body::error_chain_text;
use crate::root_certificates;

pub use request_path::decode_request_path;

/// A provider's host. It can be cloned; its connections are reused for later requests.
#[derive(Clone, Debug)]
pub struct Upstream {
    client: Client,
    base: Url,
    first_byte: Duration,
    idle: Duration,
}

/// A request to be forwarded.
#[derive(Clone)]
pub struct PassthroughRequest {
    /// HTTP method of the request.
    pub method: Method,
    /// Path and query as they came, beginning with `/`.
    pub path: String,
    /// Headers to send; the host and the length of the body are added.
    pub headers: HeaderMap,
    /// Body to send, byte for byte; may be empty.
    pub body: Bytes,
}

/// The beginning of an answer, and its body as a stream.
#[derive(Debug)]
pub struct PassthroughResponse {
    /// HTTP status of the answer.
    pub status: StatusCode,
    /// All headers of the answer.
    pub headers: HeaderMap,
    /// Body of the answer, compressed as it came. Dropping it closes the connection.
    pub body: PassthroughBody,
}

/// An error of forwarding a request or of its answer. It contains neither address nor key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// A path that could lead to another host or above the base address.
    #[error("the path cannot be passed on: {why}")]
    BadPath {
        /// Description of the fault.
        why: &'static str,
    },
    /// No connection, or one that broke before an answer.
    #[error("the provider cannot be reached: {why}")]
    Unreachable {
        /// Description of the error, without the address.
        why: String,
    },
    /// The provider sent nothing for too long.
    #[error("the provider sent nothing for {seconds} s")]
    Silent {
        /// Time that was waited, in seconds.
        seconds: u64,
    },
    /// The answer broke off.
    #[error("the provider's answer broke off: {why}")]
    BrokeOff {
        /// Description of the error, without the address.
        why: String,
    },
}

impl Upstream {
    /// The host at an address; paths of requests are put behind it, without the version that the address ends in already
    /// (`…/v1`). Of the options the time limits hold, save that of a
    /// whole call, and the roots.
    ///
    /// # Errors
    /// [`ClientError::BadAddress`] for what is no `http` or `https` address, or has a user, a query or a fragment;
    /// [`ClientError::Tls`].
    pub fn new(base: &str, options: &ClientOptions) -> Result<Self, ClientError> {
        let client = Client::builder()
            .tls_backend_preconfigured(root_certificates::tls_config(&options.roots)?)
            .connect_timeout(options.time.connect)
            .redirect(Policy::none())
            // A body is passed on as it came; decoding it here would break its length and signature.
            .no_gzip()
            .referer(false)
            .build()
            .map_err(|error| ClientError::Tls {
                why: error.to_string(),
            })?;
        Ok(Self {
            client,
            base: parse_base_url(base)?,
            first_byte: options.time.first_byte,
            idle: options.time.idle,
        })
    }

    /// Sends a request, once, and waits for the beginning of its answer.
    ///
    /// # Errors
    /// [`UpstreamError`]; an error status is an answer.
    pub async fn send(
        &self,
        request: PassthroughRequest,
    ) -> Result<PassthroughResponse, UpstreamError> {
        let url = self.request_url(&request.path)?;
        let ask = self.client.request(request.method, url);
        let mut ask = ask.headers(request.headers);
        // An empty body must not add a content length to a GET.
        if !request.body.is_empty() {
            ask = ask.body(request.body);
        }
        let sent = timeout(self.first_byte, ask.send()).await;
        let sent = sent.map_err(|_| timeout_error(self.first_byte))?;
        let unreachable = |why| UpstreamError::Unreachable { why };
        let answer = sent.map_err(|error| unreachable(transport_error_text(error)))?;
        // A changed protocol would tunnel bytes that nobody looks at.
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let why = "it changed to another protocol, which nobody asked for".to_owned();
            return Err(unreachable(why));
        }
        let broke = |error| UpstreamError::BrokeOff {
            why: transport_error_text(error),
        };
        Ok(PassthroughResponse {
            status: answer.status(),
            headers: answer.headers().clone(),
            body: PassthroughBody {
                bytes: Box::pin(answer.bytes_stream().map_err(broke)),
                idle: self.idle,
                wait: Box::pin(tokio::time::sleep(self.idle)),
            },
        })
    }

    /// Whether it is the host of the provider whose profile this is, and not another one that speaks its format.
    #[must_use]
    pub fn is_own_host(&self, profile: &HttpProfile) -> bool {
        self.base
            .host_str()
            .is_some_and(|host| profile.is_own_host(host))
    }

    /// Builds a request's address: the base's with the path behind it. Whatever could be read as another
    /// address is refused.
    fn request_url(&self, path: &str) -> Result<Url, UpstreamError> {
        let bad = |why| UpstreamError::BadPath { why };
        // Only the path is checked for steps; a query may hold anything.
        decode_request_path(path.split(['?', '#']).next().unwrap_or_default())?;
        let base = self.base.as_str().trim_end_matches('/');
        let path = without_version_of_base(self.base.path(), path);
        let url = Url::parse(&format!("{base}{path}")).map_err(|_| bad("it is no path"))?;
        // Checked after parsing as well: the parser's view is the one that counts.
        let same = url.origin() == self.base.origin()
            && url.username().is_empty()
            && url
                .path()
                .starts_with(self.base.path().trim_end_matches('/'));
        if same {
            Ok(url)
        } else {
            Err(bad("it leads elsewhere"))
        }
    }
}

/// Returns a path without the version that the base ends in already: people write `https://api.example.com/v1` for the base
/// where others write `https://api.example.com`, and no host has the version twice.
fn without_version_of_base<'p>(base: &str, path: &'p str) -> &'p str {
    let last = base.trim_end_matches('/').rsplit('/').next();
    let version = last.filter(|step| is_path_version(step));
    let rest = version.and_then(|version| path.strip_prefix('/')?.strip_prefix(version));
    rest.filter(|rest| rest.starts_with('/')).unwrap_or(path)
}

fn timeout_error(limit: Duration) -> UpstreamError {
    UpstreamError::Silent {
        seconds: limit.as_secs(),
    }
}

fn transport_error_text(error: reqwest::Error) -> String {
    error_chain_text(&error.without_url())
}

impl fmt::Debug for PassthroughRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Paths and headers may have keys in them.
        f.debug_struct("PassthroughRequest")
            .field("method", &self.method)
            .field("body", &self.body.len())
            .finish_non_exhaustive()
    }
}

type ResponseByteStream = Pin<Box<dyn Stream<Item = Result<Bytes, UpstreamError>> + Send>>;

/// The body of an answer, piece by piece as it comes. Behind an error nothing comes.
pub struct PassthroughBody {
    bytes: ResponseByteStream,
    idle: Duration,
    wait: Pin<Box<tokio::time::Sleep>>,
}

impl PassthroughBody {
    /// Reads at most about so many bytes from the front, which stay in the body: who reads the body afterwards gets all of
    /// it, as it came. Where the body breaks off, so does what follows.
    pub async fn peek(&mut self, most: usize) -> Bytes {
        self.peek_until(most, Duration::MAX, |_| false).await
    }

    /// Reads from the front as [`peek`](Self::peek) does, piece by piece as they come, until `is_enough` says of a piece that no
    /// more is needed, or the time is up.
    pub async fn peek_until(
        &mut self,
        most: usize,
        longest: Duration,
        mut is_enough: impl FnMut(&[u8]) -> bool,
    ) -> Bytes {
        let (mut read, mut length, mut broken) = (Vec::new(), 0, None);
        let begun = Instant::now();
        while length < most {
            // A piece that is late is not lost: it comes with the next reading.
            let left = longest.saturating_sub(begun.elapsed());
            let Ok(piece) = tokio::time::timeout(left, self.next()).await else {
                break;
            };
            match piece {
                Some(Ok(piece)) => {
                    length += piece.len();
                    let is_last = is_enough(&piece);
                    read.push(piece);
                    if is_last {
                        break;
                    }
                }
                Some(Err(error)) => {
                    broken = Some(error);
                    break;
                }
                None => break,
            }
        }
        let front = read.concat().into();
        let rest = std::mem::replace(&mut self.bytes, Box::pin(stream::empty()));
        let read = stream::iter(read.into_iter().map(Ok));
        self.bytes = match broken {
            None => Box::pin(read.chain(rest)),
            Some(error) => Box::pin(read.chain(stream::iter([Err(error)]))),
        };
        front
    }
}

impl Stream for PassthroughBody {
    type Item = Result<Bytes, UpstreamError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = match self.bytes.as_mut().poll_next(context) {
            Poll::Ready(piece) => piece,
            // The timer is polled only while nothing comes, and registers the waker for silence.
            Poll::Pending => {
                let idle = self.idle;
                return self
                    .wait
                    .as_mut()
                    .poll(context)
                    .map(|()| Some(Err(timeout_error(idle))));
            }
        };
        // Every piece starts the silence anew; the sum is not limited, since a stream may run for hours.
        let until = Instant::now() + self.idle;
        self.wait.as_mut().reset(until);
        Poll::Ready(piece)
    }
}

impl fmt::Debug for PassthroughBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassthroughBody").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(base: &str) -> Upstream {
        Upstream::new(base, &ClientOptions::default()).unwrap()
    }

    #[test]
    fn a_path_stays_on_its_host() {
        let groq = upstream("https://api.groq.example/openai/");
        let sent = |path| groq.request_url(path).map(|url| url.to_string());
        assert_eq!(
            sent("/v1/chat/completions?a=b%2Fc").unwrap(),
            "https://api.groq.example/openai/v1/chat/completions?a=b%2Fc"
        );
        assert_eq!(
            sent("//evil.example/v1").unwrap(),
            "https://api.groq.example/openai//evil.example/v1"
        );
        for path in [
            "",
            "*",
            "@evil.example/",
            "http://evil.example/",
            "/../v1",
            "/v1/%2e%2E/x",
            "/v1/.%2e",
            "/v1/./x",
            "/v1\\..\\x",
            "/v1/..%2f..%2fadmin",
        ] {
            let refused = matches!(groq.request_url(path), Err(UpstreamError::BadPath { .. }));
            assert!(refused, "{path:?}: {:?}", groq.request_url(path));
        }
        // Behind the question mark dots are dots.
        assert!(sent("/v1/files?path=/../x").is_ok());
    }

    #[test]
    fn a_version_of_base_and_path_is_sent_once() {
        for (base, path, expected) in [
            (
                "https://a.example/v1",
                "/v1/messages",
                "https://a.example/v1/messages",
            ),
            (
                "https://a.example/v1/",
                "/messages",
                "https://a.example/v1/messages",
            ),
            (
                "https://a.example/x/v1beta",
                "/v1beta/models/m:go?a=b",
                "https://a.example/x/v1beta/models/m:go?a=b",
            ),
            (
                "https://a.example/v1",
                "/v1beta/models",
                "https://a.example/v1/v1beta/models",
            ),
            ("https://a.example/v1", "/v1", "https://a.example/v1/v1"),
            (
                "https://a.example/v2",
                "/v1/messages",
                "https://a.example/v2/v1/messages",
            ),
            (
                "https://a.example/openai",
                "/openai/v1",
                "https://a.example/openai/openai/v1",
            ),
        ] {
            let url = upstream(base).request_url(path).unwrap();
            assert_eq!(url.as_str(), expected, "{base} {path}");
        }
    }

    #[test]
    fn what_may_have_keys_is_not_shown() {
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", "secret-key".parse().unwrap());
        let request = PassthroughRequest {
            method: Method::GET,
            path: "/v1?key=secret-key".to_owned(),
            headers,
            body: Bytes::new(),
        };
        assert!(!format!("{request:?}").contains("secret"));
    }
}
