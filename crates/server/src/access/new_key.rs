//! Generation of API keys.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::config::KeyHash;

/// How every key begins: it shows whose key it is, beside providers' keys in one client.
pub(super) const KEY_PREFIX: &str = "ctx_";

/// Random bytes of a key.
const KEY_BYTES: usize = 32;

/// Characters of a key: the prefix, and four for each three bytes.
pub(super) const KEY_LENGTH: usize = KEY_PREFIX.len() + (KEY_BYTES * 4).div_ceil(3);

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
        let key = format!("{KEY_PREFIX}{}", random_text()?);
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

/// Returns 256 random bits as text, which may stand in a URL or a cookie.
///
/// # Errors
/// The system has no randomness to give.
pub(crate) fn random_text() -> std::io::Result<String> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKey").finish_non_exhaustive()
    }
}
