//! Conversations in PostgreSQL, on the server that `CONTEXTURE_TEST_POSTGRES` names.

use serde_json::Value;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

use crate::command::{Place, Run, example};

const VARIABLE: &str = "CONTEXTURE_TEST_POSTGRES";

/// The address of the server.
fn server() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| {
        panic!(
            "this test needs a PostgreSQL server: run `cargo xtask test -p contexture-cli`, which starts one, or name \
             one in {VARIABLE}=postgres://superuser:password@host:port/postgres"
        )
    })
}

/// A database of one test; dropped with it.
pub(crate) struct OwnDatabase {
    pub(crate) address: String,
    name: String,
    runtime: Runtime,
}

/// Makes a database of what `pg_dump --inserts` wrote.
pub(crate) fn own_database(dump: &str) -> OwnDatabase {
    let runtime = Runtime::new().unwrap();
    let name = format!("contexture_cli_{}", std::process::id());
    let server = server();
    let (start, _) = server.rsplit_once('/').unwrap();
    let address = format!("{start}/{name}?sslmode=disable");
    runtime.block_on(async {
        let make = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'");
        connect(&server).await.batch_execute(&make).await.unwrap();
        connect(&address).await.batch_execute(dump).await.unwrap();
    });
    OwnDatabase {
        address,
        name,
        runtime,
    }
}

async fn connect(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    // It ends with the client.
    tokio::spawn(async move { drop(connection.await) });
    client
}

impl OwnDatabase {
    /// Every row of every table as text, with the transaction that wrote it.
    pub(crate) fn rows(&self) -> Vec<String> {
        self.runtime.block_on(async {
            let client = connect(&self.address).await;
            let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'contexture' ORDER BY 1";
            let mut rows = Vec::new();
            for table in client.query(tables, &[]).await.unwrap() {
                let table: String = table.get(0);
                let all = format!(
                    "SELECT '{table} ' || t.xmin::text || ' ' || t::text FROM contexture.{table} t ORDER BY 1"
                );
                let found = client.query(&all, &[]).await.unwrap();
                rows.extend(found.iter().map(|row| row.get::<_, String>(0)));
            }
            rows
        })
    }
}

impl Drop for OwnDatabase {
    fn drop(&mut self) {
        let remove = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        self.runtime.block_on(async {
            let removed = connect(&server()).await.batch_execute(&remove).await;
            assert!(removed.is_ok() || std::thread::panicking(), "{removed:?}");
        });
    }
}

/// Runs a command on a database of the server; nothing it says repeats the password.
fn run(place: &Place, database: &str, line: &str) -> Run {
    let server = server();
    let (start, _) = server.rsplit_once('/').unwrap();
    let run = place.run(&format!("--db {start}/{database} {line}"));
    let (_, password) = start.split_once('@').unwrap().0.rsplit_once(':').unwrap();
    for said in [&run.out, &run.err] {
        assert!(!said.contains(password), "{line}: {said}");
    }
    run
}

#[test]
fn a_server_is_a_database_like_a_file() {
    let place = Place::new();
    // Databases are not ours to make here; an owner of its own sees nothing of other runs.
    let owner = format!("--owner test-{}", std::process::id());
    let ok = |line: &str| {
        let run = run(&place, "postgres", &format!("{line} {owner}"));
        assert_eq!(run.code, 0, "{line}: {}", run.err);
        run.out
    };
    ok("migrate");
    assert!(ok("migrate").contains("nothing to do"));
    ok(&format!(
        "import {}",
        example("marshmallow-1867.traj").display()
    ));
    assert!(ok("conversations").contains("swe-agent"));
    assert!(ok("log swe-agent").contains("main"));
    assert!(ok("doctor").contains("none damaged"));
    let verified = ok("verify");
    assert!(verified.contains("nothing is damaged"), "{verified}");
    let verified: Value = serde_json::from_str(&ok("verify --json")).unwrap();
    assert_eq!(verified["findings"], Value::Array(Vec::new()));
    assert!(verified["checked"].as_u64().unwrap() > 10, "{verified}");
    // What cannot be checked is said, and is no finding.
    let unchecked = verified["unchecked"].as_str();
    assert!(unchecked.is_none_or(|why| why.contains("amcheck")));
    assert!(ok("stats swe-agent").contains("user"));
    let collected: Value = serde_json::from_str(&ok("gc --json")).unwrap();
    assert_eq!(collected["blobs"], 0);
    let backup = run(&place, "postgres", &format!("backup copy.db {owner}"));
    assert_eq!(backup.code, 5, "{}", backup.err);
    assert!(backup.err.contains("pg_dump"), "{}", backup.err);
    // What leaves a server comes in anywhere, and back.
    let text = ok("export swe-agent --to contexture");
    let file = Place::new();
    let imported = file.feed(&format!("import - {owner}"), text.clone());
    assert_eq!(imported.code, 0, "{}", imported.err);
    let again = file.ok(&format!("export swe-agent --to contexture {owner}"));
    assert!(again == text);
    file.write("again.jsonl", again);
    ok("delete swe-agent");
    ok(&format!("import {}", file.path("again.jsonl").display()));
    assert!(ok("export swe-agent --to contexture") == text);
    ok("delete swe-agent");
    assert!(!ok("conversations").contains("swe-agent"));
}

#[test]
fn a_server_without_tables_says_what_to_do() {
    let place = Place::new();
    let run = run(&place, "template1", "conversations");
    assert_eq!(run.code, 7, "{}", run.err);
    assert!(run.err.contains("contexture migrate"), "{}", run.err);
    let nobody = place.run("--db postgres://nobody:hunter2@127.0.0.1:1/none conversations");
    assert!(nobody.err.contains("127.0.0.1:1/none"), "{}", nobody.err);
    assert!(!nobody.err.contains("hunter2"), "{}", nobody.err);
}
