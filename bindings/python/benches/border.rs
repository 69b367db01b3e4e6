//! What the border to Python costs: the same work from Rust and from Python, in one run.
//!
//! Compiling 10,000 messages that the caller keeps, bytes in and bytes out; appending one message at a time to a file; the import
//! and the size of the module. The bars: a compile at most 1.2 times Rust's, an append at most 1.5 times, an import at most 30 ms,
//! the wheel at most 20 MB. The Python half is `border.py`, run by `CONTEXTURE_TEST_VENV`'s Python, else by `python3`.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use contexture::Catalogue;
use contexture::compile::Scratch;
use contexture::ir::{Cancel, Raw};
use contexture_api::operations::{AppendOptions, Host, append_messages, compile_document};
use contexture_api::{AppendDocument, CompileDocument};

const MESSAGES: usize = 10_000;
const COMPILES: usize = 7;
const APPENDS: usize = 500;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let messages = messages_json();
    fs::write(folder.path().join("messages.json"), &messages).unwrap();
    println!(
        "rust: compile of {MESSAGES} messages ({} bytes): {:.1?}",
        messages.len(),
        compile(&messages)
    );
    println!(
        "rust: append, median of {APPENDS}: {:.1?}",
        append(folder.path())
    );
    run_python(folder.path());
}

/// A conversation of two people who say something else each time.
fn messages_json() -> String {
    let messages = (0..MESSAGES).map(|number| {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        let words = "the parcel was seen in the depot and goes on tomorrow ".repeat(1 + number % 4);
        format!(r#"{{"role":"{role}","content":"{number}: {words}"}}"#)
    });
    format!("[{}]", messages.collect::<Vec<_>>().join(","))
}

/// The median time of a compile from the bytes of a document to the bytes of the request and the report.
fn compile(messages: &str) -> Duration {
    let document = format!(
        r#"{{"model":"gpt-4o","to":"openai-chat","window":1000000,"messages":{messages}}}"#
    );
    let (policies, cancel) = (BTreeMap::new(), Cancel::new());
    let host = Host {
        policies: &policies,
        skills: &[],
    };
    median((0..COMPILES).map(|_| {
        let started = Instant::now();
        let asked: CompileDocument = serde_json::from_str(black_box(&document)).unwrap();
        let mut scratch = Scratch::new();
        let compiled = compile_document(Catalogue::builtin(), &asked, &host, &cancel, &mut scratch);
        let compiled = compiled.unwrap();
        black_box((
            compiled.payload.get().to_owned(),
            compiled.report.get().to_owned(),
        ));
        started.elapsed()
    }))
}

/// The median time of an append of one message to a conversation in a file.
fn append(folder: &Path) -> Duration {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let file = folder.join("rust.db");
    let times = runtime.block_on(async {
        let engine = contexture::open(file.to_str().unwrap()).await.unwrap();
        let chat = engine.conversation("c").open().await.unwrap();
        let mut times = Vec::with_capacity(APPENDS);
        for number in 0..APPENDS {
            let message = format!(r#"{{"role":"user","content":"message {number}"}}"#);
            let started = Instant::now();
            let document = AppendDocument {
                messages: Some(vec![Raw::parse(message).unwrap()]),
                items: None,
            };
            let saved = append_messages(&chat, &document, AppendOptions::default()).await;
            black_box(serde_json::to_vec(&saved.unwrap()).unwrap());
            times.push(started.elapsed());
        }
        times
    });
    median(times.into_iter())
}

fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn run_python(folder: &Path) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = folder.join("contexture");
    fs::create_dir(&package).unwrap();
    for source in fs::read_dir(here.join("contexture")).unwrap() {
        let source = source.unwrap();
        if source.file_type().unwrap().is_file() {
            fs::copy(source.path(), package.join(source.file_name())).unwrap();
        }
    }
    let (prefix, suffix) = (env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    let built = env::current_exe().unwrap();
    let native = built.with_file_name(format!("{prefix}contexture_native{suffix}"));
    let module = package.join("_native.abi3.so");
    fs::copy(native, &module).unwrap();
    // As it is shipped.
    assert!(
        Command::new("strip")
            .arg(&module)
            .status()
            .unwrap()
            .success()
    );
    let python = env::var_os("CONTEXTURE_TEST_VENV");
    let python = python.map_or_else(
        || PathBuf::from("python3"),
        |environment| Path::new(&environment).join("bin/python"),
    );
    let ended = Command::new(python)
        .arg(here.join("benches/border.py"))
        .args([
            folder.as_os_str(),
            APPENDS.to_string().as_ref(),
            COMPILES.to_string().as_ref(),
        ])
        .env("PYTHONPATH", folder)
        .status()
        .unwrap();
    assert!(ended.success(), "border.py: {ended}");
}
