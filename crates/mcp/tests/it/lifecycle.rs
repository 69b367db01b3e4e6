//! Beginning, calling off, ending: on the raw lines of the protocol.

use std::sync::{Arc, Condvar, Mutex};

use contexture::Engine;
use contexture::engine::Clock;
use contexture_mcp::{Access, Caller, serve};
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

use crate::support::{ada, empty, recorded};

struct Raw {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Raw {
    fn new(engine: Engine) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(theirs);
        tokio::spawn(serve(
            engine,
            Caller::new(ada(), Access::Write),
            input,
            output,
        ));
        let (output, input) = tokio::io::split(ours);
        let output = BufReader::new(output).lines();
        Self { input, output }
    }

    async fn say(&mut self, message: Value) {
        self.line(&message.to_string()).await;
    }

    async fn line(&mut self, line: &str) {
        self.input.write_all(line.as_bytes()).await.unwrap();
        self.input.write_all(b"\n").await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.output.next_line().await.unwrap().unwrap()).unwrap()
    }

    /// Begins with a version and gives the one agreed on.
    async fn begin(&mut self, version: &str) -> Value {
        let client = json!({ "name": "test", "version": "1" });
        let params =
            json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        self.say(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }))
            .await;
        let said = self.hear().await;
        self.say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        said["result"].clone()
    }
}

#[tokio::test]
async fn a_version_both_know_is_agreed_on() {
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
    ] {
        let mut client = Raw::new(empty());
        let said = client.begin(asked).await;
        assert_eq!(said["protocolVersion"], json!(agreed), "{asked}");
        assert_eq!(said["serverInfo"]["name"], json!("contexture"));
        let capabilities = json!({ "tools": {}, "resources": {} });
        assert_eq!(said["capabilities"], capabilities);
    }
}

#[tokio::test]
async fn the_newest_version_needs_no_beginning() {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(theirs);
    let caller = Caller::new(ada(), Access::Write);
    tokio::spawn(serve(recorded().await, caller, input, output));
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let mode = ClientLifecycleMode::Discover { preferred_versions };
    let client = ().serve_with_lifecycle(ours, mode).await.unwrap();
    let version = client.peer_info().unwrap().protocol_version.clone();
    assert_eq!(version, ProtocolVersion::V_2026_07_28);
    assert_eq!(client.list_all_tools().await.unwrap().len(), 18);
    let read = rmcp::model::ReadResourceRequestParams::new("context://vfs/..");
    // What is not there is an invalid parameter in this version.
    let error = client.read_resource(read).await.unwrap_err();
    assert!(error.to_string().contains("-32602"), "{error}");
}

#[tokio::test]
async fn broken_lines_do_not_end_it() {
    let mut client = Raw::new(empty());
    client.begin("2025-11-25").await;
    for line in [
        "{",
        "[]",
        "null",
        "\u{0}",
        "{\"jsonrpc\":\"2.0\"}",
        "plain words",
    ] {
        client.line(line).await;
    }
    client
        .say(json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" }))
        .await;
    loop {
        let said = client.hear().await;
        if said["id"] == json!(7) {
            assert_eq!(said["result"], json!({}));
            break;
        }
        assert!(said["error"].is_object(), "{said}");
    }
    client
        .say(json!({ "jsonrpc": "2.0", "id": 8, "method": "no/such" }))
        .await;
    assert_eq!(client.hear().await["error"]["code"], json!(-32601));
}

/// A clock that stands still until it is let go.
#[derive(Clone, Debug, Default)]
struct Held(Arc<(Mutex<bool>, Condvar)>);

impl Held {
    fn let_go(&self) {
        let (gone, told) = &*self.0;
        *gone.lock().unwrap() = true;
        told.notify_all();
    }
}

impl Clock for Held {
    fn now_ms(&self) -> i64 {
        let (gone, told) = &*self.0;
        let gone = gone.lock().unwrap();
        drop(told.wait_while(gone, |gone| !*gone).unwrap());
        0
    }
}

#[tokio::test]
async fn what_is_called_off_is_not_answered() {
    let clock = Held::default();
    let mut client = Raw::new(recorded().await.with_clock(clock.clone()));
    client.begin("2025-11-25").await;
    let params = json!({ "name": "read_memory", "arguments": {} });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    client.say(call).await;
    // The call waits for the time; whatever else is asked is answered meanwhile.
    let ping = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    client.say(ping(2)).await;
    assert_eq!(client.hear().await["id"], json!(2));
    let off = json!({ "requestId": 1 });
    let off = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": off });
    client.say(off).await;
    client.say(ping(3)).await;
    assert_eq!(client.hear().await["id"], json!(3));
    clock.let_go();
    let params = json!({ "name": "read_memory", "arguments": {} });
    let call = json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": params });
    client.say(call).await;
    let said = client.hear().await;
    assert_eq!(
        (&said["id"], &said["result"]["isError"]),
        (&json!(4), &json!(false))
    );
}

#[tokio::test]
async fn who_leaves_without_a_word_has_lost_nothing() {
    let (ours, theirs) = tokio::io::duplex(64);
    let (input, output) = tokio::io::split(theirs);
    drop(ours);
    let caller = Caller::new(ada(), Access::Read);
    serve(empty(), caller, input, output).await.unwrap();
}
