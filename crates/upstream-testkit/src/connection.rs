//! One connection: requests read and answers written by HTTP/1.1.
//!
//! Not here: what is answered, and how requests are read.

use std::io;

use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::answer::{BodyEnding, Framing, Pace, UpstreamResponse};
use crate::provider::Received;
use crate::reader::RequestReader;

pub(crate) struct Connection {
    input: RequestReader<OwnedReadHalf>,
    output: OwnedWriteHalf,
}

/// What is left of a connection when an answer has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionState {
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
        let input = RequestReader::new(read);
        Self { input, output }
    }

    /// The next request; nothing when the client has closed the connection.
    pub(crate) async fn next_request(&mut self) -> io::Result<Option<Received>> {
        self.input.next_request().await
    }

    /// Sends the answer, watching whether the client leaves.
    pub(crate) async fn send_response(&mut self, answer: &UpstreamResponse) -> ConnectionState {
        // Not even a status line: the client sees a closed connection.
        if answer.end == BodyEnding::Silent {
            return ConnectionState::Closed;
        }
        let (input, output) = (&mut self.input, &mut self.output);
        let sent = async {
            tokio::time::sleep(answer.delay).await;
            write_response(output, answer).await?;
            match answer.end {
                BodyEnding::Whole => io::Result::Ok(ConnectionState::Open),
                // Waits for ever; the client's closing ends the select below.
                BodyEnding::Stalled(_) => std::future::pending().await,
                BodyEnding::Dropped(_) | BodyEnding::Silent => Ok(ConnectionState::Closed),
            }
        };
        tokio::select! {
            // The answer first: a client that closes after reading everything has not left early.
            biased;
            left = sent => left.unwrap_or(ConnectionState::ByClient),
            () = input.wait_for_close() => ConnectionState::ByClient,
        }
    }
}

async fn write_response(output: &mut OwnedWriteHalf, answer: &UpstreamResponse) -> io::Result<()> {
    // An empty reason phrase is valid, and clients must not depend on it.
    let mut head = format!("HTTP/1.1 {} \r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&match answer.framing {
        Framing::Length => format!("content-length: {}\r\n\r\n", answer.body().len()),
        Framing::Chunks => "transfer-encoding: chunked\r\n\r\n".to_owned(),
    });
    output.write_all(head.as_bytes()).await?;
    let mut limit = answer.end.byte_limit();
    for (number, piece) in answer.pieces.iter().enumerate() {
        if number > 0 {
            match &answer.pace {
                Pace::AtOnce => {}
                Pace::Through(gate) => gate.wait_for_release().await,
            }
        }
        // Cut at the limit, so that a loss can fall within a chunk.
        let piece = piece.slice(..piece.len().min(limit));
        limit -= piece.len();
        if !piece.is_empty() {
            output
                .write_all(&frame_chunk(&piece, answer.framing))
                .await?;
        }
        // The rest is not even framed: to the client the connection dies here.
        if limit == 0 {
            break;
        }
    }
    // The last chunk is what tells a client that the body is whole.
    if answer.framing == Framing::Chunks && answer.end == BodyEnding::Whole {
        output.write_all(b"0\r\n\r\n").await?;
    }
    Ok(())
}

fn frame_chunk(piece: &Bytes, framing: Framing) -> Bytes {
    match framing {
        Framing::Length => piece.clone(),
        Framing::Chunks => {
            let head = format!("{:x}\r\n", piece.len());
            [head.as_bytes(), piece, b"\r\n"].concat().into()
        }
    }
}
