//! Notes: made, listed, shared, rewound, shown to a model.

use std::process::Stdio;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::command::Place;
use crate::sample;

fn place() -> Place {
    let place = Place::new();
    sample::support(&place);
    place
}

/// Keys and values of the notes listed so.
fn notes(place: &Place, line: &str) -> Vec<(String, String)> {
    let list = place.json(&format!("memory list {line} --json"));
    let notes = list["notes"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    notes
        .map(|note| (text(&note["key"]), text(&note["value"])))
        .collect()
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

#[test]
fn notes_are_made_changed_listed_and_deleted() {
    let place = place();
    let empty = place.run("memory list -c support-42");
    assert_eq!((empty.code, empty.out.as_str()), (0, ""));
    assert!(empty.err.contains("no notes"), "{}", empty.err);

    let set = |line: &str| place.ok(&format!("memory set {line} -c support-42"));
    assert_eq!(set("tone brief"), "created note tone\n");
    assert_eq!(set("language Portuguese"), "created note language\n");
    assert_eq!(set("tone brief"), "unchanged note tone\n");
    assert_eq!(set("tone formal --ttl 3"), "updated note tone\n");
    set("tone --description style --importance 7");
    assert_eq!(place.ok("memory get tone -c supp"), "formal\n");
    let tone = place.json("memory get tone -c support-42 --json");
    assert_eq!(
        (&tone["value"], &tone["description"], &tone["importance"]),
        (&json!("formal"), &json!("style"), &json!(7))
    );
    assert_eq!(
        (&tone["updates"], &tone["expires"]),
        (&json!(3), &json!({"answers": 3}))
    );

    assert_eq!(tone["earlier"][0]["value"], json!("brief"), "{tone}");
    let history = place.ok("memory get tone --history -c support-42");
    let words: Vec<&str> = history.split_whitespace().collect();
    assert_eq!(words[..3], ["formal", "was", "brief"], "{history}");

    let text = place.ok("memory list -c support-42");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("language  Portuguese      "), "{text}");
    assert!(
        lines[1].starts_with("tone      formal (style)  3 answers left  "),
        "{text}"
    );

    assert_eq!(
        place.ok("memory delete tone -c support-42"),
        "deleted note tone\n"
    );
    assert_eq!(
        notes(&place, "-c support-42"),
        [pair("language", "Portuguese")]
    );
    let piped = place.feed("memory set draft - -c support-42 --json", "two\nlines\n");
    assert_eq!(piped.out, "{\"key\":\"draft\",\"done\":\"created\"}\n");
    assert_eq!(place.ok("memory get draft -c support-42"), "two\nlines\n");
}

#[test]
fn notes_of_a_resource_are_there_in_all_its_conversations() {
    let place = place();
    sample::of_resource(&place, "monday", "ada");
    sample::of_resource(&place, "tuesday", "ada");
    place.ok("memory set language Portuguese -c monday");
    place.ok("memory set tone brief --resource ada");
    let both = [pair("language", "Portuguese"), pair("tone", "brief")];
    for line in ["-c monday", "-c tuesday", "--resource ada"] {
        assert_eq!(notes(&place, line), both, "{line}");
    }
    assert_eq!(notes(&place, "-c support-42"), []);
    assert_eq!(notes(&place, "-c monday --scope path"), []);
    // They outlive the conversation they were made in.
    place.ok("delete monday");
    assert_eq!(notes(&place, "--resource ada"), both);
    let stranger = place.run("memory list --resource ada --owner acme");
    assert_eq!(stranger.code, 3, "{}", stranger.err);
}

#[test]
fn notes_of_the_path_rewind_and_the_others_do_not() {
    let place = place();
    place.ok("memory set stays here -c support-42");
    place.ok("checkpoint support-42 before");
    place.ok("memory set goes away -c support-42 --scope path");
    assert_eq!(
        notes(&place, "-c support-42 --scope path"),
        [pair("goes", "away")]
    );
    assert_eq!(
        notes(&place, "-c support-42 --scope path --branch main"),
        []
    );
    place.ok("restore support-42 before");
    assert_eq!(notes(&place, "-c support-42 --scope path"), []);
    assert_eq!(notes(&place, "-c support-42"), [pair("stays", "here")]);
}

#[test]
fn notes_expire_by_answers_by_time_or_never() {
    let place = place();
    let expires = |line: &str| {
        place.ok(&format!("memory set visit {line} -c support-42"));
        let note = place.json("memory get visit -c support-42 --json");
        (note["expires"].clone(), note["updated"].clone())
    };
    assert_eq!(expires("friday --ttl 20").0, json!({"answers": 20}));
    assert_eq!(expires("--ttl never").0, Value::Null);
    let (at, updated) = expires("--ttl-time 7d");
    let time = |value: &Value| value.as_str().unwrap().parse::<Timestamp>().unwrap();
    assert_eq!(
        time(&at["at"]).duration_since(time(&updated)),
        SignedDuration::from_hours(7 * 24)
    );
    let text = place.ok("memory list -c support-42");
    let minute = at["at"].as_str().unwrap()[..16].replace('T', " ");
    assert!(text.contains(&format!("until {minute}Z")), "{text}");
}

#[test]
fn writers_at_once_lose_nothing() {
    let place = place();
    sample::of_resource(&place, "monday", "ada");
    for scope in ["resource", "path"] {
        let set = |key: &str, value: &str| {
            std::process::Command::new(assert_cmd::cargo::cargo_bin!("contexture"))
                .args([
                    "memory", "set", key, value, "-c", "monday", "--scope", scope,
                ])
                .env("XDG_DATA_HOME", place.path("data"))
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        };
        let values = ["a", "b", "c", "d", "e", "f"];
        let children: Vec<_> = values
            .iter()
            .flat_map(|value| [set(value, "own"), set("shared", value)])
            .collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        let line = format!("-c monday --scope {scope}");
        assert_eq!(notes(&place, &line).len(), values.len() + 1, "{scope}");
        let shared = place.json(&format!("memory get shared {line} --json"));
        assert_eq!(shared["updates"], values.len(), "{scope}");
    }
}

#[test]
fn what_cannot_be_done_says_why() {
    let place = place();
    let long = "k".repeat(129);
    for (line, code, said) in [
        ("get nope -c support-42", 3, "no note \"nope\""),
        ("delete nope -c support-42", 3, "contexture memory list"),
        ("set nope -c support-42", 3, "create it, with a value"),
        (
            &format!("set {long} v -c support-42"),
            6,
            "the key has 129 bytes, the limit is 128",
        ),
        ("list -c nobody", 3, "no conversation \"nobody\""),
        (
            "list --resource nobody",
            3,
            "the resource \"nobody\" has no conversation",
        ),
        ("list --resource ada --scope path", 2, "--conversation"),
        ("list", 2, "--conversation"),
        (
            "list -c support-42 --scope global",
            2,
            "[possible values: resource, owner, path]",
        ),
        (
            "list -c support-42 --branch nowhere",
            3,
            "no branch \"nowhere\"",
        ),
        ("set k v -c support-42 --ttl 0", 2, "from 1, or `never`"),
        ("set k v -c support-42 --ttl-time soon", 2, "30m, 12h, 7d"),
        (
            "set k v -c support-42 --ttl 1 --ttl-time 7d",
            2,
            "cannot be used with",
        ),
        ("set k v -c support-42 --importance 101", 2, "0..=100"),
    ] {
        let run = place.run(&format!("memory {line}"));
        assert_eq!(run.code, code, "{line}: {}", run.err);
        assert!(run.err.contains(said), "{line}: {}", run.err);
    }
    assert_eq!(notes(&place, "-c support-42"), []);
    let error = place.run("memory get nope -c support-42 --json").err;
    let error: Value = serde_json::from_str(&error).unwrap();
    assert_eq!(error["error"]["kind"], "no_note");
}

#[test]
fn a_memory_that_is_full_says_so_and_has_room_again() {
    let place = place();
    let value = "v".repeat(8 * 1024);
    let set = |key: usize| place.feed(&format!("memory set k{key} - -c support-42"), &*value);
    // Keys take room too: of 32 values that would fill 256 KiB, 31 fit.
    for key in 0..31 {
        assert_eq!(set(key).code, 0);
    }
    let full = set(31);
    assert_eq!(full.code, 5, "{}", full.err);
    assert!(full.err.contains("the limit is 262144"), "{}", full.err);
    assert_eq!(notes(&place, "-c support-42").len(), 31);
    place.ok("memory delete k0 -c support-42");
    assert_eq!(set(31).code, 0);
}

#[test]
fn nothing_in_a_note_reaches_the_terminal() {
    let place = place();
    let value = "a\u{1b}[31mb\nc";
    place.feed("memory set note - -c support-42", value);
    assert_eq!(
        place.ok("memory get note -c support-42"),
        "a\u{fffd}[31mb\nc\n"
    );
    let text = place.ok("memory list -c support-42");
    assert!(text.starts_with("note  a [31mb c  "), "{text}");
    assert_eq!(notes(&place, "-c support-42"), [pair("note", value)]);
}

#[test]
fn a_compile_shows_the_notes() {
    let place = place();
    place.ok("memory set language Portuguese -c support-42");
    place.ok("memory set draft rough -c support-42 --scope path");
    let line = "compile support-42 --to anthropic --report json";
    for (flag, shown) in [
        ("--memory", Some("Portuguese")),
        ("--memory=path", Some("rough")),
        ("", None),
    ] {
        let run = place.run(&format!("{line} {flag}"));
        assert_eq!(run.code, 0, "{}", run.err);
        let request: Value = serde_json::from_str(&run.out).unwrap();
        let system = request["system"].to_string();
        for note in ["Portuguese", "rough"] {
            assert_eq!(
                system.contains(note),
                shown == Some(note),
                "{flag}: {system}"
            );
        }
        let tools = request["tools"].to_string();
        assert_eq!(tools.contains("create_memory"), shown.is_some(), "{tools}");
        assert_eq!(
            run.err.contains("\"memory\""),
            shown.is_some(),
            "{}",
            run.err
        );
    }
    let table = place.ok("explain support-42 --to gemini --memory");
    assert!(table.contains("memory"), "{table}");
}
