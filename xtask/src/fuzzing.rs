//! `cargo xtask fuzz`: libFuzzer on the targets of `crates/fuzz-targets`, one after the other.
//!
//! The corpora are below the build directory: the seeds of the crate, and what libFuzzer finds beside them, from which
//! the next run goes on. An input that fails is a file in `fuzz/artifacts`, and cargo-fuzz prints the command that runs
//! it again. Sanitizers are off: all code is safe Rust, and without them the stable toolchain is enough.
//!
//! Not here: the targets on their seeds and some mutations, which are ordinary tests.

use std::path::Path;

use anyhow::{Result, bail, ensure};

use crate::metadata::Metadata;
use crate::shell;
use crate::tools::FUZZ;

/// Seconds for each target unless said otherwise.
const SECONDS: u32 = 180;
/// Longest input, in bytes: quadratic growth shows in less.
const LONGEST_INPUT: u32 = 16 << 10;
/// Time after which an input is a finding, in seconds. The slowest seed takes some milliseconds.
const SLOWEST_INPUT: u32 = 10;

/// `fuzz`'s options.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Targets; default: all
    targets: Vec<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = SECONDS)]
    seconds: u32,
}

/// Runs the targets that are named, or all.
///
/// # Errors
/// The targets that fail, after all have run; or what keeps them from being built.
pub(crate) fn fuzz_targets(arguments: &Arguments) -> Result<()> {
    let directory = Metadata::load()?.target_directory;
    let directory = Path::new(&directory).join("fuzz");
    let all = write_corpora(&directory.join("corpus"))?;
    for name in &arguments.targets {
        ensure!(
            all.contains(name),
            "no target {name:?}: expected one of {}",
            all.join(", ")
        );
    }
    let is_wanted =
        |name: &&String| arguments.targets.is_empty() || arguments.targets.contains(name);
    let mut failed = Vec::new();
    // All of them, since what one finds says nothing about the others.
    for name in all.iter().filter(is_wanted) {
        let again = format!("cargo xtask fuzz {name} --seconds {}", arguments.seconds);
        let run = || fuzz_target(name, arguments.seconds, &directory);
        if let Err(error) = shell::run_step(name, &again, run) {
            println!("   {error:#}");
            failed.push(name.as_str());
        }
    }
    if !failed.is_empty() {
        bail!("fuzzing failed for {}", failed.join(", "));
    }
    Ok(())
}

/// Runs all targets for the usual time.
///
/// # Errors
/// As [`fuzz_targets`].
pub(crate) fn fuzz_all_targets() -> Result<()> {
    fuzz_targets(&Arguments {
        targets: Vec::new(),
        seconds: SECONDS,
    })
}

/// Writes the seeds of all targets, and returns the names of the targets.
fn write_corpora(folder: &Path) -> Result<Vec<String>> {
    let mut command = shell::cargo_command();
    command.args(["run", "--quiet", "-p", "contexture-fuzz-targets"]);
    command.arg("--").arg(folder);
    let typed = shell::command_line(&command);
    println!("   {typed}");
    let output = command.current_dir(shell::workspace_root()).output()?;
    ensure!(
        output.status.success(),
        "`{typed}` did not succeed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let names = String::from_utf8(output.stdout)?;
    Ok(names.lines().map(str::to_owned).collect())
}

fn fuzz_target(name: &str, seconds: u32, directory: &Path) -> Result<()> {
    let tools = directory.parent().unwrap_or(directory).to_string_lossy();
    let mut command = FUZZ.find_or_build(&tools)?;
    command.args(["run", "--sanitizer", "none", "--fuzz-dir", "fuzz"]);
    command.arg("--target-dir").arg(directory);
    command.arg(name).arg(directory.join("corpus").join(name));
    command.arg("--");
    command.args([
        format!("-max_total_time={seconds}"),
        format!("-max_len={LONGEST_INPUT}"),
        format!("-timeout={SLOWEST_INPUT}"),
        "-print_final_stats=1".to_owned(),
        // Otherwise a line for each new input.
        "-verbosity=0".to_owned(),
    ]);
    shell::run_command(command)
}
