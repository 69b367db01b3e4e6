//! Automatic names for branches that the caller did not name.

use contexture_ir::BranchName;

/// Returns a free name for a branch that starts from `from`.
///
/// It is `<base>-v<n>`: the base is `from` without its `-v<n>` suffixes, and n is one more than the number of names that
/// equal the base or begin with `<base>-v`, or the next n whose name is free. So rewinds in a row from `main` give
/// `main-v2`, `main-v3`, `main-v4`. If that would be too long for a branch name, the base loses its tail.
///
/// `count` counts the names that equal its argument or begin with its argument and `-v`; `exists`
/// says whether a name is taken. Both run inside the transaction that creates the branch.
pub fn automatic_name<E>(
    from: &BranchName,
    mut count: impl FnMut(&str) -> Result<u64, E>,
    mut exists: impl FnMut(&BranchName) -> Result<bool, E>,
) -> Result<BranchName, E> {
    let mut base = without_versions(from.as_str());
    loop {
        let mut number = count(base)?.saturating_add(1);
        while let Ok(name) = BranchName::new(format!("{base}-v{number}")) {
            if !exists(&name)? {
                return Ok(name);
            }
            number = number.saturating_add(1);
        }
        let shorter = base.get(..base.len().saturating_sub(24));
        base = shorter.filter(|stem| !stem.is_empty()).unwrap_or("b");
    }
}

/// The name without the `-v<n>` at its end, however many there are: a branch of a branch is one more of the same line.
fn without_versions(name: &str) -> &str {
    let mut base = name;
    while let Some((stem, digits)) = base.rsplit_once("-v")
        && !stem.is_empty()
        && !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
    {
        base = stem;
    }
    base
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    use super::*;

    fn next(names: &BTreeSet<String>, from: &str) -> String {
        let Ok(name) = automatic_name::<Infallible>(
            &BranchName::new(from).unwrap(),
            |base| {
                let prefix = format!("{base}-v");
                Ok(names
                    .iter()
                    .filter(|name| *name == base || name.starts_with(&prefix))
                    .count() as u64)
            },
            |name| Ok(names.contains(name.as_str())),
        );
        name.as_str().to_owned()
    }

    #[test]
    fn branches_of_branches_are_numbered_on() {
        let mut names = BTreeSet::from(["main".to_owned()]);
        for (from, expected) in [
            ("main", "main-v2"),
            ("main-v2", "main-v3"),
            ("main", "main-v4"),
            ("main-v2", "main-v5"),
            ("plan-v7", "plan-v1"),
            ("main", "main-v6"),
        ] {
            assert_eq!(next(&names, from), expected);
            names.insert(expected.to_owned());
        }
    }

    #[test]
    fn a_taken_name_is_skipped() {
        let names = BTreeSet::from(["main".to_owned(), "main-v3".to_owned()]);
        assert_eq!(next(&names, "main"), "main-v4");
        let names = BTreeSet::from(["main-v2".to_owned(), "main-v3".to_owned()]);
        assert_eq!(next(&names, "main"), "main-v4");
    }

    #[test]
    fn names_never_outgrow_the_rule() {
        let mut names = BTreeSet::from(["main".to_owned()]);
        let mut from = "main".to_owned();
        for _ in 0..300 {
            from = next(&names, &from);
            assert!(names.insert(from.clone()), "{from} was taken");
        }
        let long = "x".repeat(255);
        assert!(next(&BTreeSet::from([long.clone()]), &long).starts_with("xxx"));
    }
}
