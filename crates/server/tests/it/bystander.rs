//! The bystander: while one owner does the worst that its key allows, another reads, appends and passes requests through.
//!
//! Only a soak asserts a time: elsewhere what the bystander waits is compared with what the attacker's own work takes, and with
//! what it takes beside an idle attacker.

use std::io::Write as _;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use contexture::Engine;
use contexture_store_testkit::test_seed;
use contexture_upstream_testkit::ScriptedProvider;
use fastrand::Rng;
use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::keys::key;
use crate::proxy::{Proxied, chat, says};

/// A server that is asked as the bystander, and the key of another owner who attacks it.
struct Crowd {
    proxied: Proxied,
    attacker: String,
}

impl Crowd {
    async fn new(limits: &str) -> Self {
        Self::over(Engine::in_memory(), limits).await
    }

    async fn over(engine: Engine, limits: &str) -> Self {
        let (attacker, first) = key("attacker", "eve", &["read", "write", "proxy"]);
        let (bystander, second) = key("bystander", "ada", &["read", "write", "proxy", "admin"]);
        let config = format!("{limits}{first}{second}");
        let provider = ScriptedProvider::default();
        let mut proxied = Proxied::to(provider, engine, &config).await;
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
        self.bystander_times().await.into_iter().max().unwrap()
    }

    /// Does what a bystander does; returns what each of its requests took.
    async fn bystander_times(&self) -> Vec<Duration> {
        let stand = &self.proxied.stand;
        let post = |path: &str, body: Value| {
            let request = stand.request(Method::POST, path);
            let request = request.header("content-type", "application/json");
            request.body(body.to_string())
        };
        let parts = json!([{"type": "text", "text": "hi"}]);
        let requests = [
            stand.request(Method::GET, "/health"),
            stand.request(Method::GET, "/api/v1/conversations/mine/messages?limit=20"),
            post(
                "/api/v1/conversations/mine/messages",
                json!({"messages": [{"role": "user", "parts": parts}]}),
            ),
            post("/v1/chat/completions", chat(&[says("hi")])),
        ];
        let mut times = Vec::new();
        for request in requests {
            let start = Instant::now();
            stand.send(request).await.ok();
            times.push(start.elapsed());
        }
        times
    }

    /// Begins bodies as the attacker that never end, each of so many bytes; returns the connections, and what was answered.
    async fn begin_bodies(&self, count: usize, bytes: usize) -> Vec<(TcpStream, String)> {
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-contexture-key: {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.attacker,
            bytes + 1
        );
        let begin = || async {
            let mut stream = TcpStream::connect(self.proxied.stand.address)
                .await
                .unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = [0; 4096];
            // As clients do, it reads while it writes: a server that refuses may close before it has read everything. Bodies
            // wait two seconds for room.
            let (mut reader, mut writer) = stream.split();
            let body = vec![b' '; bytes];
            let sent = async {
                let _ = writer.write_all(&body).await;
                std::future::pending::<usize>().await
            };
            let read = async { reader.read(&mut answer).await.unwrap_or(0) };
            let both = async {
                tokio::select! { length = sent => length, length = read => length }
            };
            let read = tokio::time::timeout(Duration::from_secs(4), both).await;
            let length = read.unwrap_or(0);
            let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
            (stream, answer)
        };
        futures_util::future::join_all((0..count).map(|_| begin())).await
    }

    /// Returns the memory that bodies take, in bytes.
    async fn memory(&self) -> f64 {
        self.figure("contexture_body_memory_bytes").await
    }

    /// Returns a metric without labels; 0 if it is not there.
    async fn figure(&self, name: &str) -> f64 {
        let figures = self.proxied.stand.get("/metrics").await.text;
        let mut lines = figures.lines();
        let line = lines.find(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(' '))
        });
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

/// Its work ends where it is, long before it would have been done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_takes_its_work_with_it() {
    let crowd = Crowd::new("").await;
    let mut random = Rng::with_seed(test_seed());
    let body = many_messages();
    let start = Instant::now();
    assert_eq!(crowd.attack(&body).await, 200);
    let alone = start.elapsed();
    let is_working = async || crowd.figure("contexture_work_running").await > 0.0;
    let mut rests = Vec::new();
    while rests.len() < 5 {
        let patience = alone.mul_f64(random.f64() * 0.7);
        let answered = tokio::time::timeout(patience, crowd.attack(&body)).await;
        // It may leave before its work has begun, on a machine that is busy.
        if answered.is_ok() || !is_working().await {
            continue;
        }
        let left = Instant::now();
        while is_working().await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        rests.push(left.elapsed());
    }
    rests.sort_unstable();
    println!("work goes on for {rests:?}; alone it takes {alone:?}");
    assert!(rests[2] < alone / 4, "{rests:?} of {alone:?}");
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

/// What an owner can do to others, sent over and over.
#[derive(Clone, Copy, Debug)]
enum Attack {
    /// Long histories to be compressed.
    Compress,
    /// Long histories to be forwarded and stored.
    Store,
    /// Small bodies that unpack to large ones.
    Unpack,
    /// Searches for a word of every message.
    Search,
    /// Searches for the beginnings of most words.
    Beginnings,
    /// Requests of a few messages, each a conversation of its own.
    Small,
    /// As many messages in one append as are allowed.
    Append,
    /// Sessions to be imported.
    Import,
    /// Conversations with more metadata than is allowed.
    Metadata,
    /// Past calls to be compiled with another window.
    WhatIf,
    /// Lists by a title that none has.
    List,
    /// Exports of everything.
    Export,
    /// The standing rules of a long conversation.
    Rules,
    /// All messages of a long conversation.
    Whole,
    /// Short requests about a long conversation, which a policy rewrites.
    Rewrite,
    /// Any of these, of any size.
    Mixed,
}

/// Sizes and doses: small ones, and those of a soak.
struct Dose {
    messages: usize,
    unpacked: usize,
    conversations: usize,
    rounds: usize,
}

impl Dose {
    fn of_run() -> Self {
        match std::env::var_os("CONTEXTURE_SOAK") {
            Some(_) => Self {
                messages: 100_000,
                unpacked: 60 << 20,
                conversations: 2_000,
                rounds: 150,
            },
            None => Self {
                messages: 4_000,
                unpacked: 8 << 20,
                conversations: 20,
                rounds: 8,
            },
        }
    }
}

/// A request of an attacker.
#[derive(Clone)]
struct AttackRequest {
    method: Method,
    path: &'static str,
    body: Bytes,
    headers: &'static [(&'static str, &'static str)],
}

/// Headers of a body that is packed.
const PACKED: &[(&str, &str)] = &[("content-encoding", "gzip")];
/// Headers of a request of a policy about a long conversation.
const REWRITTEN: &[(&str, &str)] = &[
    ("x-contexture-conversation", "long"),
    ("x-contexture-policy", "rewriting"),
];

impl Attack {
    const ALL: [Self; 15] = [
        Self::Compress,
        Self::Store,
        Self::Unpack,
        Self::Search,
        Self::Beginnings,
        Self::Small,
        Self::Append,
        Self::Import,
        Self::Metadata,
        Self::WhatIf,
        Self::List,
        Self::Export,
        Self::Rules,
        Self::Whole,
        Self::Rewrite,
    ];

    fn request(self, dose: &Dose, random: &mut Rng) -> AttackRequest {
        let get = |path| AttackRequest {
            method: Method::GET,
            path,
            body: Bytes::new(),
            headers: &[],
        };
        let post = |path, body: Vec<u8>| AttackRequest {
            method: Method::POST,
            path,
            body: body.into(),
            headers: &[],
        };
        let start = random.u64(..);
        let history = |messages: usize| {
            let messages: Vec<Value> = (0..messages)
                .map(|n| says(&format!("{start} {n}")))
                .collect();
            json!({"model": "gpt-5", "messages": messages})
                .to_string()
                .into_bytes()
        };
        match self {
            Self::Compress => post("/v1/compress", history(dose.messages)),
            Self::Store => post("/v1/chat/completions", history(dose.messages)),
            Self::Unpack => {
                let body = chat(&[says(&"a".repeat(dose.unpacked))]).to_string();
                let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
                packed.write_all(body.as_bytes()).unwrap();
                AttackRequest {
                    headers: PACKED,
                    ..post("/v1/chat/completions", packed.finish().unwrap())
                }
            }
            Self::Search => get("/api/v1/search?query=word"),
            Self::Beginnings => get("/api/v1/search?query=w*%20o*%20m*%20a*%20b*&any=true"),
            Self::Small => post("/v1/chat/completions", history(3)),
            Self::Append => {
                let messages: Vec<Value> = (0..256)
                    .map(|n| json!({"role": "user", "content": format!("{start} {n}")}))
                    .collect();
                let body = json!({"messages": messages}).to_string();
                post("/api/v1/conversations/c0/messages", body.into_bytes())
            }
            Self::Import => post("/api/v1/sessions", history(dose.messages / 10)),
            Self::Metadata => {
                let entries = (0..dose.messages).map(|n| (format!("k{n}"), json!("v")));
                let metadata: serde_json::Map<String, Value> = entries.collect();
                let body = json!({"id": format!("m{start}"), "metadata": metadata}).to_string();
                post("/api/v1/conversations", body.into_bytes())
            }
            Self::WhatIf => {
                let body = json!({"model": "gpt-5", "window": 2_000}).to_string();
                post("/api/v1/conversations/c0/what-if", body.into_bytes())
            }
            Self::List => get("/api/v1/conversations?title=nobody"),
            Self::Export => get("/api/v1/export"),
            Self::Rules => get("/api/v1/conversations/long/rules"),
            Self::Whole => get("/api/v1/conversations/long/messages"),
            Self::Rewrite => AttackRequest {
                headers: REWRITTEN,
                ..post("/v1/chat/completions", history(3))
            },
            Self::Mixed => {
                let dose = Dose {
                    messages: random.usize(1..=dose.messages),
                    unpacked: random.usize(1..=dose.unpacked),
                    ..*dose
                };
                random.choice(Self::ALL).unwrap().request(&dose, random)
            }
        }
    }
}

impl Crowd {
    /// Stores conversations of the attacker that it can search, list and export, and one of so many messages.
    async fn fill(&self, conversations: usize, long: usize) {
        let messages: Vec<Value> = (0..long)
            .map(|n| says(&format!("Always answer {n} in one word. What is {n}?")))
            .collect();
        let stored = reqwest::Client::new()
            .post(format!(
                "http://{}/v1/chat/completions",
                self.proxied.stand.address
            ))
            .header("x-contexture-key", &self.attacker)
            .header("x-contexture-conversation", "long")
            .header("x-contexture-wait", "ingest")
            .header("content-type", "application/json")
            .body(chat(&messages).to_string());
        assert_eq!(stored.send().await.unwrap().status(), 200);
        let url = format!("http://{}/api/v1/conversations", self.proxied.stand.address);
        let client = reqwest::Client::new();
        let post = async |url: String, body: Value| {
            let request = client.post(url).header("x-contexture-key", &self.attacker);
            let request = request.header("content-type", "application/json");
            let answer = request.body(body.to_string()).send().await.unwrap();
            assert!(answer.status().is_success(), "{answer:?}");
        };
        let messages: Vec<Value> = (0..50)
            .map(|n| {
                let text = format!("word {n} of many");
                json!({"role": "user", "parts": [{"type": "text", "text": text}]})
            })
            .collect();
        for n in 0..conversations {
            post(
                url.clone(),
                json!({"id": format!("c{n}"), "title": format!("title {n}")}),
            )
            .await;
            post(
                format!("{url}/c{n}/messages"),
                json!({"messages": messages}),
            )
            .await;
        }
    }

    /// Begins to attack from several connections, over and over, until the tasks are dropped.
    fn begin_attack(&self, attack: Attack, dose: &Dose, random: &mut Rng) -> JoinSet<()> {
        let client = reqwest::Client::new();
        let mut attackers = JoinSet::new();
        let requests: Vec<AttackRequest> = (0..3).map(|_| attack.request(dose, random)).collect();
        for n in 0..8 {
            let (client, requests) = (client.clone(), requests.clone());
            let (address, key) = (self.proxied.stand.address, self.attacker.clone());
            attackers.spawn(async move {
                for request in requests.iter().cycle().skip(n) {
                    let url = format!("http://{address}{}", request.path);
                    let asked = client
                        .request(request.method.clone(), url)
                        .header("x-contexture-key", &key)
                        .header("content-type", "application/json");
                    let asked = request
                        .headers
                        .iter()
                        .fold(asked, |asked, (name, value)| asked.header(*name, *value));
                    // Refusals are answers too, and a server that refuses may close before it has read everything.
                    if let Ok(answer) = asked.body(request.body.clone()).send().await {
                        let _ = answer.bytes().await;
                    }
                }
            });
        }
        attackers
    }

    /// Searches as the attacker and leaves before there is an answer, until a statement was interrupted for that.
    async fn leave_searches(&self, interrupted: impl Fn() -> u64, random: &mut Rng) {
        let before = interrupted();
        let search = Attack::Beginnings.request(&Dose::of_run(), random);
        let url = format!("http://{}{}", self.proxied.stand.address, search.path);
        for _ in 0..1_000 {
            let client = reqwest::Client::new();
            let request = client.get(&url).header("x-contexture-key", &self.attacker);
            let patience = Duration::from_micros(random.u64(500..20_000));
            let _ = tokio::time::timeout(patience, request.send()).await;
            if interrupted() > before {
                return;
            }
        }
        panic!("no statement of 1,000 was interrupted");
    }

    /// What the requests of so many rounds of the bystander took, in order. In each round, what the attacker may take is taken
    /// at most.
    async fn bystander_rounds(&self, rounds: usize) -> Vec<Duration> {
        let mut times = Vec::new();
        for round in 1..=rounds {
            times.extend(self.bystander_times().await);
            // Three quarters of 384 MiB, and 128 KiB for each of the bystander's requests that may still wait to be stored.
            let memory = self.memory().await;
            let most = ((288 << 20) + round * (128 << 10)) as f64;
            assert!(memory <= most, "{memory} bytes of bodies, at most {most}");
            let running = self.figure("contexture_work_running").await;
            let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
            // A pool for what is large, one for what is only stored, one for what is rewritten.
            let most = 2 * threads.saturating_sub(1).max(2) + threads + 1;
            assert!(running <= most as f64, "{running} requests at work at once");
            // Two scans of the attacker, and none of the bystander's.
            let scans = self.figure("contexture_store_scans_running").await;
            assert!(scans <= 2.0, "{scans} scans at once");
            let stored = self.figure("contexture_stored_work_running").await;
            let most = threads.max(2) as f64;
            assert!(stored <= most, "{stored} whole conversations at once");
        }
        times.sort_unstable();
        times
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_attack_slows_a_bystander() {
    let dose = Dose::of_run();
    let mut random = Rng::with_seed(test_seed());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("crowd.db");
    let engine = contexture::open(file.to_str().unwrap()).await.unwrap();
    let store = std::sync::Arc::clone(engine.store());
    let crowd = Crowd::over(engine, "[policies.rewriting]\nwindow = { turns = 2 }\n").await;
    let conversation = json!({"id": "mine"});
    let stand = &crowd.proxied.stand;
    stand
        .post("/api/v1/conversations", &conversation)
        .await
        .ok();
    crowd.fill(dose.conversations, dose.messages).await;
    let interrupted = || store.read_load().interrupted;
    crowd.leave_searches(&interrupted, &mut random).await;
    let idle = crowd.bystander_rounds(dose.rounds).await;
    let middle = |times: &[Duration]| times[times.len() / 2];
    for attack in Attack::ALL.into_iter().chain([Attack::Mixed]) {
        let mut attackers = crowd.begin_attack(attack, &dose, &mut random);
        let times = crowd.bystander_rounds(dose.rounds).await;
        attackers.shutdown().await;
        let late = times[times.len() * 99 / 100];
        println!(
            "{attack:?}: p50 {:?} beside {:?} idle, p99 {late:?}",
            middle(&times),
            middle(&idle)
        );
        // One that waits for the attacker's work takes thousands of times as long as an idle one. One commit of the attacker
        // may be in the way, which takes a program that is not optimised ten times as long.
        let most = if cfg!(debug_assertions) { 100 } else { 30 };
        assert!(
            middle(&times) < most * middle(&idle),
            "{attack:?}: {:?} beside {:?} idle",
            middle(&times),
            middle(&idle)
        );
        if std::env::var_os("CONTEXTURE_SOAK").is_some() {
            assert!(
                late <= Duration::from_millis(100),
                "{attack:?}: p99 {late:?}"
            );
        }
    }
}
