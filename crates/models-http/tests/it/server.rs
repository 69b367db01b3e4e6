//! A server on the loopback that does exactly what a script says.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// What the server does with a connection, once it has the request.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Send(Vec<u8>),
    /// Waits until the client closes the connection, and tells.
    Hold,
    /// Closes the connection as a crash does.
    Reset,
}

pub(crate) struct Server {
    pub(crate) base: String,
    requests: Arc<Mutex<Vec<String>>>,
    /// Told when a request has come, and when a held connection was closed.
    pub(crate) told: mpsc::UnboundedReceiver<&'static str>,
}

impl Server {
    /// Serves one script a connection, in this order.
    pub(crate) async fn new(scripts: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (tell, told) = mpsc::unbounded_channel();
        let seen = requests.clone();
        tokio::spawn(async move {
            for script in scripts {
                let (stream, _) = listener.accept().await.unwrap();
                serve(stream, script, &seen, &tell).await;
            }
        });
        Self {
            base,
            requests,
            told,
        }
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    script: Vec<Step>,
    seen: &Mutex<Vec<String>>,
    tell: &mpsc::UnboundedSender<&'static str>,
) {
    stream.set_nodelay(true).unwrap();
    let request = read(&mut stream).await;
    seen.lock().unwrap().push(request);
    let _ = tell.send("asked");
    for step in script {
        match step {
            Step::Send(bytes) => {
                // The client may have had enough.
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Step::Hold => {
                let mut rest = [0; 64];
                while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
                let _ = tell.send("closed");
                return;
            }
            Step::Reset => {
                stream.set_zero_linger().unwrap();
                return;
            }
        }
    }
}

async fn read(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    loop {
        let mut bytes = [0; 4096];
        let read = stream.read(&mut bytes).await.unwrap();
        request.extend_from_slice(&bytes[..read]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) || read == 0 {
            return text;
        }
    }
}

/// A whole answer.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Step {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    Step::Send(text.into_bytes())
}

pub(crate) fn json(status: &str, body: &str) -> Step {
    answer(status, "content-type: application/json\r\n", body)
}

/// The beginning of an answer that comes in chunks.
pub(crate) fn begin(headers: &str) -> Step {
    let text = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n{headers}\r\n"
    );
    Step::Send(text.into_bytes())
}

pub(crate) const EVENTS: &str = "content-type: text/event-stream; charset=utf-8\r\n";

/// One chunk.
pub(crate) fn chunk(bytes: &[u8]) -> Step {
    let mut text = format!("{:x}\r\n", bytes.len()).into_bytes();
    text.extend_from_slice(bytes);
    text.extend_from_slice(b"\r\n");
    Step::Send(text)
}

/// The end of the chunks.
pub(crate) fn end() -> Step {
    Step::Send(b"0\r\n\r\n".to_vec())
}
