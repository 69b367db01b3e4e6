//! Ctrl-C while a run goes on: the first calls it off, the second leaves at once.

use contexture::runs::{Run, RunError, Turn};
use tokio::signal::ctrl_c;

/// How driving a run ended.
#[derive(Debug)]
pub(crate) enum DriveResult {
    /// The run ended, or waits.
    Finished(Result<Turn, RunError>),
    /// It was left where it stood: it can be resumed.
    Interrupted,
}

/// Drives a run to its end.
pub(crate) async fn drive_run(run: &mut Run) -> DriveResult {
    let handle = run.handle();
    let mut pressed = false;
    let driving = run.drive();
    tokio::pin!(driving);
    loop {
        tokio::select! {
            biased;
            done = &mut driving => return DriveResult::Finished(done),
            Ok(()) = ctrl_c() => {
                if pressed {
                    return DriveResult::Interrupted;
                }
                pressed = true;
                handle.abort("by Ctrl-C");
            }
        }
    }
}
