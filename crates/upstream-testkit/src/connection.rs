//! One connection: requests read, and answers written as HTTP/1.1 has it.
//!
//! Not here: what is answered, and how requests are read.

use std::io;

use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::answer::{Answer, End, Framing, Pace};
use crate::reader::Reader;
use crate::received::Received;

pub(crate) struct Connection {
    input: Reader<OwnedReadHalf>,
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
        let input = Reader::new(read);
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
