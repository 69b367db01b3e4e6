//! Reading what a link names.

use contexture::ir::ContentHash;

use crate::command::Place;
use crate::sample;

/// A place with a conversation, and the link of the output in it.
fn place() -> (Place, String) {
    let place = Place::new();
    sample::support(&place);
    let found = place.json("search --json items --kind output");
    let id = found["hits"][0]["id"].as_str().unwrap();
    let run = place.ok(&format!("show --json support-42 {id}"));
    // Byte for byte: the hash is that of the stored text.
    let (_, item) = run.rsplit_once(r#""item":"#).unwrap();
    let item = item.split_once("}]").map_or(item, |(item, _)| item);
    let hash = ContentHash::of(item.as_bytes());
    (place, format!("context://vfs/{hash}"))
}

#[test]
fn a_link_is_read_whole_and_in_part() {
    let (place, link) = place();
    assert_eq!(place.ok(&format!("read support-42 {link}")), "3 items\n");
    let part = place.json(&format!("read --json support-42 {link} --lines ..1"));
    assert_eq!(part["text"], "3 items");
    assert_eq!(
        (&part["lines"], &part["type"]),
        (&1.into(), &"function_call_output".into())
    );
    let beyond = place.run(&format!("read support-42 {link} --lines 7.."));
    assert_eq!((beyond.code, beyond.out.as_str()), (0, ""));
    assert!(beyond.err.contains("it has 1 line"), "{}", beyond.err);
}

#[test]
fn lines_that_match_have_their_numbers() {
    let (place, link) = place();
    assert_eq!(
        place.ok(&format!("read support-42 {link} --grep ITEM")),
        "1:3 items\n"
    );
    assert_eq!(
        place.ok(&format!("read support-42 {link} --grep ^[0-9] --regex")),
        "1:3 items\n"
    );
    let found = place.json(&format!("read --json support-42 {link} --grep items"));
    assert_eq!(
        (&found["matches"], &found["found"][0]["line"]),
        (&1.into(), &1.into())
    );
    let none = place.run(&format!("read support-42 {link} --grep nothing"));
    assert!(none.err.contains("no line matches"), "{}", none.err);
}

#[test]
fn what_is_no_link_or_leads_nowhere_is_refused() {
    let (place, link) = place();
    let nowhere = "context://vfs/00000000000000000000000000000000";
    for (arguments, code, said) in [
        (
            "context://vfs/../secret.txt".to_owned(),
            2,
            "is no link: expected",
        ),
        (nowhere.to_owned(), 3, "is not on this path"),
        (format!("{link} --lines 3..1"), 2, "expected FROM..TO"),
        (format!("{link} --lines 0.."), 2, "expected FROM..TO"),
        (
            format!("{link} --grep ( --regex"),
            2,
            "no regular expression",
        ),
    ] {
        let run = place.run(&format!("read support-42 {arguments}"));
        assert_eq!(run.code, code, "{arguments}: {}", run.err);
        assert!(run.err.contains(said), "{arguments}: {}", run.err);
    }
}
