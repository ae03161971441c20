//! Where records may be kept instead of in the database: a store of objects that speaks S3, or a
//! directory.

use std::fs;
use std::ops::Range;
use std::path::{Path as File, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::ids::EditionId;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, ObjectStore, ObjectStoreExt as _, RetryConfig};
use thiserror::Error as ThisError;

use crate::db::record_objects::PackId;

/// How long something is tried again that the store refuses or does not answer. Workers keep their
/// reports and repeat them, so this need not be long.
const PATIENCE: Duration = Duration::from_secs(20);

/// A store for records.
#[derive(Clone, Debug)]
pub struct RecordStore {
    objects: Arc<dyn ObjectStore>,
    /// What comes before every key.
    prefix: Path,
    /// Where it is, for people.
    place: String,
}

/// Why records cannot be kept, read or removed there.
#[derive(Debug, ThisError)]
pub enum StoreError {
    /// The address means nothing.
    #[error("`{0}` is no place for records; write s3://BUCKET/PREFIX or file:///DIRECTORY")]
    Address(String),
    /// It cannot be used.
    #[error("cannot use {place} for records: {cause}")]
    Failed {
        /// Where it is.
        place: String,
        /// Why.
        cause: object_store::Error,
    },
    /// Its directory cannot be made.
    #[error("cannot make the directory {} for records: {cause}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// A record is in a store, and none is named.
    #[error("the record is in an object store; start the coordinator with --records")]
    Unnamed,
}

impl RecordStore {
    /// The store at an address, `s3://BUCKET/PREFIX` or `file:///DIRECTORY`. How to reach and to
    /// enter the former is read from the environment: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
    /// `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP` and their like.
    ///
    /// # Errors
    /// If it is no such address, or something is missing to use it. It is not tried yet.
    pub fn open(address: &str) -> Result<Self, StoreError> {
        let place = address.trim_end_matches('/').to_owned();
        if let Some(directory) = address.strip_prefix("file://").map(File::new) {
            if !directory.is_absolute() {
                return Err(StoreError::Address(place));
            }
            let failed = |cause| StoreError::Directory { directory: directory.to_owned(), cause };
            fs::create_dir_all(directory).map_err(failed)?;
            let objects = LocalFileSystem::new_with_prefix(directory)
                .map_err(|cause| StoreError::Failed { place: place.clone(), cause })?
                .with_automatic_cleanup(true)
                .with_fsync(true);
            return Ok(Self { objects: Arc::new(objects), prefix: Path::default(), place });
        }
        let rest = place.strip_prefix("s3://").unwrap_or_default();
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = Path::parse(prefix).map_err(|_| StoreError::Address(place.clone()))?;
        if bucket.is_empty() {
            return Err(StoreError::Address(place));
        }
        // Whoever was first to choose it for this process has chosen the same one.
        drop(rustls::crypto::ring::default_provider().install_default());
        let retry = RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: 5,
            retry_timeout: PATIENCE,
        };
        let objects = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
        let objects = objects.build();
        let objects =
            objects.map_err(|cause| StoreError::Failed { place: place.clone(), cause })?;
        Ok(Self { objects: Arc::new(objects), prefix, place })
    }

    /// Keeps the records of a pack. They are there for good when this returns.
    pub async fn put(
        &self,
        edition: EditionId,
        pack: PackId,
        records: Vec<u8>,
    ) -> Result<(), StoreError> {
        let key = self.key(edition, pack);
        let put = self.objects.put(&key, records.into()).await;
        put.map(drop).map_err(|cause| self.failed(cause))
    }

    /// A part of a pack.
    ///
    /// # Errors
    /// If there is no such pack, or the store fails.
    pub async fn get(
        &self,
        edition: EditionId,
        pack: PackId,
        range: Range<u64>,
    ) -> Result<Vec<u8>, StoreError> {
        let key = self.key(edition, pack);
        let found = self.objects.get_range(&key, range).await;
        Ok(found.map_err(|cause| self.failed(cause))?.into())
    }

    /// Removes a pack, if it is there.
    pub async fn remove(&self, edition: EditionId, pack: PackId) -> Result<(), StoreError> {
        match self.objects.delete(&self.key(edition, pack)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(cause) => Err(self.failed(cause)),
        }
    }

    /// The name of a pack: those of an edition lie together.
    fn key(&self, edition: EditionId, pack: PackId) -> Path {
        self.prefix.clone().join(edition.to_string()).join(pack.to_string())
    }

    fn failed(&self, cause: object_store::Error) -> StoreError {
        StoreError::Failed { place: self.place.clone(), cause }
    }
}
