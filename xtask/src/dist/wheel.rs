//! The wheel: the engine for Python programs, and the command.
//!
//! A wheel is a zip file. The package has its modules and the native one, which every CPython from the oldest on loads; the program
//! lies among the scripts, so that installers put it on the path as it is. Every file gets the same time, so that the same files
//! give the same wheel.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::dist::platform::Platform;
use crate::dist::{
    Compression, DESCRIPTION, KEYWORDS, NATIVE_PACKAGE, PROGRAM, PYPI_NAME, REPOSITORY, Release,
};
use crate::shell;

/// Where the package's own texts are.
const SOURCES: &str = "bindings/python";
/// The oldest Python: that of the native module's interface, as a tag and as a requirement.
const PYTHON_TAG: &str = "cp39-abi3";
const REQUIRED_PYTHON: &str = ">=3.9";
/// Extras: what `pip install contexture[NAME]` installs too.
const EXTRAS: [(&str, &str); 4] = [
    ("langgraph", "langgraph-checkpoint>=4.3"),
    ("openai-agents", "openai-agents>=0.24"),
    ("claude-agent", "claude-agent-sdk>=0.2.187"),
    ("pydantic-ai", "pydantic-ai-slim>=2.68"),
];

/// A file of the wheel.
struct WheelFile {
    /// Path in the wheel, with forward slashes.
    path: String,
    bytes: Vec<u8>,
    mode: u32,
}

/// Packs the wheel into the release's folder and returns its path.
///
/// # Errors
/// If the version has no form for Python, the program is not for this platform, or a file cannot be read or written.
pub(crate) fn pack_wheel(release: &Release, platform: &Platform) -> Result<PathBuf> {
    let program = fs::read(&release.program)?;
    let version = convert_version(&release.version)?;
    let native = release.native();
    let native = fs::read(&native).with_context(|| format!("reading {}", native.display()))?;
    let tag = format!("{PYTHON_TAG}-{}", platform.wheel_tag(&[&program, &native])?);
    let stem = format!("{PYPI_NAME}-{version}");
    let mut files = collect_files(release, &stem, &version, &tag)?;
    files.push(WheelFile {
        path: format!("{PROGRAM}/{}", platform.python_module("_native")),
        bytes: native,
        mode: 0o755,
    });
    files.push(WheelFile {
        path: format!("{stem}.data/scripts/{}", release.program_name()),
        bytes: program,
        mode: 0o755,
    });
    // The list of files is itself in the list, without a hash.
    let record = format!("{stem}.dist-info/RECORD");
    let mut lines: String = files.iter().map(record_line).collect();
    lines.push_str(&format!("{record},,\n"));
    files.push(text_file(&record, lines));
    let wheel = release.out.join(format!("{stem}-{tag}.whl"));
    write_zip(&wheel, &files, release.compression)?;
    Ok(wheel)
}

/// The modules, the description of the package, its licences and its bill of materials.
fn collect_files(
    release: &Release,
    stem: &str,
    version: &str,
    tag: &str,
) -> Result<Vec<WheelFile>> {
    let root = shell::workspace_root();
    let read =
        |path: &str| fs::read_to_string(root.join(path)).with_context(|| format!("reading {path}"));
    let mut files = Vec::new();
    for module in list_modules(&root.join(SOURCES).join(PROGRAM))? {
        let text = read(&format!("{SOURCES}/{PROGRAM}/{module}"))?;
        files.push(text_file(&format!("{PROGRAM}/{module}"), text));
    }
    let about = format!("{stem}.dist-info");
    let readme = read(&format!("{SOURCES}/README.md"))?;
    let metadata = describe_package(version, &readme);
    files.push(text_file(&format!("{about}/METADATA"), metadata));
    let wheel = format!(
        "Wheel-Version: 1.0\nGenerator: cargo-xtask-dist\nRoot-Is-Purelib: false\nTag: {tag}\n"
    );
    files.push(text_file(&format!("{about}/WHEEL"), wheel));
    for licence in crate::dist::LICENCES {
        files.push(text_file(
            &format!("{about}/licenses/{licence}"),
            read(licence)?,
        ));
    }
    for (name, bill) in [
        (PROGRAM, &release.bill),
        (NATIVE_PACKAGE, &release.native_bill),
    ] {
        if let Some(bill) = bill {
            // The place for it: PEP 770.
            let path = format!("{about}/sboms/{name}.cdx.json");
            files.push(text_file(&path, fs::read_to_string(bill)?));
        }
    }
    Ok(files)
}

/// Returns the names of the package's modules and types, in alphabetical order.
fn list_modules(package: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for file in fs::read_dir(package)? {
        let path = file?.path();
        let extension = path.extension().unwrap_or_default();
        let is_source = extension == "py" || extension == "pyi" || extension == "typed";
        if let Some(name) = path.file_name().filter(|_| is_source) {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The package's metadata, version 2.4 of their form, with the README as its body.
fn describe_package(version: &str, readme: &str) -> String {
    let licences: String = crate::dist::LICENCES
        .iter()
        .map(|licence| format!("License-File: {licence}\n"))
        .collect();
    let extras: String = EXTRAS
        .iter()
        .map(|(name, needs)| {
            format!("Provides-Extra: {name}\nRequires-Dist: {needs}; extra == \"{name}\"\n")
        })
        .collect();
    format!(
        "Metadata-Version: 2.4\n\
         Name: {PYPI_NAME}\n\
         Version: {version}\n\
         Summary: {DESCRIPTION}\n\
         Author: The Contexture developers\n\
         License-Expression: MIT OR Apache-2.0\n\
         {licences}\
         Keywords: {keywords}\n\
         Project-URL: Repository, {REPOSITORY}\n\
         Project-URL: Documentation, {REPOSITORY}/tree/main/docs\n\
         Project-URL: Changelog, {REPOSITORY}/blob/main/CHANGELOG.md\n\
         Classifier: Environment :: Console\n\
         Classifier: Intended Audience :: Developers\n\
         Classifier: Programming Language :: Python :: 3\n\
         Classifier: Programming Language :: Rust\n\
         Classifier: Topic :: Software Development\n\
         Classifier: Typing :: Typed\n\
         Requires-Python: {REQUIRED_PYTHON}\n\
         {extras}\
         Description-Content-Type: text/markdown; charset=UTF-8\n\
         \n{readme}",
        keywords = KEYWORDS.join(","),
    )
}

fn text_file(path: &str, text: String) -> WheelFile {
    WheelFile {
        path: path.to_owned(),
        bytes: text.into_bytes(),
        mode: 0o644,
    }
}

fn record_line(file: &WheelFile) -> String {
    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(&file.bytes));
    format!("{},sha256={hash},{}\n", file.path, file.bytes.len())
}

fn write_zip(path: &Path, files: &[WheelFile], compression: Compression) -> Result<()> {
    let method = match compression {
        Compression::Best => CompressionMethod::Deflated,
        // Compressing a test's program would take longer than all else.
        Compression::Fast => CompressionMethod::Stored,
    };
    let mut zip = ZipWriter::new(File::create(path)?);
    for file in files {
        // Without a time the writer takes 1980, the first that the format knows.
        let options = SimpleFileOptions::default()
            .compression_method(method)
            .unix_permissions(file.mode);
        zip.start_file(&file.path, options)?;
        zip.write_all(&file.bytes)?;
    }
    zip.finish()?;
    Ok(())
}

/// Cargo's version as Python writes it: `0.2.0-rc.1` as `0.2.0rc1`.
fn convert_version(version: &str) -> Result<String> {
    let Some((numbers, stage)) = version.split_once('-') else {
        return Ok(version.to_owned());
    };
    for (name, short) in [("alpha.", "a"), ("beta.", "b"), ("rc.", "rc")] {
        if let Some(number) = stage.strip_prefix(name)
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            return Ok(format!("{numbers}{short}{number}"));
        }
    }
    bail!(
        "version {version} has no form for Python: use `-alpha.N`, `-beta.N` or `-rc.N`, or none of them"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_take_pythons_form() {
        let cases = [
            ("0.1.0", Some("0.1.0")),
            ("1.2.3-alpha.4", Some("1.2.3a4")),
            ("1.2.3-beta.10", Some("1.2.3b10")),
            ("0.2.0-rc.1", Some("0.2.0rc1")),
            ("0.2.0-nightly", None),
        ];
        for (version, expected) in cases {
            assert_eq!(convert_version(version).ok().as_deref(), expected);
        }
    }
}
