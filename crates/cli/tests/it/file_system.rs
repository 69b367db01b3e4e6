//! Databases on file systems with little room or without the right to write, and a copy that is cut off.
//!
//! Linux gives each of them to a child of the test only, with its user namespaces. A machine that forbids these says so.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use contexture::Owner;
use contexture::ir::ConversationId;
use contexture::store::{ConversationUpdate, Store as _};
use contexture::store_sqlite::SqliteStore;

use crate::command::{Place, example};
use crate::operating::checked;

/// The command that runs another as a user without rights over other users' files.
const WITHOUT_RIGHTS: [&str; 2] = ["unshare", "--user"];
/// The same with the right to mount file systems that only it sees.
const WITH_MOUNTS: [&str; 4] = ["unshare", "--user", "--map-root-user", "--mount"];

/// Whether this machine can do what a test needs; says so if not. In a soak it must.
#[expect(clippy::print_stdout, reason = "a test that cannot run says so")]
fn can_run(wrapper: &[&str], what: &str) -> bool {
    let tried = Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg("true")
        .output();
    let can = tried.is_ok_and(|tried| tried.status.success());
    assert!(
        can || std::env::var_os("CONTEXTURE_SOAK").is_none(),
        "{what}"
    );
    if !can {
        println!("NOT TESTED: {what}; this machine has no user namespaces");
    }
    can
}

/// Runs the command in a place, under another one.
fn run_under(place: &Place, wrapper: &[&str], line: &str) -> Output {
    Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg(assert_cmd::cargo::cargo_bin!("contexture"))
        .args(line.split_whitespace())
        .current_dir(place.path("."))
        .env("TZ", "UTC")
        .output()
        .unwrap()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The state of a check of `doctor`, and what it found.
fn find_check(report: &[u8], name: &str) -> (String, String) {
    let report = serde_json::from_slice(report).unwrap();
    let (state, found) = checked(&report, name);
    (state.to_owned(), found.to_owned())
}

#[test]
fn a_protected_database_can_be_looked_at() {
    if !can_run(&WITHOUT_RIGHTS, "a database without the right to write") {
        return;
    }
    let place = Place::new();
    let session = example("marshmallow-1867.traj");
    place.ok(&format!("import {} --conversation kept", session.display()));
    let node = place.json("log kept --json")["entries"][0]["id"].clone();
    let node = node.as_str().unwrap();
    let folder = place.path("protected");
    fs::create_dir(&folder).unwrap();
    place.ok("backup protected/kept.db");
    set_mode(&folder.join("kept.db"), 0o400);
    set_mode(&folder, 0o500);
    let lines = [
        "conversations --json".to_owned(),
        "log kept --json".to_owned(),
        format!("show kept {node} --json"),
    ];
    let shown: Vec<_> = lines
        .iter()
        .map(|line| {
            let line = format!("--db protected/kept.db {line}");
            (line.clone(), run_under(&place, &WITHOUT_RIGHTS, &line))
        })
        .collect();
    let refused = run_under(
        &place,
        &WITHOUT_RIGHTS,
        "--db protected/kept.db branch switch kept main",
    );
    // The folder is removed with the place.
    set_mode(&folder, 0o700);
    for (line, run) in shown {
        assert!(run.status.success(), "{line}: {run:?}");
        assert!(!run.stdout.is_empty(), "{line}: {run:?}");
        let writable = place.ok(&line);
        assert_eq!(String::from_utf8_lossy(&run.stdout), writable, "{line}");
    }
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success(), "{said}");
    assert!(said.contains("cannot be written"), "{said}");
}

#[test]
fn doctor_warns_of_little_room() {
    if !can_run(&WITH_MOUNTS, "a file system with little room") {
        return;
    }
    let place = Place::new();
    fs::create_dir(place.path("small")).unwrap();
    let script = "mount -t tmpfs -o size=32m tmpfs small && \"$0\" --db small/a.db import c.json >&2 && exec \"$0\" \"$@\"";
    place.write("c.json", r#"[{"role":"user","content":"hi"}]"#);
    let wrapper = [&WITH_MOUNTS[..], &["sh", "-c", script]].concat();
    let run = run_under(&place, &wrapper, "--db small/a.db doctor --json");
    let (state, found) = find_check(&run.stdout, "disk");
    assert_eq!(state, "warn", "{found}");
    assert!(found.ends_with(" MiB free"), "{found}");
}

#[test]
fn doctor_warns_of_few_open_files() {
    let place = Place::new();
    place.write("c.toml", "[server]\nlisten = \"127.0.0.1:0\"\n");
    let wrapper = ["sh", "-c", "ulimit -n 100; exec \"$0\" \"$@\""];
    let run = run_under(
        &place,
        &wrapper,
        "--db memory: doctor --json --config c.toml",
    );
    let (state, found) = find_check(&run.stdout, "open files");
    assert_eq!((state.as_str(), found.as_str()), ("warn", "100 at a time"));
}

#[tokio::test]
async fn doctor_warns_of_a_clock_that_is_behind() {
    let place = Place::new();
    place.write("c.json", r#"[{"role":"user","content":"hi"}]"#);
    place.ok("--db here.db import c.json --conversation chat");
    let examine = || {
        let report = place.run("--db here.db doctor --json").out;
        find_check(report.as_bytes(), "clock and database")
    };
    assert_eq!(examine().0, "ok");
    let store = SqliteStore::open(place.path("here.db")).unwrap();
    let chat = ConversationId::new("chat").unwrap();
    let owner = Owner::local();
    let stored = store.load_conversation(&owner, &chat).await.unwrap();
    let tomorrow = ConversationUpdate::new(stored.updated_ms + 86_400_000);
    let updated = store.update_conversation(&owner, &chat, tomorrow);
    updated.await.unwrap();
    drop(store);
    let (state, found) = examine();
    assert_eq!(state, "warn", "{found}");
    assert!(
        found.starts_with("something stored is of a time 8"),
        "{found}"
    );
}

/// Bytes that do not compress: xorshift.
fn scrambled_bytes(count: usize, mut seed: u64) -> Vec<u8> {
    let words = std::iter::repeat_with(|| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed.to_le_bytes()
    });
    words.take(count / 8).flatten().collect()
}

#[tokio::test]
async fn a_backup_that_was_killed_is_repeated() {
    let place = Place::new();
    place.write("c.json", r#"[{"role":"user","content":"hi"}]"#);
    place.ok("--db here.db import c.json --conversation chat");
    let (owner, chat) = (Owner::local(), ConversationId::new("chat").unwrap());
    let store = SqliteStore::open(place.path("here.db")).unwrap();
    // Enough that the copy takes a while.
    for seed in 1..=4 {
        let bytes = scrambled_bytes(16 << 20, seed);
        let put = store.put_blob(&owner, &chat, bytes.into());
        put.await.unwrap();
    }
    drop(store);
    fs::create_dir(place.path("copies")).unwrap();
    let parts = || {
        let names = fs::read_dir(place.path("copies")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains(".part")).count()
    };
    // Until one is killed in the middle: on a busy machine it may be over first.
    while parts() == 0 {
        let _ = fs::remove_file(place.path("copies/kept.db"));
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("contexture"))
            .args(["--db", "here.db", "backup", "copies/kept.db"])
            .current_dir(place.path("."))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while parts() == 0 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(!place.path("copies/kept.db").exists());
    place.ok("--db here.db backup copies/kept.db");
    assert_eq!(parts(), 0);
    place.ok("--db copies/kept.db verify");
    assert_eq!(
        place.json("--db copies/kept.db log chat --json"),
        place.json("--db here.db log chat --json")
    );
}
