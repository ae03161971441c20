//! Decodes reports of lots.

use arbiter_games::MAX_SEATS;
use arbiter_proto::convert::{InvalidField, bytes32, forfeit, parse_field, required};
use arbiter_proto::ids::{MatchNumber, WorkerId};
use arbiter_proto::v1;
use time::OffsetDateTime;

use crate::db::forfeit_evidence::Evidence;
use crate::db::results::MatchResult;
use crate::queue::Report;

/// The longest evidence that is stored, in characters: workers write one line.
const MAX_EVIDENCE: usize = 1000;

/// Decodes a report that arrived at `now`. The queue checks whether it is about the leased lot.
///
/// # Errors
/// If the report is malformed.
pub fn read(
    worker: WorkerId,
    message: v1::Report,
    now: OffsetDateTime,
) -> Result<Report, InvalidField> {
    let v1::Report { lease, results, level, trial: _, trace: _ } = message;
    let lease = required("lease", lease)?.try_into()?;
    let level = parse_field("level", &level)?;
    let mut records = Vec::new();
    let mut files = Vec::new();
    let mut evidence = Vec::new();
    let decoded = results.into_iter().map(|result| {
        let number = MatchNumber(result.number);
        let v1::MatchResult { mut seats, transcript, wall_ms, record, .. } = result;
        if !record.is_empty() {
            records.push((number, record));
        }
        for (seat, result) in (1..).zip(&mut seats) {
            if !result.files.is_empty() {
                files.push((number, seat, std::mem::take(&mut result.files)));
            }
        }
        for (seat, result) in (1..).zip(&mut seats) {
            let message = result.evidence.take();
            evidence.extend(message.map(|message| read_evidence(number, seat, *message)));
        }
        let wall_ms = non_negative("wall_ms", wall_ms)?;
        let transcript = bytes32("transcript", &transcript)?;
        read_result(number, wall_ms, transcript, &seats)
    });
    let results = decoded.collect::<Result<_, _>>()?;
    Ok(Report { lease, worker, at: now, results, records, level, files, evidence })
}

/// Why a seat forfeited.
fn read_evidence(number: MatchNumber, seat: i16, message: v1::Evidence) -> Evidence {
    let v1::Evidence { detail, wall_us, cpu_us } = message;
    // The database stores no character 0.
    let detail = detail.chars().take(MAX_EVIDENCE).filter(|c| *c != '\0').collect();
    Evidence { number, seat, wall_us: wall_us.max(0), cpu_us: cpu_us.max(0), detail }
}

/// The result of a match.
fn read_result(
    number: MatchNumber,
    wall_ms: i32,
    transcript: [u8; 32],
    seats: &[v1::SeatResult],
) -> Result<MatchResult, InvalidField> {
    if !(1..=usize::from(MAX_SEATS)).contains(&seats.len()) {
        return Err(out_of_range("seats", seats.len()));
    }
    let components = seats[0].score.len();
    let other_length =
        seats.iter().map(|seat| seat.score.len()).find(|length| *length != components);
    if let Some(length) = other_length.or((components == 0).then_some(0)) {
        return Err(out_of_range("score", length));
    }
    let forfeits: Vec<_> =
        seats.iter().map(|seat| forfeit(seat.forfeit)).collect::<Result<_, _>>()?;
    let bad_answers: Vec<_> = seats
        .iter()
        .map(|seat| non_negative("bad_answers", seat.bad_answers))
        .collect::<Result<_, _>>()?;
    Ok(MatchResult {
        number,
        wall_ms,
        scores: seats.iter().flat_map(|seat| seat.score.iter().copied()).collect(),
        transcript,
        forfeits: if forfeits.iter().any(Option::is_some) { forfeits } else { Vec::new() },
        bad_answers: if bad_answers.iter().any(|bad| *bad > 0) { bad_answers } else { Vec::new() },
    })
}

/// Refuses a negative number.
fn non_negative(field: &'static str, value: i32) -> Result<i32, InvalidField> {
    if value >= 0 { Ok(value) } else { Err(InvalidField::Range { field, value: value.into() }) }
}

/// The error for a wrong number of items.
fn out_of_range(field: &'static str, length: usize) -> InvalidField {
    InvalidField::Range { field, value: i64::try_from(length).unwrap_or(i64::MAX) }
}

#[cfg(test)]
mod tests {
    use arbiter_games::Forfeit;
    use arbiter_proto::ids::{Attempt, Lease, LotId, LotNumber, TournamentId};
    use arbiter_proto::level::Level;

    use super::*;

    const LOT: LotId = LotId { tournament: TournamentId(1), number: LotNumber(5) };
    const LEASE: Lease = Lease { lot: LOT, attempt: Attempt(2) };

    fn seat(score: &[i64]) -> v1::SeatResult {
        v1::SeatResult { score: score.to_vec(), ..v1::SeatResult::default() }
    }

    fn message(seats: Vec<v1::SeatResult>) -> v1::Report {
        let transcript = vec![9; 32];
        let result =
            v1::MatchResult { number: 7, seats, transcript, wall_ms: 3, record: Vec::new() };
        let lease = Some(LEASE.into());
        let level = "A'".to_owned();
        v1::Report { lease, results: vec![result], level, trial: None, trace: String::new() }
    }

    fn refusal(message: v1::Report) -> String {
        read(WorkerId(1), message, OffsetDateTime::UNIX_EPOCH).unwrap_err().to_string()
    }

    #[test]
    fn reports_are_read_as_they_are_stored() {
        let mut sent = message(vec![seat(&[2, 3]), seat(&[0, -3])]);
        let report = read(WorkerId(4), sent.clone(), OffsetDateTime::UNIX_EPOCH).unwrap();
        assert_eq!((report.lease, report.worker, report.level), (LEASE, WorkerId(4), Level::A1));
        assert_eq!((report.records, report.files), (Vec::new(), Vec::new()));
        let result = &report.results[0];
        assert_eq!((result.number, result.wall_ms), (MatchNumber(7), 3));
        assert_eq!((&result.scores[..], result.transcript), (&[2, 3, 0, -3][..], [9; 32]));
        assert_eq!((result.forfeits.len(), result.bad_answers.len()), (0, 0));

        sent.results[0].record = b"record".to_vec();
        sent.results[0].seats[1].files = b"files".to_vec();
        sent.results[0].seats[1].forfeit = v1::Forfeit::Gone.into();
        sent.results[0].seats[0].bad_answers = 2;
        let report = read(WorkerId(4), sent, OffsetDateTime::UNIX_EPOCH).unwrap();
        let number = MatchNumber(7);
        assert_eq!(report.records, [(number, b"record".to_vec())]);
        assert_eq!(report.files, [(number, 2, b"files".to_vec())]);
        assert_eq!(report.results[0].forfeits, [None, Some(Forfeit::Gone)]);
        assert_eq!(report.results[0].bad_answers, [2, 0]);
    }

    #[test]
    fn malformed_reports_are_refused() {
        let good = || message(vec![seat(&[1]), seat(&[1])]);
        assert_eq!(refusal(v1::Report { lease: None, ..good() }), "`lease` is missing");
        let level = "Z".to_owned();
        assert_eq!(refusal(v1::Report { level, ..good() }), "`level` cannot be \"Z\"");
        assert_eq!(refusal(message(Vec::new())), "`seats` cannot be 0");
        assert_eq!(refusal(message(vec![seat(&[1]); 17])), "`seats` cannot be 17");
        assert_eq!(refusal(message(vec![seat(&[1]), seat(&[1, 2])])), "`score` cannot be 2");
        assert_eq!(refusal(message(vec![seat(&[])])), "`score` cannot be 0");
        let changed = |change: fn(&mut v1::MatchResult)| {
            let mut report = good();
            change(&mut report.results[0]);
            refusal(report)
        };
        assert_eq!(changed(|result| result.wall_ms = -1), "`wall_ms` cannot be -1");
        assert_eq!(changed(|result| result.seats[0].forfeit = 9), "`forfeit` cannot be 9");
        assert_eq!(
            changed(|result| result.seats[0].bad_answers = -2),
            "`bad_answers` cannot be -2"
        );
        let short = changed(|result| result.transcript = vec![0; 31]);
        assert_eq!(short, "`transcript` has 31 bytes, not 32");
    }
}
