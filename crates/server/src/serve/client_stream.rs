//! The stream of a client's connection: how long it may take nothing, and whether it takes anything now.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutStream;

/// A client's connection. It fails when the client takes nothing of an answer for too long.
pub(super) struct ClientStream {
    stream: Pin<Box<TimeoutStream<TcpStream>>>,
    takes_nothing: Arc<AtomicBool>,
}

impl ClientStream {
    /// A connection whose client may take nothing for so long.
    pub(super) fn new(stream: TcpStream, longest: Duration) -> Self {
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(longest));
        Self {
            stream: Box::pin(stream),
            takes_nothing: Arc::default(),
        }
    }

    /// Returns whether the client leaves what is sent to it unread, now and whenever it is asked.
    pub(super) fn takes_nothing(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.takes_nothing)
    }

    fn note<T>(&self, written: Poll<T>) -> Poll<T> {
        self.takes_nothing
            .store(written.is_pending(), Ordering::Relaxed);
        written
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_read(context, buffer)
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream.as_mut().poll_write(context, bytes);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream.as_mut().poll_write_vectored(context, slices);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(context)
    }
}
