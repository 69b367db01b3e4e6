//! Requests read from bytes by HTTP/1.1.

use std::io;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::provider::Received;

const MAX_HEADERS: usize = 256;

/// The side that reads, with what was read too far.
pub(crate) struct RequestReader<R> {
    read: R,
    bytes: BytesMut,
}

impl<R: AsyncRead + Unpin> RequestReader<R> {
    pub(crate) fn new(read: R) -> Self {
        Self {
            read,
            bytes: BytesMut::new(),
        }
    }

    /// The next request; nothing when there are no more.
    pub(crate) async fn next_request(&mut self) -> io::Result<Option<Received>> {
        let mut request = loop {
            if let Some((request, length)) = parse_head(&self.bytes)? {
                self.bytes.advance(length);
                break request;
            }
            // A connection that is lost between two requests is a closed one.
            if self.read_more().await.unwrap_or(0) == 0 {
                return Ok(None);
            }
        };
        // Requests have no other transfer encoding in practice.
        let is_chunked = request.header("transfer-encoding").is_some();
        request.body = if is_chunked {
            self.read_chunked_body().await?
        } else {
            // Without a length there is no body, as for a GET.
            let length = request.header("content-length").unwrap_or("0");
            self.read_bytes(length.parse().map_err(io::Error::other)?)
                .await?
        };
        Ok(Some(request))
    }

    async fn read_chunked_body(&mut self) -> io::Result<Bytes> {
        let mut body = BytesMut::new();
        loop {
            let line = self.read_line().await?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
            if size == 0 {
                // Trailers end with an empty line.
                while !self.read_line().await?.is_empty() {}
                return Ok(body.freeze());
            }
            body.extend_from_slice(&self.read_bytes(size).await?);
            // The line break after a chunk's bytes.
            self.read_line().await?;
        }
    }

    async fn read_line(&mut self) -> io::Result<String> {
        loop {
            let end = self.bytes.windows(2).position(|two| two == b"\r\n");
            if let Some(end) = end {
                let line = self.bytes.split_to(end);
                self.bytes.advance(2);
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            self.require_more().await?;
        }
    }

    async fn read_bytes(&mut self, length: usize) -> io::Result<Bytes> {
        self.bytes.reserve(length.saturating_sub(self.bytes.len()));
        while self.bytes.len() < length {
            self.require_more().await?;
        }
        Ok(self.bytes.split_to(length).freeze())
    }

    async fn require_more(&mut self) -> io::Result<()> {
        match self.read_more().await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    async fn read_more(&mut self) -> io::Result<usize> {
        self.read.read_buf(&mut self.bytes).await
    }

    /// Waits until the client closes the connection.
    pub(crate) async fn wait_for_close(&mut self) {
        while self.read_more().await.is_ok_and(|read| read > 0) {}
    }
}

/// The request's head and how long it is, if it is whole.
fn parse_head(bytes: &[u8]) -> io::Result<Option<(Received, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    // Parsed anew from the beginning as more comes; heads are short.
    let status = request.parse(bytes).map_err(io::Error::other)?;
    let httparse::Status::Complete(length) = status else {
        return Ok(None);
    };
    let header = |header: &httparse::Header<'_>| {
        let value = Bytes::copy_from_slice(header.value);
        (header.name.to_owned(), value)
    };
    let received = Received {
        method: request.method.unwrap_or_default().to_owned(),
        target: request.path.unwrap_or_default().to_owned(),
        headers: request.headers.iter().map(header).collect(),
        body: Bytes::new(),
    };
    Ok(Some((received, length)))
}
