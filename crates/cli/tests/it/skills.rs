//! Skills: listed, checked, shown, offered to a model.

use serde_json::{Value, json};

use crate::command::{Place, example};
use crate::sample;

/// Writes a skill into a folder; the front matter's fields are given.
fn skill(place: &Place, folder: &str, fields: &str) {
    std::fs::create_dir_all(place.path(folder)).unwrap();
    let text = format!("---\n{fields}---\n# How\n\nStep by step.\n");
    place.write(&format!("{folder}/SKILL.md"), text);
}

/// Two skills that are fine.
fn good(place: &Place) {
    skill(
        place,
        "good/pdf-forms",
        "name: pdf-forms\ndescription: Fills in forms.\nlicense: MIT\nallowed-tools: Bash(pdftk:*) Read\nmetadata:\n  author: ada\n",
    );
    skill(
        place,
        "good/notes",
        "name: notes\ndescription: Writes release notes.\n",
    );
}

/// Skills of which one is fine, one is odd and the others are none.
fn bad(place: &Place) {
    skill(place, "bad/fine", "name: fine\ndescription: Fine.\n");
    skill(
        place,
        "bad/odd",
        "name: odd\ndescription: Odd.\ncolour: red\n",
    );
    skill(
        place,
        "bad/sheets",
        "name: spreadsheets\ndescription: Reads sheets.\n",
    );
    skill(
        place,
        "bad/Tables",
        "name: Tables\ndescription: Reads tables.\n",
    );
    skill(place, "bad/mute", "name: mute\n");
    skill(place, "bad/yaml", "name: yaml\ndescription: a: b\n");
    std::fs::create_dir(place.path("bad/none")).unwrap();
    std::fs::create_dir(place.path("bad/bytes")).unwrap();
    place.write("bad/bytes/SKILL.md", b"---\n\xff\n---\n");
}

#[test]
fn skills_are_listed_with_what_is_wrong() {
    let place = Place::new();
    good(&place);
    bad(&place);
    assert_eq!(
        place.ok("skills list good"),
        "notes      Writes release notes.\npdf-forms  Fills in forms.\n"
    );
    let run = place.run("skills list bad");
    assert_eq!(
        (run.code, run.out.as_str()),
        (0, "fine  Fine.\nodd   Odd.\n")
    );
    assert!(
        run.err
            .contains("warning: `bad/mute`: the front matter has no description"),
        "{}",
        run.err
    );
    assert_eq!(place.run("skills list bad -q").err, "");
    let list = place.json("skills list good --json");
    assert_eq!(list["problems"], json!([]));
    assert_eq!(
        list["skills"][1],
        json!({"name": "pdf-forms", "description": "Fills in forms.", "path": "good/pdf-forms",
            "license": "MIT", "compatibility": null, "metadata": {"author": "ada"},
            "allowed_tools": ["Bash(pdftk:*)", "Read"]})
    );
    let empty = place.run("skills list bad/none");
    assert_eq!((empty.code, empty.out.as_str()), (0, ""));
    assert!(empty.err.contains("no skills"), "{}", empty.err);
}

#[test]
fn a_check_names_each_problem_by_path_and_rule() {
    let place = Place::new();
    good(&place);
    bad(&place);
    let fine = place.run("skills check good");
    assert_eq!((fine.code, fine.out.as_str()), (0, ""), "{}", fine.err);
    assert_eq!(fine.err, "2 skills, no problems\n");

    let run = place.run("skills check bad --json");
    assert_eq!(run.code, 1, "{}", run.err);
    let found: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(found["skills"], json!(["fine"]));
    let problems = found["problems"].as_array().unwrap().iter();
    let named: Vec<(&str, &str)> = problems
        .map(|problem| {
            (
                problem["path"].as_str().unwrap(),
                problem["rule"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        named,
        [
            ("bad/Tables", "name"),
            ("bad/bytes", "not_text"),
            ("bad/mute", "missing_field"),
            ("bad/odd", "unknown_fields"),
            ("bad/sheets", "folder"),
            ("bad/yaml", "front_matter"),
        ]
    );

    let text = place.run("skills check bad");
    assert_eq!((text.code, text.err.as_str()), (1, "1 skill, 6 problems\n"));
    let said = "bad/sheets  folder\n  the skill spreadsheets lies in the folder \"sheets\": both must have one name\n";
    assert!(text.out.contains(said), "{}", text.out);
}

#[test]
fn of_two_skills_of_one_name_the_first_counts() {
    let place = Place::new();
    good(&place);
    skill(&place, "more/notes", "name: notes\ndescription: Another.\n");
    let list = place.ok("skills list more good");
    assert!(list.starts_with("notes      Another.\n"), "{list}");
    let check = place.run("skills check good more");
    assert_eq!(check.code, 1);
    assert!(
        check.out.starts_with("more/notes  shadowed\n"),
        "{}",
        check.out
    );
}

#[test]
fn a_skill_is_shown() {
    let place = Place::new();
    good(&place);
    bad(&place);
    assert_eq!(
        place.ok("skills show notes good"),
        "# How\n\nStep by step.\n"
    );
    let shown = place.json("skills show notes good bad --json");
    assert_eq!(
        (&shown["name"], &shown["instructions"]),
        (&json!("notes"), &json!("# How\n\nStep by step."))
    );
    for (line, code, said) in [
        (
            "show nope good",
            3,
            "no skill \"nope\"\n  hint: there are: notes, pdf-forms",
        ),
        ("show sheets bad", 3, "both must have one name"),
        ("show nope bad/none", 3, "hold no skill"),
        ("show notes", 2, "FOLDER"),
        ("list nowhere", 3, "`nowhere`: no such folder"),
        (
            "check good/notes",
            2,
            "hint: name the folder above it: `good`",
        ),
        ("check", 2, "FOLDER"),
    ] {
        let run = place.run(&format!("skills {line}"));
        assert_eq!(run.code, code, "{line}: {}", run.err);
        assert!(run.err.contains(said), "{line}: {}", run.err);
    }
}

#[cfg(unix)]
#[test]
fn links_and_pipes_are_named_and_not_waited_for() {
    let place = Place::new();
    good(&place);
    std::os::unix::fs::symlink("/etc", place.path("good/link")).unwrap();
    std::fs::create_dir(place.path("good/pipe")).unwrap();
    let mut pipe = std::process::Command::new("mkfifo");
    let made = pipe.arg(place.path("good/pipe/SKILL.md")).status();
    assert!(made.unwrap().success());
    let run = place.run("skills check good");
    assert_eq!((run.code, run.err.as_str()), (1, "2 skills, 2 problems\n"));
    assert!(run.out.contains("good/link  file_type\n"), "{}", run.out);
    assert!(run.out.contains("good/pipe  file_type\n"), "{}", run.out);
}

#[test]
fn a_compile_offers_skills() {
    let place = Place::new();
    sample::support(&place);
    good(&place);
    bad(&place);
    let run = place.run("compile support-42 --to anthropic --skills good --skills bad");
    assert_eq!(run.code, 0, "{}", run.err);
    let request: Value = serde_json::from_str(&run.out).unwrap();
    let system = request["system"].to_string();
    for said in ["Fills in forms.", "Fine.", "load_skill"] {
        assert!(system.contains(said), "{said}: {system}");
    }
    let tools = request["tools"].to_string();
    assert!(
        tools.contains("load_skill") && tools.contains("read_skill_file"),
        "{tools}"
    );
    // The report has a line of its own for them, and what is none was said.
    assert!(run.err.contains("skills "), "{}", run.err);
    assert!(run.err.contains("warning: `bad/yaml`"), "{}", run.err);

    let file = example("marshmallow-1867.traj");
    for (line, said) in [
        (
            format!("compile {} --to anthropic --skills good", file.display()),
            "not a file",
        ),
        (
            "compile support-42 --to ui --memory".to_owned(),
            "UI messages",
        ),
        ("compile --jsonl --memory".to_owned(), "cannot be used with"),
    ] {
        let run = place.run(&line);
        assert_eq!(run.code, 2, "{line}: {}", run.err);
        assert!(run.err.contains(said), "{line}: {}", run.err);
    }
    let missing = place.run("compile support-42 --to anthropic --skills nowhere");
    assert_eq!(missing.code, 3, "{}", missing.err);
}

/// What other tests run: the documentation's own examples.
fn documented() -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let read = |path: &str| std::fs::read_to_string(format!("{root}/{path}")).unwrap();
    let code = read("crates/contexture/src/lib.rs");
    let code = code.lines().filter_map(|line| line.strip_prefix("//!"));
    let code = code.map(|line| line.strip_prefix(' ').unwrap_or(line));
    // What rustdoc hides.
    let code: Vec<&str> = code.filter(|line| !line.starts_with("# ")).collect();
    [code.join("\n"), read("docs/mcp.md"), read("docs/proxy.md")].concat()
}

#[test]
fn our_own_skill_is_one_and_shows_what_the_documentation_shows() {
    let place = Place::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../skills");
    let report = place.json(&format!("skills check --json {folder}"));
    assert_eq!(report["skills"], json!(["contexture"]));
    assert_eq!(report["problems"], json!([]));

    let skill = std::fs::read_to_string(format!("{folder}/contexture/SKILL.md")).unwrap();
    let documented = documented();
    let mut blocks = 0;
    for language in ["```rust\n", "```json\n"] {
        for block in skill.split(language).skip(1) {
            let block = block.split("\n```").next().unwrap();
            assert!(documented.contains(block), "{block}");
            blocks += 1;
        }
    }
    assert_eq!(blocks, 3);
    for command in ["serve", "conversations", "log", "doctor"] {
        place.ok(&format!("{command} --help"));
        assert!(
            skill.contains(&format!("contexture {command}")),
            "{command}"
        );
    }
}
