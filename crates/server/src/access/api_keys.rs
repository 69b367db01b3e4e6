//! API keys: the keys of the configuration, and the principal that calls with one of them or with none.
//!
//! With keys configured every request carries one, wherever it comes from. Without, the server listens on
//! loopback only, and whoever reaches it is the local owner.
//!
//! Not here: credentials for providers, pages of other sites in a browser of the same machine (`origins`).

use std::collections::BTreeSet;
use std::sync::Arc;

use contexture::Owner;
use contexture::catalogue::Money;

use crate::config::{AccessScope, KeyConfig, KeyHash};
use crate::problem::{Code, Problem};

/// The caller of a request: whose conversations it sees, and what it may do with them.
#[derive(Clone, Debug)]
pub(crate) struct Principal {
    pub(crate) owner: Owner,
    /// The name of the key; `None` without authentication.
    pub(crate) key: Option<Arc<str>>,
    /// What may be spent with the key on a day; `None` without a limit.
    pub(crate) dollars_per_day: Option<Money>,
    scopes: Arc<[AccessScope]>,
}

impl Principal {
    /// Returns what the caller may do.
    pub(crate) fn scopes(&self) -> &[AccessScope] {
        &self.scopes
    }

    /// Refuses a caller without this scope.
    pub(crate) fn require_scope(&self, scope: AccessScope) -> Result<(), Problem> {
        if self.scopes.contains(&scope) {
            return Ok(());
        }
        let detail = format!(
            "this key may not do that: it has no scope `{}`",
            scope.name()
        );
        Err(Problem::new(Code::MissingScope, detail))
    }
}

/// The keys of the configuration.
#[derive(Debug)]
pub(crate) struct ApiKeys {
    principals: Vec<(KeyHash, Principal)>,
    /// The hashes of all keys, to search for one among many texts.
    hashes: BTreeSet<KeyHash>,
    local_principal: Principal,
}

impl ApiKeys {
    pub(crate) fn new(keys: &[KeyConfig], local: &Owner) -> Self {
        let principal = |key: &KeyConfig| Principal {
            owner: key.owner.clone(),
            key: Some(key.name.as_str().into()),
            dollars_per_day: key.dollars_per_day,
            scopes: key.scopes.as_slice().into(),
        };
        let known = keys.iter().map(|key| (key.sha256, principal(key)));
        Self {
            principals: known.collect(),
            hashes: keys.iter().map(|key| key.sha256).collect(),
            local_principal: Principal {
                owner: local.clone(),
                key: None,
                dollars_per_day: None,
                scopes: [
                    AccessScope::Read,
                    AccessScope::Write,
                    AccessScope::Proxy,
                    AccessScope::Admin,
                ]
                .into(),
            },
        }
    }

    /// Whether requests need a key.
    pub(crate) fn is_key_required(&self) -> bool {
        !self.principals.is_empty()
    }

    /// Returns whose key it is.
    pub(crate) fn principal_for_key(&self, key: &str) -> Option<&Principal> {
        let hash = KeyHash::of(key);
        let mut found = None;
        // All keys are compared, without an early exit: the time it takes must not tell how many were tried.
        for (known, principal) in &self.principals {
            if known.matches(&hash) {
                found = Some(principal);
            }
        }
        found
    }

    /// Whether a text is a key, whoever's. For texts that nobody calls with: how long it takes may tell how close it is.
    pub(super) fn is_known(&self, text: &str) -> bool {
        self.hashes.contains(&KeyHash::of(text))
    }

    /// Returns the caller without a key: the local owner, unless keys are required.
    pub(crate) fn authorize_without_key(&self) -> Result<&Principal, Problem> {
        if self.is_key_required() {
            let detail =
                "a key is needed: send it as `x-contexture-key`, or as `authorization: Bearer KEY`";
            return Err(Problem::new(Code::Unauthenticated, detail));
        }
        Ok(&self.local_principal)
    }
}
