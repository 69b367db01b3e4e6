//! The archive for people without a package manager, and what all archives share: packing a folder, checksums.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::dist::{Compression, LICENCES, PROGRAM, Release, query_host_target};
use crate::shell;

/// Files and folders that are packed with the program, beside the licences.
const PACKED_FILES: [&str; 3] = ["README.md", "CHANGELOG.md", "deploy"];

/// Where the manual is in the archive.
const MANUAL: &str = "share/man/man1";

/// Packs the program with its papers into the release's folder, and returns the archive's path.
///
/// # Errors
/// If a file cannot be read or written, or `tar` is missing.
pub(crate) fn pack_archive(release: &Release) -> Result<PathBuf> {
    let name = release.stem();
    // Packed from a folder with the archive's name, so that unpacking creates one folder and nothing else.
    let staged = tempfile::tempdir()?;
    let folder = staged.path().join(&name);
    fs::create_dir(&folder)?;
    fs::copy(&release.program, folder.join(release.program_name()))?;
    for paper in PACKED_FILES.iter().chain(&LICENCES) {
        copy_recursively(&shell::workspace_root().join(paper), &folder.join(paper))?;
    }
    write_manual(release, &folder.join(MANUAL))?;
    let archive = release.out.join(format!("{name}.tar.gz"));
    pack_folder(&folder, &archive, release.compression)
}

/// Has the program write its manual. A program for another platform cannot, and its archive has none.
fn write_manual(release: &Release, folder: &Path) -> Result<()> {
    if release.target != query_host_target()? {
        println!(
            "   no manual: programs for {} do not run here",
            release.target
        );
        return Ok(());
    }
    let mut program = Command::new(&release.program);
    program.arg("man").arg(folder);
    shell::run_command(program)
}

/// Packs the folder, under its own name, into an archive, and returns the archive's path.
///
/// # Errors
/// If `tar` or `gzip` is missing or fails.
pub(crate) fn pack_folder(
    folder: &Path,
    archive: &Path,
    compression: Compression,
) -> Result<PathBuf> {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        bail!("{} is no folder with a name", folder.display());
    };
    let gzip = match compression {
        Compression::Best => "gzip -9",
        Compression::Fast => "gzip -1",
    };
    let mut tar = Command::new("tar");
    tar.args(["--use-compress-program", gzip, "-cf"])
        .arg(archive);
    tar.arg("-C").arg(parent).arg(name);
    shell::run_command(tar)?;
    Ok(archive.to_owned())
}

/// Writes `FILE.sha256` beside the file, in the form of `sha256sum --check`.
///
/// # Errors
/// If the file cannot be read, or the other not be written.
pub(crate) fn write_checksum(file: &Path) -> Result<()> {
    let bytes = fs::read(file)?;
    let sum: String = Sha256::digest(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    // Two spaces: the hash is of the bytes as they are.
    let beside = file.with_file_name(format!("{name}.sha256"));
    fs::write(beside, format!("{sum}  {name}\n"))?;
    println!("   {sum}  {name}, {} bytes", bytes.len());
    Ok(())
}

/// Copies a file, or a folder with its content.
///
/// # Errors
/// If there is no such file or folder, or it cannot be copied.
pub(crate) fn copy_recursively(from: &Path, to: &Path) -> Result<()> {
    if from.is_file() {
        fs::copy(from, to).with_context(|| format!("copying {}", from.display()))?;
        return Ok(());
    }
    if !from.is_dir() {
        // A release without its licence must not be built.
        bail!("{} is not there", from.display());
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy_recursively(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Unpacks the archive into the folder and returns the path of the program in it.
///
/// # Errors
/// If `tar` is missing or fails, or the manual is not in it.
pub(crate) fn unpack_archive(archive: &Path, stem: &str, folder: &Path) -> Result<PathBuf> {
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(archive).arg("-C").arg(folder);
    shell::run_command(tar)?;
    let page = folder.join(stem).join(MANUAL).join(format!("{PROGRAM}.1"));
    if !page.is_file() {
        bail!("{} has no {}", archive.display(), page.display());
    }
    Ok(folder.join(stem).join(PROGRAM))
}
