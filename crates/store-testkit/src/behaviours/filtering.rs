//! Conversations by title, time and metadata.

use std::sync::Arc;

use contexture_ir::{ConversationId, Owner, Raw};
use contexture_store::{
    Comparison, ConversationCursor, ConversationUpdate, Error, ListConversations, MetadataChange,
    MetadataFilter, MetadataKey, MetadataValue, NewConversation, Store,
};
use futures_util::future::try_join_all;

use crate::chat::NOW;

type Tested = Arc<dyn Store>;

/// A conversation to create: id, title, metadata.
type ConversationSpec = (
    &'static str,
    Option<&'static str>,
    &'static [(&'static str, &'static str)],
);

const ALL: [ConversationSpec; 7] = [
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

/// Creates them, one per millisecond, the last one latest.
async fn create_conversations(store: &Tested) -> Owner {
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

/// Returns the ids of a list in its order, and checks that the page size does not matter.
async fn listed_ids(store: &Tested, owner: &Owner, list: &ListConversations) -> String {
    let mut found = Vec::new();
    for limit in [100, 1, 2] {
        let mut ids = String::new();
        let mut list = ListConversations {
            limit: Some(limit),
            ..list.clone()
        };
        loop {
            let page = store.list_conversations(owner, list.clone()).await.unwrap();
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
    let owner = create_conversations(&store).await;
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
        assert_eq!(listed_ids(&store, &owner, &list).await, ids, "{text:?}");
    }
}

pub(super) async fn times_bound_the_list(store: Tested) {
    let owner = create_conversations(&store).await;
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
        let found = listed_ids(&store, &owner, &list).await;
        assert_eq!(found, ids, "{since:?} {before:?}");
    }
}

fn compare_field(key: &str, by: Comparison, value: impl Into<MetadataValue>) -> MetadataFilter {
    MetadataFilter::Compare {
        key: MetadataKey::new(key).unwrap(),
        by,
        value: value.into(),
    }
}

fn has_field(key: &str) -> MetadataFilter {
    MetadataFilter::Has(MetadataKey::new(key).unwrap())
}

fn negate(filter: MetadataFilter) -> MetadataFilter {
    MetadataFilter::Not(Box::new(filter))
}

pub(super) async fn metadata_satisfies_a_filter(store: Tested) {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    let owner = create_conversations(&store).await;
    let check = async |filter: MetadataFilter, ids: &str| {
        let list = ListConversations {
            metadata: Some(filter.clone()),
            ..ListConversations::default()
        };
        assert_eq!(listed_ids(&store, &owner, &list).await, ids, "{filter:?}");
    };
    check(has_field("p"), "fdcba").await;
    check(negate(has_field("p")), "ge").await;
    check(has_field("never"), "").await;
    check(compare_field("p", Equal, "aurora"), "a").await;
    check(compare_field("p", LessOrEqual, "aurora"), "fa").await;
    check(compare_field("p", Less, "aurora"), "f").await;
    check(compare_field("p", Greater, "aurora"), "b").await;
    check(compare_field("p", Equal, MetadataValue::Null), "c").await;
    check(compare_field("p", LessOrEqual, MetadataValue::Null), "c").await;
    check(compare_field("p", Greater, MetadataValue::Null), "").await;
    check(compare_field("p.q", Equal, r#"it's "quoted""#), "e").await;
    check(compare_field("n", Equal, 3.0), "a").await;
    check(compare_field("n", Equal, "3"), "d").await;
    check(compare_field("n", Less, 0.0), "b").await;
    check(compare_field("n", GreaterOrEqual, 1e22), "f").await;
    check(compare_field("done", Equal, true), "c").await;
    check(compare_field("done", Less, true), "d").await;
    check(negate(compare_field("done", Equal, true)), "gfedba").await;
    let all = vec![
        has_field("p"),
        has_field("n"),
        negate(compare_field("n", Equal, 3.0)),
    ];
    check(MetadataFilter::All(all), "fdb").await;
    let any = vec![has_field("done"), compare_field("n", Greater, 2.0)];
    check(MetadataFilter::Any(any), "fdca").await;
    check(MetadataFilter::All(Vec::new()), "gfedcba").await;
    check(MetadataFilter::Any(Vec::new()), "").await;
    check(negate(MetadataFilter::Any(vec![])), "gfedcba").await;
    expect_conditions_together(&store, &owner).await;
}

/// A filter of metadata with conditions on title and time.
async fn expect_conditions_together(store: &Tested, owner: &Owner) {
    let all = ListConversations {
        title: Some("plans".to_owned()),
        metadata: Some(compare_field("n", Comparison::Less, 10.0)),
        updated_since: Some(NOW + 1),
        ..ListConversations::default()
    };
    assert_eq!(listed_ids(store, owner, &all).await, "b");
}

/// Filters follow every change of metadata, and an invalid filter is an error.
pub(super) async fn filters_follow_changes(store: Tested) {
    let owner = create_conversations(&store).await;
    let id = ConversationId::new("a").unwrap();
    let list = |filter| ListConversations {
        metadata: Some(filter),
        ..ListConversations::default()
    };
    let update = async |metadata| {
        let update = ConversationUpdate {
            metadata,
            ..ConversationUpdate::new(NOW)
        };
        let updated = store.update_conversation(&owner, &id, update).await;
        updated.unwrap();
    };
    let seven = Raw::parse("7").unwrap();
    update(MetadataChange::Merge(
        [("n".to_owned(), Some(seven)), ("p".to_owned(), None)].into(),
    ))
    .await;
    let n = |value: f64| list(compare_field("n", Comparison::Equal, value));
    assert_eq!(listed_ids(&store, &owner, &n(3.0)).await, "");
    assert_eq!(listed_ids(&store, &owner, &n(7.0)).await, "a");
    assert_eq!(
        listed_ids(&store, &owner, &list(has_field("p"))).await,
        "fdcb"
    );
    update(MetadataChange::Replace(Default::default())).await;
    assert_eq!(listed_ids(&store, &owner, &n(7.0)).await, "");
    store.delete_conversation(&owner, &id).await.unwrap();
    assert_eq!(
        listed_ids(&store, &owner, &list(negate(has_field("p")))).await,
        "ge"
    );
    expect_refused_filters(&store, &owner).await;
}

async fn expect_refused_filters(store: &Tested, owner: &Owner) {
    let list = |filter| ListConversations {
        metadata: Some(filter),
        ..ListConversations::default()
    };
    let deep = (0..20).fold(has_field("p"), |filter, _| negate(filter));
    let wide = MetadataFilter::All(vec![has_field("p"); 100]);
    for (filter, limit) in [(deep, "filter_depth"), (wide, "filter_conditions")] {
        let refused = store.list_conversations(owner, list(filter)).await;
        match refused.unwrap_err() {
            Error::Limit { limit: named, .. } => assert_eq!(named, limit),
            other => panic!("{other}"),
        }
    }
    for value in [MetadataValue::Number(f64::NAN), MetadataValue::from("\0")] {
        let refused =
            store.list_conversations(owner, list(compare_field("p", Comparison::Equal, value)));
        assert_eq!(refused.await.unwrap_err().kind(), "invalid");
    }
}

/// Where no index knows a condition, a page ends after so many conversations, says so, and is continued.
pub(super) async fn a_page_looks_at_so_many_and_says_so(store: Tested) {
    let owner = Owner::new("ada").unwrap();
    let scan = store.limits().list_scan;
    // Two have no mark: the oldest, and one that the second page looks at.
    create_marked(&store, &owner, 2 * scan + scan / 2, &[0, scan]).await;
    let has = MetadataFilter::Has(MetadataKey::new("mark").unwrap());
    let mut list = ListConversations {
        metadata: Some(MetadataFilter::Not(Box::new(has))),
        ..ListConversations::default()
    };
    for (found, is_last) in [(None, false), (Some(scan), false), (Some(0), true)] {
        let page = store
            .list_conversations(&owner, list.clone())
            .await
            .unwrap();
        let ids: Vec<_> = page.conversations.into_iter().map(|one| one.id).collect();
        assert_eq!(ids, found.map(numbered_id).into_iter().collect::<Vec<_>>());
        assert_eq!((page.complete, page.next.is_none()), (is_last, is_last));
        list.after = page.next;
    }
    // A page that is full is complete, and what has no condition looks at no more than it shows.
    list.metadata = list.metadata.map(|not| MetadataFilter::Not(Box::new(not)));
    for metadata in [list.metadata.clone(), None] {
        let limit = Some(5);
        let list = ListConversations {
            metadata,
            limit,
            ..ListConversations::default()
        };
        let page = store.list_conversations(&owner, list).await.unwrap();
        assert_eq!((page.conversations.len(), page.complete), (5, true));
        assert_eq!(
            page.next,
            ConversationCursor::after_last(&page.conversations)
        );
    }
}

fn numbered_id(n: usize) -> ConversationId {
    ConversationId::new(format!("c{n:05}")).unwrap()
}

/// Creates conversations, the last one latest, all but some with a field.
async fn create_marked(store: &Tested, owner: &Owner, count: usize, unmarked: &[usize]) {
    let create = |n: usize| {
        let at_ms = NOW + i64::try_from(n / 3).unwrap();
        let mut new = NewConversation::new(numbered_id(n), at_ms);
        if !unmarked.contains(&n) {
            new.metadata.insert("mark".to_owned(), Raw::null());
        }
        store.create_conversation(owner, new)
    };
    for some in Vec::from_iter(0..count).chunks(500) {
        try_join_all(some.iter().map(|n| create(*n))).await.unwrap();
    }
}
