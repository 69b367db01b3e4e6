//! What `contexture serve` costs in front of a provider: `cargo xtask bench serve`.
//!
//! An upstream on the loopback that answers at once; before it, in processes of their own, a proxy that does nothing
//! but pass on, and ours, which keeps every conversation in a file. One client asks directly and through both in turn,
//! so that whatever else the machine does meets all three. The history grows by an answer and a question each time, as
//! an agent's does, and is stored before the next is measured: passed through (`latency`), and under a policy that looks
//! at each request and rewrites some (`policies`). Then many at a time (`throughput`); then 1,000 streams that are open at
//! once (`streams`), which need some 4,200 open files in each process (`ulimit -n`). A name behind `--` runs that alone.
//!
//! Run only by name: `-- soak`, agents' sessions for ten minutes, and once a minute what the server takes of the machine; and
//! `-- bystander`, what one owner feels of another who attacks the server.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints, and fails by panicking"
)]

mod bare;
mod bystander;
mod process;
mod soak;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use contexture_upstream_testkit::{Gate, Received, Upstream, UpstreamResponse};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use process::Process;

/// The variable that makes this program a bare proxy, and says of what.
const BARE: &str = "CONTEXTURE_BENCH_BARE";
/// What it is asked.
const PATH: &str = "/v1/chat/completions";
const STREAMS: usize = 1_000;
const AT_A_TIME: usize = 32;
/// Policies of all routes: none, and one whose window is three quarters of a million-token model's.
const PASS: &str = "";
const FRUGAL: &str = "[policies.frugal]\nclear.keep_recent = 3\npreview = 5000\ncache_marks = true\n\
                      [[routes]]\npolicy = \"frugal\"\n";

type Asker = Client<HttpConnector, Full<Bytes>>;

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let Ok(upstream) = std::env::var(BARE) {
        return runtime.block_on(bare::forward(upstream.parse().unwrap()));
    }
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let named = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let runs = |what: &str| named.as_deref().is_none_or(|named| named == what);
    runtime.block_on(async {
        println!("load before: {}", load());
        for (what, policy) in [("latency", PASS), ("policies", FRUGAL)] {
            for (tokens, count) in [(10_000, 400), (100_000, 200), (1_000_000, 40)] {
                if runs(what) {
                    latency(tokens, if is_quick { count / 10 } else { count }, policy).await;
                }
            }
        }
        let seconds = if is_quick { 1 } else { 10 };
        if runs("throughput") {
            throughput(Duration::from_secs(seconds)).await;
        }
        if runs("streams") {
            streams().await;
        }
        if named.as_deref() == Some("soak") {
            soak::soak(if is_quick { 1 } else { 10 }).await;
        }
        if named.as_deref() == Some("bystander") {
            let seconds = if is_quick { 1 } else { 8 };
            bystander::measure_bystander(Duration::from_secs(seconds)).await;
        }
        println!("load after: {}", load());
    });
}

/// How busy the machine is with everything there is, where the system says.
fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = load.split(' ').take(1).collect::<String>();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{first} on {cores} cores")
}

fn asker() -> Asker {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new()).build(connector)
}

async fn ask(
    asker: &Asker,
    address: SocketAddr,
    body: &Bytes,
    policy: Option<&str>,
) -> Response<Incoming> {
    let mut request =
        Request::post(format!("http://{address}{PATH}")).header("content-type", "application/json");
    if let Some(policy) = policy {
        request = request.header("x-contexture-policy", policy);
    }
    let request = request.body(Full::new(body.clone())).unwrap();
    let answer = asker.request(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    answer
}

fn answered(_: &Received) -> UpstreamResponse {
    let message = json!({ "role": "assistant", "content": "Fine." });
    let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
    let document =
        json!({ "id": "c", "object": "chat.completion", "model": "gpt-5", "choices": [choice] });
    UpstreamResponse::json(200, &document)
}

async fn upstream(
    answer: impl Fn(&Received) -> UpstreamResponse + Send + Sync + 'static,
) -> (Upstream, SocketAddr) {
    let upstream = Upstream::start(answer).await;
    let address = upstream.base_url().strip_prefix("http://").unwrap().parse();
    (upstream, address.unwrap())
}

/// A history of about so many tokens, four bytes each: questions, calls of a tool, outputs of four kilobytes, answers.
fn history(tokens: usize) -> Vec<Value> {
    let text = "some words of a conversation about a program ".repeat(90);
    let turn = |n: usize| {
        let id = format!("call_{n}");
        let function = json!({ "name": "look", "arguments": format!("{{\"file\":\"{n}.rs\"}}") });
        let call = json!({ "id": id, "type": "function", "function": function });
        [
            json!({ "role": "user", "content": format!("{n}: {}", &text[..2_000]) }),
            json!({ "role": "assistant", "content": null, "tool_calls": [call] }),
            json!({ "role": "tool", "tool_call_id": id, "content": format!("{n}: {text}") }),
            json!({ "role": "assistant", "content": format!("{n}: {}", &text[..1_600]) }),
        ]
    };
    (0..tokens * 4 / 8_000).flat_map(turn).collect()
}

fn body(messages: &[Value]) -> Bytes {
    let look = json!({ "name": "look", "parameters": { "type": "object", "properties": { "file": { "type": "string" } } } });
    let tools = [json!({ "type": "function", "function": look })];
    json!({ "model": "gpt-5", "tools": tools, "messages": messages })
        .to_string()
        .into()
}

async fn latency(tokens: usize, runs: usize, policy: &str) {
    let directory = tempfile::tempdir().unwrap();
    let (_upstream, direct) = upstream(answered).await;
    let (bare, ours) = (
        Process::bare(direct),
        Process::contexture(direct, directory.path(), policy),
    );
    let asker = asker();
    let mut messages = history(tokens);
    let mut times = [const { Vec::new() }; 3];
    // The first ones connect.
    for run in 0..runs + 3 {
        messages.push(json!({ "role": "user", "content": format!("And then, {run}?") }));
        let body = body(&messages);
        for (n, address) in [direct, bare.address, ours.address].into_iter().enumerate() {
            let start = Instant::now();
            let answer = ask(&asker, address, &body, None).await;
            let id = answer.headers().get("x-contexture-request").cloned();
            answer.into_body().collect().await.unwrap();
            if run >= 3 {
                times[n].push(start.elapsed());
            }
            if let Some(id) = id {
                stored(&asker, address, id.to_str().unwrap()).await;
            }
        }
        messages.push(json!({ "role": "assistant", "content": "Fine." }));
    }
    let under = if policy == PASS {
        "passed through"
    } else {
        "under a policy"
    };
    println!("\n{tokens} tokens, {runs} requests {under}      p50        p99");
    let [direct, bare, ours] = times.map(|mut times| {
        times.sort_unstable();
        (times[times.len() / 2], times[times.len() * 99 / 100])
    });
    for (what, (p50, p99)) in [
        ("direct", direct),
        ("bare proxy", bare),
        ("contexture serve", ours),
    ] {
        println!("  {what:<24} {p50:>10.2?} {p99:>10.2?}");
    }
    for (what, to) in [("added to direct", direct), ("added to bare proxy", bare)] {
        let more = |ours: Duration, to: Duration| (ours.as_secs_f64() - to.as_secs_f64()) * 1e3;
        println!(
            "  {what:<24} {:>8.2}ms {:>8.2}ms",
            more(ours.0, to.0),
            more(ours.1, to.1)
        );
    }
}

/// Waits until a request is stored, with its answer.
async fn stored(asker: &Asker, address: SocketAddr, id: &str) {
    loop {
        let uri = format!("http://{address}/api/v1/requests/{id}");
        let request = Request::get(uri).body(Full::default()).unwrap();
        let answer = asker.request(request).await.unwrap().into_body();
        let answer: Value =
            serde_json::from_slice(&answer.collect().await.unwrap().to_bytes()).unwrap();
        assert_eq!(answer["failed"], Value::Null, "{answer}");
        if answer["done"] == true {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Requests of 2,500 tokens a second, so many at a time, each a conversation of its own.
async fn throughput(time: Duration) {
    let directory = tempfile::tempdir().unwrap();
    let (_upstream, direct) = upstream(answered).await;
    let (bare, ours) = (
        Process::bare(direct),
        Process::contexture(direct, directory.path(), PASS),
    );
    println!("\n2500 tokens, {AT_A_TIME} at a time, for {time:?}");
    for (what, address) in [
        ("direct", direct),
        ("bare proxy", bare.address),
        ("contexture serve", ours.address),
    ] {
        let (start, mut clients) = (Instant::now(), JoinSet::new());
        for client in 0..AT_A_TIME {
            clients.spawn(async move {
                let asker = asker();
                let mut count = 0_u32;
                while start.elapsed() < time {
                    let mut messages = history(2_500);
                    messages
                        .push(json!({ "role": "user", "content": format!("{client}, {count}?") }));
                    let answer = ask(&asker, address, &body(&messages), None).await;
                    answer.into_body().collect().await.unwrap();
                    count += 1;
                }
                count
            });
        }
        let count: u32 = clients.join_all().await.into_iter().sum();
        let a_second = f64::from(count) / start.elapsed().as_secs_f64();
        println!("  {what:<24} {a_second:>8.0} requests a second");
    }
    if let Some((now, most)) = ours.memory() {
        println!("  memory of contexture serve: {now} MB, at most {most} MB");
    }
    let missed = ours.count(&asker(), "contexture_proxy_missed_total").await;
    println!("  not stored by contexture serve: {missed}");
}

/// Streams that are all open at once, each having begun.
async fn streams() {
    let directory = tempfile::tempdir().unwrap();
    let gate = Gate::new_closed();
    let held = gate.clone();
    let (_upstream, direct) = upstream(move |_| {
        let delta = |text: &str| {
            let choice = json!({ "index": 0, "delta": { "content": text } });
            let chunk = json!({ "id": "c", "object": "chat.completion.chunk", "model": "gpt-5", "choices": [choice] });
            format!("data: {chunk}\n\n")
        };
        UpstreamResponse::event_stream([delta("Fi"), delta("ne."), "data: [DONE]\n\n".to_owned()]).gated_by(&held)
    })
    .await;
    let ours = Process::contexture(direct, directory.path(), PASS);
    let before = ours.memory();
    let asker = asker();
    let mut open = Vec::new();
    for n in 0..STREAMS {
        let mut messages = history(2_500);
        messages.push(json!({ "role": "user", "content": format!("{n}?") }));
        let mut answer = ask(&asker, ours.address, &body(&messages), None)
            .await
            .into_body();
        answer.frame().await.unwrap().unwrap();
        open.push(answer);
    }
    println!("\n{STREAMS} streams, open at once, requests of 2500 tokens");
    if let (Some((before, _)), Some((now, most))) = (before, ours.memory()) {
        println!(
            "  memory of contexture serve: {before} MB before, {now} MB with all open, at most {most} MB"
        );
    }
    gate.release_chunks(2 * STREAMS);
    for answer in open {
        let rest = answer.collect().await.unwrap().to_bytes();
        assert!(rest.ends_with(b"data: [DONE]\n\n"));
    }
    println!("  all ended as they were sent");
}
