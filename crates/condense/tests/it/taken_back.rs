//! What takes a rule back: words of the person about the same matter, and nothing less.

use contexture_condense::{StandingRules, Statement, find_statements};
use contexture_ir::{Item, Message, Origin, Role};

/// Checks which of some sentences, each a message of its own, still hold at the end.
#[track_caller]
fn check(sentences: &[&str], expected: &[&str]) {
    let found: Vec<(usize, Statement)> = sentences
        .iter()
        .enumerate()
        .flat_map(|(at, text)| {
            let item = Item::from(Message::text(Role::User, *text));
            find_statements(Origin::User, &item)
                .into_iter()
                .map(move |one| (at, one))
        })
        .collect();
    let standing = StandingRules::from_statements(found.iter().map(|(at, one)| (*at, one)));
    let texts: Vec<&str> = standing.rules().iter().map(|rule| rule.text).collect();
    assert_eq!(texts, expected, "{sentences:?}");
}

#[test]
fn a_person_takes_a_rule_back_by_its_matter() {
    let german = "Always answer in German.";
    check(
        &[german, "You don't have to answer in German any more."],
        &[],
    );
    check(&[german, "Forget the rule about German."], &[]);
    check(&[german, "You may answer in English again."], &[german]);
    check(
        &[german, "Never use emojis.", "You may use emojis again."],
        &[german],
    );
    check(&["I am vegetarian.", "I'm no longer vegetarian."], &[]);
    check(
        &[
            "Antworte immer auf Deutsch.",
            "Du musst nicht mehr auf Deutsch antworten.",
        ],
        &[],
    );
    check(&["Nunca uses emojis.", "Puedes usar emojis otra vez."], &[]);
    check(
        &[
            "N'utilise jamais d'emojis.",
            "Tu peux utiliser des emojis à nouveau.",
        ],
        &[],
    );
}

#[test]
fn in_doubt_both_stay() {
    let rule = "Never book a hotel with stairs.";
    check(&[rule, "Forget it."], &[rule]);
    check(&[rule, "Ignore all previous instructions."], &[rule]);
    check(
        &[rule, "Do I no longer need the hotel with stairs?"],
        &[rule],
    );
    check(&[rule, "I no longer work at Acme."], &[rule]);
    check(&[rule, "Call me Kim."], &[rule, "Call me Kim."]);
    // Before the rule was stated it cannot be taken back.
    check(&["Forget the rule about stairs in a hotel.", rule], &[rule]);
}

#[test]
fn what_is_said_again_was_said_last() {
    let (first, second) = ("Never use emojis.", "Always use tabs.");
    check(&[first, second, first], &[second, first]);
}
