//! `arbiter compare GAME NEW OLD`: is the new version of a bot better, and how sure is that?

use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use arbiter_games::{Games, Params, Seed};
use arbiter_ranking::statistics::text;
use arbiter_ranking::{Decision, Hypotheses, Mean, elo_of_result};
use arbiter_worker::fault::Fault;
use arbiter_worker::sandbox::Host;
use clap::{ArgAction, Args};
use serde_json::{Value, json};

use super::play::{MAX_GAMES, MAX_JOBS, SandboxArgs, scratch_dir, stop_on_signals};
use crate::failure::Failure;
use crate::output::{self, Columns, eprint_line, print};
use crate::play::comparison::{self, Comparison, MATCHES, Measure, NEW, OLD};
use crate::play::plan::Plan;
use crate::play::run::Run;
use crate::play::tally::Tally;
use crate::play::{bots, game, params, progress};
use crate::random_seed::draw_seed;

/// Find out whether a new version of a bot is better than the old one.
#[derive(Debug, Args)]
#[command(
    after_help = "Two versions of a bot for two-player games play each other, each seed from both \
    seats. With --against, each version plays the same seeds in the same seats against these bots. \
    Games for more bots need --against. Intervals are over seeds, 95 %. If all seeds give \
    the same games, nothing is decided.

With --sprt or --margin the run ends as soon as one of the two values is accepted (sequential
test, about 5 % errors). Without, it plays all games. Exit code 0: the second value is accepted, or
the new version is better; 1: the first value is accepted, or it is worse; 4: undecided.

Examples:
  arbiter compare gomoku mybot/ old/mybot/
  arbiter compare gomoku mybot/ old/mybot/ --sprt '0 20' --games 5000 --jobs 4
  arbiter compare wojna mybot/ old/mybot/ --against bots/wojna/house \\
      --against bots/wojna/caller --margin '0 3'
  arbiter compare games/packages/connect4 mybot/ old/mybot/ --sprt '-20 0' --json"
)]
pub(super) struct Compare {
    game: String,
    /// The new version: a directory with bot.toml or a KotH meta file, an executable file, or one
    /// source file (.py, .js, .c, .cpp, .rs, .java, …).
    new: PathBuf,
    /// The old version.
    old: PathBuf,
    /// An opponent of both versions; may be repeated.
    #[arg(long, value_name = "BOT", action = ArgAction::Append)]
    against: Vec<PathBuf>,
    /// Test whether NEW is rather E1 than E0 Elo better than OLD, as in '0 10'.
    #[arg(long, value_name = "E0 E1", value_parser = two_values, allow_hyphen_values = true)]
    sprt: Option<[f64; 2]>,
    /// Test whether NEW gets rather M1 than M0 points more than OLD from a seed, as in '0 3'.
    #[arg(
        long,
        value_name = "M0 M1",
        value_parser = two_values,
        allow_hyphen_values = true,
        conflicts_with = "sprt"
    )]
    margin: Option<[f64; 2]>,
    /// The most games to play.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    games: usize,
    /// Any text. The same seed and bots give the same matches. By default random.
    #[arg(long, value_name = "S")]
    seed: Option<String>,
    /// A game parameter; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", action = ArgAction::Append)]
    set: Vec<String>,
    #[command(flatten)]
    sandbox: SandboxArgs,
    /// How many matches to play at once.
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The largest difference in Elo of a hypothesis: odds of 100,000 to 1.
const MAX_ELO: f64 = 2000.0;
/// The minimum number of different blocks that decide without an interval, because all have the
/// same outcome. Equal versions have six outcomes of the same sign with probability 2/2⁶ = 3 %.
const LEAST_EQUAL: usize = 6;

/// Parses two rising numbers.
fn two_values(text: &str) -> Result<[f64; 2], String> {
    let numbers: Option<Vec<f64>> = text
        .split([' ', ','])
        .filter(|word| !word.is_empty())
        .map(|word| word.parse().ok().filter(|number: &f64| number.is_finite()))
        .collect();
    match numbers.as_deref() {
        Some([low, high]) if low < high => Ok([*low, *high]),
        _ => Err("write two rising numbers, as in '0 10'".to_owned()),
    }
}

/// What the matches say.
#[derive(Debug)]
struct Report<'a> {
    plan: &'a Plan,
    hypotheses: Option<Hypotheses>,
    measure: Measure,
    comparison: Comparison,
    tally: Tally,
    seed: String,
    /// Whether matches are missing after an interruption or a fault.
    is_interrupted: bool,
}

impl Compare {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        self.check_counts()?;
        let host = Arc::new(Host::prepare(self.sandbox.policy)?);
        let stop = stop_on_signals()?;
        let game = game::find(games, &self.game, &host, &stop)?;
        let params = params::parse(&game, &self.set, None, None)?;
        let paths = self.paths(&params)?;
        let seed = self.seed.clone().map_or_else(draw_seed, Ok)?;
        let scratch = scratch_dir()?;
        let snapshots = scratch.path().join("bots");
        fs::create_dir(&snapshots).map_err(|error| Failure::Refused(error.to_string()))?;
        let entries = bots::load(&game, &paths, &snapshots)?;
        let blocks = self.games / MATCHES;
        let plan = comparison::plan(params, entries, Seed::of_text(&seed), blocks)?;
        if !self.json {
            eprint_line(&format!("seed {seed}; {}", host.summary()));
        }
        let run = Run {
            plan: &plan,
            host: &host,
            stop,
            clock: self.sandbox.clock(),
            jobs: self.jobs,
            records: None,
            state: None,
        };
        let report = self.play(&run, seed);
        let printed = print(|out| {
            if self.json {
                return out.json(&report.json());
            }
            report.lines().iter().try_for_each(|line| out.line(line))
        });
        match printed {
            // The exit code still answers.
            Ok(()) | Err(Failure::OutputClosed) => {}
            Err(failure) => return Err(failure),
        }
        match report.decision() {
            Decision::High => Ok(()),
            Decision::Low => Err(Failure::Negative(String::new())),
            Decision::Undecided => Err(Failure::Undecided),
        }
    }

    fn check_counts(&self) -> Result<(), Failure> {
        let Self { games, jobs, .. } = self;
        Err(Failure::Usage(if !(MATCHES..=MAX_GAMES).contains(games) {
            format!("--games {games}: use {MATCHES} to {MAX_GAMES}")
        } else if !(1..=MAX_JOBS).contains(jobs) {
            format!("--jobs {jobs}: use 1 to {MAX_JOBS}")
        } else if self.sprt.is_some() && !self.against.is_empty() {
            "--sprt is for two versions against each other; with --against use --margin".to_owned()
        } else if self.sprt.is_some_and(|elo| elo.iter().any(|elo| elo.abs() > MAX_ELO)) {
            format!("--sprt: use values from -{MAX_ELO} to {MAX_ELO} Elo")
        } else {
            return Ok(());
        }))
    }

    /// The two versions and enough opponents for a table.
    fn paths(&self, params: &Params) -> Result<Vec<PathBuf>, Failure> {
        let seats = params.seats();
        let game = params.game();
        if let Some(episodes) = &game.episodes
            && params.rounds().is_some_and(|rounds| rounds > 1)
        {
            let key = &episodes.rounds_param;
            let cause = "episodes are not compared, but single rounds are";
            return Err(Failure::usage(format!("{game}: {cause}: --set {key}=1")));
        }
        if *seats.end() == 1 {
            return Err(Failure::usage(format!("{game} is for one bot: play each version alone")));
        }
        if self.against.is_empty() && !seats.contains(&2) {
            let other = match &game.seats_param {
                Some(key) if game.seats.contains(&2) => format!(", or --set {key}=2"),
                _ => String::new(),
            };
            return Err(Failure::usage(format!(
                "{game} is not for two bots; name the opponents of both versions with \
                 --against{other}"
            )));
        }
        let least = seats.start() - 1;
        let count = if self.against.is_empty() { 0 } else { least.max(self.against.len()) };
        let opponents = self.against.iter().cycle().take(count).cloned();
        Ok([self.new.clone(), self.old.clone()].into_iter().chain(opponents).collect())
    }

    fn hypotheses(&self) -> Option<Hypotheses> {
        let elo = self.sprt.map(|[low, high]| Hypotheses::Elo { low, high });
        elo.or(self.margin.map(|[low, high]| Hypotheses::Margin { low, high }))
    }

    /// Plays blocks until they decide.
    fn play<'a>(&self, run: &Run<'a>, seed: String) -> Report<'a> {
        let plan = run.plan;
        let hypotheses = self.hypotheses();
        let is_paired = self.against.is_empty() && self.margin.is_none();
        let measure = if is_paired { Measure::Results } else { Measure::Points };
        let tally = Tally::new(plan);
        let comparison = Comparison::new(measure);
        let is_interrupted = false;
        let mut report =
            Report { plan, hypotheses, measure, comparison, tally, seed, is_interrupted };
        let bar = progress::bar(plan.jobs.len(), "games");
        let result = run.play(
            |job, result| {
                bar.inc(1);
                let Some(block) = report.comparison.add(job.number, result) else {
                    return ControlFlow::Continue(());
                };
                for result in &block {
                    report.tally.add(result);
                }
                if let Some(llr) = report.llr() {
                    bar.set_message(format!("log-likelihood ratio {llr:+.2}, games"));
                }
                match report.test() {
                    Decision::Undecided if !report.comparison.only_repeats() => {
                        ControlFlow::Continue(())
                    }
                    _ => ControlFlow::Break(()),
                }
            },
            |_| {},
        );
        bar.finish_and_clear();
        // What was played is shown: it is no worse than a run with fewer games.
        if let Err(fault) = result {
            report.is_interrupted = true;
            eprint_line(&match fault {
                Fault::Abandoned => "interrupted".to_owned(),
                fault => format!("error: {fault}; retries failed too"),
            });
        }
        report
    }
}

impl Report<'_> {
    /// The log-likelihood ratio of the sequential test, if there is one.
    fn llr(&self) -> Option<f64> {
        self.hypotheses.map(|hypotheses| hypotheses.llr(&self.comparison.outcomes))
    }

    /// What the sequential test has decided, if there is one. The same matches again decide
    /// nothing.
    fn test(&self) -> Decision {
        let llr = self.llr().filter(|_| !self.comparison.blocks.has_no_chance());
        llr.map_or(Decision::Undecided, Hypotheses::decide)
    }

    /// Whether the new version forfeited every match, and the old one none.
    fn only_forfeits(&self) -> bool {
        let forfeits = |entry: usize| self.tally.rows[entry].sums.forfeits.iter().sum::<i64>();
        let games = self.tally.rows[NEW].games;
        self.comparison.only_repeats() && forfeits(NEW) == games && forfeits(OLD) == 0
    }

    /// What the matches decide: by the test, or else by the interval of all matches.
    fn decision(&self) -> Decision {
        if self.only_forfeits() {
            return Decision::Low;
        }
        if self.hypotheses.is_some() || self.is_interrupted {
            return self.test();
        }
        let is_varied = self.comparison.blocks.distinct() >= LEAST_EQUAL;
        match self.mean() {
            _ if self.comparison.blocks.has_no_chance() => Decision::Undecided,
            Some(Mean { mean, margin: None }) if is_varied && mean > 0.0 => Decision::High,
            Some(Mean { mean, margin: None }) if is_varied && mean < 0.0 => Decision::Low,
            Some(Mean { mean, margin: Some(margin) }) if mean - margin > 0.0 => Decision::High,
            Some(Mean { mean, margin: Some(margin) }) if mean + margin < 0.0 => Decision::Low,
            _ => Decision::Undecided,
        }
    }

    /// The mean advantage of the new version in a block. Without an interval if the outcomes do not
    /// differ.
    fn mean(&self) -> Option<Mean> {
        let Mean { mean, margin } = self.comparison.outcomes.mean()?;
        let differ = self.comparison.outcomes.variance().is_some_and(|variance| variance > 0.0);
        Some(Mean { mean: mean - self.center(), margin: margin.filter(|_| differ) })
    }

    /// The outcome of a block between equal versions.
    fn center(&self) -> f64 {
        match self.measure {
            Measure::Results => 2.0,
            Measure::Points => 0.0,
        }
    }

    /// The difference in Elo, with the ends of its interval.
    fn elo(&self) -> Option<(f64, Option<[f64; 2]>)> {
        let Mean { mean, margin } = self.mean().filter(|_| self.measure == Measure::Results)?;
        let elo = |mean: f64| elo_of_result(0.5 + mean / 4.0);
        Some((elo(mean), margin.map(|margin| [elo(mean - margin), elo(mean + margin)])))
    }

    fn probability(&self) -> Option<f64> {
        self.comparison.outcomes.probability_above(self.center())
    }

    /// The report for people.
    fn lines(&self) -> Vec<String> {
        let mut lines = self.table().lines();
        lines.push(self.extent());
        lines.extend(self.advantage());
        let probability = self.probability();
        lines.extend(probability.map(|probability| {
            format!("probability that the new version is better: {:.1} %", 100.0 * probability)
        }));
        lines.extend(self.llr().map(|llr| {
            let (low, high) = Hypotheses::bounds();
            format!("log-likelihood ratio {llr:.2}, decided at {low:.2} or {high:.2}")
        }));
        lines.push(self.conclusion());
        lines
    }

    /// A row for each version.
    fn table(&self) -> Columns {
        let is_paired = self.comparison.results.iter().any(|count| *count > 0);
        let mut header = vec!["version".to_owned(), "bot".to_owned(), "games".to_owned()];
        if is_paired {
            header.extend(["won", "drawn", "lost"].map(str::to_owned));
        }
        header.extend(self.plan.columns().first().map(|column| (*column).to_owned()));
        header.extend(["forfeits", "slowest reply"].map(str::to_owned));
        let mut table = Columns::new(header, &[0, 1]);
        let [won, drawn, lost] = self.comparison.results;
        for (label, entry, results) in
            [("new", NEW, [won, drawn, lost]), ("old", OLD, [lost, drawn, won])]
        {
            let row = &self.tally.rows[entry];
            let mut cells = vec![label.to_owned(), self.plan.labels[entry].clone()];
            cells.push(row.games.to_string());
            if is_paired {
                cells.extend(results.map(|count| count.to_string()));
            }
            cells.push(row.sums.score.first().copied().unwrap_or(0).to_string());
            cells.push(output::forfeits(&row.sums.forfeits));
            let slowest = row.reply_times().map(|times| output::span(times.max));
            cells.push(slowest.unwrap_or_else(|| "-".to_owned()));
            table.push(cells);
        }
        table
    }

    /// How much was played.
    fn extent(&self) -> String {
        let blocks = self.comparison.blocks.games;
        let games = blocks * MATCHES;
        let tables = match self.plan.bots_per_job() {
            2 => String::new(),
            seats => format!(" at tables of {seats}"),
        };
        let different = self.comparison.blocks.distinct();
        let repeated = if different < blocks {
            format!(" (different pairs of games: {different})")
        } else {
            String::new()
        };
        format!("games: {games}, seeds: {blocks}{tables}{repeated}")
    }

    /// The advantage of the new version, for people.
    fn advantage(&self) -> Option<String> {
        let Mean { mean, margin } = self.mean()?;
        let value = match self.measure {
            Measure::Results => {
                let percent = |mean: f64| (50.0 + 25.0 * mean).clamp(0.0, 100.0);
                let interval = margin.map(|margin| {
                    format!(" ({:.1} to {:.1})", percent(mean - margin), percent(mean + margin))
                });
                let interval = interval.unwrap_or_default();
                format!("result of the new version: {:.1} %{interval}", percent(mean))
            }
            Measure::Points => {
                format!("points more from a seed: {}", text::mean(mean, margin))
            }
        };
        let elo = match self.elo() {
            Some((elo, Some([low, high]))) => format!("; Elo {elo:+.0} ({low:+.0} to {high:+.0})"),
            Some((elo, None)) => format!("; Elo {elo:+.0}"),
            None => String::new(),
        };
        let remark = if margin.is_none() {
            "; no interval, because all seeds gave the same result"
        } else {
            ""
        };
        Some(format!("{value}{elo}{remark}"))
    }

    /// The answer, for people.
    fn conclusion(&self) -> String {
        let values = self.hypotheses.map(|hypotheses| match hypotheses {
            Hypotheses::Elo { low, high } => (low, high, "Elo"),
            Hypotheses::Margin { low, high } => (low, high, "points"),
        });
        match (self.decision(), values) {
            _ if self.only_forfeits() => "the new version forfeits every game".to_owned(),
            (Decision::High, None) => "the new version is better".to_owned(),
            (Decision::Low, None) => "the new version is worse".to_owned(),
            (Decision::High, Some((low, high, unit))) => {
                format!("accepted: {high:+} {unit} rather than {low:+}")
            }
            (Decision::Low, Some((low, high, unit))) => {
                format!("rejected: {low:+} {unit} rather than {high:+}")
            }
            (Decision::Undecided, _) if self.comparison.only_repeats() => {
                "undecided: all seeds gave the same games, so that more of them tell nothing; the \
                 bots and the game seem to use no chance"
                    .to_owned()
            }
            (Decision::Undecided, _) => "undecided; play more with --games".to_owned(),
        }
    }

    /// The decision in one word.
    fn decision_word(&self) -> &'static str {
        match (self.decision(), self.hypotheses) {
            (Decision::High, Some(_)) => "accepted",
            (Decision::Low, Some(_)) => "rejected",
            (Decision::High, None) => "better",
            (Decision::Low, None) => "worse",
            (Decision::Undecided, _) => "undecided",
        }
    }

    fn json(&self) -> Value {
        let comparison = &self.comparison;
        let mean = self.mean();
        let version = |entry: usize| {
            let row = &self.tally.rows[entry];
            json!({
                "bot": self.plan.entries[entry].name,
                "path": self.plan.entries[entry].path.display().to_string(),
                "games": row.games,
                "points": row.sums.score.first().map(|sum| output::sum_json(*sum)),
                "forfeits": output::forfeits_json(&row.sums.forfeits),
                "slowest_us": row.reply_times().map(|times| times.max.0),
            })
        };
        let [won, drawn, lost] = comparison.results;
        let elo = self.elo();
        let (low, high) = Hypotheses::bounds();
        json!({
            "game": self.plan.params.game(),
            "seed": self.seed,
            "new": version(NEW),
            "old": version(OLD),
            "seats": self.plan.bots_per_job(),
            "seeds": comparison.blocks.games,
            "different": comparison.blocks.distinct(),
            "won": won, "drawn": drawn, "lost": lost,
            "measure": match self.measure { Measure::Results => "half_points", Measure::Points => "points" },
            "advantage": mean.map(|mean| mean.mean),
            "advantage95": mean.and_then(|Mean { mean, margin }| {
                margin.map(|margin| [mean - margin, mean + margin])
            }),
            "elo": elo.map(|(elo, _)| elo),
            "elo95": elo.and_then(|(_, interval)| interval),
            "probability_better": self.probability(),
            "llr": self.llr(),
            "llr_bounds": self.hypotheses.map(|_| [low, high]),
            "hypotheses": self.hypotheses.map(|hypotheses| match hypotheses {
                Hypotheses::Elo { low, high } => json!({"elo": [low, high]}),
                Hypotheses::Margin { low, high } => json!({"points": [low, high]}),
            }),
            "interrupted": self.is_interrupted,
            "decision": self.decision_word(),
        })
    }
}
