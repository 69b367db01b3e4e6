//! The files, unpacked.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The folder of the data.
#[must_use]
pub(crate) fn data_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data")
}

/// A file's text, unpacked if its name ends in `.gz`.
#[must_use]
pub fn read_text(path: &str) -> String {
    String::from_utf8(read_bytes(path)).unwrap()
}

/// A file's bytes, unpacked if its name ends in `.gz`.
#[must_use]
pub fn read_bytes(path: &str) -> Vec<u8> {
    // The path is in the panic: a missing file is the usual fault.
    let full = data_dir().join(path);
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
pub fn list_files(folder_name: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(data_dir().join(folder_name))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    // Sorted, because the order of a folder differs between file systems.
    names.sort();
    names
}

/// The text of the 200 tau-bench sessions, one JSON array.
#[must_use]
pub fn tau_bench() -> String {
    read_text("tau-bench/gpt-4o-airline.json.gz")
}

/// The SWE-agent sessions: name and text.
#[must_use]
pub fn swe_agent() -> Vec<(String, String)> {
    list_files("swe-agent")
        .into_iter()
        .filter(|name| name.ends_with(".traj"))
        .map(|name| (name.clone(), read_text(&format!("swe-agent/{name}"))))
        .collect()
}

/// All sessions as messages of Chat Completions, by name; those of SWE-agent, which have long outputs, last.
#[must_use]
pub fn chat_histories() -> Vec<(String, Value)> {
    let tau: Vec<Value> = serde_json::from_str(&tau_bench()).unwrap();
    let tau = tau.iter().enumerate();
    let tau = tau.map(|(at, session)| (format!("tau-{at}"), session["traj"].clone()));
    let swe = swe_agent().into_iter().map(|(name, text)| {
        let session: Value = serde_json::from_str(&text).unwrap();
        let history = session["history"].as_array().unwrap();
        (name, history.iter().map(chat_message).collect())
    });
    tau.chain(swe).collect()
}

/// A history entry of SWE-agent as a chat message.
fn chat_message(entry: &Value) -> Value {
    let mut message = json!({"role": entry["role"], "content": entry["content"]});
    if let Some(calls) = entry["tool_calls"].as_array() {
        // Absent and not null: providers refuse an empty list of calls.
        message["tool_calls"] = json!(calls);
    }
    // A chat message answers one call; the agent's list holds one id.
    if let Some(id) = entry["tool_call_ids"].get(0) {
        message["tool_call_id"] = id.clone();
    }
    message
}
