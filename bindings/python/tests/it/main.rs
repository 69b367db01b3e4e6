//! The package as Python has it: the module that cargo built for these tests beside the sources, under pytest.
//!
//! Cargo builds the module before this program, because it depends on the library. Python and the packages of the tests are those
//! that `cargo xtask test` installs; a file and PostgreSQL are the databases.

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The folder that `cargo xtask test` installs Python's packages into, or `skip`.
const VARIABLE: &str = "CONTEXTURE_TEST_VENV";

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The environment with the packages of the tests; nothing if they are to be left out.
///
/// # Panics
/// When it is not said which of the two.
fn find_environment() -> Option<PathBuf> {
    let Some(environment) = env::var_os(VARIABLE) else {
        panic!(
            "Python's packages are not installed: run `cargo xtask test -p contexture-python`, which does that, \
             or set {VARIABLE}=skip to leave out what they show"
        )
    };
    (environment != "skip").then(|| environment.into())
}

/// Puts the package together as an installation has it: its modules, and the native one.
fn assemble_package(folder: &Path) {
    let package = folder.join("contexture");
    fs::create_dir(&package).unwrap();
    for source in fs::read_dir(sources().join("contexture")).unwrap() {
        let source = source.unwrap();
        if source.file_type().unwrap().is_file() {
            fs::copy(source.path(), package.join(source.file_name())).unwrap();
        }
    }
    let built = env::current_exe().unwrap();
    let native = built.parent().unwrap().join(format!(
        "{}contexture_native{}",
        env::consts::DLL_PREFIX,
        env::consts::DLL_SUFFIX
    ));
    // Copying it for each test would take longer than most of them.
    std::os::unix::fs::symlink(native, package.join("_native.abi3.so")).unwrap();
}

/// Runs the tests of one file.
fn run_pytest(file: &str) {
    let Some(environment) = find_environment() else {
        println!("NOT TESTED: {VARIABLE} says so");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    assemble_package(folder.path());
    let ended = Command::new(environment.join("bin/python"))
        .args([
            "-B",
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--durations=5",
        ])
        .arg(sources().join("tests/python").join(file))
        .env("PYTHONPATH", folder.path())
        // Frameworks bring plugins, which take two seconds to load for each file.
        .env("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        .env(
            "CONTEXTURE_PYTHON_SOURCES",
            folder.path().join("contexture"),
        )
        .env("MYPY_CACHE_DIR", folder.path().join("mypy"))
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(ended.success(), "{file}: {ended}");
}

#[test]
fn conversations_pass() {
    run_pytest("test_conversations.py");
}

#[test]
fn calls_pass() {
    run_pytest("test_calls.py");
}

#[test]
fn hostile_use_passes() {
    run_pytest("test_hostile.py");
}

#[test]
fn langgraph_passes() {
    run_pytest("test_langgraph.py");
}

#[test]
fn wrapped_clients_pass() {
    run_pytest("test_wrap.py");
}

#[test]
fn pydantic_ai_passes() {
    run_pytest("test_pydantic_ai.py");
}

#[test]
fn openai_agents_passes() {
    run_pytest("test_openai_agents.py");
}

#[test]
fn notes_pins_and_rules_pass() {
    run_pytest("test_notes.py");
}

#[test]
fn atif_passes() {
    run_pytest("test_atif.py");
}

#[test]
fn claude_agent_passes() {
    run_pytest("test_claude_agent.py");
}

#[test]
fn langgraph_store_passes() {
    run_pytest("test_langgraph_store.py");
}

#[test]
fn loop_of_the_guide_passes() {
    run_pytest("test_loop.py");
}

#[test]
fn package_passes() {
    run_pytest("test_package.py");
}

/// A file that no test names would never run.
#[test]
fn every_file_of_tests_is_run() {
    let source = include_str!("main.rs");
    for file in fs::read_dir(sources().join("tests/python")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        if name.starts_with("test_") {
            assert!(
                source.contains(&format!("run_pytest(\"{name}\")")),
                "{name}"
            );
        }
    }
}
