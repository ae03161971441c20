//! Reply times of bots, read from their records.
//!
//! Reply times are not counted during matches, because records have the time of each reply. A query
//! for a bot reads the records of its last few dozen matches, and the result is cached. The first
//! reply of a program that runs for the whole match includes its start-up. It is left out, as in
//! trials, because the clock does not charge it.

use std::io::{self, BufRead as _, Read as _};

use arbiter_games::Protocol;
use arbiter_proto::trial::ReplyTimeSummary;
use arbiter_replay::MAX_LINE;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Reading stops after this many replies.
const MAX_REPLIES: usize = 20_000;

/// The wall-clock times of replies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyTimes {
    /// The number of matches.
    pub matches: u32,
    /// The quantiles of the times, if there are any replies.
    pub replies: Option<ReplyTimeSummary>,
    /// A histogram: the upper bound of each bin in microseconds, and its number of replies. The
    /// bins are in ascending order. The first and the last are not empty.
    pub bins: Vec<(u64, u64)>,
}

/// Collects the reply times of one bot from its records.
#[derive(Clone, Debug, Default)]
pub struct ReplyTimesReader {
    matches: u32,
    times: Vec<u64>,
}

/// The part of the header that is read.
#[derive(Deserialize)]
struct Header {
    seats: Vec<SeatLine>,
}

#[derive(Deserialize)]
struct SeatLine {
    protocol: Protocol,
}

/// The part of the other lines that is read.
#[derive(Deserialize)]
struct Line {
    seat: Option<usize>,
    reply: Option<IgnoredAny>,
    reply_b64: Option<IgnoredAny>,
    wall_us: Option<u64>,
}

impl ReplyTimesReader {
    /// Whether no more replies are needed.
    pub fn is_full(&self) -> bool {
        self.times.len() >= MAX_REPLIES
    }

    /// Reads the replies of a seat, counted from 0, in a compressed record.
    pub fn read(&mut self, packed: &[u8], seat: usize) -> io::Result<()> {
        let mut lines = arbiter_replay::unpack(packed)?;
        let mut text = String::new();
        let mut read_line = |text: &mut String| {
            text.clear();
            lines.by_ref().take(MAX_LINE).read_line(text)
        };
        read_line(&mut text)?;
        let header: Header = serde_json::from_str(&text)?;
        let protocol = header.seats.get(seat).map(|seat| seat.protocol);
        let mut includes_startup = protocol != Some(Protocol::Exec);
        self.matches += 1;
        while read_line(&mut text)? > 0 && !self.is_full() {
            let Line { seat: seat_number, reply, reply_b64, wall_us } =
                serde_json::from_str(&text)?;
            let has_reply = reply.is_some() || reply_b64.is_some();
            let Some(time) = wall_us.filter(|_| has_reply && seat_number == Some(seat + 1)) else {
                continue;
            };
            if !std::mem::take(&mut includes_startup) {
                self.times.push(time);
            }
        }
        Ok(())
    }

    /// The statistics of the replies.
    pub fn finish(mut self) -> ReplyTimes {
        self.times.sort_unstable();
        let mut bins = Vec::new();
        let mut remaining = &self.times[..];
        for end in bin_bounds() {
            let count = remaining.partition_point(|time| *time <= end);
            remaining = &remaining[count..];
            if count > 0 || !bins.is_empty() {
                bins.push((end, count as u64));
            }
            if remaining.is_empty() {
                break;
            }
        }
        ReplyTimes { matches: self.matches, replies: ReplyTimeSummary::of(self.times), bins }
    }
}

/// The upper bounds of bins: 10, 20, 50, 100, 200, 500 µs, and so on up to 500 s. The last bin has
/// no bound.
fn bin_bounds() -> impl Iterator<Item = u64> {
    let decades = (1..=8).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u64.pow(power)));
    decades.chain([u64::MAX])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(protocols: [&str; 2], lines: &str) -> Vec<u8> {
        let [one, two] = protocols.map(|protocol| format!("{{\"protocol\":\"{protocol}\"}}"));
        let text = format!("{{\"record\":1,\"seats\":[{one},{two}]}}\n{lines}");
        zstd::encode_all(text.as_bytes(), 1).unwrap()
    }

    const LINES: &str = "{\"t\":1,\"seat\":1,\"send\":\"a\"}\n\
        {\"t\":2,\"seat\":1,\"reply\":\"x\",\"wall_us\":9000,\"cpu_us\":1}\n\
        {\"t\":3,\"seat\":2,\"reply\":\"y\",\"wall_us\":70,\"cpu_us\":1}\n\
        {\"t\":4,\"seat\":1,\"reply_b64\":\"/w==\",\"wall_us\":15,\"cpu_us\":1}\n\
        {\"t\":5,\"seat\":1,\"forfeit\":\"clock\",\"wall_us\":99,\"cpu_us\":1,\"detail\":\"\"}\n\
        {\"over\":true,\"scores\":[[1],[0]],\"forfeits\":[\"clock\",null]}\n";

    #[test]
    fn replies_are_counted_except_those_with_startup() {
        let mut reader = ReplyTimesReader::default();
        reader.read(&packed(["stdio", "exec"], LINES), 0).unwrap();
        assert_eq!(reader.times, [15], "the first reply and the forfeit are not counted");
        reader.read(&packed(["exec", "stdio"], LINES), 0).unwrap();
        assert_eq!(reader.times, [15, 9000, 15], "an executed bot starts for every reply");
        let times = reader.finish();
        assert_eq!((times.matches, times.replies.unwrap().count), (2, 3));
        assert_eq!(times.bins.first(), Some(&(20, 2)));
        assert_eq!(times.bins.last(), Some(&(10_000, 1)));
        assert_eq!(times.bins.iter().map(|(_, count)| count).sum::<u64>(), 3);
        assert_eq!(ReplyTimesReader::default().finish(), ReplyTimes::default());
    }

    #[test]
    fn a_malformed_record_is_an_error() {
        let mut reader = ReplyTimesReader::default();
        assert!(reader.read(b"noise", 0).is_err());
        assert!(reader.read(&zstd::encode_all(&b"{}\n"[..], 1).unwrap(), 0).is_err());
    }
}
