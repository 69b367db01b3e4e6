//! Which conversation a history is of.

use std::sync::Arc;

use contexture_compile::Target;
use contexture_engine::{CompactOptions, Engine, IngestRequest, MatchKind, MessageView, Secrets};
use contexture_ir::{ConversationId, Item, Message, Owner, Role, Transcript};
use contexture_store::{Limits, MemoryStore, PathEnd, ReadRequest};

use super::client::{
    Client, answer, call, conversations, item, model, output, owner, path, request, send, send_to,
    user,
};
use crate::support::{engine, open_file};

#[tokio::test]
async fn a_history_sent_whole_each_time_is_stored_once() {
    let engine = engine();
    let mut client = Client::new(&engine);
    for turn in 0..40 {
        let said = [user(&format!("question {turn}"))];
        let (sent, recorded) = client
            .turn(&said, &[model(&format!("answer {turn}"))])
            .await;
        let expected = if turn == 0 {
            MatchKind::New
        } else {
            MatchKind::Prefix
        };
        assert_eq!(sent.matched, expected);
        assert_eq!((sent.appended.len(), recorded.nodes.len()), (1, 1));
        assert!(!recorded.on_sibling_branch);
    }
    assert_eq!(conversations(&engine, &owner()).await.len(), 1);
    let last = send(&engine, &client.history).await;
    assert_eq!(last.matched, MatchKind::Retry);
    assert_eq!(
        path(&last, PathEnd::Branch(last.chat.branch())).await,
        client.history
    );
}

#[tokio::test]
async fn who_leaves_the_path_begins_anew_unless_it_has_a_name() {
    let engine = engine();
    let mut client = Client::new(&engine);
    for turn in 0..20 {
        let said = [user(&format!("question {turn}"))];
        client
            .turn(&said, &[model(&format!("answer {turn}"))])
            .await;
    }
    let [first] = &conversations(&engine, &owner()).await[..] else {
        panic!("one conversation");
    };
    let mut edited = client.history[..22].to_vec();
    edited.push(user("something else"));
    let named = send_to(&engine, first.as_str(), &edited).await;
    assert_eq!(
        (named.matched, named.chat.id()),
        (MatchKind::Explicit, first)
    );
    assert_eq!(named.appended.len(), 1);
    assert_eq!(named.opened_branch, Some(named.chat.branch()));
    assert_eq!(
        path(&named, PathEnd::Branch(named.chat.branch())).await,
        edited
    );

    edited[22] = user("and that");
    let unnamed = send(&engine, &edited).await;
    assert_eq!(
        (unnamed.matched, unnamed.appended.len()),
        (MatchKind::New, 23)
    );
    assert_ne!(unnamed.chat.id(), first);
}

#[tokio::test]
async fn the_same_again_stores_nothing_and_its_answer_stands_beside() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.turn(&[user("a")], &[model("b")]).await;
    client.turn(&[user("c")], &[model("d")]).await;
    let asked = &client.history[..3];
    let again = send(&engine, asked).await;
    assert_eq!((again.matched, again.appended.len()), (MatchKind::Retry, 0));
    let other = again.record(&answer(&[model("e")])).await.unwrap();
    let same = again.record(&answer(&[model("e")])).await.unwrap();
    assert_eq!((other.response, &other.nodes), (same.response, &same.nodes));
    assert_eq!(conversations(&engine, &owner()).await.len(), 1);
    // Either answer is gone on from.
    for (answered, count) in [("d", 4), ("e", 4)] {
        let mut history = asked.to_vec();
        history.extend([model(answered), user("f")]);
        let next = send(&engine, &history).await;
        assert_eq!((next.matched, next.appended.len()), (MatchKind::Prefix, 1));
        assert_eq!(
            path(&next, PathEnd::Node(next.head.unwrap())).await,
            history
        );
        assert_eq!(history.len(), count + 1);
    }
    // Asked again before there was an answer.
    let waiting = [user("x")];
    let (first, second) = (
        send_to(&engine, "w", &waiting).await,
        send_to(&engine, "w", &waiting).await,
    );
    assert_eq!(
        (first.matched, second.matched),
        (MatchKind::Explicit, MatchKind::Retry)
    );
    assert_eq!(first.head, second.head);
    // Who has no name yet may be anybody.
    let (one, two) = (send(&engine, &waiting).await, send(&engine, &waiting).await);
    assert_ne!(one.chat.id(), two.chat.id());
}

#[tokio::test]
async fn at_once_it_is_one_conversation_where_it_has_a_name() {
    let engine = engine();
    let history = [user("a"), model("b"), user("c")];
    let both =
        futures_util::future::join_all((0..8).map(|_| send_to(&engine, "n", &history))).await;
    assert!(both.iter().all(|sent| sent.head == both[0].head));
    assert_eq!(
        path(&both[7], PathEnd::Branch(both[7].chat.branch())).await,
        history
    );
    let record = engine
        .conversation_info(&owner(), both[0].chat.id())
        .await
        .unwrap();
    assert_eq!((record.nodes, record.branches), (3, 1));
    // Two that go on differently, at once: nobody loses a word.
    both[0].record(&answer(&[model("d")])).await.unwrap();
    let with = |text: &str| [&history[..], &[model("d"), user(text)]].concat();
    let (one, two) = (with("e"), with("f"));
    let sent = [send_to(&engine, "n", &one), send_to(&engine, "n", &two)];
    for (sent, wanted) in futures_util::future::join_all(sent)
        .await
        .iter()
        .zip([&one, &two])
    {
        assert_eq!(path(sent, PathEnd::Node(sent.head.unwrap())).await, *wanted);
    }
}

#[tokio::test]
async fn owners_and_partitions_never_meet() {
    let engine = engine();
    let history = [user("a"), model("b"), user("c")];
    let sent = async |owner: &str, partition: Option<&str>, count: usize| {
        let request = request(&history[..count]);
        let incoming = IngestRequest {
            partition,
            ..IngestRequest::new(&request)
        };
        let owner = Owner::new(owner).unwrap();
        engine.ingest(&owner, incoming).await.unwrap()
    };
    let places = [
        ("ada", None),
        ("bob", None),
        ("ada", Some("1")),
        ("ada", Some("2")),
        ("bob", Some("1")),
    ];
    let mut known = Vec::new();
    for (owner, partition) in places {
        let first = sent(owner, partition, 1).await;
        assert_eq!(first.matched, MatchKind::New);
        first.record(&answer(&history[1..2])).await.unwrap();
        let id = first.chat.id().clone();
        assert!(!known.contains(&(owner, id.clone())));
        known.push((owner, id));
    }
    for ((owner, partition), (_, id)) in places.iter().zip(&known) {
        let next = sent(owner, *partition, 3).await;
        assert_eq!((next.matched, next.chat.id()), (MatchKind::Prefix, id));
    }
    assert_eq!(sent("cyd", None, 3).await.matched, MatchKind::New);
    assert_eq!(sent("ada", Some("3"), 3).await.matched, MatchKind::New);
    // Nothing says who it was.
    let record = engine
        .conversation_info(&Owner::new("ada").unwrap(), &known[2].1)
        .await
        .unwrap();
    assert!(record.metadata["partition"].get().len() > 30);
}

#[tokio::test]
async fn a_date_in_the_instructions_parts_nothing() {
    let engine = engine();
    let mut history = Vec::new();
    for day in 0..3 {
        history.push(user(&format!("question {day}")));
        let text = format!("Today is day {day}.");
        let request = Transcript {
            instructions: vec![Message::text(Role::System, text.as_str())],
            ..request(&history)
        };
        let sent = engine
            .ingest(&owner(), IngestRequest::new(&request))
            .await
            .unwrap();
        assert_eq!(sent.appended.len(), 1);
        let said = sent.chat.resolve().await.unwrap();
        assert_eq!(said.messages.len(), history.len());
        let compiled = sent
            .chat
            .compile(&Target::openai_chat("gpt-4.1"))
            .await
            .unwrap();
        assert!(
            compiled.payload.to_json().contains(&text),
            "{}",
            compiled.payload
        );
        let answered = [model(&format!("answer {day}"))];
        sent.record(&answer(&answered)).await.unwrap();
        history.extend(answered);
    }
    assert_eq!(conversations(&engine, &owner()).await.len(), 1);
}

#[tokio::test]
async fn an_answer_that_was_cut_off_is_gone_on_from() {
    let cut = r#"{"type":"message","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"Hello, I th"}]}"#;
    let before = [user("q0"), model("a0")];
    for answered in [false, true] {
        for copy in [Some("Hello, I th"), Some("Hello"), None, Some("Good bye")] {
            let engine = engine();
            let mut client = Client::new(&engine);
            if answered {
                client.turn(&before[..1], &before[1..]).await;
            }
            let (sent, _) = client.turn(&[user("hi")], &[item(cut)]).await;
            client.history.pop();
            client.history.extend(copy.map(model));
            client.history.push(user("and?"));
            let next = send(&engine, &client.history).await;
            // Without an answer that the client knows, or with another one, it may be anybody.
            let known = match copy {
                Some("Good bye") => false,
                Some(_) => true,
                None => answered,
            };
            let expected = if known {
                MatchKind::Prefix
            } else {
                MatchKind::New
            };
            assert_eq!(next.matched, expected, "{answered} {copy:?}");
            if known {
                assert_eq!((next.chat.id(), next.appended.len()), (sent.chat.id(), 1));
            }
            // The copy counts from then on.
            next.record(&answer(&[model("ok")])).await.unwrap();
            client.history.extend([model("ok"), user("go on")]);
            let last = send(&engine, &client.history).await;
            assert_eq!(
                (last.matched, last.chat.id()),
                (MatchKind::Prefix, next.chat.id())
            );
            assert_eq!(last.appended.len(), 1);
        }
    }
}

#[tokio::test]
async fn an_answer_may_be_gone_on_from_by_its_name() {
    let engine = engine();
    let follow = async |previous: Option<&str>, name: &str, items: &[Item]| {
        let request = request(items);
        let incoming = IngestRequest {
            previous_response: previous,
            ..IngestRequest::new(&request)
        };
        let sent = engine.ingest(&owner(), incoming).await.unwrap();
        let mut answered = answer(&[model(&format!("answer {name}"))]);
        answered.response.as_mut().unwrap().id = Some(name.to_owned());
        sent.record(&answered).await.unwrap();
        sent
    };
    let first = follow(None, "r1", &[user("a")]).await;
    let second = follow(Some("r1"), "r2", &[user("b")]).await;
    assert_eq!(
        (second.matched, second.chat.id()),
        (MatchKind::Explicit, first.chat.id())
    );
    let again = follow(Some("r1"), "r2'", &[user("b")]).await;
    assert_eq!((again.matched, again.appended.len()), (MatchKind::Retry, 0));
    let aside = follow(Some("r1"), "r3", &[user("c")]).await;
    assert_eq!(aside.matched, MatchKind::Explicit);
    assert!(aside.opened_branch.is_some());
    let history = [
        user("a"),
        model("answer r1"),
        user("b"),
        model("answer r2"),
        user("d"),
    ];
    let third = follow(Some("r2"), "r4", &history[4..]).await;
    assert_eq!(third.opened_branch, None);
    assert_eq!(
        path(&third, PathEnd::Node(third.head.unwrap())).await,
        history
    );
    // Who sends all of it is known as well.
    let mut whole = history.to_vec();
    whole.extend([model("answer r4"), user("e")]);
    let sent = send(&engine, &whole).await;
    assert_eq!((sent.matched, sent.appended.len()), (MatchKind::Prefix, 1));
    let unknown = follow(Some("never"), "r9", &[user("b")]).await;
    assert_eq!(unknown.matched, MatchKind::New);
}

#[tokio::test]
async fn the_end_of_a_history_is_laid_along_the_path() {
    let engine = engine();
    let mut history = Vec::new();
    for turn in 0..6 {
        history.push(user(&format!("question {turn}")));
        let window = &history[history.len().saturating_sub(5)..];
        let sent = send_to(&engine, "w", window).await;
        assert_eq!(sent.appended.len(), 1, "turn {turn}");
        assert_eq!(sent.opened_branch, None);
        history.push(model(&format!("answer {turn}")));
        sent.record(&answer(&history[history.len() - 1..]))
            .await
            .unwrap();
    }
    // The first and the last.
    let mut kept = history[..2].to_vec();
    kept.extend_from_slice(&history[8..]);
    kept.push(user("more"));
    let sent = send_to(&engine, "w", &kept).await;
    assert_eq!(
        (sent.appended.len(), sent.opened_branch.as_ref()),
        (1, None)
    );
    history.push(user("more"));
    assert_eq!(
        path(&sent, PathEnd::Branch(sent.chat.branch())).await,
        history
    );
    // What is not on the path leaves it.
    let mut changed = history[9..].to_vec();
    changed[0] = model("what it never said");
    changed.push(user("else"));
    let sent = send_to(&engine, "w", &changed).await;
    assert!(sent.opened_branch.is_some());
    assert_eq!(
        path(&sent, PathEnd::Branch(sent.chat.branch())).await,
        changed
    );
}

#[tokio::test]
async fn outputs_answer_their_calls() {
    let engine = engine();
    let mut client = Client::new(&engine);
    let calls = [model("look"), call("1", "a"), call("2", "b")];
    client.turn(&[user("go")], &calls).await;
    // As they came, which is not the order of the calls.
    let outputs = [output("2", "B"), output("1", "A")];
    let (sent, _) = client.turn(&outputs, &[call("1", "c")]).await;
    assert_eq!((sent.matched, sent.appended.len()), (MatchKind::Prefix, 2));
    let (last, _) = client.turn(&[output("1", "C")], &[model("done")]).await;
    let store = engine.store();
    let request = ReadRequest::whole_path(PathEnd::Branch(last.chat.branch()));
    let nodes = store
        .read_path(&owner(), last.chat.id(), request)
        .await
        .unwrap()
        .nodes;
    let answers: Vec<Option<usize>> = nodes
        .iter()
        .map(|node| nodes.iter().position(|call| node.answers == Some(call.id)))
        .collect();
    assert_eq!(answers[4..], [Some(3), Some(2), None, Some(6), None]);
    // One turn of the agent is one message.
    let messages = last.chat.messages(MessageView::User).await.unwrap();
    assert_eq!(messages.len(), 2);
    // Sent in the order of the calls it is the same.
    let mut history = client.history.clone();
    history.swap(4, 5);
    assert_eq!(send(&engine, &history).await.matched, MatchKind::Retry);
}

#[tokio::test]
async fn history_is_matched_after_restart_and_index_rebuild() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("engine.db");
    let open = || open_file(&path);
    let mut history = Vec::new();
    let mut id = None;
    for turn in 0..4 {
        let engine = open();
        history.push(user(&format!("question {turn}")));
        let sent = send(&engine, &history).await;
        assert_eq!(sent.appended.len(), 1);
        history.push(model(&format!("answer {turn}")));
        sent.record(&answer(&history[history.len() - 1..]))
            .await
            .unwrap();
        id = Some(sent.chat.id().clone());
    }
    let (engine, id) = (open(), id.unwrap());
    let index = engine.store().path_index().unwrap();
    // As after a change of the rule: what was made by the old one is gone.
    index
        .put_paths(&owner(), &id, 999, Vec::new())
        .await
        .unwrap();
    history.push(user("and now?"));
    let lost = send(&engine, &history).await;
    assert_eq!(lost.matched, MatchKind::New);
    engine
        .delete_conversation(&owner(), lost.chat.id())
        .await
        .unwrap();
    assert!(engine.rebuild_paths(&owner(), &id).await.unwrap() >= 8);
    let sent = send(&engine, &history).await;
    assert_eq!((sent.matched, sent.chat.id()), (MatchKind::Prefix, &id));
    assert_eq!(sent.appended.len(), 1);
}

#[tokio::test]
async fn secrets_are_hashed_and_not_stored() {
    let key = "sk-proj-T3BlbkFJ4c8R2mQz7LkW9xYp1NvB6dHs";
    let engine = engine().with_secrets(Secrets::common());
    let mut client = Client::new(&engine);
    client
        .turn(&[user(&format!("use {key}"))], &[model("ok")])
        .await;
    let (sent, _) = client.turn(&[user("now")], &[model(key)]).await;
    assert_eq!((sent.matched, sent.appended.len()), (MatchKind::Prefix, 1));
    let (sent, _) = client.turn(&[user("then")], &[model("ok")]).await;
    assert_eq!(sent.matched, MatchKind::Prefix);
    let stored = format!(
        "{:?}",
        path(&sent, PathEnd::Branch(sent.chat.branch())).await
    );
    assert!(!stored.contains(key) && stored.contains("[redacted: API key]"));
}

#[tokio::test]
async fn what_the_engine_put_behind_an_answer_is_no_parting() {
    let engine = engine();
    let mut client = Client::new(&engine);
    for turn in 0..6 {
        let long = "a word and another ".repeat(200);
        let said = [user(&format!("question {turn} {long}"))];
        client
            .turn(&said, &[model(&format!("answer {turn} {long}"))])
            .await;
    }
    let chat = send(&engine, &client.history).await.chat;
    let options = CompactOptions::default();
    chat.compact(&Target::openai_chat("gpt-4.1"), &options)
        .await
        .unwrap();
    client.history.push(user("go on"));
    let sent = send(&engine, &client.history).await;
    assert_eq!(
        (sent.matched, sent.chat.id()),
        (MatchKind::Prefix, chat.id())
    );
    assert_eq!(
        (sent.appended.len(), sent.opened_branch.as_ref()),
        (1, None)
    );
}

#[tokio::test]
async fn who_asks_again_goes_on_behind_what_the_engine_put_there() {
    let engine = engine();
    let mut client = Client::new(&engine);
    for turn in 0..6 {
        let long = format!("turn {turn} ") + &"a word and another ".repeat(200);
        client.turn(&[user(&long)], &[model(&long)]).await;
    }
    client.history.push(user("go on"));
    let first = send(&engine, &client.history).await;
    let (target, options) = (Target::openai_chat("gpt-4.1"), CompactOptions::default());
    let compacted = first.chat.compact(&target, &options).await.unwrap();
    let name = first.chat.id().as_str();
    for again in [
        send(&engine, &client.history).await,
        send_to(&engine, name, &client.history).await,
    ] {
        assert_eq!((again.matched, again.appended.len()), (MatchKind::Retry, 0));
        assert_eq!(
            (again.chat.id(), again.opened_branch.as_ref()),
            (first.chat.id(), None)
        );
        assert_eq!(again.head, compacted.head);
    }
    // Once it is answered, another answer stands beside.
    let again = send(&engine, &client.history).await;
    again.record(&answer(&[model("yes")])).await.unwrap();
    let beside = send(&engine, &client.history).await;
    assert_eq!(
        (beside.matched, beside.head),
        (MatchKind::Retry, first.head)
    );
    assert!(beside.opened_branch.is_some());
}

#[tokio::test]
async fn a_long_history_is_stored_once() {
    let engine = engine();
    let mut history: Vec<Item> = (0..10_000)
        .map(|n| {
            if n % 2 == 0 {
                user(&format!("q{n}"))
            } else {
                model(&format!("a{n}"))
            }
        })
        .collect();
    history.push(user("now"));
    let sent = send(&engine, &history).await;
    assert_eq!(sent.appended.len(), 10_001);
    sent.record(&answer(&[model("yes")])).await.unwrap();
    history.extend([model("yes"), user("and")]);
    let next = send(&engine, &history).await;
    assert_eq!((next.matched, next.appended.len()), (MatchKind::Prefix, 1));
    assert_eq!(
        path(&next, PathEnd::Branch(next.chat.branch())).await.len(),
        10_003
    );
}

#[tokio::test]
async fn outputs_with_client_call_ids_get_the_stored_call_ids() {
    let engine = engine();
    let first = send(&engine, &[user("q")]).await;
    let calls = [call("a", "1"), call("b", "2")];
    first.record(&answer(&calls)).await.unwrap();
    let mut history = vec![user("q"), call("x", "1"), call("y", "2")];
    history.extend([output("y", "two"), output("x", "one")]);
    let second = send(&engine, &history).await;
    assert_eq!(
        (second.matched, second.appended.len()),
        (MatchKind::Prefix, 2)
    );
    // The model says an id again, and the client makes it one of its own.
    second.record(&answer(&[call("a", "3")])).await.unwrap();
    history.extend([call("z", "3"), output("z", "three")]);
    let third = send(&engine, &history).await;
    assert_eq!(
        (third.matched, third.appended.len()),
        (MatchKind::Prefix, 1)
    );
    let stored = path(&third, PathEnd::Branch(third.chat.branch())).await;
    let outputs = [output("b", "two"), output("a", "one")];
    let expected = [&[user("q")][..], &calls, &outputs].concat();
    assert_eq!(stored[..5], expected);
    assert_eq!(stored[5..], [call("a", "3"), output("a", "three")]);
    // None of them is missing in the next call.
    let call = third.chat.compile(&Target::openai_chat("gpt-4o")).await;
    let payload = call.unwrap().payload.to_json();
    for said in ["one", "two", "three"] {
        assert!(payload.contains(&format!("\"{said}\"")), "{payload}");
    }
}

#[tokio::test]
async fn an_output_that_answers_an_older_step_keeps_its_id() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.turn(&[user("q")], &[call("a", "1")]).await;
    client.turn(&[user("never mind")], &[call("b", "2")]).await;
    client
        .history
        .extend([output("a", "late"), output("b", "two")]);
    let sent = send(&engine, &client.history).await;
    let stored = path(&sent, PathEnd::Branch(sent.chat.branch())).await;
    assert_eq!(stored, client.history);
}

#[tokio::test]
async fn of_what_cannot_be_stored_no_conversation_stays() {
    let limits = Limits {
        item_bytes: 1 << 10,
        append_items: 2,
        ..Limits::default()
    };
    let engine = Engine::new(Arc::new(MemoryStore::with_limits(limits)));
    // The first parts of it could be stored.
    let mut history: Vec<Item> = (0..6).map(|at| user(&format!("question {at}"))).collect();
    history.push(user(&"long ".repeat(1_000)));
    let long = request(&history);
    for _ in 0..2 {
        let failed = engine.ingest(&owner(), IngestRequest::new(&long)).await;
        assert!(failed.unwrap_err().to_string().contains("item_bytes"));
    }
    assert_eq!(conversations(&engine, &owner()).await, []);
    let named = ConversationId::new("mine").unwrap();
    let incoming = IngestRequest {
        conversation: Some(&named),
        ..IngestRequest::new(&long)
    };
    assert!(engine.ingest(&owner(), incoming).await.is_err());
    assert_eq!(conversations(&engine, &owner()).await, [named]);
    history.pop();
    assert_eq!(send_to(&engine, "mine", &history).await.appended.len(), 0);
}
