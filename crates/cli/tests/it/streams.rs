//! How much memory a server takes for streams that wait: of both connections, what came, and what is stored.

use contexture_upstream_testkit::{Gate, Received, Upstream, UpstreamResponse};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::command::Place;
use crate::serving::Serving;

/// As many as a process may open files for where nobody raised that, here and upstream.
const MANY: usize = 400;

/// The most bytes for each.
const EACH: usize = 96 << 10;

fn resident(serving: &Serving) -> usize {
    let file = format!("/proc/{}/statm", serving.child.id());
    let pages = std::fs::read_to_string(file).unwrap();
    let pages = pages.split_whitespace().nth(1).unwrap().parse::<usize>();
    pages.unwrap() * 4096
}

async fn stream(address: &str, number: usize) -> TcpStream {
    let body = json!({"model": "gpt-4.1", "stream": true,
        "messages": [{"role": "user", "content": format!("Hi, I am number {number}")}]});
    let body = body.to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut came = Vec::new();
    while !came.windows(6).any(|six| six == b"data: ") {
        assert!(stream.read_buf(&mut came).await.unwrap() > 0);
    }
    stream
}

#[tokio::test]
async fn streams_that_wait_are_small() {
    let gate = Gate::new_closed();
    let upstream = {
        let gate = gate.clone();
        Upstream::start(move |_: &Received| {
            let event = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1",
                "choices": [{"index": 0, "delta": {"role": "assistant", "content": "word "}, "finish_reason": null}]});
            UpstreamResponse::event_stream((0..2).map(|_| format!("data: {event}\n\n"))).gated_by(&gate)
        })
        .await
    };
    let place = Place::new();
    let config = format!(
        "[server.limits]\nconcurrent = {}\n[upstreams.openai]\nformat = \"openai\"\nbase_url = \"{}\"\n",
        2 * MANY,
        upstream.base_url()
    );
    place.write("c.toml", config);
    let serving = Serving::start(&place, "--config c.toml --db new.db", &[]);
    let mut open = Vec::new();
    // What is made once is made.
    for number in 0..20 {
        open.push(stream(&serving.address, number).await);
    }
    let before = resident(&serving);
    for number in 0..MANY {
        open.push(stream(&serving.address, 20 + number).await);
    }
    let each = (resident(&serving) - before) / MANY;
    println!("{} KiB for each of {MANY} streams", each >> 10);
    assert!(each <= EACH, "{each} bytes each");
}
