//! One connection: requests read and answers written as HTTP/1.1 has it.
//!
//! Not here: what is answered.

use std::io;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::answer::{Answer, End, Framing, Pace};
use crate::received::Received;

const MAX_HEADERS: usize = 256;

pub(crate) struct Connection {
    input: Input,
    output: OwnedWriteHalf,
}

/// What is left of a connection when an answer has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// It waits for another request.
    Open,
    /// It was closed as the answer says.
    Closed,
    /// The client closed it before the answer's end.
    ByClient,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        // Each chunk is a segment of its own.
        stream.set_nodelay(true).unwrap();
        let (read, output) = stream.into_split();
        let input = Input {
            read,
            bytes: BytesMut::new(),
        };
        Self { input, output }
    }

    /// The next request; nothing when the client has closed the connection.
    pub(crate) async fn request(&mut self) -> io::Result<Option<Received>> {
        self.input.request().await
    }

    /// Sends the answer, watching whether the client leaves.
    pub(crate) async fn send(&mut self, answer: &Answer) -> Left {
        if answer.end == End::Silent {
            return Left::Closed;
        }
        let (input, output) = (&mut self.input, &mut self.output);
        let sent = async {
            write(output, answer).await?;
            match answer.end {
                End::Whole => io::Result::Ok(Left::Open),
                End::Stalled(_) => std::future::pending().await,
                End::Dropped(_) | End::Silent => Ok(Left::Closed),
            }
        };
        tokio::select! {
            biased;
            left = sent => left.unwrap_or(Left::ByClient),
            () = input.closed() => Left::ByClient,
        }
    }
}

async fn write(output: &mut OwnedWriteHalf, answer: &Answer) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {} \r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&match answer.framing {
        Framing::Length => format!("content-length: {}\r\n\r\n", answer.body().len()),
        Framing::Chunks => "transfer-encoding: chunked\r\n\r\n".to_owned(),
    });
    output.write_all(head.as_bytes()).await?;
    let mut limit = answer.end.limit();
    for (number, piece) in answer.pieces.iter().enumerate() {
        if number > 0 {
            match &answer.pace {
                Pace::AtOnce => {}
                Pace::Every(gap) => tokio::time::sleep(*gap).await,
                Pace::Through(gate) => gate.pass().await,
            }
        }
        let piece = piece.slice(..piece.len().min(limit));
        limit -= piece.len();
        if !piece.is_empty() {
            output.write_all(&framed(&piece, answer.framing)).await?;
        }
        if limit == 0 {
            break;
        }
    }
    if answer.framing == Framing::Chunks && answer.end == End::Whole {
        output.write_all(b"0\r\n\r\n").await?;
    }
    Ok(())
}

fn framed(piece: &Bytes, framing: Framing) -> Bytes {
    match framing {
        Framing::Length => piece.clone(),
        Framing::Chunks => {
            let head = format!("{:x}\r\n", piece.len());
            [head.as_bytes(), piece, b"\r\n"].concat().into()
        }
    }
}

/// The side that reads, with what was read too far.
struct Input {
    read: OwnedReadHalf,
    bytes: BytesMut,
}

impl Input {
    async fn request(&mut self) -> io::Result<Option<Received>> {
        let mut request = loop {
            if let Some((request, length)) = head(&self.bytes)? {
                self.bytes.advance(length);
                break request;
            }
            // A connection that is lost between two requests is a closed one.
            if self.more().await.unwrap_or(0) == 0 {
                return Ok(None);
            }
        };
        let is_chunked = request.header("transfer-encoding").is_some();
        request.body = if is_chunked {
            self.chunks().await?
        } else {
            let length = request.header("content-length").unwrap_or("0");
            self.take(length.parse().map_err(io::Error::other)?).await?
        };
        Ok(Some(request))
    }

    async fn chunks(&mut self) -> io::Result<Bytes> {
        let mut body = BytesMut::new();
        loop {
            let line = self.line().await?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
            if size == 0 {
                // Trailers end with an empty line.
                while !self.line().await?.is_empty() {}
                return Ok(body.freeze());
            }
            body.extend_from_slice(&self.take(size).await?);
            self.line().await?;
        }
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            let end = self.bytes.windows(2).position(|two| two == b"\r\n");
            if let Some(end) = end {
                let line = self.bytes.split_to(end);
                self.bytes.advance(2);
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            self.need().await?;
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Bytes> {
        self.bytes.reserve(length.saturating_sub(self.bytes.len()));
        while self.bytes.len() < length {
            self.need().await?;
        }
        Ok(self.bytes.split_to(length).freeze())
    }

    async fn need(&mut self) -> io::Result<()> {
        match self.more().await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    async fn more(&mut self) -> io::Result<usize> {
        self.read.read_buf(&mut self.bytes).await
    }

    /// Waits until the client closes the connection.
    async fn closed(&mut self) {
        while self.more().await.is_ok_and(|read| read > 0) {}
    }
}

/// The request's head and how long it is, if it is whole.
fn head(bytes: &[u8]) -> io::Result<Option<(Received, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
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
