//! Estimates are bounded, additive enough and ordered.

use contexture_tokens::{
    CountKind, Encoding, EstimatingCounter, ExactCounter, TokenCount, TokenCounter, counter_for,
};

use crate::strings::{Rng, hostile};

const ESTIMATED: [Encoding; 5] = [
    Encoding::ClaudeV1,
    Encoding::ClaudeV2,
    Encoding::Gemma3,
    Encoding::Gemma4,
    Encoding::Other,
];

#[test]
fn bounds_hold_their_order_on_any_text() {
    let mut rng = Rng::seeded();
    for _ in 0..3_000 {
        let text = hostile(&mut rng);
        for encoding in ESTIMATED {
            let count = counter_for(encoding).count(&text);
            assert!(
                0 < count.low && count.low <= count.count && count.count <= count.high,
                "{encoding} {count:?} {text:?}"
            );
            assert!(
                count.high <= text.len() as u64 + 1,
                "{encoding} {count:?} {text:?}"
            );
            assert_eq!(count.kind, CountKind::Estimated);
        }
    }
}

#[test]
fn nothing_has_no_tokens() {
    for encoding in ESTIMATED {
        assert_eq!(counter_for(encoding).count("").high, 0);
    }
}

/// The ratios to `o200k_base` per class of content, in thousandths.
#[test]
fn each_class_has_its_ratio() {
    let prose = "It was the best of times, it was the worst of times, it was the age of wisdom.\n";
    let code = "    for (i, x) in xs.iter().enumerate() { sum += f(x) * w[i]; }\n";
    let json = "  {\"id\": \"a-1\", \"tags\": [\"x\", \"y\"], \"ok\": true},\n";
    let cjk = "春眠不覚暁、処処聞啼鳥。夜来風雨声、花落知多少。\n";
    let emoji = "👍🎉😀👍🎉😀👍🎉😀\n";
    for (encoding, text, expected) in [
        (Encoding::ClaudeV1, prose, 1180),
        (Encoding::ClaudeV2, prose, 1530),
        (Encoding::ClaudeV2, code, 1595),
        (Encoding::ClaudeV2, json, 1516),
        (Encoding::ClaudeV1, cjk, 1450),
        (Encoding::Gemma4, cjk, 850),
        (Encoding::Gemma4, code, 1160),
        (Encoding::Gemma3, emoji, 900),
    ] {
        let text = text.repeat(50);
        let base = ExactCounter::o200k_base().count(&text).count;
        let estimate = counter_for(encoding).count(&text).count;
        let ratio = estimate * 1000 / base;
        assert!(
            ratio.abs_diff(expected) <= 15,
            "{encoding} {ratio} {text:.30?}"
        );
    }
}

/// What repeated strings take in the public vocabulary of Gemma 3, which Gemini 2 to 3.0 use: strings that `o200k_base` cuts
/// quite differently.
#[test]
fn bounds_hold_where_vocabularies_differ() {
    for (text, times, tokens) in [
        ("31415926535897932384626433832795", 10, 320),
        ("2026-11-21 19:50:04, ", 10, 210),
        ("春眠不覚暁、処処聞啼鳥。夜来風雨声、花落知多少。", 10, 230),
        ("龄炋橔鎅鷭屏崈綍罉漙", 10, 260),
        ("한국어 문장을 토큰으로 나눈다. ", 10, 111),
        ("👍🎉😀🚀", 20, 80),
        ("👩\u{200d}💻🇩🇪❤\u{fe0f}🏽", 20, 140),
        (" ", 1000, 33),
        ("\r\n", 100, 200),
        (" \n\t", 100, 300),
        ("aGVsbG8gd29ybGQgKDEyMyk+Pz8/Cg", 10, 221),
        ("9f86d081884c7d659a2feaa0c55ad015", 10, 290),
        (
            "{\"id\": \"3f2b8c1e-9a47-4d0b-8e6f-1c5a7d9b2e40\"}",
            10,
            419,
        ),
        ("zxqjvkwpfymbhgdntrlscoiuea", 10, 131),
        ("!@#$%^&*()_+-=[]{}|;:,./<>?~", 10, 161),
        ("السلام عليكم ورحمة الله ", 10, 51),
        ("\u{e000}\u{2028}\u{85}\u{3000}", 20, 180),
    ] {
        let estimate = counter_for(Encoding::Gemma3).count(&text.repeat(times));
        assert!(
            estimate.low <= tokens && tokens <= estimate.high,
            "{text:?} × {times}: {estimate:?}, true {tokens}"
        );
    }
}

/// Mixed text is the sum of its lines, whatever stands around them.
#[test]
fn lines_add_up() {
    let lines = [
        "Here is what the tool returned, as you asked:\n",
        "{\"status\": \"ok\", \"items\": [1, 2, 3], \"next\": null}\n",
        "    return self.items[index].clone();\n",
        "以上です。よろしくお願いします。\n",
    ];
    let counter = EstimatingCounter::for_encoding(Encoding::ClaudeV2);
    let whole = counter.count(&lines.concat());
    let sum: TokenCount = lines.iter().map(|line| counter.count(line)).sum();
    assert!(
        whole.count.abs_diff(sum.count) <= lines.len() as u64,
        "{whole:?} {sum:?}"
    );
    assert!(whole.high <= sum.high);
}

#[test]
fn the_limit_holds_against_the_upper_bound() {
    let counter = counter_for(Encoding::ClaudeV2);
    let text = "Some words to count. ".repeat(20);
    let count = counter.count(&text);
    assert_eq!(counter.count_up_to(&text, count.high), Some(count));
    assert_eq!(counter.count_up_to(&text, count.high - 1), None);
}

#[test]
fn sums_are_as_good_as_their_worst_part() {
    let sum = TokenCount::exact(5) + TokenCount::estimate(1, 2, 4);
    assert_eq!((sum.low, sum.count, sum.high), (6, 7, 9));
    assert_eq!(sum.kind, CountKind::Estimated);
    assert_eq!(TokenCount::estimate(9, 5, 1), TokenCount::estimate(5, 5, 5));
    let most = TokenCount::exact(u64::MAX) + TokenCount::exact(1);
    assert_eq!(most.count, u64::MAX);
}
