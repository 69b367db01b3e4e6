//! The checker of histories accepts what correct stores show, and finds each anomaly that is planted.

use std::collections::BTreeSet;
use std::sync::Arc;

use contexture_store::MemoryStore;
use contexture_store_testkit::Chat;
use contexture_store_testkit::history::{
    Anomaly, ClientOperation, HistoryClient, HistoryEvent, HistoryLog, OperationOutcome,
    OperationPhase, check_history, read_history,
};

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn begin(client: &str, operation: ClientOperation) -> HistoryEvent {
    HistoryEvent {
        client: client.to_owned(),
        phase: OperationPhase::Begin(operation),
    }
}

fn end(client: &str, outcome: OperationOutcome) -> HistoryEvent {
    HistoryEvent {
        client: client.to_owned(),
        phase: OperationPhase::End(outcome),
    }
}

fn at_tip(client: &str, text: &str) -> HistoryEvent {
    begin(client, ClientOperation::AppendAtTip(words(text)))
}

fn appended(client: &str, first: u64) -> HistoryEvent {
    let replayed = false;
    end(client, OperationOutcome::Appended { first, replayed })
}

fn read(client: &str, first: u64, text: &str) -> [HistoryEvent; 2] {
    let words = words(text);
    [
        begin(client, ClientOperation::Read),
        end(client, OperationOutcome::Read { first, words }),
    ]
}

fn listed(client: &str, nodes: u64) -> [HistoryEvent; 2] {
    [
        begin(client, ClientOperation::List),
        end(client, OperationOutcome::Listed { nodes }),
    ]
}

/// A correct history: `a` appends two items, `b` one behind them, and both see all of it.
fn correct() -> Vec<HistoryEvent> {
    let behind = ClientOperation::AppendBehind(Some("a2".to_owned()), words("b1"));
    let mut events = vec![at_tip("a", "a1 a2"), appended("a", 1)];
    events.extend([begin("b", behind), appended("b", 3)]);
    events.extend(read("a", 1, "a1 a2 b1"));
    events.extend(listed("b", 3));
    events
}

#[track_caller]
fn expect_anomalies(events: &[HistoryEvent], path: &str, expected: &[Anomaly]) {
    let found = check_history(events, &words(path)).anomalies;
    assert_eq!(found, BTreeSet::from_iter(expected.iter().cloned()));
}

fn with(more: impl IntoIterator<Item = HistoryEvent>) -> Vec<HistoryEvent> {
    let mut events = correct();
    events.extend(more);
    events
}

#[test]
fn a_correct_history_has_no_anomaly() {
    expect_anomalies(&correct(), "a1 a2 b1", &[]);
    // Operations at the same time may see each other or not.
    let mut events = vec![begin("c", ClientOperation::Read), at_tip("a", "a1")];
    events.push(appended("a", 1));
    let nothing = OperationOutcome::Read {
        first: 1,
        words: vec![],
    };
    events.push(end("c", nothing));
    expect_anomalies(&events, "a1", &[]);
    // What is not acknowledged may be stored or not, and is stored once though it is repeated.
    let unknown = || end("c", OperationOutcome::Unknown);
    let lost = with([at_tip("c", "c1 c2"), unknown()]);
    expect_anomalies(&lost, "a1 a2 b1", &[]);
    expect_anomalies(&lost, "a1 a2 b1 c1 c2", &[]);
    let replayed = OperationOutcome::Appended {
        first: 4,
        replayed: true,
    };
    let mut repeated = lost;
    repeated.extend([
        at_tip("d", "d1"),
        appended("d", 6),
        at_tip("c", "c1 c2"),
        end("c", replayed),
    ]);
    expect_anomalies(&repeated, "a1 a2 b1 c1 c2 d1", &[]);
    // A killed process leaves an operation open.
    expect_anomalies(&with([at_tip("c", "c1")]), "a1 a2 b1 c1", &[]);
}

#[test]
fn anomalies_of_the_path_are_found() {
    let word = |word: &str| word.to_owned();
    let phantom = Anomaly::Phantom { word: word("x") };
    expect_anomalies(&correct(), "a1 a2 b1 x", &[phantom]);
    let doubled = Anomaly::Doubled { word: word("b1") };
    let found = check_history(&correct(), &words("a1 a2 b1 b1")).anomalies;
    assert!(found.contains(&doubled), "{found:?}");
    let more = with([at_tip("c", "c1"), appended("c", 4)]);
    expect_anomalies(&more, "a1 a2 b1", &[Anomaly::Lost { word: word("c1") }]);
    let misplaced = Anomaly::Misplaced {
        word: word("c1"),
        told: 5,
    };
    let more = with([at_tip("c", "c1"), appended("c", 5)]);
    expect_anomalies(&more, "a1 a2 b1 c1", &[misplaced]);
    let torn = Anomaly::Torn { word: word("c1") };
    let unknown = with([at_tip("c", "c1 c2")]);
    for path in ["a1 a2 b1 c1", "a1 a2 b1 c2", "a1 a2 b1 c2 c1"] {
        expect_anomalies(&unknown, path, std::slice::from_ref(&torn));
    }
    let refused = with([at_tip("c", "c1"), end("c", OperationOutcome::Refused)]);
    let stored = Anomaly::RefusedButStored { word: word("c1") };
    expect_anomalies(&refused, "a1 a2 b1 c1", &[stored]);
    let behind = ClientOperation::AppendBehind(Some("a2".to_owned()), words("c1"));
    let wrong = Anomaly::WrongHead { word: word("c1") };
    expect_anomalies(&with([begin("c", behind)]), "a1 a2 b1 c1", &[wrong]);
    // Two that know the same head, as after a lost update.
    let empty = ClientOperation::AppendBehind(None, words("c1"));
    let wrong = Anomaly::WrongHead { word: word("c1") };
    let more = with([begin("c", empty), appended("c", 4)]);
    expect_anomalies(&more, "a1 a2 b1 c1", &[wrong]);
}

#[test]
fn anomalies_of_time_are_found() {
    let order = Anomaly::OutOfOrder {
        word: "b1".to_owned(),
        floor: 3,
        depth: 1,
    };
    let events = [
        at_tip("a", "a1 a2"),
        appended("a", 2),
        at_tip("b", "b1"),
        appended("b", 1),
    ];
    expect_anomalies(&events, "b1 a1 a2", &[order]);
    let client = || "a".to_owned();
    let stale = Anomaly::StaleRead {
        client: "c".to_owned(),
        floor: 3,
        seen: 2,
    };
    expect_anomalies(&with(read("c", 1, "a1 a2")), "a1 a2 b1", &[stale]);
    let back = Anomaly::WentBack {
        client: client(),
        floor: 3,
        seen: 2,
    };
    expect_anomalies(&with(listed("a", 2)), "a1 a2 b1", &[back]);
    let own = Anomaly::OwnWriteMissing {
        client: "b".to_owned(),
        floor: 3,
        seen: 2,
    };
    expect_anomalies(&with(read("b", 2, "a2")), "a1 a2 b1", &[own]);
}

#[test]
fn anomalies_of_reads_are_found() {
    let client = "c".to_owned();
    let word = "x".to_owned();
    let dirty = Anomaly::DirtyRead {
        client: client.clone(),
        word,
        depth: 4,
    };
    expect_anomalies(&with(read("c", 3, "b1 x")), "a1 a2 b1", &[dirty]);
    // What was read at one place and is at another in the end.
    let word = "b1".to_owned();
    let moved = Anomaly::DirtyRead {
        client: client.clone(),
        word,
        depth: 4,
    };
    let found = check_history(&with(read("c", 4, "b1")), &words("a1 a2 b1")).anomalies;
    assert!(found.contains(&moved), "{found:?}");
    let word = "c1".to_owned();
    let early = Anomaly::ReadBeforeWrite { client, word };
    let mut events = with(read("c", 4, "c1"));
    events.extend([at_tip("d", "c1"), end("d", OperationOutcome::Unknown)]);
    expect_anomalies(&events, "a1 a2 b1 c1", &[early]);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_the_in_memory_store_show_no_anomaly() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history");
    let log = Arc::new(HistoryLog::open(&file));
    let chat = Chat::start(Arc::new(MemoryStore::new())).await;
    let clients: Vec<_> = (0..8_u64)
        .map(|number| {
            let mut client =
                HistoryClient::new(chat.clone(), Arc::clone(&log), format!("c{number}"));
            tokio::spawn(async move {
                for step in 0..50 {
                    // Any numbers will do: the threads decide what happens between them.
                    client
                        .run_operation((number * 7 + step * 5) ^ (step << 8))
                        .await;
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let checked = check_history(&read_history(&file), &chat.path_words().await);
    assert_eq!(checked.anomalies, BTreeSet::new());
    assert_eq!((checked.operations, checked.unknown), (400, 0));
    assert!(checked.acknowledged > 100, "{checked:?}");
}
