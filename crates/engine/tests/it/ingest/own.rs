//! Calls that are answered on the way: models see them, clients do not, and histories are found all the same.

use contexture_compile::{Target, read_tool};
use contexture_engine::{
    AnswerOptions, CompactOptions, Engine, Ingested, InterceptedCall, MatchKind, MessageView,
    Recorded,
};
use contexture_ir::{FunctionCallOutput, Item};
use contexture_store::PathEnd;

use super::client::{
    answer, call, conversations, item, model, output, owner, path, request, send, send_to, user,
};
use crate::support::engine;

const OWN: &str = "read_context";

fn own_call(id: &str) -> Item {
    item(&format!(
        r#"{{"type":"function_call","call_id":"{id}","name":"{OWN}","arguments":"{{\"query\":\"x\"}}"}}"#
    ))
}

fn given(id: &str, text: &str) -> FunctionCallOutput {
    let Item::FunctionCallOutput(output) = output(id, text) else {
        unreachable!("an output");
    };
    output
}

fn target() -> Target {
    Target::anthropic("claude-sonnet-4-5").add_tools([read_tool()])
}

/// Stores an answer whose calls of our tool are answered with a text.
async fn answered(sent: &mut Ingested, items: &[Item]) -> Recorded {
    let compiled = sent.chat.compile(&target()).await.unwrap();
    let own = items.iter().enumerate().filter_map(|(place, item)| {
        let Item::FunctionCall(call) = item else {
            return None;
        };
        let output = given(&call.call_id, "what was looked for");
        (call.name == OWN).then_some(InterceptedCall {
            position: place,
            output: Some(output),
        })
    });
    let own: Vec<InterceptedCall> = own.collect();
    let said = answer(items);
    let options = AnswerOptions {
        call: Some(&compiled),
        intercepted: &own,
        ..AnswerOptions::default()
    };
    sent.record_with(&said, options).await.unwrap()
}

/// Makes the index anew, from nothing.
async fn rebuilt(engine: &Engine, sent: &Ingested) {
    let index = engine.store().path_index().unwrap();
    let id = sent.chat.id();
    index
        .put_paths(&owner(), id, 999, Vec::new())
        .await
        .unwrap();
    assert!(engine.rebuild_paths(&owner(), id).await.unwrap() > 0);
}

#[tokio::test]
async fn a_client_goes_on_with_what_it_saw() {
    for texts in [["Let me see. ", "It is x."], ["", "It is x."]] {
        for rebuild in [false, true] {
            let engine = engine();
            let mut history = vec![user("hello"), model("hi"), user("what is it?")];
            let mut sent = send(&engine, &history).await;
            let mut stored = history.clone();
            for (round, text) in texts.iter().enumerate() {
                let mut items: Vec<Item> = Vec::new();
                if !text.is_empty() {
                    items.push(model(text));
                }
                if round == 0 {
                    items.push(own_call("r1"));
                }
                let head = answered(&mut sent, &items).await.head;
                assert_eq!(sent.head, head);
                stored.append(&mut items);
                if round == 0 {
                    stored.push(output("r1", "what was looked for"));
                }
            }
            // One text, as the client put it together.
            history.extend([model(&texts.concat()), user("and then?")]);
            if rebuild {
                rebuilt(&engine, &sent).await;
            }
            let next = send(&engine, &history).await;
            assert_eq!(
                (next.matched, next.chat.id(), next.appended.len()),
                (MatchKind::Prefix, sent.chat.id(), 1),
                "{texts:?} {rebuild}"
            );
            assert_eq!(next.opened_branch, None);
            stored.push(user("and then?"));
            assert_eq!(
                path(&next, PathEnd::Branch(next.chat.branch())).await,
                stored
            );
            assert_eq!(conversations(&engine, &owner()).await.len(), 1);
            // The model sees its calls; people do not.
            let compiled = next.chat.compile(&target()).await.unwrap();
            let payload = compiled.payload.to_json();
            assert!(payload.contains("\"tool_use\"") && payload.contains("what was looked for"));
            let shown = next.chat.messages(MessageView::User).await.unwrap();
            assert!(!format!("{shown:?}").contains("looked for"), "{shown:?}");
        }
    }
}

#[tokio::test]
async fn calls_of_both_stand_together_and_the_client_answers_its_own() {
    for rebuild in [false, true] {
        let engine = engine();
        let mut history = vec![user("what is it?")];
        let mut sent = send(&engine, &history).await;
        let said = [model("I look."), own_call("r1"), call("c1", "here")];
        answered(&mut sent, &said).await;
        history.extend([
            model("I look."),
            call("c1", "here"),
            output("c1", "a thing"),
        ]);
        if rebuild {
            rebuilt(&engine, &sent).await;
        }
        let next = send(&engine, &history).await;
        assert_eq!((next.matched, next.appended.len()), (MatchKind::Prefix, 1));
        let expected = [
            &[user("what is it?")][..],
            &said,
            &[output("r1", "what was looked for"), output("c1", "a thing")],
        ];
        assert_eq!(
            path(&next, PathEnd::Branch(next.chat.branch())).await,
            expected.concat()
        );
        let nodes = next.chat.messages(MessageView::Model).await.unwrap();
        assert_eq!(nodes.len(), 2, "one question, one answer: {nodes:?}");
        next.chat.compile(&target()).await.unwrap();
    }
}

#[tokio::test]
async fn who_got_nothing_asks_again_and_is_answered_where_it_was() {
    for before in [&[][..], &[user("hello"), model("hi")]] {
        for rebuild in [false, true] {
            let engine = engine();
            let history = [before, &[user("what is it?")]].concat();
            let mut sent = send(&engine, &history).await;
            answered(&mut sent, &[own_call("r1")]).await;
            if rebuild {
                rebuilt(&engine, &sent).await;
            }
            let again = send(&engine, &history).await;
            assert_eq!(
                (again.matched, again.chat.id(), again.opened_branch.as_ref()),
                (MatchKind::Retry, sent.chat.id(), None)
            );
            assert_eq!((again.head, again.appended.len()), (sent.head, 0));
            again.record(&answer(&[model("x")])).await.unwrap();
            let next = [&history[..], &[model("x"), user("and then?")]].concat();
            let next = send(&engine, &next).await;
            assert_eq!((next.matched, next.appended.len()), (MatchKind::Prefix, 1));
            let record = engine
                .conversation_info(&owner(), next.chat.id())
                .await
                .unwrap();
            assert_eq!(record.branches, 1);
        }
    }
}

#[tokio::test]
async fn an_answer_cut_off_behind_such_a_call_is_gone_on_from() {
    let cut = |text: &str| {
        item(&format!(
            r#"{{"type":"message","role":"assistant","status":"incomplete","content":[{{"type":"output_text","text":"{text}"}}]}}"#
        ))
    };
    let copies: [&[Item]; 3] = [&[], &[model("Let me see. It is")], &[model("Let me see. ")]];
    for copy in copies {
        for rebuild in [false, true] {
            let engine = engine();
            let history = vec![user("hello"), model("hi"), user("what is it?")];
            let first = send(&engine, &history[..1]).await;
            first.record(&answer(&[model("hi")])).await.unwrap();
            let mut sent = send(&engine, &history).await;
            answered(&mut sent, &[model("Let me see. "), own_call("r1")]).await;
            answered(&mut sent, &[cut("It is an")]).await;
            if rebuild {
                rebuilt(&engine, &sent).await;
            }
            let next = [&history[..], copy, &[user("go on")]].concat();
            let next = send(&engine, &next).await;
            assert_eq!(
                (next.matched, next.chat.id(), next.appended.len()),
                (MatchKind::Prefix, sent.chat.id(), 1),
                "{copy:?} {rebuild}"
            );
            assert_eq!(next.opened_branch, None);
        }
    }
}

#[tokio::test]
async fn a_call_that_did_not_come_whole_has_no_output() {
    let engine = engine();
    let history = [user("what is it?")];
    let mut sent = send_to(&engine, "n", &history).await;
    let compiled = sent.chat.compile(&target()).await.unwrap();
    let half = item(&format!(
        r#"{{"type":"function_call","call_id":"r1","name":"{OWN}","arguments":"{{\"qu","status":"incomplete"}}"#
    ));
    let own = [InterceptedCall {
        position: 0,
        output: None,
    }];
    let said = answer(&[half]);
    let options = AnswerOptions {
        call: Some(&compiled),
        intercepted: &own,
        ..AnswerOptions::default()
    };
    sent.record_with(&said, options).await.unwrap();
    let again = send_to(&engine, "n", &history).await;
    assert_eq!(
        (again.matched, again.opened_branch),
        (MatchKind::Retry, None)
    );
    let compiled = again.chat.compile(&target()).await.unwrap();
    assert!(!compiled.payload.is_empty());
}

#[tokio::test]
async fn a_window_is_laid_along_what_clients_saw() {
    let engine = engine();
    let mut sent = send_to(&engine, "w", &[user("one"), model("1"), user("two")]).await;
    answered(&mut sent, &[own_call("r1")]).await;
    answered(&mut sent, &[model("2")]).await;
    let window = [user("two"), model("2"), user("three")];
    let next = send_to(&engine, "w", &window).await;
    assert_eq!(
        (next.matched, next.appended.len()),
        (MatchKind::Explicit, 1)
    );
    assert_eq!(next.opened_branch, None);
}

#[tokio::test]
async fn a_retry_behind_a_compaction_goes_on_where_it_was() {
    for name in [None, Some("n")] {
        let engine = engine();
        let mut history = Vec::new();
        for turn in 0..6 {
            let long = "a word and another ".repeat(200);
            history.push(user(&format!("question {turn} {long}")));
            let sent = match name {
                Some(name) => send_to(&engine, name, &history).await,
                None => send(&engine, &history).await,
            };
            if turn < 5 {
                let said = model(&format!("answer {turn} {long}"));
                let said = request(&[said]);
                sent.record(&said).await.unwrap();
                history.extend(said.items);
                continue;
            }
            let options = CompactOptions::default();
            let target = Target::openai_chat("gpt-4.1");
            sent.chat.compact(&target, &options).await.unwrap();
            let again = match name {
                Some(name) => send_to(&engine, name, &history).await,
                None => send(&engine, &history).await,
            };
            assert_eq!(
                (again.matched, again.opened_branch),
                (MatchKind::Retry, None)
            );
            assert_ne!(again.head, sent.head);
        }
    }
}
