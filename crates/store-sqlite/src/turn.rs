//! Taking turns with other processes.
//!
//! SQLite lets one process write at a time, and whoever waits asks again after ever longer pauses.
//! A process that has much to write finds the database free each time, since it alone comes back at
//! once, while others starve. So here waiting is asking at a steady pace, and whoever had to wait
//! lately leaves a gap after each of its own transactions, long enough for the others to ask.
//!
//! What is not here: order. Who asks in the gap is chance; with n processes each has its turn after
//! about n others.

use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

/// How long whoever waits pauses before it asks again.
const PACE: Duration = Duration::from_millis(1);
/// The gap: long enough that everybody who waits has asked.
const GAP: Duration = Duration::from_millis(2);
/// For how many transactions after one that had to wait gaps are left.
const WARY: u32 = 64;

/// One process's part in taking turns.
#[derive(Debug)]
pub(crate) struct Turn {
    /// How long to wait at most.
    patience: Duration,
    /// Transactions that still leave a gap.
    wary: u32,
    ended: Option<Instant>,
}

impl Turn {
    pub(crate) fn new(patience: Duration) -> Self {
        Self {
            patience,
            wary: 0,
            ended: None,
        }
    }

    /// Begins a writing transaction.
    pub(crate) fn begin(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        if self.wary > 0 {
            self.wary -= 1;
            let since = self.ended.map_or(GAP, |ended| ended.elapsed());
            std::thread::sleep(GAP.saturating_sub(since));
        }
        // SQLite's own waiting is for what happens inside a transaction.
        conn.busy_timeout(Duration::ZERO)?;
        let begun = self.ask(conn);
        conn.busy_timeout(self.patience)?;
        begun
    }

    fn ask(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        let begin = || {
            conn.prepare_cached("BEGIN IMMEDIATE")?
                .execute([])
                .map(drop)
        };
        let since = Instant::now();
        loop {
            match begin() {
                Err(error) if is_busy(&error) && since.elapsed() < self.patience => {
                    self.wary = WARY;
                    std::thread::sleep(PACE);
                }
                begun => return begun,
            }
        }
    }

    /// Says that the transaction is over.
    pub(crate) fn end(&mut self) {
        if self.wary > 0 {
            self.ended = Some(Instant::now());
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}
