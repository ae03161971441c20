//! A codec that limits the memory of decoded messages. Messages from workers are scanned before
//! they are decoded: an empty part takes two bytes on the wire, and fifty times as much in memory.
//! A message whose parts would take far more memory than it has bytes is refused.

use std::any::TypeId;
use std::marker::PhantomData;
use std::mem::size_of;

use prost::Message;
use prost::bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder};
use tonic_prost::ProstCodec;

use crate::v1::{Lease, MatchResult, SeatResult, WorkerMessage};

/// The maximum ratio of the memory of a message's parts to its wire size. Results of four seats
/// without records have a ratio of 7, results of sixteen seats a ratio of 11.
const MAX_GROWTH: usize = 12;
/// The maximum memory of the parts in bytes, for large messages: their size comes from records.
const MAX_PARTS: usize = 12 << 20;

/// Protocol buffers like [`ProstCodec`], but messages of workers that would grow too much are
/// refused.
#[derive(Clone, Debug)]
pub struct BoundedCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for BoundedCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for BoundedCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = <ProstCodec<T, U> as Codec>::Encoder;
    type Decoder = BoundedDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::default().encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        BoundedDecoder(ProstCodec::<U, U>::default().decoder())
    }
}

/// The decoder of [`BoundedCodec`].
#[derive(Debug)]
pub struct BoundedDecoder<U: Message + Default + Send + 'static>(
    <ProstCodec<U, U> as Codec>::Decoder,
);

impl<U: Message + Default + Send + 'static> Decoder for BoundedDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        if TypeId::of::<U>() == TypeId::of::<WorkerMessage>() {
            let message = from.chunk();
            let length = from.remaining();
            if message.len() < length || grows_too_much(message) {
                return Err(Status::invalid_argument(
                    "the message has too many small parts: it would take far more memory than its \
                     size",
                ));
            }
        }
        self.0.decode(from)
    }

    fn buffer_settings(&self) -> BufferSettings {
        self.0.buffer_settings()
    }
}

/// Whether the parts of a [`WorkerMessage`] would take too much memory.
fn grows_too_much(message: &[u8]) -> bool {
    parts_memory(message) > MAX_PARTS.min(MAX_GROWTH.saturating_mul(message.len()))
}

/// The memory of the repeated parts of a [`WorkerMessage`], in bytes.
fn parts_memory(message: &[u8]) -> usize {
    let repeated = |part, size| move |field, _: &[u8]| if field == part { size } else { 0 };
    sum_fields(message, |field, value| match field {
        REPORT => sum_fields(value, |field, value| match field {
            RESULTS => size_of::<MatchResult>() + sum_fields(value, result_memory),
            TRIAL => sum_fields(value, repeated(WARNINGS, size_of::<String>())),
            _ => 0,
        }),
        RENEW_LEASES | RETURN_LEASES => sum_fields(value, repeated(LEASES, size_of::<Lease>())),
        _ => 0,
    })
}

/// The memory of the repeated parts in a field of a [`MatchResult`].
fn result_memory(field: u32, value: &[u8]) -> usize {
    let score = |field, packed: &[u8]| match field {
        // Packed or unpacked.
        SCORE => size_of::<i64>() * packed.len().max(1),
        _ => 0,
    };
    if field == SEATS { size_of::<SeatResult>() + sum_fields(value, score) } else { 0 }
}

// The numbers of these fields in `worker.proto`.
const REPORT: u32 = 3;
const RENEW_LEASES: u32 = 4;
const RETURN_LEASES: u32 = 5;
const RESULTS: u32 = 2;
const TRIAL: u32 = 4;
const WARNINGS: u32 = 6;
const SEATS: u32 = 2;
const SCORE: u32 = 1;
const LEASES: u32 = 1;

/// Adds up the memory of the fields of a message. `memory` gets the number of each field and its
/// value; the value is empty unless the field is length-delimited. Stops where decoding would fail.
fn sum_fields(mut message: &[u8], mut memory: impl FnMut(u32, &[u8]) -> usize) -> usize {
    let mut total: usize = 0;
    while let Some((field, value)) = next_field(&mut message) {
        total = total.saturating_add(memory(field, value));
    }
    total
}

/// Removes the next field from the start of a message and returns its number and value.
fn next_field<'a>(message: &mut &'a [u8]) -> Option<(u32, &'a [u8])> {
    if message.is_empty() {
        return None;
    }
    let (field, kind) = decode_key(message).ok()?;
    let length = match kind {
        WireType::Varint => {
            decode_varint(message).ok()?;
            return Some((field, &[]));
        }
        WireType::SixtyFourBit => 8,
        WireType::ThirtyTwoBit => 4,
        WireType::LengthDelimited => usize::try_from(decode_varint(message).ok()?).ok()?,
        // The decoder skips groups, which takes no memory.
        WireType::StartGroup | WireType::EndGroup => return Some((field, &[])),
    };
    let value = message.get(..length)?;
    *message = &message[length..];
    Some((field, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::worker_message::Payload;
    use crate::v1::{RenewLeases, Report};

    fn message(payload: Payload) -> Vec<u8> {
        WorkerMessage { payload: Some(payload) }.encode_to_vec()
    }

    fn report(results: Vec<MatchResult>) -> Vec<u8> {
        message(Payload::Report(Report { results, ..Report::default() }))
    }

    /// The shortest possible result.
    fn result(number: i64) -> MatchResult {
        let seat = SeatResult { score: vec![1], ..SeatResult::default() };
        let transcript = vec![7; 32];
        MatchResult { number, seats: vec![seat; 16], transcript, ..MatchResult::default() }
    }

    #[test]
    fn normal_messages_are_accepted() {
        assert!(!grows_too_much(&report((0..4096).map(result).collect())));
        let leases = vec![Lease { tournament: 1, lot: 1, attempt: 1 }; 4096];
        assert!(!grows_too_much(&message(Payload::RenewLeases(RenewLeases { leases }))));
        let large = MatchResult { record: vec![0; 4 << 20], ..result(0) };
        assert!(!grows_too_much(&report(vec![large; 4])));
    }

    #[test]
    fn messages_with_many_empty_parts_are_refused() {
        assert!(grows_too_much(&report(vec![MatchResult::default(); 1000])));
        let seats = vec![SeatResult::default(); 1000];
        assert!(grows_too_much(&report(vec![MatchResult { seats, ..MatchResult::default() }])));
        let seat = SeatResult { score: vec![1; 2 << 20], ..SeatResult::default() };
        assert!(grows_too_much(&report(vec![MatchResult {
            seats: vec![seat],
            ..MatchResult::default()
        }])));
        // Groups, and an unmatched end of a group, do not stop the scan.
        let mut bytes = vec![0x0b, 0x0c];
        bytes.extend(report(vec![MatchResult::default(); 1000]));
        bytes.push(0x1a);
        assert!(grows_too_much(&bytes));
    }
}
