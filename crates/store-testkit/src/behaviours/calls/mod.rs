//! The record of calls: rows, their sums before and after they are rolled up, and what is left of them.

mod bodies;

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_ir::{CallId, ContentHash, ConversationId, Owner, ResponseId};
use contexture_store::{
    AppendRequest, CALL_HOUR_MS, CacheTokens, CallDetails, CallFilter, CallGroup, CallGrouping,
    CallNames, CallOrder, CallOutcome, CallPrediction, CallRecord, CallRetention, CallSum,
    CallTokens, Calls, EraseScope, Error, ListCalls, NewConversation, Store, SumCalls, SweepCalls,
    erase_all, sweep_calls, verify_calls,
};

pub(super) use bodies::{
    bodies_are_read_alone_and_removed_in_time, bodies_go_with_what_is_redacted_or_deleted,
};

use super::limits::expect_limit;
use crate::chat::{Chat, NOW, item};
use crate::faulty::until_done;

type Tested = Arc<dyn Store>;

/// Begin of the hour of the first call.
const START: i64 = NOW - NOW % CALL_HOUR_MS;
/// Calls of the test's record, 25 minutes apart.
const COUNT: u64 = 60;
const APART: i64 = CALL_HOUR_MS * 25 / 60;

fn call_id(number: u64) -> CallId {
    let mut random = [0; 10];
    random[2..].copy_from_slice(&number.to_be_bytes());
    CallId::from_time(START + number as i64 * APART, random)
}

/// One of these words, by the number of a call.
fn pick(number: u64, words: &[&str]) -> String {
    words[number as usize % words.len()].to_owned()
}

/// A prediction whose every member depends on the number of its call.
fn numbered_prediction(number: u64) -> CallPrediction {
    let is_priced = !number.is_multiple_of(3);
    CallPrediction {
        sent: CacheTokens {
            read: number * 3,
            written: number % 4,
            fresh: 7,
        },
        passed: CacheTokens {
            fresh: number * 5,
            ..CacheTokens::default()
        },
        // Some models have no known price.
        sent_pico_dollars: is_priced.then_some(number * 1_000_003),
        passed_pico_dollars: is_priced.then_some(number * 2_000_005),
    }
}

/// Details whose every member depends on the number of their call.
fn numbered_details(number: u64) -> CallDetails {
    let not_each = |of: u64| !number.is_multiple_of(of);
    CallDetails {
        format: pick(number, &["openai-chat", "anthropic"]),
        duration_ms: number * 11,
        first_byte_ms: not_each(3).then_some(number),
        status: not_each(5).then_some(200),
        finish: not_each(4).then(|| "stop".to_owned()),
        refusal: (!not_each(19)).then(|| "spend_limit".to_owned()),
        tokens: not_each(7).then_some(CallTokens {
            input: number * 100,
            cache_read: number * 10,
            cache_written: number,
            output: 13,
        }),
        pico_dollars: (number % 7 > 1).then_some(number * 900_000_000_001),
        prediction: not_each(2).then(|| numbered_prediction(number)),
        attempts: 1 + number as u32 % 2,
        is_rewritten: not_each(2),
        is_estimated: !not_each(11),
        is_damaged: !not_each(13),
        is_own: !not_each(17),
    }
}

/// A call whose every member depends on its number, of one of these conversations or of none.
fn numbered_call(number: u64, conversations: &[ConversationId]) -> CallRecord {
    let not_each = |of: u64| !number.is_multiple_of(of);
    let conversation = number as usize % (conversations.len() + 1);
    let seed = number.to_be_bytes();
    CallRecord {
        outcome: CallOutcome::ALL[number as usize % CallOutcome::ALL.len()],
        names: CallNames {
            upstream: pick(number, &["openai", "anthropic", "local"]),
            model: pick(number, &["gpt-5", "claude", "", "é' OR 1=1 --"]),
            key: pick(number, &["", "ci"]),
            policy: pick(number, &["", "small", "small", "large", ""]),
        },
        conversation: conversations.get(conversation).cloned(),
        response: not_each(3).then(|| ResponseId::derive("testkit", &[&seed])),
        body_hash: not_each(4).then(|| ContentHash::of(&seed)),
        details: numbered_details(number),
        band: not_each(5).then(|| Arc::from(seed)),
        ..CallRecord::new(call_id(number), "")
    }
}

fn record_of(store: &Tested) -> Option<&dyn Calls> {
    store.calls()
}

/// Two conversations with the calls of the test's record.
async fn fill(store: &Tested, owner: &str) -> Option<(Owner, Vec<CallRecord>)> {
    let calls = record_of(store)?;
    let mut ids = Vec::new();
    for id in ["one", "two"] {
        ids.push(Chat::start_as(Arc::clone(store), owner, id).await.id);
    }
    let owner = Owner::new(owner).unwrap();
    let all: Vec<CallRecord> = (0..COUNT).map(|n| numbered_call(n, &ids)).collect();
    // In no order, and in more than one batch.
    let (even, odd): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|call| {
        call.id
            .as_bytes()
            .last()
            .is_some_and(|last| last.is_multiple_of(2))
    });
    calls.record_calls(&owner, odd).await.unwrap();
    calls.record_calls(&owner, even).await.unwrap();
    Some((owner, all))
}

fn accepts(filter: &CallFilter, call: &CallRecord) -> bool {
    let at = call.id.time_ms();
    filter.since_ms.is_none_or(|since| at >= since)
        && filter.until_ms.is_none_or(|until| at < until)
        && filter
            .conversation
            .as_ref()
            .is_none_or(|id| call.conversation.as_ref() == Some(id))
        && filter
            .upstream
            .as_ref()
            .is_none_or(|name| *name == call.names.upstream)
        && filter
            .model
            .as_ref()
            .is_none_or(|name| *name == call.names.model)
        && filter
            .key
            .as_ref()
            .is_none_or(|name| *name == call.names.key)
        && filter
            .policy
            .as_ref()
            .is_none_or(|name| *name == call.names.policy)
        && filter.outcome.is_none_or(|outcome| outcome == call.outcome)
}

/// Filters of every kind, whose times are whole hours.
fn filters() -> Vec<CallFilter> {
    let between = |since_ms, until_ms| CallFilter {
        since_ms,
        until_ms,
        ..CallFilter::default()
    };
    let (early, late) = (START + 3 * CALL_HOUR_MS, START + 17 * CALL_HOUR_MS);
    let mut all = vec![
        between(None, None),
        between(Some(early), None),
        between(None, Some(late)),
        between(Some(early), Some(late)),
        between(Some(late), Some(early)),
        CallFilter {
            outcome: Some(CallOutcome::Refused),
            ..CallFilter::default()
        },
    ];
    let none = "-";
    for [conversation, upstream, model, key, policy] in [
        [none, "openai", none, none, none],
        [none, none, "é' OR 1=1 --", none, none],
        [none, none, "", none, none],
        [none, none, none, "ci", "small"],
        ["one", none, none, none, none],
        ["none", none, none, none, none],
        ["one", none, none, "ci", none],
        ["two", none, none, none, ""],
    ] {
        let name = |word: &str| (word != none).then(|| word.to_owned());
        all.push(CallFilter {
            conversation: name(conversation).map(|id| ConversationId::new(id).unwrap()),
            upstream: name(upstream),
            model: name(model),
            key: name(key),
            policy: name(policy),
            ..between(Some(early), None)
        });
    }
    all
}

/// Each grouping alone, none, two and all.
fn groupings() -> Vec<Vec<CallGrouping>> {
    let mut all: Vec<Vec<CallGrouping>> = CallGrouping::ALL.map(|by| vec![by]).into();
    all.push(Vec::new());
    all.push(vec![CallGrouping::Model, CallGrouping::Day]);
    all.push(CallGrouping::ALL.into());
    all
}

/// The group of a call.
fn group_of(call: &CallRecord, by: &[CallGrouping]) -> CallGroup {
    let is_by = |one: CallGrouping| by.contains(&one);
    let name = |one, name: &str| is_by(one).then(|| name.to_owned());
    let day = call.id.time_ms() / (24 * CALL_HOUR_MS) * (24 * CALL_HOUR_MS);
    let conversation = call.conversation.as_ref().map(ToString::to_string);
    let conversation = conversation.unwrap_or_default();
    CallGroup {
        day_ms: is_by(CallGrouping::Day).then_some(day),
        upstream: name(CallGrouping::Upstream, &call.names.upstream),
        model: name(CallGrouping::Model, &call.names.model),
        key: name(CallGrouping::Key, &call.names.key),
        policy: name(CallGrouping::Policy, &call.names.policy),
        conversation: name(CallGrouping::Conversation, &conversation),
        outcome: is_by(CallGrouping::Outcome).then_some(call.outcome),
    }
}

/// The sums of some calls, added up one by one.
fn plain_sums(calls: &[CallRecord], sum: &SumCalls) -> Vec<(CallGroup, CallSum)> {
    let mut groups: BTreeMap<CallGroup, CallSum> = BTreeMap::new();
    for call in calls.iter().filter(|call| accepts(&sum.filter, call)) {
        let group = group_of(call, &sum.by);
        let sum = groups.entry(group).or_default();
        let tokens = call.details.tokens.unwrap_or_default();
        let predicted = call.details.prediction.unwrap_or_default();
        sum.calls += 1;
        sum.failed += u64::from(call.outcome.is_failure());
        sum.rewritten += u64::from(call.details.is_rewritten);
        sum.predicted += u64::from(call.details.prediction.is_some());
        sum.input_tokens += tokens.input;
        sum.cache_read_tokens += tokens.cache_read;
        sum.cache_written_tokens += tokens.cache_written;
        sum.output_tokens += tokens.output;
        sum.pico_dollars += u128::from(call.details.pico_dollars.unwrap_or(0));
        sum.predicted_read_tokens += predicted.sent.read;
        sum.sent_tokens += predicted.sent.total();
        sum.passed_tokens += predicted.passed.total();
        sum.sent_pico_dollars += u128::from(predicted.sent_pico_dollars.unwrap_or(0));
        sum.passed_pico_dollars += u128::from(predicted.passed_pico_dollars.unwrap_or(0));
    }
    groups.into_iter().collect()
}

/// Checks every sum of these calls, and that each sum of all has the calls of each owner once.
async fn expect_sums(calls: &dyn Calls, owner: &Owner, expected: &[CallRecord], when: &str) {
    for filter in filters() {
        for by in groupings() {
            let sum = SumCalls {
                filter: filter.clone(),
                by,
            };
            let found = calls.sum_calls(owner, sum.clone()).await.unwrap();
            assert_eq!(found, plain_sums(expected, &sum), "{when}: {sum:?}");
        }
    }
}

/// Checks what each conversation has, and one that is not there.
async fn expect_conversations(calls: &dyn Calls, owner: &Owner, all: &[CallRecord], rows: i64) {
    let ids = ["two", "none", "one"].map(|id| ConversationId::new(id).unwrap());
    let found = calls.sum_conversations(owner, &ids).await.unwrap();
    for (id, found) in ids.iter().zip(&found) {
        let own = |call: &&CallRecord| call.conversation.as_ref() == Some(id);
        let sum = SumCalls {
            filter: CallFilter {
                conversation: Some(id.clone()),
                ..CallFilter::default()
            },
            by: Vec::new(),
        };
        let expected = plain_sums(all, &sum).pop().unwrap_or_default().1;
        assert_eq!(found.sum, expected, "{id}");
        let kept = all
            .iter()
            .filter(own)
            .filter(|call| call.id.time_ms() >= rows);
        let newest = kept.filter(|call| !call.names.model.is_empty());
        let newest = newest.max_by_key(|call| call.id);
        let expected = newest.map(|call| call.names.model.clone());
        assert_eq!(found.last_model, expected, "{id}");
    }
}

async fn list_all_calls(calls: &dyn Calls, owner: &Owner, filter: CallFilter) -> Vec<CallRecord> {
    let list = ListCalls {
        filter,
        limit: Some(usize::MAX),
        ..ListCalls::default()
    };
    calls.list_calls(owner, list).await.unwrap().calls
}

/// Puts the calls of the first so many hours into roll-ups, and removes those of the first `removed` hours.
async fn sweep_hours(calls: &dyn Calls, owner: &Owner, rolled_up: i64, removed: i64) {
    let sweep = SweepCalls {
        roll_up_before_ms: START + rolled_up * CALL_HOUR_MS,
        remove_before_ms: START + removed * CALL_HOUR_MS,
        remove_bodies_before_ms: START,
    };
    while calls.sweep_calls(owner, sweep).await.unwrap().more {}
}

pub(super) async fn rows_equal_sums_before_and_after_roll_ups(store: Tested) {
    let Some((owner, all)) = fill(&store, "ada").await else {
        return;
    };
    let calls = record_of(&store).unwrap();
    expect_sums(calls, &owner, &all, "before").await;
    expect_conversations(calls, &owner, &all, 0).await;
    for hours in [1, 5, 100] {
        sweep_hours(calls, &owner, hours, 0).await;
        expect_sums(calls, &owner, &all, "while").await;
        expect_verified(calls, &owner, all.len() as u64).await;
        expect_conversations(calls, &owner, &all, 0).await;
        let rows = list_all_calls(calls, &owner, CallFilter::default()).await;
        assert_eq!(rows.len() as u64, COUNT, "roll-ups remove no row");
    }
    // A call that was long on its way comes when its hour is rolled up.
    let mut late = numbered_call(COUNT, &[]);
    late.id = CallId::from_time(START, [0xff; 10]);
    calls
        .record_calls(&owner, vec![late.clone()])
        .await
        .unwrap();
    let all: Vec<CallRecord> = all.into_iter().chain([late]).collect();
    expect_sums(calls, &owner, &all, "late").await;
    sweep_hours(calls, &owner, 100, 10).await;
    let rows = list_all_calls(calls, &owner, CallFilter::default()).await;
    let cut = START + 10 * CALL_HOUR_MS;
    let kept = all.iter().filter(|call| call.id.time_ms() >= cut).count();
    assert_eq!(rows.len(), kept, "the old rows are gone");
    assert!(kept > 0 && kept < all.len());
    expect_sums(calls, &owner, &all, "after").await;
    expect_conversations(calls, &owner, &all, cut).await;
    expect_verified(calls, &owner, kept as u64).await;
}

async fn expect_verified(calls: &dyn Calls, owner: &Owner, rows: u64) {
    let end = START + 1_000 * CALL_HOUR_MS;
    let verified = verify_calls(calls, owner, end).await.unwrap();
    assert_eq!((verified.checked, verified.findings), (rows, Vec::new()));
}

pub(super) async fn rows_stay_until_they_are_in_a_roll_up(store: Tested) {
    let Some((owner, all)) = fill(&store, "ada").await else {
        return;
    };
    let calls = record_of(&store).unwrap();
    sweep_hours(calls, &owner, 2, 100).await;
    let rows = list_all_calls(calls, &owner, CallFilter::default()).await;
    let open = all
        .iter()
        .filter(|call| call.id.time_ms() >= START + 2 * CALL_HOUR_MS);
    assert_eq!(rows.len(), open.count());
    expect_sums(calls, &owner, &all, "removed").await;
}

pub(super) async fn a_sweep_takes_bounded_steps(store: Tested) {
    let Some(calls) = record_of(&store) else {
        return;
    };
    let owner = Owner::new("ada").unwrap();
    let one = |n: u64| CallRecord {
        outcome: CallOutcome::Completed,
        ..numbered_call(n, &[])
    };
    let all: Vec<CallRecord> = (0..2500).map(one).collect();
    for batch in all.chunks(store.limits().call_batch) {
        calls.record_calls(&owner, batch.to_vec()).await.unwrap();
    }
    let now = START + 2500 * APART + CALL_HOUR_MS;
    let sweep = SweepCalls {
        roll_up_before_ms: now,
        remove_before_ms: now,
        remove_bodies_before_ms: now,
    };
    let first = calls.sweep_calls(&owner, sweep).await.unwrap();
    assert!(
        first.more && first.rolled_up < 2500 && first.removed < 2500,
        "{first:?}"
    );
    let day = 24 * CALL_HOUR_MS;
    let retention = CallRetention {
        calls_ms: 2 * day,
        bodies_ms: day,
    };
    let rest = sweep_calls(calls, now, retention).await.unwrap();
    assert_eq!(first.rolled_up + rest.rolled_up, 2500);
    let rows = list_all_calls(calls, &owner, CallFilter::default()).await;
    assert!(rows.iter().all(|call| call.id.time_ms() >= now - 2 * day));
    assert_eq!(first.removed + rest.removed + rows.len() as u64, 2500);
    let sum = calls.sum_calls(&owner, SumCalls::default()).await.unwrap();
    assert_eq!(sum, plain_sums(&all, &SumCalls::default()));
    assert_eq!(
        calls.list_call_owners(None, 10).await.unwrap(),
        std::slice::from_ref(&owner)
    );
    assert!(
        calls
            .list_call_owners(Some(&owner), 10)
            .await
            .unwrap()
            .is_empty()
    );
}

/// Lists calls page by page.
async fn list_in_pages(
    calls: &dyn Calls,
    owner: &Owner,
    filter: &CallFilter,
    order: CallOrder,
    limit: usize,
) -> Vec<CallRecord> {
    let mut found = Vec::new();
    let mut list = ListCalls {
        filter: filter.clone(),
        order,
        after: None,
        limit: Some(limit),
    };
    loop {
        let page = calls.list_calls(owner, list.clone()).await.unwrap();
        assert!(page.calls.len() <= limit);
        found.extend(page.calls);
        list.after = page.next;
        if list.after.is_none() {
            return found;
        }
    }
}

pub(super) async fn calls_are_listed_by_time_in_pages(store: Tested) {
    let Some((owner, mut all)) = fill(&store, "ada").await else {
        return;
    };
    let calls = record_of(&store).unwrap();
    all.reverse();
    for mut filter in filters() {
        // A list may begin and end at any time.
        filter.since_ms = filter.since_ms.map(|since| since + 1);
        let expected: Vec<CallRecord> = all
            .iter()
            .filter(|call| accepts(&filter, call))
            .cloned()
            .collect();
        for (limit, order) in [1, 7, 1000].into_iter().flat_map(|limit| {
            [CallOrder::NewestFirst, CallOrder::OldestFirst].map(|order| (limit, order))
        }) {
            let mut found = list_in_pages(calls, &owner, &filter, order, limit).await;
            if order == CallOrder::OldestFirst {
                found.reverse();
            }
            assert_eq!(found, expected, "{filter:?} by {limit}");
        }
    }
    for call in &all {
        let found = calls.load_call(&owner, call.id).await.unwrap();
        assert_eq!(found.as_ref(), Some(call));
    }
    let unknown = CallId::from_time(NOW, [3; 10]);
    assert_eq!(calls.load_call(&owner, unknown).await.unwrap(), None);
}

pub(super) async fn calls_come_with_their_answers(store: Tested) {
    let chat = Chat::start(store).await;
    let Some(calls) = chat.store.calls() else {
        return;
    };
    let own = [chat.id.clone()];
    let append = |word: &str, number: u64| AppendRequest {
        call: Some(Box::new(CallRecord {
            conversation: Some(chat.id.clone()),
            ..numbered_call(number, &own)
        })),
        ..AppendRequest::new(Chat::at_tip("main"), vec![item(word)], NOW)
    };
    let first = append("a", 1);
    chat.append_request(first.clone()).await.unwrap();
    let found = calls.load_call(&chat.owner, call_id(1)).await.unwrap();
    assert_eq!(found, first.call.as_deref().cloned());
    // The same answer to the same call, and to another one.
    for number in [1, 2] {
        assert!(
            chat.append_request(append("a", number))
                .await
                .unwrap()
                .replayed
        );
    }
    let refused = AppendRequest {
        at: Chat::at_head("main", None),
        ..append("b", 3)
    };
    let error = chat.append_request(refused).await.unwrap_err();
    assert!(matches!(error, Error::HeadMoved { .. }), "{error}");
    let mut stranger = append("c", 4);
    stranger.call = Some(Box::new(numbered_call(4, &[])));
    let error = chat.append_request(stranger).await.unwrap_err();
    assert!(
        matches!(error, Error::Invalid { what: "call", .. }),
        "{error}"
    );
    let rows = list_all_calls(calls, &chat.owner, CallFilter::default()).await;
    let ids: Vec<CallId> = rows.iter().map(|call| call.id).collect();
    assert_eq!(ids, [call_id(2), call_id(1)]);
}

pub(super) async fn a_repeated_call_changes_nothing(store: Tested) {
    let Some((owner, all)) = fill(&store, "ada").await else {
        return;
    };
    let calls = record_of(&store).unwrap();
    for hours in [0, 5, 100] {
        sweep_hours(calls, &owner, hours, 0).await;
        let changed = all.iter().map(|call| CallRecord {
            outcome: CallOutcome::Blocked,
            details: CallDetails::default(),
            ..call.clone()
        });
        calls.record_calls(&owner, changed.collect()).await.unwrap();
        expect_sums(calls, &owner, &all, "repeated").await;
    }
}

pub(super) async fn owners_are_isolated(store: Tested) {
    let Some((ada, adas)) = fill(&store, "ada").await else {
        return;
    };
    let calls = record_of(&store).unwrap();
    let bob = Owner::new("bob").unwrap();
    let nothing = async || {
        assert!(
            list_all_calls(calls, &bob, CallFilter::default())
                .await
                .is_empty()
        );
        let sum = calls.sum_calls(&bob, SumCalls::default()).await.unwrap();
        assert!(sum.is_empty());
        for call in &adas {
            assert_eq!(calls.load_call(&bob, call.id).await.unwrap(), None);
        }
    };
    nothing().await;
    sweep_hours(calls, &bob, 100, 100).await;
    expect_sums(calls, &ada, &adas, "a stranger's maintenance").await;
    sweep_hours(calls, &ada, 100, 0).await;
    nothing().await;
    // The same ids, and the name of a conversation that is another's.
    let theirs: Vec<CallRecord> = adas[..3].to_vec();
    calls.record_calls(&bob, theirs).await.unwrap();
    let rows = list_all_calls(calls, &bob, CallFilter::default()).await;
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|call| call.conversation.is_none()));
    erase_all(&*store, &bob, &EraseScope::Owner).await.unwrap();
    nothing().await;
    expect_sums(calls, &ada, &adas, "after a stranger was erased").await;
}

/// Calls as they are once these conversations are deleted.
fn without_conversations(calls: &[CallRecord], gone: &[&str]) -> Vec<CallRecord> {
    let forget = |call: &CallRecord| {
        let id = call.conversation.as_ref();
        match id.is_some_and(|id| gone.contains(&id.as_str())) {
            false => call.clone(),
            true => CallRecord {
                conversation: None,
                response: None,
                body_hash: None,
                band: None,
                ..call.clone()
            },
        }
    };
    calls.iter().map(forget).collect()
}

pub(super) async fn calls_outlive_their_conversation(store: Tested) {
    let Some((owner, all)) = fill(&store, "ada").await else {
        return;
    };
    let calls = record_of(&store).unwrap();
    sweep_hours(calls, &owner, 5, 0).await;
    let mut gone = Vec::new();
    for id in ["one", "two"] {
        gone.push(id);
        let conversation = ConversationId::new(id).unwrap();
        store
            .delete_conversation(&owner, &conversation)
            .await
            .unwrap();
        let mut expected = without_conversations(&all, &gone);
        expect_sums(calls, &owner, &expected, "deleted").await;
        // A conversation of the same name has none of them.
        let again = NewConversation::new(conversation, NOW);
        store.create_conversation(&owner, again).await.unwrap();
        expect_sums(calls, &owner, &expected, "created again").await;
        expected.reverse();
        let rows = list_all_calls(calls, &owner, CallFilter::default()).await;
        assert_eq!(rows, expected);
    }
    sweep_hours(calls, &owner, 100, 100).await;
    let expected = without_conversations(&all, &gone);
    expect_sums(calls, &owner, &expected, "rolled up").await;
}

pub(super) async fn a_late_call_names_no_deleted_conversation(store: Tested) {
    let chat = Chat::start(store).await;
    let Some(calls) = chat.store.calls() else {
        return;
    };
    let deleted = chat.store.delete_conversation(&chat.owner, &chat.id);
    deleted.await.unwrap();
    let late = numbered_call(0, std::slice::from_ref(&chat.id));
    assert!(late.conversation.is_some());
    calls.record_calls(&chat.owner, vec![late]).await.unwrap();
    let found = calls.load_call(&chat.owner, call_id(0)).await.unwrap();
    assert_eq!(found.unwrap().conversation, None);
}

pub(super) async fn erasing_an_owner_takes_its_calls(store: Tested) {
    let Some((owner, all)) = fill(&store, "ada").await else {
        return;
    };
    let calls = record_of(&store).unwrap();
    sweep_hours(calls, &owner, 5, 0).await;
    // A resource has no calls of its own.
    let resource = EraseScope::Resource("r".to_owned());
    erase_all(&*store, &owner, &resource).await.unwrap();
    expect_sums(calls, &owner, &all, "another resource erased").await;
    erase_all(&*store, &owner, &EraseScope::Owner)
        .await
        .unwrap();
    assert!(
        list_all_calls(calls, &owner, CallFilter::default())
            .await
            .is_empty()
    );
    let sum = calls.sum_calls(&owner, SumCalls::default()).await.unwrap();
    assert!(sum.is_empty());
    assert!(calls.list_call_owners(None, 10).await.unwrap().is_empty());
}

pub(super) async fn limits_of_calls_have_names(store: Tested) {
    let Some((owner, all)) = fill(&store, "ada").await else {
        return;
    };
    let calls = record_of(&store).unwrap();
    let limits = store.limits().clone();
    let record = async |change: &(dyn Fn(&mut CallRecord) + Sync)| {
        let mut call = numbered_call(COUNT, &[]);
        change(&mut call);
        calls.record_calls(&owner, vec![call]).await
    };
    let long = "x".repeat(256);
    expect_limit(
        record(&|call| call.names.model.clone_from(&long)).await,
        "call_name_bytes",
    );
    expect_limit(
        record(&|call| call.details.format.clone_from(&long)).await,
        "call_name_bytes",
    );
    let band: Arc<[u8]> = vec![0; limits.call_band_bytes + 1].into();
    expect_limit(
        record(&|call| call.band = Some(Arc::clone(&band))).await,
        "call_band_bytes",
    );
    let body: Arc<[u8]> = vec![0; limits.call_body_bytes + 1].into();
    expect_limit(
        record(&|call| call.body = Some(Arc::clone(&body))).await,
        "call_body_bytes",
    );
    let much = Some((1 << 53) + 1);
    expect_limit(
        record(&|call| call.details.pico_dollars = much).await,
        "call_figure",
    );
    for invalid in [
        record(&|call| call.band = Some(Arc::from([]))).await,
        record(&|call| call.body = Some(Arc::from([]))).await,
        record(&|call| call.names.key = "a\0b".to_owned()).await,
    ] {
        let error = invalid.unwrap_err();
        assert!(
            matches!(error, Error::Invalid { what: "call", .. }),
            "{error}"
        );
    }
    let many = (0..=limits.call_batch as u64).map(|n| numbered_call(n, &[]));
    expect_limit(
        calls.record_calls(&owner, many.collect()).await,
        "call_batch",
    );
    expect_whole_hours(calls, &owner).await;
    expect_sums(calls, &owner, &all, "nothing refused was stored").await;
    // At the limits.
    let largest = |call: &mut CallRecord| {
        call.details.pico_dollars = Some(1 << 53);
        call.band = Some(vec![1; limits.call_band_bytes].into());
        call.names.model = "x".repeat(255);
    };
    record(&largest).await.unwrap();
}

/// A sum whose time is no whole hour is refused.
async fn expect_whole_hours(calls: &dyn Calls, owner: &Owner) {
    let half_an_hour = CallFilter {
        since_ms: Some(START + CALL_HOUR_MS / 2),
        ..CallFilter::default()
    };
    let sum = SumCalls {
        filter: half_an_hour,
        by: Vec::new(),
    };
    let error = calls.sum_calls(owner, sum).await.unwrap_err();
    assert!(
        matches!(error, Error::Invalid { what: "since", .. }),
        "{error}"
    );
}

/// Makes every kind of write of the record.
pub(super) async fn write_everything(chat: &Chat) {
    let Some(calls) = chat.store.calls() else {
        return;
    };
    let own = [chat.id.clone()];
    let all: Vec<CallRecord> = (0..5).map(|n| numbered_call(n, &own)).collect();
    until_done(&[], || calls.record_calls(&chat.owner, all.clone())).await;
    let sweep = SweepCalls {
        roll_up_before_ms: START + CALL_HOUR_MS,
        remove_before_ms: START,
        remove_bodies_before_ms: START,
    };
    until_done(&[], || calls.sweep_calls(&chat.owner, sweep)).await;
    let sum = SumCalls::default();
    let found = calls.sum_calls(&chat.owner, sum.clone());
    // Reads fail too where every call may.
    if let Ok(found) = found.await {
        assert_eq!(found, plain_sums(&all, &sum), "whatever call failed");
    }
}
