//! Sentences that somebody wrote who had not read the phrases: half of them were read while the phrases were made, half never.

use contexture_condense::find_statements;
use contexture_ir::{Item, Message, Origin, Role};

/// How many of the sentences that are rules are found, and how many of the others.
fn found_in(fixture: &str) -> (usize, usize) {
    let (mut rules, mut others) = (0, 0);
    for line in fixture.lines() {
        let mut fields = line.splitn(3, '\t');
        let (language, is_rule) = (fields.next().unwrap(), fields.next().unwrap() == "yes");
        let sentence = fields.next().unwrap();
        let item = Item::from(Message::text(Role::User, sentence));
        let found = find_statements(Origin::User, &item);
        let is_found = found.iter().any(|one| one.strength().is_some());
        if is_found != is_rule {
            println!("{language}, is a rule: {is_rule}: {sentence}");
        }
        match is_rule {
            true => rules += usize::from(is_found),
            false => others += usize::from(is_found),
        }
    }
    (rules, others)
}

#[test]
fn sentences_that_were_read_are_told_apart() {
    let found = found_in(include_str!("../fixtures/fresh_sentences_read.tsv"));
    assert_eq!(found, (80, 0));
}

/// Whoever reads these sentences to improve the phrases has nothing left to measure with: write new ones instead.
#[test]
fn sentences_that_nobody_read_are_mostly_told_apart() {
    let (rules, others) = found_in(include_str!("../fixtures/fresh_sentences_unread.tsv"));
    assert!(rules >= 62, "{rules} of 80 rules are found");
    assert!(others <= 1, "{others} of 80 other sentences are found");
}
