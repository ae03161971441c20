//! `arbiter tournament schedule`: shows a schedule, proves its balance and states its cost.

mod rounds;

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use arbiter_coordinator::tournament::file::TournamentFile;
use arbiter_games::{Games, Seed, string_enum};
use arbiter_proto::convert;
use arbiter_proto::v1::{GetTournamentRequest, ListBotsRequest};
use arbiter_schedule::{
    Certificate, CertificateBuilder, CertificateError, Claim, ExtraPairs, FoursomesConfig,
    Knockout, Matches, NameKey, Opponents, Plan, PlannedMatch, Repetitions, RoundPlan, RoundRobin,
    Schedule, ScheduleError, Seeding, Sides, Solo, TableSeats, Tables,
};
use clap::Args;
use serde_json::json;

use super::certificate_and_cost::{EditionQuery, certificate_json};
use super::create;
use super::list::settings;
use super::match_line::write_match;
use super::published_plan::PublishedPlan;
use crate::cli::client::{Client, malformed_response};
use crate::failure::Failure;
use crate::output::{eprint_line, write_failure};

/// Size of the output buffer in bytes.
const BUFFER: usize = 1 << 16;

/// Show a schedule, prove its balance, or estimate its cost.
#[expect(clippy::struct_excessive_bools, reason = "one for each flag of the command line")]
#[derive(Debug, Args)]
#[command(after_help = "Bots and matches are numbered from 1, bots in the order of their first \
    submission. Seats are listed from seat 1. The seed of a tournament is secret until it is \
    closed; until then, matches are listed for another seed (--seed). After that, the real matches \
    of an edition are listed (--edition). For a tournament, the coordinator computes --certificate \
    and --cost with its own seed and bots, unless --bots or --seed is given. Match 1 of a schedule \
    is match 0 of an export.

Examples:
  arbiter tournament schedule finals --certificate
  arbiter tournament schedule finals --next --certificate --cost
  arbiter tournament schedule --dry-run --kind foursomes --bots 37 \\
      --certificate
  arbiter tournament schedule --dry-run --kind foursomes --bots 500 \\
      --games 10000 --json
  arbiter tournament schedule --dry-run --kind round_robin --bots 20 \\
      --boards 8 --cost
  arbiter tournament schedule --dry-run --kind round_robin --bots 10000 \\
      --opponents 64 --certificate
  arbiter tournament schedule --dry-run --kind tables --seats 5 --bots 12 \\
      --certificate
  arbiter tournament schedule --dry-run --kind solo --legs 20 --bots 9 --cost
  arbiter tournament schedule --dry-run --kind knockout --bots 6 --best-of 3 \\
      --certificate --cost
  arbiter tournament schedule --dry-run --kind swiss --rounds 9 --bots 100
  arbiter tournament schedule --dry-run --file cup.toml --bots 40 --cost")]
pub(super) struct Show {
    /// The tournament: use its settings and bots.
    #[arg(value_name = "T", conflicts_with = "dry_run")]
    tournament: Option<String>,
    /// Plan for any number of bots; stores nothing.
    #[arg(long)]
    dry_run: bool,
    /// The kind of schedule: `round_robin` (two seats), `foursomes` (tables of four), `tables` (of
    /// any number of seats), `solo` (every bot alone), `knockout` (the loser of a meeting is out),
    /// `swiss` (bots with equal points meet), `gauntlet` (every bot against a panel) or `ladder`
    /// (bots of equal strength meet). If later rounds depend on results, only the first round is
    /// listed.
    #[arg(long, value_name = "KIND")]
    kind: Option<Kind>,
    /// The number of bots; for a tournament, replaces its number of entrants.
    #[arg(long, value_name = "N")]
    bots: Option<usize>,
    /// Any text; the same seed gives the same schedule. Default 0.
    #[arg(long, value_name = "S", value_parser = seed)]
    seed: Option<Seed>,
    /// Round robin: how many times to repeat the whole schedule; default 1. Gauntlet: how often a
    /// candidate meets each bot of the panel on both sides; default 1. Tables: how often each bot
    /// has each seat, and solo: how many matches it plays; default 10.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    legs: Option<Repetitions>,
    /// Round robin: who gets seat 1: both (in two matches), random or balanced (default).
    #[arg(long, value_name = "SIDES")]
    sides: Option<Sides>,
    /// Round robin: on how many boards each pair meets; default 1.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    boards: Option<Repetitions>,
    /// Round robin: how many others each bot meets; by default all.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    opponents: Option<Opponents>,
    /// Tables: how many bots sit at each, from 2 to 16.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seats: Option<TableSeats>,
    /// Foursomes: how often each pair meets; more often if this is not possible with these bots. By
    /// default the smallest number possible for all pairs.
    #[arg(long, value_name = "TIMES", allow_negative_numbers = true)]
    meetings: Option<i64>,
    /// Foursomes: how many matches to plan; pairs then meet as equally as possible. Swiss:
    /// how many games a meeting has, 1 or 2; default 1.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    games: Option<i64>,
    /// Knockout: how many games a meeting has; default 2.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    best_of: Option<Repetitions>,
    /// Knockout: at most how many pairs of games follow a tie; default 1.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    extra_pairs: Option<ExtraPairs>,
    /// Knockout: the losers of the semi-finals play for the third place.
    #[arg(long)]
    third_place: bool,
    /// Knockout and Swiss: how bots get their numbers: draw (default) or entry (in the order of
    /// entry).
    #[arg(long, value_name = "ORDER")]
    seeding: Option<Seeding>,
    /// Swiss: how many rounds; by default enough for a single winner. Ladder: default 10.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    rounds: Option<Repetitions>,
    /// Swiss: bots with better numbers begin with extra points, for large fields.
    #[arg(long)]
    accelerated: bool,
    /// Gauntlet: how many of the bots are the panel; default 1.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    panel: Option<Repetitions>,
    /// With --dry-run: the schedule of this tournament file, also one with stages.
    #[arg(long, value_name = "FILE", requires = "dry_run", conflicts_with = "kind")]
    file: Option<PathBuf>,
    /// Print one JSON object per line: the matches, then the certificate and the cost.
    #[arg(long)]
    json: bool,
    /// Count how often every pair meets and every bot has each seat; exit code 1 if unbalanced. For
    /// a tournament, of its newest edition.
    #[arg(long)]
    certificate: bool,
    /// Print the number of matches, in all and per bot. For a tournament, the estimated cost of its
    /// next edition (for organisers).
    #[arg(long)]
    cost: bool,
    /// With --certificate: this edition instead of the newest. After the end: the listed edition
    /// instead of the official one.
    #[arg(long, value_name = "E", conflicts_with_all = ["dry_run", "next", "fresh"])]
    edition: Option<i32>,
    /// With --certificate: the next edition, if it started now.
    #[arg(long, conflicts_with = "dry_run")]
    next: bool,
    /// The next edition, with tables planned from scratch.
    #[arg(long, conflicts_with = "dry_run")]
    fresh: bool,
    #[command(flatten)]
    client: Client,
}

/// The default seed.
const DEFAULT_SEED: &str = "0";

string_enum! {
    /// A kind of schedule.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Kind {
        RoundRobin = "round_robin",
        Foursomes = "foursomes",
        Tables = "tables",
        Solo = "solo",
        Knockout = "knockout",
        Swiss = "swiss",
        Gauntlet = "gauntlet",
        Ladder = "ladder",
    }
    FromStr, Err = UnknownKind
}

/// The error of a text that is not a kind of schedule.
#[derive(Clone, Debug)]
struct UnknownKind(#[expect(dead_code, reason = "the command line shows it")] String);

impl fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(KINDS)
    }
}

impl Error for UnknownKind {}

/// The remedy if the kind is missing or unknown.
const KINDS: &str = "choose round_robin, foursomes, tables, solo, knockout, swiss, gauntlet or \
    ladder, or name a tournament file with --file";

impl Kind {
    /// The options of this kind.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::RoundRobin => &["--legs", "--sides", "--boards", "--opponents"],
            Self::Foursomes => &["--meetings", "--games"],
            Self::Tables => &["--seats", "--legs"],
            Self::Solo => &["--legs"],
            Self::Knockout => &["--best-of", "--extra-pairs", "--third-place", "--seeding"],
            Self::Swiss => &["--rounds", "--games", "--accelerated", "--seeding"],
            Self::Gauntlet => &["--panel", "--legs"],
            Self::Ladder => &["--rounds"],
        }
    }
}

impl Show {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        if let Some(query) = self.edition_query() {
            if self.cost {
                query.estimate(&self.client)?;
            }
            return if self.certificate { query.certify(&self.client) } else { Ok(()) };
        }
        let planner = match &self.tournament {
            Some(tournament) => match self.plan_of(games, tournament)? {
                Origin::Published(plan) => return self.list(&plan),
                Origin::Computed(planner) => planner,
            },
            None if self.dry_run => Planner {
                schedule: self.schedule(games)?,
                bots: self
                    .bots
                    .ok_or_else(|| Failure::usage("--bots is missing; give the number of bots"))?,
                names: None,
                seed: self.seed(),
            },
            None => {
                return Err(Failure::usage(
                    "name a tournament, or add --dry-run to plan one for any number of bots",
                ));
            }
        };
        let mut output = BufWriter::with_capacity(BUFFER, io::stdout().lock());
        if let Some(plan) = planner.rounds()? {
            return rounds::show(&self, &plan, &mut output);
        }
        let proof_result = self.show(&planner, &mut output)?;
        proof_result.map_err(|error| unbalanced(&error))
    }

    /// The query for the coordinator, if the plan is not computed here.
    fn edition_query(&self) -> Option<EditionQuery<'_>> {
        let uses_stored_plan =
            self.bots.is_none() && self.seed.is_none() && self.schedule_option().is_none();
        let needs_counts = self.certificate || self.cost;
        let tournament = self.tournament.as_deref().filter(|_| uses_stored_plan && needs_counts)?;
        let Self { edition, next, fresh, json, .. } = *self;
        Some(EditionQuery { tournament, edition, next, fresh, json })
    }

    fn seed(&self) -> Seed {
        self.seed.unwrap_or_else(|| Seed::of_text(DEFAULT_SEED))
    }

    /// The used options that describe a schedule of a kind.
    fn options(&self) -> impl Iterator<Item = &'static str> {
        let options = [
            self.legs.map(|_| "--legs"),
            self.sides.map(|_| "--sides"),
            self.boards.map(|_| "--boards"),
            self.opponents.map(|_| "--opponents"),
            self.seats.map(|_| "--seats"),
            self.meetings.map(|_| "--meetings"),
            self.games.map(|_| "--games"),
            self.best_of.map(|_| "--best-of"),
            self.extra_pairs.map(|_| "--extra-pairs"),
            self.third_place.then_some("--third-place"),
            self.seeding.map(|_| "--seeding"),
            self.rounds.map(|_| "--rounds"),
            self.accelerated.then_some("--accelerated"),
            self.panel.map(|_| "--panel"),
        ];
        options.into_iter().flatten()
    }

    /// The first used option that describes a schedule.
    fn schedule_option(&self) -> Option<&'static str> {
        self.kind.map(|_| "--kind").or_else(|| self.options().next())
    }

    /// Fetches the public inputs of a tournament's schedule.
    fn plan_of(&self, games: &Games, tournament: &str) -> Result<Origin, Failure> {
        if let Some(option) = self.schedule_option() {
            return Err(Failure::usage(format!(
                "{option} needs --dry-run: the file of {tournament} defines its schedule"
            )));
        }
        let Self { edition, .. } = *self;
        let (tournament_info, file, bots, published) = self.client.run(async |server| {
            let request = GetTournamentRequest { tournament: tournament.to_owned(), edition };
            let tournament_info = server.send(request).await?;
            let file = TournamentFile::from_json(games, &settings(&tournament_info).into())
                .map_err(malformed_response)?;
            let request = ListBotsRequest { tournament: tournament.to_owned() };
            let bots = server.send(request).await?.bots;
            let published = if self.bots.is_none() && self.seed.is_none() {
                PublishedPlan::fetch(&server, &tournament_info, &file, edition).await?
            } else {
                None
            };
            Ok((tournament_info, file, bots, published))
        })?;
        if let Some(plan) = published {
            return Ok(Origin::Published(Box::new(plan)));
        }
        let seed = if self.seed.is_none() && !tournament_info.seed.is_empty() {
            convert::seed("seed", &tournament_info.seed).map_err(malformed_response)?
        } else {
            if self.lists_matches() {
                eprint_line(&format!(
                    "the secret seed of {tournament} is not used: the real schedule has the same \
                     structure with other bots"
                ));
            }
            self.seed()
        };
        let entered = bots.iter().filter(|bot| !bot.withdrawn);
        let names: Vec<_> = entered.map(|bot| NameKey::of(seed, &bot.name)).collect();
        let bots = self.bots.unwrap_or(names.len());
        // The names of a gauntlet's bots tell which of them are the panel.
        let is_named = self.bots.is_none() && matches!(file.schedule, Schedule::Gauntlet(_));
        let names = is_named.then_some(names);
        Ok(Origin::Computed(Planner { schedule: file.schedule, bots, names, seed }))
    }

    /// Lists the matches of a published plan.
    fn list(&self, plan: &PublishedPlan) -> Result<(), Failure> {
        let mut output = BufWriter::with_capacity(BUFFER, io::stdout().lock());
        let mut number = 0;
        plan.list(|planned| {
            number += 1;
            let bots = planned.seats.0.iter().map(|seat| i64::from(seat.0));
            write_match(&mut output, self.json, number, planned.board.map(i64::from), bots)
        })?;
        output.flush().map_err(write_failure)
    }

    /// Whether to list the matches.
    fn lists_matches(&self) -> bool {
        self.json || !self.certificate && !self.cost
    }

    /// The schedule described by the options.
    fn schedule(&self, games: &Games) -> Result<Schedule, Failure> {
        if let Some(path) = &self.file {
            if let Some(option) = self.options().next() {
                return Err(Failure::usage(format!(
                    "{option} does not apply to --file: the file defines the schedule"
                )));
            }
            return Ok(create::read(games, path)?.1.schedule);
        }
        let Some(kind) = self.kind else {
            return Err(Failure::usage(format!("--kind is missing; {KINDS}")));
        };
        let valid = kind.options();
        if let Some(option) = self.options().find(|option| !valid.contains(option)) {
            return Err(Failure::usage(format!(
                "{option} does not apply to --kind {}; its options are {}",
                kind.as_str(),
                valid.join(", ")
            )));
        }
        rounds::check_seeding(self)?;
        Ok(match kind {
            Kind::RoundRobin => Schedule::RoundRobin(RoundRobin {
                legs: self.legs.unwrap_or_default(),
                sides: self.sides.unwrap_or_default(),
                boards: self.boards.unwrap_or_default(),
                opponents: self.opponents,
            }),
            Kind::Foursomes => Schedule::Foursomes(
                FoursomesConfig::new(self.meetings, self.games).map_err(Failure::usage)?,
            ),
            Kind::Tables => {
                let missing = || Failure::usage("--seats is missing; give the seats of a table");
                let tables = Tables::of(self.seats.ok_or_else(missing)?);
                Schedule::Tables(Tables { legs: self.legs.unwrap_or(tables.legs), ..tables })
            }
            Kind::Solo => Schedule::Solo(Solo { legs: self.legs.unwrap_or(Solo::default().legs) }),
            Kind::Knockout => {
                let official = Knockout::default();
                Schedule::Knockout(Knockout {
                    best_of: self.best_of.unwrap_or(official.best_of),
                    extra_pairs: self.extra_pairs.unwrap_or(official.extra_pairs),
                    third_place: self.third_place,
                    seeding: self.seeding.unwrap_or(official.seeding),
                })
            }
            Kind::Swiss | Kind::Gauntlet | Kind::Ladder => rounds::schedule(self, kind)?,
        })
    }

    /// Prints the matches, the cost and the certificate as the options select. The inner result
    /// says whether the schedule is balanced.
    fn show(
        &self,
        planner: &Planner,
        output: &mut impl Write,
    ) -> Result<Result<(), CertificateError>, Failure> {
        let matches = planner.plan()?;
        if let Some(adjustment) = planner.adjustment() {
            if self.lists_matches() {
                eprint_line(&adjustment);
            } else {
                writeln!(output, "{adjustment}").map_err(write_failure)?;
            }
        }
        let total = matches.total();
        let seats = matches.seats();
        if self.lists_matches() {
            let boards = planner.boards() > 1;
            for (number, planned) in (1..).zip(matches) {
                let board = boards.then(|| planned.board.into());
                let bots = planned.seats().iter().copied().map(i64::from);
                write_match(output, self.json, number, board, bots).map_err(write_failure)?;
            }
        }
        if self.cost {
            let seated = total * seats as u64;
            let per_bot = seated / planner.bots as u64..=seated.div_ceil(planner.bots as u64);
            self.write_cost(output, total, &per_bot).map_err(write_failure)?;
        }
        let mut proved = Ok(());
        if self.certificate {
            let proof = planner.prove()?;
            self.write_proof(output, &proof).map_err(write_failure)?;
            proved = proof.proved;
        }
        output.flush().map_err(write_failure)?;
        Ok(proved)
    }

    fn write_cost(
        &self,
        output: &mut impl Write,
        total: u64,
        per_bot: &RangeInclusive<u64>,
    ) -> io::Result<()> {
        let min = per_bot.start();
        let max = per_bot.end();
        if self.json {
            let cost = json!({"matches": total, "fewest_matches": min, "most_matches": max});
            return writeln!(output, "{}", json!({ "cost": cost }));
        }
        writeln!(output, "{total} matches, {} for each bot", range(*min, *max))
    }

    fn write_proof(&self, output: &mut impl Write, proof: &Proof) -> io::Result<()> {
        if self.json {
            let mut certificate = certificate_json(&proof.whole);
            certificate["adjustment"] = json!(proof.adjustment);
            certificate["verified"] = json!(proof.proved.is_ok());
            if !proof.boards.is_empty() {
                certificate["boards"] = proof.boards.iter().map(certificate_json).collect();
            }
            return writeln!(output, "{}", json!({ "certificate": certificate }));
        }
        write!(output, "{}", proof.whole)?;
        for (number, board) in (1..).zip(&proof.boards) {
            write!(output, "board {number}: {board}")?;
        }
        if proof.proved.is_ok() {
            writeln!(output, "verified: balanced as promised")
        } else {
            Ok(())
        }
    }
}

/// The plan of a tournament.
enum Origin {
    /// That of an edition, since the tournament is over.
    Published(Box<PublishedPlan>),
    /// One for the entered bots.
    Computed(Planner),
}

/// All inputs of a plan.
struct Planner {
    schedule: Schedule,
    bots: usize,
    /// The names of the bots, where they are known and decide who meets.
    names: Option<Vec<NameKey>>,
    seed: Seed,
}

/// Certificates, and whether they prove the promised balance.
struct Proof {
    /// The number that the plan has instead of the requested one, as text.
    adjustment: Option<String>,
    whole: Certificate,
    /// One certificate per board, if there are several.
    boards: Vec<Certificate>,
    proved: Result<(), CertificateError>,
}

impl Planner {
    fn plan(&self) -> Result<Matches, Failure> {
        match self.schedule.plan(self.bots, self.seed) {
            Ok(Plan::Matches(matches)) => Ok(matches),
            Ok(Plan::Episodes(_) | Plan::Rounds(_)) => Err(Failure::usage(
                "there is no fixed schedule: each round depends on the previous one",
            )),
            Err(error) => Err(Failure::usage(format!("schedule: {error}"))),
        }
    }

    /// The number that the plan has instead of the requested one, as text.
    fn adjustment(&self) -> Option<String> {
        self.schedule.adjustment(self.bots).map(|adjustment| adjustment.to_string())
    }

    /// The first round, if later rounds depend on results.
    fn rounds(&self) -> Result<Option<RoundPlan>, Failure> {
        if !self.schedule.depends_on_results() {
            return Ok(None);
        }
        let failed = |error: ScheduleError| Failure::usage(format!("schedule: {error}"));
        if let Some(names) = &self.names {
            return self.schedule.rounds(names, self.seed).map_err(failed);
        }
        match self.schedule.plan(self.bots, self.seed) {
            Ok(Plan::Rounds(plan)) => Ok(Some(plan)),
            Ok(_) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    fn boards(&self) -> u32 {
        match self.schedule {
            Schedule::RoundRobin(rules) => rules.boards.get(),
            _ => 1,
        }
    }

    /// Counts all matches, and those on each board.
    fn prove(&self) -> Result<Proof, Failure> {
        let whole = self.plan()?;
        let claim = whole.claim();
        let seats = whole.seats();
        let whole = self.count(&claim, seats, whole)?;
        let mut proved = whole.prove(&claim);
        let mut boards = Vec::new();
        if let Schedule::RoundRobin(rules) = self.schedule
            && self.boards() > 1
        {
            let one_board = Schedule::RoundRobin(RoundRobin { boards: Repetitions::ONCE, ..rules });
            let planner = Self { schedule: one_board, names: None, ..*self };
            let claim = planner.plan()?.claim();
            for board in 0..self.boards() {
                let on_board = self.plan()?.filter(|planned| u32::from(planned.board) == board);
                let certificate = self.count(&claim, seats, on_board)?;
                proved = proved.and_then(|()| certificate.prove(&claim));
                boards.push(certificate);
            }
        }
        Ok(Proof { adjustment: self.adjustment(), whole, boards, proved })
    }

    /// Counts matches for the comparison with a claim.
    fn count(
        &self,
        claim: &Claim,
        seats: usize,
        matches: impl Iterator<Item = PlannedMatch>,
    ) -> Result<Certificate, Failure> {
        let mut counter = CertificateBuilder::for_claim(claim, self.bots, seats, &[]);
        for planned in matches {
            counter.add(planned.seats()).map_err(|error| unbalanced(&error))?;
        }
        Ok(counter.finish())
    }
}

/// A range as text: one number if its ends are equal.
fn range(min: u64, max: u64) -> String {
    if min == max { min.to_string() } else { format!("{min} to {max}") }
}

/// Parses a seed: any text is valid.
#[expect(clippy::unnecessary_wraps, reason = "the form of a value parser")]
pub(in crate::cli) fn seed(text: &str) -> Result<Seed, Infallible> {
    Ok(Seed::of_text(text))
}

fn unbalanced(error: &CertificateError) -> Failure {
    Failure::Negative(format!("the schedule is not balanced: {error}"))
}
