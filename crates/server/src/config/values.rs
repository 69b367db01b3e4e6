//! Values with a syntax of their own: texts with a rule, and toggles (`redact = true`, `redact = { kinds = ["api_key"] }`).

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use contexture::catalogue::Money;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Deserializes a text by its [`FromStr`] rule.
pub(crate) fn deserialize_from_str<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(D::Error::custom)
}

/// Deserializes a list of texts by their [`FromStr`] rule.
pub(crate) fn deserialize_list_from_str<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    let texts = Vec::<String>::deserialize(deserializer)?;
    let parsed = texts
        .iter()
        .map(|text| text.parse().map_err(D::Error::custom));
    parsed.collect()
}

/// Deserializes an amount of dollars, a decimal as a text: a float could not hold every amount.
pub(crate) fn deserialize_dollars<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Money>, D::Error> {
    struct DollarsVisitor;
    impl Visitor<'_> for DollarsVisitor {
        type Value = Money;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("dollars as a text, such as \"2.50\"")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Money, E> {
            text.parse().map_err(E::custom)
        }
    }
    deserializer.deserialize_str(DollarsVisitor).map(Some)
}

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
    pub(crate) const fn as_option(&self) -> Option<&T> {
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
