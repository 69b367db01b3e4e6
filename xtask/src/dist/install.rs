//! Installs what was packed as users do, and checks it: the archive, the wheel with pip, the packages with npm.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use crate::dist::answers::{Installed, check_command};
use crate::dist::clean_room::{CleanRoom, NodePrograms, find_python};
use crate::dist::npm::platform_package_name;
use crate::dist::registry::LocalRegistry;
use crate::dist::{Artefacts, NPM_NAME, PROGRAM, PYPI_NAME, Packages, Release, archive};

/// The launcher's exit code where no package has a program for it.
const NOT_FOUND: i32 = 127;
/// Nothing is kept for another time or built from source, and nobody is asked for a newer pip.
const PIP_OPTIONS: [&str; 5] = [
    "--quiet",
    "--disable-pip-version-check",
    "--no-cache-dir",
    "--only-binary",
    ":all:",
];
/// The program that types Ctrl-C.
const CTRL_C: &str = include_str!("ctrl_c.py");

/// Installs everything in a place without a compiler, runs it, and prints sizes and times.
///
/// # Errors
/// If something cannot be installed or does not do what it should; or Python or Node is missing.
pub(crate) fn check_artefacts(release: &Release, artefacts: &Artefacts) -> Result<()> {
    let room = CleanRoom::create(&NodePrograms::find()?)?;
    for compiler in ["cc", "gcc", "clang", "rustc", "cargo"] {
        ensure!(
            !room.programs().join(compiler).exists(),
            "{compiler} is on the path"
        );
    }
    report_check(
        &install_archive(release, &artefacts.archive, &room)?,
        release,
        &room,
    )?;
    match &artefacts.packages {
        Some(packages) => check_packages(release, packages, &room),
        None => Ok(()),
    }
}

fn check_packages(release: &Release, packages: &Packages, room: &CleanRoom) -> Result<()> {
    let python = find_python()?;
    let registry = LocalRegistry::start(&python, packages, &release.version)?;
    let wheel = install_wheel(&registry, packages, &python, room)?;
    report_check(&wheel, release, room)?;
    report_check(&as_module(&wheel), release, room)?;
    check_engine(&wheel, room)?;
    let npm = install_npm(&registry, packages, room)?;
    report_check(&npm, release, room)?;
    check_npx(&registry, release, room)?;
    for installed in [&wheel, &npm] {
        check_ctrl_c(installed, &python, room)?;
    }
    // Last, because it removes the program.
    check_missing_platform(&npm, packages, room)
}

/// Checks a command and prints its figures.
fn report_check(installed: &Installed, release: &Release, room: &CleanRoom) -> Result<()> {
    let answered = check_command(installed, room, &release.version);
    let answered = answered.with_context(|| format!("the command of {}", installed.from))?;
    println!(
        "   {}: {} bytes, installed in {} ms, {answered}",
        installed.from,
        installed.bytes,
        installed.install.as_millis()
    );
    Ok(())
}

fn install_archive(release: &Release, packed: &Path, room: &CleanRoom) -> Result<Installed> {
    let started = Instant::now();
    let program = archive::unpack_archive(packed, &release.stem(), &room.home())?;
    Ok(Installed {
        from: "archive".to_owned(),
        words: vec![program.into()],
        bytes: fs::metadata(packed)?.len(),
        install: started.elapsed(),
    })
}

fn install_wheel(
    registry: &LocalRegistry,
    packages: &Packages,
    python: &Path,
    room: &CleanRoom,
) -> Result<Installed> {
    let environment = room.home().join("venv");
    run_quietly(room.command(python).args(["-m", "venv"]).arg(&environment))?;
    let programs = environment.join("bin");
    let started = Instant::now();
    let mut pip = room.command(programs.join("python"));
    pip.args(["-m", "pip", "install"]).args(PIP_OPTIONS);
    pip.args(["--index-url", &registry.python_index(), PYPI_NAME]);
    run_quietly(&mut pip)?;
    Ok(Installed {
        from: "wheel".to_owned(),
        words: vec![programs.join(PROGRAM).into()],
        bytes: fs::metadata(&packages.wheel)?.len(),
        install: started.elapsed(),
    })
}

/// The engine in the process of Python: a conversation in a file, found again by another process.
fn check_engine(wheel: &Installed, room: &CleanRoom) -> Result<()> {
    let program = PathBuf::from(wheel.words.first().cloned().unwrap_or_default());
    let python = program.with_file_name("python");
    let write =
        "import contexture; contexture.Engine('a.db').open('c').append('Where is my parcel?')";
    let read = "import contexture; chat = contexture.Engine('a.db').open('c', existing=True); \
                call = chat.compile(model='gpt-4o', to='openai-chat'); \
                assert call.payload['messages'][0]['content'] == 'Where is my parcel?'; \
                assert len(contexture.Engine('a.db').search('parcel')) == 1";
    for code in [write, read] {
        let mut command = room.command(&python);
        run_quietly(command.args(["-c", code])).context("the engine of the wheel")?;
    }
    Ok(())
}

/// The same installation, run as `python -m contexture`.
fn as_module(wheel: &Installed) -> Installed {
    let program = PathBuf::from(wheel.words.first().cloned().unwrap_or_default());
    let python = program.with_file_name("python");
    Installed {
        from: "wheel, python -m".to_owned(),
        words: vec![python.into(), OsString::from("-m"), OsString::from(PROGRAM)],
        ..*wheel
    }
}

fn install_npm(
    registry: &LocalRegistry,
    packages: &Packages,
    room: &CleanRoom,
) -> Result<Installed> {
    let project = room.home().join("project");
    fs::create_dir(&project)?;
    fs::write(project.join("package.json"), "{ \"private\": true }\n")?;
    let started = Instant::now();
    run_quietly(
        npm_command(registry, room, "npm")
            .args(["install", "--no-audit", "--no-fund", "--loglevel", "error"])
            .arg(NPM_NAME)
            .current_dir(&project),
    )?;
    let install = started.elapsed();
    let sizes = [&packages.npm.main, &packages.npm.platform].map(fs::metadata);
    let mut bytes = 0;
    for size in sizes {
        bytes += size?.len();
    }
    Ok(Installed {
        from: "npm".to_owned(),
        words: vec![project.join("node_modules/.bin").join(PROGRAM).into()],
        bytes,
        install,
    })
}

fn npm_command(registry: &LocalRegistry, room: &CleanRoom, name: &str) -> Command {
    let mut command = room.command(room.programs().join(name));
    command
        .env("npm_config_registry", registry.npm_address())
        // It would ask the registry for a newer npm.
        .env("npm_config_update_notifier", "false");
    command
}

/// `npx contexture` where nothing is installed.
fn check_npx(registry: &LocalRegistry, release: &Release, room: &CleanRoom) -> Result<()> {
    let empty = room.home().join("empty");
    fs::create_dir(&empty)?;
    let started = Instant::now();
    let mut npx = npm_command(registry, room, "npx");
    let output = npx
        .args(["--yes", NPM_NAME, "--version"])
        .current_dir(&empty)
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        said.trim_end() == format!("{PROGRAM} {}", release.version),
        "npx: {} with {said:?}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    println!(
        "   npx: installed and answered in {} ms",
        started.elapsed().as_millis()
    );
    Ok(())
}

/// In a terminal, Ctrl-C goes to the launcher and the program alike: the server must see one, finish, and end with 0.
fn check_ctrl_c(installed: &Installed, python: &Path, room: &CleanRoom) -> Result<()> {
    let mut command = room.command(python);
    command.args(["-c", CTRL_C]).args(&installed.words);
    command.args(["serve", "--listen", "127.0.0.1:0", "--db", "memory:"]);
    run_quietly(&mut command).with_context(|| format!("Ctrl-C in a terminal, {}", installed.from))
}

/// Without the platform's package the launcher says which platforms there are.
fn check_missing_platform(npm: &Installed, packages: &Packages, room: &CleanRoom) -> Result<()> {
    let name = platform_package_name(packages.platform);
    fs::remove_dir_all(room.home().join("project/node_modules").join(&name))?;
    let output = npm.command(room).arg("--version").output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.code() == Some(NOT_FOUND) && said.contains(&name),
        "without {name}: {}, {said}",
        output.status
    );
    Ok(())
}

/// Runs a command that must succeed; its output is shown only if it does not.
fn run_quietly(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    if !output.status.success() {
        let [said, complaint] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        bail!("{command:?}: {}\n{said}{complaint}", output.status);
    }
    Ok(())
}
