//! What the next edition will lack if a bot enters, before it enters: enough bots, or a number that
//! the schedule requests.

use arbiter_games::Games;
use arbiter_proto::ids::{BotId, EditionId, TournamentId};
use arbiter_schedule::{Adjustment, MAX_BOTS, Schedule};
use sqlx::{PgConnection, Result};

use super::{Rerun, TournamentFile, plan_history};
use crate::cache::Cache;
use crate::db::tournaments::Tournament;
use crate::db::{bots, editions, versions};

/// Why a gauntlet cannot be played yet, if its panel has entered.
const NO_CANDIDATE: &str =
    "an edition needs a bot that is not of the panel, and none has entered yet";

/// A bot that does not exist yet.
const NEW_BOT: BotId = BotId(i32::MAX);

/// Maximum number of adjustments in the cache, about 100 bytes each.
const MAX_ADJUSTMENTS: usize = 1024;

/// Says what next editions will lack. Clones share what was computed before.
#[derive(Clone, Debug)]
pub struct EntryOutlook {
    adjustments: Cache<NextPlan, Option<Adjustment>>,
}

/// What the adjustment of a next plan depends on. The schedule of a tournament never changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct NextPlan {
    tournament: TournamentId,
    /// The newest edition, whose plan the next one extends.
    newest: Option<EditionId>,
    /// BLAKE3 of the ids of the bots that will take part, in order.
    bots: [u8; 32],
}

impl Default for EntryOutlook {
    fn default() -> Self {
        Self { adjustments: Cache::new(MAX_ADJUSTMENTS) }
    }
}

impl EntryOutlook {
    /// What the next edition will lack, one line for people, if this bot takes part besides the
    /// entered ones; `None` stands for a new bot. The result is `None` if the edition will lack
    /// nothing. The edition is not planned for the answer.
    pub async fn with_new_bot(
        &self,
        db: &mut PgConnection,
        games: &Games,
        tournament: &Tournament,
        bot: Option<BotId>,
    ) -> Result<Option<String>> {
        // The attempt to open an edition reports an error of the file.
        let Ok(file) = TournamentFile::from_json(games, &tournament.settings) else {
            return Ok(None);
        };
        let mut entered = versions::entered_bots(&mut *db, tournament.id).await?;
        let bot = bot.unwrap_or(NEW_BOT);
        if !entered.contains(&bot) {
            entered.push(bot);
        }
        let newest = editions::newest_id(&mut *db, tournament.id).await?;
        let count = entered.len();
        if count < file.schedule.min_bots() {
            return Ok(Some(too_few(&file, count, newest.is_some())));
        }
        if count > MAX_BOTS {
            return Ok(Some(format!("an edition has at most {MAX_BOTS} bots, not {count}")));
        }
        if let Schedule::Gauntlet(rules) = &file.schedule {
            let rows = bots::list(&mut *db, tournament.id).await?;
            let names = rows.iter().filter(|row| entered.contains(&row.id)).map(|row| &row.name);
            let names: Vec<_> = names.collect();
            if !names.iter().any(|name| rules.panel.contains(name)) {
                return Ok(Some(no_panel(&rules.panel)));
            }
            // The name of a new bot is not known here.
            if bot != NEW_BOT && names.iter().all(|name| rules.panel.contains(name)) {
                return Ok(Some(NO_CANDIDATE.to_owned()));
            }
        }
        if let Err(error) = file.schedule.bounds(count, tournament.next_seed()) {
            return Ok(Some(error.to_string()));
        }
        let adjustment = self.adjustment(db, tournament, &file, &entered, newest).await?;
        Ok(adjustment.map(|adjustment| adjustment.to_string()))
    }

    /// The number that the next edition of these bots will have instead of the requested one.
    async fn adjustment(
        &self,
        db: &mut PgConnection,
        tournament: &Tournament,
        file: &TournamentFile,
        bots: &[BotId],
        newest: Option<EditionId>,
    ) -> Result<Option<Adjustment>> {
        let mut hasher = blake3::Hasher::new();
        for bot in bots {
            hasher.update(&bot.0.to_le_bytes());
        }
        let next =
            NextPlan { tournament: tournament.id, newest, bots: *hasher.finalize().as_bytes() };
        if let Some(computed) = self.adjustments.get(&next, None) {
            return Ok(*computed);
        }
        let adjustment = plan_history::next_adjustment(db, tournament, file, bots, newest).await?;
        Ok(*self.adjustments.insert(next, adjustment))
    }
}

/// How many bots have entered, as the end of a sentence about the number that is needed.
pub(crate) fn have_entered(bots: usize) -> String {
    match bots {
        0 => "none has entered yet".to_owned(),
        1 => "1 has entered".to_owned(),
        bots => format!("{bots} have entered"),
    }
}

/// Why a gauntlet cannot be played yet.
fn no_panel(panel: &[String]) -> String {
    format!("an edition needs a bot of the panel ({}), and none has entered yet", panel.join(", "))
}

/// How many bots are missing, and what happens when they have entered.
fn too_few(file: &TournamentFile, bots: usize, has_editions: bool) -> String {
    let least = file.schedule.min_bots();
    let needs = match file.schedule {
        Schedule::Foursomes(_) | Schedule::Tables(_) => format!("a table needs {least} bots"),
        Schedule::Stages(_) => format!("the stages need {least} bots"),
        _ => format!("a match needs {least} bots"),
    };
    let entered = match bots {
        1 => "this is the first one".to_owned(),
        bots => format!("{bots} have entered with this one"),
    };
    let more = match least - bots {
        1 => "1 more enters".to_owned(),
        missing => format!("{missing} more enter"),
    };
    let then = if has_editions && file.rerun == Rerun::EverySubmission {
        "the next edition opens"
    } else if has_editions {
        "an organiser can start the next edition"
    } else {
        "an organiser can start the first edition"
    };
    format!("{needs}, and {entered}; when {more}, {then}")
}
