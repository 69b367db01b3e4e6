//! Counting speed beside the `bpe-openai` crate, in one run.
//!
//! `cargo bench -p contexture-tokens [-- <filter>]` prints a table: megabytes per second on the first pass over a text
//! ("cold") and the best of several ("warm"), for both implementations in turn. Texts: real JSON (tau-bench), real code (this
//! workspace), prose and Chinese-Japanese-Korean text made of vocabulary words drawn by Zipf's law, so that rare words
//! are as frequent as in life, and the monotonous inputs that are slow elsewhere. Neither side remembers texts.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark prints its table, and breaks if its texts are not there"
)]

use std::io::Read;
use std::path::Path;
use std::time::Instant;

use contexture_tokens::{Encoding, ExactCounter, TokenCounter, counter_for};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let passes = if arguments.iter().any(|word| word == "--quick") {
        3
    } else {
        9
    };
    let filter = arguments.iter().find(|word| !word.starts_with("--"));
    loading();
    println!(
        "\n{:<28}{:>9}   {:>21}   {:>21}",
        "MB/s", "", "contexture", "bpe-openai"
    );
    println!(
        "{:<28}{:>9}   {:>10}{:>11}   {:>10}{:>11}",
        "text", "MB", "cold", "warm", "cold", "warm"
    );
    for (name, text) in texts() {
        for (encoding, ours, theirs) in [
            (
                "o200k",
                ExactCounter::o200k_base(),
                bpe_openai::o200k_base(),
            ),
            (
                "cl100k",
                ExactCounter::cl100k_base(),
                bpe_openai::cl100k_base(),
            ),
        ] {
            let name = format!("{name}, {encoding}");
            if filter.is_none_or(|filter| name.contains(filter.as_str())) {
                compare(&name, &text, ours, theirs, passes);
            }
        }
    }
    estimates(passes);
}

/// The first count of the process, which makes the tables.
fn loading() {
    for counter in [ExactCounter::o200k_base(), ExactCounter::cl100k_base()] {
        let start = Instant::now();
        counter.load_tables();
        println!(
            "load {:<12}{:>8.1} ms",
            counter.name(),
            start.elapsed().as_secs_f64() * 1e3
        );
    }
    let start = Instant::now();
    bpe_openai::o200k_base().count("");
    println!(
        "load bpe-openai  {:>8.1} ms (o200k)",
        start.elapsed().as_secs_f64() * 1e3
    );
    bpe_openai::cl100k_base().count("");
}

fn compare(
    name: &str,
    text: &str,
    ours: &ExactCounter,
    theirs: &bpe_openai::Tokenizer,
    passes: usize,
) {
    let (mut cold, mut warm, mut counts) = ([0.0; 2], [f64::MAX; 2], [0u64; 2]);
    for pass in 0..passes {
        for side in 0..2 {
            let start = Instant::now();
            counts[side] = match side {
                0 => ours.count(text).count,
                _ => theirs.count(text) as u64,
            };
            let seconds = start.elapsed().as_secs_f64();
            if pass == 0 {
                cold[side] = seconds;
            }
            warm[side] = warm[side].min(seconds);
        }
    }
    assert_eq!(counts[0], counts[1], "{name}");
    let megabytes = text.len() as f64 / 1e6;
    println!(
        "{name:<28}{megabytes:>9.2}   {:>10.1}{:>11.1}   {:>10.1}{:>11.1}",
        megabytes / cold[0],
        megabytes / warm[0],
        megabytes / cold[1],
        megabytes / warm[1],
    );
}

/// What an estimate and a hopeless limit cost.
fn estimates(passes: usize) {
    let (_, json) = texts().swap_remove(2);
    let best = |work: &dyn Fn()| {
        (0..passes)
            .map(|_| {
                let start = Instant::now();
                work();
                start.elapsed().as_secs_f64()
            })
            .fold(f64::MAX, f64::min)
    };
    let claude = counter_for(Encoding::ClaudeV2);
    let seconds = best(&|| assert!(claude.count(&json).count > 0));
    println!(
        "\nestimate for Claude, JSON   {:>10.1} MB/s",
        json.len() as f64 / 1e6 / seconds
    );
    let seconds = best(&|| {
        assert!(
            ExactCounter::o200k_base()
                .count_up_to(&json, 1000)
                .is_none()
        )
    });
    println!("refusing 4 MB at 1,000 tokens {:>8.3} ms", seconds * 1e3);
}

fn texts() -> Vec<(&'static str, String)> {
    let mut random = Random(1);
    let letters: String = (0..1_000_000)
        .map(|_| char::from(b'a' + random.below(26) as u8))
        .collect();
    vec![
        ("prose", prose(&mut random)),
        ("code", code()),
        ("json", json()),
        ("cjk", cjk(&mut random)),
        ("random letters", letters),
        ("100 KB of a", "a".repeat(100_000)),
        ("1 MB of spaces", " ".repeat(1_000_000)),
    ]
}

fn json() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../testdata/data/tau-bench/gpt-4o-airline.json.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    text
}

fn code() -> String {
    let mut text = String::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                text.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    text
}

/// Words of the vocabulary that `take` takes.
fn words(take: impl Fn(&str) -> bool) -> Vec<String> {
    let bpe = &bpe_openai::o200k_base().bpe;
    (256..bpe.num_tokens() as u32)
        .filter_map(|token| String::from_utf8(bpe.token_bytes(token).to_vec()).ok())
        .filter(|word| take(word))
        .collect()
}

fn prose(random: &mut Random) -> String {
    let words = words(|word| {
        word.strip_prefix(' ').is_some_and(|word| {
            word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_lowercase())
        })
    });
    let mut text = String::new();
    while text.len() < 1_000_000 {
        text.push_str(random.zipf(&words));
        match random.below(40) {
            // Words that are in no vocabulary: compounds.
            0..=2 => text.push_str(random.zipf(&words).trim_start()),
            3 | 4 => text.push(','),
            5 | 6 => text.push('.'),
            7 => text.push_str(".\n\nIt's"),
            8 => text.push_str(" 1987"),
            _ => {}
        }
    }
    text
}

fn cjk(random: &mut Random) -> String {
    let words = words(|word| {
        word.chars().all(|c| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}'))
    });
    let mut text = String::new();
    while text.len() < 1_000_000 {
        text.push_str(random.zipf(&words));
        match random.below(16) {
            0 => text.push('、'),
            1 => text.push_str("。\n"),
            _ => {}
        }
    }
    text
}

/// A small deterministic generator (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// The n-th word about as often as 1/n; the vocabulary's order is roughly that of frequency.
    fn zipf<'w>(&mut self, words: &'w [String]) -> &'w str {
        let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        let rank = (words.len() as f64).powf(unit) as usize;
        &words[rank.min(words.len()) - 1]
    }
}
