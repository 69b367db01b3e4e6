//! Exact encodings against an independent implementation.
//!
//! The oracle is the crate `bpe-openai`: other code for splitting (a regex engine) and for merging.

use contexture_tokens::{Encoding, ExactCounter, TokenCount, TokenCounter, counter_for};

use crate::strings::{Rng, hostile};

fn check(ours: &ExactCounter, theirs: &bpe_openai::Tokenizer, text: &str) {
    let tokens = ours.encode(text);
    assert_eq!(tokens, theirs.encode(text), "{text:?}");
    assert_eq!(
        ours.count(text),
        TokenCount::exact(tokens.len() as u64),
        "{text:?}"
    );
}

fn counters() -> [(&'static ExactCounter, &'static bpe_openai::Tokenizer); 2] {
    [
        (ExactCounter::o200k_base(), bpe_openai::o200k_base()),
        (ExactCounter::cl100k_base(), bpe_openai::cl100k_base()),
    ]
}

#[test]
fn hostile_strings_encode_like_the_oracle() {
    for (ours, theirs) in counters() {
        let mut rng = Rng::seeded();
        for _ in 0..20_000 {
            check(ours, theirs, &hostile(&mut rng));
        }
    }
}

#[test]
fn long_strings_of_every_kind_encode_like_the_oracle() {
    for (ours, theirs) in counters() {
        let mut rng = Rng::seeded();
        let mut text = String::new();
        while text.len() < 2_000_000 {
            text.push_str(&hostile(&mut rng));
        }
        check(ours, theirs, &text);
    }
}

/// Inputs that are slow, or fatal, elsewhere. Nothing here may take long, or the test would.
#[test]
fn monotonous_megabytes_are_counted() {
    let mut rng = Rng::seeded();
    let letters: String = (0..1_000_000)
        .map(|_| char::from(b'a' + rng.below(26) as u8))
        .collect();
    let repeated = |unit: &str| unit.repeat(200_000 / unit.len());
    for text in [
        letters,
        "a".repeat(1_000_000),
        repeated("A"),
        " ".repeat(1_000_000),
        repeated("\n"),
        repeated(" \n"),
        repeated("\r\n"),
        repeated("^"),
        repeated("/"),
        repeated("9"),
        repeated("'"),
        repeated("'s"),
        repeated("aA"),
        repeated("Aa"),
        repeated("ªA"),
        repeated("\u{301}"),
        repeated("A\u{301}"),
        repeated("漢"),
        repeated("👩\u{200d}"),
        repeated("\0"),
        repeated("<|endoftext|>"),
    ] {
        for (ours, theirs) in counters() {
            assert_eq!(
                ours.count(&text).count,
                theirs.count(text.as_str()) as u64,
                "{:?}…",
                text.chars().take(20).collect::<String>()
            );
        }
    }
}

/// Counts published by OpenAI (its cookbook, "How to count tokens") or made with tiktoken 0.14.
#[test]
fn known_counts() {
    for (encoding, text, expected) in [
        (Encoding::Cl100kBase, "", 0),
        (Encoding::Cl100kBase, "antidisestablishmentarianism", 6),
        (Encoding::O200kBase, "antidisestablishmentarianism", 6),
        (Encoding::Cl100kBase, "2 + 2 = 4", 7),
        (Encoding::O200kBase, "2 + 2 = 4", 7),
        (Encoding::Cl100kBase, "お誕生日おめでとう", 9),
        (Encoding::O200kBase, "お誕生日おめでとう", 8),
        (Encoding::Cl100kBase, "a\n  ", 3),
        (Encoding::O200kBase, "<|endoftext|>", 7),
    ] {
        let counter = counter_for(encoding);
        assert_eq!(
            counter.count(text),
            TokenCount::exact(expected),
            "{encoding} {text:?}"
        );
        assert_eq!(counter.name(), encoding.name());
    }
}

#[test]
fn limits_are_kept_to_the_token() {
    let mut rng = Rng::seeded();
    for _ in 0..2_000 {
        let text = hostile(&mut rng);
        let counter = ExactCounter::o200k_base();
        let count = counter.count(&text).count;
        for limit in [
            0,
            count / 2,
            count.saturating_sub(1),
            count,
            count + 1,
            u64::MAX,
        ] {
            let expected = (count <= limit).then_some(TokenCount::exact(count));
            assert_eq!(
                counter.count_up_to(&text, limit),
                expected,
                "{limit} {text:?}"
            );
        }
    }
}

#[test]
fn threads_share_a_counter() {
    let text = "A text that several threads count at the same time. ".repeat(100);
    let expected = ExactCounter::o200k_base().count(&text);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(ExactCounter::o200k_base().count(&text), expected));
        }
    });
}
