//! The client's response to an answer of several rounds: a stream as it comes, without the calls of server tools; a document
//! once all rounds are merged.

use std::future::ready;
use std::io;

use axum::body::Body;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, StatusCode};
use bytes::{Bytes, BytesMut};
use contexture::Format;
use contexture::engine::AnswerDelivery;
use contexture::models_http::{
    PassthroughResponse, UpstreamError, decompress_stream, decompress_to_end,
};
use contexture::wire::{Accumulator, Frame, FrameReader, StreamEvent};
use futures_util::{Stream, StreamExt as _, stream};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::proxy::capture::parse_answer::{self, MAX_ANSWER_BYTES};
use crate::proxy::failure::ProxyFailure;
use crate::proxy::headers::forwarded_response_headers;
use crate::proxy::refusal::ProxyRefusal;
use crate::proxy::server_tools::stream_editor::StreamEditor;
use crate::proxy::server_tools::tools::ServerTools;
use crate::state::call_log::CallRecorder;

/// Pieces of a stream that may wait for a slow client. Beyond, the provider's stream is read no further.
const CHANNEL_CAPACITY: usize = 16;

/// The client's answer: its head, and a body that may still come.
#[derive(Debug)]
pub(crate) struct ClientReply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// Sends the client its answer.
#[derive(Debug)]
pub(crate) struct ClientChannel {
    reply: oneshot::Sender<Result<ClientReply, ProxyRefusal>>,
    /// Dropped before the client gets the last of the answer.
    delivery: AnswerDelivery,
}

/// Creates the channel on which the client waits. If the sender is dropped, there is no answer.
pub(crate) fn client_channel(
    delivery: AnswerDelivery,
) -> (
    ClientChannel,
    oneshot::Receiver<Result<ClientReply, ProxyRefusal>>,
) {
    let (sender, reply) = oneshot::channel();
    let channel = ClientChannel {
        reply: sender,
        delivery,
    };
    (channel, reply)
}

/// A round as it was captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoundResponse {
    /// Its document, as far as it came; `None` if nothing did.
    pub(crate) document: Option<String>,
    pub(crate) end: RoundEnd,
}

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoundEnd {
    /// The answer is complete.
    Whole,
    /// The stream ended without the event that completes an answer.
    Short,
    /// The connection broke off, or the client left.
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
        editor: Box<StreamEditor>,
    },
}

impl ClientResponse {
    /// Begins the client's response. Of a stream the client gets the head now.
    pub(crate) fn begin_response(
        format: Format,
        server_tools: &ServerTools,
        first: &PassthroughResponse,
        back: ClientChannel,
    ) -> Self {
        let editor = StreamEditor::new(format, server_tools)
            .filter(|_| parse_answer::is_event_stream(format, &first.headers));
        let Some(editor) = editor else {
            return Self::Whole {
                back: Some(back),
                last: None,
            };
        };
        let ClientChannel { reply, delivery } = back;
        let (out, pieces) = mpsc::channel(CHANNEL_CAPACITY);
        // The delivery is part of the stream's state, so it is over before the client sees the stream's end.
        let pieces = stream::unfold((pieces, delivery), |(mut pieces, delivery)| async move {
            let piece: io::Result<Bytes> = pieces.recv().await?;
            Some((piece, (pieces, delivery)))
        });
        let shown = ClientReply {
            status: first.status,
            headers: headers_for_new_body(&first.headers),
            body: Body::from_stream(pieces),
        };
        // A client that has gone is noticed by its stream, which is read next.
        let _ = reply.send(Ok(shown));
        Self::Stream {
            out: Some(out),
            editor: Box::new(editor),
        }
    }

    /// Whether the client has disconnected.
    pub(crate) fn is_client_gone(&self) -> bool {
        match self {
            Self::Whole { back, .. } => back.as_ref().is_none_or(|back| back.reply.is_closed()),
            Self::Stream { out, .. } => out.as_ref().is_none_or(mpsc::Sender::is_closed),
        }
    }

    /// Waits until the client disconnects.
    pub(crate) async fn wait_for_disconnect(&mut self) {
        match self {
            Self::Whole {
                back: Some(back), ..
            } => back.reply.closed().await,
            Self::Stream { out: Some(out), .. } => out.closed().await,
            _ => {}
        }
    }

    /// Captures a round, and forwards what of it the client may see already. A client that leaves cuts it off.
    ///
    /// # Errors
    /// It cannot be parsed. The client has got what was not a call of a server tool.
    pub(crate) async fn capture_round(
        &mut self,
        format: Format,
        answer: PassthroughResponse,
        call: &CallRecorder,
        publish: &mut (dyn FnMut(Vec<StreamEvent>) + Send),
    ) -> Result<RoundResponse, ProxyFailure> {
        let PassthroughResponse {
            status,
            headers,
            body,
        } = answer;
        let call = call.clone();
        let body = body.inspect(move |_| call.set_first_byte());
        match self {
            Self::Stream { out, editor } => {
                let Some(sender) = out.as_ref() else {
                    return Ok(RoundResponse::empty());
                };
                let capture = StreamCapture::new(format, editor, sender, publish)?;
                capture.forward_stream(&headers, body).await
            }
            Self::Whole { back, last } => {
                let Some(back) = back else {
                    return Ok(RoundResponse::empty());
                };
                let (bytes, ended) = tokio::select! {
                    collected = collect_body(body) => collected,
                    () = back.reply.closed() => return Ok(RoundResponse::empty()),
                };
                // Kept as it came, still compressed: an answer that needs no merging goes out byte
                // for byte.
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

    /// Begins the next round: what of this one's end is the client's goes out.
    pub(crate) async fn begin_next_round(&mut self) {
        if let Self::Stream { editor, .. } = self {
            let bytes = editor.begin_next_round();
            self.send_chunk(Ok(bytes)).await;
        }
    }

    /// Ends the response with the merged answer, or with the last round as it came.
    pub(crate) async fn finish_response(&mut self, merged: Option<&Value>) {
        match self {
            Self::Stream { editor, .. } => {
                let bytes = editor.finish_stream(merged);
                self.send_chunk(Ok(bytes)).await;
                self.close_channel();
            }
            Self::Whole { last, .. } => {
                let Some((status, headers, bytes)) = last.take() else {
                    return self.close_channel();
                };
                let reply = match merged {
                    None => ClientReply {
                        status,
                        headers: forwarded_response_headers(&headers),
                        body: Body::from(bytes),
                    },
                    Some(merged) => {
                        // Gemini streams into an array where no events are asked for, so the client expects one.
                        let is_list = bytes.trim_ascii_start().starts_with(b"[");
                        let body = match is_list {
                            true => format!("[{merged}]"),
                            false => merged.to_string(),
                        };
                        ClientReply {
                            status,
                            headers: headers_for_new_body(&headers),
                            body: Body::from(body),
                        }
                    }
                };
                self.send_reply(Ok(reply));
            }
        }
    }

    /// Breaks the response off, as the provider's did: a clean end would tell the client that it has all.
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
                    // The bytes that came are flushed before the error closes the connection.
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

    /// Answers with the failure of a later round. A stream that has begun cannot take another status, so it breaks off.
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

    fn send_reply(&mut self, reply: Result<ClientReply, ProxyRefusal>) {
        if let Self::Whole { back, .. } = self
            && let Some(back) = back.take()
        {
            drop(back.delivery);
            // A client that has gone needs no answer.
            let _ = back.reply.send(reply);
        }
    }

    async fn send_chunk(&mut self, piece: io::Result<Bytes>) {
        let is_nothing = piece.as_ref().is_ok_and(Bytes::is_empty);
        if let Self::Stream { out: Some(out), .. } = self
            && !is_nothing
        {
            // A failed send means that the client has gone, which `is_client_gone` reports.
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
    /// Returns the document as a JSON value.
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

/// A stream that is captured while it is forwarded.
struct StreamCapture<'a> {
    accumulator: Accumulator,
    frames: Box<dyn FrameReader>,
    editor: &'a mut StreamEditor,
    out: &'a mpsc::Sender<io::Result<Bytes>>,
    publish: &'a mut (dyn FnMut(Vec<StreamEvent>) + Send),
    has_events: bool,
    /// Why it cannot be stored.
    failure: Option<ProxyFailure>,
}

impl<'a> StreamCapture<'a> {
    fn new(
        format: Format,
        editor: &'a mut StreamEditor,
        out: &'a mpsc::Sender<io::Result<Bytes>>,
        publish: &'a mut (dyn FnMut(Vec<StreamEvent>) + Send),
    ) -> Result<Self, ProxyFailure> {
        Ok(Self {
            accumulator: parse_answer::new_accumulator(format)?,
            frames: format.spec().frame_reader(),
            editor,
            out,
            publish,
            has_events: false,
            failure: None,
        })
    }

    /// Reads a stream to its end, and forwards what of it is the client's.
    async fn forward_stream(
        mut self,
        headers: &HeaderMap,
        body: impl Stream<Item = Result<Bytes, UpstreamError>> + Send + 'static,
    ) -> Result<RoundResponse, ProxyFailure> {
        let pieces = body.map(|piece| piece.map_err(io::Error::other)).boxed();
        let pieces = decompress_stream(headers, pieces);
        let mut pieces = pieces.map_err(|error| ProxyFailure::from_error("answer", &error))?;
        let mut is_cut = false;
        loop {
            let piece = tokio::select! {
                piece = pieces.next() => piece,
                () = self.out.closed() => { is_cut = true; None }
            };
            let has_ended = piece.is_none();
            match piece {
                // An event without end would otherwise be buffered without bound.
                Some(Ok(bytes)) if self.frames.pending_bytes() <= MAX_ANSWER_BYTES => {
                    self.frames.push(&bytes);
                }
                Some(_) => is_cut = true,
                None => {}
            }
            let (shown, is_framed) = self.process_frames(has_ended && !is_cut);
            is_cut |= !is_framed;
            if !shown.is_empty() {
                is_cut |= self.out.send(Ok(shown)).await.is_err();
            }
            if has_ended || is_cut {
                return self.finish_round(is_cut);
            }
        }
    }

    /// Processes the complete frames that came, at the end of the stream also one without its end. Returns what the client gets,
    /// and whether the bytes were frames: behind others nothing can be read.
    fn process_frames(&mut self, is_end: bool) -> (Bytes, bool) {
        let mut shown = BytesMut::new();
        let is_framed = loop {
            match self.frames.next_frame() {
                Ok(Some(frame)) => shown.extend_from_slice(&self.process_frame(frame)),
                Ok(None) => break true,
                Err(error) => {
                    self.failure
                        .get_or_insert_with(|| ProxyFailure::from_error("answer", &error));
                    break false;
                }
            }
        };
        if is_end && let Some(frame) = self.frames.take_rest() {
            shown.extend_from_slice(&self.process_frame(frame));
        }
        (shown.freeze(), is_framed)
    }

    /// Returns the document of what came; an answer that broke off is stored as far as it came.
    fn finish_round(self, is_cut: bool) -> Result<RoundResponse, ProxyFailure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let document = match self.accumulator.finish() {
            Ok(document) => Some(document),
            // The client has seen this much, and the provider charges for it.
            Err(_) if self.has_events => Some(self.accumulator.finish_incomplete()),
            Err(_) => None,
        };
        let end = match (is_cut, self.accumulator.is_complete()) {
            // A cut counts first: what is complete by chance may still miss an event behind it.
            (true, _) => RoundEnd::Broken,
            (false, true) => RoundEnd::Whole,
            (false, false) => RoundEnd::Short,
        };
        Ok(RoundResponse { document, end })
    }

    fn process_frame(&mut self, frame: Frame) -> Bytes {
        if let Some(data) = frame.data.as_deref().filter(|data| !data.is_empty()) {
            self.has_events = true;
            match self.accumulator.push(data) {
                Ok(events) => (self.publish)(events),
                // The client still gets the rest: only storing the answer has failed.
                Err(error) => {
                    self.failure
                        .get_or_insert_with(|| ProxyFailure::from_error("answer", &error));
                }
            }
        }
        self.editor.edit_event(frame)
    }
}

/// Collects a body, as far as it comes.
async fn collect_body(
    mut body: impl Stream<Item = Result<Bytes, UpstreamError>> + Unpin,
) -> (Bytes, RoundEnd) {
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

/// Returns the headers of an answer whose body is another one than the provider's.
fn headers_for_new_body(headers: &HeaderMap) -> HeaderMap {
    let mut headers = forwarded_response_headers(headers);
    // Both describe the provider's bytes: the new body has another length and is not compressed.
    headers.remove(CONTENT_LENGTH);
    headers.remove(CONTENT_ENCODING);
    headers
}
