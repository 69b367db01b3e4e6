//! A disk that forgets: what it may hold when the power is cut.
//!
//! What was written is sure to be there only after a sync of its file, and a file is sure to be
//! found, or to be gone, only after a sync of its directory. Until then anything may be there, in
//! any order: nothing of it, some of it, some sectors of some of it.

use std::collections::BTreeMap;

use crate::random_operations::Chance;
use crate::strace::Call;

/// What a disk writes whole.
const SECTOR: usize = 512;

/// Whether the disk does what a sync asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syncs {
    Obeyed,
    /// As if nobody had asked: every promise about power cuts must break then.
    Ignored,
}

/// How much of what is not synced survives.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Survives {
    Nothing,
    SomeWrites,
    SomeSectors,
}

impl Survives {
    pub(crate) const ALL: [Self; 3] = [Self::Nothing, Self::SomeWrites, Self::SomeSectors];
}

enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

#[derive(Default)]
struct File {
    sure: Vec<u8>,
    unsure: Vec<Change>,
}

/// A directory on the disk.
pub(crate) struct Disk {
    syncs: Syncs,
    files: Vec<File>,
    /// Which file a name stands for, to the running system and on the disk.
    names: BTreeMap<String, usize>,
    sure: BTreeMap<String, usize>,
    unsure: Vec<(String, Option<usize>)>,
}

impl Disk {
    pub(crate) fn new(syncs: Syncs) -> Self {
        Self {
            syncs,
            files: Vec::new(),
            names: BTreeMap::new(),
            sure: BTreeMap::new(),
            unsure: Vec::new(),
        }
    }

    /// Carries a call out.
    pub(crate) fn carry_out(&mut self, call: &Call) {
        match call {
            Call::Open(name) => {
                if !self.names.contains_key(name) {
                    self.rename(name, Some(self.files.len()));
                    self.files.push(File::default());
                }
            }
            Call::Remove(name) => self.rename(name, None),
            Call::Write(name, at, bytes) => {
                let change = Change::Write(*at, bytes.clone());
                self.file(name).unsure.push(change);
            }
            Call::Truncate(name, length) => {
                self.file(name).unsure.push(Change::Truncate(*length));
            }
            Call::Sync(name) if self.syncs == Syncs::Obeyed => {
                let file = self.file(name);
                for change in std::mem::take(&mut file.unsure) {
                    change.apply(&mut file.sure, &mut |_| true);
                }
            }
            Call::SyncDirectory if self.syncs == Syncs::Obeyed => {
                for (name, file) in std::mem::take(&mut self.unsure) {
                    set(&mut self.sure, name, file);
                }
            }
            Call::Sync(_) | Call::SyncDirectory | Call::Elsewhere(_) | Call::Say(_) => {}
        }
    }

    fn file(&mut self, name: &str) -> &mut File {
        &mut self.files[self.names[name]]
    }

    fn rename(&mut self, name: &str, file: Option<usize>) {
        set(&mut self.names, name.to_owned(), file);
        self.unsure.push((name.to_owned(), file));
    }

    /// What is found after a power cut now.
    pub(crate) fn cut(&self, survives: Survives, chance: &mut Chance) -> BTreeMap<String, Vec<u8>> {
        let mut names = self.sure.clone();
        for (name, file) in &self.unsure {
            if !matches!(survives, Survives::Nothing) && chance.toss() {
                set(&mut names, name.clone(), *file);
            }
        }
        let found = names.into_iter().map(|(name, file)| {
            let file = &self.files[file];
            let mut bytes = file.sure.clone();
            for change in &file.unsure {
                match survives {
                    Survives::Nothing => {}
                    Survives::SomeWrites => {
                        let whole = chance.toss();
                        change.apply(&mut bytes, &mut |_| whole);
                    }
                    Survives::SomeSectors => change.apply(&mut bytes, &mut |_| chance.toss()),
                }
            }
            (name, bytes)
        });
        found.collect()
    }
}

impl Change {
    /// Applies those sectors, by their number in the file, that survive; a new length is one.
    fn apply(&self, bytes: &mut Vec<u8>, survives: &mut dyn FnMut(usize) -> bool) {
        match self {
            Self::Truncate(length) => {
                if survives(length / SECTOR) {
                    bytes.resize(*length, 0);
                }
            }
            Self::Write(at, new) => {
                let (mut from, end) = (*at, at + new.len());
                while from < end {
                    let to = end.min((from / SECTOR + 1) * SECTOR);
                    if survives(from / SECTOR) {
                        if bytes.len() < to {
                            bytes.resize(to, 0);
                        }
                        bytes[from..to].copy_from_slice(&new[from - at..to - at]);
                    }
                    from = to;
                }
            }
        }
    }
}

fn set(names: &mut BTreeMap<String, usize>, name: String, file: Option<usize>) {
    match file {
        Some(file) => names.insert(name, file),
        None => names.remove(&name),
    };
}
