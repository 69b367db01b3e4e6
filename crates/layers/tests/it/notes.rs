//! The notes of a memory: written, counted, bounded, expired.

use contexture_layers::builtin::memory::{
    EditResult, Expiry, MAX_DESCRIPTION_BYTES, MAX_EARLIER, MAX_KEY_BYTES, MAX_NOTES,
    MAX_TOTAL_BYTES, MAX_VALUE_BYTES, NoteError, NoteTime, NoteTtl, NoteUpdate, Notes,
};
use proptest::prelude::*;

const fn at(now_ms: i64, responses: u64) -> NoteTime {
    NoteTime { now_ms, responses }
}

fn keys(notes: &Notes, at: NoteTime) -> Vec<String> {
    notes.iter_live(at).map(|(key, _)| key.to_owned()).collect()
}

#[test]
fn a_note_keeps_what_an_edit_does_not_name() {
    let mut notes = Notes::default();
    let first = NoteUpdate {
        description: Some("about".to_owned()),
        importance: Some(7),
        ..NoteUpdate::with_value("one")
    };
    assert_eq!(
        notes.upsert("k", first.clone(), at(10, 0)),
        Ok(EditResult::Created)
    );
    assert_eq!(
        notes.upsert("k", first, at(15, 0)),
        Ok(EditResult::Unchanged)
    );
    assert_eq!(
        notes.upsert("k", NoteUpdate::with_value("two"), at(20, 0)),
        Ok(EditResult::Updated)
    );
    let note = notes.get("k").unwrap();
    assert_eq!(note.value, "two");
    assert_eq!(note.description.as_deref(), Some("about"));
    assert_eq!(note.importance, Some(7));
    assert_eq!(
        (note.created_ms, note.updated_ms, note.updates),
        (10, 20, 2)
    );
    let without = NoteUpdate {
        description: Some(String::new()),
        ..NoteUpdate::default()
    };
    assert_eq!(
        notes.upsert("k", without, at(30, 0)),
        Ok(EditResult::Updated)
    );
    assert_eq!(notes.get("k").unwrap().description, None);
    let json = serde_json::to_string(&notes).unwrap();
    let expected = r#"{"notes":{"k":{"value":"two","created_ms":10,"updated_ms":30,"updates":3,"importance":7,"earlier":[{"value":"one","from_ms":10,"until_ms":20}]}}}"#;
    assert_eq!(json, expected);
}

#[test]
fn what_a_note_said_before_is_kept() {
    let mut notes = Notes::default();
    let mut say = |value: &str, ms| notes.upsert("city", NoteUpdate::with_value(value), at(ms, 0));
    say("Oslo", 10).unwrap();
    say("Bergen", 20).unwrap();
    say("Bergen", 25).unwrap();
    say("Molde", 30).unwrap();
    // A change of something else is none of the value.
    let importance = NoteUpdate {
        importance: Some(3),
        ..NoteUpdate::default()
    };
    notes.upsert("city", importance, at(40, 0)).unwrap();
    let told = |notes: &Notes| -> Vec<(String, i64, i64)> {
        let earlier = notes.get("city").unwrap().earlier.iter();
        earlier
            .map(|one| (one.value.clone(), one.from_ms, one.until_ms))
            .collect()
    };
    let expected = [("Bergen", 20, 30), ("Oslo", 10, 20)];
    assert_eq!(
        told(&notes),
        expected.map(|(value, from, until)| (value.to_owned(), from, until))
    );
    for n in 0..100 {
        notes
            .upsert(
                "city",
                NoteUpdate::with_value(format!("{n}")),
                at(50 + n, 0),
            )
            .unwrap();
    }
    assert_eq!(notes.get("city").unwrap().earlier.len(), MAX_EARLIER);
    // Deleting forgets all of it.
    notes.delete("city");
    notes
        .upsert("city", NoteUpdate::with_value("Oslo"), at(300, 0))
        .unwrap();
    assert_eq!(notes.get("city").unwrap().earlier, []);
    // What was stored before there were any is read.
    let old: Notes = serde_json::from_str(
        r#"{"notes":{"k":{"value":"two","created_ms":10,"updated_ms":30,"updates":3}}}"#,
    )
    .unwrap();
    assert_eq!(old.get("k").unwrap().earlier, []);
}

#[test]
fn earlier_values_give_way_to_notes() {
    let mut notes = Notes::default();
    let long = |n: usize| format!("{n} {}", "x".repeat(MAX_VALUE_BYTES - 10));
    // Each note is changed until its history is full, so all of them would take many times the limit.
    for n in 0..30 {
        for change in 0..=MAX_EARLIER {
            let edit = NoteUpdate::with_value(long(change));
            notes
                .upsert(&format!("k{n}"), edit, at((n * 100 + change) as i64, 0))
                .unwrap();
        }
    }
    let size = serde_json::to_string(&notes).unwrap().len();
    assert!(size < MAX_TOTAL_BYTES + 16 * 1024, "{size}");
    assert_eq!(keys(&notes, at(0, 0)).len(), 30);
    // The oldest are gone, the newest are there.
    assert_eq!(notes.get("k0").unwrap().earlier, []);
    assert_eq!(
        notes.get("k29").unwrap().earlier[0].value,
        long(MAX_EARLIER - 1)
    );
}

#[test]
fn each_limit_has_an_error_that_names_it() {
    let fill = |count: usize, bytes: usize| {
        let mut notes = Notes::default();
        for n in 0..count {
            let value = "v".repeat(bytes);
            notes
                .upsert(&format!("{n:04}"), NoteUpdate::with_value(value), at(0, 0))
                .unwrap();
        }
        notes
    };
    let long = |bytes: usize| "x".repeat(bytes);
    let described = |bytes| NoteUpdate {
        description: Some(long(bytes)),
        ..NoteUpdate::with_value("v")
    };
    let too_long = |what, limit: usize| NoteError::TooLong {
        what,
        bytes: limit + 1,
        limit,
    };
    let mut notes = Notes::default();
    for (key, edit) in [
        (long(MAX_KEY_BYTES), NoteUpdate::with_value("v")),
        (
            "v".to_owned(),
            NoteUpdate::with_value(long(MAX_VALUE_BYTES)),
        ),
        ("d".to_owned(), described(MAX_DESCRIPTION_BYTES)),
    ] {
        assert_eq!(notes.upsert(&key, edit, at(0, 0)), Ok(EditResult::Created));
    }
    let before = notes.clone();
    for (key, edit, error) in [
        (
            String::new(),
            NoteUpdate::with_value("v"),
            NoteError::EmptyKey,
        ),
        (
            long(MAX_KEY_BYTES + 1),
            NoteUpdate::with_value("v"),
            too_long("key", MAX_KEY_BYTES),
        ),
        (
            "é".repeat(65),
            NoteUpdate::with_value("v"),
            NoteError::TooLong {
                what: "key",
                bytes: 130,
                limit: 128,
            },
        ),
        (
            "k".to_owned(),
            NoteUpdate::with_value(long(MAX_VALUE_BYTES + 1)),
            too_long("value", MAX_VALUE_BYTES),
        ),
        (
            "k".to_owned(),
            described(MAX_DESCRIPTION_BYTES + 1),
            too_long("description", MAX_DESCRIPTION_BYTES),
        ),
        (
            "k".to_owned(),
            NoteUpdate::default(),
            NoteError::NoNote {
                key: "k".to_owned(),
            },
        ),
    ] {
        assert_eq!(notes.upsert(&key, edit, at(0, 0)), Err(error));
        assert_eq!(notes, before);
    }

    let mut many = fill(MAX_NOTES, 1);
    let refused = many
        .upsert("one more", NoteUpdate::with_value("v"), at(0, 0))
        .unwrap_err();
    assert_eq!(refused, NoteError::TooMany { limit: MAX_NOTES });
    assert_eq!(
        many.upsert("0000", NoteUpdate::with_value("w"), at(0, 0)),
        Ok(EditResult::Updated)
    );
    many.delete("0001");
    assert_eq!(
        many.upsert("one more", NoteUpdate::with_value("v"), at(0, 0)),
        Ok(EditResult::Created)
    );

    let asked = |importance| NoteUpdate {
        importance: Some(importance),
        ..NoteUpdate::default()
    };
    let refused = NoteError::TooImportant {
        importance: 101,
        limit: 100,
    };
    assert_eq!(many.upsert("0000", asked(101), at(0, 0)), Err(refused));
    assert_eq!(
        many.upsert("0000", asked(100), at(0, 0)),
        Ok(EditResult::Updated)
    );

    let each = MAX_VALUE_BYTES - 4;
    let mut full = fill(MAX_TOTAL_BYTES / MAX_VALUE_BYTES, each);
    let refused = full
        .upsert("k", NoteUpdate::with_value(""), at(0, 0))
        .unwrap_err();
    let bytes = MAX_TOTAL_BYTES + 1;
    assert_eq!(
        refused,
        NoteError::Full {
            bytes,
            limit: MAX_TOTAL_BYTES
        }
    );
    assert_eq!(
        full.upsert("0000", NoteUpdate::with_value("short"), at(0, 0)),
        Ok(EditResult::Updated)
    );
}

#[test]
fn what_has_expired_is_gone_and_takes_no_room() {
    let mut notes = Notes::default();
    for n in 0..MAX_NOTES {
        let edit = NoteUpdate {
            ttl: Some(NoteTtl::Ms(10)),
            ..NoteUpdate::with_value("v")
        };
        notes.upsert(&n.to_string(), edit, at(0, 0)).unwrap();
    }
    assert_eq!(notes.iter_live(at(9, 0)).count(), MAX_NOTES);
    assert_eq!(notes.iter_live(at(10, 0)).count(), 0);
    assert_eq!(
        notes.upsert("k", NoteUpdate::with_value("v"), at(10, 0)),
        Ok(EditResult::Created)
    );
    assert_eq!(
        notes.get("7"),
        None,
        "a write removes what has expired, whoever writes"
    );
    let again = NoteUpdate::with_value("anew");
    assert_eq!(
        notes.upsert("7", again, at(10, 0)),
        Ok(EditResult::Created),
        "it had expired"
    );
    assert_eq!(notes.get("7").unwrap().expires, None);
    assert_eq!(notes.remove_expired(at(10, 0)), []);
    assert_eq!(keys(&notes, at(i64::MAX, u64::MAX)), ["7", "k"]);
}

#[test]
fn one_expiry_takes_the_place_of_another() {
    let mut notes = Notes::default();
    let ttl = |ttl| NoteUpdate {
        ttl: Some(ttl),
        ..NoteUpdate::with_value("v")
    };
    let cases = [
        (NoteTtl::Responses(3), Some(Expiry::AtResponse(8))),
        (NoteTtl::Ms(50), Some(Expiry::AtMs(150))),
        (NoteTtl::Responses(1), Some(Expiry::AtResponse(6))),
        (NoteTtl::Never, None),
        (NoteTtl::Ms(u64::MAX), Some(Expiry::AtMs(i64::MAX))),
        (
            NoteTtl::Responses(u64::MAX),
            Some(Expiry::AtResponse(u64::MAX)),
        ),
    ];
    for (given, expected) in cases {
        notes.upsert("k", ttl(given), at(100, 5)).unwrap();
        assert_eq!(notes.get("k").unwrap().expires, expected);
    }
}

proptest! {
    /// A note that lives for n answers is shown in exactly n calls.
    #[test]
    fn n_answers_are_n_calls(n in 0_u64..20, start in 0_u64..1000) {
        let mut notes = Notes::default();
        let edit = NoteUpdate { ttl: Some(NoteTtl::Responses(n)), ..NoteUpdate::with_value("v") };
        notes.upsert("k", edit, at(0, start)).unwrap();
        let shown = (start..start + 40).filter(|r| notes.iter_live(at(0, *r)).count() == 1);
        prop_assert_eq!(shown.count() as u64, n);
    }

    /// Whatever is written, what is stored reads back the same.
    #[test]
    fn notes_survive_their_bytes(
        edits in prop::collection::vec((".{1,8}", any::<String>(), prop::option::of(0_u64..9)), 0..20),
    ) {
        let mut notes = Notes::default();
        for (key, value, ttl) in edits {
            let edit = NoteUpdate { ttl: ttl.map(NoteTtl::Responses), ..NoteUpdate::with_value(value) };
            let _ = notes.upsert(&key, edit, at(0, 0));
        }
        let bytes = serde_json::to_vec(&notes).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Notes>(&bytes).unwrap(), notes);
    }
}
