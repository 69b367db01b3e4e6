//! Wrecked files: pages that are gone or stand twice, files that end early, logs that are missing or
//! belong to another database, headers with other bytes.
//!
//! Whatever became of a file, opening, reading, checking and writing give an error or what somebody
//! once wrote; nothing panics.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use contexture_store::{Error, ReadRequest, StorageFault, Store, verify_conversation};
use contexture_store_sqlite::{SqliteOptions, SqliteStore, Synchronous};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{branch_end, item};
use rusqlite::Connection;

const PAGE: usize = 8192;
const CHATS: [&str; 3] = ["chat-a", "chat-b", "chat-c"];

fn store(path: &Path) -> Result<Arc<dyn Store>, Error> {
    let options = SqliteOptions {
        synchronous: Synchronous::Normal,
        ..SqliteOptions::default()
    };
    Ok(Arc::new(SqliteStore::open_with(path, options)?))
}

/// A small generator: the same wrecks in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// A database of several conversations, all of it in the one file; gives every text that is in it.
async fn written(path: &Path, salt: &str) -> BTreeSet<Arc<str>> {
    let store = store(path).unwrap();
    let mut texts = BTreeSet::new();
    for id in CHATS {
        let chat = Chat::start_as(Arc::clone(&store), "ada", id).await;
        let items: Vec<_> = (0..150)
            .map(|n| {
                let numbers = (0..n * 3).map(|m| format!(" {}", n * m));
                item(&format!("{salt} {id} {n}{}", numbers.collect::<String>()))
            })
            .collect();
        texts.extend(items.iter().map(|item| Arc::clone(&item.json)));
        chat.append_to_tip("main", items).await.unwrap();
    }
    texts
}

fn settle(path: &Path) -> Vec<u8> {
    let conn = Connection::open(path).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(conn);
    std::fs::read(path).unwrap()
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(ending);
    name.into()
}

fn clear(path: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(beside(path, ending));
    }
}

fn is_no_panic(error: &Error) -> bool {
    !matches!(
        error,
        Error::Storage {
            fault: StorageFault::Panicked,
            ..
        }
    )
}

/// How many conversations of the wreck can be read in whole.
async fn survey(path: &Path, texts: &BTreeSet<Arc<str>>, what: &str) -> usize {
    let store = match store(path) {
        Ok(store) => store,
        Err(error) => {
            assert!(is_no_panic(&error), "{what}: {error:?}");
            return 0;
        }
    };
    let mut whole = 0;
    for id in CHATS {
        let chat = Chat {
            store: Arc::clone(&store),
            owner: "ada".parse().unwrap(),
            id: id.parse().unwrap(),
        };
        match chat
            .read_path(ReadRequest::whole_path(branch_end("main")))
            .await
        {
            Ok(page) => {
                for node in &page.nodes {
                    assert!(texts.contains(&node.json), "{what}: nobody wrote this");
                }
                whole += usize::from(page.nodes.len() == 150);
            }
            Err(error) => assert!(is_no_panic(&error), "{what}: {error:?}"),
        }
        let upkeep = store.maintenance().unwrap();
        if let Err(error) = verify_conversation(upkeep, &chat.owner, &chat.id).await {
            assert!(is_no_panic(&error), "{what}: {error:?}");
        }
        if let Err(error) = chat.append_to_tip("main", vec![item("and on")]).await {
            assert!(is_no_panic(&error), "{what}: {error:?}");
        }
    }
    if let Err(error) = store.maintenance().unwrap().verify_medium().await {
        assert!(is_no_panic(&error), "{what}: {error:?}");
    }
    whole
}

fn dose(short: usize, long: usize) -> usize {
    match std::env::var_os("CONTEXTURE_SOAK") {
        Some(_) => long,
        None => short,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrecked_file_gives_errors_or_what_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wreck.db");
    let texts = written(&path, "one").await;
    let good = settle(&path);
    clear(&path);
    let pages = good.len() / PAGE;
    let mut dice = Dice(20_261_121);
    let (mut hurt, mut unhurt) = (0, 0);
    for round in 0..dose(40, 2000) {
        let mut bad = good.clone();
        let page = dice.below(pages) * PAGE;
        let what = match round % 5 {
            0 => {
                bad[page..page + PAGE].fill(0);
                "a page of zeros"
            }
            1 => {
                let other = dice.below(pages) * PAGE;
                bad.copy_within(other..other + PAGE, page);
                "a page twice"
            }
            2 => {
                bad.truncate(dice.below(good.len()));
                "a file that ends early"
            }
            3 => {
                bad[dice.below(100)] ^= 1 << dice.below(8);
                "a bit of the header"
            }
            _ => {
                let from = page + dice.below(PAGE - 64);
                for byte in &mut bad[from..from + 64] {
                    *byte = dice.below(256) as u8;
                }
                "64 bytes of noise"
            }
        };
        std::fs::write(&path, &bad).unwrap();
        let what = format!("{what} at {page}, round {round}");
        match survey(&path, &texts, &what).await {
            3 => unhurt += 1,
            _ => hurt += 1,
        }
        clear(&path);
    }
    assert!(hurt > 0 && unhurt > 0, "{hurt} hurt, {unhurt} not");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_gone_or_anothers() {
    let directory = tempfile::tempdir().unwrap();
    let (path, other) = (directory.path().join("a.db"), directory.path().join("b.db"));
    let mut texts = written(&path, "one").await;
    let settled = settle(&path);
    texts.extend(written(&other, "two").await);
    settle(&other);
    texts.insert(Arc::clone(&item("and on").json));
    // Both have a log with the latest write in it.
    let mut logs = Vec::new();
    for path in [&path, &other] {
        let store = store(path).unwrap();
        let chat = Chat {
            store,
            owner: "ada".parse().unwrap(),
            id: CHATS[0].parse().unwrap(),
        };
        chat.append_messages("main", &["latest"]).await;
        logs.push(std::fs::read(beside(path, "-wal")).unwrap());
    }
    texts.insert(Arc::clone(&item("latest").json));
    clear(&path);
    std::fs::write(&path, &settled).unwrap();
    // Gone: what was settled is there.
    assert_eq!(survey(&path, &texts, "no log").await, 3);
    for (log, what) in logs.iter().zip(["its own log", "a log of another"]) {
        for end in [log.len(), log.len() / 2, 40] {
            clear(&path);
            std::fs::write(&path, &settled).unwrap();
            std::fs::write(beside(&path, "-wal"), &log[..end]).unwrap();
            survey(&path, &texts, what).await;
        }
    }
}
