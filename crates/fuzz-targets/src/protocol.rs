//! Calls of the Model Context Protocol, cursors, links and tool arguments included.

use contexture::ir::{FunctionCall, FunctionCallOutput, Output};
use contexture::{Engine, Owner, user};
use contexture_mcp::{Access, Caller, serve};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::input::{assert_bounded, value_of};

/// The most lines that are sent: more say nothing new.
const LINES: usize = 8;

/// Lines of a client, after the handshake: each line of the answer is JSON of the protocol, and there are not more
/// answers than lines.
pub(crate) fn check_calls(data: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        // The server's own limits of time are not tested here, but it sets timers.
        .enable_all()
        .build()
        .unwrap();
    let answer = runtime.block_on(talk(data));
    let lines: Vec<&str> = answer.lines().collect();
    for line in &lines {
        let value = value_of(line).unwrap_or_else(|| panic!("no JSON: {line}"));
        assert_eq!(value["jsonrpc"], json!("2.0"), "{line}");
    }
    assert_bounded("an answer", data.len() + (64 << 10), answer.len());
}

/// Everything that a server of its own says to these lines.
async fn talk(data: &[u8]) -> String {
    let engine = Engine::in_memory();
    fill_engine(&engine).await;
    let (client, server) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(server);
    let caller = Caller::new(Owner::local(), Access::Write);
    let serving = tokio::spawn(serve(engine, caller, input, output));
    let (mut read, mut write) = tokio::io::split(client);
    let mut sent = HANDSHAKE.as_bytes().to_vec();
    for line in data.split(|byte| *byte == b'\n').take(LINES) {
        sent.extend_from_slice(line);
        sent.push(b'\n');
    }
    // A ping that is answered after all before it, so that nothing is lost when the input ends.
    sent.extend_from_slice(LAST.as_bytes());
    let reading = tokio::spawn(async move { read_until_last(&mut read).await });
    // The server may have left at a line that is no message.
    let _ = write.write_all(&sent).await;
    let answer = reading.await.unwrap();
    drop(write);
    // How it ends is the server's; a panic in it is not.
    let _ = serving.await.unwrap();
    answer
}

/// Reads until the last line is answered, or the server leaves.
async fn read_until_last(read: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = read.read(&mut piece).await {
        answer.extend_from_slice(&piece[..count]);
        let is_last = |line: &str| value_of(line).is_some_and(|value| value["id"] == json!("last"));
        let text = String::from_utf8_lossy(&answer);
        if text.ends_with('\n') && text.lines().any(is_last) {
            break;
        }
    }
    String::from_utf8(answer).unwrap()
}

/// A conversation with a call and its output.
async fn fill_engine(engine: &Engine) {
    let chat = engine.conversation("small").open().await.unwrap();
    chat.save([user("Where does it say fox?")]).await.unwrap();
    let mut draft = chat.draft();
    draft.push_item(FunctionCall::new("c1", "grep", r#"{"in":"log"}"#));
    let text = "1: nothing\n2: fox\n".repeat(20);
    draft.push_item(FunctionCallOutput::new("c1", Output::Text(text)));
    draft.commit().await.unwrap();
}

const HANDSHAKE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":"first","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n"
);
const LAST: &str = concat!(r#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#, "\n");

/// A call of every tool, with cursors and links that lead nowhere.
pub(crate) fn calls() -> Vec<Vec<u8>> {
    let digits = "0123456789abcdef".repeat(2);
    let link = format!("context://vfs/{digits}");
    let cursor = format!("7~1700000000000~small~{digits}");
    let tools = [
        (
            "check_budget",
            json!({"conversation": "small", "model": "gpt-5"}),
        ),
        (
            "compact_conversation",
            json!({"conversation": "small", "dry_run": true}),
        ),
        (
            "create_branch",
            json!({"conversation": "small", "name": "b"}),
        ),
        (
            "create_checkpoint",
            json!({"conversation": "small", "name": "c"}),
        ),
        (
            "create_memory",
            json!({"key": "k", "value": "v", "seconds": 5}),
        ),
        ("delete_memory", json!({"key": "k"})),
        ("list_branches", json!({"conversation": "small"})),
        (
            "list_conversations",
            json!({"limit": 1, "cursor": "1700000000000~small"}),
        ),
        (
            "read_conversation",
            json!({"conversation": "small", "from": 1, "limit": 2}),
        ),
        (
            "read_link",
            json!({"conversation": "small", "link": link, "pattern": "fo+x", "regex": true}),
        ),
        ("read_memory", json!({})),
        (
            "restore_checkpoint",
            json!({"conversation": "small", "checkpoint": "c"}),
        ),
        (
            "search_conversations",
            json!({"query": "fox \"say fo*", "limit": 1, "cursor": cursor}),
        ),
        (
            "switch_branch",
            json!({"conversation": "small", "branch": "main"}),
        ),
        ("update_memory", json!({"key": "k", "value": "w"})),
    ];
    let mut inputs: Vec<Value> = tools
        .into_iter()
        .map(|(name, arguments)| {
            request("tools/call", json!({"name": name, "arguments": arguments}))
        })
        .collect();
    let uri = format!("{link}?conversation=small");
    inputs.push(request("resources/read", json!({ "uri": uri })));
    let uri = "contexture://conversation/small";
    inputs.push(request("resources/read", json!({ "uri": uri })));
    inputs.push(request("resources/list", json!({"cursor": "1~small"})));
    inputs.push(request("tools/list", json!({})));
    let lines = inputs.iter().map(|input| input.to_string().into_bytes());
    lines.collect()
}

fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}
