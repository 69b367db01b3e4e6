//! The notes of a memory: written, counted, bounded, expired.

use contexture_layers::builtin::memory::{
    Done, Edit, Expiry, MAX_DESCRIPTION_BYTES, MAX_KEY_BYTES, MAX_NOTES, MAX_TOTAL_BYTES,
    MAX_VALUE_BYTES, Moment, NoteError, Notes, Ttl,
};
use proptest::prelude::*;

const fn at(now_ms: i64, responses: u64) -> Moment {
    Moment { now_ms, responses }
}

fn keys(notes: &Notes, at: Moment) -> Vec<String> {
    notes.iter(at).map(|(key, _)| key.to_owned()).collect()
}

#[test]
fn a_note_keeps_what_an_edit_does_not_name() {
    let mut notes = Notes::default();
    let first = Edit {
        description: Some("about".to_owned()),
        importance: Some(7),
        ..Edit::value("one")
    };
    assert_eq!(notes.set("k", first.clone(), at(10, 0)), Ok(Done::Created));
    assert_eq!(notes.set("k", first, at(15, 0)), Ok(Done::Unchanged));
    assert_eq!(
        notes.set("k", Edit::value("two"), at(20, 0)),
        Ok(Done::Updated)
    );
    let note = notes.get("k").unwrap();
    assert_eq!(note.value, "two");
    assert_eq!(note.description.as_deref(), Some("about"));
    assert_eq!(note.importance, Some(7));
    assert_eq!(
        (note.created_ms, note.updated_ms, note.updates),
        (10, 20, 2)
    );
    let without = Edit {
        description: Some(String::new()),
        ..Edit::default()
    };
    assert_eq!(notes.set("k", without, at(30, 0)), Ok(Done::Updated));
    assert_eq!(notes.get("k").unwrap().description, None);
    let json = serde_json::to_string(&notes).unwrap();
    let expected = r#"{"notes":{"k":{"value":"two","created_ms":10,"updated_ms":30,"updates":3,"importance":7}}}"#;
    assert_eq!(json, expected);
}

#[test]
fn each_limit_has_an_error_that_names_it() {
    let fill = |count: usize, bytes: usize| {
        let mut notes = Notes::default();
        for n in 0..count {
            let value = "v".repeat(bytes);
            notes
                .set(&format!("{n:04}"), Edit::value(value), at(0, 0))
                .unwrap();
        }
        notes
    };
    let long = |bytes: usize| "x".repeat(bytes);
    let described = |bytes| Edit {
        description: Some(long(bytes)),
        ..Edit::value("v")
    };
    let too_long = |what, limit: usize| NoteError::TooLong {
        what,
        bytes: limit + 1,
        limit,
    };
    let mut notes = Notes::default();
    for (key, edit) in [
        (long(MAX_KEY_BYTES), Edit::value("v")),
        ("v".to_owned(), Edit::value(long(MAX_VALUE_BYTES))),
        ("d".to_owned(), described(MAX_DESCRIPTION_BYTES)),
    ] {
        assert_eq!(notes.set(&key, edit, at(0, 0)), Ok(Done::Created));
    }
    let before = notes.clone();
    for (key, edit, error) in [
        (String::new(), Edit::value("v"), NoteError::EmptyKey),
        (
            long(MAX_KEY_BYTES + 1),
            Edit::value("v"),
            too_long("key", MAX_KEY_BYTES),
        ),
        (
            "é".repeat(65),
            Edit::value("v"),
            NoteError::TooLong {
                what: "key",
                bytes: 130,
                limit: 128,
            },
        ),
        (
            "k".to_owned(),
            Edit::value(long(MAX_VALUE_BYTES + 1)),
            too_long("value", MAX_VALUE_BYTES),
        ),
        (
            "k".to_owned(),
            described(MAX_DESCRIPTION_BYTES + 1),
            too_long("description", MAX_DESCRIPTION_BYTES),
        ),
        (
            "k".to_owned(),
            Edit::default(),
            NoteError::NoNote {
                key: "k".to_owned(),
            },
        ),
    ] {
        assert_eq!(notes.set(&key, edit, at(0, 0)), Err(error));
        assert_eq!(notes, before);
    }

    let mut many = fill(MAX_NOTES, 1);
    let refused = many
        .set("one more", Edit::value("v"), at(0, 0))
        .unwrap_err();
    assert_eq!(refused, NoteError::TooMany { limit: MAX_NOTES });
    assert_eq!(
        many.set("0000", Edit::value("w"), at(0, 0)),
        Ok(Done::Updated)
    );
    many.delete("0001");
    assert_eq!(
        many.set("one more", Edit::value("v"), at(0, 0)),
        Ok(Done::Created)
    );

    let asked = |importance| Edit {
        importance: Some(importance),
        ..Edit::default()
    };
    let refused = NoteError::TooImportant {
        importance: 101,
        limit: 100,
    };
    assert_eq!(many.set("0000", asked(101), at(0, 0)), Err(refused));
    assert_eq!(many.set("0000", asked(100), at(0, 0)), Ok(Done::Updated));

    let each = MAX_VALUE_BYTES - 4;
    let mut full = fill(MAX_TOTAL_BYTES / MAX_VALUE_BYTES, each);
    let refused = full.set("k", Edit::value(""), at(0, 0)).unwrap_err();
    let bytes = MAX_TOTAL_BYTES + 1;
    assert_eq!(
        refused,
        NoteError::Full {
            bytes,
            limit: MAX_TOTAL_BYTES
        }
    );
    assert_eq!(
        full.set("0000", Edit::value("short"), at(0, 0)),
        Ok(Done::Updated)
    );
}

#[test]
fn what_has_expired_is_gone_and_takes_no_room() {
    let mut notes = Notes::default();
    for n in 0..MAX_NOTES {
        let edit = Edit {
            ttl: Some(Ttl::Ms(10)),
            ..Edit::value("v")
        };
        notes.set(&n.to_string(), edit, at(0, 0)).unwrap();
    }
    assert_eq!(notes.iter(at(9, 0)).count(), MAX_NOTES);
    assert_eq!(notes.iter(at(10, 0)).count(), 0);
    assert_eq!(
        notes.set("k", Edit::value("v"), at(10, 0)),
        Ok(Done::Created)
    );
    assert_eq!(
        notes.get("7"),
        None,
        "a write removes what has expired, whoever writes"
    );
    let again = Edit::value("anew");
    assert_eq!(
        notes.set("7", again, at(10, 0)),
        Ok(Done::Created),
        "it had expired"
    );
    assert_eq!(notes.get("7").unwrap().expires, None);
    assert_eq!(notes.expire(at(10, 0)), []);
    assert_eq!(keys(&notes, at(i64::MAX, u64::MAX)), ["7", "k"]);
}

#[test]
fn one_expiry_takes_the_place_of_another() {
    let mut notes = Notes::default();
    let ttl = |ttl| Edit {
        ttl: Some(ttl),
        ..Edit::value("v")
    };
    let cases = [
        (Ttl::Responses(3), Some(Expiry::AtResponse(8))),
        (Ttl::Ms(50), Some(Expiry::AtMs(150))),
        (Ttl::Responses(1), Some(Expiry::AtResponse(6))),
        (Ttl::Never, None),
        (Ttl::Ms(u64::MAX), Some(Expiry::AtMs(i64::MAX))),
        (Ttl::Responses(u64::MAX), Some(Expiry::AtResponse(u64::MAX))),
    ];
    for (given, expected) in cases {
        notes.set("k", ttl(given), at(100, 5)).unwrap();
        assert_eq!(notes.get("k").unwrap().expires, expected);
    }
}

proptest! {
    /// A note that lives for n answers is shown in exactly n calls.
    #[test]
    fn n_answers_are_n_calls(n in 0_u64..20, start in 0_u64..1000) {
        let mut notes = Notes::default();
        let edit = Edit { ttl: Some(Ttl::Responses(n)), ..Edit::value("v") };
        notes.set("k", edit, at(0, start)).unwrap();
        let shown = (start..start + 40).filter(|r| notes.iter(at(0, *r)).count() == 1);
        prop_assert_eq!(shown.count() as u64, n);
    }

    /// Whatever is written, what is stored reads back the same.
    #[test]
    fn notes_survive_their_bytes(
        edits in prop::collection::vec((".{1,8}", any::<String>(), prop::option::of(0_u64..9)), 0..20),
    ) {
        let mut notes = Notes::default();
        for (key, value, ttl) in edits {
            let edit = Edit { ttl: ttl.map(Ttl::Responses), ..Edit::value(value) };
            let _ = notes.set(&key, edit, at(0, 0));
        }
        let bytes = serde_json::to_vec(&notes).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Notes>(&bytes).unwrap(), notes);
    }
}
