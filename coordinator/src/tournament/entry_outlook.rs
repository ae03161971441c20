//! What the next edition will lack if a bot enters, before it enters: enough bots, or a number that
//! the schedule requests.

use arbiter_games::Games;
use arbiter_proto::ids::BotId;
use arbiter_schedule::{MAX_BOTS, Schedule};
use sqlx::{PgConnection, Result};

use super::{Rerun, TournamentFile, plan_history};
use crate::db::tournaments::Tournament;
use crate::db::{editions, versions};

/// A bot that does not exist yet.
const NEW_BOT: BotId = BotId(i32::MAX);

/// What the next edition will lack, one line for people, if this bot takes part besides the entered
/// ones; `None` stands for a new bot. The result is `None` if the edition will lack nothing. The
/// edition is not planned for the answer.
pub async fn with_new_bot(
    db: &mut PgConnection,
    games: &Games,
    tournament: &Tournament,
    bot: Option<BotId>,
) -> Result<Option<String>> {
    // The attempt to open an edition reports an error of the file.
    let Ok(file) = TournamentFile::from_json(games, &tournament.settings) else { return Ok(None) };
    let entered = versions::newest(&mut *db, tournament.id).await?;
    let mut bots: Vec<_> = entered.into_iter().map(|version| version.bot).collect();
    let bot = bot.unwrap_or(NEW_BOT);
    if !bots.contains(&bot) {
        bots.push(bot);
    }
    if bots.len() < file.schedule.min_bots() {
        let has_editions = !editions::of_tournament(&mut *db, tournament.id).await?.is_empty();
        return Ok(Some(too_few(&file, bots.len(), has_editions)));
    }
    if bots.len() > MAX_BOTS {
        return Ok(Some(format!("an edition has at most {MAX_BOTS} bots, not {}", bots.len())));
    }
    let adjustment = plan_history::next_adjustment(db, tournament, &file, &bots).await?;
    Ok(adjustment.map(|adjustment| adjustment.to_string()))
}

/// How many bots are missing, and what happens when they have entered.
fn too_few(file: &TournamentFile, bots: usize, has_editions: bool) -> String {
    let least = file.schedule.min_bots();
    let needs = match file.schedule {
        Schedule::Foursomes(_) | Schedule::Tables(_) => format!("a table needs {least} bots"),
        _ => format!("a match needs {least} bots"),
    };
    let missing = least - bots;
    let more = if missing == 1 {
        "1 more must enter".to_owned()
    } else {
        format!("{missing} more must enter")
    };
    let then = if has_editions && file.rerun == Rerun::EverySubmission {
        "then the next edition opens"
    } else if has_editions {
        "then an organiser can start the next edition"
    } else {
        "then an organiser can start the first edition"
    };
    format!("{needs}, and with this one there are {bots}: {more}, {then}")
}
