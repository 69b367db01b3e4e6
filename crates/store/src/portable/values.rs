//! Values of an owner and its resources as lines: those that belong to no conversation.

use contexture_ir::Owner;

use super::import::ImportError;
use super::record::{Bytes, End, EntryLine, ExportLine, FORMAT, ValuesHead};
use crate::contract::{
    EntryCursor, Error, ExpectedVersion, KeyScope, ListEntries, PutEntry, Store,
};

/// Number of values to read at a time.
const PAGE: usize = 16;

/// Export of the values of an owner, or of one resource.
///
/// Values of conversations are exported with [`Export`](super::Export). A value that is written
/// meanwhile is exported in its old or its new version.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use contexture_ir::Owner;
/// use contexture_store::{ExpectedVersion, ExportValues, ImportValues, KeyScope, KeyValues, MemoryStore, PutEntry};
///
/// let (from, to, owner) = (MemoryStore::default(), MemoryStore::default(), Owner::local());
/// let scope = KeyScope::Resource("ada@example.org".to_owned());
/// let value = Some(b"tea".as_slice().into());
/// let put = PutEntry { key: "drink".to_owned(), value, expect: ExpectedVersion::Any, at_ms: 0 };
/// from.put_entry(&owner, &scope, put).await?;
///
/// let mut export = ExportValues::new(&from, &owner, None);
/// let mut import = ImportValues::new(&to, &owner);
/// while let Some(lines) = export.next_lines().await? {
///     for line in lines.lines() {
///         import.import_line(line).await.unwrap();
///     }
/// }
/// assert_eq!(import.finish_import().await.unwrap().values, 1);
/// # Ok::<(), contexture_store::Error>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct ExportValues<'a> {
    store: &'a dyn Store,
    owner: &'a Owner,
    resource: Option<String>,
    after: Option<EntryCursor>,
    stage: ValuesStage,
    sum: LineDigest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValuesStage {
    Head,
    Body,
    End,
    Done,
}

/// Checksum and counts for the last line.
#[derive(Debug, Default)]
struct LineDigest {
    hasher: blake3::Hasher,
    end: End,
}

impl LineDigest {
    fn add_line(&mut self, line: &str) {
        self.hasher.update(line.as_bytes());
        self.hasher.update(b"\n");
        self.end.lines += 1;
    }

    fn to_end_line(&self) -> End {
        End {
            blake3: self.hasher.finalize().to_hex().to_string(),
            ..self.end.clone()
        }
    }
}

impl<'a> ExportValues<'a> {
    /// Begins an export of a resource's values; `None` for those of the owner and all its
    /// resources.
    #[must_use]
    pub fn new(store: &'a dyn Store, owner: &'a Owner, resource: Option<String>) -> Self {
        Self {
            store,
            owner,
            resource,
            after: None,
            stage: ValuesStage::Head,
            sum: LineDigest::default(),
        }
    }

    /// Returns the next lines, each with its line end; `None` after the last. Without values there
    /// are no lines.
    ///
    /// # Errors Any error of the reads; the export then ends and is incomplete.
    pub async fn next_lines(&mut self) -> Result<Option<String>, Error> {
        let mut lines = String::new();
        let stage = std::mem::replace(&mut self.stage, ValuesStage::Done);
        match stage {
            ValuesStage::Head | ValuesStage::Body => {
                let entries = self.next_page().await?;
                if entries.is_empty() && stage == ValuesStage::Head {
                    return Ok(None);
                }
                if stage == ValuesStage::Head {
                    let head = ValuesHead {
                        format: FORMAT,
                        owner: self.owner.clone(),
                        resource: self.resource.clone(),
                    };
                    self.write_line(&ExportLine::Values(head), &mut lines)?;
                }
                for line in entries {
                    self.sum.end.entries += 1;
                    self.write_line(&ExportLine::Entry(line), &mut lines)?;
                }
                self.stage = if self.after.is_some() {
                    ValuesStage::Body
                } else {
                    ValuesStage::End
                };
            }
            ValuesStage::End => {
                let end = ExportLine::End(self.sum.to_end_line());
                self.write_line(&end, &mut lines)?;
            }
            ValuesStage::Done => return Ok(None),
        }
        Ok(Some(lines))
    }

    /// Reads the next values and sets the cursor.
    async fn next_page(&mut self) -> Result<Vec<EntryLine>, Error> {
        let list = ListEntries {
            scope: self.resource.clone().map(KeyScope::Resource),
            limit: Some(PAGE),
            after: self.after.take(),
            ..ListEntries::default()
        };
        let page = self.store.list_entries(self.owner, list).await?;
        self.after = page.next;
        let mut lines = Vec::with_capacity(page.entries.len());
        for (scope, entry) in page.entries {
            let resource = match scope {
                KeyScope::Owner => None,
                KeyScope::Resource(name) => Some(name),
                // Conversations sort last, and export their own values.
                KeyScope::Conversation(_) => {
                    self.after = None;
                    break;
                }
            };
            lines.push(EntryLine {
                resource,
                key: entry.key,
                at_ms: entry.at_ms,
                value: Bytes::of(&entry.value),
            });
        }
        Ok(lines)
    }

    fn write_line(&mut self, line: &ExportLine, lines: &mut String) -> Result<(), Error> {
        let json = serde_json::to_string(line);
        let json = json.map_err(|error| Error::invalid_argument("line", error.to_string()))?;
        self.sum.add_line(&json);
        lines.push_str(&json);
        lines.push('\n');
        Ok(())
    }
}

/// Import of values, line by line.
///
/// An existing equal value stays as it is; an existing different value is refused, since the import
/// cannot decide which is right. If a line is refused or the end is missing, the values that this
/// import wrote are deleted again. After a crash, the next import finds the written values equal.
#[derive(Debug)]
pub struct ImportValues<'a> {
    store: &'a dyn Store,
    owner: &'a Owner,
    number: u64,
    sum: LineDigest,
    stage: ValuesStage,
    written: Vec<(KeyScope, String)>,
}

/// Result of an import of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportedValues {
    /// Number of imported values.
    pub values: u64,
    /// Number of those that did not exist before.
    pub new: u64,
}

impl<'a> ImportValues<'a> {
    /// Creates an import that expects the first line.
    #[must_use]
    pub fn new(store: &'a dyn Store, owner: &'a Owner) -> Self {
        Self {
            store,
            owner,
            number: 0,
            sum: LineDigest::default(),
            stage: ValuesStage::Head,
            written: Vec::new(),
        }
    }

    /// Imports the next line, given without its line end.
    ///
    /// # Errors A malformed line, or the store's refusal of it.
    pub async fn import_line(&mut self, line: &str) -> Result<(), ImportError> {
        self.number += 1;
        match self.accept_line(line).await {
            Ok(()) => Ok(()),
            Err(source) => Err(self.roll_back(source).await),
        }
    }

    /// Ends the import after the last line.
    ///
    /// # Errors The line `end` is missing.
    pub async fn finish_import(mut self) -> Result<ImportedValues, ImportError> {
        if self.stage == ValuesStage::End {
            return Ok(ImportedValues {
                values: self.sum.end.entries,
                new: self.written.len() as u64,
            });
        }
        self.number += 1;
        let source = invalid_import("the text ends before the line `end`: it was cut off");
        Err(self.roll_back(source).await)
    }

    async fn accept_line(&mut self, text: &str) -> Result<(), Error> {
        let line: ExportLine = serde_json::from_str(text)
            .map_err(|error| invalid_import(format!("no line of exported values: {error}")))?;
        match (self.stage, line) {
            (ValuesStage::Head, ExportLine::Values(head)) if head.format == FORMAT => {
                self.stage = ValuesStage::Body;
            }
            (ValuesStage::Head, ExportLine::Values(head)) => {
                let why = format!("format {}, and this version knows {FORMAT}", head.format);
                return Err(invalid_import(why));
            }
            (ValuesStage::Head, _) => {
                return Err(invalid_import("expected the line `values` first"));
            }
            (ValuesStage::Body, ExportLine::Entry(entry)) => {
                self.import_value(entry).await?;
                self.sum.end.entries += 1;
            }
            (ValuesStage::Body, ExportLine::End(end)) => {
                if self.sum.to_end_line() != end {
                    let why = "its checksum is not that of the lines before it: they were changed";
                    return Err(invalid_import(why));
                }
                self.stage = ValuesStage::End;
                return Ok(());
            }
            (ValuesStage::Body, _) => {
                return Err(invalid_import("expected a line `entry` or `end`"));
            }
            (ValuesStage::End, _) => {
                return Err(invalid_import("there is more after the line `end`"));
            }
            (ValuesStage::Done, _) => return Err(invalid_import("an earlier line was refused")),
        }
        self.sum.add_line(text);
        Ok(())
    }

    async fn import_value(&mut self, line: EntryLine) -> Result<(), Error> {
        let scope = line.resource.map_or(KeyScope::Owner, KeyScope::Resource);
        let value = line.value.into_bytes();
        match self.store.get_entry(self.owner, &scope, &line.key).await? {
            Some(entry) if entry.value == value => return Ok(()),
            Some(_) => {
                let key = &line.key;
                return Err(invalid_import(format!(
                    "there is another value of {key:?} already: delete one of the two"
                )));
            }
            None => {}
        }
        let put = PutEntry {
            key: line.key.clone(),
            value: Some(value),
            expect: ExpectedVersion::Absent,
            at_ms: line.at_ms,
        };
        self.store.put_entry(self.owner, &scope, put).await?;
        self.written.push((scope, line.key));
        Ok(())
    }

    /// Deletes the values that were written.
    async fn roll_back(&mut self, source: Error) -> ImportError {
        self.stage = ValuesStage::Done;
        for (scope, key) in std::mem::take(&mut self.written) {
            let put = PutEntry {
                key,
                value: None,
                expect: ExpectedVersion::Any,
                at_ms: 0,
            };
            // If this fails too, the next import finds the value equal.
            let _ = self.store.put_entry(self.owner, &scope, put).await;
        }
        ImportError {
            line: self.number,
            source,
        }
    }
}

fn invalid_import(why: impl Into<String>) -> Error {
    Error::invalid_argument("import", why)
}
