//! The files, unpacked.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The folder of the data.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data")
}

/// A file's text, unpacked if its name ends in `.gz`.
#[must_use]
pub fn read(path: &str) -> String {
    String::from_utf8(bytes(path)).unwrap()
}

/// A file's bytes, unpacked if its name ends in `.gz`.
#[must_use]
pub fn bytes(path: &str) -> Vec<u8> {
    let full = folder().join(path);
    let packed = fs::read(&full).unwrap_or_else(|error| panic!("{}: {error}", full.display()));
    if !path.ends_with(".gz") {
        return packed;
    }
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice())
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

/// The names of a folder's files, sorted.
#[must_use]
pub fn list(folder_name: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder().join(folder_name))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The text of the 200 tau-bench sessions, one JSON array.
#[must_use]
pub fn tau_bench() -> String {
    read("tau-bench/gpt-4o-airline.json.gz")
}

/// The SWE-agent sessions: name and text.
#[must_use]
pub fn swe_agent() -> Vec<(String, String)> {
    list("swe-agent")
        .into_iter()
        .filter(|name| name.ends_with(".traj"))
        .map(|name| (name.clone(), read(&format!("swe-agent/{name}"))))
        .collect()
}
