//! Copies as objects, in any storage that the crate `object_store` supports: a bucket, a folder, memory.
//!
//! The program chooses the providers: it depends on `object_store` with the features it wants and passes the store in.
//! An object has only the time of its last write, so that is when a text counts as created and used; reading changes
//! nothing.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{Error as ObjectError, ObjectMeta, ObjectStore, ObjectStoreExt as _};

use crate::copy_key::{CopyKey, CopyScope};
use crate::error::OffloadError;
use crate::name::{CopyFileKind, file_name, parse_file_name, parse_folder_digest};
use crate::store::{
    CopyKind, CopyMetadata, CopyStats, OffloadStore, PutOutcome, Reconciled, clamp_range,
};

/// Copies as objects below a prefix.
#[derive(Clone, Debug)]
pub struct ObjectOffloadStore {
    objects: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl ObjectOffloadStore {
    /// Creates a store below `prefix`, which may be empty.
    ///
    /// # Errors
    /// [`OffloadError::Storage`] if the prefix is not a valid object path.
    pub fn new(objects: Arc<dyn ObjectStore>, prefix: &str) -> Result<Self, OffloadError> {
        let parsed = Path::parse(prefix);
        let prefix =
            parsed.map_err(|error| OffloadError::storage_error("use the prefix", prefix, error))?;
        Ok(Self { objects, prefix })
    }

    fn copy_path(&self, key: &CopyKey, kind: CopyFileKind) -> Path {
        let [owner, conversation] = key.folder_digests();
        let folder = self.scope_prefix(&CopyScope::Conversation(owner, conversation));
        Path::from(format!("{folder}/{}", file_name(key.content_hash(), kind)))
    }

    fn scope_prefix(&self, scope: &CopyScope) -> Path {
        let prefix = &self.prefix;
        match scope {
            CopyScope::All => prefix.clone(),
            CopyScope::Owner(owner) => Path::from(format!("{prefix}/{owner}")),
            CopyScope::Conversation(owner, conversation) => {
                Path::from(format!("{prefix}/{owner}/{conversation}"))
            }
        }
    }

    /// Lists our objects in a scope, and counts foreign ones.
    async fn list_objects(
        &self,
        scope: &CopyScope,
    ) -> Result<(Vec<(CopyKey, CopyFileKind, ObjectMeta)>, u64), OffloadError> {
        let folder = self.scope_prefix(scope);
        let all: Vec<ObjectMeta> = self
            .objects
            .list(Some(&folder))
            .try_collect()
            .await
            .map_err(|error| OffloadError::storage_error("list", &folder, error))?;
        let count = all.len();
        let read = |meta: ObjectMeta| {
            let (key, kind) = self.parse_location(&meta.location)?;
            Some((key, kind, meta))
        };
        let ours: Vec<_> = all.into_iter().filter_map(read).collect();
        let foreign = (count - ours.len()) as u64;
        Ok((ours, foreign))
    }

    fn parse_location(&self, location: &Path) -> Option<(CopyKey, CopyFileKind)> {
        let mut parts = location.prefix_match(&self.prefix)?;
        let owner = parse_folder_digest(parts.next()?.as_ref())?;
        let conversation = parse_folder_digest(parts.next()?.as_ref())?;
        let (content, kind) = parse_file_name(parts.next()?.as_ref())?;
        let key = CopyKey::from_digests(owner, conversation, content);
        parts.next().is_none().then_some((key, kind))
    }

    /// Returns the metadata and the path of a copy.
    async fn find_copy(&self, key: &CopyKey) -> Result<(CopyMetadata, Path), OffloadError> {
        for kind in CopyFileKind::ALL {
            let path = self.copy_path(key, kind);
            match (self.objects.head(&path).await, kind) {
                (Ok(meta), CopyFileKind::Stored(holding)) => {
                    return Ok((copy_metadata(key, holding, &meta), path));
                }
                (Ok(_), CopyFileKind::Tombstone) => {
                    return Err(OffloadError::Evicted { key: *key });
                }
                (Err(ObjectError::NotFound { .. }), _) => {}
                (Err(error), _) => {
                    return Err(OffloadError::storage_error("look for", &path, error));
                }
            }
        }
        Err(OffloadError::NotFound { key: *key })
    }

    async fn fetch_bytes(&self, path: &Path) -> Result<Bytes, ObjectError> {
        self.objects.get(path).await?.bytes().await
    }

    /// Deletes an object; a missing object is no error.
    async fn delete_if_present(&self, path: &Path) -> Result<(), OffloadError> {
        match self.objects.delete(path).await {
            Ok(()) | Err(ObjectError::NotFound { .. }) => Ok(()),
            Err(error) => Err(OffloadError::storage_error("delete", path, error)),
        }
    }

    async fn put_object(&self, path: &Path, text: Bytes) -> Result<(), OffloadError> {
        let put = self.objects.put(path, text.into()).await;
        put.map_err(|error| OffloadError::storage_error("write", path, error))?;
        Ok(())
    }
}

fn copy_metadata(key: &CopyKey, holding: CopyKind, meta: &ObjectMeta) -> CopyMetadata {
    let at = meta.last_modified.timestamp_millis();
    CopyMetadata {
        key: *key,
        bytes: meta.size,
        copy_kind: holding,
        created_ms: at,
        used_ms: at,
    }
}

#[async_trait]
impl OffloadStore for ObjectOffloadStore {
    async fn put_copy(
        &self,
        key: &CopyKey,
        text: Bytes,
        holding: CopyKind,
        _at_ms: i64,
    ) -> Result<PutOutcome, OffloadError> {
        let found = match self.find_copy(key).await {
            Ok(found) => Some(found),
            Err(OffloadError::NotFound { .. } | OffloadError::Evicted { .. }) => None,
            Err(error) => return Err(error),
        };
        let holding = found
            .as_ref()
            .map_or(holding, |(entry, _)| entry.copy_kind.max(holding));
        let path = self.copy_path(key, CopyFileKind::Stored(holding));
        let mut put = PutOutcome::New;
        if let Some((_, old)) = &found {
            let same = matches!(self.fetch_bytes(old).await, Ok(bytes) if bytes == text);
            if same && *old == path {
                return Ok(PutOutcome::Known);
            }
            put = if same {
                PutOutcome::Known
            } else {
                PutOutcome::Repaired
            };
        }
        self.put_object(&path, text).await?;
        for kind in CopyFileKind::ALL
            .into_iter()
            .filter(|kind| *kind != CopyFileKind::Stored(holding))
        {
            self.delete_if_present(&self.copy_path(key, kind)).await?;
        }
        Ok(put)
    }

    async fn read_copy(
        &self,
        key: &CopyKey,
        range: Option<Range<u64>>,
        _at_ms: i64,
    ) -> Result<Bytes, OffloadError> {
        let (entry, path) = self.find_copy(key).await?;
        let whole = range.is_none();
        let range = clamp_range(range, entry.bytes);
        let read = match range.is_empty() {
            true => Ok(Bytes::new()),
            false if whole => self.fetch_bytes(&path).await,
            false => self.objects.get_range(&path, range).await,
        };
        read.map_err(|error| match error {
            ObjectError::NotFound { .. } => OffloadError::NotFound { key: *key },
            error => OffloadError::storage_error("read", &path, error),
        })
    }

    async fn stat(&self, key: &CopyKey) -> Result<CopyMetadata, OffloadError> {
        Ok(self.find_copy(key).await?.0)
    }

    async fn list_copies(&self, scope: &CopyScope) -> Result<Vec<CopyMetadata>, OffloadError> {
        let (ours, _) = self.list_objects(scope).await?;
        let mut entries = BTreeMap::new();
        for (key, kind, meta) in ours {
            if let CopyFileKind::Stored(holding) = kind {
                let entry = copy_metadata(&key, holding, &meta);
                // A crash while a copy became the only one may have left both.
                let known: &mut CopyMetadata = entries.entry(key).or_insert(entry);
                if known.copy_kind < holding {
                    *known = entry;
                }
            }
        }
        Ok(entries.into_values().collect())
    }

    async fn evict_copy(&self, key: &CopyKey, _at_ms: i64) -> Result<bool, OffloadError> {
        let path = match self.find_copy(key).await {
            Ok((_, path)) => path,
            Err(OffloadError::NotFound { .. } | OffloadError::Evicted { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        self.put_object(&self.copy_path(key, CopyFileKind::Tombstone), Bytes::new())
            .await?;
        self.delete_if_present(&path).await?;
        Ok(true)
    }

    async fn clear_scope(&self, scope: &CopyScope) -> Result<u64, OffloadError> {
        let count = self.list_copies(scope).await?.len() as u64;
        for (_, _, meta) in self.list_objects(scope).await?.0 {
            self.delete_if_present(&meta.location).await?;
        }
        Ok(count)
    }

    async fn reconcile(&self, _at_ms: i64) -> Result<Reconciled, OffloadError> {
        let (_, foreign) = self.list_objects(&CopyScope::All).await?;
        Ok(Reconciled {
            stats: CopyStats::from_copies(&self.list_copies(&CopyScope::All).await?),
            unfinished: 0,
            foreign,
        })
    }
}
