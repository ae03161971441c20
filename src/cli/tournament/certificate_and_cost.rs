//! `arbiter tournament schedule T --certificate` and `--cost`: the coordinator's certificate of an
//! edition, and its estimate of the next one.

use arbiter_coordinator::service::counted_certificate;
use arbiter_coordinator::tournament::beacon::seed_origin;
use arbiter_proto::v1::{CertifyEditionRequest, EditionEstimate, EstimateEditionRequest};
use arbiter_schedule::{Certificate, SameOwnerPairs};
use serde_json::{Value, json};

use super::beacon::beacon_json;
use crate::cli::client::Client;
use crate::failure::Failure;
use crate::output::{
    count, fields, matches, merge, moment, moment_json, non_empty, print, printable,
};

/// The edition to certify or estimate.
#[derive(Debug)]
pub(super) struct EditionQuery<'a> {
    pub(super) tournament: &'a str,
    pub(super) edition: Option<i32>,
    pub(super) next: bool,
    pub(super) fresh: bool,
    pub(super) json: bool,
}

impl EditionQuery<'_> {
    /// Prints the coordinator's certificate. Fails if the schedule does not have the claimed
    /// balance.
    pub(super) fn certify(&self, client: &Client) -> Result<(), Failure> {
        let request = CertifyEditionRequest {
            tournament: self.tournament.to_owned(),
            edition: self.edition,
            next: self.next,
            fresh: self.fresh,
        };
        let response = client.send(request)?;
        let is_counted = response.not_counted.is_empty();
        let certificate = counted_certificate(&response);
        let is_proved = response.broken_promise.is_empty();
        print(|out| {
            if self.json {
                let object = if is_counted {
                    certificate_json(&certificate)
                } else {
                    fields!(response; bots, matches)
                };
                let details = json!({
                    "verified": is_counted.then_some(is_proved),
                    "not_counted": (!is_counted).then(|| printable(&response.not_counted)),
                    "edition": (response.edition > 0).then_some(response.edition),
                    "plan": plan_text(&response.plan),
                    "beacon": beacon_json(response.beacon.as_ref()),
                });
                return out.json(&json!({ "certificate": merge(object, details) }));
            }
            let subject = match response.edition {
                0 => format!("the next edition of {}", self.tournament),
                number => format!("edition {number} of {}", self.tournament),
            };
            let plan =
                plan_text(&response.plan).map(|plan| format!(", {plan}")).unwrap_or_default();
            out.line(&format!("{subject}{plan}"))?;
            if is_counted {
                certificate.to_string().lines().try_for_each(|line| out.line(line))?;
            } else {
                let reason = printable(&response.not_counted);
                out.line(&format!("{} bots; balance not certified: {reason}", response.bots))?;
            }
            out.line(&seed_origin(response.beacon.as_ref(), response.edition))?;
            if is_counted && is_proved {
                out.line("verified: balanced as promised")
            } else {
                Ok(())
            }
        })?;
        if is_proved {
            return Ok(());
        }
        let reason = printable(&response.broken_promise);
        Err(Failure::Negative(format!("the schedule is not balanced: {reason}")))
    }

    /// Prints an estimate of the next edition, if it started now.
    pub(super) fn estimate(&self, client: &Client) -> Result<(), Failure> {
        let request =
            EstimateEditionRequest { tournament: self.tournament.to_owned(), fresh: self.fresh };
        let estimate = client.send(request)?;
        print(|out| {
            if self.json {
                return out.json(&json!({ "estimate": estimate_json(&estimate) }));
            }
            estimate_lines(&estimate).iter().try_for_each(|line| out.line(line))
        })
    }
}

/// How a plan was made, if known.
fn plan_text(plan: &str) -> Option<String> {
    non_empty(plan).map(printable)
}

/// Hours on one slot.
#[expect(clippy::cast_precision_loss, reason = "an estimate is not exact")]
fn hours(estimate: &EditionEstimate) -> f64 {
    estimate.to_play as f64 * estimate.match_ms / 3_600_000.0
}

fn estimate_lines(estimate: &EditionEstimate) -> Vec<String> {
    let EditionEstimate { bots, matches: all, to_play, match_ms, measured, slots, .. } = estimate;
    let plan = plan_text(&estimate.plan).map(|plan| format!("; {plan}")).unwrap_or_default();
    let origin = if *measured { "(measured)" } else { "(expected)" };
    let finish = match estimate.eta_us {
        Some(eta) => {
            let connected = count(*slots, "slot", "slots");
            format!("done at {} with the {connected} connected now", moment(eta))
        }
        None => "no worker is connected; start one with arbiter worker".to_owned(),
    };
    vec![
        format!("{} of {bots} bots{plan}", matches(*all)),
        format!("{to_play} to play, the others have been played"),
        format!("{:.1} slot hours, {match_ms:.0} ms per match {origin}", hours(estimate)),
        finish,
        format!("{:.1} MB of additional database space", megabytes(estimate.bytes)),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "an estimate is not exact")]
fn megabytes(bytes: i64) -> f64 {
    bytes as f64 / 1e6
}

fn estimate_json(estimate: &EditionEstimate) -> Value {
    let counts = fields!(estimate; bots, matches, to_play, match_ms, measured);
    let details = json!({
        "slot_hours": hours(estimate),
        "slots": estimate.slots,
        "eta": estimate.eta_us.map(moment_json),
        "bytes": estimate.bytes,
        "plan": plan_text(&estimate.plan),
    });
    merge(counts, details)
}

/// A certificate as JSON, without the result of its proof.
pub(super) fn certificate_json(certificate: &Certificate) -> Value {
    let meetings =
        certificate.meetings.iter().map(|(times, pairs)| json!({"times": times, "pairs": pairs}));
    let mut object = json!({
        "bots": certificate.bots,
        "seats": certificate.seats,
        "matches": certificate.matches,
        "lambda": certificate.exact_meetings(),
        "meetings": meetings.collect::<Vec<_>>(),
        "uneven_pairs": certificate.uneven_pairs(),
        "fewest_matches": certificate.matches_of_bot.start(),
        "most_matches": certificate.matches_of_bot.end(),
        "fewest_in_seat": certificate.times_in_seat.start(),
        "most_in_seat": certificate.times_in_seat.end(),
        "seat_spread": certificate.seat_spread,
        "side_spread": certificate.side_spread,
    });
    if let Some(opponents) = &certificate.opponents_of_bot {
        object["fewest_opponents"] = json!(opponents.start());
        object["most_opponents"] = json!(opponents.end());
    }
    if let Some(SameOwnerPairs { pairs, meetings }) = certificate.same_owner {
        object["same_owner_pairs"] = json!(pairs);
        object["same_owner_meetings"] = json!(meetings);
    }
    object
}
