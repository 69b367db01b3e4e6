//! Which known names resemble an unknown one.

/// The most names suggested.
const SUGGESTIONS: usize = 3;
/// Longer names are cut before they are compared; no model's name is as long.
const MAX_COMPARED_CHARS: usize = 64;

/// The names nearest to `name` by edit distance, nearest first, at most three, and none that differ in more than a third
/// of their characters.
pub(crate) fn most_similar<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Vec<String> {
    let name: Vec<char> = name.chars().take(MAX_COMPARED_CHARS).collect();
    let mut ranked: Vec<(usize, &str)> = known
        .map(|candidate| (edit_distance(&name, candidate), candidate))
        .filter(|(distance, candidate)| distance * 3 <= name.len().max(candidate.len()))
        .collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked
        .into_iter()
        .take(SUGGESTIONS)
        .map(|(_, candidate)| candidate.to_owned())
        .collect()
}

/// Levenshtein's distance, row by row.
fn edit_distance(a: &[char], b: &str) -> usize {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
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
    fn only_similar_names_are_suggested() {
        let known = ["gpt-5.1", "gpt-5.2", "claude-opus-5"];
        assert_eq!(
            most_similar("gpt5.1", known.into_iter()),
            ["gpt-5.1", "gpt-5.2"]
        );
        assert!(most_similar("banana", known.into_iter()).is_empty());
        assert!(most_similar(&"x".repeat(1_000_000), known.into_iter()).is_empty());
    }
}
