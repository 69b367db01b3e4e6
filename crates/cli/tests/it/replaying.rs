//! Past requests, compiled again.

use contexture::Target;
use contexture::ir::user;
use serde_json::json;

use crate::command::Place;

/// A database in which a program has kept two answers of a conversation `chat`; their requests.
fn answered(place: &Place) -> Vec<String> {
    let path = place.database();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let engine = contexture::open(path.to_str().unwrap()).await.unwrap();
        let chat = engine.conversation("chat").open().await.unwrap();
        let mut sent = Vec::new();
        for at in 0..2 {
            chat.save([user(format!("question {at}").as_str())])
                .await
                .unwrap();
            let target = Target::openai_chat("gpt-4o").window(8_000);
            let call = chat.compile(&target).await.unwrap();
            let message = json!({"role": "assistant", "content": format!("answer {at}")});
            let answer = json!({
                "id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            });
            chat.record(&call, &answer.to_string()).await.unwrap();
            sent.push(call.payload.to_json());
        }
        sent
    })
}

#[test]
fn a_request_is_written_as_it_was_sent() {
    let place = Place::new();
    let sent = answered(&place);
    let last = place.run("replay chat last");
    assert_eq!((last.code, last.out.trim_end()), (0, sent[1].as_str()));
    assert_eq!(last.err, format!("equal: {} bytes\n", sent[1].len()));

    let all = place.json("replay chat --all --json");
    let all = all.as_array().unwrap().clone();
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|one| one["outcome"] == "equal"), "{all:?}");
    let first = all[0]["response"].as_str().unwrap();
    let shown = place.json(&format!("replay chat {} --json", &first[..8]));
    assert_eq!(shown["payload"], sent[0].as_str());
    let lines = place.ok("replay chat --all");
    assert!(lines.lines().all(|line| line.contains("  equal: ")));
    assert_eq!(lines.lines().count(), 2);
}

#[test]
fn what_is_not_there_is_said() {
    let place = Place::new();
    answered(&place);
    assert_eq!(place.run("replay chat 0000").code, 3);
    assert_eq!(place.run("replay nobody last").code, 3);
    assert_eq!(place.run("replay chat").code, 2);
}
