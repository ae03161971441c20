//! Rows in the binary format of `COPY` (PostgreSQL documentation, "COPY", "Binary Format"): the
//! fastest way into a table.

use arbiter_proto::ids::TournamentId;
use sqlx::{PgConnection, Result};

/// The header: the signature, no flags, no extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The trailer, in place of another row.
const TRAILER: i16 = -1;
/// The length that means null.
const NULL: i32 = -1;
/// The size at which a buffer is sent, in bytes.
const BUFFER_LEN: usize = 256 * 1024;
/// The same for rows with records, in bytes. A batch of rows without records fits into one buffer,
/// which is fastest.
const RECORD_BUFFER_LEN: usize = 4 << 20;
/// Bytes in one `COPY` statement: a statement that takes long shows that its sender has stopped
/// ([`super::stalled_copies`]).
const MAX_COPY_LEN: usize = 16 << 20;
/// Type numbers of array elements (`pg_type.dat`). They are part of the protocol.
const INT2: i32 = 21;
const INT4: i32 = 23;
const INT8: i32 = 20;

/// Rows to be copied, in the order of the statement's columns.
#[derive(Debug)]
pub(super) struct Rows {
    bytes: Vec<u8>,
}

impl Rows {
    /// An empty set of rows.
    pub(super) fn new() -> Self {
        Self { bytes: HEADER.to_vec() }
    }

    /// Begins a row with this number of columns.
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

    /// Begins a value of this many bytes. The caller sends the bytes separately.
    pub(super) fn begin_bytes(&mut self, length: u64) -> &mut Self {
        self.length(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// The bytes written until now.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The trailer.
    pub(super) fn end() -> &'static [u8] {
        const END: [u8; 2] = TRAILER.to_be_bytes();
        &END
    }

    /// A JSON value: the number of the format, then the text.
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
        let non_null = values.iter().flatten().count();
        self.length(20 + values.len() * 4 + non_null * 8);
        for number in [1, 1, INT8, to_i32(values.len()), 1] {
            self.put(&number.to_be_bytes());
        }
        for value in values {
            match value {
                Some(value) => self.int8(*value),
                None => self.null(),
            };
        }
        self
    }

    /// An array of one dimension: the number of dimensions, whether it contains nulls, the element
    /// type, the length of the dimension, its first index 1, then the elements.
    fn array<T: Copy, const WIDTH: usize>(
        &mut self,
        element: i32,
        values: &[T],
        encode: impl Fn(T) -> [u8; WIDTH],
    ) -> &mut Self {
        self.length(20 + values.len() * (4 + WIDTH));
        for number in [1, 0, element, to_i32(values.len()), 1] {
            self.put(&number.to_be_bytes());
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
        self.put(&to_i32(length).to_be_bytes())
    }

    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }
}

/// A length in the type of the protocol.
fn to_i32(length: usize) -> i32 {
    i32::try_from(length).expect("a value is far smaller than 2 GiB")
}

/// A value that is stored as a row of a table of plans.
pub(super) trait Row {
    /// The names of the columns, separated by commas.
    const COLUMNS: &'static str;

    /// Writes the row for a tournament, in the order of the columns.
    fn write(&self, tournament: TournamentId, rows: &mut Rows);
}

/// Copies values into this table with one or more statements, in a transaction without time limits
/// ([`super::lift_time_limits`]). The rows need not be in memory together. Returns the number of
/// rows.
pub(super) async fn stream<R: Row>(
    connection: &mut PgConnection,
    table: &str,
    tournament: TournamentId,
    values: impl Iterator<Item = R>,
) -> Result<u64> {
    let statement = format!("COPY {table} ({}) FROM STDIN (FORMAT binary)", R::COLUMNS);
    let mut values = values.peekable();
    let mut copied = 0;
    while values.peek().is_some() {
        copied += stream_piece(&mut *connection, &statement, tournament, &mut values).await?;
    }
    Ok(copied)
}

/// Copies the next values with one statement of about [`MAX_COPY_LEN`] bytes.
async fn stream_piece<R: Row>(
    connection: &mut PgConnection,
    statement: &str,
    tournament: TournamentId,
    values: &mut impl Iterator<Item = R>,
) -> Result<u64> {
    let mut copy = connection.copy_in_raw(statement).await?;
    let mut rows = Rows::new();
    let mut sent = 0;
    for value in values {
        value.write(tournament, &mut rows);
        if rows.bytes.len() >= BUFFER_LEN {
            copy.send(rows.bytes.as_slice()).await?;
            sent += rows.bytes.len();
            rows.bytes.clear();
            if sent >= MAX_COPY_LEN {
                break;
            }
        }
    }
    rows.put(&TRAILER.to_be_bytes());
    copy.send(rows.bytes.as_slice()).await?;
    copy.finish().await
}

/// Copies values with one statement. Rows are sent as they are written, so they need not be in
/// memory together. Returns the number of rows.
pub(super) async fn send<T: Send>(
    connection: &mut PgConnection,
    statement: &'static str,
    values: impl Iterator<Item = T> + Send,
    write: impl Fn(T, &mut Rows) + Send,
) -> Result<u64> {
    let mut copy = connection.copy_in_raw(statement).await?;
    let mut rows = Rows::new();
    for value in values {
        write(value, &mut rows);
        if rows.bytes.len() >= RECORD_BUFFER_LEN {
            copy.send(rows.bytes.as_slice()).await?;
            rows.bytes.clear();
        }
    }
    rows.put(&TRAILER.to_be_bytes());
    copy.send(rows.bytes.as_slice()).await?;
    copy.finish().await
}
