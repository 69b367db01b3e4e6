//! Inverse document frequency: the weight of each phrase of an any-word query, and which ones select nodes.
//!
//! A piece weighs one more for each time that it is half as frequent as the most frequent of the query.
//! That is the difference of their inverse document frequencies, so nobody has to know how many texts
//! there are. Whole numbers, so every machine has the same.
//!
//! Not here: counting.

/// The factor of the most frequent piece.
pub(super) const ONE: u32 = 16;

/// Weight of a piece of an any-word query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IdfWeight {
    /// Whether a text is a hit if it has this piece.
    pub(super) looked_for: bool,
    /// Factor of the piece's score in [`ONE`]ths: [`ONE`] for the most frequent piece, more for rarer ones.
    pub(super) factor: u32,
}

/// Returns the weights of pieces, given how many texts have each; counts above `most` need not be exact.
pub(super) fn idf_weights(counts: &[usize], most: usize) -> Vec<IdfWeight> {
    let counts: Vec<usize> = counts.iter().map(|count| (*count).min(most + 1)).collect();
    let mut rarest: Vec<(usize, usize)> = counts.iter().copied().zip(0..).collect();
    rarest.sort_unstable();
    let mut sum = 0;
    let chosen = rarest.iter().take_while(|(count, _)| {
        sum += count;
        sum <= most
    });
    let mut looked_for = vec![false; counts.len()];
    let mut any = false;
    for (count, piece) in chosen {
        any |= *count > 0;
        if let Some(looked_for) = looked_for.get_mut(*piece) {
            *looked_for = true;
        }
    }
    let frequent = counts.iter().copied().max().unwrap_or(0);
    let weight = |(count, looked_for): (&usize, bool)| IdfWeight {
        // Nothing is rare: everything is looked for.
        looked_for: *count > 0 && (looked_for || !any),
        factor: ONE + scaled_log2(frequent).saturating_sub(scaled_log2(*count)),
    };
    counts.iter().zip(looked_for).map(weight).collect()
}

/// Returns the logarithm to the base 2 in [`ONE`]ths, interpolated linearly between powers of two.
fn scaled_log2(count: usize) -> u32 {
    let count = u64::try_from(count).unwrap_or(u64::MAX).clamp(1, 1 << 32);
    let whole = count.ilog2();
    let part = ((count - (1 << whole)) * u64::from(ONE)) >> whole;
    whole * ONE + u32::try_from(part).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(counts: &[usize], most: usize) -> String {
        let show = |weight: IdfWeight| {
            let mark = if weight.looked_for { "" } else { "-" };
            format!("{mark}{}", weight.factor)
        };
        let shown: Vec<String> = idf_weights(counts, most).into_iter().map(show).collect();
        shown.join(" ")
    }

    #[test]
    fn half_as_frequent_weighs_one_more() {
        for (counts, expected) in [
            (&[][..], ""),
            (&[5], "16"),
            (&[4, 4], "16 16"),
            (&[1, 2, 4, 8], "64 48 32 16"),
            (&[3, 2, 1], "16 24 40"),
            (&[0, 2], "-32 16"),
            (&[0], "-16"),
        ] {
            assert_eq!(shown(counts, 100), expected, "{counts:?}");
        }
    }

    #[test]
    fn the_rarest_are_looked_for_while_they_are_few() {
        for (counts, expected) in [
            (&[60, 50, 1][..], "-16 21 110"),
            (&[50, 50], "16 16"),
            (&[51, 50], "-16 16"),
            // More than a hundred is not told apart.
            (&[200, 1000], "16 16"),
            (&[0, 200, 1000], "-121 16 16"),
            (&[usize::MAX, 100], "-16 16"),
        ] {
            assert_eq!(shown(counts, 100), expected, "{counts:?}");
        }
    }
}
