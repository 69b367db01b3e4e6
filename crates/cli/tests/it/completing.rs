//! What shells are told: conversations and branches of the database, and never an error.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::command::Place;
use crate::sample;

/// What the program answers to a shell when the last of these words is completed, and whether it was silent.
fn complete(place: &Place, words: &[&str]) -> Vec<String> {
    let output = place
        .command()
        .env("CONTEXTURE_COMPLETE", "bash")
        .env("_CLAP_IFS", "\n")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .args(["--", "contexture"])
        .args(words)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{words:?}");
    assert!(output.stderr.is_empty(), "{words:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn add_conversation(place: &Place, id: &str) {
    sample::of_resource(place, id, "ada");
}

#[test]
fn conversations_and_branches_are_completed() {
    let place = Place::new();
    sample::support(&place);
    add_conversation(&place, "sales-7");
    place.write("support.json", "{}");
    let cases: [(&[&str], &[&str]); 11] = [
        (&["log", "su"], &["support-42"]),
        (&["log", "support-42x"], &[]),
        (&["delete", "s"], &["sales-7", "support-42"]),
        (&["search", "--conversation", "sa"], &["sales-7"]),
        (
            &["branch", "switch", "support-42", "main"],
            &["main", "main-v2"],
        ),
        (
            &["branch", "create", "support-42", "x", "--from", "main-"],
            &["main-v2"],
        ),
        (&["log", "support-42", "--branch", "main-"], &[]),
        (&["rewind", "support-42", "--branch", "main-"], &["main-v2"]),
        (&["rewind", "nobody", "--branch", ""], &[]),
        (&["--owner", "another", "log", "su"], &[]),
        (&["compile", "supp"], &["support-42", "support.json"]),
    ];
    for (words, expected) in cases {
        let mut found = complete(&place, words);
        found.sort();
        assert_eq!(found, expected, "{words:?}");
    }
    // Of those that begin so, the one that changed last comes first.
    assert_eq!(complete(&place, &["log", "s"]), ["sales-7", "support-42"]);
}

#[test]
fn a_completion_makes_no_database_and_no_complaint() {
    let place = Place::new();
    assert_eq!(complete(&place, &["log", "a"]), Vec::<String>::new());
    assert!(!place.database().exists());
    let notes = place.write("notes.txt", "no database");
    let notes = notes.to_string_lossy().into_owned();
    // A name that no server has, a closed port, an address of nothing.
    let databases = [
        &notes,
        "postgres://127.0.0.1:1/x",
        "http://x/",
        "",
        "no/such/file",
    ];
    for database in databases {
        assert_eq!(
            complete(&place, &["--db", database, "log", "a"]),
            Vec::<String>::new()
        );
    }
}

#[test]
fn a_completion_among_many_conversations_is_quick() {
    let is_soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let place = Place::new();
    sample::many(&place, if is_soak { 100_000 } else { 1_000 });
    // The newest, one page of those that begin so, and one that is not there, for which most is read.
    let cases = [("many-99", true), ("many-", true), ("money", false)];
    for (typed, is_found) in cases {
        let mut times: Vec<Duration> = (0..9)
            .map(|_| {
                let started = Instant::now();
                let found = complete(&place, &["log", typed]);
                assert!(
                    found.len() <= 100 && found.is_empty() != is_found,
                    "{typed}: {found:?}"
                );
                started.elapsed()
            })
            .collect();
        times.sort();
        println!("{typed}: {:?} to {:?}", times[0], times[4]);
        assert!(
            !is_soak || times[4] <= Duration::from_millis(50),
            "{typed}: {times:?}"
        );
    }
}

#[test]
fn a_shell_that_is_unknown_is_told_nothing() {
    let place = Place::new();
    let mut command = place.command();
    let output = command.env("CONTEXTURE_COMPLETE", "nush").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
    // Switched off, it is a run like any other.
    for off in ["", "0"] {
        let output = place
            .command()
            .env("CONTEXTURE_COMPLETE", off)
            .arg("--version")
            .output();
        assert!(output.unwrap().stdout.starts_with(b"contexture "));
    }
}

#[test]
fn a_real_bash_completes_a_conversation() {
    let place = Place::new();
    sample::support(&place);
    let program = assert_cmd::cargo::cargo_bin!("contexture");
    let script = "source <(contexture completions bash); COMP_WORDS=(contexture log sup); COMP_CWORD=2; \
                  _clap_complete_contexture contexture sup log; echo \"${COMPREPLY[@]}\"";
    let folder = program.parent().unwrap_or_else(|| Path::new("."));
    let output = Command::new("bash")
        .args(["--norc", "-c", script])
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
        .env("XDG_DATA_HOME", place.path("data"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), "support-42", "{output:?}");
}

#[test]
fn every_command_has_a_manual_page() {
    let place = Place::new();
    place.ok("man pages");
    let read = |name: &str| std::fs::read_to_string(place.path("pages").join(name)).unwrap();
    let first = read("contexture.1");
    assert!(first.contains(".TH contexture 1"), "{first}");
    let help = place.ok("--help");
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.trim().is_empty());
    // Further lines of a description are indented by more.
    let commands = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = commands
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names.iter().filter(|name| **name != "help") {
        let page = read(&format!("contexture-{name}.1"));
        assert!(page.contains(".SH SYNOPSIS"), "{name}");
    }
}
