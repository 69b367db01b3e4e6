//! Each target on its corpus, and on random mutations of it.
//!
//! The seed is random and printed. `CONTEXTURE_TEST_SEED=n` runs the same inputs again; `CONTEXTURE_SOAK=1` runs a
//! hundred times as many.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed unwrap is the failed test; the seed is printed"
)]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use contexture_fuzz_targets::{FuzzTarget, Mutator, TARGETS, find_target};
use contexture_store_testkit::test_seed;

/// Bytes of mutated inputs for a target in an ordinary run: some seconds in a debug build.
const BYTES: usize = 512 << 10;
/// The most inputs in an ordinary run: small ones cost more than their bytes.
const INPUTS: usize = 500;

fn check_target(name: &str) {
    let target = find_target(name).unwrap();
    let corpus = (target.corpus)();
    assert!(!corpus.is_empty());
    for input in &corpus {
        check_input(target, input, "of its corpus");
    }
    let seed = test_seed();
    let factor = match std::env::var_os("CONTEXTURE_SOAK") {
        Some(_) => 100,
        None => 1,
    };
    let mut mutator = Mutator::new(&corpus, seed);
    let (mut bytes, mut inputs) = (0, 0);
    while bytes < BYTES * factor && inputs < INPUTS * factor {
        let input = mutator.next_input();
        bytes += input.len();
        inputs += 1;
        check_input(target, &input, &format!("with CONTEXTURE_TEST_SEED={seed}"));
    }
    println!(
        "{name}: {} seeds, {inputs} mutations, {bytes} bytes",
        corpus.len()
    );
}

fn check_input(target: &FuzzTarget, input: &[u8], which: &str) {
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.check)(input)));
    if outcome.is_err() {
        // As a libFuzzer binary takes it: `cargo fuzz run -s none TARGET FILE`.
        let file = std::env::temp_dir().join(format!("contexture-fuzz-{}", target.name));
        fs::write(&file, input).unwrap();
        panic!(
            "{} fails on an input {which}, which is now in {}: {}",
            target.name,
            file.display(),
            input.escape_ascii()
        );
    }
}

/// One test for each target, and the list of them.
macro_rules! target_tests {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                check_target(stringify!($name));
            }
        )*

        const TESTED: &[&str] = &[$(stringify!($name)),*];
    };
}

target_tests! {
    wire_documents
    ui_messages
    items
    stream_events
    stream_frames
    session_logs
    import_lines
    plans
    mcp_calls
    fragments
    skill_files
    models_files
    tool_arguments
    search_queries
    json_texts
    links_and_names
    provider_paths
}

#[test]
fn every_target_is_tested_and_has_a_libfuzzer_binary() {
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(names, TESTED);
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/Cargo.toml");
    let manifest = fs::read_to_string(manifest).unwrap();
    let binaries: Vec<&str> = manifest
        .split("[[bin]]\n")
        .skip(1)
        .filter_map(|entry| entry.strip_prefix("name = \"")?.split('"').next())
        .collect();
    assert_eq!(binaries, names);
}

#[test]
fn a_seed_gives_the_same_inputs_again() {
    let corpus = [b"{\"a\":[1,2]}".to_vec(), b"text".to_vec()];
    let inputs = |seed| {
        let mut mutator = Mutator::new(&corpus, seed);
        (0..50).map(|_| mutator.next_input()).collect::<Vec<_>>()
    };
    assert_eq!(inputs(7), inputs(7));
    assert_ne!(inputs(7), inputs(8));
}
