//! Events: in pages, and followed.

use futures_util::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};

use crate::messages::{said, talk};
use crate::proxy::{Proxied, chat, says};
use crate::test_support::Stand;

/// Follows, and reads events as they come.
struct Following {
    chunks: futures_util::stream::BoxStream<'static, String>,
    rest: String,
}

impl Following {
    async fn new(stand: &Stand, path: &str, last: Option<&str>) -> Self {
        let request = stand
            .request(Method::GET, path)
            .header("accept", "text/event-stream");
        let request = match last {
            Some(last) => request.header("last-event-id", last),
            None => request,
        };
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let chunks = response
            .bytes_stream()
            .map(|chunk| String::from_utf8(chunk.unwrap().to_vec()).unwrap());
        Self {
            chunks: chunks.boxed(),
            rest: String::new(),
        }
    }

    /// The id and data of the next event that has both; `None` at the end.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let (Some(id), data) = self.any().await? {
                return Some((id, data));
            }
        }
    }

    /// The id, if there is one, and data of the next event that has data; `None` at the end.
    async fn any(&mut self) -> Option<(Option<String>, Value)> {
        loop {
            if let Some((event, rest)) = self.rest.split_once("\n\n") {
                let field = |name: &str| {
                    event
                        .lines()
                        .find_map(|line| line.strip_prefix(name))
                        .map(|text| text.trim().to_owned())
                };
                let found = (field("id:"), field("data:"));
                self.rest = rest.to_owned();
                if let (id, Some(data)) = found {
                    return Some((id, serde_json::from_str(&data).unwrap()));
                }
                continue;
            }
            self.rest += &self.chunks.next().await?;
        }
    }
}

#[tokio::test]
async fn pages_of_what_happened() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["one", "two"]).await;
    let events = stand.get(&format!("{path}/events")).await.ok();
    let kinds: Vec<&str> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["created", "appended", "appended"]);
    let one = stand
        .get(&format!("{path}/events?after=1&limit=1"))
        .await
        .ok();
    assert_eq!(
        (&one["events"][0]["seq"], &one["more"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(
        stand
            .get(&format!("{path}/events?after=18446744073709551615"))
            .await
            .ok()["events"],
        json!([])
    );
    stand
        .get(&format!("{path}/events?after=-1"))
        .await
        .refused(400, "bad_query");
    stand
        .get(&format!("{path}/events?limit=0"))
        .await
        .refused(400, "bad_query");
}

#[tokio::test]
async fn whoever_comes_back_misses_nothing() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["one"]).await;
    let events = format!("{path}/events");
    let mut following = Following::new(&stand, &events, None).await;
    assert_eq!(following.next().await.unwrap().1["kind"], "created");
    let (id, appended) = following.next().await.unwrap();
    assert_eq!((id.as_str(), &appended["kind"]), ("2", &json!("appended")));
    drop(following);
    stand
        .post(&format!("{path}/messages"), &said("two"))
        .await
        .ok();
    let mut following = Following::new(&stand, &events, Some(&id)).await;
    assert_eq!(following.next().await.unwrap().0, "3");
    stand
        .post(&format!("{path}/messages"), &said("three"))
        .await
        .ok();
    assert_eq!(following.next().await.unwrap().0, "4");
    stand.send(stand.request(Method::DELETE, &path)).await;
    assert!(following.next().await.is_none());
    let bad = stand
        .request(Method::GET, &events)
        .header("last-event-id", "x");
    stand.send(bad).await.refused(400, "bad_header");
}

#[tokio::test]
async fn an_answer_comes_piece_by_piece_and_then_whole() {
    let proxied = Proxied::new().await;
    let stand = &proxied.stand;
    let path = talk(stand, "a", &[]).await;
    let events = format!("{path}/events");
    let mut following = Following::new(stand, &events, None).await;
    let mut other = Following::new(
        stand,
        &format!("{}/events", talk(stand, "b", &[]).await),
        None,
    )
    .await;
    let mut body = chat(&[says(
        "upstream: words 5\nupstream: call weather {\"city\":\"Rome\"}",
    )]);
    body["stream"] = json!(true);
    let answer = proxied
        .ask_with(
            "/v1/chat/completions",
            &body,
            &[("x-contexture-conversation", "a")],
        )
        .await;
    let outcome = proxied.outcome(&answer).await;
    let (mut text, mut arguments, mut tools) = (String::new(), String::new(), Vec::new());
    let mut last = None;
    while last != outcome["answer"]["head"].as_str().map(str::to_owned) {
        let (id, data) = following.any().await.unwrap();
        if id.is_some() {
            last = data["node"].as_str().map(str::to_owned);
            continue;
        }
        assert_eq!(data["request"], outcome["id"], "{data}");
        assert_eq!(data["branch"], "main");
        let delta = data["delta"].as_str().unwrap_or_default();
        match data["kind"].as_str().unwrap() {
            "response.output_text.delta" => text += delta,
            "response.function_call_arguments.delta" => arguments += delta,
            _ => tools.extend(data["tool"].as_str().map(str::to_owned)),
        }
    }
    assert_eq!(text.split_whitespace().count(), 5, "{text}");
    assert_eq!(
        (arguments.as_str(), tools),
        (r#"{"city":"Rome"}"#, vec!["weather".to_owned()])
    );
    // What is whole is there for who comes late, its pieces are not; and who follows another conversation sees neither.
    let mut late = Following::new(stand, &events, Some("1")).await;
    assert!(late.any().await.unwrap().0.is_some());
    assert_eq!(other.any().await.unwrap().1["kind"], "created");
    stand
        .post("/api/v1/conversations/b/messages", &said("hi"))
        .await
        .ok();
    assert_eq!(other.any().await.unwrap().1["kind"], "appended");
}

/// Follows everything of the owner, and reads the place at which it begins.
async fn follow_all(stand: &Stand, last: Option<&str>) -> (Following, String) {
    let mut following = Following::new(stand, "/api/v1/events", last).await;
    let (place, begin) = following.next().await.unwrap();
    assert!(begin["at"].is_string(), "{begin}");
    (following, place)
}

/// The conversation, the number and the kind of an event.
fn told(event: &Value) -> (String, u64, String) {
    let text = |member: &str| event[member].as_str().unwrap().to_owned();
    (
        text("conversation"),
        event["seq"].as_u64().unwrap(),
        text("kind"),
    )
}

fn event(conversation: &str, seq: u64, kind: &str) -> (String, u64, String) {
    (conversation.to_owned(), seq, kind.to_owned())
}

#[tokio::test]
async fn all_conversations_are_followed_at_once() {
    let mut stand = Stand::new().await;
    talk(&stand, "before", &["one"]).await;
    let (mut following, place) = follow_all(&stand, None).await;
    // What was there before is not sent, what comes is: of conversations that are there, and of new ones.
    let a = talk(&stand, "a", &["one"]).await;
    assert_eq!(
        told(&following.next().await.unwrap().1),
        event("a", 1, "created")
    );
    assert_eq!(
        told(&following.next().await.unwrap().1),
        event("a", 2, "appended")
    );
    stand
        .post("/api/v1/conversations/before/messages", &said("two"))
        .await
        .ok();
    let (_, appended) = following.next().await.unwrap();
    assert_eq!(told(&appended), event("before", 3, "appended"));
    drop(following);

    // Whoever comes back misses nothing of either; what was just seen may come again, and is known by its number.
    stand
        .post(&format!("{a}/messages"), &said("two"))
        .await
        .ok();
    stand
        .post("/api/v1/conversations/before/messages", &said("three"))
        .await
        .ok();
    let (mut back, _) = follow_all(&stand, Some(&place)).await;
    let mut missed = vec![event("a", 3, "appended"), event("before", 4, "appended")];
    let mut last: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    while !missed.is_empty() {
        let got = told(&back.next().await.unwrap().1);
        // Within a conversation they come in order, each once.
        let before = last.insert(got.0.clone(), got.1);
        assert!(before.is_none_or(|before| before + 1 == got.1), "{got:?}");
        missed.retain(|one| *one != got);
    }
    stand.send(stand.request(Method::DELETE, &a)).await;
    talk(&stand, "b", &[]).await;
    assert_eq!(
        told(&back.next().await.unwrap().1),
        event("b", 1, "created")
    );
    stand.stop();
    assert!(back.next().await.is_none());
    stand.stopped().await;
}

#[tokio::test]
async fn what_happened_since_is_caught_up_with() {
    let stand = Stand::new().await;
    for n in 0..3 {
        talk(&stand, &format!("c{n}"), &["one", "two"]).await;
    }
    // Without `follow` it ends with what is there.
    let since = "/api/v1/events?since=1h&follow=false";
    let mut following = Following::new(&stand, since, None).await;
    let (place, _) = following.next().await.unwrap();
    let mut seen = Vec::new();
    let mut last = place.clone();
    while let Some((id, one)) = following.next().await {
        last = id;
        seen.push(told(&one));
    }
    seen.sort();
    let kinds = ["created", "appended", "appended"];
    let of = |n: u64| {
        let kinds = kinds.iter().zip(1_u64..);
        kinds.map(move |(kind, seq)| event(&format!("c{n}"), seq, kind))
    };
    assert_eq!(seen, (0..3).flat_map(of).collect::<Vec<_>>());
    // Nothing of the past is sent where nobody asks for it.
    let mut none = Following::new(&stand, "/api/v1/events?follow=false", None).await;
    none.next().await.unwrap();
    let rest = none.next().await;
    assert!(rest.is_none(), "{rest:?}");
    // A place of this list is taken, anything else is named.
    let after = format!("/api/v1/events?follow=false&after={last}");
    let mut following = Following::new(&stand, &after, None).await;
    assert_eq!(following.next().await.unwrap().0, place);
    let path = "/api/v1/events?follow=false";
    for (query, code) in [
        ("&after=x", "bad_cursor"),
        ("&since=yesterday", "bad_query"),
        ("&limit=3", "bad_query"),
    ] {
        let answer = stand.get(&format!("{path}{query}")).await;
        answer.refused(400, code);
    }
    let bad = stand
        .request(Method::GET, path)
        .header("last-event-id", "7");
    stand.send(bad).await.refused(400, "bad_cursor");
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    let mut stand = Stand::new().await;
    let path = talk(&stand, "a", &[]).await;
    let mut following = Following::new(&stand, &format!("{path}/events"), None).await;
    following.next().await.unwrap();
    stand.stop();
    assert!(following.next().await.is_none());
    stand.stopped().await;
}
