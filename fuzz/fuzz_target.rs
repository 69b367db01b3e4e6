//! Runs the target that this binary is named after.

#![no_main]

use std::sync::LazyLock;

use contexture_fuzz_targets::{FuzzTarget, find_target};
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<&FuzzTarget> = LazyLock::new(|| {
    find_target(env!("CARGO_BIN_NAME")).expect("the binary is named after a target")
});

fuzz_target!(|data: &[u8]| (TARGET.check)(data));
