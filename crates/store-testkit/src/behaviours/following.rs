//! Followers of a stream and batching writers: woken by signals, never by a timer.

use std::sync::Arc;
use std::time::Duration;

use contexture_store::{
    ChunkBatching, ChunkWriter, Error, RedactRequest, Store, StreamClaim, StreamCursor, StreamEnd,
    StreamTail, TailEvent, TailOptions, erase_all,
};
use futures_util::FutureExt as _;

use super::streaming::{Streaming, stream_id};
use crate::chat::{Chat, NOW};
use crate::faulty::{Chances, Faulty};
use crate::test_seed;

type Tested = Arc<dyn Store>;

fn open_tail(chat: &Streaming, word: &str, from: Option<StreamCursor>, limit: usize) -> StreamTail {
    let options = TailOptions {
        from,
        limit,
        // Without a timer a reader wakes by signals only: a missing signal makes the test hang.
        poll: None,
    };
    let Chat { store, owner, id } = &chat.0;
    StreamTail::open(Arc::clone(store), owner, id, stream_id(word), options).unwrap()
}

/// Reads to the end; checks that no chunk is missing or repeated.
async fn read_all(mut tail: StreamTail) -> (Vec<String>, StreamEnd) {
    let mut words = Vec::new();
    let mut at = tail.cursor();
    loop {
        match tail.next().await.unwrap().unwrap() {
            TailEvent::Chunks { chunks, next } => {
                assert!(!chunks.is_empty());
                // Each page must begin where the one before ended, in the same epoch, so that there
                // is no gap.
                let begun = next.seq - chunks.len() as u64;
                assert!(at.is_none_or(|at| at.seq == begun && at.epoch == next.epoch));
                at = Some(next);
                assert_eq!(tail.cursor(), at);
                let text = |chunk: &Arc<[u8]>| String::from_utf8(chunk.to_vec()).unwrap();
                words.extend(chunks.iter().map(text));
            }
            TailEvent::End(end) => {
                assert!(tail.next().await.is_none());
                return (words, end);
            }
        }
    }
}

fn number_texts(range: std::ops::Range<u64>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

async fn write_numbers(chat: &Streaming, claim: StreamClaim, count: u64) {
    for n in 0..count {
        chat.append_chunks(claim, n, &[&n.to_string()])
            .await
            .unwrap();
    }
}

pub(super) async fn readers_see_all_of_a_running_stream(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let claim = chat.claim_stream("s").await;
    // From one chunk per page to more than there are, so that readers lag behind at different
    // positions.
    let readers: Vec<_> = [1, 2, 7, 1000]
        .map(|limit| tokio::spawn(read_all(open_tail(&chat, "s", None, limit))))
        .into();
    write_numbers(&chat, claim, 100).await;
    chat.finish_stream(claim, StreamEnd::Completed)
        .await
        .unwrap();
    for reader in readers {
        let (words, end) = reader.await.unwrap();
        assert_eq!((words, end), (number_texts(0..100), StreamEnd::Completed));
    }
}

/// A waiting reader is woken by one write; nothing else would wake it.
pub(super) async fn each_change_wakes(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let claim = chat.claim_stream("s").await;
    let mut reader = open_tail(&chat, "s", None, 10);
    for n in 0..20 {
        // The reader is polled first and finds nothing, so only the write after it can wake it.
        let (event, written) = tokio::join!(reader.next(), chat.append_chunks(claim, n, &["x"]));
        written.unwrap();
        assert!(matches!(event, Some(Ok(TailEvent::Chunks { .. }))));
    }
    let finish = chat.finish_stream(claim, StreamEnd::Cancelled);
    let (event, finished) = tokio::join!(reader.next(), finish);
    finished.unwrap();
    let Some(Ok(TailEvent::End(end))) = event else {
        panic!("{event:?}");
    };
    assert_eq!(end, StreamEnd::Cancelled);
}

pub(super) async fn a_reader_goes_on_at_every_chunk(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let claim = chat.claim_stream("s").await;
    let from = |seq| {
        let epoch = claim.epoch;
        Some(StreamCursor { epoch, seq })
    };
    write_numbers(&chat, claim, 5).await;
    let readers: Vec<_> = (0..=5)
        // Two readers of each stream: one must not consume the wake of the other.
        .flat_map(|seq| [seq, seq])
        .map(|seq| {
            (
                seq,
                tokio::spawn(read_all(open_tail(&chat, "s", from(seq), 2))),
            )
        })
        .collect();
    for n in 5..10 {
        chat.append_chunks(claim, n, &[&n.to_string()])
            .await
            .unwrap();
    }
    chat.finish_stream(claim, StreamEnd::Completed)
        .await
        .unwrap();
    for (seq, reader) in readers {
        let (words, _) = reader.await.unwrap();
        assert_eq!(words, number_texts(seq..10));
    }
    // Readers that start after the end, too.
    for seq in 0..=10 {
        let (words, end) = read_all(open_tail(&chat, "s", from(seq), 3)).await;
        assert_eq!((words, end), (number_texts(seq..10), StreamEnd::Completed));
    }
}

/// What a waiting reader gets when its stream is removed, as the kind of the error.
pub(super) async fn a_waiting_reader_learns_what_happened(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    for (what, wanted) in [
        ("open", "epoch_changed"),
        ("delete", "not_found"),
        ("end", "end"),
        ("redact", "not_found"),
        ("delete conversation", "not_found"),
        ("erase", "not_found"),
    ] {
        let claim = chat.claim_stream("s").await;
        chat.append_chunks(claim, 0, &["a"]).await.unwrap();
        let mut reader = open_tail(&chat, "s", None, 10);
        reader.next().await.unwrap().unwrap();
        // A second reader that has not read from the stream yet.
        let mut behind = open_tail(&chat, "s", reader.cursor(), 10);
        let change = take_stream_away(&chat, what, claim);
        if what == "redact" {
            // Between its end and the redaction a reader may see either.
            change.await;
            let event = behind.next().await.unwrap();
            assert_eq!(event.unwrap_err().kind(), wanted, "{what}");
        } else {
            let (event, other, ()) = tokio::join!(reader.next(), behind.next(), change);
            assert_eq!(outcome_name(event.unwrap()), wanted, "{what}");
            assert_eq!(outcome_name(other.unwrap()), wanted, "{what}");
            assert!(reader.next().await.is_none() && behind.next().await.is_none());
        }
        let Chat { store, owner, id } = &chat.0;
        if store.load_conversation(owner, id).await.is_err() {
            // Some of the changes delete the conversation; the next round needs one.
            Chat::start(Arc::clone(store)).await;
        }
    }
}

/// Returns `end`, or the kind of an error.
fn outcome_name(event: Result<TailEvent, Error>) -> &'static str {
    match event {
        Ok(TailEvent::End(StreamEnd::Completed)) => "end",
        Ok(other) => panic!("{other:?}"),
        Err(error) => error.kind(),
    }
}

/// Ends or removes the stream `s`, by itself or with its conversation.
async fn take_stream_away(chat: &Streaming, what: &str, claim: StreamClaim) {
    let Chat { store, owner, id } = &chat.0;
    match what {
        "open" => drop(chat.claim_stream("s").await),
        "delete" => chat.delete_stream("s").await.unwrap(),
        "end" => drop(chat.append_final_item(claim, "answer").await.unwrap()),
        "redact" => {
            chat.finish_stream(claim, StreamEnd::Completed)
                .await
                .unwrap();
            let nothing = RedactRequest::default();
            store.redact_content(owner, id, nothing).await.unwrap();
        }
        "erase" => {
            let scope = contexture_store::EraseScope::Owner;
            erase_all(&**store, owner, &scope).await.unwrap();
        }
        _ => store.delete_conversation(owner, id).await.unwrap(),
    }
}

/// A reader that falls behind the removal of the chunks gets an error, not a text with a gap.
pub(super) async fn a_slow_reader_gets_an_error(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let claim = chat.claim_stream("s").await;
    write_numbers(&chat, claim, 4).await;
    let mut reader = open_tail(&chat, "s", None, 2);
    reader.next().await.unwrap().unwrap();
    chat.append_final_item(claim, "answer").await.unwrap();
    let error = reader.next().await.unwrap().unwrap_err();
    assert!(
        matches!(
            error,
            Error::ChunksGone {
                seq: 2,
                first: 4,
                ..
            }
        ),
        "{error}"
    );
    assert!(reader.next().await.is_none());
    // A reader that starts now gets only the end.
    let (words, end) = read_all(open_tail(&chat, "s", None, 2)).await;
    assert_eq!((words.len(), end), (0, StreamEnd::Completed));
}

/// Batches by number and size only.
fn batch_by_size(chunks: usize, bytes: usize) -> ChunkBatching {
    ChunkBatching {
        chunks,
        bytes,
        delay: Duration::from_secs(1 << 30),
        poll: None,
    }
}

async fn open_writer(chat: &Streaming, gather: ChunkBatching) -> ChunkWriter {
    let Chat { store, owner, id } = &chat.0;
    let opened = ChunkWriter::open(Arc::clone(store), owner, id, stream_id("s"), gather, NOW);
    opened.await.unwrap().0
}

pub(super) async fn small_chunks_are_gathered(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let mut writer = open_writer(&chat, batch_by_size(4, 10)).await;
    let stored = async || chat.list_streams().await[0].next;
    for (word, wanted) in [
        ("0", 0),
        ("1", 0),
        ("2", 0),
        ("3", 4),
        ("4", 4),
        // Eleven bytes exceed the limit of ten, so this one is written at once with the buffered
        // ones.
        ("long enough", 6),
        ("6", 6),
    ] {
        writer.push_chunk(word.as_bytes(), NOW).await.unwrap();
        assert_eq!(stored().await, wanted, "{word}");
    }
    let limits = &chat.0.store.limits().streams;
    // Refused alone: it must neither discard the buffered chunks nor block later ones.
    let large = vec![0_u8; limits.chunk_bytes + 1];
    let refused = writer.push_chunk(large, NOW).await.unwrap_err();
    assert_eq!(refused.kind(), "limit");
    writer.push_chunk(*b"7", NOW).await.unwrap();
    writer
        .finish_stream(StreamEnd::Completed, NOW)
        .await
        .unwrap();
    writer
        .finish_stream(StreamEnd::Completed, NOW)
        .await
        .unwrap();
    let (words, _) = read_all(open_tail(&chat, "s", None, 3)).await;
    assert_eq!(words, ["0", "1", "2", "3", "4", "long enough", "6", "7"]);
    write_more_than_an_append(&chat, limits.append_chunks).await;
}

/// More than one append can carry is split into several.
async fn write_more_than_an_append(chat: &Streaming, append_chunks: usize) {
    let mut writer = open_writer(chat, batch_by_size(usize::MAX, usize::MAX)).await;
    let count = append_chunks * 2 + 1;
    for n in 0..count {
        writer
            .push_chunk(n.to_string().into_bytes(), NOW)
            .await
            .unwrap();
    }
    writer.flush_chunks().await.unwrap();
    writer
        .finish_stream(StreamEnd::Completed, NOW)
        .await
        .unwrap();
    let (words, _) = read_all(open_tail(chat, "s", None, 1000)).await;
    assert_eq!(words, number_texts(0..count as u64));
}

/// A stream that nobody ends stays running, for whoever recovers it.
pub(super) async fn a_dropped_writer_ends_nothing(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let mut writer = open_writer(&chat, batch_by_size(2, 100)).await;
    for word in [b"0", b"1", b"2"] {
        writer.push_chunk(*word, NOW).await.unwrap();
    }
    let claim = writer.claim();
    drop(writer);
    let left = chat.list_streams().await;
    // Two were written as a full batch, the third was only buffered and is lost with the writer.
    assert_eq!((left[0].next, &left[0].end), (2, &None));
    chat.append_chunks(claim, 2, &["2"]).await.unwrap();
    chat.append_final_item(claim, "partial").await.unwrap();
}

pub(super) async fn a_waiting_writer_learns_of_a_cancellation(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let mut first = open_writer(&chat, batch_by_size(10, 100)).await;
    first.push_chunk(*b"a", NOW).await.unwrap();
    let (stop, asked) = tokio::join!(first.wait_for_cancellation(), chat.cancel_stream("s"));
    stop.unwrap();
    assert!(asked.cancel_requested && first.stream().cancel_requested);
    first.wait_for_cancellation().await.unwrap();
    // A writer learns of another writer, too.
    let mut first = open_writer(&chat, batch_by_size(10, 100)).await;
    first.push_chunk(*b"a", NOW).await.unwrap();
    let (stop, mut second) = tokio::join!(
        first.wait_for_cancellation(),
        open_writer(&chat, batch_by_size(1, 1))
    );
    assert_eq!(stop.unwrap_err().kind(), "stale_epoch");
    second.push_chunk(*b"b", NOW).await.unwrap();
    let zombie = first.finish_stream(StreamEnd::Completed, NOW).await;
    assert_eq!(zombie.unwrap_err().kind(), "stale_epoch");
    second
        .finish_stream(StreamEnd::Completed, NOW)
        .await
        .unwrap();
    assert_eq!(read_all(open_tail(&chat, "s", None, 9)).await.0, ["b"]);
}

/// Calls fail, before and after they took effect, and futures are dropped before they complete:
/// every chunk is stored once.
pub(super) async fn a_writer_on_a_store_that_fails_loses_nothing(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let first = test_seed();
    for seed in (0..6).map(|n| first.wrapping_add(n)) {
        let chances = Chances {
            before: 200,
            after: 200,
            delay: 200,
        };
        let Chat { store, owner, id } = &chat.0;
        let faulty = Arc::new(Faulty::with_seed(Arc::clone(store), seed, chances));
        let mut writer = loop {
            let store = Arc::clone(&faulty) as Tested;
            let gather = batch_by_size(3, 1000);
            match ChunkWriter::open(store, owner, id, stream_id("s"), gather, NOW).await {
                Ok((writer, _)) => break writer,
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
        };
        for n in 0..100_u64 {
            let push = writer.push_chunk(n.to_string().into_bytes(), NOW);
            let pushed = if n % 3 == 0 {
                // Polled once and dropped if it is not ready: a caller that gives up must not lose
                // or double a chunk.
                push.now_or_never().unwrap_or(Ok(()))
            } else {
                push.await
            };
            if let Err(error) = pushed {
                assert!(error.is_retryable(), "seed {seed}: {error}");
            }
        }
        while let Err(error) = writer.finish_stream(StreamEnd::Completed, NOW).await {
            assert!(error.is_retryable(), "seed {seed}: {error}");
        }
        // Checks the test itself: it needs enough faults.
        assert!(faulty.fault_count() > 10, "seed {seed}");
        let (words, _) = read_all(open_tail(&chat, "s", None, 1000)).await;
        assert_eq!(words, number_texts(0..100), "seed {seed}");
    }
}
