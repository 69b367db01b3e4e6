//! The date and time of the user's messages, and calendar steps between them.
//!
//! The time shown is that of the user's last message, so it is the same in all calls of a turn and is restored by a
//! rewind.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};

use super::path_facts::RemindersState;

/// A time zone by its IANA name: `Europe/Berlin`, `UTC`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Zone {
    name: String,
    zone: TimeZone,
}

/// A name that is not a time zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name:?} is no time zone: expected a name of the IANA's database, as Europe/Berlin or UTC"
)]
pub struct ZoneError {
    /// The unknown zone name.
    pub name: String,
}

/// A unit of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CalendarStep {
    /// The hour changed.
    Hour,
    /// The day changed.
    Day,
    /// The week changed; it begins on Monday.
    Week,
    /// The month changed.
    Month,
    /// The season of the northern hemisphere changed; winter is December to February.
    Season,
    /// The year changed.
    Year,
}

impl Zone {
    /// Finds the zone of this name.
    ///
    /// # Errors
    /// [`ZoneError`].
    pub fn new(name: &str) -> Result<Self, ZoneError> {
        let bad = |_| ZoneError {
            name: name.chars().take(80).collect(),
        };
        Ok(Self {
            zone: TimeZone::get(name).map_err(bad)?,
            name: name.to_owned(),
        })
    }

    fn local_time(&self, ms: i64) -> Option<Zoned> {
        let instant = Timestamp::from_millisecond(ms).ok()?;
        Some(instant.to_zoned(self.zone.clone()))
    }

    /// Whether such a step lies between the user's last two messages; true if there is only one message.
    pub(super) fn has_step_passed(&self, step: CalendarStep, state: &RemindersState) -> bool {
        let times = (state.previous_user_message_ms, state.user_message_ms);
        let (Some(before), Some(said)) = times else {
            return true;
        };
        match (self.local_time(before), self.local_time(said)) {
            (Some(before), Some(said)) => step.period_key(&before) != step.period_key(&said),
            _ => false,
        }
    }

    /// Describes the time of the user's last message, and of the one before.
    pub(super) fn describe_message_times(&self, state: &RemindersState) -> Option<String> {
        let said = self.local_time(state.user_message_ms?)?;
        let line = |time: &Zoned| time.strftime("%A, %Y-%m-%d, %H:%M").to_string();
        let now = format!("It is {} ({}).", line(&said), self.name);
        let Some(before) = state
            .previous_user_message_ms
            .and_then(|ms| self.local_time(ms))
        else {
            return Some(now);
        };
        let minutes = (said.timestamp().as_second() - before.timestamp().as_second()) / 60;
        let ago = match minutes {
            ..60 => return Some(now),
            60..2_880 => format!("{} hours", minutes / 60),
            _ => format!("{} days", minutes / 1_440),
        };
        let before = line(&before);
        Some(format!(
            "{now}\nThe message before was {ago} earlier: {before}."
        ))
    }
}

impl CalendarStep {
    fn period_key(self, time: &Zoned) -> (i16, i16, i8) {
        let (year, month, day) = (time.year(), i16::from(time.month()), time.day());
        match self {
            Self::Hour => (year, time.day_of_year(), time.hour()),
            Self::Day => (year, month, day),
            Self::Week => {
                let week = time.date().iso_week_date();
                (week.year(), i16::from(week.week()), 0)
            }
            Self::Month => (year, month, 0),
            // December belongs to the winter of the next year.
            Self::Season => (year + month / 12, month % 12 / 3, 0),
            Self::Year => (year, 0, 0),
        }
    }
}

impl TryFrom<String> for Zone {
    type Error = ZoneError;

    fn try_from(name: String) -> Result<Self, ZoneError> {
        Self::new(&name)
    }
}

impl From<Zone> for String {
    fn from(zone: Zone) -> Self {
        zone.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(before: &str, said: &str) -> RemindersState {
        let ms = |text: &str| Some(text.parse::<Timestamp>().unwrap().as_millisecond());
        RemindersState {
            previous_user_message_ms: ms(before),
            user_message_ms: ms(said),
            ..RemindersState::default()
        }
    }

    #[test]
    fn steps_are_those_of_the_zone() {
        let berlin = Zone::new("Europe/Berlin").unwrap();
        let utc = Zone::new("UTC").unwrap();
        let state = between("2025-12-31T22:30:00Z", "2025-12-31T23:30:00Z");
        for (step, in_berlin, in_utc) in [
            (CalendarStep::Hour, true, true),
            (CalendarStep::Day, true, false),
            (CalendarStep::Week, false, false),
            (CalendarStep::Month, true, false),
            (CalendarStep::Season, false, false),
            (CalendarStep::Year, true, false),
        ] {
            assert_eq!(berlin.has_step_passed(step, &state), in_berlin, "{step:?}");
            assert_eq!(utc.has_step_passed(step, &state), in_utc, "{step:?}");
        }
        let winter = between("2025-11-30T12:00:00Z", "2025-12-01T12:00:00Z");
        assert!(
            utc.has_step_passed(CalendarStep::Season, &winter)
                && utc.has_step_passed(CalendarStep::Week, &winter)
        );
        assert!(utc.has_step_passed(CalendarStep::Year, &RemindersState::default()));
        assert_eq!(
            Zone::new("Nowhere/At-All").unwrap_err().to_string(),
            "\"Nowhere/At-All\" is no time zone: expected a name of the IANA's database, as Europe/Berlin or UTC"
        );
    }

    #[test]
    fn the_time_is_told_with_what_went_by() {
        let berlin = Zone::new("Europe/Berlin").unwrap();
        let told = |before, said| {
            berlin
                .describe_message_times(&between(before, said))
                .unwrap()
        };
        let now = "It is Monday, 2026-06-01, 14:05 (Europe/Berlin).";
        assert_eq!(told("2026-06-01T11:30:00Z", "2026-06-01T12:05:00Z"), now);
        assert_eq!(
            told("2026-05-29T12:00:00Z", "2026-06-01T12:05:00Z"),
            format!("{now}\nThe message before was 3 days earlier: Friday, 2026-05-29, 14:00.")
        );
        assert_eq!(
            berlin.describe_message_times(&RemindersState::default()),
            None
        );
        let far = RemindersState {
            user_message_ms: Some(i64::MAX),
            ..RemindersState::default()
        };
        assert_eq!(berlin.describe_message_times(&far), None);
    }
}
