//! Frames of a body that comes in pieces: a [`FrameReader`] as a stream of the frames' data.

use std::collections::VecDeque;

use bytes::Bytes;
use contexture_wire::{Frame, FrameError, FrameReader};
use futures_util::{Stream, StreamExt, stream};

/// Why there is no further frame.
#[derive(Debug)]
pub(crate) enum FrameStreamError<E> {
    /// The body broke off.
    Body(E),
    /// Its bytes are no frames.
    Frame(FrameError),
}

/// What becomes of frames whose data is not UTF-8.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LossyFrames {
    /// The first one ends the reading: a program's own call is made again.
    Refused,
    /// They are read with replacements: what somebody else was sent is stored as well as it can be.
    Kept,
}

/// A body that is read as frames.
struct FrameStream<B, E> {
    body: B,
    reader: Box<dyn FrameReader>,
    lossy: LossyFrames,
    ready: VecDeque<Result<Frame, FrameStreamError<E>>>,
    has_ended: bool,
}

/// Reads a body's frames that have data; those without, such as comments, are passed over. Nothing comes behind an error,
/// nor of a frame that did not end.
pub(crate) fn read_frames<E, B>(
    reader: Box<dyn FrameReader>,
    lossy: LossyFrames,
    body: B,
) -> impl Stream<Item = Result<Frame, FrameStreamError<E>>>
where
    B: Stream<Item = Result<Bytes, E>> + Unpin,
{
    let state = FrameStream {
        body,
        reader,
        lossy,
        ready: VecDeque::new(),
        has_ended: false,
    };
    stream::unfold(state, |mut state| async move {
        loop {
            if let Some(frame) = state.ready.pop_front() {
                return Some((frame, state));
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
                let last = last.filter(|frame| frame.is_complete && frame.data.is_some());
                self.ready.extend(last.map(|frame| self.check_frame(frame)));
                return;
            }
        }
        loop {
            let next = match self.reader.next_frame() {
                Ok(None) => return,
                Ok(Some(frame)) if frame.data.is_none() && !frame.is_lossy => continue,
                Ok(Some(frame)) => self.check_frame(frame),
                Err(error) => Err(FrameStreamError::Frame(error)),
            };
            self.has_ended = next.is_err();
            self.ready.push_back(next);
            if self.has_ended {
                return;
            }
        }
    }

    fn check_frame(&self, frame: Frame) -> Result<Frame, FrameStreamError<E>> {
        if !frame.is_lossy || self.lossy == LossyFrames::Kept {
            return Ok(frame);
        }
        let why = "it is not UTF-8".to_owned();
        Err(FrameStreamError::Frame(FrameError { why }))
    }
}
