//! Rate limits per owner: requests that run at a time, and requests per minute by a token bucket.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use contexture::Owner;
use http_body_util::BodyExt as _;
use tokio::time::Instant;

use crate::config::LimitsConfig;
use crate::problem::{Code, Problem};

/// A tenth of a minute's requests may come in one burst.
const BURST_DIVISOR: u32 = 10;

/// The limits, and the load of each owner.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    concurrent: usize,
    per_minute: Option<NonZeroU32>,
    owners: Arc<Mutex<BTreeMap<Owner, OwnerBucket>>>,
}

#[derive(Debug)]
struct OwnerBucket {
    running: usize,
    /// Tokens in the bucket at `refilled_at`.
    spare_requests: f64,
    refilled_at: Instant,
}

impl RateLimiter {
    pub(crate) fn new(limits: &LimitsConfig) -> Self {
        Self {
            concurrent: limits.concurrent,
            per_minute: limits.per_minute,
            owners: Arc::default(),
        }
    }

    /// Counts one more request of the owner, until the permit is dropped.
    ///
    /// # Errors
    /// There are too many, or too many came within a minute.
    pub(crate) fn acquire_permit(&self, owner: &Owner) -> Result<RequestPermit, Problem> {
        let burst = self
            .per_minute
            // At least one, or a limit below ten a minute would refuse every request.
            .map(|most| f64::from((most.get() / BURST_DIVISOR).max(1)));
        let now = Instant::now();
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let load = owners.entry(owner.clone()).or_insert_with(|| OwnerBucket {
            running: 0,
            spare_requests: burst.unwrap_or(0.0),
            refilled_at: now,
        });
        // Concurrency before rate: a refused request must not use up a token.
        if load.running >= self.concurrent {
            let detail = format!(
                "{} requests of this owner are running, as many as may",
                load.running
            );
            return Err(Problem::new(Code::TooManyRequests, detail));
        }
        if let (Some(most), Some(burst)) = (self.per_minute, burst) {
            let a_second = f64::from(most.get()) / 60.0;
            // Refilled on access: no timer is needed, and idle owners cost nothing.
            let passed = now
                .saturating_duration_since(load.refilled_at)
                .as_secs_f64();
            load.spare_requests = passed.mul_add(a_second, load.spare_requests).min(burst);
            load.refilled_at = now;
            if load.spare_requests < 1.0 {
                let wait = Duration::from_secs_f64((1.0 - load.spare_requests) / a_second);
                let detail = format!("more than {most} requests a minute");
                return Err(Problem::new(Code::TooManyRequests, detail).with_retry_after(wait));
            }
            load.spare_requests -= 1.0;
        }
        load.running += 1;
        Ok(RequestPermit {
            owner: owner.clone(),
            owners: self.owners.clone(),
        })
    }
}

/// A running request; dropping it frees its place.
#[derive(Debug)]
pub(crate) struct RequestPermit {
    owner: Owner,
    owners: Arc<Mutex<BTreeMap<Owner, OwnerBucket>>>,
}

impl RequestPermit {
    /// Returns the answer, which holds the permit until its body ends.
    pub(crate) fn attach_to_response(self, response: Response) -> Response {
        response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                // Makes the closure own the permit, so that it is dropped with the body.
                let _held = &self;
                frame
            }))
        })
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(load) = owners.get_mut(&self.owner) {
            load.running = load.running.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(limits: LimitsConfig) -> RateLimiter {
        RateLimiter::new(&limits)
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_at_a_time_per_owner() {
        let load = load(LimitsConfig {
            concurrent: 1,
            ..LimitsConfig::default()
        });
        let (ada, bob) = (Owner::new("ada").unwrap(), Owner::new("bob").unwrap());
        let first = load.acquire_permit(&ada).unwrap();
        assert_eq!(
            load.acquire_permit(&ada).unwrap_err().code(),
            Code::TooManyRequests
        );
        load.acquire_permit(&bob).unwrap();
        drop(first);
        load.acquire_permit(&ada).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_a_minute() {
        let load = load(LimitsConfig {
            per_minute: NonZeroU32::new(60),
            ..LimitsConfig::default()
        });
        let ada = Owner::new("ada").unwrap();
        for _ in 0..6 {
            load.acquire_permit(&ada).unwrap();
        }
        assert_eq!(
            load.acquire_permit(&ada).unwrap_err().code(),
            Code::TooManyRequests
        );
        tokio::time::advance(Duration::from_secs(1)).await;
        load.acquire_permit(&ada).unwrap();
        load.acquire_permit(&ada).unwrap_err();
    }
}
