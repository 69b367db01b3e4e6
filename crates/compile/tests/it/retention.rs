//! How much of what a session held is still in reach when its older half is dropped, the first message
//! apart: in view, or in the manifest that stands for it. The measure looks for facts in its own way, not in the manifest's.

use std::collections::BTreeSet;

use contexture_compile::PathItem;
use contexture_compile::compaction::{Allowance, Covered, Manifest};
use contexture_ir::{Item, Role};
use contexture_tokens::{Encoding, counter_for};

use crate::material::{Session, sessions};

/// The kinds of facts that are measured.
const KINDS: [&str; 4] = ["identifiers", "numbers", "paths", "error lines"];

/// What of the dropped half stands in a text, as `(found, all)` of each kind.
type Score = [(usize, usize); 4];

#[test]
fn nine_tenths_of_the_facts_stay_in_reach() {
    let counter = counter_for(Encoding::O200kBase);
    let mut window = Score::default();
    let mut manifest = Score::default();
    let (mut dropped_tokens, mut manifest_tokens, mut largest) = (0, 0, 0.0_f64);
    let all = sessions();
    assert_eq!(all.len(), 205);
    for session in &all {
        let (dropped, kept) = halves(session);
        let tokens = counter.count(&dropped).count;
        let told = manifest_of(session).render(Allowance::Tokens(tokens * 15 / 100, counter));
        let told_tokens = counter.count(&told.text).count;
        dropped_tokens += tokens;
        manifest_tokens += told_tokens;
        if tokens > 1_000 {
            largest = largest.max(told_tokens as f64 / tokens as f64);
        }
        let mut facts = facts(&dropped);
        facts[3] = error_lines(&outputs(session));
        add(&mut window, &facts, &kept);
        add(&mut manifest, &facts, &format!("{kept}\n{}", told.text));
    }
    println!("of the facts of the older half, {} sessions:", all.len());
    println!(
        "  {:<12} {:>7} {:>12} {:>14}",
        "", "facts", "window alone", "with manifest"
    );
    for (at, kind) in KINDS.iter().enumerate() {
        println!(
            "  {kind:<12} {:>7} {:>11.1}% {:>13.1}%",
            window[at].1,
            share(&window[at..=at]),
            share(&manifest[at..=at])
        );
    }
    println!(
        "  {:<12} {:>7} {:>11.1}% {:>13.1}%",
        "all",
        window.iter().map(|kind| kind.1).sum::<usize>(),
        share(&window),
        share(&manifest)
    );
    println!(
        "  {dropped_tokens} tokens dropped, manifests of {manifest_tokens} ({:.1} %), the largest {:.1} % of its half",
        100.0 * manifest_tokens as f64 / dropped_tokens as f64,
        100.0 * largest
    );
    assert!(share(&manifest) >= 90.0);
    assert!(manifest_tokens * 100 <= dropped_tokens * 15);
}

/// The first message, which every window keeps, the older half behind it, and the newer half.
fn cut<T>(path: &[T]) -> (&[T], &[T], &[T]) {
    let (older, newer) = path.split_at(path.len() / 2);
    let (opening, dropped) = older.split_at(older.len().min(1));
    (opening, dropped, newer)
}

fn halves(session: &Session) -> (String, String) {
    let text = |items: &[PathItem]| {
        let texts: Vec<String> = items.iter().map(|one| one.item.text()).collect();
        texts.join("\n")
    };
    let (opening, dropped, kept) = cut(&session.path);
    (text(dropped), format!("{}\n{}", text(opening), text(kept)))
}

/// What tools gave back in the dropped half; in a session without calls, what came as a message.
fn outputs(session: &Session) -> String {
    let (_, dropped, _) = cut(&session.path);
    let calls = session
        .path
        .iter()
        .any(|one| matches!(*one.item, Item::FunctionCall(_)));
    let is_output = |one: &&PathItem| match &*one.item {
        Item::FunctionCallOutput(_) => true,
        Item::Message(message) => !calls && message.role == Role::User,
        _ => false,
    };
    let texts: Vec<String> = dropped
        .iter()
        .filter(is_output)
        .map(|one| one.item.text())
        .collect();
    texts.join("\n")
}

fn manifest_of(session: &Session) -> Manifest {
    let all = session.path.iter().enumerate();
    let covered: Vec<Covered<'_>> = all
        .map(|(index, one)| Covered {
            index,
            item: &one.item,
            hash: Some(one.hash),
        })
        .collect();
    let (opening, dropped, kept) = cut(&covered);
    Manifest::of(dropped).beside(&[opening, kept].concat())
}

fn add(score: &mut Score, wanted: &[BTreeSet<String>; 4], text: &str) {
    let found = facts(text);
    for (at, wanted) in wanted.iter().enumerate() {
        score[at].1 += wanted.len();
        score[at].0 += match at {
            // A line may stand in another.
            3 => wanted
                .iter()
                .filter(|line| text.contains(line.as_str()))
                .count(),
            _ => wanted.intersection(&found[at]).count(),
        };
    }
}

fn share(score: &[(usize, usize)]) -> f64 {
    let (found, all) = score
        .iter()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    100.0 * found as f64 / all as f64
}

/// Identifiers: words of letters and digits. Numbers: of two digits or more, dates and times whole.
/// Paths: words with an ending or with slashes. Error lines: their beginnings, white space made one.
fn facts(text: &str) -> [BTreeSet<String>; 4] {
    let digits = |word: &str| word.bytes().filter(u8::is_ascii_digit).count();
    let letters = |word: &str| word.bytes().any(|byte| byte.is_ascii_alphabetic());
    let identifiers = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))
        .filter(|word| word.len() > 2 && word.len() < 100 && digits(word) > 0 && letters(word));
    let numbers = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || "_.,:/-".contains(c)))
        .map(|word| word.trim_matches(|c: char| !c.is_ascii_digit()))
        .filter(|word| {
            digits(word) > 1 && !letters(word) && word.len() < 40 && !word.contains('_')
        });
    let paths = text
        .split(|c: char| c.is_whitespace() || "\"'`()[]{}<>,;:=|".contains(c))
        .map(|word| word.trim_matches('.'))
        .filter(|word| word.len() < 160 && letters(word) && is_path(word));
    let set = |words: &mut dyn Iterator<Item = &str>| words.map(str::to_owned).collect();
    [
        set(&mut identifiers.into_iter()),
        set(&mut numbers.into_iter()),
        set(&mut paths.into_iter()),
        error_lines(text),
    ]
}

fn error_lines(text: &str) -> BTreeSet<String> {
    let lines = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let tells = |line: &String| {
        let lower = line.to_lowercase();
        ["error", "failed", "exception", "traceback"]
            .iter()
            .any(|word| lower.contains(word))
    };
    let shown = |line: String| line.chars().take(150).collect::<String>().trim().to_owned();
    lines.filter(tells).map(shown).collect()
}

fn is_path(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    let ending = [
        ".py", ".rs", ".md", ".rst", ".txt", ".toml", ".cfg", ".json", ".js", ".ts", ".c", ".h",
        ".sh", ".yml", ".ini",
    ]
    .iter()
    .any(|ending| name.len() > ending.len() && name.ends_with(ending));
    ending || word.starts_with('/') && word.matches('/').count() > 1
}
