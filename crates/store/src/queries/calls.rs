//! The maintenance of the record of calls: sums of all owners, and whether they are those of the rows.

use contexture_ir::Owner;

use crate::contract::{
    CALL_HOUR_MS, CallFilter, CallGrouping, CallOrder, CallSum, Calls, Error, ListCalls, SumCalls,
    SweepCalls, SweptCalls,
};

/// Owners of one page.
const OWNERS: usize = 100;
/// Calls of one page.
const CALLS: usize = 500;

/// How long the calls of all owners are kept, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRetention {
    /// How long a call is kept; its sums stay for ever.
    pub calls_ms: i64,
    /// How long the body of a call is kept, where it was stored. 0: bodies are removed.
    pub bodies_ms: i64,
}

/// Puts the calls of all owners that began before the current hour into roll-ups, and removes calls and bodies that are older than
/// they are kept. Returns what was done. May be dropped and called again, since each step commits on its own.
///
/// # Errors
/// Any error of the store.
pub async fn sweep_calls(
    calls: &dyn Calls,
    now_ms: i64,
    retention: CallRetention,
) -> Result<SweptCalls, Error> {
    let sweep = SweepCalls {
        roll_up_before_ms: now_ms - now_ms.rem_euclid(CALL_HOUR_MS),
        remove_before_ms: now_ms.saturating_sub(retention.calls_ms),
        remove_bodies_before_ms: now_ms.saturating_sub(retention.bodies_ms),
    };
    let mut total = SweptCalls::default();
    let mut after = None;
    loop {
        let owners = calls.list_call_owners(after.as_ref(), OWNERS).await?;
        for owner in &owners {
            loop {
                let step = calls.sweep_calls(owner, sweep).await?;
                total.rolled_up += step.rolled_up;
                total.removed += step.removed;
                total.removed_bodies += step.removed_bodies;
                if !step.more {
                    break;
                }
            }
        }
        after = match owners.into_iter().next_back() {
            Some(last) => Some(last),
            None => return Ok(total),
        };
    }
}

/// An hour whose roll-ups are not the sums of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallsFinding {
    /// Begin of the hour, in milliseconds since the Unix epoch; `None` if the fault is in hours without any call.
    pub hour_ms: Option<i64>,
    /// Sum of the calls.
    pub calls: CallSum,
    /// What the store gives as their sum.
    pub sums: CallSum,
}

/// What a check of a record of calls found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifiedCalls {
    /// Number of calls that were read.
    pub checked: u64,
    /// Hours that are not in order, the oldest first.
    pub findings: Vec<CallsFinding>,
}

/// Checks that the sums of an owner's calls are those of its calls, hour by hour, for the hours that ended before a time, in
/// milliseconds since the Unix epoch. Calls that were removed cannot be checked: of the oldest hour that has any, some may be
/// gone.
///
/// # Errors
/// Any error of the store.
pub async fn verify_calls(
    calls: &dyn Calls,
    owner: &Owner,
    before_ms: i64,
) -> Result<VerifiedCalls, Error> {
    let before_ms = before_ms - before_ms.rem_euclid(CALL_HOUR_MS);
    let mut verified = VerifiedCalls::default();
    let mut list = ListCalls {
        filter: CallFilter {
            until_ms: Some(before_ms),
            ..CallFilter::default()
        },
        order: CallOrder::OldestFirst,
        limit: Some(CALLS),
        ..ListCalls::default()
    };
    let (mut oldest, mut hour, mut sum, mut newer) =
        (None, None, CallSum::default(), CallSum::default());
    loop {
        let page = calls.list_calls(owner, list.clone()).await?;
        for call in &page.calls {
            let of = call.id.time_ms() - call.id.time_ms().rem_euclid(CALL_HOUR_MS);
            if hour != Some(of) {
                check_hour(calls, owner, (hour, oldest), &sum, &mut verified).await?;
                (hour, sum) = (Some(of), CallSum::default());
                oldest = oldest.or(hour);
            }
            let one = CallSum::of_call(call.outcome, &call.details);
            sum.add_sum(&one);
            if oldest != Some(of) {
                newer.add_sum(&one);
            }
        }
        verified.checked += page.calls.len() as u64;
        match page.next {
            Some(next) => list.after = Some(next),
            None => break,
        }
    }
    check_hour(calls, owner, (hour, oldest), &sum, &mut verified).await?;
    let Some(oldest) = oldest.filter(|_| verified.findings.is_empty()) else {
        return Ok(verified);
    };
    // Sums of hours of which there are no calls at all.
    let sums = sum_between(calls, owner, oldest + CALL_HOUR_MS, before_ms).await?;
    if sums.calls > newer.calls {
        verified.findings.push(CallsFinding {
            hour_ms: None,
            calls: newer,
            sums,
        });
    }
    Ok(verified)
}

/// Compares the calls of an hour with their sum.
async fn check_hour(
    calls: &dyn Calls,
    owner: &Owner,
    (hour, oldest): (Option<i64>, Option<i64>),
    sum: &CallSum,
    verified: &mut VerifiedCalls,
) -> Result<(), Error> {
    let Some(hour_ms) = hour else {
        return Ok(());
    };
    let mut finding = CallsFinding {
        hour_ms: hour,
        calls: *sum,
        sums: sum_between(calls, owner, hour_ms, hour_ms + CALL_HOUR_MS).await?,
    };
    if hour != oldest && finding.sums != finding.calls {
        // A call that was long on its way may have come since the others were read.
        finding.calls = add_up_hour(calls, owner, hour_ms).await?;
        finding.sums = sum_between(calls, owner, hour_ms, hour_ms + CALL_HOUR_MS).await?;
    }
    let (calls, sums) = (&finding.calls, &finding.sums);
    let is_in_order = match hour == oldest {
        // Some of its calls may have been removed.
        true => sums.calls >= calls.calls && sums.pico_dollars >= calls.pico_dollars,
        false => sums == calls,
    };
    if !is_in_order {
        verified.findings.push(finding);
    }
    Ok(())
}

/// Adds up the calls of an hour.
async fn add_up_hour(calls: &dyn Calls, owner: &Owner, hour_ms: i64) -> Result<CallSum, Error> {
    let mut list = ListCalls {
        filter: CallFilter {
            since_ms: Some(hour_ms),
            until_ms: Some(hour_ms + CALL_HOUR_MS),
            ..CallFilter::default()
        },
        limit: Some(CALLS),
        ..ListCalls::default()
    };
    let mut sum = CallSum::default();
    loop {
        let page = calls.list_calls(owner, list.clone()).await?;
        for call in &page.calls {
            sum.add_sum(&CallSum::of_call(call.outcome, &call.details));
        }
        match page.next {
            Some(next) => list.after = Some(next),
            None => return Ok(sum),
        }
    }
}

async fn sum_between(
    calls: &dyn Calls,
    owner: &Owner,
    since_ms: i64,
    until_ms: i64,
) -> Result<CallSum, Error> {
    let sum = SumCalls {
        filter: CallFilter {
            since_ms: Some(since_ms),
            until_ms: Some(until_ms),
            ..CallFilter::default()
        },
        by: vec![CallGrouping::Outcome],
    };
    let mut total = CallSum::default();
    for (_, part) in calls.sum_calls(owner, sum).await? {
        total.add_sum(&part);
    }
    Ok(total)
}
