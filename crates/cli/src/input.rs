//! Files and standard input, read whole.

use std::fmt;
use std::fs;
use std::io::{self, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};

/// How many bytes are searched for what no text has.
const BINARY_CHECK_BYTES: usize = 8_000;

/// Bytes to be read line by line.
pub(crate) type InputReader = BufReader<Box<dyn Read>>;

/// Where input comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InputSource {
    /// Standard input, written `-`.
    Stdin,
    /// A file.
    File(PathBuf),
}

impl From<&str> for InputSource {
    fn from(name: &str) -> Self {
        if name == "-" {
            Self::Stdin
        } else {
            Self::File(name.into())
        }
    }
}

impl fmt::Display for InputSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("standard input"),
            Self::File(path) => write!(f, "`{}`", path.display()),
        }
    }
}

impl InputSource {
    /// A file, or standard input where no name is given.
    pub(crate) fn or_stdin(name: Option<&str>) -> Self {
        name.map_or(Self::Stdin, Self::from)
    }

    /// The file's name without directory; nothing for standard input.
    pub(crate) fn file_name(&self) -> Option<String> {
        match self {
            Self::Stdin => None,
            Self::File(path) => Some(path.file_name()?.to_string_lossy().into_owned()),
        }
    }

    /// The file's name without directory and ending; nothing for standard input.
    pub(crate) fn file_stem(&self) -> Option<String> {
        match self {
            Self::Stdin => None,
            Self::File(path) => Some(path.file_stem()?.to_string_lossy().into_owned()),
        }
    }

    /// The whole text.
    ///
    /// # Errors
    /// Not there, a directory, unreadable, or not text.
    pub(crate) fn read_text(&self) -> Outcome<String> {
        let bytes = match self {
            Self::Stdin => read_stdin()?,
            Self::File(path) => fs::read(path).map_err(|error| unreadable_file(path, &error))?,
        };
        self.decode_text(bytes)
    }

    /// The bytes, to be read line by line.
    ///
    /// # Errors
    /// As [`Self::read_text`], except that the bytes may be anything.
    pub(crate) fn open_reader(&self) -> Outcome<InputReader> {
        let inner: Box<dyn Read> = match self {
            Self::Stdin => Box::new(io::stdin().lock()),
            Self::File(path) => {
                let file = fs::File::open(path).map_err(|error| unreadable_file(path, &error))?;
                // Opening a directory succeeds on Unix; only reading it fails, with a message that
                // helps nobody.
                if path.is_dir() {
                    return Err(directory_failure(path));
                }
                Box::new(file)
            }
        };
        Ok(BufReader::with_capacity(1 << 16, inner))
    }

    fn decode_text(&self, bytes: Vec<u8>) -> Outcome<String> {
        // A zero byte is valid UTF-8, so this has to be asked first. Text has none.
        if bytes.iter().take(BINARY_CHECK_BYTES).any(|byte| *byte == 0) {
            let message = format!("{self} is a binary file, expected text");
            return Err(Failure::bad_input("not_text", message));
        }
        let mut text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let message = format!("{self} is not UTF-8: byte {at} is not text");
            Failure::bad_input("not_text", message)
                .with_hint("convert it to UTF-8 first, with `iconv -t utf-8` for instance")
        })?;
        // What some editors put before the first character is not part of the document.
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        Ok(text)
    }
}

fn read_stdin() -> Outcome<Vec<u8>> {
    let mut stdin = io::stdin().lock();
    // Waiting without a word for somebody to type a whole document looks like a hang.
    if stdin.is_terminal() {
        return Err(Failure::usage("no input: standard input is a terminal")
            .with_hint("name a file, or pipe the input in"));
    }
    let mut bytes = Vec::new();
    stdin.read_to_end(&mut bytes).map_err(|error| {
        Failure::new(
            Exit::Stream,
            "read",
            format!("cannot read standard input: {error}"),
        )
    })?;
    Ok(bytes)
}

/// What is the matter with a file that cannot be read.
pub(crate) fn unreadable_file(path: &Path, error: &io::Error) -> Failure {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => Failure::new(
            Exit::NotFound,
            "no_such_file",
            format!("`{shown}`: no such file"),
        )
        .with_hint("check the path; `-` reads standard input"),
        io::ErrorKind::IsADirectory => directory_failure(path),
        io::ErrorKind::PermissionDenied => Failure::new(
            Exit::Stream,
            "read",
            format!("`{shown}`: permission denied"),
        ),
        _ => Failure::new(Exit::Stream, "read", format!("`{shown}`: {error}")),
    }
}

fn directory_failure(path: &Path) -> Failure {
    let shown = path.display();
    Failure::bad_input(
        "directory",
        format!("`{shown}` is a directory, expected a file"),
    )
    .with_hint("name the files one by one")
}
