//! `[[keys]]`: who may call, as whom, to do what. Keys stand here as hashes only.

use std::fmt;
use std::str::FromStr;

use contexture::Owner;
use contexture::catalogue::Money;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use utoipa::ToSchema;

use crate::config::server::{deserialize_dollars, deserialize_from_str};

/// A key: who may call, as whom, to do what. `contexture keys new` makes one.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table of the lines that `contexture keys new` writes"
)]
pub struct KeyConfig {
    /// What it is called in logs and routes.
    pub name: String,
    /// The SHA-256 of the key, 64 hexadecimal digits.
    #[serde(deserialize_with = "deserialize_from_str")]
    #[schemars(with = "String")]
    pub sha256: KeyHash,
    /// Whose conversations its bearer works with.
    #[serde(deserialize_with = "deserialize_from_str")]
    #[schemars(with = "String")]
    pub owner: Owner,
    /// What its bearer may do. Default: `read`, `write`, `proxy`.
    #[serde(default = "everyday_scopes")]
    pub scopes: Vec<AccessScope>,
    /// What its bearer may spend with providers on a day in UTC, in dollars, such as "2.50". Default: no limit. Beyond:
    /// `spend_limit`, status 429, until midnight.
    #[serde(default, deserialize_with = "deserialize_dollars")]
    #[schemars(with = "Option<String>")]
    pub dollars_per_day: Option<Money>,
}

/// What the bearer of a key may do.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema, ToSchema,
)]
#[serde(
    rename_all = "lowercase",
    expecting = "\"read\", \"write\", \"proxy\" or \"admin\", such as scopes = [\"read\", \"write\"]"
)]
#[schemars(rename = "Scope")]
pub enum AccessScope {
    /// Read what the owner has.
    Read,
    /// Change and delete it.
    Write,
    /// Send requests to providers, with the keys of the configuration.
    Proxy,
    /// Read the server's figures.
    Admin,
}

impl AccessScope {
    /// What a key may do that says nothing of it.
    pub const EVERYDAY: [Self; 3] = [Self::Read, Self::Write, Self::Proxy];

    /// Its name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Proxy => "proxy",
            Self::Admin => "admin",
        }
    }
}

fn everyday_scopes() -> Vec<AccessScope> {
    AccessScope::EVERYDAY.to_vec()
}

/// The SHA-256 of a key. A key is 256 random bits, so that a fast hash is enough.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    /// The hash of a key as it is sent.
    #[must_use]
    pub fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    /// Whether both are the same; how long it takes does not depend on where they differ.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(…)")
    }
}

impl FromStr for KeyHash {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const RULE: &str = "expected the key's SHA-256, 64 hexadecimal digits";
        let mut bytes = [0; 32];
        // ASCII, so that each pair of bytes below is valid text.
        if text.len() != 64 || !text.is_ascii() {
            return Err(RULE);
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| RULE)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| RULE)?;
        }
        Ok(Self(bytes))
    }
}
