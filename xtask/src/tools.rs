//! Subcommands of cargo that come from other projects: as installed, or built into the build directory.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::shell;

/// Runs the tests.
pub(crate) const NEXTEST: CargoTool = CargoTool {
    name: "nextest",
    version: "0.9.143",
};
/// Checks licences, banned crates and sources.
pub(crate) const DENY: CargoTool = CargoTool {
    name: "deny",
    version: "0.20.2",
};

/// Runs fuzz targets.
pub(crate) const FUZZ: CargoTool = CargoTool {
    name: "fuzz",
    version: "0.13.2",
};
/// Lists what a program is made of.
pub(crate) const CYCLONEDX: CargoTool = CargoTool {
    name: "cyclonedx",
    version: "0.5.9",
};

/// Time after which building a tool is given up.
const BUILD_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// A subcommand of cargo; its package is `cargo-` and its name.
pub(crate) struct CargoTool {
    name: &'static str,
    /// Version that is built if none is installed.
    version: &'static str,
}

impl CargoTool {
    /// Returns the command that runs the tool, without arguments; builds the tool first if it is not there.
    ///
    /// # Errors
    /// If it has to be built and cannot be.
    pub(crate) fn find_or_build(&self, target_directory: &str) -> Result<Command> {
        let mut installed = shell::cargo_command();
        installed.args([self.name, "--version"]);
        if shell::can_run(installed) {
            let mut command = shell::cargo_command();
            command.arg(self.name);
            return Ok(command);
        }
        let tools = Path::new(target_directory).join("tools");
        let file = format!("cargo-{}{}", self.name, std::env::consts::EXE_SUFFIX);
        let program = tools.join("bin").join(file);
        if !program.is_file() {
            println!(
                "   cargo-{} is not installed; building it into {}",
                self.name,
                tools.display()
            );
            self.build(&tools)?;
        }
        let mut command = Command::new(program);
        // What cargo would pass on as the first argument.
        command.arg(self.name);
        Ok(command)
    }

    /// Builds without optimisation and debug information, which takes a third of the time: these tools mostly wait for others.
    fn build(&self, tools: &Path) -> Result<()> {
        let package = format!("cargo-{}", self.name);
        let mut command = shell::cargo_command();
        command.args(["install", &package, "--version", self.version]);
        command.args(["--locked", "--debug", "--quiet", "--root"]);
        command.arg(tools).env("CARGO_PROFILE_DEV_DEBUG", "0");
        let start = Instant::now();
        let mut child = command
            .spawn()
            .context("`cargo install` could not be started")?;
        loop {
            if let Some(status) = child.try_wait()? {
                ensure!(
                    status.success(),
                    "{package} could not be built ({status}); `{}` repeats it",
                    shell::command_line(&command)
                );
                return Ok(());
            }
            if start.elapsed() > BUILD_TIMEOUT {
                // An error means that the process has already ended.
                let _ = child.kill();
                child.wait()?;
                let seconds = BUILD_TIMEOUT.as_secs();
                anyhow::bail!("{package} took more than {seconds} s to build");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}
