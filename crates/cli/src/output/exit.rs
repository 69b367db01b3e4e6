//! Exit codes: part of the interface, never renumbered.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything was done.
    Done = 0,
    /// The command did its work and found something: bad lines in a stream, parts of a file that
    /// were left out, a failed check.
    Findings = 1,
    /// The command line is wrong.
    Usage = 2,
    /// A file, conversation, branch, message or model that does not exist.
    NotFound = 3,
    /// Something else is there already, or somebody else was faster.
    Conflict = 4,
    /// What is asked cannot be done with this input: a request that does not fit.
    Refused = 5,
    /// The input is not what it should be.
    BadInput = 6,
    /// The database cannot be used.
    Database = 7,
    /// A file or stream cannot be read or written.
    Stream = 8,
    /// A model did not answer, or not so that it can be read.
    Model = 9,
    /// A fault of this program.
    Fault = 70,
    /// It was called off with Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    /// What `--help` says about them.
    pub(crate) const HELP: &str = "\
Exit codes:
  0   done
  1   done, with findings: bad lines in a stream, parts left out, a failed check
  2   the command line is wrong
  3   not found: a file, conversation, branch, message or model
  4   conflict: it exists already, or somebody else was faster
  5   refused: the request does not fit, or the target cannot do it
  6   bad input
  7   the database cannot be used
  8   a file or stream cannot be read or written
  9   a model did not answer
  70  a fault of this program
  130 called off with Ctrl-C";
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
