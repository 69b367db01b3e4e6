//! How a client gets an answer of several rounds: a stream as it comes, without what is not the client's; a document once
//! it is whole.

use std::future::ready;
use std::io;

use axum::body::Body;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, StatusCode};
use bytes::{Bytes, BytesMut};
use contexture::Format;
use contexture::client::{Passed, PassedBody, unpacked, unpacked_whole};
use contexture::wire::{Accumulator, StreamEvent};
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::proxy::answer::{self, MOST};
use crate::proxy::headers::of_answer;
use crate::proxy::matching::Miss;
use crate::proxy::own::events::{Event, Events};
use crate::proxy::own::sieve::Sieve;
use crate::proxy::own::tools::OwnTools;
use crate::proxy::refusal::Refusal;

/// Pieces of a stream that wait for the client.
const WAITING: usize = 16;

/// What the client is answered: the head, and a body that may still come.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// Where the client waits for its answer.
#[derive(Debug)]
pub(crate) struct Back(oneshot::Sender<Result<Shown, Refusal>>);

/// Where the client waits, and what it waits for. Dropped, there is no answer.
pub(crate) fn back() -> (Back, oneshot::Receiver<Result<Shown, Refusal>>) {
    let (back, shown) = oneshot::channel();
    (Back(back), shown)
}

/// What came of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Came {
    /// Its document, as far as it came.
    pub(crate) document: Option<String>,
    pub(crate) ended: Ended,
}

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The model said all.
    Whole,
    /// Nothing more came, though the answer does not say that it is all.
    Short,
    /// It broke off, or the client left.
    Broken,
}

/// An answer on its way to the client.
pub(crate) enum Showing {
    Whole {
        /// Taken once the client is answered.
        back: Option<Back>,
        /// The last round as it came.
        last: Option<(StatusCode, HeaderMap, Bytes)>,
    },
    Stream {
        out: Option<mpsc::Sender<io::Result<Bytes>>>,
        sieve: Box<Sieve>,
    },
}

impl Showing {
    /// For the answer that begins with this; the client gets the head of a stream now.
    pub(crate) fn of(format: Format, own: &OwnTools, first: &Passed, back: Back) -> Self {
        let sieve = Sieve::new(format, own).filter(|_| answer::is_events(&first.headers));
        let Some(sieve) = sieve else {
            return Self::Whole {
                back: Some(back),
                last: None,
            };
        };
        let (out, pieces) = mpsc::channel(WAITING);
        let pieces = stream::unfold(pieces, |mut pieces| async move {
            let piece: io::Result<Bytes> = pieces.recv().await?;
            Some((piece, pieces))
        });
        let shown = Shown {
            status: first.status,
            headers: anew(&first.headers),
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
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Whole { back, .. } => back.as_ref().is_none_or(|back| back.0.is_closed()),
            Self::Stream { out, .. } => out.as_ref().is_none_or(mpsc::Sender::is_closed),
        }
    }

    /// Once the client waits no more.
    pub(crate) async fn over(&mut self) {
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
    pub(crate) async fn hear(
        &mut self,
        format: Format,
        passed: Passed,
        tell: &mut (dyn FnMut(Vec<StreamEvent>) + Send),
    ) -> Result<Came, Miss> {
        let Passed {
            status,
            headers,
            body,
        } = passed;
        match self {
            Self::Stream { out, sieve } => {
                let Some(sender) = out.as_ref() else {
                    return Ok(Came::nothing());
                };
                let heard = Heard::new(format, sieve, sender, tell)?;
                heard.stream(&headers, body).await
            }
            Self::Whole { back, last } => {
                let Some(back) = back else {
                    return Ok(Came::nothing());
                };
                let (bytes, ended) = tokio::select! {
                    collected = collected(body) => collected,
                    () = back.0.closed() => return Ok(Came::nothing()),
                };
                *last = Some((status, headers.clone(), bytes.clone()));
                let bytes = unpacked_whole(&headers, bytes, MOST).await;
                let bytes = bytes.map_err(|error| Miss::of("answer", &error))?;
                let text = String::from_utf8(bytes.into());
                let text = text.map_err(|error| Miss::of("answer", &error))?;
                let document = answer::document(format, text)?;
                Ok(Came { document, ended })
            }
        }
    }

    /// Another round goes on with the answer.
    pub(crate) async fn again(&mut self) {
        if let Self::Stream { sieve, .. } = self {
            let bytes = sieve.again();
            self.say(Ok(bytes)).await;
        }
    }

    /// The answer is over: this is all of it, or what came last as it came.
    pub(crate) async fn end(&mut self, whole: Option<&Value>) {
        match self {
            Self::Stream { sieve, .. } => {
                let bytes = sieve.end(whole);
                self.say(Ok(bytes)).await;
                self.close();
            }
            Self::Whole { last, .. } => {
                let Some((status, headers, bytes)) = last.take() else {
                    return self.close();
                };
                let shown = match whole {
                    None => Shown {
                        status,
                        headers: of_answer(&headers),
                        body: Body::from(bytes),
                    },
                    Some(whole) => {
                        // Gemini streams into an array where no events are asked for.
                        let is_list = bytes.trim_ascii_start().starts_with(b"[");
                        let body = match is_list {
                            true => format!("[{whole}]"),
                            false => whole.to_string(),
                        };
                        Shown {
                            status,
                            headers: anew(&headers),
                            body: Body::from(body),
                        }
                    }
                };
                self.answer(Ok(shown));
            }
        }
    }

    /// The answer breaks off, as the upstream's did.
    pub(crate) async fn cut(&mut self) {
        let broken = || io::Error::other("the provider's answer broke off");
        match self {
            Self::Stream { .. } => {
                self.say(Err(broken())).await;
                self.close();
            }
            Self::Whole { last, .. } => {
                let Some((status, headers, bytes)) = last.take() else {
                    return self.close();
                };
                let end = async move {
                    // What came goes out before it breaks off.
                    tokio::task::yield_now().await;
                    Err(broken())
                };
                let pieces = stream::once(ready(Ok(bytes))).chain(stream::once(end));
                self.answer(Ok(Shown {
                    status,
                    headers: of_answer(&headers),
                    body: Body::from_stream(pieces),
                }));
            }
        }
    }

    /// Another round was answered with an error, or not at all. A stream that has begun breaks off.
    pub(crate) async fn fail(&mut self, failed: Result<Passed, Refusal>) {
        if let Self::Stream { .. } = self {
            return self.cut().await;
        }
        self.answer(failed.map(|passed| Shown {
            status: passed.status,
            headers: of_answer(&passed.headers),
            body: Body::from_stream(passed.body),
        }));
    }

    fn answer(&mut self, shown: Result<Shown, Refusal>) {
        if let Self::Whole { back, .. } = self
            && let Some(back) = back.take()
        {
            // A client that has gone needs no answer.
            let _ = back.0.send(shown);
        }
    }

    async fn say(&mut self, piece: io::Result<Bytes>) {
        let is_nothing = piece.as_ref().is_ok_and(Bytes::is_empty);
        if let Self::Stream { out: Some(out), .. } = self
            && !is_nothing
        {
            // Whether the client is still there is asked elsewhere.
            let _ = out.send(piece).await;
        }
    }

    fn close(&mut self) {
        match self {
            Self::Stream { out, .. } => *out = None,
            Self::Whole { back, .. } => *back = None,
        }
    }
}

impl Came {
    /// The document as a value.
    pub(crate) fn value(&self) -> Value {
        let document = self.document.as_deref().unwrap_or_default();
        serde_json::from_str(document).unwrap_or_default()
    }

    const fn nothing() -> Self {
        Self {
            document: None,
            ended: Ended::Broken,
        }
    }
}

/// A stream that is heard.
struct Heard<'a> {
    accumulator: Accumulator,
    sieve: &'a mut Sieve,
    out: &'a mpsc::Sender<io::Result<Bytes>>,
    tell: &'a mut (dyn FnMut(Vec<StreamEvent>) + Send),
    any: bool,
    /// Why it cannot be kept.
    miss: Option<Miss>,
}

impl<'a> Heard<'a> {
    fn new(
        format: Format,
        sieve: &'a mut Sieve,
        out: &'a mpsc::Sender<io::Result<Bytes>>,
        tell: &'a mut (dyn FnMut(Vec<StreamEvent>) + Send),
    ) -> Result<Self, Miss> {
        Ok(Self {
            accumulator: answer::accumulator(format)?,
            sieve,
            out,
            tell,
            any: false,
            miss: None,
        })
    }

    async fn stream(mut self, headers: &HeaderMap, body: PassedBody) -> Result<Came, Miss> {
        let pieces = body.map(|piece| piece.map_err(io::Error::other)).boxed();
        let pieces = unpacked(headers, pieces);
        let mut pieces = pieces.map_err(|error| Miss::of("answer", &error))?;
        let mut events = Events::default();
        let mut cut = false;
        loop {
            let piece = tokio::select! {
                piece = pieces.next() => piece,
                () = self.out.closed() => { cut = true; None }
            };
            let mut shown = BytesMut::new();
            let ended = piece.is_none();
            match piece {
                Some(Ok(bytes)) if events.waiting() <= MOST => events.push(&bytes),
                Some(_) => cut = true,
                None => {}
            }
            while let Some(event) = events.next() {
                shown.extend_from_slice(&self.take(event));
            }
            if ended
                && !cut
                && let Some(event) = events.rest()
            {
                shown.extend_from_slice(&self.take(event));
            }
            if !shown.is_empty() {
                cut |= self.out.send(Ok(shown.freeze())).await.is_err();
            }
            if ended || cut {
                break;
            }
        }
        if let Some(miss) = self.miss {
            return Err(miss);
        }
        let document = match self.accumulator.finish() {
            Ok(document) => Some(document),
            Err(_) if self.any => Some(self.accumulator.finish_incomplete()),
            Err(_) => None,
        };
        let ended = match (cut, self.accumulator.is_complete()) {
            (true, _) => Ended::Broken,
            (false, true) => Ended::Whole,
            (false, false) => Ended::Short,
        };
        Ok(Came { document, ended })
    }

    fn take(&mut self, event: Event) -> Bytes {
        if !event.data.is_empty() {
            self.any = true;
            match self.accumulator.push(&event.data) {
                Ok(said) => (self.tell)(said),
                Err(error) => {
                    self.miss.get_or_insert_with(|| Miss::of("answer", &error));
                }
            }
        }
        self.sieve.push(event)
    }
}

/// A body, as far as it comes.
async fn collected(mut body: PassedBody) -> (Bytes, Ended) {
    let mut bytes = BytesMut::new();
    while let Some(piece) = body.next().await {
        match piece {
            Ok(piece) if bytes.len().saturating_add(piece.len()) <= MOST => {
                bytes.extend_from_slice(&piece);
            }
            _ => return (bytes.freeze(), Ended::Broken),
        }
    }
    (bytes.freeze(), Ended::Whole)
}

/// The head of an answer whose body is another one.
fn anew(headers: &HeaderMap) -> HeaderMap {
    let mut headers = of_answer(headers);
    headers.remove(CONTENT_LENGTH);
    headers.remove(CONTENT_ENCODING);
    headers
}
