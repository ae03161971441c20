//! Rows in the binary format of `COPY` (PostgreSQL documentation, "COPY", "Binary Format"): the
//! fastest way into a table.

use arbiter_proto::ids::EditionId;
use sqlx::{PgConnection, Result};

/// The header: the signature, no flags, no extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The trailer, in place of another row.
const TRAILER: i16 = -1;
/// The length that means null.
const NULL: i32 = -1;
/// The size at which a buffer is sent, in bytes.
const FULL: usize = 256 * 1024;
/// The same for rows with records. Rows without records fit into one piece, which is fastest.
const FULL_OF_RECORDS: usize = 4 << 20;
/// Bytes in one `COPY` statement. A server waits silently for the rows of a statement. Only the
/// time limit of the whole statement reveals that the sender stopped.
const PIECE: usize = 16 << 20;
/// The time limit of a piece.
const PIECE_TIME: &str = "SET LOCAL statement_timeout = '15s'";
/// Type numbers of array elements (`pg_type.dat`): these are part of the protocol.
const INT2: i32 = 21;
const INT4: i32 = 23;
const INT8: i32 = 20;

/// Rows to be copied, in the order of the statement's columns.
#[derive(Debug)]
pub(super) struct Rows {
    bytes: Vec<u8>,
}

impl Rows {
    /// No rows yet.
    pub(super) fn new() -> Self {
        Self { bytes: HEADER.to_vec() }
    }

    /// Begins a row of so many columns.
    pub(super) fn row(&mut self, columns: i16) -> &mut Self {
        self.put(&columns.to_be_bytes())
    }

    pub(super) fn int2(&mut self, value: i16) -> &mut Self {
        self.field(&value.to_be_bytes())
    }

    pub(super) fn int4(&mut self, value: i32) -> &mut Self {
        self.field(&value.to_be_bytes())
    }

    pub(super) fn int8(&mut self, value: i64) -> &mut Self {
        self.field(&value.to_be_bytes())
    }

    pub(super) fn flag(&mut self, value: bool) -> &mut Self {
        self.field(&[value.into()])
    }

    /// A text, an enumeration value, or bytes.
    pub(super) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.field(value)
    }

    /// Announces a value of this many bytes, which follow in separate parts.
    pub(super) fn begin_bytes(&mut self, length: u64) -> &mut Self {
        self.length(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// The bytes written until now.
    pub(super) fn part(&self) -> &[u8] {
        &self.bytes
    }

    /// The trailer.
    pub(super) fn end() -> &'static [u8] {
        const END: [u8; 2] = TRAILER.to_be_bytes();
        &END
    }

    /// A JSON value: its text after the number of the format.
    pub(super) fn jsonb(&mut self, value: &str) -> &mut Self {
        self.length(1 + value.len()).put(&[1]).put(value.as_bytes())
    }

    pub(super) fn null(&mut self) -> &mut Self {
        self.put(&NULL.to_be_bytes())
    }

    pub(super) fn int2s(&mut self, values: &[i16]) -> &mut Self {
        self.array(INT2, values, i16::to_be_bytes)
    }

    pub(super) fn int4s(&mut self, values: &[i32]) -> &mut Self {
        self.array(INT4, values, i32::to_be_bytes)
    }

    pub(super) fn int8s(&mut self, values: &[i64]) -> &mut Self {
        self.array(INT8, values, i64::to_be_bytes)
    }

    /// Numbers, some of which are null.
    pub(super) fn some_int8s(&mut self, values: &[Option<i64>]) -> &mut Self {
        let there = values.iter().flatten().count();
        self.length(20 + values.len() * 4 + there * 8);
        for word in [1, 1, INT8, small(values.len()), 1] {
            self.put(&word.to_be_bytes());
        }
        for value in values {
            match value {
                Some(value) => self.int8(*value),
                None => self.null(),
            };
        }
        self
    }

    /// An array of one dimension, numbered from 1: dimensions, whether something is missing in it,
    /// its type, then length and first number of the dimension, then the elements.
    fn array<T: Copy, const WIDTH: usize>(
        &mut self,
        element: i32,
        values: &[T],
        encode: impl Fn(T) -> [u8; WIDTH],
    ) -> &mut Self {
        self.length(20 + values.len() * (4 + WIDTH));
        for word in [1, 0, element, small(values.len()), 1] {
            self.put(&word.to_be_bytes());
        }
        for value in values {
            self.field(&encode(*value));
        }
        self
    }

    fn field(&mut self, value: &[u8]) -> &mut Self {
        self.length(value.len()).put(value)
    }

    fn length(&mut self, length: usize) -> &mut Self {
        self.put(&small(length).to_be_bytes())
    }

    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }
}

/// A length as the protocol has it.
fn small(length: usize) -> i32 {
    i32::try_from(length).expect("a value is far smaller than 2 GiB")
}

/// Something that is a row of a table of plans.
pub(super) trait Row {
    /// How rows are copied into the table.
    const COPY: &'static str;

    /// Writes the row for an edition, in the order of the statement's columns.
    fn write(&self, edition: EditionId, rows: &mut Rows);
}

/// Copies things into their table in pieces, in a transaction that is patient
/// ([`super::be_patient`]): they need not be in memory together. Returns how many there were.
pub(super) async fn stream<R: Row>(
    connection: &mut PgConnection,
    edition: EditionId,
    things: impl Iterator<Item = R>,
) -> Result<u64> {
    let mut things = things.peekable();
    let mut copied = 0;
    sqlx::raw_sql(PIECE_TIME).execute(&mut *connection).await?;
    while things.peek().is_some() {
        copied += stream_piece(&mut *connection, edition, &mut things).await?;
    }
    sqlx::raw_sql("SET LOCAL statement_timeout = 0").execute(connection).await?;
    Ok(copied)
}

/// Copies the next things, as many as go into one statement.
async fn stream_piece<R: Row>(
    connection: &mut PgConnection,
    edition: EditionId,
    things: &mut impl Iterator<Item = R>,
) -> Result<u64> {
    let mut to = connection.copy_in_raw(R::COPY).await?;
    let mut rows = Rows::new();
    let mut sent = 0;
    for thing in things {
        thing.write(edition, &mut rows);
        if rows.bytes.len() >= FULL {
            to.send(rows.bytes.as_slice()).await?;
            sent += rows.bytes.len();
            rows.bytes.clear();
            if sent >= PIECE {
                break;
            }
        }
    }
    rows.put(&TRAILER.to_be_bytes());
    to.send(rows.bytes.as_slice()).await?;
    to.finish().await
}

/// Copies things by one statement as they are written, so that their rows need not be in memory
/// together. Returns how many there were.
pub(super) async fn send<T: Send>(
    connection: &mut PgConnection,
    statement: &'static str,
    things: impl Iterator<Item = T> + Send,
    write: impl Fn(T, &mut Rows) + Send,
) -> Result<u64> {
    let mut to = connection.copy_in_raw(statement).await?;
    let mut rows = Rows::new();
    for thing in things {
        write(thing, &mut rows);
        if rows.bytes.len() >= FULL_OF_RECORDS {
            to.send(rows.bytes.as_slice()).await?;
            rows.bytes.clear();
        }
    }
    rows.put(&TRAILER.to_be_bytes());
    to.send(rows.bytes.as_slice()).await?;
    to.finish().await
}
