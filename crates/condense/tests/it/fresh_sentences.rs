//! Sentences that somebody wrote who had not read the phrases: half of them were read while the phrases were made, half never.

use contexture_condense::find_statements;
use contexture_ir::{Item, Message, Origin, Role};

/// How many of the sentences that are rules are found, how many of the others, and the sentences that are not told apart.
fn found_in(fixture: &str) -> (usize, usize, Vec<&str>) {
    let (mut rules, mut others, mut wrong) = (0, 0, Vec::new());
    for line in fixture.lines() {
        let fields: Vec<&str> = line.splitn(3, '\t').collect();
        assert_eq!(
            fields.len(),
            3,
            "a line has a language, yes or no, and a sentence: {line:?}"
        );
        let (is_rule, sentence) = (fields[1] == "yes", fields[2]);
        let item = Item::from(Message::text(Role::User, sentence));
        let found = find_statements(Origin::User, &item);
        let is_found = found.iter().any(|one| one.strength().is_some());
        if is_found != is_rule {
            wrong.push(line);
        }
        match is_rule {
            true => rules += usize::from(is_found),
            false => others += usize::from(is_found),
        }
    }
    (rules, others, wrong)
}

#[test]
fn sentences_that_were_read_are_told_apart() {
    let (rules, others, wrong) = found_in(include_str!("../fixtures/fresh_sentences_read.tsv"));
    assert_eq!((rules, others), (80, 0), "{wrong:#?}");
}

/// Whoever reads these sentences to improve the phrases has nothing left to measure with: write new ones instead.
#[test]
fn sentences_that_nobody_read_are_mostly_told_apart() {
    let (rules, others, _) = found_in(include_str!("../fixtures/fresh_sentences_unread.tsv"));
    assert!(rules >= 62, "{rules} of 80 rules are found");
    assert!(others <= 1, "{others} of 80 other sentences are found");
}
