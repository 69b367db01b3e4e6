//! Spending: what an owner, a key or a conversation has spent on the day in UTC, and whether it may spend more.
//!
//! A figure is the sum of the record of calls as it was read last, and what this process has recorded since. It is read again
//! behind a request that finds it older than its refresh time, and before one that finds it older than [`MAX_REFRESHES`] of
//! these; so no request reads as many rows as there are calls, and several servers over one database
//! agree within seconds. A call counts when its answer has ended; until then nobody knows what it costs.
//!
//! Not here: prices, the record itself (`call_log`), the configuration (`config::limits`, `config::key`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contexture::Owner;
use contexture::catalogue::Money;
use contexture::ir::ConversationId;
use contexture::store::rules::call_name;
use contexture::store::{
    CallFilter, CallGroup, CallRecord, CallSum, Error as StoreError, SumCalls,
};
use contexture_api::format_timestamp;
use tokio::time::Instant;

use crate::access::Principal;
use crate::state::App;
use crate::state::call_log::RequestId;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Time after which a figure is read again where other servers use the store, and where this one has it for itself.
const SHARED_REFRESH: Duration = Duration::from_secs(2);
const OWN_REFRESH: Duration = Duration::from_secs(30);
/// Part of the time that reading a figure may take: one that takes 100 ms is read every 5 s at most.
const REFRESH_PER_READ: u32 = 50;
/// Refreshes after which a figure is too old to decide by.
const MAX_REFRESHES: u32 = 5;
/// Figures that are kept; those not asked for within a minute go first.
const MAX_FIGURES: usize = 10_000;
const IDLE: Duration = Duration::from_secs(60);
/// Models without a price that are told of.
const MAX_UNPRICED: usize = 200;

/// Someone whose spending may be limited.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Spender {
    Owner,
    /// By its name in the record of calls.
    Key(String),
    Conversation(ConversationId),
}

/// A limit that holds for a call.
struct SpendLimit {
    spender: Spender,
    /// The spender, for people.
    shown: String,
    /// Member of the configuration that has the limit.
    member: &'static str,
    limit: Money,
}

/// Why a call may not be made.
#[derive(Debug)]
pub(crate) enum SpendRefusal {
    /// What may be spent on the day is spent.
    LimitReached { message: String, wait: Duration },
    /// What was spent cannot be read.
    Unknown(StoreError),
}

impl SpendRefusal {
    /// Returns the refusal in words.
    pub(crate) fn into_reason(self) -> String {
        match self {
            Self::LimitReached { message, .. } => message,
            Self::Unknown(error) => format!("what was spent today cannot be read: {error}"),
        }
    }
}

/// What was spent today, by everyone whom a limit holds for.
#[derive(Debug, Default)]
pub(crate) struct Spending(Mutex<SpendTable>);

#[derive(Debug, Default)]
struct SpendTable {
    figures: BTreeMap<(Owner, Spender), DayFigure>,
    unpriced_models: BTreeSet<String>,
}

/// What one spender has spent on one day, in 10⁻¹² dollars.
#[derive(Debug)]
struct DayFigure {
    /// Days since the Unix epoch.
    day: i64,
    /// Sum of the record as it was read last; `None` before that.
    stored: Option<u128>,
    /// Recorded by this process since that reading began: the sum may have some of it already, never less.
    since: u128,
    /// The same since the reading under way began, if one is.
    since_reading: Option<u128>,
    /// Of calls that wait to be recorded.
    waiting: u128,
    read_at: Instant,
    refresh: Duration,
    used_at: Instant,
    /// Held while it is read: of requests that need it at the same time one reads it.
    reading: Arc<tokio::sync::Mutex<()>>,
}

impl DayFigure {
    fn new(day: i64) -> Self {
        Self {
            day,
            stored: None,
            since: 0,
            since_reading: None,
            waiting: 0,
            read_at: Instant::now(),
            refresh: OWN_REFRESH,
            used_at: Instant::now(),
            reading: Arc::default(),
        }
    }

    /// What was spent, if it is known well enough to need no reading.
    fn fresh_amount(&self) -> Option<u128> {
        let is_fresh = self.read_at.elapsed() <= self.refresh;
        self.spent().filter(|_| is_fresh)
    }

    fn spent(&self) -> Option<u128> {
        let stored = self.stored?;
        Some(
            stored
                .saturating_add(self.since)
                .saturating_add(self.waiting),
        )
    }

    fn add_recorded(&mut self, pico: u128) {
        self.since = self.since.saturating_add(pico);
        if let Some(since) = &mut self.since_reading {
            *since = since.saturating_add(pico);
        }
    }
}

/// What a figure says, and whether it has to be read.
enum FigureState {
    /// It is new enough.
    Fresh(u128),
    /// It is good for this request; who asked reads it for the next ones.
    Stale(u128),
    /// Nothing can be decided before it is read. The last figure, if there was one.
    Unknown(Option<u128>),
}

impl Spending {
    fn lock(&self) -> MutexGuard<'_, SpendTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call that is in the record now.
    pub(crate) fn add_recorded(&self, owner: &Owner, row: &CallRecord) {
        self.lock()
            .for_each_figure(owner, row, DayFigure::add_recorded);
    }

    /// Counts a call that waits to be recorded.
    pub(crate) fn add_waiting(&self, owner: &Owner, row: &CallRecord) {
        self.lock().for_each_figure(owner, row, |figure, pico| {
            figure.waiting = figure.waiting.saturating_add(pico);
        });
    }

    /// Takes note that a call which waited is recorded now.
    pub(crate) fn settle_waiting(&self, owner: &Owner, row: &CallRecord) {
        self.lock().for_each_figure(owner, row, |figure, pico| {
            figure.waiting = figure.waiting.saturating_sub(pico);
            figure.add_recorded(pico);
        });
    }
}

impl SpendTable {
    /// Changes the figures that a call counts in, by its cost.
    fn for_each_figure(
        &mut self,
        owner: &Owner,
        row: &CallRecord,
        change: impl Fn(&mut DayFigure, u128),
    ) {
        // Without limits nothing was ever asked, so there is nothing to keep.
        if self.figures.is_empty() {
            return;
        }
        let conversation = row.conversation.clone().map(Spender::Conversation);
        let key = (!row.names.key.is_empty()).then(|| Spender::Key(row.names.key.clone()));
        let mut is_limited = false;
        for spender in [Some(Spender::Owner), key, conversation]
            .into_iter()
            .flatten()
        {
            let figure = self.figures.get_mut(&(owner.clone(), spender));
            let figure = figure.filter(|figure| figure.day == day_of(row.id.time_ms()));
            if let Some(figure) = figure {
                is_limited = true;
                change(figure, row.details.pico_dollars.unwrap_or(0).into());
            }
        }
        let tokens = row.details.tokens.unwrap_or_default();
        let is_unpriced = row.details.pico_dollars.unwrap_or(0) == 0;
        if is_limited && is_unpriced && tokens.input + tokens.output > 0 {
            self.report_unpriced(&row.names.model);
        }
    }

    /// Says once that a model's calls count as nothing.
    fn report_unpriced(&mut self, model: &str) {
        let known = &mut self.unpriced_models;
        if known.len() < MAX_UNPRICED && known.insert(model.to_owned()) {
            tracing::warn!(
                model,
                "calls of this model have no price, so limits in dollars do not hold for them"
            );
        }
    }

    /// Returns what is known of a spender's day, and what is held while it is read. [`FigureState::Stale`] is given to one caller
    /// for each reading.
    fn check_figure(
        &mut self,
        entry: &(Owner, Spender),
        day: i64,
    ) -> (FigureState, Arc<tokio::sync::Mutex<()>>) {
        self.evict_idle();
        let figure = self.figures.entry(entry.clone());
        let figure = figure.or_insert_with(|| DayFigure::new(day));
        if figure.day < day {
            *figure = DayFigure::new(day);
        }
        figure.used_at = Instant::now();
        let is_usable = figure.read_at.elapsed() <= figure.refresh * MAX_REFRESHES;
        let state = match (figure.fresh_amount(), figure.spent()) {
            (Some(spent), _) => FigureState::Fresh(spent),
            (None, Some(spent)) if is_usable && figure.since_reading.is_some() => {
                FigureState::Fresh(spent)
            }
            (None, Some(spent)) if is_usable => {
                figure.since_reading = Some(0);
                FigureState::Stale(spent)
            }
            (None, spent) => FigureState::Unknown(spent),
        };
        (state, Arc::clone(&figure.reading))
    }

    fn fresh_amount(&self, entry: &(Owner, Spender), day: i64) -> Option<u128> {
        let figure = self.figures.get(entry);
        figure.filter(|figure| figure.day == day)?.fresh_amount()
    }

    fn evict_idle(&mut self) {
        if self.figures.len() < MAX_FIGURES {
            return;
        }
        self.figures
            .retain(|_, figure| figure.waiting > 0 || figure.used_at.elapsed() < IDLE);
        // All in use: they are read again when they are asked for.
        if self.figures.len() >= MAX_FIGURES {
            self.figures.clear();
        }
    }
}

const fn day_of(at_ms: i64) -> i64 {
    at_ms.div_euclid(DAY_MS)
}

/// Checks that a call's owner and key may spend more today.
///
/// # Errors
/// A limit is reached, or what was spent cannot be read.
pub(crate) async fn check_caller(
    app: &App,
    caller: &Principal,
    call: RequestId,
) -> Result<(), SpendRefusal> {
    for limit in caller_limits(app, caller) {
        check_limit(app, &caller.owner, limit, call).await?;
    }
    Ok(())
}

/// What was spent today, and what may be.
#[derive(Clone, Debug)]
pub(crate) struct DaySpending {
    pub(crate) spent: Money,
    pub(crate) limit: Option<Money>,
}

/// Returns what a caller's owner has spent today, and with its key; `None` without a key, and without a record of calls.
///
/// # Errors
/// The record of calls cannot be read.
pub(crate) async fn caller_spending(
    app: &App,
    caller: &Principal,
    now_ms: i64,
) -> Result<Option<(DaySpending, Option<DaySpending>)>, StoreError> {
    if app.engine().store().calls().is_none() {
        return Ok(None);
    }
    let day = day_of(now_ms);
    let spent = async |spender: Spender| {
        let spent = spent_today(app, (caller.owner.clone(), spender), day).await;
        spent.map(Money::from_pico_dollars)
    };
    let owner = DaySpending {
        spent: spent(Spender::Owner).await?,
        limit: app.config().server.limits.dollars_per_day,
    };
    let key = match caller.key.as_deref() {
        Some(name) => Some(DaySpending {
            spent: spent(Spender::Key(call_name(name))).await?,
            limit: caller.dollars_per_day,
        }),
        None => None,
    };
    Ok(Some((owner, key)))
}

/// The limits that hold for a caller's owner and key.
fn caller_limits(app: &App, caller: &Principal) -> impl Iterator<Item = SpendLimit> {
    let owner = app.config().server.limits.dollars_per_day;
    let owner = owner.map(|limit| SpendLimit {
        spender: Spender::Owner,
        shown: "this owner".to_owned(),
        member: "server.limits.dollars_per_day",
        limit,
    });
    let key = caller.key.as_deref().zip(caller.dollars_per_day);
    let key = key.map(|(name, limit)| SpendLimit {
        spender: Spender::Key(call_name(name)),
        shown: format!("the key {name:?}"),
        member: "keys.dollars_per_day",
        limit,
    });
    [owner, key].into_iter().flatten()
}

/// Checks that a conversation may spend more today.
///
/// # Errors
/// The limit is reached, or what was spent cannot be read.
pub(crate) async fn check_conversation(
    app: &App,
    owner: &Owner,
    conversation: &ConversationId,
    call: RequestId,
) -> Result<(), SpendRefusal> {
    let Some(limit) = app.config().server.limits.conversation_dollars_per_day else {
        return Ok(());
    };
    let limit = SpendLimit {
        spender: Spender::Conversation(conversation.clone()),
        shown: format!("the conversation {conversation}"),
        member: "server.limits.conversation_dollars_per_day",
        limit,
    };
    check_limit(app, owner, limit, call).await
}

async fn check_limit(
    app: &App,
    owner: &Owner,
    limit: SpendLimit,
    call: RequestId,
) -> Result<(), SpendRefusal> {
    // A store without a record of calls has nothing to count by.
    if app.engine().store().calls().is_none() {
        return Ok(());
    }
    let at_ms = call.0.time_ms();
    let SpendLimit {
        spender,
        shown,
        member,
        limit,
    } = limit;
    let spent = spent_today(app, (owner.clone(), spender), day_of(at_ms)).await;
    let spent = Money::from_pico_dollars(spent.map_err(SpendRefusal::Unknown)?);
    if spent < limit {
        return Ok(());
    }
    let ends_ms = (day_of(at_ms) + 1) * DAY_MS;
    Err(SpendRefusal::LimitReached {
        message: format!(
            "{shown} may spend {limit} a day (`{member}`) and has spent {spent}; the day ends at {}",
            format_timestamp(ends_ms)
        ),
        wait: Duration::from_millis(u64::try_from(ends_ms - at_ms).unwrap_or(0)),
    })
}

/// Returns what was spent on a day, in 10⁻¹² dollars.
async fn spent_today(app: &App, entry: (Owner, Spender), day: i64) -> Result<u128, StoreError> {
    let (state, reading) = app.spending().lock().check_figure(&entry, day);
    let last = match state {
        FigureState::Fresh(spent) => return Ok(spent),
        FigureState::Stale(spent) => {
            let app = app.clone();
            app.background_tasks().clone().spawn(async move {
                let _reading = reading.lock().await;
                if let Err(error) = read_figure(&app, &entry, day).await {
                    warn_unreadable(&error);
                }
            });
            return Ok(spent);
        }
        FigureState::Unknown(last) => last,
    };
    let _reading = reading.lock().await;
    // Another request may have read it meanwhile.
    if let Some(spent) = app.spending().lock().fresh_amount(&entry, day) {
        return Ok(spent);
    }
    match (read_figure(app, &entry, day).await, last) {
        (Err(error), Some(last)) => {
            warn_unreadable(&error);
            Ok(last)
        }
        (read, _) => read,
    }
}

fn warn_unreadable(error: &StoreError) {
    tracing::warn!(%error, "what was spent today cannot be read; the last figure holds");
}

/// Reads a figure from the record of calls. Its lock must be held.
async fn read_figure(app: &App, entry: &(Owner, Spender), day: i64) -> Result<u128, StoreError> {
    let (owner, spender) = entry;
    let begun = Instant::now();
    if let Some(figure) = app.spending().lock().figures.get_mut(entry) {
        figure.since_reading = Some(0);
    }
    let sum = SumCalls {
        filter: CallFilter {
            since_ms: Some(day * DAY_MS),
            key: match spender {
                Spender::Key(name) => Some(name.clone()),
                _ => None,
            },
            conversation: match spender {
                Spender::Conversation(id) => Some(id.clone()),
                _ => None,
            },
            ..CallFilter::default()
        },
        by: Vec::new(),
    };
    let sums = match app.engine().store().calls() {
        Some(calls) => calls.sum_calls(owner, sum).await,
        None => Ok(Vec::new()),
    };
    let mut table = app.spending().lock();
    let figure = table.figures.get_mut(entry);
    let Some(figure) = figure.filter(|figure| figure.day == day) else {
        // Forgotten meanwhile, or of another day: what was read still answers who asked.
        return sums.map(|sums| total_cost(&sums));
    };
    let since = figure.since_reading.take().unwrap_or(0);
    let stored = total_cost(&sums?);
    (figure.stored, figure.since) = (Some(stored), since);
    figure.read_at = Instant::now();
    let least = match app.engine().store().capabilities().shared {
        true => SHARED_REFRESH,
        false => OWN_REFRESH,
    };
    figure.refresh = least.max(begun.elapsed() * REFRESH_PER_READ);
    Ok(figure.spent().unwrap_or(stored))
}

fn total_cost(sums: &[(CallGroup, CallSum)]) -> u128 {
    let costs = sums.iter().map(|(_, sum)| sum.pico_dollars);
    costs.fold(0, u128::saturating_add)
}

#[cfg(test)]
mod tests {
    use contexture::Engine;
    use contexture::ir::CallId;
    use contexture::store::{CallDetails, CallTokens};

    use super::*;
    use crate::config::Config;

    fn owner() -> Owner {
        Owner::new("ada").unwrap()
    }

    fn app() -> App {
        let config = "[server.limits]\ndollars_per_day = \"1\"\n";
        App::new(
            Engine::in_memory(),
            Config::parse(config, "c.toml").unwrap(),
        )
        .unwrap()
    }

    fn row(at_ms: i64, number: u8, pico: u64) -> CallRecord {
        CallRecord {
            details: CallDetails {
                tokens: Some(CallTokens::default()),
                pico_dollars: Some(pico),
                ..CallDetails::default()
            },
            ..CallRecord::new(CallId::from_time(at_ms, [number; 10]), "openai")
        }
    }

    async fn spent(app: &App, at_ms: i64) -> u128 {
        let entry = (owner(), Spender::Owner);
        spent_today(app, entry, day_of(at_ms)).await.unwrap()
    }

    /// What another server records: behind the back of this one.
    async fn store_row(app: &App, row: &CallRecord) {
        let calls = app.engine().store().calls().unwrap();
        calls
            .record_calls(&owner(), vec![row.clone()])
            .await
            .unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_figure_follows_other_servers_and_days() {
        let app = app();
        let at = 20_000 * DAY_MS + 5;
        store_row(&app, &row(at, 1, 100)).await;
        assert_eq!(spent(&app, at).await, 100);
        // Ours count at once, those of another server with the next reading.
        let ours = row(at + 1, 2, 10);
        store_row(&app, &ours).await;
        app.spending().add_recorded(&owner(), &ours);
        store_row(&app, &row(at + 2, 3, 1_000)).await;
        assert_eq!(spent(&app, at).await, 110);
        tokio::time::advance(OWN_REFRESH + Duration::from_secs(1)).await;
        // The request that finds it old does not wait; a later one has the new figure.
        assert_eq!(spent(&app, at).await, 110);
        while spent(&app, at).await == 110 {
            tokio::task::yield_now().await;
        }
        assert_eq!(spent(&app, at).await, 1_110);
        // One that is much too old is read before anything is decided by it.
        store_row(&app, &row(at + 3, 4, 10_000)).await;
        tokio::time::advance(OWN_REFRESH * (MAX_REFRESHES + 1)).await;
        assert_eq!(spent(&app, at).await, 11_110);
        // A new day begins with nothing, and what ended late counts for its own day.
        assert_eq!(spent(&app, at + DAY_MS).await, 0);
        app.spending().add_recorded(&owner(), &row(at, 5, 7));
        assert_eq!(spent(&app, at + DAY_MS).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_to_be_recorded_counts_once() {
        let app = app();
        let at = 20_000 * DAY_MS + 5;
        assert_eq!(spent(&app, at).await, 0);
        let waiting = row(at, 1, 100);
        app.spending().add_waiting(&owner(), &waiting);
        assert_eq!(spent(&app, at).await, 100);
        // Read while it waits: it is not in the store yet.
        tokio::time::advance(OWN_REFRESH * (MAX_REFRESHES + 1)).await;
        assert_eq!(spent(&app, at).await, 100);
        store_row(&app, &waiting).await;
        app.spending().settle_waiting(&owner(), &waiting);
        assert_eq!(spent(&app, at).await, 100);
        tokio::time::advance(OWN_REFRESH * (MAX_REFRESHES + 1)).await;
        assert_eq!(spent(&app, at).await, 100);
    }
}
