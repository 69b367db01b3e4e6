//! Requests that come before the answer they hold is recorded.

use std::time::Duration;

use contexture_engine::{Engine, Exchange, Ingested, MatchKind};
use contexture_ir::{Item, Transcript};
use futures_util::future::join;

use super::client::{Named, answer, call, conversations, ingest, model, output, owner, user};

/// A client asks; its answer is delivered; it asks on; only then the answer is recorded.
async fn asks_on(
    engine: &Engine,
    (first, answered, next): (&[Item], &Transcript, &[Item]),
    (one, two): (Named<'_>, Named<'_>),
) -> (Ingested, Ingested) {
    let exchange = engine.begin_exchange(&owner());
    let asked = ingest(engine, &exchange, first, one).await.unwrap();
    drop(exchange.delivery());
    let later = engine.begin_exchange(&owner());
    let record = async {
        // A paused clock moves only when nothing else can: the later request waits by now.
        tokio::time::sleep(Duration::from_millis(7)).await;
        asked.record(answered).await.unwrap();
        drop(exchange);
    };
    let (sent, ()) = join(ingest(engine, &later, next, two), record).await;
    (asked, sent.unwrap())
}

#[tokio::test(start_paused = true)]
async fn request_waits_for_the_answer_it_holds() {
    let first = [user("list it")];
    let answered = answer(&[call("c1", "/")]);
    let next = [user("list it"), call("c1", "/"), output("c1", "a b")];
    let named = Named {
        conversation: Some("n"),
        ..Named::default()
    };
    let user_named = Named {
        partition: Some("p"),
        ..Named::default()
    };
    for (one, two) in [
        (Named::default(), Named::default()),
        (named, named),
        (user_named, user_named),
        (user_named, Named { ..named }),
    ] {
        let engine = Engine::in_memory();
        let (asked, sent) = asks_on(&engine, (&first, &answered, &next), (one, two)).await;
        // Who names a conversation that another request began without a name does not mean that one.
        if one.conversation == two.conversation {
            assert_eq!(sent.chat.id(), asked.chat.id());
            assert_eq!((sent.appended.len(), sent.opened_branch), (1, None));
            assert_eq!(conversations(&engine, &owner()).await.len(), 1);
        }
        assert!(!sent.raced);
        let waits = one.conversation == two.conversation;
        assert_eq!(sent.waited >= Duration::from_millis(7), waits);
    }
}

#[tokio::test(start_paused = true)]
async fn words_put_into_the_models_mouth_are_no_answer() {
    let first = [user("list it"), model("Here: ")];
    let answered = answer(&[model("a b")]);
    let next = [user("list it"), model("Here: a b"), user("thanks")];
    let engine = Engine::in_memory();
    let unnamed = (Named::default(), Named::default());
    let (asked, sent) = asks_on(&engine, (&first, &answered, &next), unnamed).await;
    assert_eq!(sent.chat.id(), asked.chat.id());
    assert!(sent.waited > Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn request_waits_for_the_answer_it_names() {
    let mut answered = answer(&[model("a b")]);
    answered.response.as_mut().unwrap().id = Some("resp_1".to_owned());
    let next = Named {
        previous: Some("resp_1"),
        ..Named::default()
    };
    let engine = Engine::in_memory();
    let texts = ([user("list it")], [user("thanks")]);
    let (asked, sent) = asks_on(
        &engine,
        (&texts.0, &answered, &texts.1),
        (Named::default(), next),
    )
    .await;
    assert_eq!(sent.chat.id(), asked.chat.id());
    assert_eq!(sent.matched, MatchKind::Explicit);
    assert_eq!(sent.opened_branch, None);
}

#[tokio::test(start_paused = true)]
async fn window_of_a_named_conversation_waits_for_its_answers() {
    let named = Named {
        conversation: Some("n"),
        ..Named::default()
    };
    let engine = Engine::in_memory();
    // Of its history the client keeps the last message only.
    let texts = (
        [user("one"), model("1"), user("list it")],
        [model("a b"), user("thanks")],
    );
    let answered = answer(&[model("a b")]);
    let (asked, sent) = asks_on(&engine, (&texts.0, &answered, &texts.1), (named, named)).await;
    assert_eq!((sent.appended.len(), sent.opened_branch), (1, None));
    let owner = owner();
    let record = engine.conversation_info(&owner, asked.chat.id());
    assert_eq!(record.await.unwrap().branches, 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_model_that_still_answers() {
    let engine = Engine::in_memory();
    let question = [user("hello")];
    let history = [user("hello"), model("one"), user("and?")];
    // One agent is answered, another with the same first words is not yet.
    let answered = engine.begin_exchange(&owner());
    let asked = ingest(&engine, &answered, &question, Named::default()).await;
    asked
        .unwrap()
        .record(&answer(&history[1..2]))
        .await
        .unwrap();
    drop(answered);
    let twin = engine.begin_exchange(&owner());
    ingest(&engine, &twin, &question, Named::default())
        .await
        .unwrap();
    let unread = engine.begin_exchange(&owner());
    for items in [&history[..], &question[..]] {
        let exchange = engine.begin_exchange(&owner());
        let sent = ingest(&engine, &exchange, items, Named::default()).await;
        assert_eq!(sent.unwrap().waited, Duration::ZERO);
    }
    // Nor for a stranger's answer that is delivered, nor for who came later.
    drop(unread);
    let stranger = engine.begin_exchange(&owner());
    ingest(
        &engine,
        &stranger,
        &[user("something else")],
        Named::default(),
    )
    .await
    .unwrap();
    drop(stranger.delivery());
    let exchange = engine.begin_exchange(&owner());
    let later = engine.begin_exchange(&owner());
    drop(later.delivery());
    let sent = ingest(&engine, &exchange, &history, Named::default()).await;
    assert_eq!(sent.unwrap().waited, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_unread_request_is_waited_for_until_it_is_read() {
    let engine = Engine::in_memory();
    let history = [user("hello"), model("one"), user("and?")];
    let unread = engine.begin_exchange(&owner());
    drop(unread.delivery());
    let exchange = engine.begin_exchange(&owner());
    let read = async {
        tokio::time::sleep(Duration::from_millis(7)).await;
        ingest(
            &engine,
            &unread,
            &[user("something else")],
            Named::default(),
        )
        .await
    };
    let sent = ingest(&engine, &exchange, &history, Named::default());
    let (sent, read) = join(sent, read).await;
    read.unwrap();
    let waited = sent.unwrap().waited;
    assert!((7..20).contains(&waited.as_millis()), "{waited:?}");
    // A first question has nothing to wait for.
    let unread = engine.begin_exchange(&owner());
    drop(unread.delivery());
    let exchange = engine.begin_exchange(&owner());
    let sent = ingest(&engine, &exchange, &[user("new")], Named::default()).await;
    assert_eq!(sent.unwrap().waited, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn wait_is_bounded_and_its_end_is_told() {
    let engine = Engine::in_memory();
    let history = [user("hello"), model("one"), user("and?")];
    let stuck = engine.begin_exchange(&owner());
    ingest(&engine, &stuck, &history[..1], Named::default())
        .await
        .unwrap();
    drop(stuck.delivery());
    let exchange = engine.begin_exchange(&owner());
    let sent = ingest(&engine, &exchange, &history, Named::default());
    let sent = sent.await.unwrap();
    assert!(sent.raced);
    assert_eq!(sent.waited.as_secs(), 2);
    assert_eq!(sent.matched, MatchKind::New);
}

#[tokio::test(start_paused = true)]
async fn a_loop_at_full_speed_records_in_order() {
    let engine = Engine::in_memory();
    // All requests of a loop are there before the first is recorded: each waits for the one before it.
    let mut history = vec![user("go")];
    let mut rounds = Vec::new();
    for round in 0..30 {
        let answered = [call(&format!("c{round}"), "/")];
        rounds.push((history.clone(), answer(&answered)));
        history.extend(answered);
        history.push(output(&format!("c{round}"), &format!("output {round}")));
    }
    let exchanges: Vec<Exchange> = rounds
        .iter()
        .map(|_| {
            let exchange = engine.begin_exchange(&owner());
            drop(exchange.delivery());
            exchange
        })
        .collect();
    let work = rounds.iter().zip(exchanges).rev();
    let work = work.map(|((items, answered), exchange)| {
        let engine = &engine;
        async move {
            let sent = ingest(engine, &exchange, items, Named::default()).await;
            let sent = sent.unwrap();
            // Each answer takes long; a row of them takes longer than anybody waits for one.
            tokio::time::sleep(Duration::from_millis(500)).await;
            sent.record(answered).await.unwrap();
            drop(exchange);
            (sent.chat.id().clone(), sent.raced)
        }
    });
    let done = futures_util::future::join_all(work).await;
    assert!(done.iter().all(|one| *one == (done[0].0.clone(), false)));
    let owner = owner();
    let record = engine.conversation_info(&owner, &done[0].0);
    let record = record.await.unwrap();
    assert_eq!((record.nodes, record.branches), (60, 1));
}
