//! The stream of a client's connection: how long sending may stall, and whether it is stalled now.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutStream;

/// A client's connection. It fails when sending an answer stalls for too long, because the client does not read.
pub(super) struct ClientStream {
    stream: Pin<Box<TimeoutStream<TcpStream>>>,
    is_stalled: Arc<AtomicBool>,
}

impl ClientStream {
    /// A connection on which sending may stall for at most `longest`.
    pub(super) fn new(stream: TcpStream, longest: Duration) -> Self {
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(longest));
        Self {
            stream: Box::pin(stream),
            is_stalled: Arc::default(),
        }
    }

    /// Returns a flag that says whether sending is stalled, whenever it is looked at.
    pub(super) fn is_stalled(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_stalled)
    }

    fn note_stall<T>(&self, written: Poll<T>) -> Poll<T> {
        // Relaxed suffices: whoever decides by it may see it a little later.
        self.is_stalled
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
        self.note_stall(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream.as_mut().poll_write_vectored(context, slices);
        self.note_stall(written)
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
