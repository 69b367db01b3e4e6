//! Whole conversations out and in again, copies of the database, checking it.

use contexture::Owner;
use contexture::store::{ExpectedVersion, KeyScope, KeyValues as _, PutEntry};
use contexture::store_sqlite::SqliteStore;
use serde_json::Value;

use crate::command::{Place, example};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A place with two conversations, one of them with a branch.
fn kept() -> Place {
    let place = Place::new();
    let session = example("marshmallow-1867.traj");
    place.ok(&format!("import {}", session.display()));
    let chat = r#"[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"},{"role":"user","content":"bye"}]"#;
    place.write("chat.json", chat);
    place.ok("import chat.json --conversation chat");
    let other = chat.replace("bye", "and more");
    place.write("other.json", other);
    place.ok("import other.json --conversation chat");
    place
}

#[test]
fn whole_conversations_go_out_and_come_in_equal() {
    let place = kept();
    let text = place.ok("export chat --to contexture");
    assert!(text.starts_with(r#"{"conversation":{"format":1,"owner":"local","id":"chat""#));
    place.ok("export --all -o all.jsonl");
    let all = std::fs::read_to_string(place.path("all.jsonl")).unwrap();
    assert!(all.contains(&text));
    let other = Place::new();
    other.write("all.jsonl", &all);
    let said = other.ok("import all.jsonl");
    let words: Vec<&str> = said.split_whitespace().collect();
    assert!(
        words.join(" ").contains("chat 4 items, 2 branches"),
        "{said}"
    );
    other.ok("export --all -o again.jsonl");
    assert!(std::fs::read_to_string(other.path("again.jsonl")).unwrap() == all);
    // From standard input, and as JSON.
    let third = Place::new();
    let run = third.feed("import - --json", text.clone());
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(json(&run.out)["imported"][0]["conversation"], "chat");
    assert_eq!(third.ok("export chat --to contexture"), text);
    // What is there already is not touched.
    let again = third.feed("import -", text);
    assert_eq!(again.code, 4, "{}", again.err);
    assert_eq!(
        place.ok("export --all --to contexture"),
        place.ok("export --all")
    );
    let other = place.run("export --all --to anthropic");
    assert!(
        other.code == 2 && other.err.contains("hint:"),
        "{}",
        other.err
    );
    let nobody = place.ok("export --all --resource nobody");
    assert_eq!(nobody.trim(), "");
}

/// Keeps a value under a key.
fn put(place: &Place, scope: KeyScope, key: &str) {
    let store = SqliteStore::open(place.database()).unwrap();
    let put = PutEntry {
        key: key.to_owned(),
        value: Some(key.as_bytes().into()),
        expect: ExpectedVersion::Any,
        at_ms: 1,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let owner = Owner::new("local").unwrap();
    runtime
        .block_on(store.put_entry(&owner, &scope, put))
        .unwrap();
}

#[test]
fn values_outside_conversations_go_out_and_come_in() {
    let place = kept();
    put(&place, KeyScope::Owner, "plan");
    put(&place, KeyScope::Resource("ada".to_owned()), "drink");
    put(&place, KeyScope::Resource("bob".to_owned()), "food");
    let all = place.ok("export --all");
    for key in ["plan", "drink", "food"] {
        assert!(all.contains(&format!("\"key\":\"{key}\"")), "{all}");
    }
    let ada = place.ok("export --all --resource ada");
    assert_eq!(ada.lines().count(), 3, "{ada}");
    assert!(ada.contains("drink") && !ada.contains("plan"));

    let other = Place::new();
    let said = other.feed("import -", all.clone());
    assert!(said.out.contains("3 values, 3 new"), "{said:?}");
    assert_eq!(other.ok("export --all"), all);
    let values = Place::new().feed("import - --json", ada.clone());
    assert_eq!(json(&values.out)["values"], 1);

    let gone = place.ok("delete --all --resource ada --yes");
    assert!(
        gone.contains("0 conversations and 1 value deleted"),
        "{gone}"
    );
    assert_eq!(place.ok("export --all --resource ada"), "");
    place.feed("import -", ada.clone());
    assert_eq!(place.ok("export --all"), all);
    let damaged = place.feed("import -", ada.replace("drink", "drunk"));
    assert_eq!(damaged.code, 6, "{damaged:?}");
    assert_eq!(place.ok("export --all"), all);
    place.ok("delete --all --yes");
    assert_eq!(place.ok("export --all"), "");
}

#[test]
fn lines_that_are_wrong_are_named() {
    let place = kept();
    let text = place.ok("export chat --to contexture");
    let other = Place::new();
    for (bad, line, said) in [
        (
            text.replace("hello", "hallo"),
            text.lines().count(),
            "checksum",
        ),
        (
            text.lines()
                .take(4)
                .map(|line| format!("{line}\n"))
                .collect(),
            5,
            "cut off",
        ),
        (
            text.replacen("\"kind\":\"user\"", "\"kind\":\"robot\"", 1),
            4,
            "robot",
        ),
    ] {
        other.write("bad.jsonl", bad);
        let run = other.run("import bad.jsonl");
        assert_eq!(run.code, 6, "{}", run.err);
        let place = format!("line {line}");
        for words in ["bad.jsonl", &place, said, "nothing was stored"] {
            assert!(run.err.contains(words), "{words}: {}", run.err);
        }
        assert_eq!(other.run("show chat x").code, 3);
    }
    let run = other.run("import bad.jsonl --conversation other");
    assert_eq!(run.code, 2, "{}", run.err);
}

/// The ids of all conversations of a place.
fn ids(place: &Place) -> Vec<String> {
    let listed: Value = serde_json::from_str(&place.ok("conversations --json")).unwrap();
    let all = listed["conversations"].as_array().unwrap().iter();
    all.map(|one| one["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Files are stored together, and conversations of one file, each whole or not at all. A damaged one
/// is named by its line, and none before it is lost.
#[test]
fn what_is_stored_together_is_whole_or_missing() {
    let place = Place::new();
    let files: Vec<String> = (0..12).map(|n| format!("c{n}.json")).collect();
    for (n, file) in files.iter().enumerate() {
        let chat = format!(r#"[{{"role":"user","content":"Question {n}"}}]"#);
        place.write(file, chat);
    }
    place.ok(&format!("import {}", files.join(" ")));
    let ids = ids(&place);
    assert_eq!(ids.len(), 12);
    let texts: Vec<String> = ids
        .iter()
        .map(|id| place.ok(&format!("export {id} --to contexture")))
        .collect();
    let other = Place::new();
    other.write("all.jsonl", texts.concat());
    other.ok("import all.jsonl");
    for (id, text) in ids.iter().zip(&texts) {
        assert_eq!(&other.ok(&format!("export {id} --to contexture")), text);
    }
    let damaged = Place::new();
    let mut bad = texts.clone();
    bad[6] = bad[6].replace("\"Question", "\"Query");
    damaged.write("bad.jsonl", bad.concat());
    let run = damaged.run("import bad.jsonl");
    assert_eq!(run.code, 6, "{}", run.err);
    let lines: usize = texts.iter().take(7).map(|text| text.lines().count()).sum();
    for words in [&format!("line {lines}"), "are stored, of this one nothing"] {
        assert!(run.err.contains(words), "{words}: {}", run.err);
    }
    let stored = self::ids(&damaged);
    assert!(!stored.contains(&ids[6]));
    assert!(
        ids.iter().take(6).all(|id| stored.contains(id)),
        "{stored:?}"
    );
}

#[test]
fn a_database_is_copied_checked_and_counted() {
    let place = kept();
    place.ok("backup copy.db");
    let taken = place.run("backup copy.db");
    assert_eq!(taken.code, 4, "{}", taken.err);
    assert!(taken.err.contains("copy.db"), "{}", taken.err);
    assert!(
        taken.err.contains("hint: no file is overwritten"),
        "{}",
        taken.err
    );
    let sound = place.ok("--db copy.db verify");
    assert!(
        sound.contains("2 conversations") && sound.contains("nothing is damaged"),
        "{sound}"
    );
    assert_eq!(
        place.ok("--db copy.db export chat --to contexture"),
        place.ok("export chat --to contexture")
    );
    assert_eq!(
        json(&place.ok("verify chat --json"))["findings"],
        Value::Array(Vec::new())
    );
    let counted = json(&place.ok("stats chat --json"));
    assert_eq!(counted["user"]["count"], 3);
    assert!(place.ok("stats chat").contains("user"));
    assert_eq!(json(&place.ok("gc --json"))["blobs"], 0);
    assert_eq!(place.run("verify nobody").code, 3);
    // A byte in the middle of a text, not of a word in the index.
    let path = place.path("copy.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes
        .windows(7)
        .position(|window| window == b"\"hello\"")
        .unwrap();
    bytes[at + 1] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let run = place.run("--db copy.db verify");
    assert_eq!(run.code, 1, "{}", run.out);
    assert!(
        run.out
            .contains("damaged node in conversation chat at depth 2"),
        "{}",
        run.out
    );
}

#[test]
fn what_is_deleted_is_gone() {
    let place = kept();
    assert_eq!(place.run("delete nobody").code, 3);
    assert_eq!(place.run("delete --all").code, 2, "it has to be meant");
    for command in ["delete", "export"] {
        let line = format!("{command} chat --resource nobody");
        assert_eq!(place.run(&line).code, 2, "{line}");
    }
    assert_eq!(place.ok("delete chat").trim(), "1 conversation deleted");
    assert_eq!(place.run("log chat").code, 3);
    let none = place.ok("delete --all --resource nobody --yes --json");
    assert_eq!(json(&none)["conversations"], 0);
    assert_eq!(
        json(&place.ok("delete --all --yes --json"))["conversations"],
        1
    );
    assert_eq!(place.ok("export --all").trim(), "");
}

#[test]
fn sizes_are_listed_largest_first() {
    let place = kept();
    let sizes = json(&place.ok("stats --json"));
    let rows = sizes["conversations"].as_array().unwrap();
    let bytes: Vec<u64> = rows
        .iter()
        .map(|row| row["bytes"].as_u64().unwrap())
        .collect();
    assert_eq!(bytes.len(), 2);
    assert!(bytes[0] > bytes[1] && bytes[1] > 0, "{bytes:?}");
    assert_eq!(sizes["bytes"], bytes.iter().sum::<u64>());
    let shown = place.ok("stats");
    assert!(shown.lines().nth(1).unwrap().ends_with("chat"), "{shown}");
    assert!(shown.ends_with("bytes in 2 conversations\n"), "{shown}");
}

#[test]
fn what_is_old_or_too_much_goes_only_if_it_is_meant() {
    let place = kept();
    let all = ids(&place);
    let newest = all[0].clone();
    assert_eq!(place.run("prune").code, 2);
    // Nothing is as old as that, so nothing would go, and nothing does.
    let none = json(&place.ok("prune --older-than 1d --json"));
    assert_eq!(
        (&none["would_delete"], &none["kept"]),
        (&Value::Array(Vec::new()), &2.into())
    );
    place.ok("prune --older-than 1d --yes");
    assert_eq!(ids(&place), all);
    // Only the one that was changed last fits.
    let sizes = json(&place.ok("stats --json"));
    let sizes = sizes["conversations"].as_array().unwrap();
    let size = sizes
        .iter()
        .find(|row| row["id"] == newest.as_str())
        .unwrap();
    let line = format!("prune --keep {}", size["bytes"]);
    let plan = json(&place.ok(&format!("{line} --json")));
    assert_eq!(plan["would_delete"][0]["id"], all[1].as_str());
    assert_eq!(plan["would_delete"][0]["reason"], "size");
    let shown = place.run(&line);
    assert!(
        shown.out.contains(&all[1]) && shown.err.contains("--yes"),
        "{shown:?}"
    );
    assert_eq!(ids(&place), all);
    let done = json(&place.ok(&format!("{line} --yes --json")));
    assert_eq!((&done["deleted"], &done["kept"]), (&1.into(), &1.into()));
    assert_eq!(ids(&place), [newest]);
    assert!(place.ok("verify").contains("nothing is damaged"));
}
