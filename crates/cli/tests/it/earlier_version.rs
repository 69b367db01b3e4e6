//! What an earlier version wrote: databases, plans, an export and a configuration file are read as it left them.
//!
//! `tests/fixtures/format-11/README.md` says how the files came to be. They are of the last version before crates,
//! modules and names were rearranged, so none of them may depend on a name of the code.
//!
//! Not here: databases of older formats (`contexture-store-sqlite`).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use contexture::compile::{HistoryPolicy, Plan, PreviewPolicy};
use contexture::ir::{ConversationId, FunctionTool, NodeId, Raw, ResponseId, ToolDefinition};
use contexture::offload::FsOffloadStore;
use contexture::store::{BlobId, Event, ListEntries, PathEnd, StateKey, StateRequest};
use contexture::store_sqlite::SqliteStore;
use contexture::{Conversation, Engine, Owner, Target};
use contexture_server::Config;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::command::{Place, Run};
use crate::postgres::own_database;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/format-11");
/// Answers for the run that waits: it goes on behind the first line of the script it began with.
const REST: &str = "\"Noted: no peanuts.\"\n";

fn fixture(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

fn unpack(name: &str) -> Vec<u8> {
    let file = std::fs::File::open(fixture(name)).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(file)
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

/// What the earlier version answered, by command line.
fn answers(name: &str) -> BTreeMap<String, String> {
    serde_json::from_slice(&unpack(name)).unwrap()
}

/// A place whose database is the one of the fixtures.
fn place() -> Place {
    let place = Place::new();
    let path = place.database();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, unpack("database.db.gz")).unwrap();
    place
}

/// Opens a database, which brings it to the newest format, and returns its bytes.
fn migrate(path: &Path) -> Vec<u8> {
    drop(SqliteStore::open(path).unwrap());
    let database = rusqlite::Connection::open(path).unwrap();
    let is_blocked: bool = database
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .unwrap();
    assert!(!is_blocked);
    std::fs::read(path).unwrap()
}

/// Each command answers as the earlier version did.
fn expect_answers(name: &str, run: impl Fn(&str) -> Run) {
    let answers = answers(name);
    assert_eq!(answers.len(), 92);
    for (line, answer) in answers {
        if line.starts_with("log ") {
            // A drawing: the same rows and words, in columns of other widths and with pins marked.
            let drawn = run(&format!("{line} --state")).out;
            let drawn = words_of(&without_cut_texts(&drawn)).replace(" pinned ", " ");
            assert_eq!(drawn, words_of(&without_cut_texts(&answer)), "{line}");
            continue;
        }
        let run = run(&line);
        assert_eq!(run.code, 0, "{line}: {}", run.err);
        // Lists have pages since; these are short. Waiting calls say who decided. Scores count other words than they did.
        let out = without_scores(&without_overviews(&line, &run.out));
        let out = out.replace(",\"next\":null}", "}");
        let out = out.replace(",\"decided\":null}", "}");
        // A list may be cut short since, and says that it was not.
        let out = out.replace(",\"complete\":true}", "}");
        let answer = without_scores(&answer).replace(",\"next\":null}", "}");
        let answer = answer.replace(",\"complete\":true}", "}");
        assert!(out == answer, "{line}\nwas: {answer}\nis: {out}");
    }
}

/// The lines of a drawing without what is left of texts that did not fit.
fn without_cut_texts(drawn: &str) -> String {
    let cut = |line: &str| match (line.split_once('"'), line.split_once('…')) {
        (Some((before, _)), Some((_, behind))) => format!("{before}{behind}\n"),
        _ => format!("{line}\n"),
    };
    drawn.lines().map(cut).collect()
}

/// Hits without their scores, which mean nothing but their order.
fn without_scores(out: &str) -> String {
    let mut parts = out.split("\"score\":");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(part.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    }
    kept
}

fn words_of(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// A list of conversations without the member that was added since: members are added and never renamed.
fn without_overviews(line: &str, out: &str) -> String {
    if line != "conversations --json" {
        return out.to_owned();
    }
    let mut rest = out;
    let mut kept = String::new();
    while let Some((before, behind)) = rest.split_once(",\"overview\":") {
        kept.push_str(before);
        let mut values = serde_json::Deserializer::from_str(behind).into_iter::<Value>();
        assert!(values.next().unwrap().unwrap()["usage"].is_object());
        rest = &behind[values.byte_offset()..];
    }
    kept + rest
}

/// The run that waits for a person is carried on: its call is allowed, its note is kept, its text is told.
fn expect_resumable(place: &Place, run: impl Fn(&str) -> Run) {
    let ok = |line: &str| {
        let run = run(line);
        assert_eq!(run.code, 0, "{line}: {}", run.err);
        run.out
    };
    let json = |line: &str| serde_json::from_str::<Value>(&ok(line)).unwrap();
    place.write("rest.jsonl", REST);
    let listed = json("runs -c trip --json");
    let waiting = &listed["runs"][0];
    assert_eq!(waiting["status"], "waiting", "{listed}");
    let id = waiting["run"].as_str().unwrap();
    let call = waiting["waiting"][0]["call"].as_str().unwrap();
    assert_eq!(ok("memory list -c trip"), "");
    let resumed = ok(&format!(
        "resume {id} --allow {call} --memory --script rest.jsonl"
    ));
    assert_eq!(resumed, "Noted: no peanuts.\n");
    assert_eq!(ok("memory get diet -c trip"), "no peanuts\n");
    let listed = json("runs -c trip --json");
    assert_eq!(listed["runs"][0]["status"], "completed", "{listed}");
    assert_eq!(listed["runs"][0]["spent"]["responses"], 2, "{listed}");
}

#[test]
fn sqlite_answers_are_those_of_the_earlier_version() {
    let place = place();
    // The index of an earlier version is made anew, which is done when something is searched for.
    place.ok("search peanuts");
    let migrated = migrate(&place.database());
    expect_answers("sqlite-answers.json.gz", |line| place.run(line));
    // Nothing is written but the new format, once: reading changes nothing.
    assert!(std::fs::read(place.database()).unwrap() == migrated);
    let log = place.database().with_extension("db-wal");
    assert!(std::fs::metadata(log).is_ok_and(|log| log.len() == 0));
}

#[test]
fn sqlite_waiting_run_resumes() {
    let place = place();
    expect_resumable(&place, |line| place.run(line));
}

#[test]
fn postgres_answers_are_those_of_the_earlier_version() {
    let place = Place::new();
    let database = own_database(&String::from_utf8(unpack("postgres.sql.gz")).unwrap());
    let run = |line: &str| place.run(&format!("--db {} {line}", database.address));
    let migrated = run("migrate");
    assert_eq!(migrated.code, 0, "{migrated:?}");
    let before = database.rows();
    assert!(before.len() > 200, "{}", before.len());
    expect_answers("postgres-answers.json.gz", run);
    let migrated = run("migrate");
    assert!(migrated.out.contains("nothing to do"), "{migrated:?}");
    // The transaction that wrote a row is part of it here, so a row that is written again is another one.
    assert!(database.rows() == before);
    expect_resumable(&place, run);
    assert!(database.rows() != before);
}

#[test]
fn an_export_comes_in_and_goes_out_equal() {
    let text = unpack("export.jsonl.gz");
    let place = Place::new();
    place.write("export.jsonl", &text);
    let told = place.ok("import export.jsonl");
    // A line for each conversation, and one for the values beside them.
    assert_eq!(told.lines().count(), 13 + 1, "{told}");
    assert!(
        words_of(&told).contains("support 60 items, 2 branches"),
        "{told}"
    );
    assert!(place.ok("export --all").into_bytes() == text);
}

#[test]
fn the_configuration_is_understood_whole() {
    let place = Place::new();
    let path = place.path("contexture.toml");
    std::fs::copy(fixture("contexture.toml"), &path).unwrap();
    std::fs::create_dir(place.path("skills")).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let config = Config::parse(&text, "contexture.toml").unwrap();
    // As text: names of types are not what is kept, names of choices are.
    let is = |value: &dyn std::fmt::Debug| format!("{value:?}");

    let server = &config.server;
    let limits = &server.limits;
    assert_eq!(server.listen.port(), 9494);
    assert_eq!(server.db.as_deref(), Some("kept.db"));
    assert_eq!(server.owner, Owner::new("acme/ada").unwrap());
    assert_eq!(server.skills, [PathBuf::from("skills")]);
    assert_eq!((limits.header_bytes, limits.headers), (16_384, 50));
    assert_eq!((limits.header_seconds, limits.keep_alive_seconds), (5, 60));
    assert_eq!((limits.body_bytes, limits.body_seconds), (1 << 20, 15));
    assert_eq!((limits.request_seconds, limits.drain_seconds), (20, 3));
    assert_eq!((limits.connections, limits.concurrent), (128, 16));
    // Written as `behind_bytes` and `warm_bytes`.
    assert_eq!(
        (limits.memory_bytes, limits.handle_cache_bytes),
        (32 << 20, 16 << 20)
    );
    assert_eq!(limits.per_minute.map(std::num::NonZero::get), Some(600));

    let names: Vec<&str> = config.keys.iter().map(|key| &*key.name).collect();
    assert_eq!(names, ["laptop", "reader"]);
    assert_eq!(is(&config.keys[0].scopes), "[Read, Write, Proxy, Admin]");
    assert_eq!(is(&config.keys[1].scopes), "[Read, Write, Proxy]");
    let groq = &config.upstreams["groq"];
    assert_eq!(groq.key_env.as_deref(), Some("GROQ_API_KEY"));
    assert!(groq.default && groq.conversation_from.as_deref() == Some("prompt_cache_key"));
    let key_file = config.upstreams["anthropic"].key_file.as_deref();
    assert_eq!(key_file, Some(Path::new("anthropic.key")));
    assert!(is(&config.upstreams["gemini"].format).contains("gemini"));

    let (frugal, plain) = (&config.policies["frugal"], &config.policies["plain"]);
    assert_eq!(frugal.window.unwrap().turns, Some(20));
    assert_eq!(plain.window.unwrap().tokens, Some(50_000));
    assert_eq!(frugal.clear.as_ref().unwrap().keep_recent, 5);
    assert_eq!(
        (
            frugal.preview.as_ref().map(|preview| preview.characters),
            frugal.limit_tokens,
        ),
        (Some(5_000), Some(100_000))
    );
    assert_eq!((frugal.cache_marks, plain.cache_marks), (true, false));
    assert_eq!(
        (frugal.ingest_timeout_ms, plain.ingest_timeout_ms),
        (1_500, 2_000)
    );
    assert!(frugal.compact.is_some() && frugal.skills.len() == 1);
    assert!(frugal.tools.allows("search") && !frugal.tools.allows("shell"));
    assert_eq!(frugal.tools.select, Some(20));
    // Written as `pays`.
    assert_eq!(is(&frugal.cost_condition), "Fits");
    assert_eq!(is(&plain.cost_condition), "Strict");
    for told in ["Owner", "Tail", "500", "true"] {
        assert!(is(&frugal.memory).contains(told), "{:?}", frugal.memory);
    }
    assert!(is(&frugal.redact).contains("ApiKey"), "{:?}", frugal.redact);
    assert_eq!(config.routes.len(), 2);

    place.write("anthropic.key", "secret\n");
    let checked = place.run("doctor --config contexture.toml --json");
    assert!(
        checked
            .out
            .contains(r#""name":"configuration","state":"ok""#),
        "{checked:?}"
    );
}

fn small() -> Target {
    Target::openai_chat("gpt-4o").window(4_000).reserve(500)
}

/// The targets by the names under which their payloads are kept, as the earlier version was given them.
fn targets() -> [(&'static str, Target); 3] {
    let previewed = small().history(HistoryPolicy {
        preview: Some(PreviewPolicy::default()),
        ..HistoryPolicy::default()
    });
    let tool = ToolDefinition::Function(FunctionTool {
        name: "Read".to_owned(),
        description: Some("Reads a file.".to_owned()),
        parameters: Some(Raw::parse(r#"{"type":"object","z":1, "a":2}"#).unwrap()),
        ..FunctionTool::default()
    });
    let claude = Target::anthropic("claude-sonnet-4-5")
        .window(9_000)
        .tools(vec![tool]);
    [
        ("small", small()),
        ("previewed", previewed),
        ("claude", claude),
    ]
}

/// The calls of the fixtures and what is known of them.
fn calls() -> Value {
    serde_json::from_slice(&std::fs::read(fixture("calls.json")).unwrap()).unwrap()
}

async fn existing(engine: &Engine, id: &str) -> Conversation {
    engine.conversation(id).open_existing().await.unwrap()
}

#[test]
fn plans_hold_and_calls_are_compiled_to_the_same_bytes() {
    let place = place();
    Runtime::new().unwrap().block_on(async {
        let engine = Engine::new(Arc::new(SqliteStore::open(place.database()).unwrap()));
        let chat = existing(&engine, "support").await;
        let calls = calls();
        expect_plans(&chat).await;
        // What is compiled next follows the plans: what they cleared and cut stays so.
        for (name, target) in targets() {
            let call = chat.compile(&target).await.unwrap();
            let next = &calls["next"][name];
            assert_eq!(
                call.payload.content_hash().to_string(),
                next["payload"],
                "{name}"
            );
            assert_eq!(call.payload.to_json().len(), next["bytes"], "{name}");
        }
        let of_support = calls["calls"].as_array().unwrap();
        assert_eq!(of_support.len(), 14);
        for call in of_support {
            expect_replayed(&chat, call).await;
        }
        expect_replayed(
            &existing(&engine, "payload-kept").await,
            &calls["kept_call"],
        )
        .await;
    });
}

/// The stored plans are those of the files, and are written as they were read.
async fn expect_plans(chat: &Conversation) {
    let head = chat.head().await.unwrap().unwrap();
    let state = chat.engine().store().read_state(
        chat.owner(),
        chat.id(),
        StateRequest::all_entries(PathEnd::Node(head)),
    );
    let state = state.await.unwrap();
    for (target, epoch) in [
        ("anthropic/claude-sonnet-4-5", 3),
        ("openai-chat/gpt-4o", 6),
    ] {
        let name = format!("plan-{}.json", target.replace('/', "-"));
        let text = std::fs::read_to_string(fixture(&name)).unwrap();
        let plan: Plan = serde_json::from_str(&text).unwrap();
        assert!(plan.epoch == epoch && plan.clear.is_some() && plan.trim.is_some());
        assert_eq!(serde_json::to_string(&plan).unwrap(), text);
        let key = StateKey::new(format!("@plan/{target}")).unwrap();
        let stored = state.loaded_value(&key).unwrap();
        assert_eq!(std::str::from_utf8(stored).unwrap(), text);
    }
}

async fn expect_replayed(chat: &Conversation, call: &Value) {
    let response: ResponseId = call["response"].as_str().unwrap().parse().unwrap();
    let replayed = chat.replay(response).await.unwrap();
    assert_eq!(replayed.sent_hash.to_string(), call["payload"]);
    assert!(replayed.is_equal(), "{response}");
}

#[test]
fn the_rest_of_the_tree_is_found() {
    let place = place();
    Runtime::new().unwrap().block_on(async {
        let copies = place.path("copies");
        let offload = Arc::new(FsOffloadStore::new(&copies));
        let store = Arc::new(SqliteStore::open(place.database()).unwrap());
        let engine = Engine::new(store).with_offload(offload, 1_000);
        let chat = existing(&engine, "support").await;
        let calls = calls();

        let refs = chat.refs().await.unwrap();
        let branches: Vec<Value> = refs
            .branches
            .iter()
            .map(|branch| {
                let head = branch.head.as_ref().map(NodeId::to_string);
                serde_json::json!({"name": branch.name.as_str(), "head": head})
            })
            .collect();
        assert_eq!(Value::from(branches), calls["branches"]);
        assert_eq!(chat.branch().as_str(), calls["active"]);
        let checkpoints: Vec<&str> = refs
            .checkpoints
            .iter()
            .map(|named| named.name.as_str())
            .collect();
        assert_eq!(checkpoints, ["early"]);
        let transcript = chat.transcript().await.unwrap();
        assert_eq!(transcript.items.len(), calls["items"]);
        let said = transcript.items.iter().map(|item| item.to_json());
        let said: Vec<String> = said.collect();
        assert!(said[said.len() - 2].contains("redacted") && !said.concat().contains("4929"));
        expect_values(&chat, &calls).await;

        // Copies have the names they had, so that those that are there already are found.
        let expected = std::fs::read_to_string(fixture("output-copies.txt")).unwrap();
        for id in ["support", "payload-kept"] {
            let report = existing(&engine, id)
                .await
                .reconcile_copies()
                .await
                .unwrap();
            assert_eq!(report.failed, 0);
        }
        let expected: BTreeSet<String> = expected.lines().map(str::to_owned).collect();
        assert_eq!(files(&copies, "."), expected);
    });
}

/// Events, blobs and values beside the tree.
async fn expect_values(chat: &Conversation, calls: &Value) {
    let (engine, owner, id): (_, &Owner, &ConversationId) =
        (chat.engine(), chat.owner(), chat.id());
    let store = engine.store();
    let events: Vec<Event> = store.list_events(owner, id, 0, 1_000).await.unwrap();
    assert_eq!(events.len(), calls["events"]);
    let blob: BlobId = calls["blob"].as_str().unwrap().parse().unwrap();
    let bytes = store.read_blob(owner, id, blob).await.unwrap();
    assert_eq!(&bytes[..], b"eight by eight pixels");
    let page = store
        .list_entries(owner, ListEntries::default())
        .await
        .unwrap();
    for key in ["settings", "profile", "draft"] {
        let (_, entry) = page
            .entries
            .iter()
            .find(|(_, entry)| entry.key == key)
            .unwrap();
        assert_eq!(entry.value[..], *format!(r#"{{"of":"{key}"}}"#).as_bytes());
    }
}

/// All files below a directory, as paths from it.
fn files(directory: &Path, name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{name}/{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            found.extend(files(&entry.path(), &name));
        } else {
            found.insert(name);
        }
    }
    found
}
