//! A band as bytes: a version, then numbers of seven bits a byte, lowest first.
//!
//! Words are codes, counted from 1 in tables to which entries are only added; 0 stands for none. A band of a later version is
//! not read: it is somebody else's to show.

use super::{BANDS, BandPart, CallBand, PrefixBreak, SOURCES};
use crate::document::{EpochReason, SegmentRule, SegmentVerdict};

/// Largest number of bytes of a stored band.
pub const MAX_BAND_BYTES: usize = 1 << 10;

/// The version that is written.
const VERSION: u8 = 1;
/// Fewest bytes of a part: one for each of its numbers.
const MIN_PART_BYTES: usize = 9;

const VERDICTS: [SegmentVerdict; 6] = [
    SegmentVerdict::Kept,
    SegmentVerdict::Required,
    SegmentVerdict::Shortened,
    SegmentVerdict::Cleared,
    SegmentVerdict::Trimmed,
    SegmentVerdict::Dropped,
];

/// Why bytes are no band that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BandError {
    /// A later version wrote it.
    #[error("the band has version {version}; this version reads {VERSION}")]
    UnknownVersion {
        /// The version that wrote it.
        version: u8,
    },
    /// The bytes are cut off or altered.
    #[error("the band is damaged")]
    Damaged,
}

impl CallBand {
    /// Returns the bytes to store, at most [`MAX_BAND_BYTES`] and never none.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut band = self.clone();
        band.join_until(|band| band.write_bytes().len() <= MAX_BAND_BYTES);
        band.write_bytes()
    }

    /// Reads the bytes of [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// [`BandError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BandError> {
        let mut numbers = match bytes.split_first() {
            Some((&VERSION, rest)) => Numbers(rest),
            Some((&version, _)) => return Err(BandError::UnknownVersion { version }),
            None => return Err(BandError::Damaged),
        };
        numbers.read_band().ok_or(BandError::Damaged)
    }

    fn write_bytes(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        push_number(&mut out, u64::from(self.is_joined));
        for number in [
            self.limit,
            self.path_items,
            self.cache_read,
            self.cache_written,
        ] {
            push_number(&mut out, number);
        }
        let broken = self.prefix_break;
        push_number(
            &mut out,
            code_of(&EpochReason::ALL, broken.map(|broken| broken.reason)),
        );
        if let Some(broken) = broken {
            push_number(&mut out, broken.lost_tokens);
            push_optional(&mut out, broken.pico_dollars);
        }
        push_number(&mut out, self.parts.len() as u64);
        self.parts
            .iter()
            .for_each(|part| part.write_bytes(&mut out));
        out
    }
}

impl BandPart {
    fn write_bytes(&self, out: &mut Vec<u8>) {
        push_number(out, code_of(&BANDS, self.band));
        push_number(out, code_of(&SOURCES, self.source));
        push_number(out, code_of(&VERDICTS, self.verdict));
        push_number(out, code_of(&SegmentRule::ALL, self.rule));
        push_number(out, self.items);
        push_optional(out, self.span.map(|(first, _)| first));
        let length = self.span.map(|(first, last)| last.saturating_sub(first));
        push_number(out, length.unwrap_or(0));
        push_number(out, self.tokens);
        push_number(out, self.omitted_tokens);
    }
}

/// The place of a word in its table, from 1; 0 for none.
fn code_of<T: PartialEq>(words: &[T], word: Option<T>) -> u64 {
    let place = word.and_then(|word| words.iter().position(|known| *known == word));
    place.map_or(0, |place| place as u64 + 1)
}

fn push_optional(out: &mut Vec<u8>, number: Option<u64>) {
    // One more than the number, so that 0 is none; the largest number reads as the one before it.
    push_number(out, number.map_or(0, |number| number.saturating_add(1)));
}

fn push_number(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or(0);
        number >>= 7;
        if number == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

/// The numbers that are left to read. Every read gives `None` where they end or are no such number.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn read_number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let low = u64::from(byte & 0x7f);
            // Bits beyond the type would be lost.
            if low.leading_zeros() < shift {
                return None;
            }
            number |= low << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn read_optional(&mut self) -> Option<Option<u64>> {
        Some(self.read_number()?.checked_sub(1))
    }

    fn read_word<T: Copy>(&mut self, words: &[T]) -> Option<Option<T>> {
        match self.read_optional()? {
            None => Some(None),
            Some(place) => Some(Some(*words.get(usize::try_from(place).ok()?)?)),
        }
    }

    fn read_band(&mut self) -> Option<CallBand> {
        let is_joined = match self.read_number()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let mut band = CallBand {
            is_joined,
            limit: self.read_number()?,
            path_items: self.read_number()?,
            cache_read: self.read_number()?,
            cache_written: self.read_number()?,
            ..CallBand::default()
        };
        if let Some(reason) = self.read_word(&EpochReason::ALL)? {
            band.prefix_break = Some(PrefixBreak {
                reason,
                lost_tokens: self.read_number()?,
                pico_dollars: self.read_optional()?,
            });
        }
        let count = usize::try_from(self.read_number()?).ok()?;
        if count > self.0.len() / MIN_PART_BYTES {
            return None;
        }
        for _ in 0..count {
            band.parts.push(self.read_part()?);
        }
        self.0.is_empty().then_some(band)
    }

    fn read_part(&mut self) -> Option<BandPart> {
        let mut part = BandPart {
            band: self.read_word(&BANDS)?,
            source: self.read_word(&SOURCES)?,
            verdict: self.read_word(&VERDICTS)?,
            rule: self.read_word(&SegmentRule::ALL)?,
            items: self.read_number()?,
            ..BandPart::default()
        };
        let (first, length) = (self.read_optional()?, self.read_number()?);
        part.span = match first {
            Some(first) => Some((first, first.checked_add(length)?)),
            None => None,
        };
        part.tokens = self.read_number()?;
        part.omitted_tokens = self.read_number()?;
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Figures as calls have them, and the largest whose sums are still exact.
    fn figure() -> impl Strategy<Value = u64> {
        prop_oneof![0..100_u64, 0..1_000_000_u64, 0..1_u64 << 53]
    }

    fn span() -> impl Strategy<Value = Option<(u64, u64)>> {
        option::of((figure(), figure()).prop_map(|(first, more)| (first, first + more)))
    }

    fn part() -> impl Strategy<Value = BandPart> {
        let words = (
            option::of(select(&BANDS[..])),
            option::of(select(&SOURCES[..])),
            option::of(select(&VERDICTS[..])),
            option::of(select(&SegmentRule::ALL[..])),
        );
        (words, figure(), span(), figure(), figure()).prop_map(
            |((band, source, verdict, rule), items, span, tokens, omitted_tokens)| BandPart {
                band,
                source,
                verdict,
                rule,
                items,
                span,
                tokens,
                omitted_tokens,
            },
        )
    }

    fn band() -> impl Strategy<Value = CallBand> {
        let broken = (
            select(&EpochReason::ALL[..]),
            figure(),
            option::of(figure()),
        )
            .prop_map(|(reason, lost_tokens, pico_dollars)| PrefixBreak {
                reason,
                lost_tokens,
                pico_dollars,
            });
        let head = (figure(), figure(), figure(), figure(), option::of(broken));
        (head, vec(part(), 0..200)).prop_map(
            |((limit, path_items, cache_read, cache_written, prefix_break), parts)| CallBand {
                limit,
                path_items,
                parts,
                is_joined: false,
                cache_read,
                cache_written,
                prefix_break,
            },
        )
    }

    /// Items, tokens, omitted tokens, and the span of a band.
    fn sums(band: &CallBand) -> ([u64; 3], Option<u64>, Option<u64>) {
        let sum = |of: fn(&BandPart) -> u64| band.parts.iter().map(of).sum::<u64>();
        let spans = || band.parts.iter().filter_map(|part| part.span);
        (
            [
                sum(|part| part.items),
                sum(|part| part.tokens),
                sum(|part| part.omitted_tokens),
            ],
            spans().map(|(first, _)| first).min(),
            spans().map(|(_, last)| last).max(),
        )
    }

    proptest! {
        #[test]
        fn stored_bands_keep_their_sums_and_fit(band in band()) {
            let bytes = band.to_bytes();
            prop_assert!(!bytes.is_empty() && bytes.len() <= MAX_BAND_BYTES, "{} bytes", bytes.len());
            let read = CallBand::from_bytes(&bytes).unwrap();
            prop_assert_eq!(sums(&read), sums(&band));
            prop_assert_eq!(read.is_joined, read.parts.len() < band.parts.len());
            let whole = CallBand { parts: band.parts.clone(), is_joined: false, ..read.clone() };
            prop_assert_eq!(&whole, &band);
            // Without need nothing is joined.
            if band.write_bytes().len() <= MAX_BAND_BYTES {
                prop_assert_eq!(&read, &band);
            }
            prop_assert_eq!(read.to_bytes(), bytes);
        }

        #[test]
        fn a_damaged_band_is_refused_or_another_band(
            band in band(),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            end in any::<prop::sample::Index>(),
        ) {
            let mut bytes = band.to_bytes();
            let cut = &bytes[..end.index(bytes.len())];
            prop_assert!(CallBand::from_bytes(cut).is_err());
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(read) = CallBand::from_bytes(&bytes) {
                prop_assert!(read.to_bytes().len() <= MAX_BAND_BYTES);
            }
        }
    }

    #[test]
    fn every_reason_of_a_break_is_stored() {
        for reason in EpochReason::ALL {
            let broken = PrefixBreak {
                reason,
                lost_tokens: 7,
                pico_dollars: None,
            };
            let band = CallBand {
                prefix_break: Some(broken),
                ..CallBand::default()
            };
            let read = CallBand::from_bytes(&band.to_bytes()).unwrap();
            assert_eq!(read.prefix_break, Some(broken));
            assert_eq!(EpochReason::from_word(reason.as_str()), Some(reason));
        }
    }

    #[test]
    fn a_later_version_is_named() {
        let error = CallBand::from_bytes(&[9, 0]).unwrap_err();
        assert_eq!(error, BandError::UnknownVersion { version: 9 });
        assert_eq!(CallBand::from_bytes(&[]), Err(BandError::Damaged));
    }
}
