//! Versions: the successive submissions of a bot, with their bundles.

use std::fs::File;
use std::io::Read as _;

use arbiter_proto::ids::{BotId, TournamentId, VersionId};
use sqlx::{FromRow, PgConnection, PgExecutor, Result};
use time::OffsetDateTime;

use super::binary_copy::Rows;

/// The size of the pieces in which a bundle is read, in bytes.
const PIECE_LEN: usize = 256 << 10;

/// A version.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Version {
    /// Its identity.
    pub id: VersionId,
    /// Its bot.
    pub bot: BotId,
    /// Its number, from 1.
    pub number: i32,
    /// BLAKE3 of its bundle.
    pub digest: Vec<u8>,
    /// When it was submitted. In a tie the earlier version ranks higher.
    pub submitted_at: OffsetDateTime,
}

/// Stores a bundle, unless it exists already.
pub async fn store_bundle(db: impl PgExecutor<'_>, digest: &[u8; 32], bytes: &[u8]) -> Result<()> {
    let statement =
        "INSERT INTO bundles (digest, bytes) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING";
    sqlx::query(statement).bind(digest.as_slice()).bind(bytes).execute(db).await.map(drop)
}

/// Stores a bundle of `size` bytes read from a file, piece by piece, unless it exists already.
pub async fn copy_bundle_in(
    connection: &mut PgConnection,
    digest: &[u8; 32],
    size: u64,
    mut file: File,
) -> Result<()> {
    let statement = "SELECT EXISTS (SELECT FROM bundles WHERE digest = $1)";
    let query = sqlx::query_scalar(statement).bind(digest.as_slice());
    if query.fetch_one(&mut *connection).await? {
        return Ok(());
    }
    let mut header = Rows::new();
    header.row(2).bytes(digest).begin_bytes(size);
    let statement = "COPY bundles (digest, bytes) FROM STDIN (FORMAT binary)";
    let mut copy = connection.copy_in_raw(statement).await?;
    copy.send(header.as_bytes()).await?;
    let mut piece = vec![0; PIECE_LEN];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            count => drop(copy.send(&piece[..count]).await?),
        }
    }
    copy.send(Rows::end()).await?;
    copy.finish().await.map(drop)
}

/// The size of the bundle with this digest in bytes, if it exists.
pub async fn bundle_size(db: impl PgExecutor<'_>, digest: &[u8; 32]) -> Result<Option<usize>> {
    let statement = "SELECT octet_length(bytes) FROM bundles WHERE digest = $1";
    let query = sqlx::query_scalar(statement).bind(digest.as_slice());
    let size: Option<i32> = query.fetch_optional(db).await?;
    Ok(size.map(|size| usize::try_from(size).unwrap_or(0)))
}

/// At most `length` bytes of a bundle, from `offset` on.
pub async fn bundle_piece(
    db: impl PgExecutor<'_>,
    digest: &[u8; 32],
    offset: usize,
    length: usize,
) -> Result<Vec<u8>> {
    // SQL counts bytes from 1.
    let statement = "SELECT substring(bytes FROM $2 FOR $3) FROM bundles WHERE digest = $1";
    let first = i32::try_from(offset + 1).unwrap_or(i32::MAX);
    let length = i32::try_from(length).unwrap_or(i32::MAX);
    let query = sqlx::query_scalar(statement).bind(digest.as_slice()).bind(first).bind(length);
    query.fetch_one(db).await
}

/// Makes a stored bundle the next version of a bot.
///
/// # Errors
/// If the bundle is not stored, or another version was submitted at the same moment.
pub async fn submit(
    db: impl PgExecutor<'_>,
    bot: BotId,
    digest: &[u8; 32],
    now: OffsetDateTime,
) -> Result<VersionId> {
    let statement = "
        INSERT INTO versions (bot, number, digest, submitted_at)
        SELECT $1, coalesce(max(number), 0) + 1, $2, $3 FROM versions WHERE bot = $1
        RETURNING id";
    let query = sqlx::query_scalar(statement).bind(bot).bind(digest.as_slice()).bind(now);
    query.fetch_one(db).await
}

/// The entered versions `v` of the active bots of the tournament `$1`.
macro_rules! entered {
    () => {
        "FROM versions v
        JOIN bots b ON b.id = v.bot
        LEFT JOIN trials t ON t.version = v.id
        WHERE b.tournament = $1 AND b.withdrawn_at IS NULL
          AND v.id > coalesce(b.stood_down_version, 0)
          AND (t.state IS NULL OR t.state = 'passed')"
    };
}

/// The newest entered version of each active bot of a tournament, in the order of the bots' first
/// submissions. A version that waits for its trial or failed it has not entered.
pub async fn newest(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Vec<Version>> {
    let statement =
        concat!("SELECT DISTINCT ON (v.bot) v.* ", entered!(), " ORDER BY v.bot, v.number DESC");
    sqlx::query_as(statement).bind(tournament).fetch_all(db).await
}

/// The bots of [`newest`], in the same order.
pub async fn entered_bots(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Vec<BotId>> {
    let statement = concat!("SELECT DISTINCT v.bot ", entered!(), " ORDER BY v.bot");
    sqlx::query_scalar(statement).bind(tournament).fetch_all(db).await
}

/// The times at which an owner submitted versions to a tournament after a moment: at most `limit`,
/// newest first.
pub async fn of_owner(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    owner: i32,
    after: OffsetDateTime,
    limit: u32,
) -> Result<Vec<OffsetDateTime>> {
    let statement = "
        SELECT v.submitted_at FROM bots b JOIN versions v ON v.bot = b.id
        WHERE b.owner = $1 AND b.tournament = $2 AND v.submitted_at > $3
        ORDER BY v.submitted_at DESC LIMIT $4";
    let query = sqlx::query_scalar(statement).bind(owner).bind(tournament).bind(after);
    query.bind(i64::from(limit)).fetch_all(db).await
}
