//! Several processes write one branch of one file: nothing is lost, doubled or out of order, and
//! nobody is turned away.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use contexture_ir::NodeId;
use contexture_store::{AppendAt, AppendRequest, Error};
use contexture_store_sqlite::SqliteStore;
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, branch, item, node, on};

const DATABASE: &str = "CONTEXTURE_TEST_DATABASE";
const SHARE: &str = "CONTEXTURE_TEST_SHARE";

fn chat(path: &Path) -> Chat {
    Chat {
        store: Arc::new(SqliteStore::open(path).unwrap()),
        owner: "ada".parse().unwrap(),
        id: "chat".parse().unwrap(),
    }
}

/// The child: says that it is ready, waits for a word, appends its share and says at what depths.
/// Even shares go after whatever the head is, odd ones after the head they know.
#[tokio::test]
#[ignore = "the process that `many_processes_write_one_branch` starts"]
async fn appends_its_share() {
    let Some(path) = std::env::var_os(DATABASE) else {
        return;
    };
    let share = std::env::var(SHARE).unwrap();
    let (number, count) = share.split_once('/').unwrap();
    let (number, count): (usize, usize) = (number.parse().unwrap(), count.parse().unwrap());
    let chat = chat(Path::new(&path));
    println!("ready");
    std::io::stdin().read_exact(&mut [0]).unwrap();
    let mut head = None;
    for n in 0..count {
        let word = format!("{number} {n}");
        let depth = loop {
            let at = match number % 2 {
                0 => Chat::at_tip("main"),
                _ => AppendAt::Head {
                    branch: branch("main"),
                    head,
                },
            };
            let request = AppendRequest::new(at, vec![item(&word)], NOW);
            match chat.append(request).await {
                Ok(done) => {
                    head = done.head;
                    break done.depth;
                }
                Err(Error::HeadMoved { actual, .. }) => head = actual,
                Err(error) => panic!("{word}: {error}"),
            }
        };
        println!("acknowledged {word} {depth}");
    }
}

fn start(path: &Path, number: usize, count: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::appends_its_share"])
        .args(["--ignored", "--nocapture", "--test-threads=1"])
        .env(DATABASE, path)
        .env(SHARE, format!("{number}/{count}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn many_processes_write_one_branch() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let (processes, count) = if soak { (32, 125) } else { (8, 60) };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shared.db");
    let chat = Chat::start(chat(&path).store).await;
    let mut children: Vec<Child> = (0..processes).map(|n| start(&path, n, count)).collect();
    let mut outputs = Vec::new();
    for child in &mut children {
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while !lines.next().unwrap().unwrap().ends_with("ready") {}
        outputs.push(lines);
    }
    for child in &mut children {
        child.stdin.take().unwrap().write_all(b"g").unwrap();
    }
    let mut acknowledged: BTreeMap<u64, NodeId> = BTreeMap::new();
    for (mut child, output) in children.into_iter().zip(outputs) {
        for line in output.map_while(Result::ok) {
            if let Some((_, told)) = line.split_once("acknowledged ") {
                let (word, depth) = told.rsplit_once(' ').unwrap();
                let before = acknowledged.insert(depth.parse().unwrap(), node(word));
                assert_eq!(before, None, "two appends at depth {depth}");
            }
        }
        assert!(child.wait().unwrap().success(), "a process was turned away");
    }
    let path = chat.path(on("main")).await;
    let stored: Vec<_> = path.iter().map(|node| (node.depth, node.id)).collect();
    assert_eq!(stored.len(), processes * count);
    assert_eq!(stored, Vec::from_iter(acknowledged));
}
