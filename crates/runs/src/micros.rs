//! Times as stored: whole microseconds.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

fn whole_micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

pub(crate) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    whole_micros(*time).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_micros)
}

/// A time that may be absent.
pub(crate) mod maybe {
    use super::{Deserialize, Deserializer, Duration, Serialize, Serializer, whole_micros};

    #[expect(clippy::ref_option, reason = "serde asks for it")]
    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(whole_micros).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        let micros = Option::<u64>::deserialize(from)?;
        Ok(micros.map(Duration::from_micros))
    }
}
