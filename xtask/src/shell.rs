//! Runs other programs, one named step at a time.
//!
//! A step prints its name and command before it starts and its duration when it ends. A step that fails becomes an
//! error with the step's name and the command that repeats only this step; no later step runs.
//!
//! Not here: which steps there are (`ci`, `testing`, `bench`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, bail, ensure};

/// The cargo that runs this program, so that `cargo +toolchain xtask …` keeps its toolchain.
///
/// Variables that `cargo run` sets about this package are not passed on: build scripts that watch them would run again
/// whenever they change between `cargo xtask` and plain cargo.
pub(crate) fn cargo_command() -> Command {
    let mut command =
        Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| is_about_package(&name.to_string_lossy()))
    {
        command.env_remove(name);
    }
    command
}

fn is_about_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"]
        .iter()
        .any(|prefix| variable.starts_with(prefix))
}

/// The root of the workspace: the parent of this crate.
pub(crate) fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Formats the command as one would type it, with the environment variables that it sets.
pub(crate) fn command_line(command: &Command) -> String {
    let mut words: Vec<String> = command
        .get_envs()
        .filter_map(|(name, value)| {
            // A variable without a value is one that was removed.
            let value = value?.to_string_lossy().into_owned();
            Some(format!(
                "{}={}",
                name.to_string_lossy(),
                quote_for_shell(&value)
            ))
        })
        .collect();
    let program = Path::new(command.get_program());
    words.push(
        program
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
    );
    words.extend(
        command
            .get_args()
            .map(|word| quote_for_shell(&word.to_string_lossy())),
    );
    words.join(" ")
}

fn quote_for_shell(word: &str) -> String {
    // Good enough for display; this is not complete shell quoting.
    if word.contains([' ', '\'', '(', '|', '&']) {
        format!("\"{word}\"")
    } else {
        word.to_owned()
    }
}

/// Runs one command of a step from the workspace root.
///
/// # Errors
/// When the program cannot be started or does not succeed; the message repeats the command.
pub(crate) fn run_command(mut command: Command) -> Result<()> {
    let typed = command_line(&command);
    // Before it runs, so that a slow command is visible.
    println!("   {typed}");
    let status = command
        // Tasks may be started from any folder, but relative paths are relative to the root.
        .current_dir(workspace_root())
        .status()
        .with_context(|| format!("`{typed}` could not be started"))?;
    if !status.success() {
        bail!("`{typed}` did not succeed ({status})");
    }
    Ok(())
}

/// Whether the command runs and succeeds; its output is discarded.
pub(crate) fn can_run(mut command: Command) -> bool {
    command
        .current_dir(workspace_root())
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Runs `work` under a heading and prints how long it took.
///
/// # Errors
/// The error of `work`, with the step's name and `again`, the command that repeats only this step.
pub(crate) fn run_step(name: &str, again: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("── {name}");
    let start = Instant::now();
    let outcome = work();
    let seconds = start.elapsed().as_secs_f64();
    match outcome {
        Ok(()) => {
            println!("   {name}: ok, {seconds:.1} s");
            Ok(())
        }
        Err(error) => Err(anyhow!(
            "step `{name}` failed after {seconds:.1} s: {error:#}\n  again, only this step: {again}"
        )),
    }
}

/// Installs a package of Debian.
///
/// # Errors
/// `by_hand`, which says what to do, where that is not possible without asking; or apt-get fails.
pub(crate) fn apt_install(package: &str, by_hand: &str) -> Result<()> {
    let has_apt = Path::new("/usr/bin/apt-get").is_file();
    // Never with sudo: a test run must not ask for a password.
    ensure!(has_apt && is_root(), "{by_hand}");
    println!("   {package} is not installed; installing it with apt-get");
    let apt = |words: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(words).env("DEBIAN_FRONTEND", "noninteractive");
        apt.stdout(Stdio::null());
        run_command(apt)
    };
    apt(&["update", "--quiet"])?;
    apt(&[
        "install",
        "--yes",
        "--quiet",
        "--no-install-recommends",
        package,
    ])
}

/// Whether this is the user root.
pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let mut command = Command::new("/usr/bin/cargo");
        command
            .args(["doc", "--no-deps"])
            .env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(
            command_line(&command),
            "RUSTDOCFLAGS=\"-D warnings\" cargo doc --no-deps"
        );
    }

    #[test]
    fn a_failing_step_names_itself_and_how_to_repeat_it() {
        let error = run_step("docs", "cargo doc", || bail!("broken link")).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("step `docs` failed"), "{text}");
        assert!(text.contains("only this step: cargo doc"), "{text}");
        assert!(text.contains("broken link"), "{text}");
    }

    #[test]
    fn a_program_that_fails_is_an_error() {
        let mut command = cargo_command();
        command.arg("no-such-subcommand-here");
        assert!(!can_run(command));
    }
}
