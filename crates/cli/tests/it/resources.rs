//! What conversations are about: named when they are made, never changed, used by what follows.

use serde_json::json;

use crate::command::Place;

const CHAT: &str =
    r#"[{"role":"user","content":"Which seat?"},{"role":"assistant","content":"By the aisle."}]"#;

/// A place with something to import, to say and to answer.
fn place() -> Place {
    let place = Place::new();
    place.write("chat.json", CHAT);
    place.write("said.txt", "What did I say of seats?");
    place.write("answers.jsonl", "\"By the aisle.\"\n");
    place
}

#[test]
fn an_import_names_the_resource() {
    let place = place();
    place.ok("import chat.json --conversation seats --resource ada");
    place.ok("import chat.json --conversation other");
    let listed = place.json("conversations --resource ada --json");
    let listed = listed["conversations"].as_array().unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(
        (&listed[0]["id"], &listed[0]["resource"]),
        (&json!("seats"), &json!("ada"))
    );
    place.ok("memory set seat aisle --resource ada");

    // The same again is known again; another resource is refused, and nothing is stored.
    place.ok("import chat.json --conversation seats --resource ada");
    place.ok("import chat.json --conversation seats");
    for (id, is) in [
        ("seats", "is about \"ada\""),
        ("other", "is about no resource"),
    ] {
        let line = format!("import chat.json --conversation {id} --resource ben");
        let refused = place.run(&line);
        assert_eq!(refused.code, 4, "{}", refused.err);
        assert!(refused.err.contains(is), "{}", refused.err);
        assert!(
            refused.err.contains("leave out --resource"),
            "{}",
            refused.err
        );
    }
    place.ok("export seats --to contexture -o whole.jsonl");
    let whole = place.run("import whole.jsonl --owner else --resource ada");
    assert_eq!(whole.code, 2, "{}", whole.err);
    assert!(whole.err.contains("keep their resources"), "{}", whole.err);
}

#[test]
fn talks_about_one_resource_share_its_notes() {
    let place = place();
    place.ok("import chat.json --conversation seats --resource ada");
    place.ok("memory set seat aisle --resource ada");
    let talk = "--script answers.jsonl --memory --resource ada";
    place.ok(&format!("run said.txt -c asked {talk}"));
    assert_eq!(place.ok("memory get seat -c asked"), "aisle\n");
    let chat = place.feed(&format!("chat -c asked {talk}"), "/memory");
    assert!(chat.out.starts_with("seat  aisle"), "{}", chat.out);
    let refused = place.run("run said.txt -c asked --script answers.jsonl --resource ben");
    assert_eq!(refused.code, 4, "{}", refused.err);
}
