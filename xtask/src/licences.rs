//! `cargo xtask licences`: licences, banned crates and sources of all dependencies, as `deny.toml` allows them.
//!
//! cargo-deny checks them. Security advisories are not checked, because they change independently of this repository.

use anyhow::Result;

use crate::metadata::Metadata;
use crate::shell;
use crate::tools::DENY;

/// Checks every package of the lock file, those for other platforms included.
///
/// # Errors
/// If cargo-deny finds something, in its own words, or cannot be built.
pub(crate) fn check_licences() -> Result<()> {
    let mut command = DENY.find_or_build(&Metadata::load()?.target_directory)?;
    command.args(["check", "--hide-inclusion-graph"]);
    command.args(["licenses", "bans", "sources"]);
    shell::run_command(command)
}
