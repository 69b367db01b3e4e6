//! One file after the other, on all processors: the usage of logs that report it, the sessions of those that do not.
//!
//! A log with usage is read line by line and never stands in memory as a whole. Others are read whole, up to
//! [`MAX_DOCUMENT_BYTES`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use contexture::ir::Cancel;
use contexture::sessions::{
    LogUsage, ReadOptions, Session, SessionError, SessionFormat, UsageReader, detect_format,
    read_sessions,
};

/// So many bytes of a file tell its format.
const HEAD_BYTES: usize = 256 * 1024;
/// A line that is longer is passed over as damaged: 64 MiB.
const MAX_LINE_BYTES: usize = 64 << 20;
/// A log that has to be read whole and is larger is passed over, and listed: 64 MiB.
pub(super) const MAX_DOCUMENT_BYTES: u64 = 64 << 20;

/// What a file is.
#[derive(Debug)]
pub(super) enum ReadLog {
    /// A log that reports its usage.
    Usage(LogUsage),
    /// Sessions of a log that does not.
    Estimated(SessionFormat, Vec<Session>),
    /// A log that cannot be read, and why.
    Unreadable(String),
    /// No log.
    Other,
}

/// Reads files on all processors, and hands them on in their order.
pub(super) fn read_logs(files: &[PathBuf], cancel: &Cancel, mut each: impl FnMut(&Path, ReadLog)) {
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(8);
    let next = AtomicUsize::new(0);
    let (sender, receiver) = sync_channel(64);
    thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some((at, path)) = take_next(files, next) {
                    // Nobody listens any more, or the work was called off.
                    if cancel.is_cancelled() || sender.send((at, read_log(path, cancel))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        // Files end in any order; they are summed up in that of their names.
        let mut waiting = BTreeMap::new();
        let mut due = 0;
        for (at, log) in receiver {
            waiting.insert(at, log);
            while let Some(log) = waiting.remove(&due) {
                if let Some(path) = files.get(due) {
                    each(path, log);
                }
                due += 1;
            }
        }
    });
}

fn take_next<'f>(files: &'f [PathBuf], next: &AtomicUsize) -> Option<(usize, &'f PathBuf)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    files.get(at).map(|path| (at, path))
}

/// Reads one file.
fn read_log(path: &Path, cancel: &Cancel) -> ReadLog {
    match try_read_log(path, cancel) {
        Ok(log) => log,
        Err(error) => ReadLog::Unreadable(error.to_string()),
    }
}

fn try_read_log(path: &Path, cancel: &Cancel) -> io::Result<ReadLog> {
    let mut file = File::open(path)?;
    let mut head = Vec::new();
    file.by_ref()
        .take(HEAD_BYTES as u64)
        .read_to_end(&mut head)?;
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    if let Some(reader) = usage_reader(&head, &name) {
        let mut lines = BufReader::with_capacity(1 << 16, Cursor::new(head).chain(file));
        return Ok(ReadLog::Usage(read_usage(reader, &mut lines, cancel)?));
    }
    let bytes = file.metadata()?.len();
    if bytes > MAX_DOCUMENT_BYTES {
        let most = MAX_DOCUMENT_BYTES >> 20;
        return Ok(ReadLog::Unreadable(format!(
            "{} MB, and no log of lines: such a file may have {most} MB",
            bytes >> 20
        )));
    }
    file.read_to_end(&mut head)?;
    Ok(read_document(&head, &name))
}

/// The reader for a file that begins so; `None` if it is no log that reports its usage.
fn usage_reader(head: &[u8], name: &str) -> Option<UsageReader> {
    // Only whole lines: the last one may be cut off.
    let end = match head.len() < HEAD_BYTES {
        true => head.len(),
        false => head.iter().rposition(|byte| *byte == b'\n')?,
    };
    let text = String::from_utf8_lossy(head.get(..end)?);
    UsageReader::new(detect_format(&text, name).ok()?.format)
}

/// Reads the usage of a log to its end.
fn read_usage(
    mut reader: UsageReader,
    lines: &mut impl BufRead,
    cancel: &Cancel,
) -> io::Result<LogUsage> {
    let mut line = Vec::new();
    while read_line(lines, &mut line)? && !cancel.is_cancelled() {
        match std::str::from_utf8(&line) {
            Ok(text) if line.len() <= MAX_LINE_BYTES => reader.read_line(text),
            _ => reader.skip_line(),
        }
    }
    Ok(reader.finish())
}

/// Reads a line, or of a line that is too long its beginning; tells whether there was one.
fn read_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut any = false;
    loop {
        let bytes = lines.fill_buf()?;
        if bytes.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let some = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        // One byte beyond the limit is kept, by which the line is known to be too long.
        if line.len() <= MAX_LINE_BYTES {
            line.extend_from_slice(some);
        }
        let used = end.map_or(bytes.len(), |end| end + 1);
        lines.consume(used);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// Reads a file whole: a document, or a log that does not say what it used.
fn read_document(bytes: &[u8], name: &str) -> ReadLog {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return ReadLog::Other;
    };
    let format = match detect_format(text, name) {
        Ok(detected) => detected.format,
        // By its name it should be a log; what is in it is cut off or damaged.
        Err(error @ SessionError::NotJson { .. })
            if !text.trim().is_empty() && (name.ends_with(".jsonl") || name.ends_with(".traj")) =>
        {
            return ReadLog::Unreadable(error.to_string());
        }
        Err(_) => return ReadLog::Other,
    };
    let options = ReadOptions {
        keep_going: true,
        source_name: name,
    };
    match read_sessions(format, text, &options) {
        Ok(sessions) => ReadLog::Estimated(format, sessions),
        // Much JSON has a member in common with a document of ours, and nothing is said in it.
        Err(SessionError::NoItems { .. } | SessionError::Wire(_)) => ReadLog::Other,
        Err(error) => ReadLog::Unreadable(error.to_string()),
    }
}
