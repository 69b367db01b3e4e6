//! The rooms of the house: every crate, the floor it stands on and what it may know. The one place where this is
//! written as data; `ARCHITECTURE.md` shows the same picture to people.
//!
//! Rules read from it by `layers` and `purity`:
//! * A crate depends only on crates of lower floors, and on same-floor crates listed in its `peers`.
//! * Where `only` is given, the crate depends on those of ours and no others, whatever their floor.
//! * Crates of `FOR_TESTS` are development dependencies only, of any floor.
//! * Other development dependencies may also stay on the crate's own floor, because a test may need a neighbour's
//!   data, but not point up.
//! * Libraries listed in `RESERVED` belong to the rooms named there.
//!
//! Not here: the checks themselves.

/// One crate of the workspace.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) package: &'static str,
    pub(crate) floor: u8,
    /// No input or output, async, clock, randomness or environment.
    pub(crate) pure: bool,
    pub(crate) peers: &'static [&'static str],
    pub(crate) only: Option<&'static [&'static str]>,
}

impl Room {
    const fn new(package: &'static str, floor: u8) -> Self {
        Self {
            package,
            floor,
            pure: false,
            peers: &[],
            only: None,
        }
    }

    const fn pure(package: &'static str, floor: u8) -> Self {
        Self {
            pure: true,
            ..Self::new(package, floor)
        }
    }

    /// A storage backend knows the contract it fulfils and the vocabulary, nothing else.
    const fn backend(package: &'static str) -> Self {
        Self {
            only: Some(&["contexture-ir", "contexture-store"]),
            ..Self::new(package, 3)
        }
    }
}

/// Crates that exist for tests, and that tests of any floor may use.
pub(crate) const FOR_TESTS: &[&str] = &[
    "contexture-testdata",
    "contexture-store-testkit",
    "contexture-upstream-testkit",
];

/// The crate that only passes on what others define.
pub(crate) const FACADE: &str = "crates/contexture";

/// Every crate there is or will be. A package of the workspace that is missing here is a finding.
pub(crate) const ROOMS: &[Room] = &[
    Room {
        only: Some(&[]),
        ..Room::new("contexture-testdata", 0)
    },
    Room {
        only: Some(&["contexture-testdata"]),
        ..Room::new("contexture-upstream-testkit", 1)
    },
    Room::pure("contexture-ir", 0),
    Room::pure("contexture-catalogue", 0),
    Room::pure("contexture-render", 1),
    Room::pure("contexture-tokens", 1),
    Room::pure("contexture-wire", 1),
    Room::pure("contexture-tools", 1),
    Room::pure("contexture-compile", 2),
    Room::pure("contexture-sessions", 2),
    Room {
        only: Some(&["contexture-ir", "contexture-wire"]),
        ..Room::new("contexture-telemetry", 2)
    },
    Room::new("contexture-store", 2),
    Room::new("contexture-llm", 2),
    Room::new("contexture-layers", 3),
    Room::new("contexture-client", 3),
    Room::backend("contexture-store-sqlite"),
    Room::backend("contexture-store-postgres"),
    Room::backend("contexture-store-testkit"),
    Room {
        only: Some(&["contexture-ir"]),
        ..Room::new("contexture-offload", 3)
    },
    Room {
        only: Some(&["contexture-telemetry"]),
        ..Room::new("contexture-otlp", 3)
    },
    Room::new("contexture-engine", 4),
    Room {
        peers: &["contexture-engine"],
        ..Room::new("contexture-runs", 4)
    },
    Room::new("contexture", 5),
    Room::new("contexture-mcp", 6),
    Room::new("contexture-server", 7),
    Room::new("contexture-cli", 8),
    Room::new("xtask", 9),
];

/// The room of a package.
pub(crate) fn room(package: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|room| room.package == package)
}

/// Libraries that only some rooms may depend on, and why. Tests may use them anywhere.
pub(crate) struct Reserved {
    pub(crate) libraries: &'static [&'static str],
    pub(crate) rooms: &'static [&'static str],
    pub(crate) why: &'static str,
}

/// Who alone knows SQL, HTTP and terminals.
pub(crate) const RESERVED: &[Reserved] = &[
    Reserved {
        libraries: &["rusqlite", "libsqlite3-sys", "sqlx"],
        rooms: &["contexture-store-sqlite"],
        why: "only the SQLite backend knows SQLite",
    },
    Reserved {
        libraries: &[
            "tokio-postgres",
            "postgres",
            "deadpool-postgres",
            "refinery",
        ],
        rooms: &["contexture-store-postgres"],
        why: "only the PostgreSQL backend knows PostgreSQL",
    },
    Reserved {
        libraries: &["axum", "tower-http", "utoipa", "utoipa-axum"],
        rooms: &["contexture-server"],
        why: "only the server serves HTTP",
    },
    Reserved {
        libraries: &["reqwest", "ureq", "sse-stream"],
        rooms: &["contexture-client", "contexture-otlp"],
        why: "only the client calls HTTP, and what sends traces",
    },
    Reserved {
        libraries: &["opentelemetry", "opentelemetry_sdk", "opentelemetry-otlp"],
        rooms: &["contexture-otlp"],
        why: "only otlp knows OpenTelemetry's types; others tell `tracing` and `metrics`",
    },
    Reserved {
        libraries: &["object_store"],
        rooms: &["contexture-offload"],
        why: "only offload knows object stores",
    },
    Reserved {
        libraries: &["rmcp"],
        rooms: &["contexture-mcp"],
        why: "only mcp speaks MCP",
    },
    Reserved {
        libraries: &[
            "anyhow",
            "clap",
            "indicatif",
            "comfy-table",
            "owo-colors",
            "anstream",
        ],
        rooms: &["contexture-cli", "xtask"],
        why: "only programs talk to a terminal; libraries return typed errors",
    },
];

/// Libraries a pure crate may not depend on, and why.
pub(crate) const IMPURE: &[(&str, &str)] = &[
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
    fn every_room_named_by_a_rule_exists() {
        let named = RESERVED.iter().flat_map(|reserved| reserved.rooms.iter());
        let peers = ROOMS.iter().flat_map(|room| room.peers.iter());
        let only = ROOMS
            .iter()
            .flat_map(|room| room.only.unwrap_or_default().iter());
        for name in named.chain(peers).chain(only).chain(FOR_TESTS) {
            assert!(room(name).is_some(), "{name} is not a room");
        }
        assert!(room("contexture").is_some());
    }

    #[test]
    fn pure_rooms_stand_only_on_pure_rooms() {
        let ships = |room: &Room| !FOR_TESTS.contains(&room.package);
        let impure_below = |floor| {
            ROOMS
                .iter()
                .any(|room| !room.pure && ships(room) && room.floor < floor)
        };
        assert!(
            ROOMS
                .iter()
                .filter(|room| room.pure)
                .all(|room| !impure_below(room.floor))
        );
    }
}
