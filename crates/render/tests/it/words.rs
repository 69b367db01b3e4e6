//! Plurals and singulars, as the reference has them in its tags.

use contexture_render::{plural, singular};

#[test]
fn words_equal_the_reference() {
    let table = include_str!("../fixtures/words/plurals.tsv");
    let mut count = 0;
    for line in table.lines() {
        let [word, many, one] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not three columns: {line}");
        };
        assert_eq!(
            (plural(word), singular(word)),
            (many.to_owned(), one.to_owned()),
            "{word}"
        );
        count += 1;
    }
    assert!(count > 380, "the table has been cut to {count} words");
}

#[test]
fn long_words_cost_no_more_than_their_end() {
    let long = "é".repeat(500_000) + "policies";
    assert!(singular(&long).ends_with("épolicy"));
    assert!(plural(&long).ends_with("policies"));
}
