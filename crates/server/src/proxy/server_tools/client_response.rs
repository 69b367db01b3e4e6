//! How a client gets an answer of several rounds: a stream as it comes, without what is not the client's; a document once
//! it is whole.

use std::future::ready;
use std::io;

use axum::body::Body;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, StatusCode};
use bytes::{Bytes, BytesMut};
use contexture::Format;
use contexture::models_http::{
    PassthroughBody, PassthroughResponse, decompress_stream, decompress_to_end,
};
use contexture::wire::{Accumulator, StreamEvent};
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::proxy::capture::parse_answer::{self, MAX_ANSWER_BYTES};
use crate::proxy::failure::ProxyFailure;
use crate::proxy::headers::forwarded_response_headers;
use crate::proxy::refusal::ProxyRefusal;
use crate::proxy::server_tools::sse::{SseEvent, SseEventBuffer};
use crate::proxy::server_tools::stream_editor::StreamEditor;
use crate::proxy::server_tools::tools::ServerTools;

/// Pieces of a stream that wait for the client.
const CHANNEL_CAPACITY: usize = 16;

/// What the client is answered: the head, and a body that may still come.
#[derive(Debug)]
pub(crate) struct ClientReply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// Where the client waits for its answer.
#[derive(Debug)]
pub(crate) struct ClientChannel(oneshot::Sender<Result<ClientReply, ProxyRefusal>>);

/// Where the client waits, and what it waits for. Dropped, there is no answer.
pub(crate) fn client_channel() -> (
    ClientChannel,
    oneshot::Receiver<Result<ClientReply, ProxyRefusal>>,
) {
    let (back, shown) = oneshot::channel();
    (ClientChannel(back), shown)
}

/// What came of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoundResponse {
    /// Its document, as far as it came.
    pub(crate) document: Option<String>,
    pub(crate) end: RoundEnd,
}

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoundEnd {
    /// The model said all.
    Whole,
    /// Nothing more came, though the answer does not say that it is all.
    Short,
    /// It broke off, or the client left.
    Broken,
}

/// An answer on its way to the client.
pub(crate) enum ClientResponse {
    Whole {
        /// Taken once the client is answered.
        back: Option<ClientChannel>,
        /// The last round as it came.
        last: Option<(StatusCode, HeaderMap, Bytes)>,
    },
    Stream {
        out: Option<mpsc::Sender<io::Result<Bytes>>>,
        sieve: Box<StreamEditor>,
    },
}

impl ClientResponse {
    /// For the answer that begins with this; the client gets the head of a stream now.
    pub(crate) fn begin_response(
        format: Format,
        own: &ServerTools,
        first: &PassthroughResponse,
        back: ClientChannel,
    ) -> Self {
        let sieve = StreamEditor::new(format, own)
            .filter(|_| parse_answer::is_event_stream(&first.headers));
        let Some(sieve) = sieve else {
            return Self::Whole {
                back: Some(back),
                last: None,
            };
        };
        let (out, pieces) = mpsc::channel(CHANNEL_CAPACITY);
        let pieces = stream::unfold(pieces, |mut pieces| async move {
            let piece: io::Result<Bytes> = pieces.recv().await?;
            Some((piece, pieces))
        });
        let shown = ClientReply {
            status: first.status,
            headers: headers_for_new_body(&first.headers),
            body: Body::from_stream(pieces),
        };
        // A client that has gone is noticed by its stream.
        let _ = back.0.send(Ok(shown));
        Self::Stream {
            out: Some(out),
            sieve: Box::new(sieve),
        }
    }

    /// Whether the client waits no more.
    pub(crate) fn is_client_gone(&self) -> bool {
        match self {
            Self::Whole { back, .. } => back.as_ref().is_none_or(|back| back.0.is_closed()),
            Self::Stream { out, .. } => out.as_ref().is_none_or(mpsc::Sender::is_closed),
        }
    }

    /// Once the client waits no more.
    pub(crate) async fn wait_for_disconnect(&mut self) {
        match self {
            Self::Whole {
                back: Some(back), ..
            } => back.0.closed().await,
            Self::Stream { out: Some(out), .. } => out.closed().await,
            _ => {}
        }
    }

    /// Hears a round, and shows what of it can be shown already. A client that leaves cuts it off.
    ///
    /// # Errors
    /// It cannot be read; what of it was no call of ours is shown.
    pub(crate) async fn capture_round(
        &mut self,
        format: Format,
        passed: PassthroughResponse,
        tell: &mut (dyn FnMut(Vec<StreamEvent>) + Send),
    ) -> Result<RoundResponse, ProxyFailure> {
        let PassthroughResponse {
            status,
            headers,
            body,
        } = passed;
        match self {
            Self::Stream { out, sieve } => {
                let Some(sender) = out.as_ref() else {
                    return Ok(RoundResponse::empty());
                };
                let heard = StreamCapture::new(format, sieve, sender, tell)?;
                heard.forward_stream(&headers, body).await
            }
            Self::Whole { back, last } => {
                let Some(back) = back else {
                    return Ok(RoundResponse::empty());
                };
                let (bytes, ended) = tokio::select! {
                    collected = collect_body(body) => collected,
                    () = back.0.closed() => return Ok(RoundResponse::empty()),
                };
                *last = Some((status, headers.clone(), bytes.clone()));
                let bytes = decompress_to_end(&headers, bytes, MAX_ANSWER_BYTES).await;
                let bytes = bytes.map_err(|error| ProxyFailure::from_error("answer", &error))?;
                let text = String::from_utf8(bytes.into());
                let text = text.map_err(|error| ProxyFailure::from_error("answer", &error))?;
                let document = parse_answer::complete_document(format, text)?;
                Ok(RoundResponse {
                    document,
                    end: ended,
                })
            }
        }
    }

    /// Another round goes on with the answer.
    pub(crate) async fn begin_next_round(&mut self) {
        if let Self::Stream { sieve, .. } = self {
            let bytes = sieve.begin_next_round();
            self.send_chunk(Ok(bytes)).await;
        }
    }

    /// The answer is over: this is all of it, or what came last as it came.
    pub(crate) async fn finish_response(&mut self, whole: Option<&Value>) {
        match self {
            Self::Stream { sieve, .. } => {
                let bytes = sieve.finish_stream(whole);
                self.send_chunk(Ok(bytes)).await;
                self.close_channel();
            }
            Self::Whole { last, .. } => {
                let Some((status, headers, bytes)) = last.take() else {
                    return self.close_channel();
                };
                let shown = match whole {
                    None => ClientReply {
                        status,
                        headers: forwarded_response_headers(&headers),
                        body: Body::from(bytes),
                    },
                    Some(whole) => {
                        // Gemini streams into an array where no events are asked for.
                        let is_list = bytes.trim_ascii_start().starts_with(b"[");
                        let body = match is_list {
                            true => format!("[{whole}]"),
                            false => whole.to_string(),
                        };
                        ClientReply {
                            status,
                            headers: headers_for_new_body(&headers),
                            body: Body::from(body),
                        }
                    }
                };
                self.send_reply(Ok(shown));
            }
        }
    }

    /// The answer breaks off, as the upstream's did.
    pub(crate) async fn abort_response(&mut self) {
        let broken = || io::Error::other("the provider's answer broke off");
        match self {
            Self::Stream { .. } => {
                self.send_chunk(Err(broken())).await;
                self.close_channel();
            }
            Self::Whole { last, .. } => {
                let Some((status, headers, bytes)) = last.take() else {
                    return self.close_channel();
                };
                let end = async move {
                    // What came goes out before it breaks off.
                    tokio::task::yield_now().await;
                    Err(broken())
                };
                let pieces = stream::once(ready(Ok(bytes))).chain(stream::once(end));
                self.send_reply(Ok(ClientReply {
                    status,
                    headers: forwarded_response_headers(&headers),
                    body: Body::from_stream(pieces),
                }));
            }
        }
    }

    /// Another round was answered with an error, or not at all. A stream that has begun breaks off.
    pub(crate) async fn respond_with_failure(
        &mut self,
        failed: Result<PassthroughResponse, ProxyRefusal>,
    ) {
        if let Self::Stream { .. } = self {
            return self.abort_response().await;
        }
        self.send_reply(failed.map(|passed| ClientReply {
            status: passed.status,
            headers: forwarded_response_headers(&passed.headers),
            body: Body::from_stream(passed.body),
        }));
    }

    fn send_reply(&mut self, shown: Result<ClientReply, ProxyRefusal>) {
        if let Self::Whole { back, .. } = self
            && let Some(back) = back.take()
        {
            // A client that has gone needs no answer.
            let _ = back.0.send(shown);
        }
    }

    async fn send_chunk(&mut self, piece: io::Result<Bytes>) {
        let is_nothing = piece.as_ref().is_ok_and(Bytes::is_empty);
        if let Self::Stream { out: Some(out), .. } = self
            && !is_nothing
        {
            // Whether the client is still there is asked elsewhere.
            let _ = out.send(piece).await;
        }
    }

    fn close_channel(&mut self) {
        match self {
            Self::Stream { out, .. } => *out = None,
            Self::Whole { back, .. } => *back = None,
        }
    }
}

impl RoundResponse {
    /// The document as a value.
    pub(crate) fn document_value(&self) -> Value {
        let document = self.document.as_deref().unwrap_or_default();
        serde_json::from_str(document).unwrap_or_default()
    }

    const fn empty() -> Self {
        Self {
            document: None,
            end: RoundEnd::Broken,
        }
    }
}

/// A stream that is heard.
struct StreamCapture<'a> {
    accumulator: Accumulator,
    editor: &'a mut StreamEditor,
    out: &'a mpsc::Sender<io::Result<Bytes>>,
    publish: &'a mut (dyn FnMut(Vec<StreamEvent>) + Send),
    has_events: bool,
    /// Why it cannot be kept.
    failure: Option<ProxyFailure>,
}

impl<'a> StreamCapture<'a> {
    fn new(
        format: Format,
        sieve: &'a mut StreamEditor,
        out: &'a mpsc::Sender<io::Result<Bytes>>,
        tell: &'a mut (dyn FnMut(Vec<StreamEvent>) + Send),
    ) -> Result<Self, ProxyFailure> {
        Ok(Self {
            accumulator: parse_answer::new_accumulator(format)?,
            editor: sieve,
            out,
            publish: tell,
            has_events: false,
            failure: None,
        })
    }

    async fn forward_stream(
        mut self,
        headers: &HeaderMap,
        body: PassthroughBody,
    ) -> Result<RoundResponse, ProxyFailure> {
        let pieces = body.map(|piece| piece.map_err(io::Error::other)).boxed();
        let pieces = decompress_stream(headers, pieces);
        let mut pieces = pieces.map_err(|error| ProxyFailure::from_error("answer", &error))?;
        let mut events = SseEventBuffer::default();
        let mut cut = false;
        loop {
            let piece = tokio::select! {
                piece = pieces.next() => piece,
                () = self.out.closed() => { cut = true; None }
            };
            let mut shown = BytesMut::new();
            let ended = piece.is_none();
            match piece {
                Some(Ok(bytes)) if events.pending_bytes() <= MAX_ANSWER_BYTES => {
                    events.push(&bytes)
                }
                Some(_) => cut = true,
                None => {}
            }
            while let Some(event) = events.next_event() {
                shown.extend_from_slice(&self.process_event(event));
            }
            if ended
                && !cut
                && let Some(event) = events.take_unterminated()
            {
                shown.extend_from_slice(&self.process_event(event));
            }
            if !shown.is_empty() {
                cut |= self.out.send(Ok(shown.freeze())).await.is_err();
            }
            if ended || cut {
                break;
            }
        }
        if let Some(miss) = self.failure {
            return Err(miss);
        }
        let document = match self.accumulator.finish() {
            Ok(document) => Some(document),
            Err(_) if self.has_events => Some(self.accumulator.finish_incomplete()),
            Err(_) => None,
        };
        let ended = match (cut, self.accumulator.is_complete()) {
            (true, _) => RoundEnd::Broken,
            (false, true) => RoundEnd::Whole,
            (false, false) => RoundEnd::Short,
        };
        Ok(RoundResponse {
            document,
            end: ended,
        })
    }

    fn process_event(&mut self, event: SseEvent) -> Bytes {
        if !event.data.is_empty() {
            self.has_events = true;
            match self.accumulator.push(&event.data) {
                Ok(said) => (self.publish)(said),
                Err(error) => {
                    self.failure
                        .get_or_insert_with(|| ProxyFailure::from_error("answer", &error));
                }
            }
        }
        self.editor.edit_event(event)
    }
}

/// A body, as far as it comes.
async fn collect_body(mut body: PassthroughBody) -> (Bytes, RoundEnd) {
    let mut bytes = BytesMut::new();
    while let Some(piece) = body.next().await {
        match piece {
            Ok(piece) if bytes.len().saturating_add(piece.len()) <= MAX_ANSWER_BYTES => {
                bytes.extend_from_slice(&piece);
            }
            _ => return (bytes.freeze(), RoundEnd::Broken),
        }
    }
    (bytes.freeze(), RoundEnd::Whole)
}

/// The head of an answer whose body is another one.
fn headers_for_new_body(headers: &HeaderMap) -> HeaderMap {
    let mut headers = forwarded_response_headers(headers);
    headers.remove(CONTENT_LENGTH);
    headers.remove(CONTENT_ENCODING);
    headers
}
