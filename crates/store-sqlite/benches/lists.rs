//! What filtered lists cost: `cargo bench -p contexture-store-sqlite --bench lists`.
//!
//! Plain timing, one line a list, medians of 15, at 1,000, 10,000 and 100,000 conversations with a title of 40 characters
//! and three fields of metadata. A tenth as many conversations belong to another owner.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints, and fails by panicking"
)]

use std::sync::Arc;
use std::time::Instant;

use contexture_ir::{CallId, ConversationId, Owner, Raw};
use contexture_store::{
    CALL_HOUR_MS, CallRecord, ListConversations, MetadataFilter, NewConversation, Store, SweepCalls,
};
use contexture_store_sqlite::{SqliteOptions, SqliteStore, Synchronous};

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for count in [1000, 10_000, 100_000] {
            let options = SqliteOptions {
                synchronous: Synchronous::Normal,
                ..SqliteOptions::default()
            };
            let path = directory.path().join(format!("lists-{count}.db"));
            let store: Arc<dyn Store> = Arc::new(SqliteStore::open_with(&path, options).unwrap());
            let begin = Instant::now();
            fill(&store, count).await;
            let rate = count as f64 / begin.elapsed().as_secs_f64();
            println!("{count} conversations, created at {rate:.0} a second");
            measure(&store).await;
            record_calls(&store, count).await;
            measure_sums(&store).await;
        }
    });
}

const SUBJECTS: [&str; 8] = [
    "invoice",
    "deployment",
    "travel",
    "refactoring",
    "garden",
    "contract",
    "recipe",
    "holiday",
];

/// A conversation whose words follow from its number.
fn conversation(n: usize) -> NewConversation {
    let subject = SUBJECTS[n % SUBJECTS.len()];
    let rare = if n == 777 { "Zürich" } else { "the office" };
    let fields = [
        ("project", format!("\"p{}\"", n % 50)),
        ("number", n.to_string()),
        ("kind", "\"chat\"".to_owned()),
    ];
    let fields = fields.map(|(key, json)| (key.to_owned(), Raw::parse(json).unwrap()));
    NewConversation {
        title: Some(format!("About the {subject} number {n} of {rare}")),
        metadata: fields.into(),
        ..NewConversation::new(ConversationId::new(format!("c{n}")).unwrap(), n as i64)
    }
}

async fn fill(store: &Arc<dyn Store>, count: usize) {
    let tasks: Vec<_> = (0..64)
        .map(|first| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let (ada, bob) = (Owner::new("ada").unwrap(), Owner::new("bob").unwrap());
                for n in (first..count).step_by(64) {
                    store
                        .create_conversation(&ada, conversation(n))
                        .await
                        .unwrap();
                    if n.is_multiple_of(10) {
                        store
                            .create_conversation(&bob, conversation(n))
                            .await
                            .unwrap();
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Records three calls of each conversation, of which two are put into roll-ups.
async fn record_calls(store: &Arc<dyn Store>, count: usize) {
    let (owner, calls) = (Owner::new("ada").unwrap(), store.calls().unwrap());
    for hour in 0..3 {
        for first in (0..count).step_by(1_000) {
            let call = |n: usize| {
                let mut random = [0; 10];
                random[..8].copy_from_slice(&(n as u64).to_be_bytes());
                let id = CallId::from_time(hour * CALL_HOUR_MS, random);
                let mut call = CallRecord::new(id, "openai");
                call.names.model = "gpt-4.1".to_owned();
                call.conversation = Some(ConversationId::new(format!("c{n}")).unwrap());
                call.details.pico_dollars = Some(1_000_000);
                call
            };
            let batch = (first..count.min(first + 1_000)).map(call).collect();
            calls.record_calls(&owner, batch).await.unwrap();
        }
    }
    let sweep = SweepCalls {
        roll_up_before_ms: 2 * CALL_HOUR_MS,
        remove_before_ms: 0,
        remove_bodies_before_ms: 0,
    };
    while calls.sweep_calls(&owner, sweep).await.unwrap().more {}
}

/// A page with what its calls used and cost.
async fn measure_sums(store: &Arc<dyn Store>) {
    let (owner, calls) = (Owner::new("ada").unwrap(), store.calls().unwrap());
    let mut times = Vec::new();
    for _ in 0..15 {
        let begin = Instant::now();
        let list = ListConversations::default();
        let page = store.list_conversations(&owner, list).await.unwrap();
        let ids: Vec<_> = page.conversations.into_iter().map(|one| one.id).collect();
        let sums = calls.sum_conversations(&owner, &ids).await.unwrap();
        times.push(begin.elapsed());
        assert!(sums.len() == 100 && sums.iter().all(|one| one.sum.calls == 3));
    }
    times.sort_unstable();
    println!(
        "  {:<32} {:>4} hits {:>9.2?} (at most {:.2?})",
        "no filter, with sums of calls", 100, times[7], times[14]
    );
}

async fn measure(store: &Arc<dyn Store>) {
    let equals = |key: &str, value: &str| MetadataFilter::field_equals(key, value).unwrap();
    let titled = |text: &str| ListConversations {
        title: Some(text.to_owned()),
        ..ListConversations::default()
    };
    let with = |filter| ListConversations {
        metadata: Some(filter),
        ..ListConversations::default()
    };
    let number = MetadataFilter::field_equals("number", 500.0).unwrap();
    let two = MetadataFilter::All(vec![equals("kind", "chat"), equals("project", "nope")]);
    let lists = [
        ("no filter", ListConversations::default()),
        ("title, no hit", titled("quarterly zebra")),
        ("title, no hit, common grams", titled("number of the about")),
        ("title, two letters, no hit", titled("qz")),
        ("title, one hit", titled("zürich")),
        ("title, common word", titled("garden")),
        ("metadata, no hit", with(equals("project", "nope"))),
        ("metadata, one hit", with(number)),
        ("metadata, one in fifty", with(equals("project", "p7"))),
        ("metadata, everywhere", with(equals("kind", "chat"))),
        ("metadata, no hit and everywhere", with(two)),
    ];
    let owner = Owner::new("ada").unwrap();
    for (name, list) in lists {
        let mut times = Vec::new();
        let mut hits = 0;
        for _ in 0..15 {
            let begin = Instant::now();
            let page = store
                .list_conversations(&owner, list.clone())
                .await
                .unwrap();
            times.push(begin.elapsed());
            hits = page.conversations.len();
        }
        times.sort_unstable();
        println!(
            "  {name:<32} {hits:>4} hits {:>9.2?} (at most {:.2?})",
            times[7], times[14]
        );
    }
}
