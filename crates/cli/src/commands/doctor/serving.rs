//! Whether `contexture serve` would start with its configuration. Nobody is called: not a provider, not a client.
//!
//! Not here: the database, which is looked at for every command.

use std::io::ErrorKind;
use std::path::Path;

use contexture::Engine;
use contexture::layers::builtin::SkillFolders;
use contexture_server::{App, Config, ServeError, Server};

use crate::commands::doctor::check::{Check, State};
use crate::printable::counted;

/// Open files beside those of connections: the database's, the program's.
const OTHER_FILES: usize = 64;

/// The configuration, if it can be read; what was found is among the checks.
pub(crate) fn configuration(file: &Path, checks: &mut Vec<Check>) -> Option<Config> {
    let name = "configuration";
    match Config::load(file) {
        Ok(config) => {
            checks.push(Check::new(name, State::Ok, file.display().to_string()));
            Some(config)
        }
        Err(error) => {
            checks.push(Check::failed(name, error.into()));
            None
        }
    }
}

/// What the server needs beside its database.
pub(crate) async fn server(config: &Config, checks: &mut Vec<Check>) {
    checks.push(keys(config));
    // With a database that forgets: only the rest is tried here.
    let app = match App::new(Engine::in_memory(), config.clone()) {
        Ok(app) => app,
        Err(fault) => return checks.push(Check::failed("upstreams", fault.into())),
    };
    checks.push(upstreams(config));
    checks.extend(skills(config));
    checks.push(listening(app).await);
    checks.extend(files(config));
}

fn keys(config: &Config) -> Check {
    let count = config.keys.len() as u64;
    let found = match count {
        0 => "none: programs of this machine only".to_owned(),
        count => format!("{}, as hashes", counted(count, "key")),
    };
    Check::new("keys", State::Ok, found)
}

fn upstreams(config: &Config) -> Check {
    let all = config.upstreams.len();
    if all == 0 {
        let found = "the providers' own addresses, with clients' own keys";
        return Check::new("upstreams", State::Ok, found);
    }
    let has_key = |name: &&String| {
        let upstream = config.upstreams.get(*name);
        upstream.is_some_and(|upstream| upstream.key_env.is_some() || upstream.key_file.is_some())
    };
    let (with, without): (Vec<_>, Vec<_>) = config.upstreams.keys().partition(has_key);
    let found = format!(
        "{}, {} with a key that is there",
        counted(all as u64, "upstream"),
        with.len()
    );
    let check = Check::new("upstreams", State::Ok, found);
    if without.is_empty() {
        return check;
    }
    let names = without.iter().map(|name| name.as_str());
    let names = names.collect::<Vec<_>>().join(", ");
    check.hint(format!("clients' own keys are passed on to: {names}"))
}

/// What lies in the folders of skills. Whatever is no skill is left out by the server, which starts all the same.
fn skills(config: &Config) -> Option<Check> {
    let folders = &config.server.skills;
    let loaded = folders.iter().fold(SkillFolders::new(), SkillFolders::with);
    let loaded = loaded.load();
    let found = counted(loaded.skills.len() as u64, "skill");
    let check = match loaded.refused.first() {
        None => Check::new("skills", State::Ok, found),
        Some(refused) => {
            let place = refused.path.display();
            let found = format!("{found}; `{place}` is none: {}", refused.error);
            let check = Check::new("skills", State::Warn, found);
            check.hint("`contexture skills check FOLDER` says everything that is wrong")
        }
    };
    (!folders.is_empty()).then_some(check)
}

/// Listens for a moment.
async fn listening(app: App) -> Check {
    let address = app.config().server.listen;
    match Server::bind(app).await {
        Ok(_) => Check::new("address", State::Ok, format!("{address} is free")),
        Err(ServeError::Bind { source, .. }) if source.kind() == ErrorKind::AddrInUse => {
            let found = format!("{address} is taken");
            Check::new("address", State::Warn, found)
                .hint("as it should be while the server runs; another program needs another port")
        }
        Err(error) => Check::failed("address", error.into()),
    }
}

/// Whether as many connections as may be open can be: each has a file, and one more to its provider.
fn files(config: &Config) -> Option<Check> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    let most: usize = line.split_whitespace().next()?.parse().ok()?;
    let wanted = 2 * config.server.limits.connections + OTHER_FILES;
    let found = format!("{most} at a time");
    if most >= wanted {
        return Some(Check::new("open files", State::Ok, found));
    }
    let hint = format!(
        "server.limits.connections = {} may take {wanted}: raise the limit (`ulimit -n`, LimitNOFILE)",
        config.server.limits.connections
    );
    Some(Check::new("open files", State::Warn, found).hint(hint))
}
