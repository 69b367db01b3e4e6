//! Retention: conversations that an owner's rule in the configuration gives up are deleted when the server starts, and every
//! hour.
//!
//! The record of calls is summed up by the hour, and single calls are removed after the days that the configuration says; so are
//! bodies, if any are kept.
//!
//! Not here: what a rule gives up (`contexture_store::plan_retention`), and how calls are summed up
//! (`contexture_store::sweep_calls`).

use std::time::Duration;

use contexture::engine::BODY_CHAIN_MS;
use contexture::store::{
    CallRetention, Error as StoreError, RetentionRule, delete_expired, plan_retention, sweep_calls,
};

use crate::config::RetentionConfig;
use crate::state::App;

/// Time between two rounds.
const INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Time between two rounds over the record of calls: what is not summed up yet is read call by call.
const SWEEP_INTERVAL: Duration = Duration::from_secs(15 * 60);

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Deletes what the rules give up, again and again.
pub(super) async fn run_retention_loop(app: App) {
    loop {
        for rule in &app.config().retention {
            if let Err(error) = apply_rule(&app, rule).await {
                // Tried again in the next round; nothing else depends on it.
                tracing::warn!(owner = %rule.owner, %error, "old conversations stay for now");
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Sums up the record of calls, and removes old ones, again and again.
pub(super) async fn run_call_sweep_loop(app: App) {
    let server = &app.config().server;
    let retention = CallRetention {
        calls_ms: i64::from(server.call_days.get()) * DAY_MS,
        // The last body of a chain is whole as long as the first is there.
        bodies_ms: server.bodies.map_or(0, |bodies| {
            bodies.milliseconds().saturating_add(BODY_CHAIN_MS)
        }),
    };
    loop {
        if let Some(calls) = app.engine().store().calls() {
            match sweep_calls(calls, app.engine().now_ms(), retention).await {
                Ok(swept) => tracing::debug!(?swept, "the record of calls is summed up"),
                // Sums are read from single calls until then.
                Err(error) => tracing::warn!(%error, "the record of calls is not summed up"),
            }
        }
        tokio::time::sleep(SWEEP_INTERVAL).await;
    }
}

async fn apply_rule(app: &App, config: &RetentionConfig) -> Result<(), StoreError> {
    let store = &**app.engine().store();
    let Some(maintenance) = store.maintenance() else {
        return Ok(());
    };
    let since = |days: u32| {
        app.engine()
            .now_ms()
            .saturating_sub(i64::from(days) * DAY_MS)
    };
    let rule = RetentionRule {
        updated_since_ms: config.days.map(|days| since(days.get())),
        max_bytes: config.bytes.map(Into::into),
    };
    let plan = plan_retention(store, maintenance, &config.owner, rule).await?;
    let (count, bytes) = delete_expired(store, &config.owner, &plan).await?;
    if count > 0 {
        // As every operation that changes data: how much, never which.
        tracing::info!(
            target: "audit",
            owner = %config.owner,
            conversations = count,
            bytes,
            "deleted by the retention rule"
        );
    }
    Ok(())
}
