//! Generation of API keys.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::config::KeyHash;

/// A key that was just made: shown once, kept as its hash.
pub struct NewKey {
    key: String,
    hash: KeyHash,
}

impl NewKey {
    /// Makes a key of 256 random bits.
    ///
    /// # Errors
    /// The system has no randomness to give.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        // The prefix shows whose key it is, beside providers' keys in one client.
        let key = format!("ctx_{}", URL_SAFE_NO_PAD.encode(bytes));
        let hash = KeyHash::of(&key);
        Ok(Self { key, hash })
    }

    /// The key, to hand to its bearer.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.key
    }

    /// Its hash, for the configuration.
    #[must_use]
    pub const fn hash(&self) -> KeyHash {
        self.hash
    }
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKey").finish_non_exhaustive()
    }
}
