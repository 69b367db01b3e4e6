//! The built-in formats by name.

use std::fmt;
use std::str::FromStr;

use crate::document::DataOptions;
use crate::json::{JsonOptions, JsonRenderer};
use crate::markdown::{MarkdownOptions, MarkdownRenderer};
use crate::renderer::{Grouping, Renderer};
use crate::toml::TomlRenderer;
use crate::toon::ToonRenderer;
use crate::xml::{XmlOptions, XmlRenderer};
use crate::yaml::YamlRenderer;

/// A built-in format. Parsed from its name, in lower case: `"xml".parse()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Tags: the default.
    #[default]
    Xml,
    /// Headings and bullets.
    Markdown,
    /// TOML, version 1.0.
    Toml,
    /// Token-Oriented Object Notation.
    Toon,
    /// YAML, version 1.2.
    Yaml,
    /// JSON, as RFC 8259 has it.
    Json,
}

/// A name that is no built-in format's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format `{name}`; known are xml, markdown, toml, toon, yaml, json")]
pub struct UnknownFormat {
    /// The unknown format name.
    pub name: String,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Xml,
        Self::Markdown,
        Self::Toml,
        Self::Toon,
        Self::Yaml,
        Self::Json,
    ];

    /// Name of the format.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Xml => "xml",
            Self::Markdown => "markdown",
            Self::Toml => "toml",
            Self::Toon => "toon",
            Self::Yaml => "yaml",
            Self::Json => "json",
        }
    }

    /// The format's renderer with this grouping and its defaults otherwise.
    #[must_use]
    pub fn renderer(self, group_fragments: Grouping) -> Box<dyn Renderer> {
        // One setting for all formats: callers choose a format by name and know nothing else of it.
        let data = DataOptions {
            group_fragments,
            ..DataOptions::default()
        };
        match self {
            Self::Xml => Box::new(XmlRenderer::new(XmlOptions { group_fragments })),
            Self::Markdown => Box::new(MarkdownRenderer::new(MarkdownOptions { group_fragments })),
            Self::Toml => Box::new(TomlRenderer::new(data)),
            Self::Toon => Box::new(ToonRenderer::new(data)),
            Self::Yaml => Box::new(YamlRenderer::new(data)),
            Self::Json => Box::new(JsonRenderer::new(JsonOptions {
                data,
                ..JsonOptions::default()
            })),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL
            .into_iter()
            .find(|format| format.as_str() == name)
            .ok_or_else(|| UnknownFormat {
                name: name.to_owned(),
            })
    }
}
