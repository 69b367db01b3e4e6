//! File systems that only one child sees, and rights that it lacks: Linux's user namespaces, which
//! need no rights themselves, though some machines forbid them.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

const UNSHARE: [&str; 4] = ["unshare", "--user", "--map-root-user", "--mount"];

/// Why there are none here, if so. In a soak there must be.
pub(crate) fn missing() -> Option<String> {
    let mut command = Command::new(UNSHARE[0]);
    command.args(&UNSHARE[1..]).arg("true");
    let why = match command.stderr(Stdio::null()).status() {
        Ok(status) if status.success() => return None,
        Ok(status) => format!("this machine forbids user namespaces ({status})"),
        Err(error) => format!("unshare is not there ({error})"),
    };
    assert!(std::env::var_os("CONTEXTURE_SOAK").is_none(), "{why}");
    Some(why)
}

/// The command before a command that runs in a script: there `$0` is the directory and `$@` the
/// command.
pub(crate) fn wrapper(directory: &Path, script: &str) -> Vec<OsString> {
    let mut words: Vec<OsString> = UNSHARE.iter().map(OsString::from).collect();
    words.extend(["sh", "-c", script].map(OsString::from));
    words.push(directory.into());
    words
}

/// The command before a command that has no more rights than the owner of its files.
pub(crate) fn without_rights() -> Vec<OsString> {
    UNSHARE[..2].iter().map(OsString::from).collect()
}
