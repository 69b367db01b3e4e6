//! Agents of other people's clients at full speed: each loop is one conversation, with one branch and each item once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use contexture::ir::Item;
use contexture::{Engine, Format, lift};
use contexture_store_postgres::{PostgresStore, migrate};
use contexture_store_testkit::test_seed;
use contexture_upstream_testkit::{Received, ScriptedProvider, Upstream};
use serde_json::Value;
use tokio_postgres::NoTls;

use super::installed::Installed;
use super::passing_to;
use super::script::Script;
use crate::test_support::Stand;

/// Requests of a loop.
const REQUESTS: usize = 30;

/// Under what conditions loops run.
#[derive(Clone, Copy, Debug)]
struct Conditions {
    repeat: usize,
    /// Whether all cores have other work.
    busy: bool,
}

impl Conditions {
    /// A few by default, and in a soak each often.
    fn all() -> Vec<Self> {
        let repeats = if is_soak() { 20 } else { 2 };
        let both = (0..repeats).flat_map(|repeat| [false, true].map(|busy| Self { repeat, busy }));
        both.filter(|one| is_soak() || one.busy == (one.repeat == 1))
            .collect()
    }

    /// All in a soak; without, one of the few, another in every other run.
    fn one_or_all() -> Vec<Self> {
        let mut all = Self::all();
        if is_soak() {
            return all;
        }
        vec![all.swap_remove(usize::try_from(test_seed() % 2).unwrap_or_default())]
    }

    /// The loops of these kinds: each pause, with and without a name, streamed in every other repeat. Without a soak an
    /// eighth of them in each repeat, others in every run.
    fn loops(self, kinds: &[&str]) -> Vec<String> {
        let mut names = Vec::new();
        for kind in kinds {
            for pause in [0, 5, 20, 50] {
                for named in ["", "_named"] {
                    let mode = ["whole", "streamed"][(self.repeat + names.len() / 2) % 2];
                    names.push(format!("{kind}_{mode}_{pause}{named}"));
                }
            }
        }
        let start = usize::try_from(test_seed() % 8).unwrap_or_default();
        let is_chosen = |at: usize| is_soak() || at % 8 == (start + 3 * self.repeat) % 8;
        let chosen = names
            .into_iter()
            .enumerate()
            .filter(|(at, _)| is_chosen(*at));
        chosen.map(|(_, name)| name).collect()
    }
}

fn is_soak() -> bool {
    std::env::var_os("CONTEXTURE_SOAK").is_some()
}

/// Other work for all cores, until it is dropped.
struct OtherWork(Arc<AtomicBool>);

impl OtherWork {
    fn begin() -> Self {
        let goes_on = Arc::new(AtomicBool::new(true));
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            let goes_on = Arc::clone(&goes_on);
            std::thread::spawn(move || {
                while goes_on.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Self(goes_on)
    }
}

impl Drop for OtherWork {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// The items of a request, with the loop that it is of.
fn history(received: &Received, names: &[String]) -> Option<(String, usize)> {
    let format = match received.path() {
        "/v1/chat/completions" => Format::OpenAiChat,
        "/v1/responses" => Format::OpenAiResponses,
        "/v1/messages" => Format::Anthropic,
        path if path.starts_with("/v1beta") => Format::Gemini,
        _ => return None,
    };
    let text = String::from_utf8(received.body.to_vec()).unwrap();
    let items = lift(format, &text).unwrap().transcript.items;
    // Some clients say something of their own first.
    let name = items.iter().find_map(|item| match item {
        Item::Message(message) => {
            let text = message.content.first()?.as_text()?;
            names
                .iter()
                .find(|name| text.lines().next() == Some(name.as_str()))
        }
        _ => None,
    })?;
    Some((name.clone(), items.len()))
}

/// Runs loops against servers over one database, and checks what is stored.
async fn check(
    script: &str,
    names: &[String],
    conditions: Conditions,
    servers: &[Stand],
    upstream: &Upstream,
) {
    let Some(installed) = Installed::find() else {
        return;
    };
    let script = Script::new(&installed, script);
    let bases: Vec<String> = servers
        .iter()
        .map(|server| format!("http://{}", server.address))
        .collect();
    let other_work = conditions.busy.then(OtherWork::begin);
    let saw = script.run_some(&bases.join(","), names).await;
    drop(other_work);
    assert_eq!(saw.len(), names.len(), "{conditions:?}: {saw:#?}");
    assert!(
        saw.values().all(|count| *count == REQUESTS),
        "{conditions:?}: {saw:#?}"
    );
    let mut longest: BTreeMap<String, usize> = BTreeMap::new();
    for received in upstream.received_requests() {
        let Some((name, items)) = history(&received, names) else {
            continue;
        };
        let known = longest.entry(name).or_default();
        *known = items.max(*known);
    }
    assert_eq!(longest.len(), names.len(), "{longest:?}");
    // The answer to the longest request is one message more.
    let mut wanted: Vec<usize> = longest.values().map(|items| items + 1).collect();
    wanted.sort_unstable();
    let conversations = stored(&servers[0], &wanted).await;
    assert_eq!(
        conversations.len(),
        names.len(),
        "{conditions:?}: {conversations:#?}"
    );
    for conversation in &conversations {
        assert_eq!(
            conversation["branches"], 1,
            "{conditions:?}: {conversation}"
        );
    }
    assert_eq!(
        items_of(&conversations),
        wanted,
        "{conditions:?}: {conversations:#?}"
    );
    for server in servers {
        let figures = server.get("/metrics").await.text;
        assert!(
            !figures.contains("contexture_proxy_raced_total"),
            "{conditions:?}: {figures}"
        );
    }
}

/// Runs the loops of a script under all conditions, each time on one server of its own.
async fn check_one_server(script: &str, kinds: &[&str]) {
    for conditions in Conditions::all() {
        let upstream = Upstream::start(ScriptedProvider::default()).await;
        let server = Stand::with(&passing_to(&upstream)).await;
        let names = conditions.loops(kinds);
        check(script, &names, conditions, &[server], &upstream).await;
    }
}

fn items_of(conversations: &[Value]) -> Vec<usize> {
    let items = conversations.iter().map(|one| one["items"].as_u64());
    let mut items: Vec<usize> = items.map(|items| items.unwrap() as usize).collect();
    items.sort_unstable();
    items
}

/// The conversations, once as much is stored as was said. What is stored too often stays too much.
async fn stored(server: &Stand, wanted: &[usize]) -> Vec<Value> {
    loop {
        let listed = server.get("/api/v1/conversations?limit=100").await.ok();
        let listed = listed["conversations"].as_array().unwrap().clone();
        if items_of(&listed).iter().sum::<usize>() >= wanted.iter().sum() {
            return listed;
        }
        tokio::task::yield_now().await;
    }
}

const SDKS: [&str; 3] = ["chat", "responses", "anthropic"];
const AI_SDK: [&str; 4] = ["chat", "responses", "anthropic", "google"];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn loops_of_python_clients_are_one_conversation_each() {
    check_one_server("tool_loop.py", &SDKS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn loops_of_the_ai_sdk_are_one_conversation_each() {
    check_one_server("tool-loop.mjs", &AI_SDK).await;
}

/// The loops of Codex in one repeat: with each pause, with a name in every other.
fn codex_loops(conditions: Conditions) -> Vec<String> {
    let pause = [0, 5, 20, 50][conditions.repeat % 4];
    let named = if conditions.repeat.is_multiple_of(2) {
        ""
    } else {
        "_named"
    };
    vec![format!("codex_{pause}{named}")]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn loops_of_codex_are_one_conversation_each() {
    for conditions in Conditions::all() {
        let upstream = Upstream::start(ScriptedProvider::default()).await;
        let server = Stand::with(&passing_to(&upstream)).await;
        let names = codex_loops(conditions);
        check("codex_loop.py", &names, conditions, &[server], &upstream).await;
    }
}

/// Runs the loops of a script, each request to the next of two servers over one PostgreSQL.
async fn check_two_servers(script: &str, loops: impl Fn(Conditions) -> Vec<String>) {
    if Installed::find().is_none() {
        return;
    }
    for conditions in Conditions::one_or_all() {
        let database = Database::migrated().await;
        let upstream = Upstream::start(ScriptedProvider::default()).await;
        let mut servers = Vec::new();
        for _ in 0..2 {
            let store = PostgresStore::open(&database.address).await.unwrap();
            let engine = Engine::new(Arc::new(store));
            servers.push(Stand::over(engine, &passing_to(&upstream)).await);
        }
        check(script, &loops(conditions), conditions, &servers, &upstream).await;
        for server in servers {
            server.stopped().await;
        }
        database.drop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn loops_of_python_clients_across_two_servers() {
    check_two_servers("tool_loop.py", |conditions| conditions.loops(&SDKS)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn loops_of_the_ai_sdk_across_two_servers() {
    check_two_servers("tool-loop.mjs", |conditions| conditions.loops(&AI_SDK)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn loops_of_codex_across_two_servers() {
    check_two_servers("codex_loop.py", codex_loops).await;
}

/// A database of one test on the server that `CONTEXTURE_TEST_POSTGRES` names, which `cargo xtask test` starts.
struct Database {
    address: String,
    name: String,
    server: String,
}

impl Database {
    async fn migrated() -> Self {
        let server = std::env::var("CONTEXTURE_TEST_POSTGRES").unwrap();
        let name = format!("clients_{:016x}", fastrand::u64(..));
        Self::execute(&server, &format!("CREATE DATABASE {name}")).await;
        let (start, _) = server.rsplit_once('/').unwrap();
        let address = format!("{start}/{name}?sslmode=disable");
        migrate(&address).await.unwrap();
        Self {
            address,
            name,
            server,
        }
    }

    async fn execute(server: &str, statement: &str) {
        let (client, connection) = tokio_postgres::connect(server, NoTls).await.unwrap();
        // It ends with the client.
        tokio::spawn(async move { drop(connection.await) });
        client.batch_execute(statement).await.unwrap();
    }

    async fn drop(self) {
        let statement = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        Self::execute(&self.server, &statement).await;
    }
}
