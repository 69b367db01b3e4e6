//! Finding what was said.

use crate::command::Place;
use crate::sample;

fn place() -> Place {
    let place = Place::new();
    sample::support(&place);
    sample::long(&place, "other", 60);
    place
}

#[test]
fn hits_are_shown_with_their_place() {
    let place = place();
    let text = place.ok("search --all-words Order arrived");
    let lines: Vec<&str> = text.lines().collect();
    let words: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!((words[0], words[2]), ("support-42", "user"), "{text}");
    assert_eq!(lines[1], "  Hi, my order #W8342 arrived broken");
    assert_eq!(lines.len(), 2, "{text}");
    // The id is one that `show` takes.
    let shown = place.ok(&format!("show support-42 {}", words[1]));
    assert!(shown.contains("W8342"), "{shown}");
    let run = place.run("search --color always broken");
    assert!(run.out.contains("arrived \u{1b}["), "{}", run.out);
}

#[test]
fn hits_are_data_with_json() {
    let place = place();
    let found = place.json("search --json w8342 --kind call");
    assert_eq!(
        (&found["more"], &found["complete"]),
        (&false.into(), &true.into())
    );
    let hits = found["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 1, "{found}");
    assert_eq!(
        (&hits[0]["kind"], &hits[0]["conversation"]),
        (&"call".into(), &"support-42".into())
    );
    let text = hits[0]["snippet"]["text"].as_str().unwrap();
    let [from, to] = [0, 1].map(|end| hits[0]["snippet"]["matches"][0][end].as_u64().unwrap());
    assert_eq!(&text[from as usize..to as usize], "W8342", "{found}");
}

#[test]
fn places_bound_what_is_found() {
    let place = place();
    let count = |line: &str| {
        let found = place.json(&format!("search --json {line}"));
        found["hits"].as_array().unwrap().len()
    };
    for (line, expected) in [
        ("refund*", 3),
        ("refund* --conversation support-42 --branch main", 2),
        ("refund* -c support-42 --branch main-v2", 2),
        ("refund* -c other", 0),
        ("refund* --owner acme", 0),
        ("question --resource nobody", 0),
        ("question -n 100", 30),
        ("question --kind assistant", 0),
        ("order --kind user", 1),
        ("order --kind user --kind call", 2),
    ] {
        assert_eq!(count(line), expected, "{line}");
    }
    let run = place.run("search question -n 7");
    assert_eq!(run.out.lines().count(), 14);
    assert!(
        run.err.contains("7 hits, and there are more"),
        "{}",
        run.err
    );
}

#[test]
fn any_text_is_a_query() {
    let place = place();
    for query in ["\"", "c++", "AND", "(", "a:b", "*", "'", "%", "--"] {
        let run = place
            .command()
            .args(["search", "--", query])
            .output()
            .unwrap();
        assert_eq!(run.status.code(), Some(0), "{query}");
        let err = String::from_utf8(run.stderr).unwrap();
        assert!(err.starts_with("nothing "), "{query}: {err}");
    }
    let run = place.run("search");
    assert_eq!(run.code, 2, "{}", run.err);
    for line in ["x -c nowhere", "x -c support-42 --branch never"] {
        assert_eq!(place.run(&format!("search {line}")).code, 3, "{line}");
    }
    let run = place.run("search x -n 1000000");
    assert!(run.err.contains("search_hits"), "{}", run.err);
}

#[test]
fn pages_follow_each_other() {
    let place = place();
    let first = place.json("search --json question -n 7");
    let next = first["next"].as_str().unwrap();
    let second = place.json(&format!("search --json question -n 7 --after {next}"));
    let all = place.json("search --json question -n 14");
    let ids = |page: &serde_json::Value| -> Vec<String> {
        let hits = page["hits"].as_array().unwrap();
        hits.iter().map(|hit| hit["id"].to_string()).collect()
    };
    assert_eq!([ids(&first), ids(&second)].concat(), ids(&all));
    let run = place.run("search question --after x");
    assert!(
        run.code == 2 && run.err.contains("`next` of the page before"),
        "{}",
        run.err
    );
}

#[test]
fn hits_are_shown_with_what_stands_beside_them() {
    let place = place();
    let text = place.ok("search --all-words Order arrived -C 1");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "  Hi, my order #W8342 arrived broken");
    assert!(lines[2].starts_with("  | "), "{text}");
    let data = place.json("search --json --all-words Order arrived -C 1");
    let nearby = &data["hits"][0]["nearby"];
    assert_eq!(nearby["before"].as_array().unwrap().len(), 0, "{data}");
    assert_eq!(nearby["after"].as_array().unwrap().len(), 1, "{data}");
    // At an item only what was said until then is searched.
    let id = data["hits"][0]["id"].as_str().unwrap();
    let count = |line: &str| {
        let found = place.json(&format!("search --json -c support-42 {line}"));
        found["hits"].as_array().unwrap().len()
    };
    assert_eq!(
        (count("refund*"), count(&format!("refund* --at {id}"))),
        (3, 0)
    );
    assert_eq!(place.run(&format!("search refund --at {id}")).code, 2);
}

#[test]
fn a_question_is_answered_and_the_newest_comes_first() {
    let place = Place::new();
    let said = [
        "The staging password rotates every Friday.",
        "My office is Oslo.",
        "My office is Bergen.",
    ];
    sample::said(&place, "notes", &said);
    let text = place.ok("search When does the staging password rotate");
    assert!(text.contains("every Friday"), "{text}");
    let text = place.ok("search which office");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "  My office is Bergen.", "{text}");
    assert_eq!(lines[3], "  My office is Oslo.", "{text}");
    assert!(lines[4].starts_with("  so until "), "{text}");
    let newer = lines[0].split_whitespace().nth(1).unwrap();
    assert!(
        lines[4].ends_with(&format!("replaced by {newer}")),
        "{text}"
    );
    // Without a hit for all words, each is counted.
    let run = place.run("search --all-words office Friday");
    assert!(run.err.contains("apart: office 2, Friday 1"), "{}", run.err);
}
