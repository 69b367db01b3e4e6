//! Inverse document frequency: weights of the phrases of an any-word query, and which ones select
//! nodes.
//!
//! The factor of a phrase is 2 + log₂(count of the most frequent phrase ÷ its own count). That is a
//! difference of inverse document frequencies, so the number of texts is not needed. Whole-number
//! arithmetic gives the same result on every machine.
//!
//! Not here: counting.

/// The unit of factors: with it a phrase counts as it is.
pub(super) const ONE: u32 = 16;

/// Factor of the most frequent phrase. With one instead of two, a single rare word of a question outweighs all the
/// others together.
const MOST_FREQUENT: u32 = 2 * ONE;

/// Weight of a phrase of an any-word query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IdfWeight {
    /// Whether a text with this phrase is a hit.
    pub(super) selects_nodes: bool,
    /// Factor of the phrase's score in [`ONE`]ths: [`MOST_FREQUENT`] for the most frequent phrase,
    /// more for rarer ones.
    pub(super) factor: u32,
}

/// Returns the weights of phrases, given how many texts have each; counts above `most` need not be
/// exact.
pub(super) fn idf_weights(counts: &[usize], most: usize) -> Vec<IdfWeight> {
    let counts: Vec<usize> = counts.iter().map(|count| (*count).min(most + 1)).collect();
    let mut rarest: Vec<(usize, usize)> = counts.iter().copied().zip(0..).collect();
    rarest.sort_unstable();
    let mut sum = 0;
    let chosen = rarest.iter().take_while(|(count, _)| {
        sum += count;
        sum <= most
    });
    let mut selects_nodes = vec![false; counts.len()];
    let mut any = false;
    for (count, piece) in chosen {
        any |= *count > 0;
        if let Some(selects_nodes) = selects_nodes.get_mut(*piece) {
            *selects_nodes = true;
        }
    }
    let frequent = counts.iter().copied().max().unwrap_or(0);
    let weight = |(count, selects_nodes): (&usize, bool)| IdfWeight {
        // If no phrase is rare enough, all of them select nodes.
        selects_nodes: *count > 0 && (selects_nodes || !any),
        factor: MOST_FREQUENT + scaled_log2(frequent).saturating_sub(scaled_log2(*count)),
    };
    counts.iter().zip(selects_nodes).map(weight).collect()
}

/// Returns log₂ in [`ONE`]ths, interpolated linearly between powers of two.
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
            let mark = if weight.selects_nodes { "" } else { "-" };
            format!("{mark}{}", weight.factor)
        };
        let shown: Vec<String> = idf_weights(counts, most).into_iter().map(show).collect();
        shown.join(" ")
    }

    #[test]
    fn half_as_frequent_weighs_one_more() {
        for (counts, expected) in [
            (&[][..], ""),
            (&[5], "32"),
            (&[4, 4], "32 32"),
            (&[1, 2, 4, 8], "80 64 48 32"),
            (&[3, 2, 1], "32 40 56"),
            (&[0, 2], "-48 32"),
            (&[0], "-32"),
        ] {
            assert_eq!(shown(counts, 100), expected, "{counts:?}");
        }
    }

    #[test]
    fn the_rarest_are_looked_for_while_they_are_few() {
        for (counts, expected) in [
            (&[60, 50, 1][..], "-32 37 126"),
            (&[50, 50], "32 32"),
            (&[51, 50], "-32 32"),
            // More than a hundred is not told apart.
            (&[200, 1000], "32 32"),
            (&[0, 200, 1000], "-137 32 32"),
            (&[usize::MAX, 100], "-32 32"),
        ] {
            assert_eq!(shown(counts, 100), expected, "{counts:?}");
        }
    }
}
