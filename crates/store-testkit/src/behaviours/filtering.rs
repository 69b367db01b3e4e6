//! Conversations by title, time and metadata.

use std::sync::Arc;

use contexture_ir::{ConversationId, Owner, Raw};
use contexture_store::{
    Comparison, ConversationUpdate, Error, ListConversations, MetadataChange, MetadataFilter,
    MetadataKey, MetadataValue, NewConversation, Store,
};

use crate::chat::NOW;

type Tested = Arc<dyn Store>;

/// An id, a title, metadata.
type Made = (
    &'static str,
    Option<&'static str>,
    &'static [(&'static str, &'static str)],
);

const ALL: [Made; 7] = [
    (
        "a",
        Some("Plans for Zürich"),
        &[("p", r#""aurora""#), ("n", "3")],
    ),
    (
        "b",
        Some("plans for paris"),
        &[("p", r#""borealis""#), ("n", "-4.5e0")],
    ),
    ("c", Some("100% _done_"), &[("p", "null"), ("done", "true")]),
    (
        "d",
        None,
        &[("p", "[1]"), ("done", "false"), ("n", r#""3""#)],
    ),
    (
        "e",
        Some("'; DROP TABLE conversations; --"),
        &[("p.q", r#""it's \"quoted\"""#)],
    ),
    (
        "f",
        Some("ΣΊΣΥΦΟΣ"),
        &[("n", "12345678901234567890123"), ("p", r#""Aurora""#)],
    ),
    ("g", Some(""), &[]),
];

/// Makes them, one a millisecond: the last is the latest.
async fn make(store: &Tested) -> Owner {
    let owner = Owner::new("ada").unwrap();
    for (n, (id, title, metadata)) in ALL.into_iter().enumerate() {
        let fields = metadata.iter().map(|(key, value)| {
            let value = Raw::parse(*value).unwrap();
            (String::from(*key), value)
        });
        let new = NewConversation {
            title: title.map(str::to_owned),
            metadata: fields.collect(),
            ..NewConversation::new(ConversationId::new(id).unwrap(), NOW + n as i64)
        };
        store.create_conversation(&owner, new).await.unwrap();
    }
    owner
}

/// The ids that a list shows, in its order, whatever the size of its pages.
async fn listed(store: &Tested, owner: &Owner, list: &ListConversations) -> String {
    let mut found = Vec::new();
    for limit in [100, 1, 2] {
        let mut ids = String::new();
        let mut list = ListConversations {
            limit: Some(limit),
            ..list.clone()
        };
        loop {
            let page = store.conversations(owner, list.clone()).await.unwrap();
            assert!(page.conversations.len() <= limit);
            ids.extend(page.conversations.iter().map(|one| one.id.as_str()));
            list.after = page.next;
            if list.after.is_none() {
                break;
            }
        }
        found.push(ids);
    }
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0], found[2]);
    found.swap_remove(0)
}

pub(super) async fn titles_contain_a_text(store: Tested) {
    let owner = make(&store).await;
    for (text, ids) in [
        ("plans", "ba"),
        ("ZÜRICH", "a"),
        ("%", "c"),
        ("_", "c"),
        ("_d", "c"),
        ("0%", "c"),
        ("';", "e"),
        ("drop table", "e"),
        ("\\", ""),
        ("*", ""),
        ("σίσυφ", "f"),
        ("", "gfecba"),
    ] {
        let list = ListConversations {
            title: Some(text.to_owned()),
            ..ListConversations::default()
        };
        assert_eq!(listed(&store, &owner, &list).await, ids, "{text:?}");
    }
}

pub(super) async fn times_bound_the_list(store: Tested) {
    let owner = make(&store).await;
    for (since, before, ids) in [
        (None, None, "gfedcba"),
        (Some(NOW + 2), None, "gfedc"),
        (None, Some(NOW + 2), "ba"),
        (Some(NOW + 2), Some(NOW + 4), "dc"),
        (Some(NOW + 4), Some(NOW + 2), ""),
        (Some(i64::MIN), Some(i64::MAX), "gfedcba"),
        (Some(i64::MAX), Some(i64::MIN), ""),
    ] {
        let list = ListConversations {
            updated_since: since,
            updated_before: before,
            ..ListConversations::default()
        };
        let found = listed(&store, &owner, &list).await;
        assert_eq!(found, ids, "{since:?} {before:?}");
    }
}

fn compare(key: &str, by: Comparison, value: impl Into<MetadataValue>) -> MetadataFilter {
    MetadataFilter::Compare {
        key: MetadataKey::new(key).unwrap(),
        by,
        value: value.into(),
    }
}

fn has(key: &str) -> MetadataFilter {
    MetadataFilter::Has(MetadataKey::new(key).unwrap())
}

fn not(filter: MetadataFilter) -> MetadataFilter {
    MetadataFilter::Not(Box::new(filter))
}

pub(super) async fn metadata_satisfies_a_filter(store: Tested) {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    let owner = make(&store).await;
    let check = async |filter: MetadataFilter, ids: &str| {
        let list = ListConversations {
            metadata: Some(filter.clone()),
            ..ListConversations::default()
        };
        assert_eq!(listed(&store, &owner, &list).await, ids, "{filter:?}");
    };
    check(has("p"), "fdcba").await;
    check(not(has("p")), "ge").await;
    check(has("never"), "").await;
    check(compare("p", Equal, "aurora"), "a").await;
    check(compare("p", LessOrEqual, "aurora"), "fa").await;
    check(compare("p", Less, "aurora"), "f").await;
    check(compare("p", Greater, "aurora"), "b").await;
    check(compare("p", Equal, MetadataValue::Null), "c").await;
    check(compare("p", LessOrEqual, MetadataValue::Null), "c").await;
    check(compare("p", Greater, MetadataValue::Null), "").await;
    check(compare("p.q", Equal, r#"it's "quoted""#), "e").await;
    check(compare("n", Equal, 3.0), "a").await;
    check(compare("n", Equal, "3"), "d").await;
    check(compare("n", Less, 0.0), "b").await;
    check(compare("n", GreaterOrEqual, 1e22), "f").await;
    check(compare("done", Equal, true), "c").await;
    check(compare("done", Less, true), "d").await;
    check(not(compare("done", Equal, true)), "gfedba").await;
    check(
        MetadataFilter::All(vec![has("p"), has("n"), not(compare("n", Equal, 3.0))]),
        "fdb",
    )
    .await;
    check(
        MetadataFilter::Any(vec![has("done"), compare("n", Greater, 2.0)]),
        "fdca",
    )
    .await;
    check(MetadataFilter::All(Vec::new()), "gfedcba").await;
    check(MetadataFilter::Any(Vec::new()), "").await;
    check(not(MetadataFilter::Any(vec![])), "gfedcba").await;
    let all = ListConversations {
        title: Some("plans".to_owned()),
        metadata: Some(compare("n", Less, 10.0)),
        updated_since: Some(NOW + 1),
        ..ListConversations::default()
    };
    assert_eq!(listed(&store, &owner, &all).await, "b");
}

/// Filters follow every change of metadata, and what is no filter is an error.
pub(super) async fn filters_follow_changes(store: Tested) {
    let owner = make(&store).await;
    let id = ConversationId::new("a").unwrap();
    let list = |filter| ListConversations {
        metadata: Some(filter),
        ..ListConversations::default()
    };
    let update = async |metadata| {
        let update = ConversationUpdate {
            metadata,
            ..ConversationUpdate::at(NOW)
        };
        let updated = store.update_conversation(&owner, &id, update).await;
        updated.unwrap();
    };
    let seven = Raw::parse("7").unwrap();
    update(MetadataChange::Merge(
        [("n".to_owned(), Some(seven)), ("p".to_owned(), None)].into(),
    ))
    .await;
    let n = |value: f64| list(compare("n", Comparison::Equal, value));
    assert_eq!(listed(&store, &owner, &n(3.0)).await, "");
    assert_eq!(listed(&store, &owner, &n(7.0)).await, "a");
    assert_eq!(listed(&store, &owner, &list(has("p"))).await, "fdcb");
    update(MetadataChange::Replace(Default::default())).await;
    assert_eq!(listed(&store, &owner, &n(7.0)).await, "");
    store.delete_conversation(&owner, &id).await.unwrap();
    assert_eq!(listed(&store, &owner, &list(not(has("p")))).await, "ge");

    let deep = (0..20).fold(has("p"), |filter, _| not(filter));
    let wide = MetadataFilter::All(vec![has("p"); 100]);
    for (filter, limit) in [(deep, "filter_depth"), (wide, "filter_conditions")] {
        let refused = store.conversations(&owner, list(filter)).await;
        match refused.unwrap_err() {
            Error::Limit { limit: named, .. } => assert_eq!(named, limit),
            other => panic!("{other}"),
        }
    }
    for value in [MetadataValue::Number(f64::NAN), MetadataValue::from("\0")] {
        let refused = store.conversations(&owner, list(compare("p", Comparison::Equal, value)));
        assert_eq!(refused.await.unwrap_err().kind(), "invalid");
    }
}
