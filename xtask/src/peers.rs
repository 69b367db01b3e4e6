//! `cargo xtask bench … --peers`: measures other projects' stores and compilers in the same run as ours: their speed, how
//! much of a session's content they still show, and how often they cut a history that grows in each step.
//!
//! Their packages are installed from npm and PyPI into the build directory on first use. Node before 22.13 has no
//! unflagged `node:sqlite`; then a newer Node is installed from npm. Not here: the measurements, in `xtask/peers/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::shell;

const SIZES: [&str; 3] = ["100", "1000", "10000"];
const DEEPAGENTS: &str = "@deepagents/context@0.29.1";
const CONTEXT_CHEF: [&str; 2] = ["@context-chef/core@4.2.1", "gpt-tokenizer@4.0.0"];
const LANGGRAPH: [&str; 2] = ["langgraph==1.2.22", "langgraph-checkpoint-sqlite==3.1.2"];

/// Installs missing packages below `target` and prints the figures of the projects that are comparable with `package`.
///
/// # Errors
/// If npm, pip or one of the programs fails.
pub(crate) fn measure_peers(target: &Path, package: &str) -> Result<()> {
    match package {
        "contexture" => measure_stores(target),
        "contexture-compile" => measure_compilers(target),
        "contexture-engine" => measure_loops(target),
        // Most benchmarks have no comparable project.
        _ => Ok(()),
    }
}

fn create_install_directory(target: &Path, name: &str) -> Result<PathBuf> {
    let home = target.join(name);
    std::fs::create_dir_all(&home).with_context(|| format!("making {}", home.display()))?;
    Ok(home)
}

fn install_context_chef(target: &Path) -> Result<PathBuf> {
    let home = create_install_directory(target, "peers-compile")?;
    // Installed once: a second run needs no network.
    if !home.join("node_modules/@context-chef/core").is_dir() {
        install_npm_packages(&home, &CONTEXT_CHEF.map(str::to_owned))?;
    }
    Ok(home)
}

/// The loop of our laws of compaction at full size, with theirs beside it.
fn measure_loops(target: &Path) -> Result<()> {
    let home = install_context_chef(target)?;
    shell::run_step(
        "peers",
        "a new file in each step: @context-chef/core and oldest messages dropped",
        || {
            let script = install_script(&home, "context_chef_file_loop.mjs")?;
            let mut node = Command::new("node");
            node.current_dir(&home).arg(script);
            node.args(["3000", "3000", "8000", "16000", "32000"]);
            let status = node.status()?;
            ensure!(status.success(), "the program failed: {status}");
            Ok(())
        },
    )?;
    shell::run_step("peers", "a new file in each step: ours", || {
        let mut test = shell::cargo_command();
        test.args([
            "test",
            "--release",
            "-p",
            "contexture-engine",
            "--test",
            "it",
        ]);
        test.args(["file_loop_keeps_the_laws", "--", "--nocapture"]);
        // 3,000 steps.
        test.env("CONTEXTURE_SOAK", "1");
        shell::run_command(test)
    })
}

fn measure_compilers(target: &Path) -> Result<()> {
    let home = install_context_chef(target)?;
    shell::run_step("peers", "@context-chef/core, nanoseconds", || {
        let script = install_script(&home, "context_chef.mjs")?;
        let sessions = "crates/testdata/data/tau-bench/gpt-4o-airline.json.gz";
        let mut node = Command::new("node");
        // The script creates a folder in its working directory.
        node.current_dir(&home).arg(script);
        node.arg(shell::workspace_root().join(sessions))
            .arg("10000");
        let status = node.status()?;
        ensure!(status.success(), "the program failed: {status}");
        Ok(())
    })?;
    shell::run_step(
        "peers",
        "@context-chef/core, the next call, nanoseconds",
        || {
            let script = install_script(&home, "context_chef_next_call.mjs")?;
            let mut node = Command::new("node");
            node.current_dir(&home).arg(script);
            // What it keeps of a million messages is more than Node takes by default.
            node.env("NODE_OPTIONS", "--max-old-space-size=8192");
            node.args(["10000", "100000", "1000000"]);
            let status = node.status()?;
            ensure!(status.success(), "the program failed: {status}");
            Ok(())
        },
    )?;
    let views = home.join("views.json");
    shell::run_step("peers", "what @context-chef/core still shows", || {
        let script = install_script(&home, "context_chef_views.mjs")?;
        let mut node = Command::new("node");
        node.current_dir(&home).arg(script);
        node.arg(shell::workspace_root().join("crates/testdata/data"));
        node.arg(&views).args(["4000", "6000", "12000"]);
        let status = node.status()?;
        ensure!(status.success(), "the program failed: {status}");
        Ok(())
    })?;
    shell::run_step("peers", "facts that stay in reach", || {
        let mut test = shell::cargo_command();
        test.args([
            "test",
            "--release",
            "-p",
            "contexture-compile",
            "--test",
            "it",
        ]);
        test.args(["what_is_dropped_is_told_or_found", "--", "--nocapture"]);
        // Runs the test at full size.
        test.env("CONTEXTURE_SOAK", "1");
        test.env("CONTEXTURE_PEER_VIEWS", &views);
        shell::run_command(test)
    })
}

fn measure_stores(target: &Path) -> Result<()> {
    let home = create_install_directory(target, "peers")?;
    // On the same disk as the build, and not in memory: the cost of syncing is part of what is measured.
    let databases = tempfile::tempdir_in(&home)?;
    let node = ensure_node(&home)?;
    shell::run_step("peers", "@deepagents/context, nanoseconds", || {
        let script = install_script(&home, "deepagents.mjs")?;
        run_measurement(Command::new(node).arg(script), databases.path())
    })?;
    let python = ensure_python(&home)?;
    shell::run_step("peers", "langgraph-checkpoint-sqlite, nanoseconds", || {
        let script = install_script(&home, "langgraph_turns.py")?;
        run_measurement(Command::new(python).arg(script), databases.path())
    })
}

fn run_measurement(command: &mut Command, databases: &Path) -> Result<()> {
    let status = command.arg(databases).args(SIZES).status()?;
    ensure!(status.success(), "the program failed: {status}");
    Ok(())
}

/// Copies a script beside the installed packages, so that its imports find them.
fn install_script(home: &Path, name: &str) -> Result<PathBuf> {
    let to = home.join(name);
    // Node resolves packages relative to the script.
    std::fs::copy(shell::workspace_root().join("xtask/peers").join(name), &to)?;
    Ok(to)
}

fn ensure_node(home: &Path) -> Result<PathBuf> {
    let modules = home.join("node_modules");
    if !modules.join("@deepagents/context").is_dir() {
        let mut packages = vec![DEEPAGENTS.to_owned()];
        // Only if the machine's Node is too old for `node:sqlite`.
        if !has_sqlite("node") {
            packages.push(format!(
                "node-{}-{}@24",
                npm_platform()?,
                npm_architecture()?
            ));
        }
        install_npm_packages(home, &packages)?;
    }
    // An earlier installation is used in later runs too.
    let own = modules.join(format!(
        "node-{}-{}/bin/node",
        npm_platform()?,
        npm_architecture()?
    ));
    Ok(if own.is_file() {
        own
    } else {
        PathBuf::from("node")
    })
}

fn install_npm_packages(home: &Path, packages: &[String]) -> Result<()> {
    // A separate manifest; private, because nothing here is published.
    std::fs::write(home.join("package.json"), "{\"private\":true}")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund"])
        .arg("--prefix")
        .arg(home)
        .args(packages);
    shell::run_command(npm)
}

fn has_sqlite(node: &str) -> bool {
    let mut command = Command::new(node);
    command.args(["-e", "require('node:sqlite')"]);
    command.output().is_ok_and(|output| output.status.success())
}

fn npm_platform() -> Result<&'static str> {
    match std::env::consts::OS {
        "linux" => Ok("linux"),
        "macos" => Ok("darwin"),
        other => anyhow::bail!("install Node 22.13 or newer: npm has none for {other}"),
    }
}

fn npm_architecture() -> Result<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("x64"),
        "aarch64" => Ok("arm64"),
        other => anyhow::bail!("install Node 22.13 or newer: npm has none for {other}"),
    }
}

fn ensure_python(home: &Path) -> Result<PathBuf> {
    let environment = home.join("python");
    let python = environment.join("bin/python");
    if !python.is_file() {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(&environment);
        shell::run_command(venv)?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet"])
            .args(LANGGRAPH);
        shell::run_command(pip)?;
    }
    Ok(python)
}
