//! The crates of the workspace: the layer of each, and which crates it may depend on. This is the only machine-readable
//! definition; `ARCHITECTURE.md` has the same table for people.
//!
//! `layers` and `purity` read it. The rules:
//! * A crate depends only on crates of lower layers, and on crates of its own layer listed in `allowed_peers`.
//! * Where `allowed_dependencies` is given, the crate depends only on those of our crates, whatever their layer.
//! * Crates of `FOR_TESTS` are development dependencies only, of any layer.
//! * Other development dependencies may also be of the crate's own layer, because a test may need a neighbour's data,
//!   but not of higher layers.
//! * Libraries listed in `RESERVED_LIBRARIES` may only be used by the crates named there.
//!
//! Not here: the checks themselves.

/// One crate of the workspace.
#[derive(Debug)]
pub(crate) struct CrateRule {
    pub(crate) package: &'static str,
    pub(crate) layer: u8,
    /// No input or output, async, clock, randomness or environment.
    pub(crate) pure: bool,
    pub(crate) allowed_peers: &'static [&'static str],
    pub(crate) allowed_dependencies: Option<&'static [&'static str]>,
}

impl CrateRule {
    const fn new(package: &'static str, layer: u8) -> Self {
        Self {
            package,
            layer,
            pure: false,
            allowed_peers: &[],
            allowed_dependencies: None,
        }
    }

    const fn pure(package: &'static str, layer: u8) -> Self {
        Self {
            pure: true,
            ..Self::new(package, layer)
        }
    }

    /// A storage backend depends only on the store's contract and the vocabulary.
    const fn backend(package: &'static str) -> Self {
        Self {
            allowed_dependencies: Some(&["contexture-ir", "contexture-store"]),
            ..Self::new(package, 3)
        }
    }
}

/// Crates that exist for tests, and that tests of any layer may use.
pub(crate) const FOR_TESTS: &[&str] = &[
    "contexture-testdata",
    "contexture-store-testkit",
    "contexture-upstream-testkit",
    "contexture-fuzz-targets",
];

/// The façade, which re-exports other crates, except for one file.
pub(crate) const FACADE: &str = "crates/contexture";

/// The file of the façade that contains code: backends are chosen there, because only the façade depends on all of
/// them.
pub(crate) const FACADE_CODE: &str = "open.rs";

/// The Python package, which is no library for Rust.
pub(crate) const PYTHON: &str = "contexture-python";

/// Every crate of the workspace. A package that is missing here is a finding.
pub(crate) const CRATE_RULES: &[CrateRule] = &[
    CrateRule {
        allowed_dependencies: Some(&[]),
        ..CrateRule::new("contexture-testdata", 0)
    },
    CrateRule {
        allowed_dependencies: Some(&["contexture-testdata"]),
        ..CrateRule::new("contexture-upstream-testkit", 1)
    },
    CrateRule::pure("contexture-text", 0),
    CrateRule {
        allowed_peers: &["contexture-text"],
        ..CrateRule::pure("contexture-ir", 0)
    },
    CrateRule {
        allowed_peers: &["contexture-text"],
        ..CrateRule::pure("contexture-catalogue", 0)
    },
    CrateRule::pure("contexture-render", 1),
    CrateRule::pure("contexture-tokens", 1),
    CrateRule::pure("contexture-wire", 1),
    CrateRule::pure("contexture-tools", 1),
    CrateRule::pure("contexture-prompt-cache", 2),
    CrateRule::pure("contexture-condense", 2),
    CrateRule {
        allowed_peers: &["contexture-prompt-cache", "contexture-condense"],
        ..CrateRule::pure("contexture-report", 2)
    },
    CrateRule {
        allowed_peers: &[
            "contexture-prompt-cache",
            "contexture-condense",
            "contexture-report",
        ],
        ..CrateRule::pure("contexture-compile", 2)
    },
    CrateRule::pure("contexture-sessions", 2),
    CrateRule {
        allowed_peers: &[
            "contexture-prompt-cache",
            "contexture-report",
            "contexture-compile",
            "contexture-sessions",
        ],
        ..CrateRule::pure("contexture-spending", 2)
    },
    CrateRule {
        allowed_dependencies: Some(&["contexture-ir", "contexture-wire"]),
        ..CrateRule::new("contexture-telemetry", 2)
    },
    CrateRule::new("contexture-store", 2),
    CrateRule::new("contexture-models", 2),
    CrateRule::new("contexture-layers", 3),
    CrateRule::new("contexture-models-http", 3),
    CrateRule::backend("contexture-store-sqlite"),
    CrateRule::backend("contexture-store-postgres"),
    CrateRule::backend("contexture-store-testkit"),
    CrateRule {
        allowed_dependencies: Some(&["contexture-ir"]),
        ..CrateRule::new("contexture-offload", 3)
    },
    CrateRule {
        allowed_dependencies: Some(&["contexture-telemetry"]),
        ..CrateRule::new("contexture-otlp", 3)
    },
    CrateRule::new("contexture-engine", 4),
    CrateRule {
        allowed_peers: &["contexture-engine"],
        ..CrateRule::new("contexture-runs", 4)
    },
    CrateRule::new("contexture", 5),
    CrateRule::new("contexture-api", 6),
    CrateRule::new("contexture-mcp", 7),
    // Beside the server, never on it: the engine is in the process of whoever imports the package.
    CrateRule {
        allowed_dependencies: Some(&["contexture", "contexture-api"]),
        ..CrateRule::new(PYTHON, 7)
    },
    CrateRule::new("contexture-inspector", 7),
    CrateRule::new("contexture-server", 8),
    CrateRule::new("contexture-cli", 9),
    CrateRule {
        allowed_dependencies: Some(&["contexture", "contexture-server"]),
        ..CrateRule::new("contexture-eval", 9)
    },
    // Reads whatever any other crate reads.
    CrateRule::new("contexture-fuzz-targets", 8),
    CrateRule::new("xtask", 10),
];

/// Returns the folder that a package lives in.
pub(crate) fn package_directory(package: &str) -> String {
    match package {
        "xtask" => package.to_owned(),
        "contexture" => FACADE.to_owned(),
        PYTHON => "bindings/python".to_owned(),
        name => format!("crates/{}", name.trim_start_matches("contexture-")),
    }
}

/// Returns the rule of a package.
pub(crate) fn find_crate_rule(package: &str) -> Option<&'static CrateRule> {
    CRATE_RULES.iter().find(|rule| rule.package == package)
}

/// Libraries that only some crates may depend on, with the reason. Tests may use them anywhere.
pub(crate) struct ReservedLibraries {
    pub(crate) libraries: &'static [&'static str],
    pub(crate) crates: &'static [&'static str],
    pub(crate) why: &'static str,
}

/// Crates that alone may depend on libraries for SQL, HTTP and terminals.
pub(crate) const RESERVED_LIBRARIES: &[ReservedLibraries] = &[
    ReservedLibraries {
        libraries: &["rusqlite", "libsqlite3-sys", "sqlx"],
        crates: &["contexture-store-sqlite"],
        why: "only the SQLite backend knows SQLite",
    },
    ReservedLibraries {
        libraries: &[
            "tokio-postgres",
            "postgres",
            "deadpool-postgres",
            "refinery",
        ],
        crates: &["contexture-store-postgres"],
        why: "only the PostgreSQL backend knows PostgreSQL",
    },
    ReservedLibraries {
        libraries: &["axum", "tower-http", "utoipa-axum"],
        crates: &["contexture-server"],
        why: "only the server serves HTTP",
    },
    ReservedLibraries {
        libraries: &["utoipa"],
        crates: &["contexture-api", "contexture-server"],
        why: "only the API's documents and its server describe themselves in OpenAPI",
    },
    ReservedLibraries {
        libraries: &["reqwest", "ureq", "sse-stream"],
        crates: &["contexture-models-http", "contexture-otlp"],
        why: "only the client calls HTTP, and what sends traces",
    },
    ReservedLibraries {
        libraries: &["opentelemetry", "opentelemetry_sdk", "opentelemetry-otlp"],
        crates: &["contexture-otlp"],
        why: "only otlp knows OpenTelemetry's types; others tell `tracing` and `metrics`",
    },
    ReservedLibraries {
        libraries: &["object_store"],
        crates: &["contexture-offload"],
        why: "only offload knows object stores",
    },
    ReservedLibraries {
        libraries: &["pyo3"],
        crates: &[PYTHON],
        why: "only the Python package knows Python",
    },
    ReservedLibraries {
        libraries: &["rmcp"],
        crates: &["contexture-mcp"],
        why: "only mcp speaks MCP",
    },
    ReservedLibraries {
        libraries: &[
            "anyhow",
            "clap",
            "indicatif",
            "comfy-table",
            "owo-colors",
            "anstream",
        ],
        crates: &["contexture-cli", "contexture-eval", "xtask"],
        why: "only programs talk to a terminal; libraries return typed errors",
    },
];

/// Libraries that a pure crate may not depend on, with the reason.
pub(crate) const IMPURE_LIBRARIES: &[(&str, &str)] = &[
    ("tokio", "is a runtime"),
    ("tokio-util", "is a runtime"),
    ("tokio-stream", "is a runtime"),
    ("async-trait", "is for async code"),
    ("futures", "is for async code"),
    ("futures-util", "is for async code"),
    ("rand", "is random"),
    ("fastrand", "is random"),
    ("getrandom", "is random"),
    (
        "uuid",
        "makes ids from clock and randomness; take ids as parameters",
    ),
    (
        "ulid",
        "makes ids from clock and randomness; take ids as parameters",
    ),
    ("hyper", "does network I/O"),
    ("tempfile", "does file I/O"),
    ("walkdir", "does file I/O"),
    ("memmap2", "does file I/O"),
    ("rayon", "starts threads"),
    (
        "tracing",
        "has a global subscriber; return what happened instead",
    ),
    ("log", "has a global logger; return what happened instead"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_named_by_a_rule_exists() {
        let named = RESERVED_LIBRARIES
            .iter()
            .flat_map(|reserved| reserved.crates.iter());
        let peers = CRATE_RULES
            .iter()
            .flat_map(|rule| rule.allowed_peers.iter());
        let only = CRATE_RULES
            .iter()
            .flat_map(|rule| rule.allowed_dependencies.unwrap_or_default().iter());
        for name in named.chain(peers).chain(only).chain(FOR_TESTS) {
            assert!(find_crate_rule(name).is_some(), "{name} has no rule");
        }
        assert!(find_crate_rule("contexture").is_some());
    }

    #[test]
    fn pure_crates_have_only_pure_crates_below() {
        let ships = |rule: &CrateRule| !FOR_TESTS.contains(&rule.package);
        let impure_below = |layer| {
            CRATE_RULES
                .iter()
                .any(|rule| !rule.pure && ships(rule) && rule.layer < layer)
        };
        assert!(
            CRATE_RULES
                .iter()
                .filter(|rule| rule.pure)
                .all(|rule| !impure_below(rule.layer))
        );
    }
}
