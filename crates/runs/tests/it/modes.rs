//! What each kind of channel does, waiting, aborting and closing included.

use std::time::Duration;

use contexture_ir::Raw;
use contexture_runs::{Abort, Channel, ChannelError, ChannelMode, Channels, WaitTimeout};
use futures_util::{FutureExt as _, StreamExt as _};

const NOW: WaitTimeout = WaitTimeout::For(Duration::ZERO);

fn rendezvous() -> Channel<u32> {
    Channel::new("meet", ChannelMode::Queue { capacity: 0 })
}

#[tokio::test(start_paused = true)]
async fn a_value_is_read_again_and_again_and_wakes_all() {
    let (channels, abort) = (Channels::new(), Abort::new());
    let temperature = Channel::<u32>::value("temperature");
    assert_eq!(channels.try_recv(&temperature).unwrap(), None);
    let wait = || channels.recv(&temperature, WaitTimeout::default(), &abort);
    let send = |value| channels.send(&temperature, value, NOW, &abort);
    let (first, second, sent) = tokio::join!(wait(), wait(), send(20));
    assert_eq!((first, second, sent), (Ok(20), Ok(20), Ok(())));
    send(21).await.unwrap();
    assert_eq!(wait().await, Ok(21));
    assert_eq!(channels.try_recv(&temperature), Ok(Some(21)));
    channels.close();
    assert_eq!(wait().await, Ok(21));
    assert!(send(22).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_topic_is_for_those_who_are_there() {
    let (channels, abort) = (Channels::new(), Abort::new());
    let news = Channel::<u32>::topic("news");
    let send = |value| channels.send(&news, value, NOW, &abort);
    let wait = || channels.recv(&news, WaitTimeout::default(), &abort);
    send(1).await.unwrap();
    let mut stream = channels.external_stream(&news).unwrap();
    let (first, second, sent) = tokio::join!(wait(), wait(), send(2));
    assert_eq!((first, second, sent), (Ok(2), Ok(2), Ok(())));
    assert_eq!(channels.try_recv(&news), Ok(None));
    for value in 3..1_503 {
        send(value).await.unwrap();
    }
    channels.close();
    let heard: Vec<u32> = stream.by_ref().collect().await;
    assert_eq!((heard.len(), heard[0], heard[999]), (1_000, 503, 1_502));
    assert_eq!(stream.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_after_its_time_and_leaves_nothing() {
    let (channels, abort) = (Channels::new(), Abort::new());
    let meet = rendezvous();
    let start = tokio::time::Instant::now();
    let error = channels
        .recv(&meet, WaitTimeout::default(), &abort)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"nothing happened at the channel "meet" within 30s"#
    );
    let sent = channels
        .send(&meet, 1, WaitTimeout::For(Duration::from_secs(2)), &abort)
        .await;
    assert!(matches!(sent, Err(ChannelError::TimedOut { .. })));
    assert_eq!(start.elapsed().as_secs(), 32);
    assert_eq!(channels.try_recv(&meet).unwrap(), None);
    let (sent, received) = tokio::join!(
        channels.send(&meet, 2, WaitTimeout::ForEver, &abort),
        channels.recv(&meet, WaitTimeout::ForEver, &abort)
    );
    assert_eq!((sent, received), (Ok(()), Ok(2)));
}

#[tokio::test(start_paused = true)]
async fn an_abort_ends_only_its_own_waiting() {
    let channels = Channels::new();
    let (root, meet) = (Abort::new(), rendezvous());
    let (one, two) = (root.child(), root.child());
    let (first, second, ()) = tokio::join!(
        biased;
        channels.recv(&meet, WaitTimeout::ForEver, &one),
        channels.recv(&meet, WaitTimeout::default(), &two),
        async {
            one.abort("enough");
            tokio::task::yield_now().await;
            channels.external_sender(&meet).unwrap().send(7).unwrap();
        }
    );
    assert_eq!(first.unwrap_err().to_string(), "cancelled: enough");
    assert_eq!(second, Ok(7));
    root.abort("all");
    let (sent, parked) = (
        channels.send(&meet, 8, NOW, &two),
        channels.recv(&meet, NOW, &two),
    );
    assert!(matches!(sent.await, Err(ChannelError::Cancelled(_))));
    assert!(matches!(parked.await, Err(ChannelError::Cancelled(_))));
    let value = Channel::<u32>::value("value");
    let sent = channels.send(&value, 1, NOW, &root).await;
    assert!(sent.is_err() && channels.try_recv(&value).unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn aborted_parked_send_never_delivers_its_value() {
    let (channels, abort) = (Channels::new(), Abort::new());
    let one = Channel::<u32>::new("one", ChannelMode::Queue { capacity: 1 });
    channels.send(&one, 1, NOW, &abort).await.unwrap();
    let child = abort.child();
    let (parked, ()) = tokio::join!(
        channels.send(&one, 2, WaitTimeout::default(), &child),
        async {
            child.abort("enough");
        }
    );
    assert!(matches!(parked, Err(ChannelError::Cancelled(_))));
    let (parked, taken) = tokio::join!(
        channels.send(&one, 3, WaitTimeout::default(), &abort),
        async {
            (
                channels.try_recv(&one).unwrap(),
                channels.try_recv(&one).unwrap(),
            )
        }
    );
    assert_eq!((parked, taken), (Ok(()), (Some(1), Some(3))));
}

#[tokio::test(start_paused = true)]
async fn from_outside_nothing_waits_and_the_oldest_goes() {
    let (channels, abort) = (Channels::new(), Abort::new());
    let two = Channel::<u32>::new("two", ChannelMode::Queue { capacity: 2 });
    let external = channels.external_sender(&two).unwrap();
    for value in 1..=4 {
        external.send(value).unwrap();
    }
    assert_eq!(channels.recv(&two, NOW, &abort).await, Ok(3));
    let nobody = channels.external_sender(&rendezvous()).unwrap();
    nobody.send(1).unwrap();
    assert_eq!(channels.try_recv(&rendezvous()), Ok(None));
    assert!(!external.is_closed());
    channels.close();
    assert!(external.is_closed());
    let refused = external.send(5).unwrap_err();
    assert_eq!(
        refused.to_string(),
        r#"the channel "two" is closed: its run has ended"#
    );
    assert_eq!(channels.recv(&two, NOW, &abort).await, Ok(4));
    assert!(matches!(
        channels.recv(&two, NOW, &abort).await,
        Err(ChannelError::Closed { .. })
    ));
    assert!(
        channels
            .external_sender(&Channel::<u32>::topic("later"))
            .unwrap()
            .is_closed()
    );
}

#[tokio::test(start_paused = true)]
async fn streams_end_with_the_run_after_what_was_queued() {
    let (channels, abort) = (Channels::new(), Abort::new());
    let (jobs, level) = (
        Channel::<u32>::queue("jobs"),
        Channel::<u32>::value("level"),
    );
    channels.send(&level, 1, NOW, &abort).await.unwrap();
    let (mut work, mut levels) = (
        channels.external_stream(&jobs).unwrap(),
        channels.external_stream(&level).unwrap(),
    );
    assert_eq!(levels.next().await, Some(1));
    assert_eq!(work.next().now_or_never(), None);
    for value in 2..5 {
        channels.send(&level, value, NOW, &abort).await.unwrap();
        channels.send(&jobs, value, NOW, &abort).await.unwrap();
    }
    assert_eq!(levels.next().await, Some(4));
    assert_eq!(work.next().await, Some(2));
    channels.close();
    assert_eq!(work.collect::<Vec<_>>().await, [3, 4]);
    assert_eq!(levels.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_dropped_gives_back_what_it_was_handed() {
    let (channels, abort) = (Channels::new(), Abort::new());
    let jobs = Channel::<u32>::queue("jobs");
    let mut stream = channels.external_stream(&jobs).unwrap();
    assert_eq!(stream.next().now_or_never(), None);
    channels.send(&jobs, 1, NOW, &abort).await.unwrap();
    assert_eq!(channels.try_recv(&jobs), Ok(None));
    drop(stream);
    assert_eq!(channels.try_recv(&jobs), Ok(Some(1)));
}

#[tokio::test(start_paused = true)]
async fn channels_that_are_dropped_are_closed() {
    let channels = Channels::new();
    let jobs = Channel::<u32>::queue("jobs");
    let (external, stream) = (
        channels.external_sender(&jobs).unwrap(),
        channels.external_stream(&jobs).unwrap(),
    );
    external.send(1).unwrap();
    drop(channels);
    assert_eq!(stream.collect::<Vec<_>>().await, [1]);
    assert!(external.send(2).is_err());
}

#[test]
fn a_name_means_one_thing_in_one_tree() {
    let (channels, other) = (Channels::new(), Channels::new());
    let first = Channel::<u32>::queue("c");
    channels.external_sender(&first).unwrap().send(1).unwrap();
    assert_eq!(other.try_recv(&first), Ok(None));
    let schema = Raw::parse(r#"{"type":"integer"}"#).unwrap();
    let told = |error: ChannelError| error.to_string();
    let capacity = Channel::<u32>::new("c", ChannelMode::Queue { capacity: 1 });
    let conflicts = [
        channels.try_recv(&Channel::<u64>::queue("c")).map(drop),
        channels.try_recv(&Channel::<u32>::value("c")).map(drop),
        channels.try_recv(&capacity).map(drop),
        channels
            .try_recv(&first.clone().with_schema(schema))
            .map(drop),
    ];
    let is = r#"the channel "c" is a queue of 1000 of u32 already, not a"#;
    let not = "use one definition, or another name";
    let expected = [
        "queue of 1000 of u64",
        "value of u32",
        "queue of 1 of u32",
        "queue of 1000 of u32 with another schema",
    ];
    for (conflict, second) in conflicts.into_iter().zip(expected) {
        assert_eq!(told(conflict.unwrap_err()), format!("{is} {second}: {not}"));
    }
    assert_eq!(channels.try_recv(&first.clone()), Ok(Some(1)));
    assert_eq!(other.try_recv(&Channel::<String>::queue("d")), Ok(None));
}

#[tokio::test]
async fn what_is_not_of_the_schema_does_not_enter() {
    let (channels, abort) = (Channels::new(), Abort::new());
    let schema = |text: &str| Raw::parse(text).unwrap();
    let small =
        Channel::<u32>::queue("small").with_schema(schema(r#"{"type":"integer","maximum":9}"#));
    let error = channels.send(&small, 10, NOW, &abort).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"the channel "small": not of its schema: expected maximum 9, found 10"#
    );
    assert!(channels.external_sender(&small).unwrap().send(11).is_err());
    assert_eq!(channels.try_recv(&small), Ok(None));
    channels.send(&small, 9, NOW, &abort).await.unwrap();
    assert_eq!(channels.try_recv(&small), Ok(Some(9)));
    let none = Channel::<u32>::queue("none").with_schema(schema(r#"{"type":5}"#));
    assert!(matches!(
        channels.try_recv(&none),
        Err(ChannelError::Schema { .. })
    ));
}
