//! Schedules whose later rounds depend on results: their options, and what is known before.

use std::io::{self, Write};

use arbiter_schedule::swiss::Games;
use arbiter_schedule::{
    BracketCertificate, Gauntlet, LadderRules, MatchBounds, RoundPlan, RoundsCertificate, Schedule,
    Seeding, SwissRules,
};
use serde_json::json;

use super::{Kind, Show, range};
use crate::cli::tournament::match_line::write_match;
use crate::failure::Failure;
use crate::output::write_failure;

/// Fails if numbers should follow from a former stage.
pub(super) fn check_seeding(options: &Show) -> Result<(), Failure> {
    if options.seeding == Some(Seeding::Rank) {
        return Err(Failure::usage("--seeding rank needs a former stage; choose draw or entry"));
    }
    Ok(())
}

/// The schedule of a kind with rounds that is no knockout.
pub(super) fn schedule(options: &Show, kind: Kind) -> Result<Schedule, Failure> {
    Ok(match kind {
        Kind::Swiss => Schedule::Swiss(SwissRules {
            rounds: options.rounds,
            games: options
                .games
                .map_or(Ok(Games::default()), Games::try_from)
                .map_err(Failure::usage)?,
            accelerated: options.accelerated,
            seeding: options.seeding.unwrap_or_default(),
        }),
        Kind::Ladder => Schedule::Ladder(LadderRules {
            rounds: options.rounds.unwrap_or(LadderRules::default().rounds),
        }),
        _ => Schedule::Gauntlet(Gauntlet {
            panel: vec![String::new(); options.panel.unwrap_or_default().get() as usize],
            legs: options.legs.unwrap_or_default(),
        }),
    })
}

/// Prints the first round of a plan, the bounds of its cost, and its certificate, as the options
/// select.
pub(super) fn show(
    options: &Show,
    plan: &RoundPlan,
    output: &mut impl Write,
) -> Result<(), Failure> {
    if options.lists_matches() {
        for (number, planned) in (1..).zip(plan.matches()) {
            let bots = planned.seats().iter().copied().map(i64::from);
            write_match(output, options.json, number, None, bots).map_err(write_failure)?;
        }
    }
    if options.cost {
        write_bounds(output, plan.bounds(), options.json).map_err(write_failure)?;
    }
    if options.certificate {
        let wrong = |error: &dyn std::error::Error| {
            Failure::Negative(format!("the plan is wrong: {error}"))
        };
        if let RoundPlan::Knockout(bracket) = plan {
            let certificate = BracketCertificate::prove(bracket).map_err(|error| wrong(&error))?;
            write_bracket_proof(output, &certificate, options.json).map_err(write_failure)?;
        } else {
            let certificate = RoundsCertificate::prove(plan).map_err(|error| wrong(&error))?;
            write_proof(output, &certificate, options.json).map_err(write_failure)?;
        }
    }
    output.flush().map_err(write_failure)
}

fn write_bounds(
    output: &mut impl Write,
    MatchBounds { fewest, most }: MatchBounds,
    as_json: bool,
) -> io::Result<()> {
    if as_json {
        let cost = json!({"fewest": fewest, "most": most});
        return writeln!(output, "{}", json!({ "cost": { "matches": cost } }));
    }
    let reason = if fewest == most { "" } else { ", as the results decide" };
    writeln!(output, "{} matches{reason}", range(fewest, most))
}

fn write_bracket_proof(
    output: &mut impl Write,
    certificate: &BracketCertificate,
    as_json: bool,
) -> io::Result<()> {
    if !as_json {
        write!(output, "{certificate}")?;
        return writeln!(output, "verified: as promised");
    }
    let byes: Vec<_> = certificate.byes.iter().map(|bot| u32::from(*bot) + 1).collect();
    let MatchBounds { fewest, most } = certificate.matches;
    let certificate = json!({
        "bots": certificate.bots,
        "rounds": certificate.rounds,
        "byes": byes,
        "first_round": certificate.first_round,
        "matches": {"fewest": fewest, "most": most},
        "most_matches": certificate.most_of_bot,
        "side_spread": certificate.side_spread,
        "verified": true,
    });
    writeln!(output, "{}", json!({ "certificate": certificate }))
}

fn write_proof(
    output: &mut impl Write,
    certificate: &RoundsCertificate,
    as_json: bool,
) -> io::Result<()> {
    if !as_json {
        write!(output, "{certificate}")?;
        return writeln!(output, "counted in two runs: one without surprises, one of draws");
    }
    let MatchBounds { fewest, most } = certificate.matches;
    let certificate = json!({
        "bots": certificate.bots,
        "seats": certificate.seats,
        "rounds": certificate.rounds,
        "matches": {"fewest": fewest, "most": most},
        "fewest_matches": certificate.matches_of_bot.start(),
        "most_matches": certificate.matches_of_bot.end(),
        "meetings": certificate.meetings,
        "seat_spread": certificate.seat_spread,
        "verified": true,
    });
    writeln!(output, "{}", json!({ "certificate": certificate }))
}
