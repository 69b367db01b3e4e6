//! A feature that is off, on, or on with settings: `redact = true`, `redact = { kinds = ["api_key"] }`.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use utoipa::PartialSchema;
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, Type};

/// A feature that is off, or on with settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Toggle<T> {
    /// Off, written as `false`.
    #[default]
    Off,
    /// On, written as a table of settings, or as `true` for their defaults.
    On(T),
}

impl<T> Toggle<T> {
    /// Returns the settings; `None` if it is off.
    #[must_use]
    pub const fn as_option(&self) -> Option<&T> {
        match self {
            Self::Off => None,
            Self::On(config) => Some(config),
        }
    }
}

impl<T: Serialize> Serialize for Toggle<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::On(config) => config.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Toggle<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ToggleVisitor(PhantomData))
    }
}

struct ToggleVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for ToggleVisitor<T> {
    type Value = Toggle<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false or a table")
    }

    fn visit_bool<E>(self, on: bool) -> Result<Self::Value, E> {
        Ok(match on {
            true => Toggle::On(T::default()),
            false => Toggle::Off,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Toggle::On)
    }
}

impl<T: JsonSchema> JsonSchema for Toggle<T> {
    fn schema_name() -> Cow<'static, str> {
        // The name in the published schema, older than the type's name here.
        format!("SwitchOf{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [{ "type": "boolean" }, table] })
    }
}

/// Returns the schema of a toggle with these settings, for the description of the API.
pub(super) fn toggle_schema<T: PartialSchema>() -> utoipa::openapi::Schema {
    OneOfBuilder::new()
        .item(ObjectBuilder::new().schema_type(Type::Boolean))
        .item(T::schema())
        .description(Some(
            "`false`: off. `true`: on, with defaults. A table: on.",
        ))
        .into()
}

/// Returns the schema of one of a list of words, for the description of the API.
pub(super) fn words_schema(words: &'static [&'static str]) -> utoipa::openapi::Schema {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(words.iter().copied()))
        .into()
}
