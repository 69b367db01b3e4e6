//! Ctrl-C while a run goes on: the first calls it off, the second leaves at once.

use contexture::runs::{Run, RunError, Turn};
use tokio::signal::ctrl_c;

/// How driving a run ended.
#[derive(Debug)]
pub(crate) enum Driven {
    /// The run ended, or waits.
    Ended(Result<Turn, RunError>),
    /// It was left where it stood: it can be resumed.
    Left,
}

/// Drives a run to its end.
pub(crate) async fn drive(run: &mut Run) -> Driven {
    let handle = run.handle();
    let mut pressed = false;
    let driving = run.drive();
    tokio::pin!(driving);
    loop {
        tokio::select! {
            biased;
            done = &mut driving => return Driven::Ended(done),
            Ok(()) = ctrl_c() => {
                if pressed {
                    return Driven::Left;
                }
                pressed = true;
                handle.abort("by Ctrl-C");
            }
        }
    }
}
