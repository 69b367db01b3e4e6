//! What a process does to the files of one directory, in order and byte by byte, as strace saw it.
//!
//! A call counts from when it has returned. Maps of memory cannot be seen, so the shared memory
//! beside a database (`-shm`) is left out: SQLite makes it anew after a power cut.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// What was done. Files go by their names in the directory.
#[derive(Debug)]
pub(crate) enum Call {
    /// Opened in a way that makes the file where there is none.
    Open(String),
    Write(String, usize, Vec<u8>),
    Truncate(String, usize),
    Sync(String),
    SyncDirectory,
    Remove(String),
    /// Opened for writing, and not in the directory.
    Elsewhere(String),
    /// The process said this, which it does once something was acknowledged.
    Say(String),
}

/// The file in the directory to which the process says things, a line at a time.
pub(crate) const SAYINGS: &str = "sayings";

/// A question mark: where the machine has such a call.
const CALLS: &str = "trace=openat,?open,?creat,write,writev,pwrite64,pwritev,?pwritev2,ftruncate,\
                     ?truncate,fallocate,fsync,fdatasync,sync_file_range,?unlink,unlinkat,?rename,\
                     ?renameat,renameat2,?link,linkat,msync,copy_file_range,sendfile";

/// Why nothing can be recorded here, if so.
pub(crate) fn missing() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("strace is a tool of Linux".to_owned());
    }
    let mut try_it = Command::new("strace");
    try_it.args(["-e", CALLS, "-o", "/dev/null", "true"]);
    match try_it.stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("strace may not watch a process here ({status})")),
        Err(error) => Some(format!("strace is not there ({error}): install it")),
    }
}

/// The command before a command that records it.
pub(crate) fn wrapper(trace: &Path) -> Vec<OsString> {
    let fixed = [
        "strace", "-f", "-qq", "-y", "-xx", "-s", "4194304", "-e", CALLS, "-o",
    ];
    let mut words: Vec<OsString> = fixed.iter().map(OsString::from).collect();
    words.push(trace.into());
    words
}

/// What was done to the files of `directory`.
pub(crate) fn read(trace: &Path, directory: &Path) -> Vec<Call> {
    let file = std::fs::File::open(trace).unwrap();
    let mut begun: BTreeMap<String, String> = BTreeMap::new();
    let mut calls = Vec::new();
    for line in BufReader::new(file).lines() {
        let line = line.unwrap();
        let (process, call) = line.split_once(' ').unwrap();
        let call = call.trim_start();
        if let Some(start) = call.strip_suffix(" <unfinished ...>") {
            begun.insert(process.to_owned(), start.to_owned());
        } else if let Some(end) = call.strip_prefix("<... ") {
            let (_, end) = end.split_once(" resumed>").unwrap();
            let whole = begun.remove(process).unwrap() + end;
            calls.extend(parse(&whole, directory));
        } else {
            calls.extend(parse(call, directory));
        }
    }
    calls
}

/// One call; `None`: it did nothing to these files.
fn parse(line: &str, directory: &Path) -> Option<Call> {
    let (line, result) = line.rsplit_once(" = ")?;
    if result.starts_with('-') || result.starts_with('?') {
        return None;
    }
    let (name, arguments) = line.trim_end().strip_suffix(')')?.split_once('(')?;
    let arguments: Vec<&str> = arguments.split(", ").collect();
    let (argument, opens) = match name {
        "openat" => (arguments[1], true),
        "unlinkat" => (arguments[1], false),
        _ => (arguments[0], name == "open" || name == "creat"),
    };
    let path = path(argument)?;
    if path.as_bytes() == directory.as_os_str().as_encoded_bytes() {
        return (name == "fsync" || name == "fdatasync").then_some(Call::SyncDirectory);
    }
    let Ok(file) = Path::new(&path).strip_prefix(directory) else {
        let writes = opens && (line.contains("O_WRONLY") || line.contains("O_RDWR"));
        let device = ["/dev/", "/proc/"]
            .iter()
            .any(|begin| path.starts_with(begin));
        return (writes && !device).then_some(Call::Elsewhere(path));
    };
    let file = file.to_str().unwrap().to_owned();
    if file.ends_with("-shm") {
        return None;
    }
    let number = |at: usize| -> usize { arguments[at].parse().unwrap() };
    let written = |at: usize| {
        assert!(arguments[at].ends_with('"'), "{file}: bytes are left out");
        let bytes = bytes(arguments[at].trim_matches('"'));
        assert_eq!(
            bytes.len().to_string(),
            result,
            "{file}: a part was written"
        );
        bytes
    };
    match name {
        _ if opens => {
            assert!(!line.contains("O_TRUNC"), "{file}");
            line.contains("O_CREAT").then_some(Call::Open(file))
        }
        "write" if file == SAYINGS => {
            let text = String::from_utf8(written(1)).unwrap();
            Some(Call::Say(text.trim_end().to_owned()))
        }
        "pwrite64" => {
            let bytes = written(1);
            Some(Call::Write(file, number(3), bytes))
        }
        "ftruncate" => Some(Call::Truncate(file, number(1))),
        "fsync" | "fdatasync" => Some(Call::Sync(file)),
        "unlink" | "unlinkat" => Some(Call::Remove(file)),
        _ => panic!("a call to {name} was not expected: {file}"),
    }
}

/// The path of `"…"`, or of a number's `3<…>`.
fn path(argument: &str) -> Option<String> {
    let inner = match argument.strip_prefix('"') {
        Some(quoted) => quoted.strip_suffix('"')?,
        None => argument.split_once('<')?.1.split_once('>')?.0,
    };
    String::from_utf8(bytes(inner)).ok()
}

/// The bytes of `\x41\x42…`.
fn bytes(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    hex.as_bytes()
        .chunks(4)
        .map(|four| digit(four[2]) << 4 | digit(four[3]))
        .collect()
}
