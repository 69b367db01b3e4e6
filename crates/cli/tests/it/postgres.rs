//! Conversations in PostgreSQL, on the server that `CONTEXTURE_TEST_POSTGRES` names.

use crate::command::{Place, Run, example};

const VARIABLE: &str = "CONTEXTURE_TEST_POSTGRES";

/// Runs a command on a database of the server; nothing it says repeats the password.
fn run(place: &Place, database: &str, line: &str) -> Run {
    let server = std::env::var(VARIABLE).unwrap_or_else(|_| {
        panic!(
            "this test needs a PostgreSQL server: run `cargo xtask test -p contexture-cli`, which starts one, or name \
             one in {VARIABLE}=postgres://superuser:password@host:port/postgres"
        )
    });
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
