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
    // Taken before `drive`, which borrows the run until it ends.
    let handle = run.handle();
    let mut pressed = false;
    let driving = run.drive();
    tokio::pin!(driving);
    loop {
        tokio::select! {
            // A run that has ended wins over a key pressed at the same moment.
            biased;
            done = &mut driving => return DriveResult::Finished(done),
            Ok(()) = ctrl_c() => {
                if pressed {
                    return DriveResult::Interrupted;
                }
                pressed = true;
                // Driving goes on: the run stores what was finished and then ends by itself.
                handle.abort("by Ctrl-C");
            }
        }
    }
}
