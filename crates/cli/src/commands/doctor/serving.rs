//! Whether `contexture serve` would start with its configuration. Nobody is called: not a provider, not a client.
//!
//! Not here: the database, which is looked at for every command.

use std::io::ErrorKind;
use std::path::Path;

use contexture::Engine;
use contexture::layers::builtin::SkillFolders;
use contexture::wire::is_path_version;
use contexture_server::config::UpstreamConfig;
use contexture_server::{App, Config, ServeError, Server};

use crate::commands::doctor::check::{CheckState, DoctorCheck};
use crate::options::globals::Globals;
use crate::output::printable::count_with_noun;

/// Open files beside those of connections: the database's, the program's.
const OTHER_FILES: usize = 64;

/// Checks the configuration, if there is one. Returns the options with the database that it names.
pub(crate) async fn check_configuration(
    file: Option<&Path>,
    globals: &Globals,
    checks: &mut Vec<DoctorCheck>,
) -> Globals {
    let mut globals = globals.clone();
    if let Some(config) = file.and_then(|file| load_configuration(file, checks)) {
        // The same order as `serve`: the command line and the environment go before the file.
        globals.db = globals.db.or_else(|| config.server.db.clone());
        check_server(&config, checks).await;
    }
    globals
}

/// The configuration, if it can be read; what was found is among the checks.
fn load_configuration(file: &Path, checks: &mut Vec<DoctorCheck>) -> Option<Config> {
    let name = "configuration";
    match Config::load(file) {
        Ok(config) => {
            checks.push(DoctorCheck::new(
                name,
                CheckState::Ok,
                file.display().to_string(),
            ));
            Some(config)
        }
        Err(error) => {
            checks.push(DoctorCheck::from_failure(name, error.into()));
            None
        }
    }
}

/// What the server needs beside its database.
async fn check_server(config: &Config, checks: &mut Vec<DoctorCheck>) {
    checks.push(check_keys(config));
    // With a database that forgets: only the rest is tried here.
    let app = match App::new(Engine::in_memory(), config.clone()) {
        Ok(app) => app,
        Err(fault) => return checks.push(DoctorCheck::from_failure("upstreams", fault.into())),
    };
    checks.push(check_upstreams(config));
    checks.extend(check_base_urls(config));
    checks.extend(check_skill_folders(config));
    checks.push(check_listen_address(app).await);
    checks.extend(check_open_files(config));
}

fn check_keys(config: &Config) -> DoctorCheck {
    let count = config.keys.len() as u64;
    let found = match count {
        0 => "none: programs of this machine only".to_owned(),
        count => format!("{}, as hashes", count_with_noun(count, "key")),
    };
    DoctorCheck::new("keys", CheckState::Ok, found)
}

fn check_upstreams(config: &Config) -> DoctorCheck {
    let all = config.upstreams.len();
    if all == 0 {
        let found = "the providers' own addresses, with clients' own keys";
        return DoctorCheck::new("upstreams", CheckState::Ok, found);
    }
    let has_key = |name: &&String| {
        let upstream = config.upstreams.get(*name);
        upstream.is_some_and(|upstream| upstream.key_env.is_some() || upstream.key_file.is_some())
    };
    let (with, without): (Vec<_>, Vec<_>) = config.upstreams.keys().partition(has_key);
    let found = format!(
        "{}, {} with a key that is there",
        count_with_noun(all as u64, "upstream"),
        with.len()
    );
    let check = DoctorCheck::new("upstreams", CheckState::Ok, found);
    if without.is_empty() {
        return check;
    }
    let names = without.iter().map(|name| name.as_str());
    let names = names.collect::<Vec<_>>().join(", ");
    check.with_hint(format!("clients' own keys are passed on to: {names}"))
}

/// The forms of the upstreams' addresses: with and without the version of the paths.
fn check_base_urls(config: &Config) -> Option<DoctorCheck> {
    let is_versioned = |upstream: &UpstreamConfig| {
        let last = upstream.base_url.trim_end_matches('/').rsplit('/').next();
        last.is_some_and(is_path_version)
    };
    let versioned = config.upstreams.iter();
    let versioned = versioned.filter(|(_, upstream)| is_versioned(upstream));
    let names: Vec<&str> = versioned.map(|(name, _)| name.as_str()).collect();
    let (first, all) = (names.first()?, names.join(", "));
    let found = format!("with a version: {all}");
    let hint = format!(
        "right in both forms: clients call /{first}/v1/… or /{first}/…, and the version is sent once"
    );
    Some(DoctorCheck::new("base_url", CheckState::Ok, found).with_hint(hint))
}

/// What lies in the folders of skills. Whatever is no skill is left out by the server, which starts all the same.
fn check_skill_folders(config: &Config) -> Option<DoctorCheck> {
    let folders = &config.server.skills;
    let loaded = folders
        .iter()
        .fold(SkillFolders::new(), SkillFolders::with_folder);
    let loaded = loaded.load_skills();
    let found = count_with_noun(loaded.skills.len() as u64, "skill");
    let check = match loaded.refused.first() {
        None => DoctorCheck::new("skills", CheckState::Ok, found),
        Some(refused) => {
            let place = refused.path.display();
            let found = format!("{found}; `{place}` is none: {}", refused.error);
            let check = DoctorCheck::new("skills", CheckState::Warn, found);
            check.with_hint("`contexture skills check FOLDER` says everything that is wrong")
        }
    };
    (!folders.is_empty()).then_some(check)
}

/// Listens for a moment.
async fn check_listen_address(app: App) -> DoctorCheck {
    let address = app.config().server.listen;
    match Server::bind(app).await {
        Ok(_) => DoctorCheck::new("address", CheckState::Ok, format!("{address} is free")),
        // No failure: the check is often run beside the server itself.
        Err(ServeError::Bind { source, .. }) if source.kind() == ErrorKind::AddrInUse => {
            let found = format!("{address} is taken");
            DoctorCheck::new("address", CheckState::Warn, found).with_hint(
                "as it should be while the server runs; another program needs another port",
            )
        }
        Err(error) => DoctorCheck::from_failure("address", error.into()),
    }
}

/// Whether as many connections as may be open can be: each has a file, and one more to its provider.
fn check_open_files(config: &Config) -> Option<DoctorCheck> {
    // Only Linux has it; elsewhere the check is left out.
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    let most: usize = line.split_whitespace().next()?.parse().ok()?;
    let wanted = 2 * config.server.limits.connections + OTHER_FILES;
    let found = format!("{most} at a time");
    if most >= wanted {
        return Some(DoctorCheck::new("open files", CheckState::Ok, found));
    }
    let hint = format!(
        "server.limits.connections = {} may take {wanted}: raise the limit (`ulimit -n`, LimitNOFILE)",
        config.server.limits.connections
    );
    Some(DoctorCheck::new("open files", CheckState::Warn, found).with_hint(hint))
}
