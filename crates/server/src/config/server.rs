//! `[server]`: where it listens, and for whom; `[[retention]]`: how long conversations are kept, and how many.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::str::FromStr;

use contexture::Owner;
use contexture::catalogue::Money;
use contexture_api::parse_length_of_time;
use schemars::JsonSchema;
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer};

use crate::config::limits::LimitsConfig;
use crate::config::origin::PageOrigin;

/// Where it listens, for whom, and within which limits.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table, such as [server]")]
pub struct ServerConfig {
    /// Address and port. Default: `127.0.0.1:8484`. Others than loopback need keys.
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// The database: a file, `memory:` or `postgres://…`. Default: the one of the command line.
    pub db: Option<String>,
    /// Whose conversations they are where there are no keys. Default: `local`.
    #[serde(deserialize_with = "deserialize_from_str")]
    #[schemars(with = "String")]
    pub owner: Owner,
    /// Origins of pages in browsers that may call, such as `https://app.example.com` or `http://localhost:3000`. Default:
    /// none but the server's own. Others are refused (`foreign_origin`, status 403), those of other ports of this machine too.
    #[serde(deserialize_with = "deserialize_list_from_str")]
    #[schemars(with = "Vec<String>")]
    pub origins: Vec<PageOrigin>,
    /// What the pages at `/ui` let people do: `off` (there are none), `read`, or `write`, which adds forms that change something.
    /// Default: `write` where the server listens on loopback without keys, else `read`.
    pub inspector: Option<InspectorAccess>,
    /// Folders of skills that are shown over HTTP, each skill as `FOLDER/NAME/SKILL.md`; of two of one name that of the earlier
    /// folder. They are read when the server starts. Default: none.
    pub skills: Vec<PathBuf>,
    /// Days for which the record keeps each call with a provider; the sums of older ones stay. Default: 90.
    pub call_days: NonZeroU32,
    /// How long the bodies of proxied requests are kept as they came, such as "7d": each as a difference to its conversation, so that
    /// `GET /api/v1/calls/{call}` shows it byte for byte. At most as long as the call. Default: none is kept, and a request is shown
    /// as it is made again of its items.
    #[serde(deserialize_with = "deserialize_length_of_time")]
    #[schemars(with = "Option<String>")]
    pub bodies: Option<LengthOfTime>,
    /// How much one request, connection or owner may take.
    pub limits: LimitsConfig,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8484)),
            db: None,
            owner: Owner::local(),
            origins: Vec::new(),
            inspector: None,
            skills: Vec::new(),
            call_days: const { NonZeroU32::new(90).unwrap() },
            bodies: None,
            limits: LimitsConfig::default(),
        }
    }
}

/// What the pages of the inspector let people do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", expecting = "\"off\", \"read\" or \"write\"")]
pub enum InspectorAccess {
    /// There are no pages.
    Off,
    /// They show, and change nothing.
    Read,
    /// They show, and have forms that change something.
    Write,
}

/// A length of time, at least a millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LengthOfTime(i64);

impl LengthOfTime {
    /// Returns it in milliseconds.
    #[must_use]
    pub const fn milliseconds(self) -> i64 {
        self.0
    }
}

fn deserialize_length_of_time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<LengthOfTime>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parsed = parse_length_of_time(&text);
    parsed
        .map(|ms| Some(LengthOfTime(ms)))
        .map_err(|expected| D::Error::custom(format!("{text:?}: {expected}")))
}

/// Which conversations of an owner the server deletes by itself, when it starts and every hour. Without a section it deletes
/// none. `contexture prune` shows what would go.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as [[retention]] owner = \"acme/ada\" days = 90"
)]
pub struct RetentionConfig {
    /// Owner of the conversations.
    #[serde(deserialize_with = "deserialize_from_str")]
    #[schemars(with = "String")]
    pub owner: Owner,
    /// Those that were not changed for so many days. Default: of any age.
    pub days: Option<NonZeroU32>,
    /// Those beyond so many bytes of content, as stored; the ones changed last are kept. Default: any number.
    pub bytes: Option<NonZeroU64>,
}

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
