//! Generated sessions with planted rules, look-alikes, and hostile text of tools and clients.

use std::hash::{BuildHasher, Hasher, RandomState};

use contexture_condense::{StandingRules, Statement, find_statements};
use contexture_ir::{FunctionCallOutput, Item, Message, Origin, Output, Role};
use contexture_testdata::{
    PlantedMessage, PlantedSpeaker, SeededNumbers, planted_sentences, planted_session,
};

fn seed() -> u64 {
    let given = std::env::var("CONTEXTURE_TEST_SEED").ok();
    let given = given.and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| RandomState::new().build_hasher().finish())
}

/// What is found in a message, by who says it.
fn statements_of(message: &PlantedMessage) -> Vec<Statement> {
    let text = message.text.as_str();
    let (origin, item): (Origin, Item) = match message.speaker {
        PlantedSpeaker::Person => (Origin::User, Message::text(Role::User, text).into()),
        PlantedSpeaker::Tool => {
            let output = FunctionCallOutput::new("c", Output::Text(text.to_owned()));
            (Origin::Tool, output.into())
        }
        PlantedSpeaker::Model => (Origin::Model, Message::text(Role::Assistant, text).into()),
        PlantedSpeaker::Layer => (Origin::Layer, Message::text(Role::User, text).into()),
        PlantedSpeaker::Host => (Origin::System, Message::text(Role::Developer, text).into()),
    };
    find_statements(origin, &item)
}

#[test]
fn planted_rules_are_found_and_nothing_else() {
    let seed = seed();
    println!("CONTEXTURE_TEST_SEED={seed}");
    let sessions = if std::env::var_os("CONTEXTURE_SOAK").is_some() {
        1_000
    } else {
        200
    };
    let mut numbers = SeededNumbers::new(seed);
    let mut count = 0;
    for number in 0..sessions {
        let messages = planted_session(&mut numbers);
        let expected: Vec<&str> = messages
            .iter()
            .filter_map(|one| one.rule.as_deref())
            .collect();
        let found: Vec<Statement> = messages.iter().flat_map(statements_of).collect();
        // Sentences that take rules back count too: nobody but the person can.
        let texts: Vec<&str> = found.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(texts, expected, "session {number} of seed {seed}");
        count += expected.len();
    }
    assert!(count > sessions, "{count} rules in {sessions} sessions");
}

#[test]
fn every_sentence_is_told_from_its_look_alikes() {
    for (section, sentences) in planted_sentences() {
        for sentence in sentences {
            let item = Item::from(Message::text(Role::User, sentence.as_str()));
            let found = find_statements(Origin::User, &item);
            let rules = found.iter().filter(|one| one.strength().is_some()).count();
            assert_eq!(
                rules,
                usize::from(section != "none"),
                "{section}: {sentence}"
            );
        }
    }
}

#[test]
fn lists_below_a_line_about_rules_are_rules() {
    let text = "From now on:\n- two spaces\n- short lines\n\nAnd fix the test.";
    let item = Item::from(Message::text(Role::User, text));
    let found = find_statements(Origin::User, &item);
    let texts: Vec<&str> = found.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(texts, ["From now on:", "two spaces", "short lines"]);
    let standing = StandingRules::from_statements(found.iter().map(|one| (0, one)));
    assert_eq!(standing.rules().len(), 3);
}

#[test]
fn entries_that_end_in_a_semicolon_are_no_code() {
    let found = |text: &str| {
        let item = Item::from(Message::text(Role::User, text));
        let found = find_statements(Origin::User, &item).into_iter();
        found.map(|one| one.text).collect::<Vec<_>>()
    };
    for (rule, last) in [
        ("never push to main", "fix the test."),
        ("benutze niemals Emojis", "und den Test reparieren."),
        ("nunca uses emojis", "arregla la prueba."),
        ("n'utilise jamais d'emojis", "corrige le test."),
    ] {
        let text = format!("To do:\n- {rule};\n- {last}");
        assert_eq!(found(&text), [format!("{rule};")]);
    }
    // Lines of programs stay none.
    for code in [
        "if (never) push(to_main, always);",
        "const never = push.to(main);",
        "use never::push_to_main;",
    ] {
        assert!(found(code).is_empty(), "{code}");
    }
}

#[test]
fn people_say_their_names_and_what_they_react_to() {
    let is_found = |text: &str| {
        let item = Item::from(Message::text(Role::User, text));
        !find_statements(Origin::User, &item).is_empty()
    };
    for text in [
        "Hi, I'm Ada Lovelace, and I'm calling about my order.",
        "Hello, this is Ada.",
        "Hallo, ich bin Jürgen Weiß und brauche Hilfe.",
        "Hola, soy María López.",
        "Bonjour, je suis Zoé.",
        "My skin gets red and itchy whenever I eat strawberries.",
        "I break out in hives after shellfish.",
    ] {
        assert!(is_found(text), "{text}");
    }
    for text in [
        "Hi, I'm back, and the test fails.",
        "Hi, I'm really upset because my flight was delayed.",
        "Hi, I'm Gold-plating the config file again.",
        "Hello, this is about the invoice.",
        "Hello, this is NOT working.",
        "Hallo, ich bin wieder da.",
        "Hola, soy yo otra vez.",
        "Bonjour, je suis perdu.",
        "My eyes turned red last night.",
        "The sweater gets itchy when it is washed.",
        "The dog has a rash from the collar.",
        "My hands are full.",
    ] {
        assert!(!is_found(text), "{text}");
    }
}

#[test]
fn apostrophes_quote_nothing() {
    for text in [
        "'Cause I said so: never use the users' names.",
        "Rock 'n' roll, but don't ever play it at my parents' place.",
        "It's the dogs' food, so never order it at the neighbours' shop.",
        "In the '90s style, always use tabs.",
        "Never touch the users’ data.",
    ] {
        let item = Item::from(Message::text(Role::User, text));
        assert_eq!(find_statements(Origin::User, &item).len(), 1, "{text}");
    }
}

#[test]
fn instructions_are_rules_unless_a_terminal_stands_behind_them() {
    let task = "We're solving an issue.\n\nINSTRUCTIONS:\nYou should always wait for feedback after every command.\n\n\
                TIPS:\n1. Do not use any interactive commands AT ALL!\n2. Fix the date parser.";
    let found = |text: &str| {
        let item = Item::from(Message::text(Role::User, text));
        let found = find_statements(Origin::User, &item).into_iter();
        found.map(|one| one.text).collect::<Vec<_>>()
    };
    let expected = [
        "You should always wait for feedback after every command.",
        "Do not use any interactive commands AT ALL!",
    ];
    assert_eq!(found(task), expected);
    // What a command printed looks the same: whoever writes a file could plant a rule.
    let terminal = format!("{task}\n(Open file: n/a)\n(Current directory: /)\nbash-$");
    assert!(found(&terminal).is_empty());
}
