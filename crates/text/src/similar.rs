//! Known names that resemble an unknown one, to be suggested in an error.
//!
//! There are two rules because the names differ. Model names are short and differ in a digit or a dash, so they are
//! compared by edit distance. Tool names are words joined in several styles and often lack or gain a word, so they are
//! compared without case and punctuation, by containment and by pairs of letters.
//!
//! Both suggest at most three names and compare at most 64 characters, so that a hostile name costs no more than an
//! honest one.

use crate::fold::case_folded;

/// Maximum number of suggested names.
const SUGGESTIONS: usize = 3;
/// Maximum number of characters compared; no model name is as long.
const MAX_COMPARED_CHARS: usize = 64;

/// The names nearest to `name` by edit distance, nearest first, at most three, and none that differ in more than a third
/// of their characters.
#[must_use]
pub fn similar_by_edit_distance<'n>(
    name: &str,
    known: impl Iterator<Item = &'n str>,
) -> Vec<String> {
    let name: Vec<char> = name.chars().take(MAX_COMPARED_CHARS).collect();
    let mut ranked: Vec<(usize, &str)> = known
        .map(|candidate| (edit_distance(&name, candidate), candidate))
        // A third of the longer name: allows for a typo or a missing dash, and excludes names of other model families.
        .filter(|(distance, candidate)| distance * 3 <= name.len().max(candidate.len()))
        .collect();
    // Ties are broken by name, so that suggestions do not depend on the order of the table.
    ranked.sort_unstable();
    ranked.dedup();
    ranked
        .into_iter()
        .take(SUGGESTIONS)
        .map(|(_, candidate)| candidate.to_owned())
        .collect()
}

/// Computes the Levenshtein distance, row by row.
fn edit_distance(a: &[char], b: &str) -> usize {
    // One row instead of a matrix; `diagonal` is the previous row's value at the previous position.
    let mut row: Vec<usize> = (0..=a.len()).collect();
    for (i, cb) in b.chars().take(MAX_COMPARED_CHARS).enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (slot, ca) in row
            .iter_mut()
            .zip([None].into_iter().chain(a.iter().map(Some)))
        {
            left = match ca {
                None => i + 1,
                Some(&ca) => {
                    let replaced = diagonal + usize::from(ca != cb);
                    diagonal = *slot;
                    replaced.min(left + 1).min(*slot + 1)
                }
            };
            *slot = left;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// Returns names equal except for case and punctuation, then names of which one contains the other, then names that
/// share most of their pairs of letters; at most three.
#[must_use]
pub fn similar_by_letter_pairs<'n>(
    name: &str,
    known: impl Iterator<Item = &'n str>,
) -> Vec<String> {
    let wanted = normalize_name(name);
    let pairs = letter_pairs(&wanted);
    let mut ranked: Vec<(usize, &str)> = known
        .filter_map(|other| Some((pair_distance(&wanted, &pairs, other)?, other)))
        .collect();
    ranked.sort_unstable();
    let best = ranked.into_iter().take(SUGGESTIONS);
    best.map(|(_, name)| name.to_owned()).collect()
}

/// Computes the distance of a name from the wanted one, which is normalized; `None` if it is too far to be suggested.
fn pair_distance(wanted: &str, pairs: &[(char, char)], other: &str) -> Option<usize> {
    let other = normalize_name(other);
    // Equal except for case, dashes and underscores: certainly meant.
    if other == wanted {
        return Some(0);
    }
    // Two letters are contained in nearly every name, so names under three bytes do not count as contained.
    let contained = other.contains(wanted) || wanted.contains(&other);
    if contained && other.len() >= 3 && wanted.len() >= 3 {
        return Some(1);
    }
    let others = letter_pairs(&other);
    let shared = others.iter().filter(|pair| pairs.contains(pair)).count();
    let all = others.len() + pairs.len();
    // Shared pairs are at least three tenths of the pairs of both names; identical names would share one half. The
    // distance is a percentage, so lower is closer.
    (shared * 10 >= all * 3).then(|| 2 + (all - 2 * shared.min(all / 2)) * 100 / all.max(1))
}

fn normalize_name(name: &str) -> String {
    let letters = name
        .chars()
        .filter(|c| c.is_alphanumeric())
        .take(MAX_COMPARED_CHARS);
    case_folded(&letters.collect::<String>())
}

fn letter_pairs(name: &str) -> Vec<(char, char)> {
    let mut pairs: Vec<(char, char)> = name.chars().zip(name.chars().skip(1)).collect();
    // Sorted and unique: a repeated pair counts once, wherever it occurs.
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_equals_levenshtein() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("gpt-5.1", "gpt-5.2", 1),
            ("claude-opus-48", "claude-opus-4-8", 1),
            ("ab", "ba", 2),
        ] {
            let chars: Vec<char> = a.chars().collect();
            assert_eq!(edit_distance(&chars, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn edit_distance_suggests_only_close_names() {
        let known = ["gpt-5.1", "gpt-5.2", "claude-opus-5"];
        assert_eq!(
            similar_by_edit_distance("gpt5.1", known.into_iter()),
            ["gpt-5.1", "gpt-5.2"]
        );
        assert!(similar_by_edit_distance("banana", known.into_iter()).is_empty());
        assert!(similar_by_edit_distance(&"x".repeat(1_000_000), known.into_iter()).is_empty());
    }

    #[test]
    fn letter_pairs_suggest_only_close_names() {
        let known = ["get_user", "getUserInfo", "delete_file", "list_files"];
        assert_eq!(
            similar_by_letter_pairs("GetUser", known.into_iter()),
            ["get_user", "getUserInfo"]
        );
        assert_eq!(
            similar_by_letter_pairs("delete_fil", known.into_iter())[0],
            "delete_file"
        );
        assert!(similar_by_letter_pairs("weather", known.into_iter()).is_empty());
        assert!(similar_by_letter_pairs("", known.into_iter()).is_empty());
    }
}
