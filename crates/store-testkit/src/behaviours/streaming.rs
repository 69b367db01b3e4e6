//! Logs of running responses. A store without streams must refuse them.

use std::sync::Arc;

use contexture_ir::{NodeId, StreamId};
use contexture_store::{
    AppendChunks, AppendRequest, ChunkConflict, ChunkPage, EntityKind, Error, FinishStream,
    ReadChunks, RedactRequest, Store, StreamClaim, StreamCursor, StreamEnd, StreamEpoch,
    StreamOpened, StreamRecord, Streams,
};

use crate::chat::{Chat, NOW, item, node};
use crate::faulty::until_done;
use crate::method::Method;

type Tested = Arc<dyn Store>;

pub(super) fn stream_id(word: &str) -> StreamId {
    StreamId::derive("testkit", &[word.as_bytes()])
}

fn chunk_bytes(words: &[&str]) -> Vec<Arc<[u8]>> {
    words
        .iter()
        .map(|word| Arc::from(word.as_bytes()))
        .collect()
}

/// A conversation of a store that keeps streams.
#[derive(Clone)]
pub(super) struct Streaming(pub(super) Chat);

impl Streaming {
    /// `None` if the store keeps no streams.
    pub(super) async fn start(store: Tested) -> Option<Self> {
        // Asked before the store moves into the chat. `None` makes a behaviour pass: streams are a
        // capability that a backend may leave out.
        let kept = store.streams().is_some();
        let chat = Chat::start(store).await;
        kept.then_some(Self(chat))
    }

    pub(super) fn streams(&self) -> &dyn Streams {
        self.0.store.streams().unwrap()
    }

    pub(super) async fn open_stream(&self, word: &str) -> StreamOpened {
        let Chat { owner, id, .. } = &self.0;
        let opened = self.streams().open_stream(owner, id, stream_id(word), NOW);
        opened.await.unwrap()
    }

    pub(super) async fn claim_stream(&self, word: &str) -> StreamClaim {
        self.open_stream(word).await.stream.claim()
    }

    pub(super) async fn append_chunks(
        &self,
        claim: StreamClaim,
        seq: u64,
        words: &[&str],
    ) -> Result<StreamRecord, Error> {
        let append = AppendChunks {
            claim,
            seq,
            chunks: chunk_bytes(words),
            // Not the time of the opening, so that records show which call set `updated_ms`.
            at_ms: NOW + 1,
        };
        let Chat { owner, id, .. } = &self.0;
        self.streams().append_chunks(owner, id, append).await
    }

    pub(super) async fn finish_stream(
        &self,
        claim: StreamClaim,
        end: StreamEnd,
    ) -> Result<StreamRecord, Error> {
        let finish = FinishStream {
            claim,
            end,
            at_ms: NOW + 2,
        };
        let Chat { owner, id, .. } = &self.0;
        self.streams().finish_stream(owner, id, finish).await
    }

    async fn read_chunks(&self, read: ReadChunks) -> Result<ChunkPage, Error> {
        let Chat { owner, id, .. } = &self.0;
        self.streams().read_chunks(owner, id, read).await
    }

    async fn read_from(&self, claim: StreamClaim, seq: u64) -> Result<ChunkPage, Error> {
        let from = StreamCursor {
            epoch: claim.epoch,
            seq,
        };
        self.read_chunks(ReadChunks {
            from: Some(from),
            ..ReadChunks::new(claim.stream)
        })
        .await
    }

    /// Checks what a reader that starts now sees.
    async fn expect_chunks(&self, word: &str, words: &[&str]) -> StreamRecord {
        let page = self
            .read_chunks(ReadChunks::new(stream_id(word)))
            .await
            .unwrap();
        assert_eq!(page.chunks, chunk_bytes(words));
        page.stream
    }

    pub(super) async fn list_streams(&self) -> Vec<StreamRecord> {
        let Chat { owner, id, .. } = &self.0;
        self.streams().list_streams(owner, id).await.unwrap()
    }

    pub(super) async fn delete_stream(&self, word: &str) -> Result<(), Error> {
        let Chat { owner, id, .. } = &self.0;
        self.streams()
            .delete_stream(owner, id, stream_id(word))
            .await
    }

    pub(super) async fn cancel_stream(&self, word: &str) -> StreamRecord {
        let Chat { owner, id, .. } = &self.0;
        let cancelled = self
            .streams()
            .cancel_stream(owner, id, stream_id(word), NOW);
        cancelled.await.unwrap()
    }

    /// Calls a method of [`Streams`] with arguments that suit a stream that was just opened.
    pub(super) async fn call_method(&self, method: Method) -> Result<(), Error> {
        let Chat { owner, id, .. } = &self.0;
        let (streams, stream) = (self.streams(), stream_id("s"));
        let claim = StreamClaim {
            stream,
            // The first epoch of a conversation is 1, so the claim is right where one stream was
            // opened.
            epoch: StreamEpoch(1),
        };
        match method {
            Method::OpenStream => streams.open_stream(owner, id, stream, NOW).await.map(drop),
            Method::AppendChunks => self.append_chunks(claim, 0, &["a"]).await.map(drop),
            Method::FinishStream => self
                .finish_stream(claim, StreamEnd::Completed)
                .await
                .map(drop),
            Method::CancelStream => streams
                .cancel_stream(owner, id, stream, NOW)
                .await
                .map(drop),
            Method::ReadChunks => self.read_chunks(ReadChunks::new(stream)).await.map(drop),
            Method::ListStreams => streams.list_streams(owner, id).await.map(drop),
            Method::DeleteStream => self.delete_stream("s").await,
            other => panic!("{} is not of streams", other.name()),
        }
    }

    /// Appends the final item of a stream.
    pub(super) async fn append_final_item(
        &self,
        claim: StreamClaim,
        word: &str,
    ) -> Result<contexture_store::Appended, Error> {
        self.0.append_request(final_append(claim, word)).await
    }
}

fn final_append(claim: StreamClaim, word: &str) -> AppendRequest {
    AppendRequest {
        ends_stream: Some(claim),
        ..AppendRequest::new(Chat::at_tip("main"), vec![item(word)], NOW + 3)
    }
}

fn failed_end(message: &str) -> StreamEnd {
    StreamEnd::Failed {
        message: message.to_owned(),
    }
}

fn expect_stale<T: std::fmt::Debug>(result: Result<T, Error>, held: StreamClaim, now: StreamClaim) {
    // Both epochs are checked: the error must tell the writer which claim is current.
    match result.unwrap_err() {
        Error::StaleEpoch {
            stream,
            held: epoch,
            current,
        } => assert_eq!(
            (stream, epoch, current),
            (now.stream, held.epoch, now.epoch)
        ),
        other => panic!("{other}"),
    }
}

fn expect_no_stream<T: std::fmt::Debug>(result: Result<T, Error>) {
    let error = result.unwrap_err();
    let what = EntityKind::Stream;
    assert!(
        matches!(error, Error::NotFound { what: found, .. } if found == what),
        "{error}"
    );
}

/// Every kind of write to a stream, on a store that fails: the outcome is always the same, and
/// nothing is left behind.
pub(super) async fn write_everything(chat: &Streaming) {
    let Chat { owner, id, .. } = &chat.0;
    let open = || chat.streams().open_stream(owner, id, stream_id("s"), NOW);
    // Opening again gives a new epoch, so the claim is taken from the call that succeeded.
    let claim = until_done(&[], open).await.unwrap().stream.claim();
    until_done(&[], || chat.append_chunks(claim, 0, &["a", "b"])).await;
    until_done(&[], || chat.call_method(Method::CancelStream)).await;
    until_done(&[], || chat.finish_stream(claim, StreamEnd::Cancelled)).await;
    until_done(&[], || async {
        let page = chat.read_chunks(ReadChunks::new(claim.stream)).await?;
        assert_eq!(page.chunks, chunk_bytes(&["a", "b"]));
        assert!(page.stream.cancel_requested);
        assert_eq!(page.end_if_complete(), Some(&StreamEnd::Cancelled));
        Ok(())
    })
    .await;
    // Only a deletion may answer "not found": after an unknown outcome it says that the stream is
    // gone.
    until_done(&["not_found"], || chat.call_method(Method::DeleteStream)).await;
}

/// The error of a store without streams; the other stores do not know this stream either.
pub(super) async fn an_unknown_stream_cannot_end(store: Tested) {
    let chat = Chat::start(store).await;
    let claim = StreamClaim {
        stream: stream_id("never"),
        epoch: StreamEpoch(1),
    };
    expect_no_stream(chat.append_request(final_append(claim, "a")).await);
    // The item and the end of its stream are one transaction: neither is stored alone.
    chat.expect_path("main", &[]).await;
    // An end without an item would remove the chunks without a replacement.
    let empty = AppendRequest {
        items: Vec::new(),
        ..final_append(claim, "a")
    };
    let error = chat.append_request(empty).await.unwrap_err();
    assert!(matches!(error, Error::Invalid { what: "append", .. }));
}

pub(super) async fn chunks_come_back_in_order(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let opened = chat.open_stream("s").await;
    assert_eq!(opened.before, None);
    let claim = opened.stream.claim();
    let wanted = StreamRecord::new(claim.stream, claim.epoch, NOW);
    assert_eq!(opened.stream, wanted);
    // An empty chunk and one with NUL are ordinary chunks: a store must not drop or truncate them.
    chat.append_chunks(claim, 0, &["a", "", "\0ü"])
        .await
        .unwrap();
    let record = chat.append_chunks(claim, 3, &["b", "c"]).await.unwrap();
    assert_eq!((record.first, record.next, record.bytes), (0, 5, 6));
    assert_eq!((record.opened_ms, record.updated_ms), (NOW, NOW + 1));
    let all = ["a", "", "\0ü", "b", "c"];
    assert_eq!(chat.expect_chunks("s", &all).await, record);
    // Position 5 is the end: a reader that has seen everything gets an empty page, not an error.
    for seq in 0..=5 {
        for limit in [0, 1, 2, usize::MAX] {
            let from = StreamCursor {
                epoch: claim.epoch,
                seq,
            };
            let read = ReadChunks {
                stream: claim.stream,
                from: Some(from),
                limit,
            };
            let page = chat.read_chunks(read).await.unwrap();
            let first = usize::try_from(seq).unwrap();
            let last = first.saturating_add(limit).min(5);
            assert_eq!(page.chunks, chunk_bytes(&all[first..last]));
            let next = StreamCursor {
                seq: last as u64,
                ..from
            };
            assert_eq!((page.next, page.end_if_complete()), (next, None));
        }
    }
    // A position that no chunk has had yet is refused, since waiting there would hide the caller's
    // mistake.
    let beyond = chat.read_from(claim, 6).await.unwrap_err();
    assert!(
        matches!(beyond, Error::Invalid { what: "cursor", .. }),
        "{beyond}"
    );
    assert!(chat.read_from(claim, u64::MAX).await.is_err());
    expect_no_stream(chat.read_chunks(ReadChunks::new(stream_id("other"))).await);
}

pub(super) async fn reopening_fences_the_old_writer(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let old = chat.claim_stream("s").await;
    let before = chat.append_chunks(old, 0, &["new0", "new1"]).await.unwrap();
    let opened = chat.open_stream("s").await;
    assert_eq!(opened.before, Some(before));
    let new = opened.stream.claim();
    assert!(new.epoch > old.epoch);
    chat.expect_chunks("s", &[]).await;
    // At every position, also those that the new writer has not reached: no chunk of the old one
    // may fill a gap.
    for seq in 0..3 {
        expect_stale(chat.append_chunks(old, seq, &["ZOMBIE"]).await, old, new);
    }
    expect_stale(
        chat.finish_stream(old, StreamEnd::Completed).await,
        old,
        new,
    );
    expect_stale(chat.append_final_item(old, "late").await, old, new);
    chat.0.expect_path("main", &[]).await;
    chat.append_chunks(new, 0, &["x", "y"]).await.unwrap();
    expect_stale(chat.append_chunks(old, 2, &["ZOMBIE"]).await, old, new);
    // An epoch that was never given out is as wrong as an old one.
    let future = StreamClaim {
        epoch: StreamEpoch(u64::MAX),
        ..new
    };
    expect_stale(chat.append_chunks(future, 2, &["early"]).await, future, new);
    chat.expect_chunks("s", &["x", "y"]).await;
    // Also after the end.
    chat.finish_stream(new, StreamEnd::Completed).await.unwrap();
    let newest = chat.claim_stream("s").await;
    expect_stale(chat.append_chunks(new, 0, &["x"]).await, new, newest);
    assert_eq!(chat.expect_chunks("s", &[]).await.end, None);
}

/// A reader never sees the texts of two writers mixed.
pub(super) async fn a_cursor_belongs_to_its_epoch(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let old = chat.claim_stream("s").await;
    chat.append_chunks(old, 0, &["a", "b"]).await.unwrap();
    let new = chat.claim_stream("s").await;
    chat.append_chunks(new, 0, &["c", "d", "e"]).await.unwrap();
    // Positions before, at and beyond the old end. The epoch is checked first, whatever the new
    // stream has at that position.
    for seq in [0, 2, 3, 9] {
        match chat.read_from(old, seq).await.unwrap_err() {
            Error::EpochChanged {
                stream,
                asked,
                current,
            } => assert_eq!((stream, asked, current), (old.stream, old.epoch, new.epoch)),
            other => panic!("{other}"),
        }
    }
    chat.expect_chunks("s", &["c", "d", "e"]).await;
}

pub(super) async fn epochs_never_return(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let mut newest = StreamEpoch(0);
    // Epochs are counted for the conversation: a stream that is deleted and opened again must not
    // fit old claims or cursors.
    let mut old: Option<StreamClaim> = None;
    for word in ["s", "s", "t", "s", "t", "t"] {
        let claim = chat.claim_stream(word).await;
        assert!(claim.epoch > newest, "{word}");
        newest = claim.epoch;
        if let Some(old) = old.filter(|old| old.stream == claim.stream) {
            expect_stale(chat.append_chunks(old, 0, &["ZOMBIE"]).await, old, claim);
        }
        chat.append_chunks(claim, 0, &["x"]).await.unwrap();
        chat.delete_stream(word).await.unwrap();
        expect_no_stream(chat.append_chunks(claim, 1, &["late"]).await);
        old = Some(claim);
    }
    expect_no_stream(chat.delete_stream("s").await);
    assert!(chat.list_streams().await.is_empty());
}

pub(super) async fn a_repetition_changes_nothing(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let claim = chat.claim_stream("s").await;
    let once = chat
        .append_chunks(claim, 0, &["a", "b", "c"])
        .await
        .unwrap();
    assert_eq!(
        chat.append_chunks(claim, 0, &["a", "b", "c"])
            .await
            .unwrap(),
        once
    );
    assert_eq!(chat.append_chunks(claim, 1, &["b"]).await.unwrap(), once);
    // An append that carries more than the one before stores the rest.
    let more = chat
        .append_chunks(claim, 1, &["b", "c", "d"])
        .await
        .unwrap();
    assert_eq!((more.next, more.bytes), (4, 4));
    let conflict = |result: Result<StreamRecord, Error>| match result.unwrap_err() {
        Error::ChunkConflict { stream, seq, why } => {
            assert_eq!(stream, claim.stream);
            (seq, why)
        }
        other => panic!("{other}"),
    };
    // The first chunk equals what is stored and the second does not: the conflict names the exact
    // position.
    let other = chat.append_chunks(claim, 1, &["b", "x", "d", "e"]).await;
    assert_eq!(conflict(other), (2, ChunkConflict::OtherBytes));
    let gap = chat.append_chunks(claim, 5, &["f"]).await;
    assert_eq!(conflict(gap), (5, ChunkConflict::Gap { next: 4 }));
    // The end of this append would be beyond the range of numbers: it must be refused without an
    // overflow.
    let far = chat.append_chunks(claim, u64::MAX, &["f", "g"]).await;
    assert_eq!(conflict(far), (u64::MAX, ChunkConflict::Gap { next: 4 }));
    let nothing = chat.append_chunks(claim, 4, &[]).await.unwrap_err();
    assert!(matches!(nothing, Error::Invalid { what: "chunks", .. }));
    assert_eq!(chat.expect_chunks("s", &["a", "b", "c", "d"]).await, more);
}

pub(super) async fn an_end_is_an_end(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    for end in [StreamEnd::Completed, StreamEnd::Cancelled, failed_end("ü")] {
        let claim = chat.claim_stream("s").await;
        chat.append_chunks(claim, 0, &["a", "b"]).await.unwrap();
        let ended = chat.finish_stream(claim, end.clone()).await.unwrap();
        assert_eq!(ended.end, Some(end.clone()));
        assert_eq!(ended.updated_ms, NOW + 2);
        // A writer need not know whether a call took effect.
        assert_eq!(chat.finish_stream(claim, end.clone()).await.unwrap(), ended);
        assert_eq!(
            chat.append_chunks(claim, 0, &["a", "b"]).await.unwrap(),
            ended
        );
        // Up to the stored end the answer is that the stream has ended. Beyond it there is a gap,
        // which is the error whether the stream runs or not.
        for (seq, words) in [(2, &["c"][..]), (1, &["b", "c"]), (5, &["x"])] {
            let late = chat.append_chunks(claim, seq, words).await;
            if seq <= 2 {
                match late.unwrap_err() {
                    Error::StreamEnded { end: how, .. } => assert_eq!(how, end),
                    other => panic!("{other}"),
                }
            } else {
                assert_eq!(late.unwrap_err().kind(), "chunk_conflict");
            }
        }
        let other = chat
            .finish_stream(claim, failed_end("otherwise"))
            .await
            .unwrap_err();
        assert!(matches!(other, Error::StreamEnded { .. }), "{other}");
        assert_eq!(chat.expect_chunks("s", &["a", "b"]).await, ended);
        let page = chat.read_from(claim, 2).await.unwrap();
        assert_eq!(page.end_if_complete(), Some(&end));
    }
}

pub(super) async fn a_writer_is_asked_to_stop(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let claim = chat.claim_stream("s").await;
    let record = chat.append_chunks(claim, 0, &["a"]).await.unwrap();
    assert!(!record.cancel_requested);
    // A second request changes nothing: two people may press the same button.
    for _ in 0..2 {
        let asked = chat.cancel_stream("s").await;
        assert!(asked.cancel_requested && asked.end.is_none());
    }
    // A request, not a fence: the writer may still append.
    let record = chat.append_chunks(claim, 1, &["b"]).await.unwrap();
    assert!(record.cancel_requested);
    let ended = chat
        .finish_stream(claim, StreamEnd::Cancelled)
        .await
        .unwrap();
    assert_eq!(chat.cancel_stream("s").await, ended);
    // The request was for the old writer, so a new one begins without it.
    let opened = chat.open_stream("s").await;
    assert!(!opened.stream.cancel_requested);
    assert_eq!(opened.before, Some(ended));
    let claim = opened.stream.claim();
    let ended = chat
        .finish_stream(claim, StreamEnd::Completed)
        .await
        .unwrap();
    // The stream has ended already.
    assert_eq!(chat.cancel_stream("s").await, ended);
    let Chat { owner, id, .. } = &chat.0;
    let never = stream_id("never");
    expect_no_stream(chat.streams().cancel_stream(owner, id, never, NOW).await);
}

pub(super) async fn the_final_item_takes_the_chunks_with_it(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let claim = chat.claim_stream("s").await;
    chat.append_chunks(claim, 0, &["a", "b"]).await.unwrap();
    // An append that fails leaves the stream alone.
    let refused = AppendRequest {
        at: Chat::at_head("main", Some("never")),
        ..final_append(claim, "answer")
    };
    chat.0.append_request(refused).await.unwrap_err();
    assert_eq!(chat.expect_chunks("s", &["a", "b"]).await.end, None);

    chat.append_final_item(claim, "answer").await.unwrap();
    chat.0.expect_path("main", &["answer"]).await;
    let ended = chat.expect_chunks("s", &[]).await;
    assert_eq!(ended.end, Some(StreamEnd::Completed));
    assert_eq!((ended.first, ended.next, ended.bytes), (2, 2, 0));
    // A reader that has read everything gets the end; one that lags behind gets an error.
    let page = chat.read_from(claim, 2).await.unwrap();
    assert_eq!(page.end_if_complete(), Some(&StreamEnd::Completed));
    match chat.read_from(claim, 1).await.unwrap_err() {
        Error::ChunksGone { stream, seq, first } => {
            assert_eq!((stream, seq, first), (claim.stream, 1, 2));
        }
        other => panic!("{other}"),
    }
    // Also positions whose chunks are removed: a repetition cannot be compared any more, and the
    // error is that the stream has ended.
    for seq in 0..3 {
        let late = chat.append_chunks(claim, seq, &["late"]).await.unwrap_err();
        assert!(matches!(late, Error::StreamEnded { .. }), "{late}");
    }
    assert!(
        chat.append_final_item(claim, "answer")
            .await
            .unwrap()
            .replayed
    );

    // An existing end stays, and so does a stream that a repetition names.
    let claim = chat.claim_stream("s").await;
    chat.append_chunks(claim, 0, &["c"]).await.unwrap();
    assert!(
        chat.append_final_item(claim, "answer")
            .await
            .unwrap()
            .replayed
    );
    chat.expect_chunks("s", &["c"]).await;
    chat.finish_stream(claim, failed_end("no")).await.unwrap();
    chat.append_final_item(claim, "partial").await.unwrap();
    assert_eq!(
        chat.expect_chunks("s", &[]).await.end,
        Some(failed_end("no"))
    );
}

pub(super) async fn streams_are_listed_as_they_were_opened(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let mut wanted = Vec::new();
    for word in ["b", "a", "c"] {
        let claim = chat.claim_stream(word).await;
        wanted.push(chat.append_chunks(claim, 0, &[word]).await.unwrap());
    }
    assert_eq!(chat.list_streams().await, wanted);
    wanted[1] = chat
        .finish_stream(wanted[1].claim(), failed_end("x"))
        .await
        .unwrap();
    wanted[2] = chat.cancel_stream("c").await;
    assert_eq!(chat.list_streams().await, wanted);
    wanted.remove(0);
    wanted.push(chat.open_stream("b").await.stream);
    assert_eq!(chat.list_streams().await, wanted);
}

pub(super) async fn only_so_many_are_kept_after_their_end(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let kept = chat.0.store.limits().streams.ended;
    // Opened first and still running: only ended streams are removed to make room.
    let mut running = chat.open_stream("running").await.stream;
    for n in 0..kept + 2 {
        let claim = chat.claim_stream(&n.to_string()).await;
        chat.append_chunks(claim, 0, &["x"]).await.unwrap();
        chat.finish_stream(claim, StreamEnd::Completed)
            .await
            .unwrap();
    }
    // Surplus streams are removed when one is opened, so this call brings the number down to the
    // limit.
    let last = chat.claim_stream("last").await;
    running = chat
        .append_chunks(running.claim(), 0, &["x"])
        .await
        .unwrap();
    let list = chat.list_streams().await;
    assert_eq!(list.len(), kept + 2);
    assert_eq!(list[0], running);
    let ids: Vec<StreamId> = list[1..].iter().map(|one| one.id).collect();
    let mut wanted: Vec<StreamId> = (2..kept + 2).map(|n| stream_id(&n.to_string())).collect();
    wanted.push(last.stream);
    assert_eq!(ids, wanted);
    expect_no_stream(chat.read_chunks(ReadChunks::new(stream_id("1"))).await);
    // A stream that is opened again does not count against the limit itself.
    chat.finish_stream(last, StreamEnd::Completed)
        .await
        .unwrap();
    chat.claim_stream("2").await;
    assert_eq!(chat.list_streams().await.len(), kept + 2);
}

pub(super) async fn a_conversations_streams_go_with_it(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let claim = chat.claim_stream("s").await;
    chat.append_chunks(claim, 0, &["a"]).await.unwrap();
    let Chat { store, owner, id } = &chat.0;
    store.delete_conversation(owner, id).await.unwrap();
    let late = chat.append_chunks(claim, 1, &["b"]).await.unwrap_err();
    assert!(matches!(
        late,
        Error::NotFound {
            what: EntityKind::Conversation,
            ..
        }
    ));
    // The same id again: the new conversation must not find streams of the old one, nor accept a
    // claim on them.
    let again = Streaming::start(Arc::clone(store)).await.unwrap();
    assert!(again.list_streams().await.is_empty());
    expect_no_stream(again.append_chunks(claim, 1, &["b"]).await);
}

/// A redaction removes ended streams, which may hold the redacted text; running ones hold no node
/// yet.
pub(super) async fn redaction_removes_ended_streams(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    chat.0.append_messages("main", &["secret"]).await;
    let ended = chat.claim_stream("ended").await;
    chat.append_chunks(ended, 0, &["sec", "ret"]).await.unwrap();
    chat.finish_stream(ended, StreamEnd::Completed)
        .await
        .unwrap();
    let running = chat.claim_stream("running").await;
    let running = chat.append_chunks(running, 0, &["x"]).await.unwrap();
    let redact = |nodes: Vec<NodeId>| {
        let request = RedactRequest {
            nodes,
            at_ms: NOW,
            ..RedactRequest::default()
        };
        let Chat { store, owner, id } = &chat.0;
        store.redact_content(owner, id, request)
    };
    // A redaction that is refused changes nothing, so the streams stay as well.
    redact(vec![node("never")]).await.unwrap_err();
    assert_eq!(chat.list_streams().await.len(), 2);
    redact(vec![node("secret")]).await.unwrap();
    assert_eq!(chat.list_streams().await, [running]);
}

pub(super) async fn streams_leave_the_tree_alone(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    chat.0.append_messages("main", &["a"]).await;
    // The snapshot holds the tree and its counters. Chunks are no nodes until the final item is
    // appended.
    let before = chat.0.snapshot_text().await;
    let claim = chat.claim_stream("s").await;
    chat.append_chunks(claim, 0, &["b"]).await.unwrap();
    chat.cancel_stream("s").await;
    chat.finish_stream(claim, StreamEnd::Cancelled)
        .await
        .unwrap();
    chat.claim_stream("s").await;
    chat.delete_stream("s").await.unwrap();
    assert_eq!(chat.0.snapshot_text().await, before);
}

pub(super) async fn of_many_openers_the_last_writes(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let openers = (0..16).map(|_| {
        let chat = chat.clone();
        tokio::spawn(async move {
            let claim = chat.claim_stream("s").await;
            let own = claim.epoch.0.to_string();
            for seq in 0..20 {
                // The only error allowed: somebody opened the stream later. Any other would mean a
                // chunk that is lost.
                if let Err(error) = chat.append_chunks(claim, seq, &[&own]).await {
                    assert_eq!(error.kind(), "stale_epoch");
                    return (claim, seq);
                }
            }
            (claim, 20)
        })
    });
    let mut claims = Vec::new();
    for opener in openers.collect::<Vec<_>>() {
        claims.push(opener.await.unwrap());
    }
    // The order of completion is arbitrary: the order of the store is that of the epochs.
    claims.sort_by_key(|(claim, _)| claim.epoch);
    assert!(claims.is_sorted_by(|(a, _), (b, _)| a.epoch < b.epoch));
    let (newest, written) = claims[claims.len() - 1];
    assert_eq!(written, 20);
    let own = newest.epoch.0.to_string();
    chat.expect_chunks("s", &[own.as_str(); 20]).await;
}

/// A value at the limit is allowed, one more is an error that names the limit.
pub(super) async fn every_limit_has_a_name(store: Tested) {
    let Some(chat) = Streaming::start(store).await else {
        return;
    };
    let limits = chat.0.store.limits().streams.clone();
    let over = |error: Error, name: &str| match error {
        Error::Limit { limit, max, actual } => {
            assert_eq!(limit, name);
            assert!(actual > max, "{name}: {actual} of {max}");
        }
        other => panic!("{name}: {other}"),
    };
    let long = "x".repeat(limits.chunk_bytes.max(limits.message_bytes) + 1);
    let claim = chat.claim_stream("0").await;
    let just = &long[..limits.chunk_bytes];
    chat.append_chunks(claim, 0, &[just]).await.unwrap();
    let large = chat
        .append_chunks(claim, 1, &[&long[..=limits.chunk_bytes]])
        .await;
    over(large.unwrap_err(), "stream_chunk_bytes");
    let many = vec![""; limits.append_chunks + 1];
    chat.append_chunks(claim, 1, &many[1..]).await.unwrap();
    let next = 1 + limits.append_chunks as u64;
    let more = chat.append_chunks(claim, next, &many).await;
    over(more.unwrap_err(), "stream_append_chunks");
    // One chunk of full size is stored already; the others bring the stream as near to its limit as
    // whole chunks can.
    let rest = limits.bytes / limits.chunk_bytes - 1;
    let full = chat
        .append_chunks(claim, next, &vec![just; rest])
        .await
        .unwrap();
    let next = next + rest as u64;
    let last = "x".repeat(limits.bytes - usize::try_from(full.bytes).unwrap());
    chat.append_chunks(claim, next, &[&last]).await.unwrap();
    let drop = chat.append_chunks(claim, next + 1, &["", "x"]).await;
    over(drop.unwrap_err(), "stream_bytes");
    chat.append_chunks(claim, next + 1, &[""]).await.unwrap();

    let message = failed_end(&long[..=limits.message_bytes]);
    let finished = chat.finish_stream(claim, message).await;
    over(finished.unwrap_err(), "stream_message_bytes");
    // Stream 0 runs already, so these bring the number exactly to the limit.
    for n in 1..limits.running {
        chat.claim_stream(&n.to_string()).await;
    }
    let Chat { owner, id, .. } = &chat.0;
    let one_more = chat
        .streams()
        .open_stream(owner, id, stream_id("more"), NOW);
    over(one_more.await.unwrap_err(), "streams_running");
    let claim = chat.claim_stream("0").await;
    let message = failed_end(&long[..limits.message_bytes]);
    chat.finish_stream(claim, message).await.unwrap();
    // An end makes room at once: only running streams count against the limit.
    chat.claim_stream("more").await;
}
