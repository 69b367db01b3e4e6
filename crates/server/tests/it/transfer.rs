//! Conversations out and in.

use contexture::user;
use reqwest::{Method, StatusCode};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::messages::talk;
use crate::test_support::{Answer, Stand};

async fn import(stand: &Stand, lines: &str) -> Answer {
    let request = stand
        .request(Method::POST, "/api/v1/import")
        .header("content-type", "application/jsonl");
    stand.send(request.body(lines.to_owned())).await
}

#[tokio::test]
async fn what_goes_out_comes_in_the_same() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["one", "two"]).await;
    talk(&stand, "b", &["three"]).await;
    let lines = stand.get(&format!("{path}/export")).await;
    assert_eq!(lines.headers["content-type"], "application/jsonl");
    let other = Stand::new().await;
    assert_eq!(
        import(&other, &lines.text).await.ok()["conversations"],
        serde_json::json!(["a"])
    );
    assert_eq!(other.get(&format!("{path}/export")).await.text, lines.text);
    assert_eq!(
        other.get(&format!("{path}/items")).await.ok(),
        stand.get(&format!("{path}/items")).await.ok()
    );
    let all = stand.get("/api/v1/export").await;
    let third = Stand::new().await;
    assert_eq!(
        import(&third, &all.text).await.ok()["conversations"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let anthropic = stand.get(&format!("{path}/export?format=anthropic")).await;
    assert!(anthropic.text.contains("\"one\""), "{}", anthropic.text);
    let unknown = stand.get(&format!("{path}/export?format=none")).await;
    assert_eq!(unknown.problem().0, 422);
}

#[tokio::test]
async fn what_is_broken_is_refused_whole() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["one", "two"]).await;
    let lines = stand.get(&format!("{path}/export")).await.text;
    let refused = import(&stand, &lines).await;
    refused.refused(409, "already_exists");
    let other = Stand::new().await;
    let cut: String = lines
        .lines()
        .take(2)
        .map(|line| format!("{line}\n"))
        .collect();
    for broken in [cut.as_str(), "{}\n", "x", "\u{0}\n", "\n"] {
        let answer = import(&other, broken).await;
        assert_eq!(answer.problem().0, 422, "{}", answer.text);
    }
    other.get(&path).await.refused(404, "not_found");
    let json = stand
        .request(Method::POST, "/api/v1/import")
        .header("content-type", "application/json")
        .body("{}");
    stand
        .send(json)
        .await
        .refused(415, "unsupported_media_type");
}

#[tokio::test]
async fn what_is_half_is_taken_back_however_it_ended() {
    let stand = Stand::new().await;
    // So long that it is stored line by line, and not when all of it has come.
    let path = talk(&stand, "a", &[&"x".repeat(1 << 20), "two"]).await;
    let lines = stand.get(&format!("{path}/export")).await.text;
    let half = lines.split_once("{\"end\"").unwrap().0;
    let other = Stand::new().await;
    let request = other
        .request(Method::POST, "/api/v1/import")
        .header("content-type", "application/jsonl")
        .body([half.as_bytes(), b"\xff\n"].concat());
    other.send(request).await.refused(400, "bad_body");
    other.get(&path).await.refused(404, "not_found");

    let until = async |status: StatusCode| while other.get(&path).await.status != status {};
    let mut stream = TcpStream::connect(other.address).await.unwrap();
    let head = "POST /api/v1/import HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/jsonl\r\n\
                content-length: 10000000\r\n\r\n";
    let sent = [head, half].concat();
    stream.write_all(sent.as_bytes()).await.unwrap();
    until(StatusCode::OK).await;
    drop(stream);
    until(StatusCode::NOT_FOUND).await;
}

#[tokio::test]
async fn what_is_deleted_before_its_turn_is_left_out() {
    let stand = Stand::new().await;
    // More than is on its way while nobody reads.
    let long = stand.engine.conversation("a").open().await.unwrap();
    for _ in 0..24 {
        long.save([user("x".repeat(1 << 20))]).await.unwrap();
    }
    let gone = talk(&stand, "b", &["two"]).await;
    talk(&stand, "c", &["three"]).await;
    let export = stand.request(Method::GET, "/api/v1/export");
    let mut answer = export.send().await.unwrap();
    answer.chunk().await.unwrap();
    stand.send(stand.request(Method::DELETE, &gone)).await.ok();
    let rest = answer.text().await.unwrap();
    assert!(rest.contains(r#""id":"c""#) && !rest.contains(r#""id":"b""#));
}

#[tokio::test]
async fn sessions_of_other_programs_become_conversations() {
    let stand = Stand::new().await;
    let keep = async |query: &str, kind: &str, text: &str| {
        let path = format!("/api/v1/sessions?{query}");
        let request = stand.request(Method::POST, &path);
        let request = request.header("content-type", kind);
        stand.send(request.body(text.to_owned())).await
    };
    let (name, log) = contexture_testdata::swe_agent().remove(0);
    let query = format!("name={name}&resource=bench");
    let kept = keep(&query, "application/json", &log).await.ok();
    let session = &kept["imported"][0];
    assert_eq!(session["format"], "swe-agent");
    assert_eq!(
        (&session["items"], session["new"].as_u64()),
        (&session["new"], session["items"].as_u64())
    );
    let id = session["conversation"].as_str().unwrap();
    let shown = stand.get(&format!("/api/v1/conversations/{id}")).await.ok();
    assert_eq!(shown["resource"], "bench");
    assert!(shown["items"].as_u64() >= session["items"].as_u64());
    // Again: nothing twice.
    let again = keep(&query, "application/json", &log).await.ok();
    assert_eq!(
        again["imported"][0]["conversation"],
        session["conversation"]
    );
    assert_eq!(again["imported"][0]["new"], 0);

    let tau = contexture_testdata::tau_bench();
    let many = keep("format=tau-bench", "application/json", &tau)
        .await
        .ok();
    assert!(many["imported"].as_array().unwrap().len() > 1);
    keep("conversation=x", "application/json", &tau)
        .await
        .refused(400, "bad_query");
    keep("", "text/plain", &log)
        .await
        .refused(415, "unsupported_media_type");
    keep("format=none", "application/json", &log)
        .await
        .refused(422, "bad_session");
    keep("format=codex", "application/json", "{")
        .await
        .refused(422, "bad_session");
}
