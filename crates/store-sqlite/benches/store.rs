//! What the store costs: `cargo bench -p contexture-store-sqlite`.
//!
//! Plain timing, one figure a line, medians. Figures that are compared with each other are
//! measured alternately in the same run, because the time of a sync varies more than the code.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints, and fails by panicking"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_ir::{
    CHAIN_VERSION, CallId, ContentHash, HistoryHasher, Item, Message, MessageId, NodeId, Owner,
    Role,
};
use contexture_store::{
    Activation, AppendPoint, AppendRequest, CallDetails, CallPrediction, CallRecord, CallTokens,
    Export, ImportAll, ListConversations, MemoryStore, NewItem, PathEnd, PathMark, ReadRequest,
    StateKey, StatePatch, Store, find_divergence,
};
use contexture_store_sqlite::{SqliteOptions, SqliteStore, Synchronous};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, branch, branch_end, item, node};
use futures_util::future::join_all;

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let at = |name: &str| directory.path().join(name);
        // `cargo bench … -- paths size` runs those two.
        let asked: Vec<String> = std::env::args()
            .skip(1)
            .filter(|a| !a.starts_with('-'))
            .collect();
        let wanted = |name: &str| asked.is_empty() || asked.iter().any(|a| a == name);
        if wanted("append") {
            append_at_depths(&at("append.db"), Synchronous::Full).await;
            append_at_depths(&at("append-normal.db"), Synchronous::Normal).await;
        }
        if wanted("bulk") {
            append_in_bulk(&directory.path().join("bulk")).await;
        }
        if wanted("beside") {
            append_beside_bulk(&at("beside.db")).await;
        }
        if wanted("calls") {
            append_with_calls(&at("calls.db"), Synchronous::Full).await;
            append_with_calls(&at("calls-normal.db"), Synchronous::Normal).await;
        }
        if wanted("paths") {
            paths(&at("paths.db")).await;
        }
        if wanted("import") {
            import(&at("import.db")).await;
        }
        if wanted("conversations") {
            import_conversations(&at("conversations.db")).await;
        }
        if wanted("crowd") {
            crowd(&at("crowd.db")).await;
        }
        if wanted("size") {
            size(&at("size.db")).await;
        }
    });
}

fn open(path: &Path, synchronous: Synchronous) -> Arc<dyn Store> {
    let options = SqliteOptions {
        synchronous,
        ..SqliteOptions::default()
    };
    Arc::new(SqliteStore::open_with(path, options).unwrap())
}

/// A message of about 200 bytes.
fn small(n: usize) -> NewItem {
    item(&format!("{n} {}", "words of a message ".repeat(6)))
}

async fn grow(chat: &Chat, from: usize, to: usize) {
    for first in (from..to).step_by(1000) {
        let items = (first..to.min(first + 1000)).map(small).collect();
        chat.append_to_tip("main", items).await.unwrap();
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn report(what: &str, times: &mut [Duration]) -> Duration {
    let middle = median(times);
    let p99 = times[times.len() * 99 / 100];
    println!("{what:<58} {middle:>12.1?}   p99 {p99:.1?}");
    middle
}

/// A call as the proxy records it under a policy: with figures, names and a band of this size.
fn proxied_call(n: u64, chat: &Chat, band: usize) -> CallRecord {
    let mut random = [0; 10];
    random[..8].copy_from_slice(&n.to_be_bytes());
    let id = CallId::from_time(NOW + i64::try_from(n).unwrap(), random);
    let mut call = CallRecord::new(id, "anthropic");
    call.names.model = "claude-sonnet-4-5".to_owned();
    call.names.key = "laptop".to_owned();
    call.names.policy = "frugal".to_owned();
    call.conversation = Some(chat.id.clone());
    call.body_hash = Some(ContentHash::of(&n.to_be_bytes()));
    call.details = CallDetails {
        format: "anthropic".to_owned(),
        duration_ms: 4_321,
        first_byte_ms: Some(612),
        status: Some(200),
        finish: Some("end_turn".to_owned()),
        tokens: Some(CallTokens {
            input: 41_000 + n,
            cache_read: 38_000,
            cache_written: 2_800,
            output: 512,
        }),
        pico_dollars: Some(29_580_000_000),
        prediction: Some(CallPrediction::default()),
        attempts: 1,
        is_rewritten: true,
        ..CallDetails::default()
    };
    call.band = Some(vec![1; band].into());
    call
}

/// An answer's append without and with its row in the record of calls, measured alternately; and the bytes of a row.
async fn append_with_calls(path: &Path, synchronous: Synchronous) {
    const APPENDS: u64 = 2_000;
    let store = open(path, synchronous);
    let chat = Chat::start_as(Arc::clone(&store), "ada", "calls").await;
    grow(&chat, 0, 1_000).await;
    let mut times = [Vec::new(), Vec::new()];
    for n in 0..2 * APPENDS {
        let with = usize::from(n % 2 == 1);
        let at = AppendPoint::Tip {
            branch: branch("main"),
        };
        let items = vec![small(1_000_000 + n as usize)];
        let mut request = AppendRequest::new(at, items, NOW);
        request.call = (with == 1).then(|| Box::new(proxied_call(n, &chat, 160)));
        let begun = Instant::now();
        store
            .append_items(&chat.owner, &chat.id, request)
            .await
            .unwrap();
        times[with].push(begun.elapsed());
    }
    let what = |what: &str| format!("append of an answer {what} its call, {synchronous:?}");
    let medians = [
        report(&what("without"), &mut times[0]),
        report(&what("with"), &mut times[1]),
    ];
    let ratio = medians[1].as_secs_f64() / medians[0].as_secs_f64();
    println!("{:<58} {ratio:>12.3}", "  with to without");
    drop(store);
    let file = rusqlite::Connection::open(path).unwrap();
    file.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    let tables = "SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'calls%' OR name = 'sqlite_autoindex_calls_1'";
    match file.query_row(tables, [], |row| row.get::<_, i64>(0)) {
        Ok(bytes) => println!("{:<58} {:>12}", "  bytes of a call", bytes / 2_000),
        Err(error) => println!("  bytes of a call: not known, {error}"),
    }
}

async fn append_at_depths(path: &Path, synchronous: Synchronous) {
    let store = open(path, synchronous);
    let depths = [100, 50_000];
    let mut chats = Vec::new();
    for depth in depths {
        let chat = Chat::start_as(Arc::clone(&store), "ada", &format!("deep-{depth}")).await;
        grow(&chat, 0, depth).await;
        chats.push(chat);
    }
    let mut times = [Vec::new(), Vec::new()];
    for n in 0..400 {
        for (chat, times) in chats.iter().zip(&mut times) {
            let item = small(1_000_000 + n);
            let begun = Instant::now();
            chat.append_to_tip("main", vec![item]).await.unwrap();
            times.push(begun.elapsed());
        }
    }
    let medians = [0, 1].map(|i| {
        let what = format!("append 200 B at depth {}, {synchronous:?}", depths[i]);
        report(&what, &mut times[i])
    });
    let ratio = medians[1].as_secs_f64() / medians[0].as_secs_f64();
    println!("{:<58} {ratio:>12.2}", "  deep to shallow");
}

/// Many items in appends of 2,048 that the path index knows, as the first request of an agent comes through a proxy: the
/// time of an item must not grow with their number.
async fn append_in_bulk(directory: &Path) {
    std::fs::create_dir(directory).unwrap();
    let mut of_half = None;
    for count in [25_000_usize, 50_000, 100_000, 200_000, 400_000, 800_000] {
        let path = directory.join(format!("{count}.db"));
        let chat = Chat::start(open(&path, Synchronous::Full)).await;
        let mut chain = HistoryHasher::default();
        let key = ContentHash::of(path.as_os_str().as_encoded_bytes());
        let item = |n: usize| {
            let said = Item::from(Message::text(Role::User, format!("x{n}")));
            chain.push_item(&said);
            let id = NodeId::of_operation(key.as_bytes(), n);
            let mark = PathMark {
                version: CHAIN_VERSION,
                hash: chain.current_hash(),
                node: id,
            };
            (NewItem::new(id, &said, said.to_json(), NOW), mark)
        };
        let (items, paths): (Vec<NewItem>, Vec<PathMark>) = (0..count).map(item).unzip();
        let begun = Instant::now();
        for (items, paths) in items.chunks(2048).zip(paths.chunks(2048)) {
            let request = AppendRequest {
                paths: paths.to_vec(),
                ..AppendRequest::new(Chat::at_tip("main"), items.to_vec(), NOW)
            };
            chat.append_request(request).await.unwrap();
        }
        let took = begun.elapsed();
        let of_item = took / u32::try_from(count).unwrap();
        let growth = of_half.map(|half: Duration| took.as_secs_f64() / half.as_secs_f64());
        let growth = growth.map_or_else(String::new, |times| format!("{times:.2} times the half"));
        println!("append {count:>7} items {of_item:>12.1?} an item   {growth}");
        of_half = Some(took);
        drop(chat);
        std::fs::remove_file(&path).unwrap();
    }
}

/// Appends of one message by an owner beside 16 tasks of another that append 4,000 in each call, to one conversation, as the
/// server stores them: with a message id each.
async fn append_beside_bulk(path: &Path) {
    const CALLS: usize = 4;
    let store = open(path, Synchronous::Full);
    let crowded = Chat::start_as(Arc::clone(&store), "eve", "bulk").await;
    let small_chat = Chat::start_as(Arc::clone(&store), "ada", "small").await;
    let bulk = |task: usize| {
        let chat = crowded.clone();
        tokio::spawn(async move {
            for call in 0..CALLS {
                let key = ContentHash::of(format!("{task} {call}").as_bytes());
                let items = (0..4_000).map(|n| {
                    let text = format!("{}.{task}.{call} {n}", key.to_string().split_at(12).0);
                    let said = Item::from(Message::text(Role::User, text));
                    let id = NodeId::of_operation(key.as_bytes(), n);
                    NewItem {
                        message_id: Some(MessageId::of_node(id)),
                        ..NewItem::new(id, &said, said.to_json(), NOW)
                    }
                });
                chat.append_to_tip("main", items.collect()).await.unwrap();
            }
        })
    };
    let begun = Instant::now();
    let tasks: Vec<_> = (0..16).map(bulk).collect();
    let mut times = Vec::new();
    while tasks.iter().any(|task| !task.is_finished()) {
        let one = vec![small(2_000_000 + times.len())];
        let begun = Instant::now();
        small_chat.append_to_tip("main", one).await.unwrap();
        times.push(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let of_call = begun.elapsed() / u32::try_from(16 * CALLS).unwrap();
    report("append of one beside 16 writers of 4,000, FULL", &mut times);
    println!(
        "  longest {:.1?}; each call of 4,000 {of_call:.1?}",
        times.last().unwrap()
    );
}

async fn paths(path: &Path) {
    let chat = Chat::start(open(path, Synchronous::Full)).await;
    grow(&chat, 0, 10_000).await;
    for n in 0..100 {
        let base = small(9_900 + n).id;
        let at = contexture_store::RefChange::CreateBranch(contexture_store::NewBranch {
            base: Some(base),
            label: contexture_store::BranchLabel::Named(format!("b{n}").parse().unwrap()),
            activate: Activation::Keep,
        });
        chat.change_ref(at).await.unwrap();
    }
    chat.append_messages("b50", &["fork"]).await;
    let read = async |request: ReadRequest, count: usize| {
        let mut times = Vec::new();
        for _ in 0..40 {
            let begun = Instant::now();
            let page = chat.read_path(request.clone()).await.unwrap();
            times.push(begun.elapsed());
            assert_eq!(page.nodes.len(), count);
        }
        times
    };
    report(
        "read a path of 10,000",
        &mut read(ReadRequest::whole_path(branch_end("main")), 10_000).await,
    );
    let fork = ReadRequest::whole_path(branch_end("b50"));
    report("read a forked path of 9,952", &mut read(fork, 9_952).await);
    report(
        "read the last 200 of 10,000",
        &mut read(ReadRequest::last_nodes(branch_end("main"), 200), 200).await,
    );
    let (mut refs, mut parted, mut listed, mut branched) = (vec![], vec![], vec![], vec![]);
    for n in 0..100 {
        let begun = Instant::now();
        chat.store.list_refs(&chat.owner, &chat.id).await.unwrap();
        refs.push(begun.elapsed());
        let begun = Instant::now();
        let (left, right) = (branch_end("main"), PathEnd::Node(node("fork")));
        let found = find_divergence(&*chat.store, &chat.owner, &chat.id, left, right).await;
        parted.push(begun.elapsed());
        assert_eq!(found.unwrap().shared, 9_951);
        let begun = Instant::now();
        let list = ListConversations::default();
        chat.store
            .list_conversations(&chat.owner, list)
            .await
            .unwrap();
        listed.push(begun.elapsed());
        let begun = Instant::now();
        let at = small(n).id;
        let label = contexture_store::BranchLabel::After("main".parse().unwrap());
        let new = contexture_store::NewBranch {
            base: Some(at),
            label,
            activate: Activation::Keep,
        };
        chat.change_ref(contexture_store::RefChange::CreateBranch(new))
            .await
            .unwrap();
        branched.push(begun.elapsed());
    }
    report("list 101 branches and more, with counts", &mut refs);
    report("common ancestor of two paths of 10,000", &mut parted);
    report("list conversations", &mut listed);
    report("branch at any node of 10,000, FULL", &mut branched);
}

/// As many items and conversations as tau-bench has.
async fn import(path: &Path) {
    let sessions: Vec<Vec<NewItem>> = (0..200)
        .map(|session| {
            let count = 26 + usize::from(session % 50 < 27);
            let text = |n: usize| "what the customer and the agent said ".repeat(4 + n % 40);
            (0..count)
                .map(|n| item(&format!("{session} {n} {}", text(n))))
                .collect()
        })
        .collect();
    let items: usize = sessions.iter().map(Vec::len).sum();
    let bytes: usize = sessions.iter().flatten().map(|item| item.json.len()).sum();
    let store = open(path, Synchronous::Full);
    for (owner, at_once) in [
        ("one by one", 1),
        ("32 at a time", 32),
        ("all at once", 200),
    ] {
        let owner = owner.replace(' ', "-");
        let begun = Instant::now();
        for (group, sessions) in sessions.chunks(at_once).enumerate() {
            let imports = sessions.iter().enumerate().map(|(n, items)| {
                let (store, owner) = (Arc::clone(&store), &owner);
                async move {
                    let id = format!("s-{group}-{n}");
                    let chat = Chat::start_as(store, owner, &id).await;
                    chat.append_to_tip("main", items.clone()).await.unwrap();
                }
            });
            join_all(imports).await;
        }
        let what = format!("import {items} items ({bytes} B) in 200 conversations, {owner}");
        println!("{what:<58} {:>12.1?}", begun.elapsed());
    }
}

/// New conversations by import, as `contexture import` and `POST /import` make them: 20,000 of four messages;
/// `CONTEXTURE_BENCH_CONVERSATIONS` is another number.
async fn import_conversations(path: &Path) {
    let asked = std::env::var("CONTEXTURE_BENCH_CONVERSATIONS");
    let count: usize = asked.map_or(20_000, |asked| asked.parse().unwrap());
    let (from, owner) = (Arc::new(MemoryStore::new()), Owner::new("bench").unwrap());
    let mut text = String::new();
    for n in 0..count {
        let chat = Chat::start_as(from.clone(), owner.as_str(), &format!("imported-{n}")).await;
        let items = (0..4).map(|message| small(4 * n + message)).collect();
        chat.append_to_tip("main", items).await.unwrap();
        let mut export = Export::new(&*from, &owner, &chat.id).await.unwrap();
        while let Some(lines) = export.next_lines().await.unwrap() {
            text.push_str(&lines);
        }
    }
    let store = open(path, Synchronous::Full);
    let begun = Instant::now();
    let mut import = ImportAll::new(&*store, &owner);
    for line in text.lines() {
        assert!(import.import_line(line).await.is_continue());
    }
    let imported = import.finish_import().await;
    let took = begun.elapsed();
    assert!(imported.error.is_none(), "{:?}", imported.error);
    assert_eq!(imported.conversations.len(), count);
    let rate = count as f64 / took.as_secs_f64();
    let what = format!("import of {count} conversations of 4 messages, FULL");
    println!("{what:<58} {took:>12.1?}   {rate:.0} conversations/s");
}

async fn crowd(path: &Path) {
    let chat = Chat::start(open(path, Synchronous::Full)).await;
    let begun = Instant::now();
    let tasks = (0..1000).map(|task| {
        let chat = chat.clone();
        tokio::spawn(async move {
            let mut times = Vec::new();
            for n in 0..10 {
                let begun = Instant::now();
                chat.append_to_tip("main", vec![small(task * 10 + n)])
                    .await
                    .unwrap();
                times.push(begun.elapsed());
            }
            times
        })
    });
    let times = join_all(tasks).await.into_iter();
    let mut times: Vec<Duration> = times.flat_map(Result::unwrap).collect();
    let all = begun.elapsed();
    report("append, 1,000 tasks on one branch, FULL", &mut times);
    println!("{:<58} {all:>12.1?}", "  10,000 appends in all");
}

async fn size(path: &Path) {
    let chat = Chat::start(open(path, Synchronous::Normal)).await;
    let (mut bytes, count) = (0, 20_000);
    for n in 0..count {
        let item = small(n);
        bytes += item.json.len();
        let key = StateKey::new(format!("path/layer-{}", n % 5)).unwrap();
        let mut request = AppendRequest::new(Chat::at_tip("main"), vec![item], NOW);
        if n % 4 == 0 {
            request.patch = StatePatch::put_entry(key, 1, format!("value {n}").into_bytes());
        }
        chat.append_request(request).await.unwrap();
    }
    drop(chat);
    let file = std::fs::metadata(path).unwrap().len();
    let (file, bytes) = (
        file as f64 / f64::from(20_000),
        bytes as f64 / f64::from(20_000),
    );
    println!(
        "{:<58} {file:>10.0} B   of {bytes:.0} B items",
        "file per message, with state"
    );
}
