//! How fast pages are, on a large conversation and on one of many calls: figures, printed. Run in the soak alone.

use contexture::Engine;
use serde_json::json;

use super::browser::{CHROMIUM, find_packages, run_script, script};
use super::recorded_calls_of;
use crate::messages::talk;

const MESSAGES: usize = 10_000;
/// Messages of one append: the limit of the API.
const BATCH: usize = 256;
const CALLS: usize = 1_000;
/// What a first page may take over the wire, with all that it loads.
const PAGE_BYTES: u64 = 150 << 10;

#[tokio::test]
async fn pages_of_large_conversations_are_measured() {
    if std::env::var_os("CONTEXTURE_SOAK").is_none() {
        return;
    }
    let Some(packages) = find_packages() else {
        return;
    };
    // A client that sends the newest messages alone: the calls are many, and none of them is long.
    let headers = [("x-contexture-conversation", "calls")];
    let proxied = recorded_calls_of(Engine::in_memory(), CALLS, 12, &headers, "").await;
    let path = talk(&proxied.stand, "large", &[]).await;
    let message = |at: usize| {
        let role = if at.is_multiple_of(2) {
            "user"
        } else {
            "assistant"
        };
        json!({"role": role, "content": format!("message {at} says what was said before it, and a little more")})
    };
    for from in (0..MESSAGES).step_by(BATCH) {
        let messages: Vec<_> = (from..MESSAGES.min(from + BATCH)).map(message).collect();
        let body = json!({"messages": messages});
        proxied
            .stand
            .post(&format!("{path}/messages"), &body)
            .await
            .ok();
    }
    let mut node = script(&packages, "speed.mjs");
    node.arg(proxied.stand.url(""));
    node.arg(std::env::var_os(CHROMIUM).unwrap());
    node.args(["large", "calls"]);
    let told = run_script(node).await;
    let figures = told
        .lines()
        .filter_map(|line| line.strip_prefix("measured "));
    for figure in figures.clone() {
        println!("{figure}");
    }
    // Times are printed, since they depend on what else this machine does. Bytes do not.
    let mut bytes = figures.filter_map(|figure| figure.strip_prefix("first_page_bytes "));
    let bytes: u64 = bytes.next().unwrap().parse().unwrap();
    assert!(bytes <= PAGE_BYTES, "{bytes} bytes");
}
