//! What is kept: listed, drawn, shown, branched, rewound.

use serde_json::Value;

use crate::command::Place;
use crate::sample;

fn place() -> Place {
    let place = Place::new();
    sample::support(&place);
    place
}

/// The drawing without what differs from run to run: ids become `····`, times `now`, and columns
/// are one blank apart.
fn stable(drawing: &str, ids: &[String]) -> String {
    let word = |word: &str| {
        let is_id = word.len() >= 4 && ids.iter().any(|id| id.starts_with(word));
        if is_id {
            "····".to_owned()
        } else {
            word.to_owned()
        }
    };
    let line = |line: &str| {
        let words: Vec<String> = line.split_whitespace().map(word).collect();
        let mut line = words.join(" ");
        for seconds in 0..60 {
            line = line.replace(&format!(" {seconds} s "), " now ");
        }
        line + "\n"
    };
    drawing.lines().map(line).collect()
}

fn ids(log: &Value) -> Vec<String> {
    let entries = log["entries"].as_array().unwrap();
    entries
        .iter()
        .map(|entry| entry["id"].as_str().unwrap().to_owned())
        .collect()
}

/// The id of the entry with this text.
fn id(place: &Place, text: &str) -> String {
    let log = place.json("log support-42 --json");
    let entries = log["entries"].as_array().unwrap().clone();
    let entry = entries.iter().find(|entry| entry["text"] == text);
    entry.unwrap_or_else(|| panic!("{text}: {log}"))["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn conversations_are_listed() {
    let place = place();
    sample::long(&place, "other", 4);
    let text = place.ok("conversations");
    assert!(
        text.contains("support-42") && text.contains("2 branches") && text.contains("Broken order"),
        "{text}"
    );
    let list = place.json("conversations --json");
    assert_eq!(list["conversations"][0]["id"], "other");
    assert_eq!(list["conversations"][1]["branches"], 2);
    assert_eq!(list["more"], false);
    let run = place.run("conversations -n 1");
    assert_eq!(run.out.lines().count(), 1);
    assert!(run.err.contains("there are more"), "{}", run.err);
    // Of another owner nothing is seen.
    assert_eq!(
        place.json("conversations --json --owner acme")["conversations"],
        serde_json::json!([])
    );
}

#[test]
fn the_tree_is_drawn() {
    let place = place();
    let ids = ids(&place.json("log support-42 --json"));
    let drawn = stable(&place.ok("log support-42"), &ids);
    let expected = include_str!("expected/log.txt");
    assert_eq!(drawn, expected, "\n{drawn}");
}

#[test]
fn the_tree_as_data() {
    let log = place().json("log support-42 --json");
    assert_eq!(log["branches"].as_array().unwrap().len(), 2);
    let entries = log["entries"].as_array().unwrap();
    assert_eq!(entries[0]["active"], true);
    assert_eq!(entries[0]["branches"], serde_json::json!(["main-v2"]));
    let calling = entries.iter().find(|entry| entry["calls"] == 1).unwrap();
    assert_eq!(
        (calling["text"].as_str(), calling["items"].as_u64()),
        (Some("find_order"), Some(2))
    );
    // Every parent is an entry.
    for entry in entries {
        let parent = &entry["parent"];
        assert!(
            parent.is_null() || entries.iter().any(|other| other["id"] == *parent),
            "{entry}"
        );
    }
}

#[test]
fn long_stretches_are_shortened() {
    let place = Place::new();
    sample::long(&place, "long", 10_000);
    let text = place.ok("log long");
    assert_eq!(text.lines().count(), 11, "{text}");
    assert!(text.contains("⋮  9,990 messages"), "{text}");
    assert!(text.contains("question 0"), "{text}");
    let all = place.ok("log long --all");
    assert_eq!(all.lines().count(), 10_000);
    assert!(
        all.lines()
            .all(|line| line.starts_with("○ ") || line.starts_with("@ "))
    );
    assert!(all.len() < 10_000 * 120, "a straight line is not indented");
    let some = place.json("log long --json -n 3");
    assert_eq!(
        (
            some["entries"].as_array().unwrap().len(),
            some["hidden"].as_u64()
        ),
        (3, Some(9_997))
    );
}

#[test]
fn the_active_end_is_always_drawn() {
    let place = Place::new();
    sample::long(&place, "long", 40);
    let log = place.json("log long --json");
    let old = log["entries"][35]["id"].as_str().unwrap();
    // A branch that ends far back, and more went on behind it.
    place.ok(&format!("rewind long {old}"));
    let entry = |n: usize| {
        let log = place.json(&format!("log long --json -n {n}"));
        let entries = log["entries"].as_array().unwrap().clone();
        let active = entries.iter().filter(|entry| entry["active"] == true);
        assert_eq!((entries.len(), active.count()), (n, 1), "{log}");
        (log["hidden"].clone(), log["hidden_heads"].clone())
    };
    assert_eq!(entry(3), (37.into(), 0.into()));
    assert_eq!(entry(1), (39.into(), 1.into()));
    let text = place.ok("log long -n 3");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].contains("main") && lines[3].starts_with("@  main-v2"),
        "{text}"
    );
    assert_eq!(lines[2], "⋮  33 messages more; --all shows them", "{text}");
    assert_eq!(lines[4], "⋮  4 messages more; --all shows them", "{text}");
    let text = place.ok("log long -n 1");
    assert!(
        text.starts_with("⋮  35 messages more, 1 of them where a branch ends; --all shows them\n@"),
        "{text}"
    );
}

#[test]
fn many_branches_stay_narrow() {
    let place = place();
    let first = id(&place, "Hi, my order #W8342 arrived broken");
    for _ in 0..30 {
        place.ok(&format!("rewind support-42 {first} -q"));
        place.ok("branch switch support-42 main -q");
    }
    let text = place.ok("log support-42 --all");
    assert!(
        text.lines().all(|line| line.chars().count() < 140),
        "{text}"
    );
}

#[test]
fn show_writes_a_message_whole() {
    let place = place();
    let calling = id(&place, "find_order");
    let short = &calling[..8];
    let text = place.ok(&format!("show support-42 {short}"));
    assert!(
        text.contains("call find_order (c1)") && text.contains(r#"{"id":"W8342"}"#),
        "{text}"
    );
    assert!(
        text.contains("output (c1)") && text.contains("3 items"),
        "{text}"
    );
    let document = place.json(&format!("show support-42 {short} --json"));
    let items = document["items"].as_array().unwrap();
    assert_eq!(items[0]["item"]["type"], "function_call");
    assert_eq!(items[1]["item"]["output"], "3 items");
    let message = document["message"].as_str().unwrap();
    assert_eq!(
        place.json(&format!("show support-42 {message} --json")),
        document
    );
}

#[test]
fn branches_are_made_switched_and_deleted() {
    let place = place();
    let active = |place: &Place| {
        let list = place.json("branch list support-42 --json");
        let branches = list["branches"].as_array().unwrap();
        let active = branches
            .iter()
            .find(|branch| branch["active"] == true)
            .unwrap();
        active["name"].as_str().unwrap().to_owned()
    };
    assert_eq!(active(&place), "main-v2");
    assert!(
        place
            .ok("branch create support-42 what-if --from main")
            .contains("what-if")
    );
    assert_eq!(active(&place), "main-v2");
    place.ok("branch switch support-42 what-if");
    assert_eq!(active(&place), "what-if");
    let text = place.ok("branch list support-42");
    assert!(text.contains("@  what-if"), "{text}");
    assert_eq!(
        place.run("branch delete support-42 what-if").code,
        5,
        "the active branch stays"
    );
    place.ok("branch switch support-42 main");
    let deleted = place.run("branch delete support-42 what-if");
    assert_eq!(
        (deleted.code, deleted.out.as_str()),
        (0, "deleted branch what-if\n")
    );
    assert!(!place.ok("branch list support-42").contains("what-if"));
    assert_eq!(place.run("branch create support-42 main").code, 4);
}

#[test]
fn what_a_deleted_branch_held_can_be_found_again() {
    let place = place();
    place.ok("branch switch support-42 main");
    let told = place.run("branch delete support-42 main-v2").err;
    assert!(!place.ok("log support-42").contains("the gloves too"));
    let (_, command) = told.split_once("`contexture ").unwrap();
    let (command, _) = command.split_once('`').unwrap();
    place.ok(command);
    assert!(
        place.ok("log support-42").contains("the gloves too"),
        "{told}"
    );
}

#[test]
fn the_beginning_of_an_id_is_enough() {
    let place = place();
    let log = place.json("log support-42 --json");
    assert_eq!(place.json("log supp --json")["entries"], log["entries"]);
    let short = place.run("log sup");
    assert_eq!(short.code, 3);
    assert!(
        short.err.contains("did you mean support-42?"),
        "{}",
        short.err
    );
    sample::long(&place, "support-7", 2);
    let two = place.run("log supp");
    assert_eq!(two.code, 3);
    for id in ["support-42", "support-7"] {
        assert!(two.err.contains(id), "{}", two.err);
    }
    assert_eq!(place.run("log support-4 --owner acme").code, 3);
    assert!(
        place
            .ok("compile support-4 --to gemini -q")
            .contains("contents")
    );
}

#[test]
fn rewind_and_restore_open_branches() {
    let place = place();
    let first = id(&place, "Hi, my order #W8342 arrived broken");
    let branch = place.json(&format!("rewind support-42 {} --json", &first[..10]));
    assert_eq!(
        (branch["active"].as_bool(), branch["messages"].as_u64()),
        (Some(true), Some(1))
    );
    assert_eq!(branch["head"], first.as_str());
    let restored = place.json("restore support-42 before-refund --json");
    assert_eq!(
        (restored["active"].as_bool(), restored["messages"].as_u64()),
        (Some(true), Some(3))
    );
    place.ok("branch switch support-42 main");
    assert!(
        place
            .ok("log support-42")
            .contains("Done: all three refunded.")
    );
}

#[test]
fn before_the_first_message_is_an_empty_branch() {
    let place = place();
    let branch = place.json("rewind support-42 --beginning --json");
    assert_eq!(
        (&branch["active"], &branch["messages"]),
        (&true.into(), &0.into())
    );
    assert!(branch["head"].is_null(), "{branch}");
    let all = place.json("log support-42 --all --json");
    assert_eq!(all["entries"].as_array().unwrap().len(), 6, "{all}");
    for line in ["rewind support-42", "rewind support-42 51c2 --beginning"] {
        assert_eq!(place.run(line).code, 2, "{line}");
    }
}

#[test]
fn checkpoints_are_set_listed_and_deleted() {
    let place = place();
    assert!(place.ok("checkpoint support-42 here").contains("◆ here"));
    let list = place.json("checkpoint support-42 --json");
    let names: Vec<&str> = list["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["before-refund", "here"]);
    place.ok("checkpoint support-42 here --delete");
    assert!(!place.ok("checkpoint support-42").contains("here"));
    assert_eq!(place.run("restore support-42 here").code, 3);
}

#[test]
fn a_stored_conversation_compiles() {
    let place = place();
    let run = place.run("compile support-42 --to anthropic --window 8k");
    assert_eq!(run.code, 0, "{}", run.err);
    let payload: Value = serde_json::from_str(&run.out).unwrap();
    assert!(
        payload["system"]
            .to_string()
            .contains("You are a support agent."),
        "{payload}"
    );
    assert!(
        run.err.contains("total") && run.err.contains("support-42"),
        "{}",
        run.err
    );
    let other = place.ok("compile support-42 --to openai-chat --branch main -q");
    assert!(other.contains("Done: all three refunded."), "{other}");
    let ui: Value = place.json("compile support-42 --to ui -q");
    assert!(
        ui["system"].as_str().unwrap().contains("support agent"),
        "{ui}"
    );
    assert_eq!(ui["messages"].as_array().unwrap().len(), 5, "{ui}");
}

#[test]
fn doctor_looks_at_everything() {
    let place = place();
    let text = place.ok("doctor");
    for name in [
        "version",
        "database",
        "format",
        "contents",
        "integrity",
        "catalogue",
        "terminal",
    ] {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert!(text.contains("none damaged"), "{text}");
    let report = place.json("doctor --json");
    assert_eq!(report["ok"], true);
    assert!(place.ok("doctor --models").contains("claude-sonnet-5"));
    // Without a database nothing is wrong.
    assert!(Place::new().ok("doctor").contains("not made yet"));
    // A file that is none is.
    let broken = Place::new();
    broken.write(
        "broken.db",
        "This is not a database, but it is long enough to be taken for one.".repeat(100),
    );
    let run = broken.run("doctor --db broken.db --json");
    assert_eq!(run.code, 1, "{}", run.out);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert!(
        report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .any(|check| check["state"] == "fail"),
        "{report}"
    );
}

#[test]
fn a_compaction_is_made_drawn_and_taken_back() {
    let place = Place::new();
    sample::wordy(&place, "long", 12);
    let before = place.ok("compile long --to openai-chat --report none");
    let dry = place.ok("compact long --dry-run");
    assert!(
        dry.contains("would stand for") && dry.contains("\nThe user said:\n"),
        "{dry}"
    );
    assert_eq!(
        place.ok("compile long --to openai-chat --report none"),
        before
    );

    let told = place.json("compact long --json");
    let id = told["compaction"].as_str().unwrap();
    assert!(told["summary_tokens"].as_u64().unwrap() < told["tokens"].as_u64().unwrap());
    let log = place.ok("log long");
    assert!(
        log.contains(" (↳ covered by compaction ") && log.contains(" tok)"),
        "{log}"
    );
    assert!(place.json("log long --json")["compactions"][0]["compaction"] == id);
    assert!(
        place
            .ok("compile long --to openai-chat --report none")
            .contains("Earlier here")
    );

    place.ok(&format!("uncompact long {}", &id[..8]));
    assert_eq!(
        place.ok("compile long --to openai-chat --report none"),
        before
    );
    assert!(!place.ok("log long").contains("covered by"));
    let none = place.run("uncompact long");
    assert!(
        none.err.contains("no compaction is in effect"),
        "{}",
        none.err
    );
}

#[test]
fn state_is_no_message() {
    let place = place();
    let before = place.json("log support-42 --json");
    let first = id(&place, "Hi, my order #W8342 arrived broken");
    place.ok(&format!("pin support-42 {first}"));
    let after = place.json("log support-42 --json");
    let texts = |log: &serde_json::Value| -> Vec<serde_json::Value> {
        let entries = log["entries"].as_array().unwrap().iter();
        entries.map(|entry| entry["text"].clone()).collect()
    };
    assert_eq!(texts(&after), texts(&before));
    assert_eq!(after["entries"][0]["active"], true);
    let pinned = after["entries"].as_array().unwrap().iter();
    let pinned: Vec<_> = pinned.filter(|entry| entry["pinned"] == true).collect();
    assert_eq!((pinned.len(), &pinned[0]["id"]), (1, &first.into()));
    let text = place.ok("log support-42");
    assert!(
        text.starts_with("@    main-v2") && !text.contains("(state changed)"),
        "{text}"
    );
    assert!(text.lines().last().unwrap().contains("pinned"), "{text}");
    let all = place.ok("log support-42 --state");
    assert_eq!(all.lines().count(), text.lines().count() + 1, "{all}");
    assert!(all.contains("(state changed)"), "{all}");
}

#[test]
fn rewinding_to_where_one_stands_opens_no_branch() {
    let place = place();
    let last = id(&place, "Shall I refund the gloves too?");
    let branches = |place: &Place| place.json("branch list support-42 --json")["branches"].clone();
    let before = branches(&place);
    // What only changes state behind a message is no other place.
    for pin in ["", "pin support-42 "] {
        if !pin.is_empty() {
            place.ok(&format!("{pin}{last}"));
        }
        let said = place.ok(&format!("rewind support-42 {last}"));
        assert!(
            said.starts_with("already there: on branch main-v2"),
            "{said}"
        );
    }
    let names = |branches: &serde_json::Value| -> Vec<serde_json::Value> {
        let branches = branches.as_array().unwrap().iter();
        branches.map(|branch| branch["name"].clone()).collect()
    };
    assert_eq!(names(&branches(&place)), names(&before));
    // From another branch the same message is another place: a branch of its own, numbered on.
    place.ok("branch switch support-42 main");
    let said = place.ok(&format!("rewind support-42 {last}"));
    assert!(said.starts_with("now on branch main-v3"), "{said}");
}

#[test]
fn a_checkpoint_moves_only_if_told_to() {
    let place = place();
    let refused = place.run("checkpoint support-42 before-refund");
    assert_eq!(refused.code, 4, "{}", refused.err);
    for said in ["before-refund", "hint:", "--move"] {
        assert!(refused.err.contains(said), "{}", refused.err);
    }
    let list = place.json("checkpoint support-42 --json");
    let before = list["checkpoints"][0]["node"].as_str().unwrap().to_owned();
    let moved = place.ok("checkpoint support-42 before-refund --move");
    assert!(
        moved.contains(&format!("moved from {}", &before[..12])),
        "{moved}"
    );
    // Where it is already, it is set again without a word of a move.
    let again = place.ok("checkpoint support-42 before-refund");
    assert!(!again.contains("moved"), "{again}");
    let document = place.json("checkpoint support-42 before-refund --move --branch main --json");
    assert!(document["moved_from"].is_string(), "{document}");
    assert_eq!(place.run("checkpoint support-42 --move").code, 2);
}
