//! What the operating system refuses: a typed error names it, and nothing is damaged.

use std::path::Path;
use std::sync::Arc;

use contexture_store::{Error, StorageFault};
use contexture_store_sqlite::SqliteStore;
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::raw_item;
use rusqlite::Connection;

use crate::children::{Process, chat, parent_task, report_line};
use crate::own_mounts;

/// How an attempt to open ends.
fn attempt(path: &Path) -> String {
    match SqliteStore::open(path) {
        Ok(_) => "opened".to_owned(),
        Err(Error::Storage {
            path: named, fault, ..
        }) => {
            assert_eq!(named, path);
            format!("{fault:?}")
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// The child: opens and says how that ended.
#[test]
#[ignore = "the process that the tests of this file start"]
fn opens() {
    if let Some((path, _)) = parent_task() {
        report_line(&attempt(&path));
    }
}

async fn make(path: &Path) {
    let chat = Chat::start(Arc::new(SqliteStore::open(path).unwrap())).await;
    chat.append_messages("main", &["a"]).await;
}

#[cfg(target_os = "linux")]
#[test]
fn a_read_only_file_system() {
    if let Some(why) = own_mounts::missing() {
        println!("NOT TESTED: a read-only file system; {why}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let script =
        "mount -t tmpfs tmpfs \"$0\" && \"$@\" && mount -o remount,ro \"$0\" && exec \"$@\"";
    let child = Process::start_under(
        &own_mounts::wrapper(directory.path(), script),
        "refused::opens",
        &directory.path().join("read-only.db"),
        "",
    );
    assert_eq!(child.finish(), ["opened", "ReadOnly"]);
}

#[cfg(unix)]
#[tokio::test]
async fn files_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    if let Some(why) = own_mounts::missing() {
        println!("NOT TESTED: files without permission; {why}");
        return;
    }
    for (file, directory, wanted) in [
        (0o400, 0o700, "ReadOnly"),
        (0o000, 0o700, "CannotOpen"),
        (0o600, 0o500, "ReadOnly"),
        (0o600, 0o000, "CannotOpen"),
        (0o600, 0o700, "opened"),
    ] {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let path = inner.join("contexture.db");
        make(&path).await;
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        set(&path, file);
        set(&inner, directory);
        let wrapper = own_mounts::without_rights();
        let child = Process::start_under(&wrapper, "refused::opens", &path, "");
        let told = child.finish();
        set(&inner, 0o700);
        set(&path, 0o600);
        assert_eq!(told, [wanted], "file {file:o}, directory {directory:o}");
        chat(&path).expect_path("main", &["a"]).await;
    }
}

/// The child: may open few files at once.
#[tokio::test]
#[ignore = "the process that `too_few_file_descriptors` starts"]
async fn runs_out_of_files() {
    let Some((path, _)) = parent_task() else {
        return;
    };
    let grab = || std::fs::File::open("/dev/null");
    let chat = chat(&path);
    let mut taken: Vec<_> = std::iter::from_fn(|| grab().ok()).collect();
    assert!(!taken.is_empty());
    // The writer has its files, a reader gets none.
    chat.append_messages("main", &["b"]).await;
    match chat
        .store
        .list_refs(&chat.owner, &chat.id)
        .await
        .unwrap_err()
    {
        Error::Storage { fault, .. } => assert_eq!(fault, StorageFault::CannotOpen),
        error => panic!("{error:?}"),
    }
    // With each one more another file is opened a little further.
    let other = path.with_file_name("other.db");
    let mut ends = Vec::new();
    while ends.last().is_none_or(|end| end != "opened") {
        ends.push(attempt(&other));
        let freed = taken.pop();
        assert!(
            freed.is_some() || ends.ends_with(&["opened".into()]),
            "{ends:?}"
        );
    }
    report_line(&ends.join(" "));
    drop(taken);
    chat.append_messages("main", &["c"]).await;
    chat.expect_path("main", &["a", "b", "c"]).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn too_few_file_descriptors() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("files.db");
    make(&path).await;
    // 13 more than whoever runs the tests left open.
    let limit = "ulimit -n $(( $(ls /proc/$$/fd | wc -l) + 13 )) && exec \"$0\" \"$@\"";
    let limited = ["sh", "-c", limit].map(Into::into);
    let child = Process::start_under(&limited, "refused::runs_out_of_files", &path, "");
    let told = child.finish().concat();
    let mut ends: Vec<&str> = told.split(' ').collect();
    assert_eq!(ends.pop(), Some("opened"));
    assert!(!ends.is_empty());
    assert!(ends.iter().all(|end| *end == "CannotOpen"), "{told}");
}

/// A link to a database is that database: both names share one log.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_a_database() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("data")).unwrap();
    let path = directory.path().join("data/real.db");
    let link = directory.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    // Even one that leads nowhere yet.
    make(&link).await;
    let (real, linked) = (chat(&path), chat(&link));
    for n in 0..20 {
        let chat = if n % 2 == 0 { &real } else { &linked };
        chat.append_to_tip("main", vec![raw_item(&n.to_string(), "{}")])
            .await
            .unwrap();
    }
    assert_eq!(
        real.branch_record("main").await,
        linked.branch_record("main").await
    );
    assert_eq!(real.branch_record("main").await.nodes, 21);
    let beside = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(beside, 2, "a log lies beside the link");
    drop((real, linked));
    let conn = Connection::open(&path).unwrap();
    let verdict: String = conn
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");
}
