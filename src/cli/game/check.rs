//! `arbiter game check`: tests a game package as its author would have to.

mod attacks;
mod dialogue;
mod golden;
mod hostile;
mod house_bots;
mod playout;
mod playouts;
mod pool;
mod problem;
mod report;
mod summary;
mod svg;

use std::path::PathBuf;
use std::sync::Arc;

use arbiter_games::{Games, Seed};
use arbiter_packages::{Carrier, RulesHost};
use arbiter_worker::package::Package;
use arbiter_worker::sandbox::{Host, Policy};
use arbiter_worker::seat::StopSignal;
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use serde_json::{Value as Json, json};

use self::attacks::Attacks;
use self::dialogue::RulesSupply;
use self::house_bots::HouseBots;
use self::playout::Subject;
use self::playouts::{Playouts, Sample};
use self::problem::Problem;
use self::report::Report;
use crate::cli::play::stop_on_signals;
use crate::failure::Failure;
use crate::output::{eprint_line, print};
use crate::play::game::load;
use crate::play::progress;
use crate::random_seed::draw_seed;

/// Test a game package: its descriptor, rules and pictures.
///
/// Plays random matches, asks the rules the same questions again in another environment, replies
/// with thousands of hostile texts, and forfeits at every request. Exit code 1 if a check fails.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter game check games/packages/connect4
  arbiter game check mygame --playouts 1000
  arbiter game check mygame --seed 5f3a --only hostile")]
pub(super) struct Check {
    /// The folder or file of the package.
    #[arg(value_name = "DIR")]
    package: PathBuf,
    /// How many random matches to play for each number of seats.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = at_least_one)]
    playouts: usize,
    /// How many hostile replies to give.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = at_least_one)]
    hostile: usize,
    /// Any text. The same seed gives the same matches. By default random.
    #[arg(long, value_name = "S")]
    seed: Option<String>,
    /// Make only this check; may be repeated.
    #[arg(long, value_name = "CHECK")]
    only: Vec<Stage>,
    /// Isolation of the rules: auto, strict, namespaces, landlock or off.
    #[arg(long, value_name = "POLICY", default_value = "auto")]
    sandbox: Policy,
    /// Print one JSON object per check.
    #[arg(long)]
    json: bool,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("write a whole number, at least 1".to_owned()),
        Ok(number) => Ok(number),
    }
}

/// A check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stage {
    Descriptor,
    Golden,
    Playouts,
    Determinism,
    Scores,
    Frames,
    Speed,
    Hostile,
    Forfeits,
}

impl Stage {
    fn as_str(self) -> &'static str {
        match self {
            Self::Descriptor => "descriptor",
            Self::Golden => "golden",
            Self::Playouts => "playouts",
            Self::Determinism => "determinism",
            Self::Scores => "scores",
            Self::Frames => "frames",
            Self::Speed => "speed",
            Self::Hostile => "hostile",
            Self::Forfeits => "forfeits",
        }
    }
}

/// Runs a program of the rules in another environment: another directory, home, time zone, language
/// and seed of hashes.
const ELSEWHERE: [&str; 4] = [
    "sh",
    "-c",
    "mkdir .elsewhere && find . -mindepth 1 -maxdepth 1 ! -name .elsewhere \
         -exec cp -R {} .elsewhere/ ';' && cd .elsewhere && \
     HOME=/nowhere USER=other TZ=Pacific/Kiritimati LANG=POSIX LC_ALL=POSIX PYTHONHASHSEED=7 \
         exec \"$@\"",
    "sh",
];

impl Check {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        if !Package::is_at(&self.package) {
            load(&self.package)?;
        }
        let host = Arc::new(Host::prepare(self.sandbox)?);
        let stop = stop_on_signals()?;
        let seed = self.seed.clone().map_or_else(draw_seed, Ok)?;
        if !self.json {
            eprint_line(&format!("seed {seed}; {}", host.summary()));
        }
        let mut session = Session { check: &self, host, stop, seed, failed: 0, done: 0 };
        session.check(games)?;
        match session.failed {
            0 => Ok(()),
            failed => {
                let path = self.package.display();
                Err(Failure::Negative(format!(
                    "{path}: {failed} of {} checks failed",
                    session.done
                )))
            }
        }
    }

    fn includes(&self, stage: Stage) -> bool {
        self.only.is_empty() || self.only.contains(&stage)
    }
}

/// A run of the checks.
struct Session<'a> {
    check: &'a Check,
    host: Arc<Host>,
    stop: Arc<StopSignal>,
    /// The text of the seed.
    seed: String,
    failed: usize,
    done: usize,
}

/// What a check returns: a text for people, and members of a JSON object.
type Outcome = Result<(String, Json), Problem>;

impl Session<'_> {
    fn check(&mut self, games: &Games) -> Result<(), Failure> {
        let package = match Package::load(&self.check.package) {
            Ok(package) => package,
            Err(error) => {
                return self.report(Stage::Descriptor, Err(Problem::new(error.to_string())));
            }
        };
        let bots = house_bots::load(&package);
        let descriptor = describe(games, &package, bots.as_ref().map(Vec::len));
        let is_usable = descriptor.is_ok();
        self.report(Stage::Descriptor, descriptor)?;
        if !is_usable {
            return Ok(());
        }
        let bots = HouseBots {
            bots: bots.unwrap_or_default(),
            framing: package.descriptor.framing.clone(),
            protocol: package.descriptor.protocol,
            host: Arc::clone(&self.host),
            stop: Arc::clone(&self.stop),
        };
        let rules = match package.rules(&self.host, &self.stop, &[]) {
            Ok(rules) => rules,
            Err(error) => {
                return self.report(Stage::Playouts, Err(Problem::new(error.to_string())));
            }
        };
        let subject = Subject { descriptor: &package.descriptor, digest: &package.digest };
        let supply = RulesSupply::new(Arc::clone(&rules), false);
        if self.check.includes(Stage::Golden) {
            let outcome = golden::check(&subject, package.path(), &supply);
            self.report(Stage::Golden, outcome)?;
        }
        let elsewhere = package.rules(&self.host, &self.stop, &ELSEWHERE);
        let elsewhere = elsewhere.map_err(Failure::usage)?;
        self.play(subject, &rules, elsewhere, &bots)
    }

    /// Plays the random matches, and attacks.
    fn play(
        &mut self,
        subject: Subject<'_>,
        rules: &Arc<dyn RulesHost>,
        elsewhere: Arc<dyn RulesHost>,
        bots: &HouseBots,
    ) -> Result<(), Failure> {
        let seed = Seed::of_text(&self.seed);
        let supply = RulesSupply::new(Arc::clone(rules), false);
        let lists_legal = match playouts::lists_legal(&subject, &supply, seed) {
            Ok(true) => true,
            Ok(false) if !bots.bots.is_empty() => false,
            Ok(false) => {
                let cause = "the rules list no legal replies, and there are no house bots: answer \
                             the question `legal`, or add a bot to bots/";
                return self.report(Stage::Playouts, Err(Problem::new(cause)));
            }
            Err(problem) => return self.report(Stage::Playouts, Err(problem)),
        };
        let playouts =
            Playouts { subject, supply, elsewhere, bots: (!lists_legal).then_some(bots), seed };
        let samples = self.playouts(&playouts)?;
        // A program can usually play several matches, which saves its start. Modules start at once.
        let reuses = matches!(subject.descriptor.carrier, Carrier::Run(_));
        let supply = RulesSupply::new(Arc::clone(rules), reuses);
        let attacks = Attacks { subject, supply, seed, lists_legal, samples: &samples };
        if self.check.includes(Stage::Hostile) {
            let count = self.check.hostile;
            let outcome = with_bar(count, "hostile replies", |bar| attacks.hostile(count, bar));
            self.report(Stage::Hostile, outcome)?;
        }
        if self.check.includes(Stage::Forfeits) {
            let outcome = with_bar(1, "forfeits", |bar| attacks.forfeits(bar));
            self.report(Stage::Forfeits, outcome)?;
        }
        Ok(())
    }

    fn playouts(&mut self, playouts: &Playouts<'_>) -> Result<Vec<Sample>, Failure> {
        let all = [Stage::Playouts, Stage::Determinism, Stage::Scores, Stage::Frames, Stage::Speed];
        // Attacks need one match.
        let is_wanted = all.into_iter().any(|stage| self.check.includes(stage));
        let count = if is_wanted { self.check.playouts } else { 1 };
        let samples = match with_bar(count, "matches", |bar| playouts.play(count, bar)) {
            Ok(samples) => samples,
            Err(problem) => {
                self.report(Stage::Playouts, Err(problem))?;
                return Ok(Vec::new());
            }
        };
        let descriptor = playouts.subject.descriptor;
        let draws = descriptor.params.iter().any(|param| param.key == "frames");
        let outcomes: [(Stage, Outcome); 5] = [
            (Stage::Playouts, Ok(summary::matches(&samples))),
            (Stage::Determinism, summary::determinism(&samples)),
            (Stage::Scores, Ok(summary::scores(&samples, descriptor))),
            (Stage::Frames, summary::frames(&samples, draws)),
            (Stage::Speed, Ok(summary::speed(&samples))),
        ];
        for (stage, outcome) in outcomes {
            if self.check.includes(stage) {
                self.report(stage, outcome)?;
            }
        }
        Ok(samples)
    }

    /// Prints what a check found.
    fn report(&mut self, stage: Stage, result: Outcome) -> Result<(), Failure> {
        if self.stop.check().is_err() {
            return Err(Failure::Negative("interrupted".to_owned()));
        }
        self.done += 1;
        self.failed += usize::from(result.is_err());
        let path = self.check.package.display();
        let stage_name = stage.as_str();
        let repeat = format!("arbiter game check {path} --seed {} --only {stage_name}", self.seed);
        let report = Report { stage, result };
        print(|out| report.print(out, self.check.json, &repeat))
    }
}

/// Works with a progress bar.
fn with_bar<T>(length: usize, label: &'static str, work: impl FnOnce(&ProgressBar) -> T) -> T {
    let bar = progress::bar(length, label);
    let result = work(&bar);
    bar.finish_and_clear();
    result
}

/// Describes a package. `bots` is the number of its house bots.
fn describe(games: &Games, package: &Package, bots: Result<usize, &String>) -> Outcome {
    let Package { descriptor, digest, .. } = package;
    let name = &descriptor.name;
    if games.find(name).is_ok() {
        let cause = format!("a built-in game is named {name}; choose another `name` in game.toml");
        return Err(Problem::new(cause));
    }
    let bots = bots.map_err(|error| Problem::new(format!("a house bot is not valid: {error}")))?;
    let seats = arbiter_games::seat_counts(&descriptor.seats);
    let columns = descriptor.columns.join(", ");
    let version = &descriptor.version;
    let text = if package.bot_text().is_some() { "" } else { ", no BOT.md for authors of bots" };
    let bots_text = if bots == 1 { "1 house bot".to_owned() } else { format!("{bots} house bots") };
    let line =
        format!("{name} version {version}: {seats} seats, score {columns}, {bots_text}{text}");
    Ok((
        line,
        json!({"name": name, "version": version, "digest": digest, "house_bots": bots,
        "bot_text": package.bot_text().is_some()}),
    ))
}
