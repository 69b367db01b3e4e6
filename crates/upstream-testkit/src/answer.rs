//! Answers of an upstream: content, pace and ending.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::Semaphore;

/// An answer: a status, headers and a body, and how these are sent.
///
/// Headers are sent as they are given, in their order; what frames the body is added.
#[derive(Clone, Debug)]
pub struct UpstreamResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) pieces: Vec<Bytes>,
    pub(crate) framing: Framing,
    pub(crate) pace: Pace,
    pub(crate) end: BodyEnding,
    pub(crate) delay: Duration,
}

/// How the end of the body is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// By its length, given first.
    Length,
    /// Each piece is a chunk.
    Chunks,
}

/// When the pieces after the first are sent.
#[derive(Clone, Debug)]
pub(crate) enum Pace {
    AtOnce,
    Through(Gate),
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyEnding {
    /// The answer is whole, and the connection stays open for the next request.
    Whole,
    /// After so many bytes of the body the connection is closed, as if the upstream had died.
    Dropped(usize),
    /// After so many bytes of the body nothing is sent until the client leaves.
    Stalled(usize),
    /// The connection is closed before anything is sent.
    Silent,
}

impl BodyEnding {
    /// How much of the body is sent.
    pub(crate) fn byte_limit(self) -> usize {
        // No limit: the whole body is sent.
        match self {
            Self::Whole => usize::MAX,
            Self::Dropped(bytes) | Self::Stalled(bytes) => bytes,
            Self::Silent => 0,
        }
    }
}

impl UpstreamResponse {
    /// Returns an answer with a JSON document as its body.
    #[must_use]
    pub fn json(status: u16, document: &Value) -> Self {
        Self::from_body(status, "application/json", document.to_string())
    }

    /// Returns an answer with a plain text as its body.
    #[must_use]
    pub fn text(status: u16, text: &str) -> Self {
        Self::from_body(status, "text/plain; charset=utf-8", text.to_owned())
    }

    /// Returns a stream of server-sent events with status 200, each event a chunk of its own.
    /// Events are given as written, with the empty line after them.
    #[must_use]
    pub fn event_stream(events: impl IntoIterator<Item = String>) -> Self {
        Self {
            pieces: events.into_iter().map(Bytes::from).collect(),
            framing: Framing::Chunks,
            ..Self::from_body(200, "text/event-stream; charset=utf-8", Bytes::new())
        }
    }

    /// Returns the answer that sends nothing: the connection is closed when the request has been read.
    #[must_use]
    pub fn no_response() -> Self {
        Self {
            end: BodyEnding::Silent,
            ..Self::text(200, "")
        }
    }

    /// Returns an answer with a body of that content type.
    #[must_use]
    pub fn from_body(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            pieces: vec![body.into()],
            framing: Framing::Length,
            pace: Pace::AtOnce,
            end: BodyEnding::Whole,
            delay: Duration::ZERO,
        }
    }

    /// Returns the same answer with one more header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Returns the same answer in chunks of so many bytes, wherever that cuts.
    ///
    /// # Panics
    /// When `bytes` is 0.
    #[must_use]
    pub fn in_pieces_of(self, bytes: usize) -> Self {
        let body = self.body();
        Self {
            // Cut by bytes and not by characters or events: clients must put them together again.
            pieces: body.chunks(bytes).map(Bytes::copy_from_slice).collect(),
            framing: Framing::Chunks,
            ..self
        }
    }

    /// Returns the same answer, each chunk but the first sent when the gate lets it through.
    #[must_use]
    pub fn gated_by(self, gate: &Gate) -> Self {
        Self {
            pace: Pace::Through(gate.clone()),
            ..self
        }
    }

    /// Returns the same answer, begun so much later.
    #[must_use]
    pub fn delayed_by(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Returns the same answer, with the connection lost after so many bytes of the body.
    #[must_use]
    pub fn dropped_at(self, bytes: usize) -> Self {
        Self {
            end: BodyEnding::Dropped(bytes),
            ..self
        }
    }

    /// Returns the same answer, with nothing sent any more after so many bytes of the body.
    #[must_use]
    pub fn stalled_at(self, bytes: usize) -> Self {
        Self {
            end: BodyEnding::Stalled(bytes),
            ..self
        }
    }

    /// Returns the HTTP status of the answer.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the headers in their order, without those that frame the body.
    #[must_use]
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// Returns the whole body, its pieces joined.
    #[must_use]
    pub fn body(&self) -> Bytes {
        self.pieces.concat().into()
    }
}

/// A gate that lets chunks through when a test says so.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Semaphore>);

impl Gate {
    /// A closed one.
    #[must_use]
    pub fn new_closed() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Lets so many more chunks through.
    pub fn release_chunks(&self, chunks: usize) {
        self.0.add_permits(chunks);
    }

    pub(crate) async fn wait_for_release(&self) {
        // Forgotten, or the permit would return to the gate and let another chunk through.
        self.0.acquire().await.unwrap().forget();
    }
}
