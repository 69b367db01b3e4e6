//! The bystander: while one owner does the worst that its key allows, another reads, appends and passes requests through.
//!
//! Nothing here asserts a time: what the bystander waits is compared with what the attacker's own work takes.

use std::time::{Duration, Instant};

use contexture::Engine;
use contexture_upstream_testkit::ScriptedProvider;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::keys::key;
use crate::proxy::{Proxied, chat, says};

/// A server that is asked as the bystander, and the key of another owner who attacks it.
struct Crowd {
    proxied: Proxied,
    attacker: String,
}

impl Crowd {
    async fn new(limits: &str) -> Self {
        let (attacker, first) = key("attacker", "eve", &["read", "write", "proxy"]);
        let (bystander, second) = key("bystander", "ada", &["read", "write", "proxy", "admin"]);
        let config = format!("{limits}{first}{second}");
        let provider = ScriptedProvider::default();
        let mut proxied = Proxied::to(provider, Engine::in_memory(), &config).await;
        proxied.stand.as_bearer(Some(&bystander));
        Self { proxied, attacker }
    }

    /// Compresses as the attacker, and returns the status.
    async fn attack(&self, body: &str) -> u16 {
        let url = format!("http://{}/v1/compress", self.proxied.stand.address);
        let request = reqwest::Client::new()
            .post(url)
            .header("x-contexture-key", &self.attacker)
            .header("content-type", "application/json")
            .body(body.to_owned());
        request.send().await.unwrap().status().as_u16()
    }

    /// Does what a bystander does; returns the longest that one of its requests took.
    async fn bystand(&self) -> Duration {
        let stand = &self.proxied.stand;
        let post = |path: &str, body: Value| {
            let request = stand.request(Method::POST, path);
            let request = request.header("content-type", "application/json");
            request.body(body.to_string())
        };
        let parts = json!([{"type": "text", "text": "hi"}]);
        let requests = [
            stand.request(Method::GET, "/health"),
            stand.request(Method::GET, "/api/v1/conversations/mine/messages"),
            post(
                "/api/v1/conversations/mine/messages",
                json!({"messages": [{"role": "user", "parts": parts}]}),
            ),
            post("/v1/chat/completions", chat(&[says("hi")])),
        ];
        let mut slowest = Duration::ZERO;
        for request in requests {
            let start = Instant::now();
            stand.send(request).await.ok();
            slowest = slowest.max(start.elapsed());
        }
        slowest
    }

    /// Begins bodies as the attacker that never end, each of so many bytes; returns the connections, and what was answered.
    async fn begin_bodies(&self, count: usize, bytes: usize) -> Vec<(TcpStream, String)> {
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-contexture-key: {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.attacker,
            bytes + 1
        );
        let mut begun = Vec::new();
        for _ in 0..count {
            let mut stream = TcpStream::connect(self.proxied.stand.address)
                .await
                .unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            // A server that refuses may close before it has read everything.
            let _ = stream.write_all(&vec![b' '; bytes]).await;
            let mut answer = [0; 4096];
            let read = stream.read(&mut answer);
            let read = tokio::time::timeout(Duration::from_millis(200), read).await;
            let length = read.ok().and_then(Result::ok).unwrap_or(0);
            let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
            begun.push((stream, answer));
        }
        begun
    }

    /// Returns the memory that bodies take, in bytes.
    async fn memory(&self) -> f64 {
        let figures = self.proxied.stand.get("/metrics").await.text;
        let mut lines = figures.lines();
        let line = lines.find(|line| line.starts_with("contexture_body_memory_bytes"));
        let value = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
        value.unwrap_or(0.0)
    }
}

/// Messages that are quickly sent and take long to be compressed.
fn many_messages() -> String {
    let messages: Vec<Value> = (0..20_000).map(|n| says(&format!("message {n}"))).collect();
    json!({"model": "gpt-5", "messages": messages}).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heavy_work_of_one_owner_holds_up_no_other() {
    let crowd = Crowd::new("").await;
    let conversation = json!({"id": "mine"});
    let stand = &crowd.proxied.stand;
    stand
        .post("/api/v1/conversations", &conversation)
        .await
        .ok();
    let body = many_messages();
    let start = Instant::now();
    assert_eq!(crowd.attack(&body).await, 200);
    let alone = start.elapsed();
    let attacks = futures_util::future::join_all((0..4).map(|_| crowd.attack(&body)));
    let mut attacks = std::pin::pin!(attacks);
    let (mut slowest, mut rounds) = (Duration::ZERO, 0);
    let statuses = loop {
        tokio::select! {
            statuses = &mut attacks => break statuses,
            took = crowd.bystand() => (slowest, rounds) = (slowest.max(took), rounds + 1),
        }
    };
    assert_eq!(statuses, [200; 4]);
    // Each of its four requests waits for none of the attacker's.
    assert!(slowest < alone / 2, "{slowest:?} beside work of {alone:?}");
    assert!(rounds >= 8, "{rounds} rounds beside four times {alone:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_takes_its_work_with_it() {
    let crowd = Crowd::new("").await;
    let body = many_messages();
    let start = Instant::now();
    assert_eq!(crowd.attack(&body).await, 200);
    let alone = start.elapsed();
    // All but the last leave in the middle of their work, or while they wait for their turn.
    let left = (0..8).map(|_| tokio::time::timeout(alone / 4, crowd.attack(&body)));
    for left in futures_util::future::join_all(left).await {
        assert!(left.is_err());
    }
    let start = Instant::now();
    assert_eq!(crowd.attack(&body).await, 200);
    let after = start.elapsed();
    // Behind work that goes on it would take eight times as long.
    assert!(
        after < 4 * alone,
        "{after:?} behind work that was called off; alone {alone:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_of_one_owner_leave_memory_to_others() {
    const MIB: usize = 1 << 20;
    let crowd = Crowd::new("[server.limits]\nmemory_bytes = 16777216\n").await;
    let begun = crowd.begin_bodies(20, MIB).await;
    let answers = begun.iter().map(|(_, answer)| answer);
    let refused: Vec<&String> = answers.filter(|answer| !answer.is_empty()).collect();
    // Three quarters of 16 MiB are eleven bodies of a little more than one.
    assert_eq!(refused.len(), 9, "{refused:?}");
    for answer in refused {
        assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
        assert!(answer.contains("retry-after: 1"), "{answer}");
        assert!(answer.contains("server.limits.memory_bytes"), "{answer}");
    }
    let most = (12 * MIB) as f64;
    assert!(crowd.memory().await <= most);
    // Room for a body of the other owner, and for the work on it.
    let request = chat(&[says(&"word ".repeat(MIB / 8))]);
    let answer = crowd.proxied.ask("/v1/chat/completions", &request).await;
    answer.ok();
    assert_eq!(crowd.proxied.outcome(&answer).await["failed"], Value::Null);
    drop(begun);
    while crowd.memory().await > 0.0 {
        tokio::task::yield_now().await;
    }
}
