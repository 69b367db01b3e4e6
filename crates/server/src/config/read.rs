//! Reading a file.

use std::path::Path;

use crate::config::check;
use crate::config::error::ConfigError;
use crate::config::folders;
use crate::config::whole::Config;

impl Config {
    /// The JSON Schema of a file, for editors: `docs/schema/config.schema.json`.
    #[must_use]
    pub fn schema_json() -> String {
        let schema = schemars::schema_for!(Self);
        serde_json::to_string_pretty(&schema).unwrap_or_default()
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, names a folder of skills that is none, or as [`Self::parse`].
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError::new(&name, format!("cannot be read: {error}")))?;
        let config = Self::parse(&text, &name)?;
        match folders::first_folder_fault(&config) {
            None => Ok(config),
            Some(fault) => Err(ConfigError::from_fault(&name, &text, &fault)),
        }
    }

    /// Reads a file's text; `name` is what errors call it.
    ///
    /// # Errors
    /// It is not TOML, has a key that is not known or a value that is not allowed, or names what is not there.
    pub fn parse(text: &str, name: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text)
            .map_err(|error| ConfigError::from_syntax_error(name, text, &error))?;
        match check::first_fault(&config) {
            None => Ok(config),
            Some(fault) => Err(ConfigError::from_fault(name, text, &fault)),
        }
    }
}
