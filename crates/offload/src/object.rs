//! Copies as objects, in whatever the crate `object_store` reaches: a bucket, a folder, memory.
//!
//! Which clouds are there is the program's choice: it depends on `object_store` with the features it wants and hands
//! the store in. An object keeps its own time, so a text was put and used when the object was last written; reading
//! changes nothing.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{Error as ObjectError, ObjectMeta, ObjectStore, ObjectStoreExt as _};

use crate::error::OffloadError;
use crate::key::{Key, Scope};
use crate::name::{Kind, folder, name, read};
use crate::store::{Entry, Holding, OffloadStore, Put, Reconciled, Stats, within};

/// Copies as objects below a prefix.
#[derive(Clone, Debug)]
pub struct ObjectOffloadStore {
    objects: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl ObjectOffloadStore {
    /// Copies below `prefix`, which may be empty.
    ///
    /// # Errors
    /// [`OffloadError::Storage`] for a prefix that is no path of an object.
    pub fn new(objects: Arc<dyn ObjectStore>, prefix: &str) -> Result<Self, OffloadError> {
        let parsed = Path::parse(prefix);
        let prefix =
            parsed.map_err(|error| OffloadError::storage("use the prefix", prefix, error))?;
        Ok(Self { objects, prefix })
    }

    fn path(&self, key: &Key, kind: Kind) -> Path {
        let [owner, conversation] = key.folders();
        let folder = self.folder(&Scope::Conversation(owner, conversation));
        Path::from(format!("{folder}/{}", name(key.content(), kind)))
    }

    fn folder(&self, scope: &Scope) -> Path {
        let prefix = &self.prefix;
        match scope {
            Scope::All => prefix.clone(),
            Scope::Owner(owner) => Path::from(format!("{prefix}/{owner}")),
            Scope::Conversation(owner, conversation) => {
                Path::from(format!("{prefix}/{owner}/{conversation}"))
            }
        }
    }

    /// What is ours of a scope, and how much is not.
    async fn walk(
        &self,
        scope: &Scope,
    ) -> Result<(Vec<(Key, Kind, ObjectMeta)>, u64), OffloadError> {
        let folder = self.folder(scope);
        let all: Vec<ObjectMeta> = self
            .objects
            .list(Some(&folder))
            .try_collect()
            .await
            .map_err(|error| OffloadError::storage("list", &folder, error))?;
        let count = all.len();
        let read = |meta: ObjectMeta| {
            let (key, kind) = self.read(&meta.location)?;
            Some((key, kind, meta))
        };
        let ours: Vec<_> = all.into_iter().filter_map(read).collect();
        let foreign = (count - ours.len()) as u64;
        Ok((ours, foreign))
    }

    fn read(&self, location: &Path) -> Option<(Key, Kind)> {
        let mut parts = location.prefix_match(&self.prefix)?;
        let owner = folder(parts.next()?.as_ref())?;
        let conversation = folder(parts.next()?.as_ref())?;
        let (content, kind) = read(parts.next()?.as_ref())?;
        let key = Key::of(owner, conversation, content);
        parts.next().is_none().then_some((key, kind))
    }

    /// What is known of a text.
    async fn find(&self, key: &Key) -> Result<(Entry, Path), OffloadError> {
        for kind in Kind::ALL {
            let path = self.path(key, kind);
            match (self.objects.head(&path).await, kind) {
                (Ok(meta), Kind::Held(holding)) => return Ok((entry(key, holding, &meta), path)),
                (Ok(_), Kind::Gone) => return Err(OffloadError::Evicted { key: *key }),
                (Err(ObjectError::NotFound { .. }), _) => {}
                (Err(error), _) => return Err(OffloadError::storage("look for", &path, error)),
            }
        }
        Err(OffloadError::NotFound { key: *key })
    }

    async fn bytes(&self, path: &Path) -> Result<Bytes, ObjectError> {
        self.objects.get(path).await?.bytes().await
    }

    /// Deletes an object; that it is not there is as good.
    async fn delete(&self, path: &Path) -> Result<(), OffloadError> {
        match self.objects.delete(path).await {
            Ok(()) | Err(ObjectError::NotFound { .. }) => Ok(()),
            Err(error) => Err(OffloadError::storage("delete", path, error)),
        }
    }

    async fn write(&self, path: &Path, text: Bytes) -> Result<(), OffloadError> {
        let put = self.objects.put(path, text.into()).await;
        put.map_err(|error| OffloadError::storage("write", path, error))?;
        Ok(())
    }
}

fn entry(key: &Key, holding: Holding, meta: &ObjectMeta) -> Entry {
    let at = meta.last_modified.timestamp_millis();
    Entry {
        key: *key,
        bytes: meta.size,
        holding,
        created_ms: at,
        used_ms: at,
    }
}

#[async_trait]
impl OffloadStore for ObjectOffloadStore {
    async fn put(
        &self,
        key: &Key,
        text: Bytes,
        holding: Holding,
        _at_ms: i64,
    ) -> Result<Put, OffloadError> {
        let found = match self.find(key).await {
            Ok(found) => Some(found),
            Err(OffloadError::NotFound { .. } | OffloadError::Evicted { .. }) => None,
            Err(error) => return Err(error),
        };
        let holding = found
            .as_ref()
            .map_or(holding, |(entry, _)| entry.holding.max(holding));
        let path = self.path(key, Kind::Held(holding));
        let mut put = Put::New;
        if let Some((_, old)) = &found {
            let same = matches!(self.bytes(old).await, Ok(bytes) if bytes == text);
            if same && *old == path {
                return Ok(Put::Known);
            }
            put = if same { Put::Known } else { Put::Repaired };
        }
        self.write(&path, text).await?;
        for kind in Kind::ALL
            .into_iter()
            .filter(|kind| *kind != Kind::Held(holding))
        {
            self.delete(&self.path(key, kind)).await?;
        }
        Ok(put)
    }

    async fn get(
        &self,
        key: &Key,
        range: Option<Range<u64>>,
        _at_ms: i64,
    ) -> Result<Bytes, OffloadError> {
        let (entry, path) = self.find(key).await?;
        let whole = range.is_none();
        let range = within(range, entry.bytes);
        let read = match range.is_empty() {
            true => Ok(Bytes::new()),
            false if whole => self.bytes(&path).await,
            false => self.objects.get_range(&path, range).await,
        };
        read.map_err(|error| match error {
            ObjectError::NotFound { .. } => OffloadError::NotFound { key: *key },
            error => OffloadError::storage("read", &path, error),
        })
    }

    async fn stat(&self, key: &Key) -> Result<Entry, OffloadError> {
        Ok(self.find(key).await?.0)
    }

    async fn list(&self, scope: &Scope) -> Result<Vec<Entry>, OffloadError> {
        let (ours, _) = self.walk(scope).await?;
        let mut entries = BTreeMap::new();
        for (key, kind, meta) in ours {
            if let Kind::Held(holding) = kind {
                let entry = entry(&key, holding, &meta);
                // A crash while a copy became the only one may have left both.
                let known: &mut Entry = entries.entry(key).or_insert(entry);
                if known.holding < holding {
                    *known = entry;
                }
            }
        }
        Ok(entries.into_values().collect())
    }

    async fn evict(&self, key: &Key, _at_ms: i64) -> Result<bool, OffloadError> {
        let path = match self.find(key).await {
            Ok((_, path)) => path,
            Err(OffloadError::NotFound { .. } | OffloadError::Evicted { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        self.write(&self.path(key, Kind::Gone), Bytes::new())
            .await?;
        self.delete(&path).await?;
        Ok(true)
    }

    async fn clear(&self, scope: &Scope) -> Result<u64, OffloadError> {
        let count = self.list(scope).await?.len() as u64;
        for (_, _, meta) in self.walk(scope).await?.0 {
            self.delete(&meta.location).await?;
        }
        Ok(count)
    }

    async fn reconcile(&self, _at_ms: i64) -> Result<Reconciled, OffloadError> {
        let (_, foreign) = self.walk(&Scope::All).await?;
        Ok(Reconciled {
            stats: Stats::of(&self.list(&Scope::All).await?),
            unfinished: 0,
            foreign,
        })
    }
}
