//! The service that a server mounts: each request is for whom it says, and for nobody else.

use std::convert::Infallible;

use contexture::{Engine, Owner};
use contexture_mcp::{Access, Caller, HttpOptions, HttpService, http_service};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower_service::Service as _;

use crate::support::{AIRLINE, STRANGE, recorded};

/// A service that believes the header `x-test-owner`.
fn service(engine: Engine, options: HttpOptions) -> HttpService {
    http_service(engine, options, |parts| {
        let owner = parts.headers.get("x-test-owner")?.to_str().ok()?;
        Some(Caller::new(Owner::new(owner).ok()?, Access::Write))
    })
}

async fn post(
    service: &mut HttpService,
    headers: &[(&str, &str)],
    body: String,
) -> (StatusCode, String) {
    let mut request = Request::post("http://localhost/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25");
    for (name, value) in headers {
        if *name == "host" {
            request.headers_mut().unwrap().remove("host");
        }
        request = request.header(*name, *value);
    }
    let request: Request<Full<bytes::Bytes>> = request.body(Full::new(body.into())).unwrap();
    let answer: Result<_, Infallible> = service.call(request).await;
    let answer = answer.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn call(tool: &str, arguments: Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

#[tokio::test]
async fn each_request_is_for_whom_it_says() {
    let mut service = service(recorded().await, HttpOptions::default());
    for (owner, id, there) in [
        ("acme/ada", AIRLINE, true),
        ("acme/ada", STRANGE, false),
        ("acme/eve", STRANGE, true),
        ("acme/eve", AIRLINE, false),
    ] {
        let read = call("read_conversation", json!({ "conversation": id }));
        let (status, body) = post(&mut service, &[("x-test-owner", owner)], read).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            body["result"]["isError"],
            json!(!there),
            "{owner} {id}: {body}"
        );
    }
}

#[tokio::test]
async fn nobody_is_answered_nothing() {
    let mut service = service(recorded().await, HttpOptions::default());
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let resources = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/list" }).to_string();
    let read = call("list_conversations", json!({}));
    for body in [list, resources, read] {
        let (_, said) = post(&mut service, &[], body.clone()).await;
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(
            said["error"]["message"],
            json!("it is not known who asks"),
            "{body}"
        );
    }
}

#[tokio::test]
async fn pages_in_browsers_and_large_bodies_are_refused() {
    let options = HttpOptions {
        body_bytes: 10_000,
        ..HttpOptions::default()
    };
    let mut service = service(recorded().await, options);
    let ada = ("x-test-owner", "acme/ada");
    let list = call("list_conversations", json!({}));
    for (headers, expected) in [
        (vec![ada], StatusCode::OK),
        (vec![ada, ("host", "evil.example")], StatusCode::FORBIDDEN),
        (
            vec![ada, ("origin", "https://evil.example")],
            StatusCode::FORBIDDEN,
        ),
        (vec![ada, ("origin", "null")], StatusCode::FORBIDDEN),
    ] {
        let (status, said) = post(&mut service, &headers, list.clone()).await;
        assert_eq!(status, expected, "{headers:?}: {said}");
    }
    let large = call(
        "search_conversations",
        json!({ "query": "x".repeat(20_000) }),
    );
    let (status, _) = post(&mut service, &[ada], large).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn no_session_is_kept() {
    let mut service = service(recorded().await, HttpOptions::default());
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" }
    });
    let begin = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let ada = [("x-test-owner", "acme/ada")];
    let (status, said) = post(&mut service, &ada, begin.to_string()).await;
    assert_eq!(status, StatusCode::OK, "{said}");
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["result"]["protocolVersion"], json!("2025-11-25"));
    let get = Request::get("http://localhost/mcp")
        .header("host", "localhost")
        .header("accept", "text/event-stream");
    let get: Request<Full<bytes::Bytes>> = get.body(Full::default()).unwrap();
    assert_eq!(
        service.call(get).await.unwrap().status(),
        StatusCode::METHOD_NOT_ALLOWED
    );
}
