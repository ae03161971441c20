//! Storage of records outside the database: an S3-compatible object store or a directory.

use std::fs;
use std::ops::Range;
use std::path::{Path as File, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::ids::TournamentId;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, ObjectStore, ObjectStoreExt as _, RetryConfig};
use thiserror::Error as ThisError;

use crate::db::record_objects::PackId;

/// How long failed requests to the store are retried. Workers keep their reports and send them
/// again, so this can be short.
const RETRY_TIMEOUT: Duration = Duration::from_secs(20);

/// A store of records. Records that were reported together form one object, a *pack*.
#[derive(Clone, Debug)]
pub struct RecordStore {
    objects: Arc<dyn ObjectStore>,
    /// The prefix of every key.
    prefix: Path,
    /// The address, for error messages.
    address: String,
}

/// Why the store cannot be used.
#[derive(Debug, ThisError)]
pub enum StoreError {
    /// The address has an unknown format.
    #[error("`{0}` is not an address for records; write s3://BUCKET/PREFIX or file:///DIRECTORY")]
    Address(String),
    /// A request failed.
    #[error("the record store {address} failed: {cause}")]
    Failed {
        /// The address of the store.
        address: String,
        /// The cause.
        cause: object_store::Error,
    },
    /// The directory cannot be created.
    #[error("cannot create the directory {} for records: {cause}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The cause.
        cause: std::io::Error,
    },
    /// A record is in a record store, but the coordinator was started without a record store.
    #[error("the record is in an object store; start the coordinator with --records")]
    NotConfigured,
}

impl RecordStore {
    /// The store at `s3://BUCKET/PREFIX` or `file:///DIRECTORY`. The endpoint and credentials of S3
    /// are read from the environment: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`,
    /// `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP` and similar variables.
    ///
    /// # Errors
    /// If the address has another format, or the configuration is incomplete. This does not connect
    /// to the store.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        let address = url.trim_end_matches('/').to_owned();
        if let Some(directory) = url.strip_prefix("file://").map(File::new) {
            if !directory.is_absolute() {
                return Err(StoreError::Address(address));
            }
            let failed = |cause| StoreError::Directory { directory: directory.to_owned(), cause };
            fs::create_dir_all(directory).map_err(failed)?;
            let objects = LocalFileSystem::new_with_prefix(directory)
                .map_err(|cause| StoreError::Failed { address: address.clone(), cause })?
                .with_automatic_cleanup(true)
                .with_fsync(true);
            return Ok(Self { objects: Arc::new(objects), prefix: Path::default(), address });
        }
        let rest = address.strip_prefix("s3://").unwrap_or_default();
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = Path::parse(prefix).map_err(|_| StoreError::Address(address.clone()))?;
        if bucket.is_empty() {
            return Err(StoreError::Address(address));
        }
        // This fails if the process already has a provider. That provider is the same.
        drop(rustls::crypto::ring::default_provider().install_default());
        let retry = RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: 5,
            retry_timeout: RETRY_TIMEOUT,
        };
        let builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
        let objects = builder
            .build()
            .map_err(|cause| StoreError::Failed { address: address.clone(), cause })?;
        Ok(Self { objects: Arc::new(objects), prefix, address })
    }

    /// Stores a pack durably.
    pub async fn put(
        &self,
        tournament: TournamentId,
        pack: PackId,
        records: Vec<u8>,
    ) -> Result<(), StoreError> {
        let key = self.key(tournament, pack);
        let result = self.objects.put(&key, records.into()).await;
        result.map(drop).map_err(|cause| self.failed(cause))
    }

    /// Reads a range of bytes of a pack.
    pub async fn get(
        &self,
        tournament: TournamentId,
        pack: PackId,
        range: Range<u64>,
    ) -> Result<Vec<u8>, StoreError> {
        let key = self.key(tournament, pack);
        let result = self.objects.get_range(&key, range).await;
        Ok(result.map_err(|cause| self.failed(cause))?.into())
    }

    /// Removes a pack, if it exists.
    pub async fn remove(&self, tournament: TournamentId, pack: PackId) -> Result<(), StoreError> {
        match self.objects.delete(&self.key(tournament, pack)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(cause) => Err(self.failed(cause)),
        }
    }

    /// The key of a pack. The packs of a tournament have a common prefix.
    fn key(&self, tournament: TournamentId, pack: PackId) -> Path {
        self.prefix.clone().join(tournament.to_string()).join(pack.to_string())
    }

    fn failed(&self, cause: object_store::Error) -> StoreError {
        StoreError::Failed { address: self.address.clone(), cause }
    }
}
