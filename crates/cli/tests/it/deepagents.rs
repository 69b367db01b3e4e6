//! Databases of `@deepagents/context`.

use contexture_testdata::{read_bytes, read_text};
use rusqlite::Connection;
use serde_json::Value;

use crate::command::Place;

fn place() -> Place {
    let place = Place::new();
    place.write("chats.db", read_bytes("deepagents-context/chats.db.gz"));
    place
}

/// The ids of an owner's conversations.
fn ids(place: &Place, owner: &str) -> Vec<String> {
    let list = place.json(&format!("conversations --owner {owner} --json"));
    let list = list["conversations"].as_array().unwrap().clone();
    let mut ids: Vec<String> = list
        .iter()
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

#[test]
fn chats_belong_to_their_users() {
    let place = place();
    let before = std::fs::read(place.path("chats.db")).unwrap();
    let report = place.json("import chats.db --json");
    let list = report["imported"].as_array().unwrap();
    assert_eq!(list.len(), 5, "{report}");
    assert_eq!(
        (&list[0]["format"], &list[0]["branches"]),
        (&"deepagents".into(), &6.into())
    );
    assert_eq!(
        ids(&place, "ada@example.org"),
        ["chat-2:-gr--e-ad44990a", "support-42"]
    );
    assert_eq!(ids(&place, "team/bob"), ["long", "told"]);
    assert_eq!(ids(&place, "carol"), ["empty"]);
    assert_eq!(ids(&place, "local"), Vec::<String>::new());
    // The source is as it was, and nothing lies beside it.
    assert!(std::fs::read(place.path("chats.db")).unwrap() == before);
    for end in ["-wal", "-shm", "-journal"] {
        assert!(!place.path(&format!("chats.db{end}")).exists(), "{end}");
    }
    let again = place.json("import chats.db --from deepagents --json");
    let new: u64 = again["imported"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["new"].as_u64().unwrap())
        .sum();
    assert_eq!(new, 0, "{again}");
}

#[test]
fn an_owner_that_is_named_gets_them_all() {
    let place = place();
    place.ok("import chats.db --owner eve");
    assert_eq!(ids(&place, "eve").len(), 5);
    assert_eq!(ids(&place, "carol"), Vec::<String>::new());
}

#[test]
fn a_chat_comes_out_as_its_messages() {
    let place = place();
    place.ok("import chats.db");
    let expected: Value =
        serde_json::from_str(&read_text("deepagents-context/expected.json.gz")).unwrap();
    let chats = expected.as_array().unwrap();
    let support = chats
        .iter()
        .find(|chat| chat["id"] == "support-42")
        .unwrap();
    for branch in support["branches"].as_array().unwrap() {
        let name = branch["name"].as_str().unwrap();
        let line = format!("export support-42 --owner ada@example.org --branch {name}");
        let written: Value = serde_json::from_str(&place.ok(&line)).unwrap();
        assert_eq!(written, branch["messages"], "{name}");
    }
    let run = place.run("export support-42 --owner ada@example.org --to deepagents");
    assert_eq!(run.code, 5, "{}", run.err);
    assert!(run.err.contains("rows of a database"), "{}", run.err);
}

#[test]
fn one_id_is_for_one_chat() {
    let place = place();
    let run = place.run("import chats.db --conversation mine");
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(!place.database().exists());
    let conn = Connection::open(place.path("chats.db")).unwrap();
    conn.execute("DELETE FROM chats WHERE id <> 'told'", [])
        .unwrap();
    conn.close().unwrap();
    place.ok("import chats.db --conversation mine");
    assert_eq!(ids(&place, "team/bob"), ["mine"]);
}

#[test]
fn other_databases_are_told_apart() {
    let place = place();
    place.ok("import chats.db");
    std::fs::copy(place.database(), place.path("ours.db")).unwrap();
    let run = place.run("import ours.db");
    assert_eq!(run.code, 6, "{}", run.err);
    assert!(run.err.contains("no table `chats`"), "{}", run.err);
    assert!(run.err.contains("export --all"), "{}", run.err);
    let run = place.run("import chats.db --from ui");
    assert!(run.err.contains("binary file"), "{}", run.err);
}

/// Damage done to the database, what is said about it, and how many messages the others have.
#[test]
fn what_is_damaged_is_named_and_the_rest_is_kept() {
    for (damage, said) in [
        ("UPDATE messages SET data = '{' WHERE id = 'q2'", "not JSON"),
        (
            "UPDATE messages SET data = x'00ff' WHERE id = 'q2'",
            "message \"q2\" of chat \"support-42\"",
        ),
        (
            "UPDATE messages SET data = '\"content\"' WHERE id = 'q2'",
            "UI message",
        ),
        (
            "UPDATE messages SET data = '{\"type\":\"term\"}', type = 'fragment' WHERE id = 'q2'",
            "type \"fragment\"",
        ),
        (
            "UPDATE messages SET parentId = 'q2' WHERE id = 'q1'",
            "itself among those before it",
        ),
        (
            "UPDATE messages SET parentId = 'gone' WHERE id = 'q2'",
            "which is not there",
        ),
        (
            "UPDATE messages SET parentId = 'u0' WHERE id = 'q2'",
            "which is not there",
        ),
        (
            "UPDATE messages SET id = NULL WHERE id = 'q2'",
            "a row with an id",
        ),
        (
            "UPDATE branches SET headMessageId = 'gone' WHERE name = 'main-v4'",
            "branch \"main-v4\"",
        ),
        (
            "UPDATE branches SET name = 'größe' WHERE name = 'main-v4'",
            "größe",
        ),
        (
            "UPDATE checkpoints SET messageId = 'gone' WHERE name = 'waiting'",
            "checkpoint \"waiting\"",
        ),
        (
            "UPDATE checkpoints SET name = 'a' || char(10) WHERE name = 'waiting'",
            "checkpoint",
        ),
        (
            "UPDATE chats SET metadata = '[1]' WHERE id = 'support-42'",
            "an object as metadata",
        ),
        (
            "UPDATE chats SET userId = 'Ada Lovelace' WHERE id = 'support-42'",
            "--owner NAME",
        ),
        (
            "UPDATE chats SET id = NULL WHERE id = 'empty'",
            "a chat with an `id`",
        ),
    ] {
        let place = place();
        let conn = Connection::open(place.path("chats.db")).unwrap();
        conn.pragma_update(None, "foreign_keys", false).unwrap();
        assert_eq!(conn.execute(damage, []).unwrap(), 1, "{damage}");
        conn.close().unwrap();
        let run = place.run("import chats.db");
        assert_ne!(run.code, 0, "{damage}");
        let run = place.run("import chats.db --keep-going");
        assert_eq!(run.code, 1, "{damage}: {}", run.err);
        assert!(run.err.contains(said), "{damage}: {}", run.err);
        assert_eq!(ids(&place, "team/bob"), ["long", "told"], "{damage}");
        let again = place.run("import chats.db --keep-going");
        assert!(again.out.contains("nothing new"), "{damage}: {}", again.out);
        assert!(!again.out.contains("added"), "{damage}: {}", again.out);
        if !damage.contains("Lovelace") {
            let whole = place.ok("log support-42 --owner ada@example.org");
            assert!(whole.contains("Where is order 7?"), "{damage}: {whole}");
        }
    }
}
