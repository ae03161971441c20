//! `arbiter match ID`: shows a planned or played match and downloads its record.

use std::io::{self, BufRead as _, Read as _, Seek as _};
use std::path::Path;

use arbiter_proto::ids::MatchName;
use arbiter_proto::state_words::state_of;
use arbiter_proto::v1::{GetMatchRequest, MatchStatus};
use arbiter_replay::MAX_LINE;
use clap::Args;
use serde_json::{Value, json};

use super::bots::{evidence_json, evidence_text};
use super::client::{ResponseArgs, unless_interrupted};
use super::record_download;
use crate::failure::Failure;
use crate::output::{Columns, Output, eprint_line, hex, merge, non_empty, print, score_heading};

/// Show a match: seats, scores, worker and faults; download its record.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter match finals/1207
  arbiter match finals/1207 --record match.jsonl && arbiter verify match.jsonl
  arbiter match finals/1207 --record - | head
  arbiter match finals/1207 --stderr")]
pub(super) struct ShowMatch {
    /// The match as TOURNAMENT/NUMBER, as shown by logs and web pages.
    #[arg(value_name = "ID")]
    name: MatchName,
    /// Also write its record to this file; `-` prints only the record.
    #[arg(long, value_name = "FILE")]
    record: Option<String>,
    /// Print only the end of the standard error of your bots, if their manifests enable recording
    /// it.
    #[arg(long, conflicts_with_all = ["record", "json"])]
    stderr: bool,
    #[command(flatten)]
    response: ResponseArgs,
}

impl ShowMatch {
    pub(super) fn run(self) -> Result<(), Failure> {
        let name = &self.name;
        if self.stderr {
            return self.print_stderr();
        }
        match self.record.as_deref() {
            Some("-") => self.response.client.run(async |server| {
                record_download::open(&server, name).await??.copy(io::stdout().lock()).await
            }),
            Some(path) => {
                let path = Path::new(path);
                let status = self.response.client.run(async |server| {
                    let status = server.send(request(name)).await?;
                    let record = record_download::open(&server, name).await??;
                    unless_interrupted(record.save(path)).await?;
                    Ok(status)
                })?;
                self.show(&status)?;
                eprint_line(&format!("the record is in {}", path.display()));
                Ok(())
            }
            None => self.show(&self.response.client.send(request(name))?),
        }
    }

    /// Prints the lines of the record that hold standard error.
    fn print_stderr(&self) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::Negative(format!("the record: {error}"));
        let mut file = tempfile::tempfile().map_err(failed)?;
        let name = &self.name;
        self.response.client.run(async |server| {
            let record = record_download::open(&server, name).await??;
            unless_interrupted(record.copy(&file)).await
        })?;
        file.rewind().map_err(failed)?;
        let mut lines = io::BufReader::new(file);
        let mut text = Vec::new();
        print(|out| {
            loop {
                text.clear();
                let count = lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut text);
                if count.map_err(failed)? == 0 {
                    return Ok(());
                }
                let line: Value = serde_json::from_slice(&text).unwrap_or_default();
                let (Some(text), Some(seat)) = (line["stderr"].as_str(), line["seat"].as_u64())
                else {
                    continue;
                };
                if line["dropped"].as_u64().is_some_and(|dropped| dropped > 0) {
                    out.line(&format!("[seat {seat}] … {} bytes before", line["dropped"]))?;
                }
                text.lines().try_for_each(|line| out.line(&format!("[seat {seat}] {line}")))?;
            }
        })
    }

    fn show(&self, status: &MatchStatus) -> Result<(), Failure> {
        self.response.print(|| status_json(status), |out| show(out, status))
    }
}

fn request(name: &MatchName) -> GetMatchRequest {
    GetMatchRequest { r#match: name.to_string() }
}

/// The transcript hash in hex, if the match was played.
pub(super) fn transcript(status: &MatchStatus) -> Option<String> {
    (!status.transcript.is_empty()).then(|| hex(&status.transcript))
}

/// The result of a match as JSON. All commands print this part, and it is equal in two runs of the
/// same tournament.
pub(super) fn result_json(status: &MatchStatus) -> Value {
    let seats = status.seats.iter();
    json!({
        "seats": seats
            .clone()
            .map(|seat| json!({"bot": seat.bot, "version": seat.version}))
            .collect::<Vec<_>>(),
        "scores": seats.clone().map(|seat| &seat.score).collect::<Vec<_>>(),
        "forfeits": seats.clone().map(|seat| non_empty(&seat.forfeit)).collect::<Vec<_>>(),
        "bad_answers": seats.map(|seat| seat.bad_answers).collect::<Vec<_>>(),
        "transcript": transcript(status),
    })
}

fn status_json(status: &MatchStatus) -> Value {
    let is_played = !status.transcript.is_empty();
    let params: Option<Value> = serde_json::from_str(&status.params).ok();
    let evidence = status.seats.iter().map(|seat| evidence_json(seat.evidence.as_ref()));
    let object = json!({
        "match": status.r#match,
        "tournament": status.tournament,
        "state": state_of(status),
        "params": params,
    });
    let details = json!({
        "wall_ms": is_played.then_some(status.wall_ms),
        "worker": non_empty(&status.worker),
        "level": non_empty(&status.level),
        "failed_leases": status.failed_leases,
        "faults": status.faults,
        "evidence": evidence.collect::<Vec<_>>(),
        "frozen": non_empty(&status.freeze_notice),
    });
    merge(merge(object, result_json(status)), details)
}

fn show(out: &mut Output, status: &MatchStatus) -> Result<(), Failure> {
    let MatchStatus { r#match, worker, level, wall_ms, .. } = status;
    out.line(&format!("match {match}: {}", state_of(status)))?;
    if !status.params.is_empty() {
        out.line(&format!("with {}", status.params))?;
    }
    let score = score_heading(&status.columns);
    let header = ["seat", "bot", "version", &score, "forfeit", ""];
    let mut table = Columns::new(header, &[1, 3, 4, 5]);
    let no_score = if status.freeze_notice.is_empty() { "-" } else { "hidden" };
    for (number, seat) in (1..).zip(&status.seats) {
        let score: Vec<_> = seat.score.iter().map(i64::to_string).collect();
        let bad = match seat.bad_answers {
            0 => String::new(),
            1 => "1 bad reply".to_owned(),
            more => format!("{more} bad replies"),
        };
        table.push(vec![
            number.to_string(),
            seat.bot.clone(),
            seat.version.to_string(),
            if score.is_empty() { no_score.to_owned() } else { score.join(" ") },
            non_empty(&seat.forfeit).unwrap_or("-").to_owned(),
            bad,
        ]);
    }
    if status.seats.is_empty() {
        out.line("who plays is hidden while the leaderboards are frozen")?;
    } else {
        out.table(&table)?;
    }
    if !status.freeze_notice.is_empty() {
        out.line(&format!("the result is hidden: leaderboards are {}", status.freeze_notice))?;
    }
    if let Some(transcript) = transcript(status) {
        let seconds = f64::from(*wall_ms) / 1000.0;
        let by = if worker.is_empty() { String::new() } else { format!(" by {worker}") };
        out.line(&format!("played{by} at level {level} in {seconds:.3} s"))?;
        out.line(&format!("transcript {transcript}"))?;
    }
    for (number, seat) in (1..).zip(&status.seats) {
        if let Some(why) = &seat.evidence {
            let what = if seat.forfeit.is_empty() { "gave a bad reply" } else { "forfeited" };
            out.line(&format!("seat {number} {what}: {}", evidence_text(why)))?;
        }
    }
    if status.faults.is_empty() && status.failed_leases > 0 {
        let faulty = status.failed_leases;
        out.line(&format!(
            "{faulty} attempts failed by infrastructure faults; organisers see the reasons"
        ))?;
    }
    status.faults.iter().try_for_each(|fault| out.line(&format!("fault: {fault}")))
}
