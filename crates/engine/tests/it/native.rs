//! Compactions that the provider made: recorded answers, kept as what stands for the path of their calls.

use contexture_compile::Target;
use contexture_engine::{Conversation, EngineEventKind, Recorded};
use contexture_ir::{NodeId, user};
use contexture_sessions::SessionFormat;
use contexture_testdata::{Exchange, ai_sdk, exchanges};
use contexture_wire::{Format, lift};
use serde_json::{Value, json};

use crate::support::{chat, engine};

/// A recorded call, made again here: its history stored and compiled, its answer recorded.
async fn made_again(chat: &Conversation, format: Format, target: &Target) -> (Recorded, Value) {
    let found: Vec<Exchange> = exchanges(format.as_str())
        .into_iter()
        .filter(|one| {
            let text = one.response.as_ref().map_or("", |raw| raw.get());
            let answer: Value = serde_json::from_str(text).unwrap_or_default();
            let mut items = ["content", "output"].map(|list| answer[list].as_array().cloned());
            let mut items = items.iter_mut().flatten().flatten();
            items.any(|item| item["type"] == "compaction")
        })
        .collect();
    assert_eq!(found.len(), 1, "recordings of {format} with a compaction");
    let exchange = &found[0];
    let request = lift(format, exchange.request.get()).unwrap();
    let mut draft = chat.draft();
    for item in request.transcript.items {
        draft.push_item(item);
    }
    draft.commit().await.unwrap();
    let call = chat.compile(target).await.unwrap();
    let answer = exchange.response.as_ref().unwrap().get();
    let recorded = chat.record(&call, answer).await.unwrap();
    // Twice is once, covers and all.
    assert_eq!(
        chat.record(&call, answer).await.unwrap().nodes,
        recorded.nodes
    );
    (recorded, serde_json::from_str(answer).unwrap())
}

fn anthropic() -> Target {
    Target::anthropic("claude-sonnet-4-6").window(200_000)
}

fn openai() -> Target {
    Target::openai_responses("gpt-4.1").window(200_000)
}

async fn payload(chat: &Conversation, target: &Target) -> Value {
    let call = chat.compile(target).await.unwrap();
    serde_json::from_str(&call.payload.to_json()).unwrap()
}

async fn in_effect(chat: &Conversation) -> Vec<NodeId> {
    let covers = chat.compactions().await.unwrap();
    covers.iter().map(|cover| cover.compaction).collect()
}

/// The blocks or items of a type in a list.
fn of_type<'v>(list: &'v Value, kind: &str) -> Vec<&'v Value> {
    let all = list.as_array().unwrap().iter();
    all.filter(|one| one["type"] == kind).collect()
}

#[tokio::test]
async fn anthropic_compaction_returns_verbatim_and_others_get_text() {
    let engine = engine();
    let events = engine.subscribe();
    let chat = engine.conversation("c").open().await.unwrap();
    let (recorded, answer) = made_again(&chat, Format::Anthropic, &anthropic()).await;
    let block = &answer["content"][0];
    assert_eq!(block["type"], "compaction");
    assert_eq!(in_effect(&chat).await, [recorded.nodes[0]]);
    let told = std::iter::from_fn(|| events.try_next()).filter(|event| {
        let compaction = recorded.nodes[0];
        event.kind == EngineEventKind::Compacted { compaction }
    });
    assert_eq!(told.count(), 1);

    chat.save([user("And now goodbye.")]).await.unwrap();
    let own = payload(&chat, &anthropic()).await;
    let said = own.to_string();
    assert!(
        !said.contains("Now say hello.\""),
        "what it stands for is gone"
    );
    let turns = own["messages"].as_array().unwrap();
    let compacted: Vec<&Value> = turns
        .iter()
        .flat_map(|turn| of_type(&turn["content"], "compaction"))
        .collect();
    assert_eq!(compacted, [block]);

    let others = payload(&chat, &openai()).await.to_string();
    let text = json!(block["content"]).to_string();
    assert!(others.contains(text.trim_matches('"')), "{others}");
    assert!(others.contains("And now goodbye.") && others.len() < 10_000);
}

#[tokio::test]
async fn openai_compaction_returns_verbatim_and_others_get_manifest() {
    let chat = chat().await;
    let (recorded, answer) = made_again(&chat, Format::OpenAiResponses, &openai()).await;
    let sealed = &of_type(&answer["output"], "compaction")[0];
    assert_eq!(in_effect(&chat).await, [recorded.nodes[1]]);

    chat.save([user("What is 2+2?")]).await.unwrap();
    let own = payload(&chat, &openai()).await;
    assert_eq!(of_type(&own["input"], "compaction"), [*sealed]);
    assert!(!own.to_string().contains("red fox named Lira"));
    // The same answer's own words are not taken for summed up.
    let words = answer["output"][0]["content"][0]["text"].as_str().unwrap();
    let start = json!(&words[..60]).to_string();
    assert!(own.to_string().contains(start.trim_matches('"')));

    // Nor does a document say what it covers, which is ours to know.
    let exported = SessionFormat::Wire(Format::OpenAiResponses);
    let exported = chat.export(exported).await.unwrap();
    let exported: Value = serde_json::from_str(&exported).unwrap();
    let exported = json!({"model": "gpt-4.1", "input": exported});
    let findings =
        contexture_testdata::request_validator("openai-responses").validation_errors(&exported);
    assert!(findings.is_empty(), "{findings:?}");
    assert_eq!(of_type(&exported["input"], "compaction"), [*sealed]);

    let others = payload(&chat, &anthropic()).await.to_string();
    assert!(!others.contains("encrypted_content") && !others.contains("red fox named Lira"));
    for asked in ["about a fox exploring a forest", "a bear in a cave"] {
        assert!(
            others.contains(asked),
            "the manifest tells of {asked}: {others}"
        );
    }
}

#[tokio::test]
async fn taken_back_the_originals_are_sent_to_everybody() {
    for (format, own, other) in [
        (Format::Anthropic, anthropic(), openai()),
        (Format::OpenAiResponses, openai(), anthropic()),
    ] {
        let chat = chat().await;
        made_again(&chat, format, &own).await;
        let compaction = in_effect(&chat).await[0];
        chat.uncompact(compaction).await.unwrap();
        assert!(in_effect(&chat).await.is_empty());
        for target in [own, other] {
            let said = payload(&chat, &target).await.to_string();
            assert!(!said.contains(r#""type":"compaction""#), "{format}");
            let original = match format {
                Format::Anthropic => "Now say hello.",
                _ => "red fox named Lira",
            };
            assert!(said.contains(original), "{format}");
        }
    }
}

#[tokio::test]
async fn an_answer_on_a_branch_of_its_own_is_covered_there_alone() {
    let chat = chat().await;
    chat.save([user("a long story")]).await.unwrap();
    let call = chat.compile(&anthropic()).await.unwrap();
    chat.save([user("wait")]).await.unwrap();
    let answer = ai_sdk("anthropic")
        .into_iter()
        .find(|one| one.file == "anthropic-compaction.1.json");
    let answer = answer.unwrap().response.unwrap();
    let recorded = chat.record(&call, answer.get()).await.unwrap();
    assert!(recorded.on_sibling_branch);
    assert!(in_effect(&chat).await.is_empty());
    chat.switch_branch(recorded.branch.as_str()).await.unwrap();
    assert_eq!(in_effect(&chat).await, [recorded.nodes[0]]);
}

/// An answer of Anthropic's with this compaction before a word.
fn answered(compaction: Value) -> String {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6",
        "content": [compaction, {"type": "text", "text": "Hello."}],
        "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 12, "output_tokens": 3},
    })
    .to_string()
}

#[tokio::test]
async fn failed_compaction_covers_nothing_and_encrypted_stays_as_is() {
    for (block, stands) in [
        (json!({"type": "compaction", "content": null}), false),
        (
            json!({"type": "compaction", "encrypted_content": "c2VhbGVk"}),
            true,
        ),
    ] {
        let chat = chat().await;
        chat.save([user("Order W8342 is lost.")]).await.unwrap();
        let call = chat.compile(&anthropic()).await.unwrap();
        chat.record(&call, &answered(block.clone())).await.unwrap();
        assert_eq!(in_effect(&chat).await.len(), usize::from(stands));
        chat.save([user("And?")]).await.unwrap();
        let own = payload(&chat, &anthropic()).await;
        let turns = own["messages"].as_array().unwrap().iter();
        let sent: Vec<&Value> = turns
            .flat_map(|turn| of_type(&turn["content"], "compaction"))
            .collect();
        assert_eq!(sent, [&block]);
        assert_eq!(own.to_string().contains("W8342"), !stands);
        assert!(
            payload(&chat, &openai())
                .await
                .to_string()
                .contains("W8342")
        );
    }
}
