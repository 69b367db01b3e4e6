//! Which known names resemble an unknown one.

use crate::name::case_folded;

/// The most names suggested.
const SUGGESTIONS: usize = 3;
/// The most characters of a name that are compared.
const MAX_COMPARED_CHARS: usize = 64;

/// Names equal but for case and marks, names of which one contains the other, and names that share most of their pairs
/// of letters, in this order; at most three.
pub(crate) fn most_similar<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Vec<String> {
    let wanted = normalize_name(name);
    let pairs = letter_pairs(&wanted);
    let score = |other: &str| -> Option<usize> {
        let plain = normalize_name(other);
        if plain == wanted {
            return Some(0);
        }
        let contained = plain.contains(&wanted) || wanted.contains(&plain);
        if contained && plain.len() >= 3 && wanted.len() >= 3 {
            return Some(1);
        }
        let other = self::letter_pairs(&plain);
        let shared = other.iter().filter(|pair| pairs.contains(pair)).count();
        let all = other.len() + pairs.len();
        (shared * 10 >= all * 3).then(|| 2 + (all - 2 * shared.min(all / 2)) * 100 / all.max(1))
    };
    let mut ranked: Vec<(usize, &str)> = known
        .filter_map(|other| Some((score(other)?, other)))
        .collect();
    ranked.sort_unstable();
    let best = ranked.into_iter().take(SUGGESTIONS);
    best.map(|(_, name)| name.to_owned()).collect()
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
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_names_are_suggested() {
        let known = ["get_user", "getUserInfo", "delete_file", "list_files"];
        assert_eq!(
            most_similar("GetUser", known.into_iter()),
            ["get_user", "getUserInfo"]
        );
        assert_eq!(
            most_similar("delete_fil", known.into_iter())[0],
            "delete_file"
        );
        assert!(most_similar("weather", known.into_iter()).is_empty());
        assert!(most_similar("", known.into_iter()).is_empty());
    }
}
