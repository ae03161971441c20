//! What a coordinator says of editions that are played or to come: whether they are balanced, and
//! what the next one costs.

use std::ops::RangeInclusive;

use arbiter_coordinator::service::counted_certificate;
use arbiter_coordinator::tournament::beacon::seed_origin;
use arbiter_proto::v1::{CertifyEditionRequest, EditionEstimate, EstimateEditionRequest};
use arbiter_schedule::{Certificate, SameOwnerPairs};
use serde_json::{Value, json};

use super::beacon::beacon_json;
use crate::cli::client::Client;
use crate::failure::Failure;
use crate::output::{fields, filled, matches, merged, moment, moment_json, print, printable};

/// Which edition is looked at.
#[derive(Debug)]
pub(super) struct Which<'a> {
    pub(super) tournament: &'a str,
    pub(super) edition: Option<i32>,
    pub(super) next: bool,
    pub(super) fresh: bool,
    pub(super) json: bool,
}

impl Which<'_> {
    /// Prints what the coordinator counted; fails if a promise is broken.
    pub(super) fn certify(&self, client: &Client) -> Result<(), Failure> {
        let request = CertifyEditionRequest {
            tournament: self.tournament.to_owned(),
            edition: self.edition,
            next: self.next,
            fresh: self.fresh,
        };
        let answer = client.ask(request)?;
        let counted = answer.not_counted.is_empty();
        let certificate = counted_certificate(&answer);
        let proved = answer.broken_promise.is_empty();
        print(|out| {
            if self.json {
                let object = if counted {
                    certificate_json(&certificate)
                } else {
                    fields!(answer; bots, matches)
                };
                let more = json!({
                    "proved": counted.then_some(proved),
                    "not_counted": (!counted).then(|| printable(&answer.not_counted)),
                    "edition": (answer.edition > 0).then_some(answer.edition),
                    "plan": told(&answer.plan),
                    "beacon": beacon_json(answer.beacon.as_ref()),
                });
                return out.json(&json!({ "certificate": merged(object, more) }));
            }
            let what = match answer.edition {
                0 => format!("the next edition of {}", self.tournament),
                number => format!("edition {number} of {}", self.tournament),
            };
            let plan = told(&answer.plan).map(|plan| format!(", {plan}")).unwrap_or_default();
            out.line(&format!("{what}{plan}"))?;
            if counted {
                certificate.to_string().lines().try_for_each(|line| out.line(line))?;
            } else {
                let reason = printable(&answer.not_counted);
                out.line(&format!("{} bots; balance not certified: {reason}", answer.bots))?;
            }
            out.line(&seed_origin(answer.beacon.as_ref(), answer.edition))?;
            if counted && proved { out.line("proved: all as promised") } else { Ok(()) }
        })?;
        if proved {
            return Ok(());
        }
        let broken = printable(&answer.broken_promise);
        Err(Failure::Negative(format!("the schedule is not balanced: {broken}")))
    }

    /// Prints what the next edition would come to if it were started now.
    pub(super) fn estimate(&self, client: &Client) -> Result<(), Failure> {
        let request =
            EstimateEditionRequest { tournament: self.tournament.to_owned(), fresh: self.fresh };
        let estimate = client.ask(request)?;
        print(|out| {
            if self.json {
                return out.json(&json!({ "estimate": estimate_json(&estimate) }));
            }
            estimate_lines(&estimate).iter().try_for_each(|line| out.line(line))
        })
    }
}

/// How a plan came to be, if that is said.
fn told(plan: &str) -> Option<String> {
    filled(plan).map(printable)
}

/// Hours of one slot.
#[expect(clippy::cast_precision_loss, reason = "an estimate is not exact")]
fn hours(estimate: &EditionEstimate) -> f64 {
    estimate.to_play as f64 * estimate.match_ms / 3_600_000.0
}

fn estimate_lines(estimate: &EditionEstimate) -> Vec<String> {
    let EditionEstimate { bots, matches: all, to_play, match_ms, measured, slots, .. } = estimate;
    let plan = told(&estimate.plan).map(|plan| format!("; {plan}")).unwrap_or_default();
    let how = if *measured { "as measured" } else { "as expected" };
    let finish = match estimate.eta_us {
        Some(eta) => format!("done at {} by the {slots} slots connected now", moment(eta)),
        None => "no worker is connected, so it has no end; arbiter worker starts one".to_owned(),
    };
    vec![
        format!("{} of {bots} bots{plan}", matches(*all)),
        format!("{to_play} of them to be played, the others were played before"),
        format!("{:.1} hours of a slot, {match_ms:.0} ms a match {how}", hours(estimate)),
        finish,
        format!("{:.1} MB more in the database", megabytes(estimate.bytes)),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "an estimate is not exact")]
fn megabytes(bytes: i64) -> f64 {
    bytes as f64 / 1e6
}

fn estimate_json(estimate: &EditionEstimate) -> Value {
    let counted = fields!(estimate; bots, matches, to_play, match_ms, measured);
    let more = json!({
        "slot_hours": hours(estimate),
        "slots": estimate.slots,
        "eta": estimate.eta_us.map(moment_json),
        "bytes": estimate.bytes,
        "plan": told(&estimate.plan),
    });
    merged(counted, more)
}

/// A certificate as JSON, without whether it proves anything.
pub(super) fn certificate_json(certificate: &Certificate) -> Value {
    let meetings = certificate.meetings.iter();
    let meetings = meetings.map(|(times, pairs)| json!({"times": times, "pairs": pairs}));
    let ends = |range: &RangeInclusive<u32>| json!([range.start(), range.end()]);
    let mut object = json!({
        "bots": certificate.bots,
        "seats": certificate.seats,
        "matches": certificate.matches,
        "lambda": certificate.exact_meetings(),
        "meetings": meetings.collect::<Vec<_>>(),
        "uneven_pairs": certificate.uneven_pairs(),
        "matches_of_bot": ends(&certificate.matches_of_bot),
        "times_in_seat": ends(&certificate.times_in_seat),
        "seat_spread": certificate.seat_spread,
        "side_spread": certificate.side_spread,
    });
    if let Some(SameOwnerPairs { pairs, meetings }) = certificate.same_owner {
        object["one_owner"] = json!({"pairs": pairs, "meetings": meetings});
    }
    object
}
