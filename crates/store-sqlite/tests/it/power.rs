//! A power cut at any instant loses nothing that was acknowledged.
//!
//! A writer's calls to the operating system are recorded, from the making of the database to its
//! closing. Then the power is cut after any of them: of what was not synced by then, nothing
//! survives, or some writes, or some sectors. Whatever is found is opened as after any crash.
//!
//! What is not here: disks that lie about syncs, except to show that the test would notice.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use contexture_store::{Error, ReadRequest, StorageFault};
use contexture_store_sqlite::{SqliteOptions, SqliteStore, Synchronous};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{branch_end, node, raw_item};
use rusqlite::Connection;

use crate::children::{Process, parent_task};
use crate::disk::{Disk, Survives, Syncs};
use crate::random_operations::Chance;
use crate::strace::{self, Call, SAYINGS};

/// The child: makes a database and a conversation, appends pairs, closes, and says what was
/// acknowledged.
#[tokio::test]
#[ignore = "the process that `power_cuts_lose_nothing` records"]
async fn writes_while_it_is_watched() {
    let Some((path, task)) = parent_task() else {
        return;
    };
    let (synchronous, count) = task.split_once(' ').unwrap();
    let synchronous = match synchronous {
        "full" => Synchronous::Full,
        _ => Synchronous::Normal,
    };
    let options = SqliteOptions {
        synchronous,
        ..SqliteOptions::default()
    };
    let mut sayings = std::fs::File::create_new(path.with_file_name(SAYINGS)).unwrap();
    let mut say = |line: String| sayings.write_all(line.as_bytes()).unwrap();
    let store = SqliteStore::open_with(&path, options).unwrap();
    let chat = Chat::start(Arc::new(store)).await;
    say("made\n".to_owned());
    let mut chance = Chance::of(1);
    for n in 0..count.parse().unwrap() {
        let first = format!("n{n}");
        // A few bytes, and now and then several pages of them.
        let length = if n % 8 == 7 { 3000 } else { chance.below(100) };
        let noise: String = (0..length)
            .map(|_| format!("{:x}", chance.below(u64::MAX)))
            .collect();
        let pair = vec![
            raw_item(&first, &noise),
            raw_item(&format!("{first}!"), "{}"),
        ];
        let done = chat.append_to_tip("main", pair).await.unwrap();
        say(format!("{} {first}\n", done.first));
    }
}

/// Records a writer of so many pairs.
fn record(synchronous: &str, count: usize) -> Vec<Call> {
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().canonicalize().unwrap().join("watched");
    std::fs::create_dir(&inner).unwrap();
    let trace = directory.path().join("trace");
    let writer = Process::start_under(
        &strace::wrapper(&trace),
        "power::writes_while_it_is_watched",
        &inner.join("power.db"),
        &format!("{synchronous} {count}"),
    );
    writer.finish();
    let calls = strace::read(&trace, &inner);
    let said = calls.iter().filter(|call| matches!(call, Call::Say(_)));
    assert_eq!(said.count(), count + 1);
    let removes_log = |call: &Call| matches!(call, Call::Remove(name) if name == "power.db-wal");
    assert!(calls.iter().any(removes_log), "the store was not closed");
    // What is stored is in the database's own files and nowhere else. Making the tables sorts and
    // takes back where SQLite likes.
    let mut made = calls
        .iter()
        .skip_while(|call| !matches!(call, Call::Say(_)));
    let elsewhere = made.find_map(|call| match call {
        Call::Elsewhere(path) => Some(path.as_str()),
        _ => None,
    });
    assert_eq!(elsewhere, None);
    calls
}

/// What was made of a disk after a power cut.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// All that was acknowledged is there, and the store goes on.
    Whole,
    /// So many acknowledged pairs are not there; the database is sound.
    Lost(usize),
    /// The database cannot be trusted.
    Damaged(String),
}

/// Opens what was found.
async fn judge(found: &BTreeMap<String, Vec<u8>>, said: &[&str]) -> Verdict {
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in found.iter().filter(|(name, _)| *name != SAYINGS) {
        std::fs::write(directory.path().join(name), bytes).unwrap();
    }
    let path = directory.path().join("power.db");
    match look(&path, said).await {
        Ok(lost) => match sound(&path) {
            Ok(()) if lost == 0 => Verdict::Whole,
            Ok(()) => Verdict::Lost(lost),
            Err(why) => Verdict::Damaged(why),
        },
        Err(error) => Verdict::Damaged(error.to_string()),
    }
}

/// How many of the acknowledged pairs are not there.
async fn look(path: &Path, said: &[&str]) -> Result<usize, Error> {
    let chat = Chat {
        store: Arc::new(SqliteStore::open(path)?),
        owner: "ada".parse().unwrap(),
        id: "chat".parse().unwrap(),
    };
    let page = match chat
        .read_path(ReadRequest::whole_path(branch_end("main")))
        .await
    {
        Ok(page) => page,
        Err(Error::NotFound { .. }) => return Ok(said.len()),
        Err(error) => return Err(error),
    };
    let ids: Vec<_> = page.nodes.iter().map(|node| node.id).collect();
    let is_there = |line: &&&str| match line.split_once(' ') {
        None => true,
        Some((first, word)) => {
            let first: usize = first.parse().unwrap();
            ids.get(first - 1..=first) == Some(&[node(word), node(&format!("{word}!"))])
        }
    };
    let lost = said.len() - said.iter().filter(is_there).count();
    let half = ids.len() % 2 == 1;
    chat.append_to_tip("main", vec![raw_item("after", "{}")])
        .await?;
    let gap = chat.branch_record("main").await.nodes != ids.len() as u64 + 1;
    if half || gap {
        return Err(Error::Storage {
            path: path.to_owned(),
            fault: StorageFault::Corrupt,
            source: Some("half of a pair, or a gap".into()),
        });
    }
    Ok(lost)
}

fn sound(path: &Path) -> Result<(), String> {
    let conn = Connection::open(path).map_err(|error| error.to_string())?;
    let verdict = conn.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    match verdict {
        Ok(verdict) if verdict == "ok" => Ok(()),
        Ok(why) => Err(why),
        Err(error) => Err(error.to_string()),
    }
}

/// What became of all cuts.
#[derive(Debug, Default)]
struct Tally {
    cuts: usize,
    whole: usize,
    lost: usize,
    most: usize,
    damaged: Vec<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} power cuts: {} whole, {} lost acknowledged pairs (up to {}), {} damaged",
            self.cuts,
            self.whole,
            self.lost,
            self.most,
            self.damaged.len()
        )
    }
}

/// Cuts the power so many times, each in three ways.
async fn replay(calls: &[Call], syncs: Syncs, cuts: usize) -> Tally {
    let mut chance = Chance::of_run();
    let length = calls.len() as u64;
    let mut moments: Vec<usize> = (0..cuts)
        .map(|_| usize::try_from(1 + chance.below(length)).unwrap())
        .collect();
    moments.sort_unstable();
    let (mut disk, mut said, mut done) = (Disk::new(syncs), Vec::new(), 0);
    let mut tally = Tally::default();
    for moment in moments {
        for call in &calls[done..moment] {
            disk.carry_out(call);
            if let Call::Say(line) = call {
                said.push(line.as_str());
            }
        }
        done = moment;
        for survives in Survives::ALL {
            tally.cuts += 1;
            match judge(&disk.cut(survives, &mut chance), &said).await {
                Verdict::Whole => tally.whole += 1,
                Verdict::Lost(lost) => {
                    tally.lost += 1;
                    tally.most = tally.most.max(lost);
                }
                Verdict::Damaged(why) => {
                    tally
                        .damaged
                        .push(format!("call {moment}, {survives:?}: {why}"));
                }
            }
        }
    }
    tally
}

#[tokio::test(flavor = "multi_thread")]
async fn power_cuts_lose_nothing() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    if let Some(why) = strace::missing() {
        assert!(!soak, "{why}");
        println!("NOT TESTED: what a power cut leaves; {why}");
        return;
    }
    let (pairs, cuts) = if soak { (600, 400) } else { (150, 6) };
    let full = record("full", pairs);
    let tally = replay(&full, Syncs::Obeyed, cuts).await;
    println!("synchronous = full: {tally}");
    assert_eq!(tally.whole, tally.cuts, "{tally:?}");
    // The same calls on a disk that does not sync, and a writer that does not ask for it: if these
    // survived too, nothing would have been tested.
    let tally = replay(&full, Syncs::Ignored, cuts).await;
    println!("the same, no sync obeyed: {tally}");
    assert!(tally.lost > 0, "{tally:?}");
    assert!(!(soak && tally.damaged.is_empty()), "{tally:?}");
    let normal = record("normal", pairs);
    let tally = replay(&normal, Syncs::Obeyed, cuts).await;
    println!("synchronous = normal: {tally}");
    assert!(tally.lost > 0, "{tally:?}");
    assert_eq!(tally.damaged, Vec::<String>::new());
}
