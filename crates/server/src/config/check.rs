//! Rules across sections, and those that a type cannot express. What is wrong in one value alone fails when it is parsed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs;

use contexture::{Catalogue, Format};

use crate::config::key::KeyConfig;
use crate::config::line_numbers::{ConfigFault, KeyPathStep};
use crate::config::root::{Config, RouteConfig};
use crate::config::upstream::{UpstreamConfig, UpstreamFormat};

/// First path segments of the server's own routes: an upstream of that name could not be reached.
const RESERVED: [&str; 6] = ["api", "mcp", "ui", "health", "metrics", "openapi.json"];

/// Returns the first fault of a configuration.
pub(crate) fn first_fault(config: &Config) -> Option<ConfigFault> {
    key_fault(config)
        .or_else(|| limit_fault(config))
        .or_else(|| upstream_fault(config))
        .or_else(|| default_upstream_fault(config))
        .or_else(|| model_fault(config))
        .or_else(|| policy_fault(config))
        .or_else(|| route_fault(config))
        .or_else(|| retention_fault(config))
}

fn key_fault(config: &Config) -> Option<ConfigFault> {
    let mut names = BTreeSet::new();
    for (index, key) in config.keys.iter().enumerate() {
        let at = |field| {
            vec![
                KeyPathStep::key("keys"),
                KeyPathStep::Index(index),
                KeyPathStep::key(field),
            ]
        };
        if let Some(why) = bad_name(&key.name) {
            return Some(ConfigFault::new(at("name"), why));
        }
        if !names.insert(&key.name) {
            let why = format!(
                "there is another key {:?}; give it a name of its own",
                key.name
            );
            return Some(ConfigFault::new(at("name"), why));
        }
        // One key under two names could have two owners, and which one calls would depend on the
        // order.
        let same = |other: &&KeyConfig| other.sha256 == key.sha256;
        if let Some(other) = config.keys.iter().take(index).find(same) {
            let why = format!("it is the key {:?} once more", other.name);
            return Some(ConfigFault::new(at("sha256"), why));
        }
    }
    None
}

fn limit_fault(config: &Config) -> Option<ConfigFault> {
    let limits = &config.server.limits;
    let at_least = |name: &str, value: u64, least: u64| {
        let path = ["server", "limits", name].map(KeyPathStep::key).to_vec();
        (value < least)
            .then(|| ConfigFault::new(path, format!("{value} is too little; at least {least}")))
    };
    // hyper panics when it is given a smaller buffer.
    at_least("header_bytes", limits.header_bytes as u64, 8192)
        .or_else(|| at_least("headers", limits.headers as u64, 16))
        .or_else(|| at_least("header_seconds", limits.header_seconds, 1))
        .or_else(|| at_least("keep_alive_seconds", limits.keep_alive_seconds, 1))
        .or_else(|| at_least("body_seconds", limits.body_seconds, 1))
        .or_else(|| at_least("body_total_seconds", limits.body_total_seconds, 1))
        .or_else(|| at_least("send_seconds", limits.send_seconds, 1))
        .or_else(|| at_least("append_items", limits.append_items as u64, 1))
        .or_else(|| at_least("request_seconds", limits.request_seconds, 1))
        .or_else(|| at_least("connections", limits.connections as u64, 1))
        .or_else(|| at_least("concurrent", limits.concurrent as u64, 1))
}

fn upstream_fault(config: &Config) -> Option<ConfigFault> {
    config.upstreams.iter().find_map(|(name, upstream)| {
        let at = |field: &str| {
            ["upstreams", name.as_str(), field]
                .map(KeyPathStep::key)
                .to_vec()
        };
        let here = || ["upstreams", name.as_str()].map(KeyPathStep::key).to_vec();
        if let Some(why) = bad_name(name) {
            return Some(ConfigFault::new(here(), why));
        }
        if RESERVED.contains(&name.as_str()) || is_provider_root(name) {
            let why = format!("paths under /{name} are taken; give it another name");
            return Some(ConfigFault::new(here(), why));
        }
        if upstream.key_env.is_some() && upstream.key_file.is_some() {
            let why = "key_env says where the key is already; leave one of them out";
            return Some(ConfigFault::new(at("key_file"), why));
        }
        bad_url(&upstream.base_url).map(|why| ConfigFault::new(at("base_url"), why))
    })
}

/// Whether a name is the first path segment of a provider's own routes, which must stay reachable at the root.
fn is_provider_root(name: &str) -> bool {
    let profiles = UpstreamFormat::all().filter_map(UpstreamFormat::http_profile);
    let mut roots = profiles.flat_map(|profile| profile.roots);
    roots.any(|root| root.under.split('/').nth(1) == Some(name))
}

/// What is wrong with the address of an upstream. The address itself is not repeated: it may hold a secret.
fn bad_url(url: &str) -> Option<&'static str> {
    let rest = url.strip_prefix("https://").or(url.strip_prefix("http://"));
    let Some(rest) = rest else {
        return Some("expected an address that begins with https:// or http://");
    };
    let host = rest.split('/').next().unwrap_or_default();
    if host.is_empty() || rest.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Some("expected https://HOST, with a path or without");
    }
    if host.contains('@') {
        return Some("no credentials belong into an address; name them by key_env or key_file");
    }
    if rest.contains(['?', '#']) {
        return Some("neither a query nor a fragment belongs into the address of an upstream");
    }
    let path = &rest[host.len()..];
    if is_path_of_call(path.trim_end_matches('/')) {
        return Some(
            "expected the address in front of the paths of calls, such as https://HOST/v1",
        );
    }
    None
}

/// Whether a path is that of a model's call, in whatever format.
fn is_path_of_call(path: &str) -> bool {
    let mut profiles = Format::PROVIDERS
        .iter()
        .filter_map(|format| format.spec().http());
    profiles.any(|profile| profile.path.parse_call(path).is_some())
}

fn default_upstream_fault(config: &Config) -> Option<ConfigFault> {
    let mut seen: BTreeMap<_, &str> = BTreeMap::new();
    let chosen = |entry: &(&String, &UpstreamConfig)| entry.1.default;
    for (name, upstream) in config.upstreams.iter().filter(chosen) {
        if let Some(other) = seen.insert(upstream.format, name) {
            let path = ["upstreams", name.as_str(), "default"]
                .map(KeyPathStep::key)
                .to_vec();
            let why = format!("{other} is the default for {} already", upstream.format);
            return Some(ConfigFault::new(path, why));
        }
    }
    None
}

fn model_fault(config: &Config) -> Option<ConfigFault> {
    config.models.iter().find_map(|(name, model)| {
        let at = |field: &str| {
            ["models", name.as_str(), field]
                .map(KeyPathStep::key)
                .to_vec()
        };
        if let Some(window) = model.window.filter(|window| *window < 1_000) {
            let why = format!("{window} is too little; at least 1000");
            return Some(ConfigFault::new(at("window"), why));
        }
        match model.model_spec(name, Catalogue::builtin()) {
            Ok(Some(_)) => None,
            Ok(None) => {
                let here = ["models", name.as_str()].map(KeyPathStep::key).to_vec();
                Some(ConfigFault::new(
                    here,
                    "expected window = N, like = \"MODEL\", or both",
                ))
            }
            Err(error) => Some(ConfigFault::new(at("like"), error.to_string())),
        }
    })
}

fn policy_fault(config: &Config) -> Option<ConfigFault> {
    config.policies.iter().find_map(|(name, policy)| {
        let here = ["policies", name.as_str()].map(KeyPathStep::key);
        if let Some(why) = bad_name(name) {
            return Some(ConfigFault::new(here.to_vec(), why));
        }
        let named = policy.summary_upstream.as_deref();
        let is_known = |name: &str| config.upstreams.contains_key(name);
        if let Some(unknown) = named.filter(|name| !is_known(name)) {
            let known: Vec<&str> = config.upstreams.keys().map(String::as_str).collect();
            let path = here
                .into_iter()
                .chain([KeyPathStep::key("summary_upstream")]);
            let why = format!(
                "there is no upstream {unknown:?}{}",
                list_known_names(&known)
            );
            return Some(ConfigFault::new(path.collect(), why));
        }
        let fault = policy.first_fault()?;
        let inner = fault.path.iter().map(|name| KeyPathStep::key(name));
        let path = here.into_iter().chain(inner).collect();
        Some(ConfigFault::new(path, fault.detail))
    })
}

fn route_fault(config: &Config) -> Option<ConfigFault> {
    config.routes.iter().enumerate().find_map(|(index, route)| {
        let RouteConfig {
            upstream,
            key,
            policy,
            ..
        } = route;
        let at = |field| {
            vec![
                KeyPathStep::key("routes"),
                KeyPathStep::Index(index),
                KeyPathStep::key(field),
            ]
        };
        let missing = |field: &'static str, what: &str, name: &str, known: Vec<&str>| {
            (!known.contains(&name)).then(|| {
                ConfigFault::new(
                    at(field),
                    format!("there is no {what} {name:?}{}", list_known_names(&known)),
                )
            })
        };
        let upstreams = || config.upstreams.keys().map(String::as_str).collect();
        let policies = || config.policies.keys().map(String::as_str).collect();
        let keys = || config.keys.iter().map(|key| key.name.as_str()).collect();
        let by_upstream = upstream
            .as_ref()
            .and_then(|name| missing("upstream", "upstream", name, upstreams()));
        by_upstream
            .or_else(|| {
                key.as_ref()
                    .and_then(|name| missing("key", "key", name, keys()))
            })
            .or_else(|| missing("policy", "policy", policy, policies()))
    })
}

fn retention_fault(config: &Config) -> Option<ConfigFault> {
    let mut owners = BTreeSet::new();
    config.retention.iter().enumerate().find_map(|(index, rule)| {
        let at = |field| {
            let [table, field] = ["retention", field].map(KeyPathStep::key);
            vec![table, KeyPathStep::Index(index), field]
        };
        if !owners.insert(&rule.owner) {
            let why = format!("there is another section for {}; join the two", rule.owner);
            return Some(ConfigFault::new(at("owner"), why));
        }
        let says_nothing = rule.days.is_none() && rule.bytes.is_none();
        let why = "it says nothing of what to keep: expected days = 90, bytes = 2_000_000_000, or both";
        says_nothing.then(|| ConfigFault::new(at("owner"), why))
    })
}

fn list_known_names(known: &[&str]) -> String {
    match known {
        [] => "; none is configured".to_owned(),
        known => format!("; there are {}", known.join(", ")),
    }
}

fn bad_name(name: &str) -> Option<impl Display + use<>> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let good = (1..=64).contains(&name.len()) && name.chars().all(plain);
    (!good).then_some("expected a name of 1 to 64 of the characters A-Z a-z 0-9 - _ .")
}

/// The first folder of a policy's skills that is none.
pub(crate) fn first_folder_fault(config: &Config) -> Option<ConfigFault> {
    config.policies.iter().find_map(|(name, policy)| {
        let folders = policy.skills.iter().enumerate();
        let mut missing = folders.filter_map(|(index, folder)| {
            let error = fs::read_dir(folder).err()?;
            let [table, field] = ["policies", "skills"].map(KeyPathStep::key);
            let path = vec![
                table,
                KeyPathStep::key(name),
                field,
                KeyPathStep::Index(index),
            ];
            let why = format!(
                "{} is no folder that can be read: {error}",
                folder.display()
            );
            Some(ConfigFault::new(path, why))
        });
        missing.next()
    })
}
