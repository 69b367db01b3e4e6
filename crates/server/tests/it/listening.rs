//! Where it listens, what it answers to requests that fit nowhere, and how it ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use contexture::Engine;
use contexture::engine::TestClock;
use contexture::store::MemoryStore;
use contexture_server::{App, Config, ServeError, Server};
use contexture_store_testkit::{Chances, Faulty};
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::test_support::Stand;

#[tokio::test]
async fn its_own_pages_are_there() {
    let stand = Stand::new().await;
    assert_eq!(stand.get("/health").await.ok()["status"], "ok");
    let description = stand.get("/openapi.json").await.ok();
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1"));
    let figures = stand.get("/metrics").await;
    assert!(
        figures.text.contains("contexture_http_requests_total"),
        "{}",
        figures.text
    );
}

#[tokio::test]
async fn methods_that_a_caller_makes_up_are_one_figure() {
    let stand = Stand::new().await;
    for method in ["MADE-UP-1", "MADE-UP-2"] {
        let mut stream = TcpStream::connect(stand.address).await.unwrap();
        let request =
            format!("{method} / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.read_to_end(&mut Vec::new()).await.unwrap();
    }
    let figures = stand.get("/metrics").await.text;
    assert!(figures.contains(r#"method="other""#), "{figures}");
    assert!(!figures.contains("MADE-UP"), "{figures}");
}

#[tokio::test]
async fn it_does_not_listen_elsewhere_without_keys() {
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let config =
            Config::parse(&format!("[server]\nlisten = \"{listen}\""), "test.toml").unwrap();
        let error = Server::bind(App::new(Engine::in_memory(), config).unwrap())
            .await
            .unwrap_err();
        assert!(
            matches!(error, ServeError::NoKeys { address } if address == listen.parse().unwrap())
        );
    }
    let key = format!(
        "[[keys]]\nname = \"k\"\nowner = \"o\"\nsha256 = \"{}\"",
        "0".repeat(64)
    );
    let config = Config::parse(
        &format!("[server]\nlisten = \"0.0.0.0:0\"\n{key}"),
        "test.toml",
    )
    .unwrap();
    let server = Server::bind(App::new(Engine::in_memory(), config).unwrap())
        .await
        .unwrap();
    assert_ne!(server.local_addr().port(), 0);
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let stand = Stand::new().await;
    let mut config = Config::default();
    config.server.listen = stand.address;
    let error = Server::bind(App::new(Engine::in_memory(), config).unwrap())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains(&stand.address.to_string()),
        "{error}"
    );
}

#[tokio::test]
async fn what_fits_nowhere_is_a_problem() {
    let stand = Stand::new().await;
    stand.get("/nothing/here").await.refused(404, "not_found");
    stand.get("/api/v1/nothing").await.refused(404, "not_found");
    let put = stand
        .call(Method::PUT, "/api/v1/conversations", &json!({}))
        .await;
    put.refused(405, "method_not_allowed");
    assert_eq!(put.headers["allow"], "GET,HEAD,POST");
    let options = stand
        .send(stand.request(Method::OPTIONS, "/api/v1/conversations"))
        .await;
    assert_eq!(options.status, 204);
    assert_eq!(options.headers["allow"], "GET,HEAD,POST");
    let head = stand.send(stand.request(Method::HEAD, "/health")).await;
    assert_eq!((head.status.as_u16(), head.text.as_str()), (200, ""));
}

#[tokio::test]
async fn bodies_must_be_json_and_not_too_large() {
    let stand = Stand::with("[server.limits]\nbody_bytes = 100").await;
    let path = "/api/v1/conversations";
    let plain = stand
        .request(Method::POST, path)
        .header("content-type", "text/plain")
        .body("{}");
    stand
        .send(plain)
        .await
        .refused(415, "unsupported_media_type");
    let broken = stand
        .request(Method::POST, path)
        .header("content-type", "application/json")
        .body("{");
    stand.send(broken).await.refused(400, "bad_json");
    stand
        .post(path, &json!({"id": 1}))
        .await
        .refused(400, "bad_body");
    stand
        .post(path, &json!({"title": "x".repeat(100)}))
        .await
        .refused(413, "body_too_large");
    stand.post(path, &json!({"id": "a"})).await.ok();
}

/// Sends raw bytes and reads what comes until the connection closes.
async fn raw(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may close before all is sent.
    let _ = stream.write_all(bytes).await;
    let mut out = Vec::new();
    let _ = stream.read_to_end(&mut out).await;
    String::from_utf8_lossy(&out).into_owned()
}

#[tokio::test]
async fn heads_have_limits() {
    let stand =
        Stand::with("[server.limits]\nheader_bytes = 8192\nheaders = 20\nheader_seconds = 1").await;
    let large = format!(
        "GET /health HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
        "y".repeat(9000)
    );
    assert!(
        raw(stand.address, large.as_bytes())
            .await
            .starts_with("HTTP/1.1 431")
    );
    let many: String = (0..30).map(|n| format!("x{n}: y\r\n")).collect();
    let many = format!("GET /health HTTP/1.1\r\nhost: localhost\r\n{many}\r\n");
    assert!(
        raw(stand.address, many.as_bytes())
            .await
            .starts_with("HTTP/1.1 431")
    );
    // A head that never ends is cut off.
    let slow = raw(stand.address, b"GET /health HTTP/1.1\r\nhost: ").await;
    assert!(!slow.contains("200 OK"), "{slow}");
}

#[tokio::test]
async fn a_head_may_be_as_long_as_the_limit_says() {
    let stand = Stand::new().await;
    let ask = async |bytes: usize| {
        let start = "GET /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx: ";
        let head = format!("{start}{}\r\n\r\n", "y".repeat(bytes - start.len() - 4));
        assert_eq!(head.len(), bytes);
        raw(stand.address, head.as_bytes()).await
    };
    for (bytes, status) in [
        (60_000, 200),
        (65_536, 200),
        (65_537, 431),
        (66_000, 431),
        (80_000, 431),
        (120_000, 431),
    ] {
        let answer = ask(bytes).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{bytes}: {answer}"
        );
        assert!(status == 200 || answer.contains("header_bytes"), "{answer}");
    }
    // Far beyond it nothing more is read, and the connection may be cut before the answer is.
    assert!(!ask(300_000).await.contains("200 OK"));
}

#[tokio::test]
async fn stopping_finishes_what_runs() {
    let mut stand = Stand::new().await;
    let body = json!({"id": "late"}).to_string();
    let mut stream = TcpStream::connect(stand.address).await.unwrap();
    let head = format!(
        "POST /api/v1/conversations HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         expect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server asks for the body: the request runs.
    let mut told = [0; 25];
    stream.read_exact(&mut told).await.unwrap();
    assert!(told.starts_with(b"HTTP/1.1 100"));
    stand.stop();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let address = stand.address;
    stand.stopped().await;
    TcpStream::connect(address).await.unwrap_err();
}

#[tokio::test]
async fn what_does_not_end_in_time_is_cut_off() {
    let mut stand = Stand::with("[server.limits]\ndrain_seconds = 0").await;
    let mut stream = TcpStream::connect(stand.address).await.unwrap();
    let head = "POST /api/v1/conversations HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                expect: 100-continue\r\ncontent-length: 10\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut told = [0; 25];
    stream.read_exact(&mut told).await.unwrap();
    stand.stop();
    stand.stopped().await;
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert!(!rest.starts_with(b"HTTP/1.1 201"));
}

/// A connection on which one request was answered, and that is kept.
async fn kept(stand: &Stand, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(stand.address).await.unwrap();
    let text = format!("GET {head}\r\nhost: localhost\r\n\r\n");
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).await.unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200", "{head}");
    stream
}

#[tokio::test]
async fn connections_without_key_keep_nobody_out() {
    let (key, lines) = crate::keys::key("ada", "ada", &["read"]);
    let config = format!("[server.limits]\nconnections = 32\nconnections_per_peer = 0\n{lines}");
    let stand = Stand::with(&config).await;
    let with_key = format!("/api/v1/conversations HTTP/1.1\r\nx-contexture-key: {key}");
    let mut owners = kept(&stand, &with_key).await;
    // Many more than may be open, of which none goes away by itself, asked or not.
    let mut strangers = Vec::new();
    for number in 0..100 {
        strangers.push(match number % 2 {
            0 => kept(&stand, "/health/live HTTP/1.1").await,
            _ => TcpStream::connect(stand.address).await.unwrap(),
        });
    }
    // A newcomer is served, and who has shown a key is still connected.
    kept(&stand, "/health/live HTTP/1.1").await;
    kept(&stand, &with_key).await;
    let again = format!("GET {with_key}\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    owners.write_all(again.as_bytes()).await.unwrap();
    let mut rest = String::new();
    owners.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("HTTP/1.1 200"), "{rest}");
    // The one that waited longest was closed first.
    let mut end = Vec::new();
    strangers[0].read_to_end(&mut end).await.unwrap();
}

/// Strangers who ask for much and read nothing of it.
#[tokio::test]
async fn strangers_who_do_not_read_keep_nobody_out() {
    let (key, lines) = crate::keys::key("ada", "ada", &["read"]);
    let config = format!("[server.limits]\nconnections = 32\nconnections_per_peer = 0\n{lines}");
    let stand = Stand::with(&config).await;
    let with_key = format!("/api/v1/conversations HTTP/1.1\r\nx-contexture-key: {key}");
    let much = "GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(100);
    let mut strangers = Vec::new();
    let mut refused = 0;
    for _ in 0..60 {
        let mut stranger = TcpStream::connect(stand.address).await.unwrap();
        stranger.write_all(much.as_bytes()).await.unwrap();
        let mut begin = [0; 12];
        stranger.read_exact(&mut begin).await.unwrap();
        match &begin {
            b"HTTP/1.1 200" => strangers.push(stranger),
            b"HTTP/1.1 503" => refused += 1,
            other => panic!("{}", String::from_utf8_lossy(other)),
        }
        kept(&stand, &with_key).await;
    }
    // Seven eighths of 32, one of which may have been the owner's before its key was seen.
    assert!(
        refused > 0 && (27..=29).contains(&strangers.len()),
        "{} served, {refused} refused",
        strangers.len()
    );
}

/// Whoever takes nothing of its answers for too long is let go.
#[tokio::test]
async fn a_client_that_does_not_read_is_let_go() {
    let stand = Stand::with("[server.limits]\nsend_seconds = 1\n").await;
    let mut stream = TcpStream::connect(stand.address).await.unwrap();
    let much = "GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(100);
    stream.write_all(much.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut read = Vec::new();
    // An error is an end, too.
    let _ = stream.read_to_end(&mut read).await;
    let whole = stand.get("/openapi.json").await.text.len();
    assert!(read.len() < 100 * whole, "{} bytes", read.len());
}

#[tokio::test]
async fn a_peer_has_so_many_connections() {
    let stand = Stand::with("[server.limits]\nconnections_per_peer = 4").await;
    let mut first = kept(&stand, "/health/live HTTP/1.1").await;
    let mut more = Vec::new();
    for _ in 0..4 {
        more.push(kept(&stand, "/health/live HTTP/1.1").await);
    }
    // It ends, though it could have been kept for two minutes.
    first.read_to_end(&mut Vec::new()).await.unwrap();
}

#[tokio::test]
async fn it_lives_though_its_database_does_not_answer() {
    let stand = Stand::new().await;
    for path in ["/health", "/health/live", "/health/ready"] {
        assert_eq!(stand.get(path).await.ok()["status"], "ok", "{path}");
    }
    let chances = Chances {
        before: 1000,
        ..Chances::default()
    };
    let store = Faulty::with_seed(Arc::new(MemoryStore::new()), 7, chances);
    let stand = Stand::over(Engine::new(Arc::new(store)), "").await;
    assert_eq!(stand.get("/health/live").await.ok()["status"], "ok");
    for path in ["/health", "/health/ready"] {
        stand.get(path).await.refused(503, "database");
    }
}

#[tokio::test]
async fn what_a_rule_gives_up_is_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.db");
    let engine = contexture::open(file.to_str().unwrap()).await.unwrap();
    let long_ago = engine.clone().with_clock(TestClock::new(1_000));
    for (engine, owner, id) in [
        (&long_ago, "ada", "old"),
        (&engine, "ada", "new"),
        (&long_ago, "bob", "old"),
    ] {
        engine.conversation(id).owner(owner).open().await.unwrap();
    }
    let stand = Stand::over(
        engine.clone(),
        "[[retention]]\nowner = \"ada\"\ndays = 30\n",
    )
    .await;
    let is_there = async |owner: &str, id: &str| {
        let found = stand
            .engine
            .conversation(id)
            .owner(owner)
            .open_existing()
            .await;
        found.is_ok()
    };
    while is_there("ada", "old").await {
        tokio::task::yield_now().await;
    }
    assert!(is_there("ada", "new").await && is_there("bob", "old").await);
}

/// Serves as long as nobody ends it, for programs that look at it from outside: the address goes to standard output.
#[tokio::test]
#[ignore = "serves until it is ended"]
async fn served() {
    let stand = Stand::new().await;
    println!("{}", stand.address);
    std::future::pending::<()>().await;
}
