//! What one owner feels of another who does the worst that its key allows: `cargo xtask bench serve -- bystander`.
//!
//! Each attack is sent over and over from 16 connections. Meanwhile the bystander, one client, asks for the server's health,
//! reads a conversation, appends to it and has a short request passed on, in turn. First it does so beside nobody.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use contexture_server::NewKey;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::{Method, Request};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use crate::process::Process;
use crate::{Asker, PATH, answered, asker, upstream};

const CONNECTIONS: usize = 16;
/// Conversations of the attacker, and the messages of its longest one.
const CONVERSATIONS: usize = 2_000;
const MESSAGES: usize = 100_000;
/// After which memory has to be back.
const REST: Duration = Duration::from_secs(60);

/// How many answers of each status.
type Answers = Arc<Mutex<BTreeMap<u16, usize>>>;

/// A request of either owner.
#[derive(Clone)]
struct Call {
    method: Method,
    path: &'static str,
    headers: Vec<(&'static str, &'static str)>,
    body: Bytes,
}

impl Call {
    fn get(path: &'static str) -> Self {
        Self {
            method: Method::GET,
            path,
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    fn post(path: &'static str, body: impl Into<Bytes>) -> Self {
        Self {
            method: Method::POST,
            body: body.into(),
            ..Self::get(path)
        }
    }

    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Sends it with a key, reads the whole answer, and returns the status; nothing if the server closed before it had read all.
    async fn send(&self, asker: &Asker, server: SocketAddr, key: &str) -> Option<u16> {
        let uri = format!("http://{server}{}", self.path);
        let mut request = Request::builder()
            .method(self.method.clone())
            .uri(uri)
            .header("x-contexture-key", key)
            .header("content-type", "application/json");
        for (name, value) in &self.headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(self.body.clone())).unwrap();
        let answer = asker.request(request).await.ok()?;
        let status = answer.status().as_u16();
        answer.into_body().collect().await.ok()?;
        Some(status)
    }
}

fn says(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

/// A question as a conversation has it.
fn asks(text: &str) -> Value {
    json!({ "role": "user", "parts": [{ "type": "text", "text": text }] })
}

fn chat(messages: usize, text: impl Fn(usize) -> String) -> String {
    let messages: Vec<Value> = (0..messages).map(|n| says(&text(n))).collect();
    json!({ "model": "gpt-5", "messages": messages }).to_string()
}

fn packed(text: &str) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

/// Each attack by name.
fn attacks() -> Vec<(&'static str, Call)> {
    let history = |count: usize| chat(count, |n| format!("message {n} of an attacker"));
    let large = packed(&chat(1, |_| "a".repeat(60 << 20)));
    let entries = (0..10_000).map(|n| (format!("k{n}"), json!("v")));
    let metadata = json!({ "metadata": entries.collect::<Map<_, _>>() });
    let what_if = json!({ "model": "gpt-5", "window": 2_000 });
    let appended: Vec<Value> = (0..256).map(|n| asks(&format!("appended {n}"))).collect();
    let appended = json!({ "messages": appended });
    vec![
        ("compress", Call::post("/v1/compress", history(MESSAGES))),
        ("store a long history", Call::post(PATH, history(MESSAGES))),
        (
            "60 MB that unpack",
            Call::post(PATH, large).with("content-encoding", "gzip"),
        ),
        (
            "search a frequent word",
            Call::get("/api/v1/search?query=word"),
        ),
        (
            "search beginnings",
            Call::get("/api/v1/search?query=w*%20o*%20m*%20a*%20b*&any=true"),
        ),
        ("small conversations", Call::post(PATH, history(3))),
        (
            "append 256",
            Call::post("/api/v1/conversations/c0/messages", appended.to_string()),
        ),
        (
            "import",
            Call::post("/api/v1/sessions", history(MESSAGES / 10)),
        ),
        (
            "metadata",
            Call::post("/api/v1/conversations", metadata.to_string()),
        ),
        (
            "what if",
            Call::post("/api/v1/conversations/c0/what-if", what_if.to_string()),
        ),
        (
            "list by title",
            Call::get("/api/v1/conversations?title=nobody"),
        ),
        ("export", Call::get("/api/v1/export")),
        ("rules", Call::get("/api/v1/conversations/long/rules")),
        (
            "all messages",
            Call::get("/api/v1/conversations/long/messages"),
        ),
        (
            "rewrite",
            Call::post(PATH, history(3))
                .with("x-contexture-conversation", "long")
                .with("x-contexture-policy", "rewriting"),
        ),
    ]
}

/// What a bystander does: health, read, append, pass.
fn bystander_calls() -> [Call; 4] {
    let append = json!({ "messages": [asks("hi")] }).to_string();
    [
        Call::get("/health"),
        Call::get("/api/v1/conversations/mine/messages?limit=20"),
        Call::post("/api/v1/conversations/mine/messages", append),
        Call::post(PATH, chat(1, |_| "hi".to_owned())),
    ]
}

/// The server, and the keys of its two owners.
struct Crowd {
    server: Process,
    attacker: NewKey,
    bystander: NewKey,
    asker: Asker,
}

impl Crowd {
    fn start(upstream: SocketAddr, directory: &Path) -> Self {
        let (attacker, bystander) = (NewKey::random().unwrap(), NewKey::random().unwrap());
        let lines = |name: &str, key: &NewKey| {
            let hash = key.hash();
            format!(
                "[[keys]]\nname = {name:?}\nsha256 = \"{hash}\"\nowner = {name:?}\n\
                 scopes = [\"read\", \"write\", \"proxy\", \"admin\"]\n"
            )
        };
        let settings = format!(
            "[policies.rewriting]\nwindow = {{ turns = 2 }}\n{}{}",
            lines("attacker", &attacker),
            lines("bystander", &bystander)
        );
        Self {
            server: Process::contexture(upstream, directory, &settings),
            attacker,
            bystander,
            asker: asker(),
        }
    }

    async fn send(&self, call: Call, key: &NewKey) {
        let address = self.server.address;
        let status = call.send(&self.asker, address, key.secret()).await;
        let is_done = status.is_some_and(|status| status < 300);
        assert!(is_done, "{} {}: {status:?}", call.method, call.path);
    }

    /// Stores what the attacks look for, and the bystander's conversation.
    async fn fill(&self) {
        // Through the proxy: an append has a limit of messages, a request has none but its bytes.
        let long = chat(MESSAGES, |n| {
            format!("Always answer {n} in one word. What is {n}?")
        });
        let long = Call::post(PATH, long)
            .with("x-contexture-conversation", "long")
            .with("x-contexture-wait", "ingest");
        self.send(long, &self.attacker).await;
        for n in 0..CONVERSATIONS {
            let body = json!({ "id": format!("c{n}"), "title": format!("title {n}") });
            let call = Call::post("/api/v1/conversations", body.to_string());
            self.send(call, &self.attacker).await;
        }
        let messages: Vec<Value> = (0..200)
            .map(|n| asks(&format!("word {n} of many")))
            .collect();
        let body = json!({ "messages": messages }).to_string();
        for _ in 0..100 {
            let call = Call::post("/api/v1/conversations/c1/messages", body.clone());
            self.send(call, &self.attacker).await;
        }
        let mine = json!({ "id": "mine" }).to_string();
        let mine = Call::post("/api/v1/conversations", mine);
        self.send(mine, &self.bystander).await;
    }

    /// Sends each of the bystander's requests in turn for a time; returns p50 and p99 of each, and the server's memory.
    async fn bystand(&self, time: Duration) -> String {
        let mut times = [const { Vec::new() }; 4];
        let start = Instant::now();
        while start.elapsed() < time {
            for (call, times) in bystander_calls().into_iter().zip(&mut times) {
                let start = Instant::now();
                self.send(call, &self.bystander).await;
                times.push(start.elapsed());
            }
        }
        // Each kind apart: an append waits for the disk, and would hide what the others wait for.
        let figures = times.map(|mut times| {
            times.sort_unstable();
            let at = |hundredth: usize| times[times.len() * hundredth / 100].as_secs_f64() * 1e3;
            format!("{:>7.1} {:>7.1}", at(50), at(99))
        });
        let (memory, _) = self.server.memory().unwrap_or_default();
        format!("{} {memory:>7}", figures.join(" "))
    }

    /// Attacks from several connections, over and over, until the tasks are dropped. Counts the answers by status; 0 is none.
    fn begin_attack(&self, attack: &Call, answers: &Answers) -> JoinSet<()> {
        let mut attackers = JoinSet::new();
        for _ in 0..CONNECTIONS {
            let (address, attack) = (self.server.address, attack.clone());
            let (key, answers) = (self.attacker.secret().to_owned(), Answers::clone(answers));
            attackers.spawn(async move {
                let asker = asker();
                loop {
                    // After a refusal a client that means no harm would wait.
                    let status = attack.send(&asker, address, &key).await;
                    let mut answers = answers.lock().unwrap();
                    *answers.entry(status.unwrap_or_default()).or_default() += 1;
                }
            });
        }
        attackers
    }
}

/// Prints a table: beside nobody, then beside each attack.
pub(crate) async fn measure_bystander(time: Duration) {
    let directory = tempfile::tempdir().unwrap();
    let (_upstream, direct) = upstream(answered).await;
    let crowd = Crowd::start(direct, directory.path());
    crowd.fill().await;
    println!(
        "\na bystander beside {CONNECTIONS} connections of an attacker, {time:?} each: p50 and p99 in ms; MB; answers to the attacker by status"
    );
    println!(
        "  attack                            health            read          append            pass  memory  answers"
    );
    println!("  {:<24} {}", "none", crowd.bystand(time).await);
    for (name, attack) in attacks() {
        let answers = Answers::default();
        let attackers = crowd.begin_attack(&attack, &answers);
        let figures = crowd.bystand(time).await;
        // Aborts their requests, too: the next attack begins alone.
        drop(attackers);
        println!("  {name:<24} {figures}  {:?}", answers.lock().unwrap());
    }
    let (_, most) = crowd.server.memory().unwrap_or_default();
    tokio::time::sleep(REST).await;
    let (now, _) = crowd.server.memory().unwrap_or_default();
    println!(
        "  memory of contexture serve: at most {most} MB, {now} MB a minute after the last attack"
    );
}
