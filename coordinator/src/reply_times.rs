//! How long bots take to answer, as their records say.
//!
//! Nothing is counted while matches are played: the record of a match holds what each answer took.
//! Who asks about a bot has the records of its last matches read, a few dozen at most, and what
//! came of it is kept. The first answer of a program that stands by includes its start, which the
//! clock does not charge either: it is left out, as in trials.

use std::io::{self, BufRead as _, Read as _};

use arbiter_games::Protocol;
use arbiter_proto::trial::ReplyTimeSummary;
use arbiter_replay::LONGEST_LINE;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// So many answers are enough: records are not read on behind them.
const ENOUGH: usize = 20_000;

/// How long answers took on the wall.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyTimes {
    /// In how many matches.
    pub matches: u32,
    /// What they come to, if there were any.
    pub replies: Option<ReplyTimeSummary>,
    /// How many took no longer than so many microseconds, and longer than the bin before: the
    /// shortest first, from the first bin with any to the last.
    pub bins: Vec<(u64, u64)>,
}

/// Answers, as records of one bot are read one after the other.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    matches: u32,
    times: Vec<u64>,
}

/// What is looked at of the header.
#[derive(Deserialize)]
struct Header {
    seats: Vec<SeatLine>,
}

#[derive(Deserialize)]
struct SeatLine {
    protocol: Protocol,
}

/// What is looked at of any other line.
#[derive(Deserialize)]
struct Line {
    seat: Option<usize>,
    reply: Option<IgnoredAny>,
    reply_b64: Option<IgnoredAny>,
    wall_us: Option<u64>,
}

impl Reading {
    /// Whether there are enough answers.
    pub fn is_enough(&self) -> bool {
        self.times.len() >= ENOUGH
    }

    /// Reads what a seat, from 0, answered in the match of a record, compressed as it is stored.
    pub fn read(&mut self, packed: &[u8], seat: usize) -> io::Result<()> {
        let mut lines = arbiter_replay::unpack(packed)?;
        let mut text = String::new();
        let mut line = |text: &mut String| {
            text.clear();
            lines.by_ref().take(LONGEST_LINE).read_line(text)
        };
        line(&mut text)?;
        let header: Header = serde_json::from_str(&text)?;
        let protocol = header.seats.get(seat).map(|seat| seat.protocol);
        let mut starts = protocol != Some(Protocol::Exec);
        self.matches += 1;
        while line(&mut text)? > 0 && !self.is_enough() {
            let Line { seat: whose, reply, reply_b64, wall_us } = serde_json::from_str(&text)?;
            let replied = reply.is_some() || reply_b64.is_some();
            let Some(time) = wall_us.filter(|_| replied && whose == Some(seat + 1)) else {
                continue;
            };
            if !std::mem::take(&mut starts) {
                self.times.push(time);
            }
        }
        Ok(())
    }

    /// What the answers come to.
    pub fn finish(mut self) -> ReplyTimes {
        self.times.sort_unstable();
        let mut bins = Vec::new();
        let mut rest = &self.times[..];
        for end in ends() {
            let count = rest.partition_point(|time| *time <= end);
            rest = &rest[count..];
            if count > 0 || !bins.is_empty() {
                bins.push((end, count as u64));
            }
            if rest.is_empty() {
                break;
            }
        }
        ReplyTimes { matches: self.matches, replies: ReplyTimeSummary::of(self.times), bins }
    }
}

/// The ends of bins: 10, 20 and 50 µs, ten times that, and so on; all that is longer than 500 s is
/// in the last.
fn ends() -> impl Iterator<Item = u64> {
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
    fn answers_are_counted_but_for_those_of_a_start() {
        let mut reading = Reading::default();
        reading.read(&packed(["stdio", "exec"], LINES), 0).unwrap();
        assert_eq!(reading.times, [15], "not the first, not the forfeit");
        reading.read(&packed(["exec", "stdio"], LINES), 0).unwrap();
        assert_eq!(reading.times, [15, 9000, 15], "who is executed always starts");
        let found = reading.finish();
        assert_eq!((found.matches, found.replies.unwrap().count), (2, 3));
        assert_eq!(found.bins.first(), Some(&(20, 2)));
        assert_eq!(found.bins.last(), Some(&(10_000, 1)));
        assert_eq!(found.bins.iter().map(|(_, count)| count).sum::<u64>(), 3);
        assert_eq!(Reading::default().finish(), ReplyTimes::default());
    }

    #[test]
    fn what_is_no_record_says_so() {
        let mut reading = Reading::default();
        assert!(reading.read(b"noise", 0).is_err());
        assert!(reading.read(&zstd::encode_all(&b"{}\n"[..], 1).unwrap(), 0).is_err());
    }
}
