//! The rules of a package with the parameters of a match.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use arbiter_games::{
    BotName, Bounds, CarriedScore, EpisodeRules, MatchState, ParamInfo, ParamInput, ParamKind,
    ParamsError, Rules, Seed, StartError, Value, Values,
};

use crate::clock::PackageClock;
use crate::episodes::PackageEpisodes;
use crate::match_state::{MatchSetup, PackageMatch};
use crate::params;
use crate::protocol::{MAX_BAD_ANSWERS, MAX_SCORE, NewMatch, PROTOCOL_VERSION};
use crate::rules_host::RulesHost;

/// The parameter of packages that draw: whether pictures are drawn and recorded.
pub(crate) const FRAMES: &str = "frames";

/// What all matches of a package have in common.
#[derive(Debug)]
pub(crate) struct PackageInfo {
    pub(crate) seats: RangeInclusive<usize>,
    /// The number of components of a score.
    pub(crate) columns: usize,
    pub(crate) clock: PackageClock,
    /// Whether the rules give arguments to programs of bots.
    pub(crate) has_arguments: bool,
    pub(crate) params: Vec<ParamInfo>,
    pub(crate) episodes: Option<PackageEpisodes>,
    pub(crate) host: Arc<dyn RulesHost>,
}

impl PackageInfo {
    /// The default of a parameter.
    pub(crate) fn default(&self, key: &str) -> Option<Value> {
        self.params.iter().find(|param| param.key == key)?.default.clone()
    }
}

/// The rules of a package with the parameters of a match.
#[derive(Clone)]
pub(crate) struct PackageRules {
    pub(crate) package: Arc<PackageInfo>,
    /// The value of every parameter, in the order of the descriptor.
    pub(crate) values: Values,
}

impl PackageRules {
    /// The rules with the default of every parameter.
    pub(crate) fn new(package: PackageInfo) -> Self {
        let mut values = Values::new();
        for param in &package.params {
            let default = param.default.clone();
            values = values.with(&param.key, default.expect("a descriptor has every default"));
        }
        Self { package: Arc::new(package), values }
    }
}

impl PackageRules {
    /// The parameters of a match between this many bots, as the rules get them: without those that
    /// only Arbiter needs, and with a number for each seat where seats may differ.
    fn params(&self, seats: usize) -> Result<Values, StartError> {
        let rounds = self.package.episodes.as_ref().map(|episodes| &*episodes.rounds);
        let is_of_match = |key: &str| key != FRAMES && Some(key) != rounds;
        let params = self.package.params.iter().filter(|param| is_of_match(&param.key));
        params.filter_map(|param| Some((param, self.values.get(&param.key)?))).try_fold(
            Values::new(),
            |values, (param, value)| {
                let value = params::at_table(param, value, seats).map_err(StartError)?;
                Ok(values.with(&param.key, value))
            },
        )
    }

    /// Whether the rules draw.
    fn has_frames(&self) -> bool {
        self.values.get(FRAMES) == Some(&Value::Boolean(true))
    }
}

/// The values. The names of record files derive from this text.
impl fmt::Debug for PackageRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Params").field(&self.values).finish()
    }
}

impl Rules for PackageRules {
    fn set(&mut self, input: &ParamInput<'_>) -> Result<(), ParamsError> {
        let param = self.package.params.iter().find(|param| param.key == input.key);
        let Some(param) = param else { return Err(input.unknown()) };
        let value = params::check(param, input.value).map_err(ParamsError::new)?;
        self.values = std::mem::take(&mut self.values).with(input.key, value);
        Ok(())
    }

    fn values(&self) -> Values {
        self.values.clone()
    }

    fn seats(&self) -> RangeInclusive<usize> {
        self.package.seats.clone()
    }

    fn start(&self, names: &[BotName], seed: Seed) -> Result<Box<dyn MatchState>, StartError> {
        let new = NewMatch {
            protocol: PROTOCOL_VERSION,
            params: self.params(names.len())?,
            seed,
            bots: names.to_vec(),
            frames: self.has_frames(),
        };
        Ok(Box::new(PackageMatch::new(MatchSetup {
            host: Arc::clone(&self.package.host),
            columns: self.package.columns,
            clock: self.package.clock.clone(),
            new,
            has_arguments: self.package.has_arguments,
        })))
    }

    fn episodes(&self) -> Option<&dyn EpisodeRules> {
        self.package.episodes.is_some().then_some(self as _)
    }

    fn bounds(&self, forfeited: &[bool]) -> Option<Bounds> {
        let seats = forfeited.len();
        let sum = MAX_SCORE * i64::try_from(seats).ok()?;
        let columns = self.package.columns;
        Some(Bounds {
            seats: vec![vec![-MAX_SCORE..=MAX_SCORE; columns]; seats],
            sums: vec![-sum..=sum; columns],
            bad_answers: vec![MAX_BAD_ANSWERS; seats],
        })
    }
}

impl PackageRules {
    /// The section of the descriptor.
    ///
    /// # Panics
    /// If the game has no episodes.
    fn section(&self) -> &PackageEpisodes {
        self.package.episodes.as_ref().expect("only games with episodes have their rules")
    }

    /// The number that all seats have in the parameter `key`.
    fn for_all(&self, key: &str) -> Result<i64, StartError> {
        let number = self.values.get(key).and_then(Value::as_integer);
        let number = number.and_then(|number| i64::try_from(number).ok());
        number.filter(|number| *number <= MAX_SCORE).ok_or_else(|| {
            StartError(format!(
                "{key}: in an episode it is one number for all bots, {MAX_SCORE} at most"
            ))
        })
    }
}

impl EpisodeRules for PackageRules {
    fn rounds(&self) -> u32 {
        let rounds = self.values.get(&self.section().rounds).and_then(Value::as_integer);
        rounds.and_then(|rounds| rounds.try_into().ok()).expect("the value was checked")
    }

    fn begin(&self) -> Result<CarriedScore, StartError> {
        let PackageEpisodes { score, bad_answers, least, .. } = self.section();
        // Tables differ in size, so no parameter may have a number for each seat.
        let params = &self.package.params;
        for param in params.iter().filter(|param| matches!(param.kind, ParamKind::PerSeat(_))) {
            self.for_all(&param.key)?;
        }
        let bad_answers = bad_answers.as_ref().map(|key| self.for_all(key));
        let start = self.for_all(score)?;
        if start < *least {
            let error = format!("{score} = {start}: a bot needs {least} to play a round");
            return Err(StartError(error));
        }
        Ok(CarriedScore { score: start, bad_answers: bad_answers.transpose()?.unwrap_or(0) })
    }

    fn at_table(&self, carried: &[CarriedScore]) -> Arc<dyn Rules> {
        let PackageEpisodes { rounds, score, bad_answers, .. } = self.section();
        let list = |number: fn(&CarriedScore) -> i64| {
            Value::List(carried.iter().map(number).map(Value::from).collect())
        };
        // A match is one round, so it has the default.
        let mut values = self.values.clone().with(score, list(|seat| seat.score));
        if let Some(default) = self.package.default(rounds) {
            values = values.with(rounds, default);
        }
        if let Some(key) = bad_answers {
            values = values.with(key, list(|seat| seat.bad_answers));
        }
        Arc::new(Self { values, ..self.clone() })
    }
}
