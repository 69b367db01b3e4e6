//! `contexture keys`: who may call the server.

use clap::{Args, Subcommand, ValueEnum};
use contexture_server::NewKey;
use contexture_server::config::AccessScope;
use serde_json::json;

use crate::database;
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::write;

/// Make keys for callers of the server
#[derive(Debug, Args)]
#[command(after_long_help = "\
The key is shown once and kept nowhere: hand it to its bearer, and put the lines with its hash
into the server's configuration.

Examples:
  contexture keys new --name laptop --owner acme/ada
  contexture keys new --name scraper --scope admin >> contexture.toml")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: KeyAction,
}

#[derive(Debug, Subcommand)]
enum KeyAction {
    /// Make a key: the lines for the configuration to standard output, the key itself to standard error
    New {
        /// What it is called in logs and routes
        #[arg(long, value_name = "NAME")]
        name: String,
        /// What its bearer may do; default: read, write, proxy
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<ScopeArgument>,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScopeArgument {
    Read,
    Write,
    Proxy,
    Admin,
}

impl ScopeArgument {
    const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Proxy => "proxy",
            Self::Admin => "admin",
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The system has no randomness, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let KeyAction::New { name, scopes } = &arguments.action;
    let owner = database::resolve_owner(globals)?;
    // Nothing is stored here; the server knows a key by its hash in the configuration.
    let key = NewKey::random()
        .map_err(|error| Failure::new(Exit::Fault, "randomness", error.to_string()))?;
    let hash = key.hash().to_string();
    let scopes: Vec<&str> = match scopes.as_slice() {
        // Written out, so that whoever reads the file learns that there are scopes.
        [] => AccessScope::EVERYDAY.map(AccessScope::name).to_vec(),
        scopes => scopes.iter().map(|scope| scope.name()).collect(),
    };
    if globals.json {
        write::print_json(&json!({
            "key": key.secret(), "name": name, "sha256": hash, "owner": owner.as_str(), "scopes": scopes,
        }))?;
        return Ok(Exit::Done);
    }
    write::print_text(&config_lines(name, &hash, owner.as_str(), &scopes))?;
    // Apart from the lines above, which may be appended to the configuration: it must hold the hash
    // only.
    write::print_stderr(&format!("key, shown this once: {}\n", key.secret()));
    if !scopes.contains(&AccessScope::Admin.name()) && !globals.quiet {
        write::print_note("for /metrics a key needs `--scope admin`\n");
    }
    Ok(Exit::Done)
}

/// The lines that name a key in the server's configuration.
fn config_lines(name: &str, hash: &str, owner: &str, scopes: &[&str]) -> String {
    format!(
        "[[keys]]\nname = {name:?}\nsha256 = {hash:?}\nowner = {owner:?}\nscopes = {scopes:?}\n"
    )
}
