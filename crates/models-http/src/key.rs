//! API keys that cannot be printed.

use std::fmt;

use reqwest::header::HeaderValue;

use crate::error::ClientError;

/// What a key is shown as.
const HIDDEN: &str = "[key]";

/// A provider's key. It has no `Display` and no serialisation; its `Debug` hides it.
///
/// ```
/// use contexture_models_http::ApiKey;
///
/// assert_eq!(format!("{:?}", ApiKey::new("sk-secret")), "ApiKey([key])");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// A key, without surrounding white space.
    #[must_use]
    pub fn new(key: &str) -> Self {
        Self(key.trim().to_owned())
    }

    /// The key in the first of these environment variables that has one.
    ///
    /// # Errors
    /// [`ClientError::NoKey`] names the variables.
    pub fn from_env(variables: &'static [&'static str]) -> Result<Self, ClientError> {
        let keys = variables.iter().filter_map(|name| std::env::var(name).ok());
        let mut keys = keys
            // Keys pasted into files often end in a line break.
            .map(|key| Self::new(&key))
            .filter(|key| !key.0.is_empty());
        keys.next().ok_or(ClientError::NoKey { variables })
    }

    /// As the value of a header, behind a word such as `Bearer `.
    ///
    /// # Errors
    /// [`ClientError::BadKey`] for characters that no header can carry.
    pub fn header_value(&self, word: &str) -> Result<HeaderValue, ClientError> {
        let value = HeaderValue::from_str(&format!("{word}{}", self.0));
        let mut value = value.map_err(|_| ClientError::BadKey)?;
        // Keeps the value out of debug output of the HTTP library and out of HTTP/2's compression tables.
        value.set_sensitive(true);
        Ok(value)
    }

    /// A text without the key.
    pub(crate) fn redact_key(&self, text: &str) -> String {
        match self.0.as_str() {
            // Replacing an empty text would insert the mark between all characters.
            "" => text.to_owned(),
            key => text.replace(key, HIDDEN),
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({HIDDEN})")
    }
}
