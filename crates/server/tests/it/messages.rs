//! Messages and items: appended, read, page by page.

use reqwest::Method;
use serde_json::{Value, json};

use crate::test_support::{Answer, Stand};

pub(crate) fn said(text: &str) -> Value {
    json!({"messages": [{"id": "", "role": "user", "parts": [{"type": "text", "text": text}]}]})
}

/// A conversation that says these things, and its path.
pub(crate) async fn talk(stand: &Stand, id: &str, texts: &[&str]) -> String {
    stand
        .post("/api/v1/conversations", &json!({"id": id}))
        .await
        .ok();
    let path = format!("/api/v1/conversations/{id}");
    for text in texts {
        stand
            .post(&format!("{path}/messages"), &said(text))
            .await
            .ok();
    }
    path
}

#[tokio::test]
async fn what_is_appended_is_read() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["Hello"]).await;
    let body = json!({
        "messages": [{"id": "m2", "role": "assistant", "parts": [{"type": "text", "text": "Good morning"}]}],
        "items": [{"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}],
    });
    let stored = stand.post(&format!("{path}/messages"), &body).await;
    assert_eq!(stored.status, 201);
    let document = stored.ok();
    assert_eq!(document["messages"][0], "m2");
    assert_eq!(document["items"].as_array().unwrap().len(), 2);
    assert_eq!(
        stored.headers["etag"],
        format!("\"{}\"", document["head"].as_str().unwrap())
    );

    let messages = stand.get(&format!("{path}/messages")).await.ok();
    assert_eq!(messages["branch"], "main");
    assert_eq!(messages["messages"][0]["parts"][0]["text"], "Hello");
    assert_eq!(messages["messages"][1]["id"], "m2");
    let items = stand.get(&format!("{path}/items")).await.ok();
    let kinds: Vec<&str> = items["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["user", "assistant", "call"]);
    assert_eq!(items["items"][2]["item"]["name"], "look");
    assert_eq!(items["head"], document["head"]);
    let one = stand
        .get(&format!(
            "{path}/items/{}",
            document["items"][0].as_str().unwrap()
        ))
        .await
        .ok();
    assert_eq!(one["message"], "m2");
    assert_eq!(
        stand
            .get(&format!("{path}/messages?audience=model"))
            .await
            .ok()["messages"][0]["role"],
        "user"
    );
}

#[tokio::test]
async fn an_edited_message_opens_a_branch() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &[]).await;
    let message = |text: &str| json!({"messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": text}]}]});
    stand
        .post(&format!("{path}/messages"), &message("one"))
        .await
        .ok();
    let again = stand
        .post(&format!("{path}/messages"), &message("one"))
        .await
        .ok();
    assert_eq!(
        (&again["opened"], &again["items"]),
        (&json!(false), &json!([]))
    );
    let edited = stand
        .post(&format!("{path}/messages"), &message("two"))
        .await
        .ok();
    assert_eq!(edited["opened"], true);
    assert_ne!(edited["branch"], "main");
}

#[tokio::test]
async fn of_appends_that_expect_one_head_one_succeeds() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &[]).await;
    let append = async |head: &str, text: &str| -> Answer {
        let request = stand
            .request(Method::POST, &format!("{path}/messages"))
            .header("content-type", "application/json")
            .header("if-match", head);
        stand.send(request.body(said(text).to_string())).await
    };
    let answers = futures_util::future::join_all((0..8).map(|n| {
        let text = format!("n{n}");
        let append = &append;
        async move { append("\"empty\"", &text).await }
    }));
    let answers = answers.await;
    let (stored, refused): (Vec<&Answer>, Vec<&Answer>) =
        answers.iter().partition(|answer| answer.status == 201);
    assert_eq!(stored.len(), 1);
    let head = stored[0].json()["head"].clone();
    for refused in refused {
        refused.refused(412, "head_moved");
        assert_eq!(
            (&refused.json()["expected"], &refused.json()["actual"]),
            (&Value::Null, &head)
        );
    }
    let branch = stand.get(&format!("{path}/branches/main")).await;
    let tag = branch.headers["etag"].to_str().unwrap().to_owned();
    append(&tag, "next").await.ok();
    append(&tag, "late").await.refused(412, "head_moved");
    append("*", "any").await.ok();
    append("what", "x").await.refused(400, "bad_header");
    assert_eq!(stand.get(&format!("{path}/items")).await.ok()["depth"], 3);
}

#[tokio::test]
async fn pages_of_items_are_of_one_path() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["1", "2", "3", "4", "5"]).await;
    let first = stand.get(&format!("{path}/items?limit=2")).await.ok();
    // What is appended between two pages is not in them.
    stand
        .post(&format!("{path}/messages"), &said("6"))
        .await
        .ok();
    let mut texts = Vec::new();
    let mut page = first;
    loop {
        let items = page["items"].as_array().unwrap().iter();
        texts.extend(items.map(|item| {
            item["item"]["content"][0]["text"]
                .as_str()
                .unwrap()
                .to_owned()
        }));
        let Some(next) = page["next"].as_str() else {
            break;
        };
        page = stand
            .get(&format!("{path}/items?limit=2&after={next}"))
            .await
            .ok();
    }
    assert_eq!(texts, ["1", "2", "3", "4", "5"]);
    let other = talk(&stand, "b", &["x"]).await;
    let next = stand.get(&format!("{path}/items?limit=2")).await.ok()["next"]
        .as_str()
        .unwrap()
        .to_owned();
    stand
        .get(&format!("{other}/items?after={next}"))
        .await
        .refused(400, "bad_cursor");
    stand
        .get(&format!("/api/v1/conversations?after={next}"))
        .await
        .refused(400, "bad_cursor");
}

#[tokio::test]
async fn what_is_no_message_is_refused_and_nothing_stored() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &[]).await;
    let post = async |body: Value| stand.post(&format!("{path}/messages"), &body).await;
    post(json!({})).await.refused(400, "bad_body");
    post(json!({"messages": 1})).await.refused(400, "bad_body");
    post(json!({"messages": [], "more": 1}))
        .await
        .refused(400, "bad_body");
    for body in [
        json!({"messages": [{}]}),
        json!({"messages": [1]}),
        json!({"messages": [{"role": "user", "parts": [{"type": "text", "text": "ok"}]}, {"role": "nobody", "parts": []}]}),
        json!({"items": [{}]}),
        json!({"items": [{"type": 7}]}),
    ] {
        let answer = post(body).await;
        assert_eq!(answer.problem().0, 422, "{}", answer.text);
    }
    assert_eq!(stand.get(&format!("{path}/items")).await.ok()["depth"], 0);
    stand
        .get(&format!("{path}/items/nothex"))
        .await
        .refused(422, "bad_name");
    stand
        .get(&format!("{path}/items/{}", "0".repeat(32)))
        .await
        .refused(404, "not_found");
    stand
        .get(&format!("{path}/messages?branch=other"))
        .await
        .refused(404, "not_found");
}

/// What everybody sends is taken: the same two messages in each format that has messages.
#[tokio::test]
async fn messages_are_taken_in_any_format() {
    let text = |kind: &str, text: &str| json!([{"type": kind, "text": text}]);
    let formats = [
        json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Good morning"}]),
        json!([
            {"role": "user", "content": text("text", "Hi")},
            {"role": "assistant", "content": text("text", "Good morning")},
        ]),
        json!([
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [{"text": "Good morning"}]},
        ]),
        json!([
            {"role": "user", "parts": text("text", "Hi")},
            {"role": "assistant", "parts": text("text", "Good morning")},
        ]),
        json!([
            {"type": "message", "role": "user", "content": text("input_text", "Hi")},
            {"type": "message", "role": "assistant", "content": text("output_text", "Good morning")},
        ]),
        // One of the AI SDK among those of a provider.
        json!([
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "parts": text("text", "Good morning")},
        ]),
    ];
    for messages in formats {
        let stand = Stand::new().await;
        let path = talk(&stand, "a", &[]).await;
        let body = json!({"messages": messages});
        let saved = stand.post(&format!("{path}/messages"), &body).await;
        assert_eq!(saved.ok().get("losses"), None, "{messages}");
        let items = stand.get(&format!("{path}/items")).await.ok();
        let items = items["items"].as_array().unwrap();
        let seen: Vec<_> = items
            .iter()
            .map(|item| (&item["kind"], &item["item"]["content"][0]["text"]))
            .collect();
        let expected = [
            (json!("user"), json!("Hi")),
            (json!("assistant"), json!("Good morning")),
        ];
        let expected: Vec<_> = expected.iter().map(|(kind, text)| (kind, text)).collect();
        assert_eq!(seen, expected, "{messages}");
    }
}

#[tokio::test]
async fn calls_and_outputs_of_chat_messages_belong_together() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &[]).await;
    let call =
        json!({"id": "c1", "type": "function", "function": {"name": "track", "arguments": "{}"}});
    let body = json!({"messages": [
        {"role": "system", "content": "You answer briefly."},
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "out for delivery"},
    ]});
    stand.post(&format!("{path}/messages"), &body).await.ok();
    let items = stand.get(&format!("{path}/items")).await.ok();
    let items = items["items"].as_array().unwrap();
    let kinds: Vec<_> = items
        .iter()
        .map(|item| item["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["instruction", "user", "call", "output"]);
    assert_eq!(items[2]["message"], items[3]["message"]);
}

#[tokio::test]
async fn a_message_of_no_shape_is_told_where() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &[]).await;
    for (body, place) in [
        (json!({"messages": [{"text": "Hi"}]}), "`messages[0]`"),
        (
            json!({"messages": [{"role": "user", "content": "Hi"}, {"role": "robot", "parts": []}]}),
            "`messages[1].role`",
        ),
        (
            json!({"messages": [{"role": "user", "parts": [{"type": "text", "text": "Hi"}]}, 7]}),
            "`messages[1]`",
        ),
        (
            json!({"items": [{"type": "message", "role": "user"}, {"type": "function_call"}]}),
            "`items[1]`",
        ),
    ] {
        let refused = stand.post(&format!("{path}/messages"), &body).await;
        refused.refused(422, "bad_message");
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(
            detail.contains(place) && detail.contains("`parts`"),
            "{body}: {detail}"
        );
        let items = stand.get(&format!("{path}/items")).await.ok();
        assert_eq!(items["items"], json!([]), "{body}");
    }
}

/// The values of a list's pages, in the order in which they come.
async fn all_pages(stand: &Stand, path: &str, member: &str, limit: usize) -> Vec<Vec<Value>> {
    let (mut pages, mut after) = (Vec::new(), String::new());
    let sign = if path.contains('?') { '&' } else { '?' };
    loop {
        let page = stand
            .get(&format!("{path}{sign}limit={limit}{after}"))
            .await;
        let page = page.ok();
        let entries = page[member].as_array().unwrap().clone();
        assert!(entries.len() <= limit, "{}", entries.len());
        pages.push(entries);
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return pages,
        }
    }
}

/// Messages of one item and of hundreds, of people and hidden ones: whatever the length of a page, all together are the whole.
#[tokio::test]
async fn pages_of_messages_are_the_whole_from_the_back() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &[]).await;
    for turn in 0..12 {
        let question = json!({"messages": [{"id": format!("q{turn}"), "role": "user",
            "parts": [{"type": "text", "text": format!("question {turn}")}]}]});
        stand
            .post(&format!("{path}/messages"), &question)
            .await
            .ok();
        let calls = [0, 3, 120][turn % 3];
        let mut items = Vec::new();
        for call in 0..calls {
            let id = format!("c{turn}-{call}");
            items.push(
                json!({"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"}),
            );
            items.push(json!({"type": "function_call_output", "call_id": id, "output": "seen"}));
        }
        items.push(json!({"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": format!("answer {turn}")}]}));
        let answer = json!({"items": items});
        stand.post(&format!("{path}/messages"), &answer).await.ok();
    }
    let whole = stand.get(&format!("{path}/messages")).await.ok();
    let whole = whole["messages"].as_array().unwrap();
    assert!(whole.len() >= 24, "{}", whole.len());
    for limit in [1, 2, 5, 7, 24, 100] {
        let mut pages = all_pages(&stand, &format!("{path}/messages"), "messages", limit).await;
        pages.reverse();
        assert_eq!(&pages.concat(), whole, "{limit}");
    }
    // A page stays one of its path when messages follow.
    let first = stand.get(&format!("{path}/messages?limit=3")).await.ok();
    let after = first["next"].as_str().unwrap();
    let more = json!({"messages": [{"id": "later", "role": "user", "parts": [{"type": "text", "text": "later"}]}]});
    stand.post(&format!("{path}/messages"), &more).await.ok();
    let older = format!("{path}/messages?limit=3&after={after}");
    let older = stand.get(&older).await.ok();
    let end = whole.len() - 3;
    assert_eq!(
        older["messages"].as_array().unwrap()[..],
        whole[end - 3..end]
    );
    let other = talk(&stand, "b", &["Hello"]).await;
    let foreign = stand.get(&format!("{other}/messages?after={after}")).await;
    foreign.refused(400, "bad_cursor");
    let none = stand.get(&format!("{path}/messages?limit=0")).await;
    none.refused(400, "bad_query");
    let empty = talk(&stand, "c", &[]).await;
    let empty = stand.get(&format!("{empty}/messages?limit=5")).await.ok();
    assert_eq!(empty["messages"], json!([]));
}

#[tokio::test]
async fn short_lists_have_pages_too() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["Hello"]).await;
    for n in 0..5 {
        let branch = json!({"name": format!("try-{n}")});
        stand.post(&format!("{path}/branches"), &branch).await.ok();
        let put = |what: &str| stand.request(Method::PUT, &format!("{path}/{what}"));
        stand
            .send(
                put(&format!("checkpoints/cp-{n}"))
                    .header("content-type", "application/json")
                    .body("{}"),
            )
            .await
            .ok();
        let note = json!({"value": "v"});
        stand
            .send(
                put(&format!("memory/note-{n}"))
                    .header("content-type", "application/json")
                    .body(note.to_string()),
            )
            .await
            .ok();
    }
    for (list, count) in [("branches", 6), ("checkpoints", 5), ("memory", 5)] {
        let member = if list == "memory" { "notes" } else { list };
        let whole = stand.get(&format!("{path}/{list}")).await.ok();
        assert_eq!(whole["next"], Value::Null);
        let whole = whole[member].as_array().unwrap();
        assert_eq!(whole.len(), count, "{list}");
        let pages = all_pages(&stand, &format!("{path}/{list}"), member, 2).await;
        assert_eq!(pages.len(), count.div_ceil(2), "{list}");
        assert_eq!(&pages.concat(), whole, "{list}");
    }
    let runs = stand.get("/api/v1/runs?limit=2").await.ok();
    assert_eq!((&runs["runs"], &runs["next"]), (&json!([]), &Value::Null));
    let page = stand.get(&format!("{path}/branches?limit=2")).await.ok();
    let after = page["next"].as_str().unwrap();
    let gone = page["branches"][1]["name"].as_str().unwrap();
    let delete = stand.request(Method::DELETE, &format!("{path}/branches/{gone}"));
    stand.send(delete).await.ok();
    let lost = stand.get(&format!("{path}/branches?after={after}")).await;
    lost.refused(400, "bad_cursor");
}

#[tokio::test]
async fn an_append_is_small_enough_for_others_not_to_wait() {
    let stand = Stand::new().await;
    let path = format!("{}/messages", talk(&stand, "a", &[]).await);
    let many = |count: usize| {
        let text =
            |n: usize| json!({"role": "user", "parts": [{"type": "text", "text": format!("{n}")}]});
        json!({ "messages": (0..count).map(text).collect::<Vec<_>>() })
    };
    stand.post(&path, &many(256)).await.ok();
    let refused = stand.post(&path, &many(257)).await;
    assert!(refused.text.contains("at most 256"), "{}", refused.text);
    refused.refused(422, "limit");
}
