//! A proxy between store and server that cuts connections at chosen words.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// When a connection is cut.
#[derive(Clone, Debug)]
pub(crate) enum Cut {
    /// When the client says this, before the server hears it.
    Before(&'static str),
    /// When the client has said `COMMIT` and the server has done it, before the client hears that.
    AfterCommit,
}

/// Where the cuts wait: each connection takes the first that fits.
type Cuts = Arc<Mutex<Vec<Cut>>>;

/// A proxy to the server of `CONTEXTURE_TEST_POSTGRES`.
pub(crate) struct Proxy {
    cuts: Cuts,
    port: u16,
}

impl Proxy {
    /// Starts a proxy that cuts nothing yet.
    pub(crate) async fn start(address: &str) -> Self {
        let (_, rest) = address.split_once('@').unwrap();
        let (upstream, _) = rest.split_once('/').unwrap();
        let upstream = upstream.to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let cuts = Cuts::default();
        let shared = Arc::clone(&cuts);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&upstream).await.unwrap();
                // A connection that breaks is what this is for.
                tokio::spawn(forward(client, server, Arc::clone(&shared)));
            }
        });
        Self { cuts, port }
    }

    /// The same address, through this proxy.
    pub(crate) fn through(&self, address: &str) -> String {
        let (user, rest) = address.split_once('@').unwrap();
        let (_, database) = rest.split_once('/').unwrap();
        format!("{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// Cuts the next connection that comes so far.
    pub(crate) fn cut(&self, cut: Cut) {
        self.cuts.lock().unwrap().push(cut);
    }

    /// Whether every cut was made.
    pub(crate) fn is_done(&self) -> bool {
        self.cuts.lock().unwrap().is_empty()
    }
}

/// Takes the first cut that what the client says asks for.
fn take(cuts: &Cuts, said: &[u8]) -> Option<Cut> {
    let mut cuts = cuts.lock().unwrap();
    let at = cuts.iter().position(|cut| match cut {
        Cut::Before(words) => contains(said, words.as_bytes()),
        Cut::AfterCommit => contains(said, b"COMMIT\0"),
    })?;
    Some(cuts.remove(at))
}

fn contains(bytes: &[u8], words: &[u8]) -> bool {
    bytes.windows(words.len()).any(|part| part == words)
}

async fn forward(mut client: TcpStream, mut server: TcpStream, cuts: Cuts) -> Option<()> {
    let (mut said, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            count = client.read(&mut said) => {
                let said = said.get(..count.ok().filter(|count| *count > 0)?)?;
                match take(&cuts, said) {
                    Some(Cut::Before(_)) => return None,
                    Some(Cut::AfterCommit) => {
                        server.write_all(said).await.ok()?;
                        return until_committed(&mut server).await;
                    }
                    None => server.write_all(said).await.ok()?,
                }
            }
            count = server.read(&mut answered) => {
                let answered = answered.get(..count.ok().filter(|count| *count > 0)?)?;
                client.write_all(answered).await.ok()?;
            }
        }
    }
}

/// Reads what the server answers up to its word that the transaction is committed.
async fn until_committed(server: &mut TcpStream) -> Option<()> {
    let mut answered = Vec::new();
    while !contains(&answered, b"COMMIT\0") {
        let count = server.read_buf(&mut answered).await.ok()?;
        assert!(count > 0, "the server did not commit");
    }
    None
}
