//! Writes the corpus of every target into a folder of its name, and prints the names. `cargo xtask soak` runs it before
//! libFuzzer, which keeps what it finds in the same folders.

#![expect(clippy::print_stdout, reason = "a program talks to its terminal")]

use std::path::Path;
use std::{env, fs, io};

use contexture_fuzz_targets::{FuzzTarget, TARGETS};

fn main() -> io::Result<()> {
    let usage = || io::Error::other("usage: contexture-fuzz-targets FOLDER");
    let folder = env::args_os().nth(1).ok_or_else(usage)?;
    for target in TARGETS {
        write_corpus(target, &Path::new(&folder).join(target.name))?;
        println!("{}", target.name);
    }
    Ok(())
}

fn write_corpus(target: &FuzzTarget, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (index, input) in (target.corpus)().iter().enumerate() {
        // A name that libFuzzer does not use: its own are hashes.
        fs::write(folder.join(format!("seed-{index:03}")), input)?;
    }
    Ok(())
}
