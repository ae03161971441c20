//! The bots of one owner in all tournaments, and their newest matches.

use arbiter_proto::edition_status::EditionStatus;
use arbiter_proto::v1::{
    Bot, GetBotLogRequest, GetStandingRequest, GetStandingResponse, LeaderboardRef, LogEntry,
};

use super::bots::bot_message;
use super::{Caller, ErrorKind, Result, Service};
use crate::access::{Role, Token};
use crate::db::{bot_list, tokens};

/// Maximum number of bots, most recently submitted first.
const MAX_BOTS: i64 = 100;
/// The number of bots whose matches are listed.
const BOTS_WITH_MATCHES: usize = 8;
/// The number of matches of each of these bots.
const MATCHES: u32 = 5;

/// A bot of the caller.
#[derive(Clone, Debug)]
pub(crate) struct OwnBot {
    /// The name of its tournament.
    pub(crate) tournament: String,
    /// The title of its tournament, or the name if there is no title.
    pub(crate) title: String,
    pub(crate) bot: Bot,
    /// Its place on the leaderboard that the caller sees, and what the results are. None if it has
    /// no place there.
    pub(crate) place: Option<(GetStandingResponse, EditionStatus)>,
    /// Whether new versions can enter its tournament now.
    pub(crate) is_entry_open: bool,
    /// Whether the leaderboards of its tournament are frozen for the caller.
    pub(crate) is_frozen: bool,
}

/// A match of a bot of the caller.
#[derive(Clone, Debug)]
pub(crate) struct OwnMatch {
    /// The name of the tournament.
    pub(crate) tournament: String,
    /// The title of the tournament, or the name if there is no title.
    pub(crate) title: String,
    /// The name of the caller's bot.
    pub(crate) bot: String,
    /// The names of the components of its score. Empty if they are not known.
    pub(crate) columns: Vec<String>,
    pub(crate) entry: LogEntry,
    /// The words for the freeze that hides scores from the caller. Empty if none does.
    pub(crate) freeze_notice: String,
}

impl Service {
    /// The caller's token. `None` if the caller has no valid token.
    pub(crate) async fn own_token(&self, caller: &Caller) -> Result<Option<Token>> {
        let Some(principal) = caller.principal() else { return Ok(None) };
        Ok(tokens::get(&self.pool, principal.id).await?)
    }

    /// The bots of the caller in all tournaments, most recently submitted first.
    pub(crate) async fn own_bots(&self, caller: &Caller) -> Result<Vec<OwnBot>> {
        let principal = caller.require(Role::Player)?;
        let rows = bot_list::of_owner(&self.pool, principal.id, MAX_BOTS).await?;
        let mut bots = Vec::with_capacity(rows.len());
        for row in rows {
            let bot = bot_message(&row, caller);
            let place = self.official_place(caller, &row.tournament, &bot.name).await?;
            // It may have been deleted since its bots were listed.
            let tournament = none_if_missing(self.tournament(&row.tournament).await)?;
            let (is_entry_open, is_frozen) = match &tournament {
                Some(tournament) => (
                    self.entry_state(tournament)?.is_open(),
                    self.visibility(tournament, caller)?.frozen.is_some(),
                ),
                None => (false, false),
            };
            let title = tournament
                .and_then(|tournament| tournament.presentation.title)
                .unwrap_or_else(|| row.tournament.clone());
            bots.push(OwnBot {
                tournament: row.tournament,
                title,
                bot,
                place,
                is_entry_open,
                is_frozen,
            });
        }
        Ok(bots)
    }

    /// The place of a bot on the leaderboard that the caller sees, and what its results are.
    /// `None` if it has none.
    async fn official_place(
        &self,
        caller: &Caller,
        tournament: &str,
        bot: &str,
    ) -> Result<Option<(GetStandingResponse, EditionStatus)>> {
        let board = LeaderboardRef { tournament: tournament.to_owned(), edition: None };
        let request = GetStandingRequest { leaderboard: Some(board), bot: bot.to_owned() };
        match self.standing_with_status(caller, request).await {
            Ok(place) => Ok(Some(place)),
            // There is no leaderboard, or not with this bot, or it is frozen.
            Err(error)
                if [
                    ErrorKind::NotFound,
                    ErrorKind::FailedPrecondition,
                    ErrorKind::PermissionDenied,
                ]
                .contains(&error.kind()) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The newest matches of the most recently submitted of these bots, by tournament and then by
    /// bot.
    pub(crate) async fn own_matches(
        &self,
        caller: &Caller,
        bots: &[OwnBot],
    ) -> Result<Vec<OwnMatch>> {
        let mut matches = Vec::new();
        for OwnBot { tournament, title, bot, .. } in bots.iter().take(BOTS_WITH_MATCHES) {
            let request = GetBotLogRequest {
                tournament: tournament.clone(),
                bot: bot.name.clone(),
                limit: MATCHES,
                forfeits: false,
                before: 0,
            };
            // The tournament may have been deleted since the bots were listed.
            let Some(log) = none_if_missing(self.get_bot_log(caller, request).await)? else {
                continue;
            };
            let columns = log.columns;
            let freeze_notice = log.freeze_notice;
            matches.extend(log.entries.into_iter().map(|entry| OwnMatch {
                tournament: tournament.clone(),
                title: title.clone(),
                bot: bot.name.clone(),
                columns: columns.clone(),
                entry,
                freeze_notice: freeze_notice.clone(),
            }));
        }
        let first_bot =
            |one: &OwnMatch| bots.iter().position(|bot| bot.tournament == one.tournament);
        matches.sort_by(|one, other| {
            first_bot(one).cmp(&first_bot(other)).then_with(|| one.columns.cmp(&other.columns))
        });
        Ok(matches)
    }
}

/// `None` for what does not exist.
fn none_if_missing<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}
