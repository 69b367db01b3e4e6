//! Frames of a body that comes in pieces: a [`FrameReader`] as a stream of the frames' data.

use std::collections::VecDeque;

use bytes::Bytes;
use contexture_wire::{FrameError, FrameReader};
use futures_util::{Stream, StreamExt, stream};

/// Why there is no further frame.
#[derive(Debug)]
pub(crate) enum FrameStreamError<E> {
    /// The body broke off.
    Body(E),
    /// Its bytes are no frames.
    Frame(FrameError),
}

/// A body that is read as frames.
struct FrameStream<B, E> {
    body: B,
    reader: Box<dyn FrameReader>,
    ready: VecDeque<Result<String, FrameStreamError<E>>>,
    has_ended: bool,
}

/// Reads the data of a body's frames; frames without data, such as comments, are passed over. Nothing comes behind an error,
/// nor of a frame that did not end.
pub(crate) fn read_frames<E, B>(
    reader: Box<dyn FrameReader>,
    body: B,
) -> impl Stream<Item = Result<String, FrameStreamError<E>>>
where
    B: Stream<Item = Result<Bytes, E>> + Unpin,
{
    let state = FrameStream {
        body,
        reader,
        ready: VecDeque::new(),
        has_ended: false,
    };
    stream::unfold(state, |mut state| async move {
        loop {
            if let Some(data) = state.ready.pop_front() {
                return Some((data, state));
            }
            if state.has_ended {
                return None;
            }
            let piece = state.body.next().await;
            state.accept_piece(piece);
        }
    })
}

impl<B, E> FrameStream<B, E> {
    /// Reads the frames that a piece completes.
    fn accept_piece(&mut self, piece: Option<Result<Bytes, E>>) {
        match piece {
            Some(Ok(bytes)) => self.reader.push(&bytes),
            Some(Err(error)) => {
                self.has_ended = true;
                self.ready.push_back(Err(FrameStreamError::Body(error)));
                return;
            }
            None => {
                self.has_ended = true;
                let last = self.reader.take_rest();
                let last = last.filter(|frame| frame.is_complete);
                self.ready.extend(last.and_then(|frame| frame.data).map(Ok));
                return;
            }
        }
        loop {
            let next = match self.reader.next_frame() {
                Ok(None) => return,
                Ok(Some(frame)) if frame.is_lossy => {
                    let why = "it is not UTF-8".to_owned();
                    Err(FrameStreamError::Frame(FrameError { why }))
                }
                Ok(Some(frame)) => match frame.data {
                    Some(data) => Ok(data),
                    None => continue,
                },
                Err(error) => Err(FrameStreamError::Frame(error)),
            };
            self.has_ended = next.is_err();
            self.ready.push_back(next);
            if self.has_ended {
                return;
            }
        }
    }
}
