//! `preview`: how long outputs are shown. `preview = 5000`, or a table.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use contexture::compile::{PreviewPolicy, Previewing, TextSize, ToolPreview};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, Type};
use utoipa::{PartialSchema, ToSchema};

/// How long outputs are shown: by their beginning, their end and their errors.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema, ToSchema)]
// The derived code reads and writes the table; a number alone is read and written below.
#[serde(remote = "Self", deny_unknown_fields, default)]
#[schemars(rename = "PreviewSettings", deny_unknown_fields, default)]
#[schema(as = Preview)]
pub struct PreviewConfig {
    /// Outputs of more characters are shortened; at least 600. Default: 5,000.
    pub characters: u64,
    /// So many characters of the beginning are shown. Default: 1,000.
    pub head: usize,
    /// So many characters of the end are shown. Default: 2,000.
    pub tail: usize,
    /// So many lines with errors are shown of what lies between. Default: 8.
    pub error_lines: usize,
    /// Tools with a rule of their own, by name; in a name `*` stands for any characters. `false`: never shortened.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub tools: BTreeMap<String, ToolPreviewConfig>,
    /// Whether outputs are shortened even where that costs more than it saves. Default: true.
    pub always: bool,
}

/// How long outputs of one tool are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolPreviewConfig {
    /// Always whole, written as `false`.
    Never,
    /// Shortened if longer than so many characters, written as a number.
    Characters(u64),
}

impl Default for PreviewConfig {
    fn default() -> Self {
        let PreviewPolicy {
            head,
            tail,
            error_lines,
            ..
        } = PreviewPolicy::default();
        Self {
            characters: 5_000,
            head,
            tail,
            error_lines,
            tools: BTreeMap::new(),
            always: true,
        }
    }
}

impl PreviewConfig {
    /// Creates the one that shortens outputs of more characters than these, and has defaults for all else.
    #[must_use]
    pub fn above(characters: u64) -> Self {
        Self {
            characters,
            ..Self::default()
        }
    }

    /// Returns it as the compiler takes it.
    pub(crate) fn preview_policy(&self) -> PreviewPolicy {
        let all = PreviewPolicy::default();
        let own = PreviewPolicy {
            threshold: TextSize::Characters(self.characters),
            head: self.head,
            tail: self.tail,
            error_lines: self.error_lines,
            when: match self.always {
                true => Previewing::Always,
                false => Previewing::default(),
            },
            ..all.clone()
        };
        let rule = |config: &ToolPreviewConfig| match *config {
            ToolPreviewConfig::Never => ToolPreview::Never,
            ToolPreviewConfig::Characters(characters) => ToolPreview::By(Box::new(PreviewPolicy {
                threshold: TextSize::Characters(characters),
                tools: BTreeMap::new(),
                ..own.clone()
            })),
        };
        let tools = self.tools.iter();
        let tools = tools.map(|(name, config)| (name.clone(), rule(config)));
        // The tool that reads the rest of what was shortened is always shown whole.
        let tools = tools.chain(all.tools).collect();
        PreviewPolicy { tools, ..own }
    }
}

impl Serialize for PreviewConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self == Self::above(self.characters) {
            true => serializer.serialize_u64(self.characters),
            false => Self::serialize(self, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for PreviewConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PreviewVisitor)
    }
}

struct PreviewVisitor;

impl<'de> Visitor<'de> for PreviewVisitor {
    type Value = PreviewConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of characters, or a table such as { characters = 5000, tail = 500 }")
    }

    fn visit_u64<E>(self, characters: u64) -> Result<Self::Value, E> {
        Ok(PreviewConfig::above(characters))
    }

    fn visit_i64<E: serde::de::Error>(self, characters: i64) -> Result<Self::Value, E> {
        let out_of_range = |_| E::invalid_value(serde::de::Unexpected::Signed(characters), &self);
        u64::try_from(characters)
            .map(PreviewConfig::above)
            .map_err(out_of_range)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        PreviewConfig::deserialize(MapAccessDeserializer::new(map))
    }
}

impl Serialize for ToolPreviewConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Never => serializer.serialize_bool(false),
            Self::Characters(characters) => serializer.serialize_u64(*characters),
        }
    }
}

impl<'de> Deserialize<'de> for ToolPreviewConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "a number of characters, or false for outputs that are always shown whole"
        )]
        enum Written {
            Toggle(bool),
            Characters(u64),
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::Toggle(false) => Self::Never,
            Written::Toggle(true) => Self::Characters(PreviewConfig::default().characters),
            Written::Characters(characters) => Self::Characters(characters),
        })
    }
}

/// Returns the schema of a number of characters or a table, for editors.
pub(super) fn preview_json_schema(generator: &mut SchemaGenerator) -> Schema {
    let table = generator.subschema_for::<PreviewConfig>();
    json_schema!({ "anyOf": [{ "type": "integer", "minimum": 600 }, table, { "type": "null" }] })
}

/// Returns the same schema for the description of the API.
pub(super) fn preview_schema() -> utoipa::openapi::Schema {
    OneOfBuilder::new()
        .item(number_schema())
        .item(PreviewConfig::schema())
        .description(Some(
            "Number of characters above which an output is shortened, or a table that says more.",
        ))
        .into()
}

impl JsonSchema for ToolPreviewConfig {
    fn schema_name() -> Cow<'static, str> {
        "ToolPreviewConfig".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "boolean" }, { "type": "integer", "minimum": 600 }] })
    }
}

fn number_schema() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(TextSize::SMALLEST))
}
