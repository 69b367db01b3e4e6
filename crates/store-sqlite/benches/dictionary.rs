//! Makes a dictionary for short items, and tells what it saves:
//! `cargo bench -p contexture-store-sqlite --bench dictionary [-- FILE]`.
//!
//! Trained on the texts in `dictionary/`, which are ours: none of the recordings it is measured on
//! is in it. With a name, the new dictionary is written there. The ones in use are never made
//! again: a database that was written with one needs its exact bytes.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and fails by panicking"
)]

use contexture_sessions::{ReadOptions, detect_format, read_sessions};
use contexture_testdata as testdata;
use zstd::bulk::Compressor;

const SIZE: usize = 16 << 10;

fn main() {
    let samples = samples();
    let bytes: usize = samples.iter().map(String::len).sum();
    println!("{} samples of {bytes} bytes", samples.len());
    // Twice, because the trainer holds back a quarter for its own trials.
    let twice = [&samples[..], &samples].concat();
    let new = zstd::dict::from_samples(&twice, SIZE).unwrap();
    let shipped = include_bytes!("../dictionary/2.zdict");
    println!(
        "{:<30} {:>7} {:>7} {:>7}",
        "part of the plain bytes", "none", "shipped", "new"
    );
    for (name, items) in recorded() {
        for from in [64, 128, 256, 512] {
            let part = |dictionary: &[u8]| part(&items, dictionary, from);
            println!(
                "{:<30} {:>7.3} {:>7.3} {:>7.3}",
                format!("{name}, from {from} bytes"),
                part(&[]),
                part(shipped),
                part(&new)
            );
        }
    }
    if let Some(path) = std::env::args().skip(1).find(|word| !word.starts_with('-')) {
        std::fs::write(&path, &new).unwrap();
        println!("{} bytes written to {path}", new.len());
    }
}

/// The texts as the items that would say them.
fn samples() -> Vec<String> {
    let quoted = |text: &str| serde_json::to_string(&text.replace("{-}", "")).unwrap();
    let ids = [
        "call_a1B2c3D4e5F6g7H8i9J0k1L2",
        "call_Zy9Xw8Vu7Ts6Rq5Po4Nm3Lk2",
        "toolu_01AbCdEfGhJkLmNpQrStUvWx",
        "toolu_01Xy7Kq2Mn4Pb6Rt8Sv1Wz3C",
    ];
    let mut samples = Vec::new();
    for text in include_str!("../dictionary/sentences.txt").lines() {
        let text = quoted(&text.replace("\\n", "\n").replace("\\\"", "\""));
        for (role, kind) in [("user", "input_text"), ("assistant", "output_text")] {
            samples.push(format!(
                r#"{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":{text}}}]}}"#
            ));
        }
    }
    let calls = include_str!("../dictionary/calls.txt").lines();
    let calls: Vec<(&str, &str)> = calls.map(|call| call.split_once(' ').unwrap()).collect();
    let mut ids = ids.iter().cycle();
    let mut id = || ids.next().unwrap();
    for (name, arguments) in &calls {
        samples.push(format!(
            r#"{{"type":"function_call","call_id":"{}","name":"{name}","arguments":{}}}"#,
            id(),
            quoted(arguments)
        ));
    }
    let outputs = include_str!("../dictionary/outputs.txt").split("%\n");
    for (n, output) in outputs.enumerate() {
        let text = quoted(output.trim_end());
        let begin = format!(
            r#"{{"type":"function_call_output","call_id":"{}","output":"#,
            id()
        );
        samples.push(format!("{begin}{text}}}"));
        let (name, _) = calls.iter().cycle().nth(n).unwrap();
        samples.push(match n % 3 {
            0 => format!(r#"{begin}{text},"is_error":false}}"#),
            1 => format!(r#"{begin}{text},"ctx:wire":{{"openai-chat":{{"~name":"{name}"}}}}}}"#),
            _ => format!(r#"{begin}[{{"type":"input_text","text":{text}}}]}}"#),
        });
    }
    samples
}

/// The items of the recorded sessions, by kind.
fn recorded() -> Vec<(&'static str, Vec<String>)> {
    let of = |name: &str, text: &str| -> Vec<String> {
        let options = ReadOptions {
            keep_going: true,
            source_name: name,
        };
        let sessions =
            read_sessions(detect_format(text, name).unwrap().format, text, &options).unwrap();
        let nodes = sessions.into_iter().flat_map(|session| session.tree);
        nodes.map(|node| node.item.to_json()).collect()
    };
    let swe = testdata::swe_agent();
    let claude = ["representative_messages", "session_b", "todowrite_examples"].map(|name| {
        (
            name,
            testdata::read_text(&format!("claude-code/{name}.jsonl")),
        )
    });
    vec![
        (
            "SWE-agent",
            swe.iter().flat_map(|(name, text)| of(name, text)).collect(),
        ),
        (
            "Claude Code",
            claude
                .iter()
                .flat_map(|(name, text)| of(name, text))
                .collect(),
        ),
        ("tau-bench", of("tau.json", &testdata::tau_bench())),
    ]
}

/// What is left of the bytes if items of at least so many are compressed.
fn part(items: &[String], dictionary: &[u8], from: usize) -> f64 {
    let mut compressor = Compressor::with_dictionary(3, dictionary).unwrap();
    compressor.include_dictid(false).unwrap();
    let (mut plain, mut stored) = (0, 0);
    for item in items {
        let size = item.len();
        let packed = compressor.compress(item.as_bytes()).unwrap().len();
        let saves = size >= from && packed <= size - size / 10;
        plain += size;
        stored += if saves { packed } else { size };
    }
    stored as f64 / plain as f64
}
