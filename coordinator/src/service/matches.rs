//! The matches of editions: their plan, state and results.

use arbiter_games::Seed;
use arbiter_proto::ids::{EditionId, LotId, MatchId, MatchName, MatchNumber};
use arbiter_proto::v1::{self, GetMatchRequest, ListMatchesRequest, MatchSeat, MatchStatus};
use arbiter_ranking::Entrant;

use super::bots::evidence_message;
use super::leaderboard_freeze::{freeze_notice, hide_players, hide_result};
use super::{Caller, DefaultEdition, Result, Service, ServiceError, micros};
use crate::db::editions::{Edition, EditionState};
use crate::db::entrants::{EntrantInfo, Roster};
use crate::db::lots::LotState;
use crate::db::matches::{self, Match, Seats};
use crate::db::played_matches::{self, PlayedMatch};
use crate::db::tournaments::{Tournament, TournamentState};
use crate::db::{editions, entrants, faults, forfeit_evidence};
use crate::tournament::lot_assignment::deal_seed;

/// How many matches are searched for results that are visible during a freeze.
const MAX_SEARCHED: u32 = 20_000;

/// Planned matches of an edition, by number.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) edition: Edition,
    pub(crate) roster: Roster,
    pub(crate) matches: Vec<Match>,
}

impl Service {
    /// The state of a match.
    pub(crate) async fn get_match(
        &self,
        caller: &Caller,
        request: GetMatchRequest,
    ) -> Result<MatchStatus> {
        let name: MatchName = request.r#match.parse()?;
        let (tournament, id) = self.named_match(&name).await?;
        let planned = self.planned_match(&name, id).await?;
        let edition = self.adding_edition(id).await?;
        let infos = entrants::of_seats(&self.pool, &planned.seats.0).await?;
        let find = |entrant| find_bot(&infos, entrant);
        let mut status = match played_matches::find(&self.pool, id).await? {
            Some(played) => played_match(&name, find, &played),
            None => MatchStatus {
                r#match: name.to_string(),
                seats: planned.seats.0.iter().map(|entrant| seat(find(*entrant))).collect(),
                params: planned.params.as_ref().map(ToString::to_string).unwrap_or_default(),
                ..MatchStatus::default()
            },
        };
        self.add_evidence(id, &planned.seats, &infos, caller, &mut status).await?;
        let visibility = self.visibility(&tournament, caller)?;
        if self.visible_results(&visibility, id.tournament, &[id.number]).await?.is_empty() {
            if !status.transcript.is_empty() {
                status.freeze_notice = freeze_notice(&tournament, self.now());
            }
            hide_result(&mut status);
            let is_owner = infos.iter().any(|bot| caller.is_owner(bot.owner));
            if !is_owner && self.players_show_results(&tournament)? {
                hide_players(&mut status);
            }
        }
        add_seed(published_seed(&tournament, edition.number), planned.seed_key, &mut status);
        status.tournament = tournament.name;
        status.edition = edition.number;
        status.columns = self.columns_of(edition.id).await?;
        if let Some(lot_row) = played_matches::lot(&self.pool, id).await? {
            let lot = LotId { tournament: id.tournament, number: lot_row.lot };
            let faults = faults::of_lot(&self.pool, lot).await?;
            lot_row.state.as_str().clone_into(&mut status.state);
            status.failed_leases = u32::try_from(faults.len()).unwrap_or(u32::MAX);
            if caller.is_organiser() {
                status.worker = lot_row.worker.unwrap_or_default();
                status.faults = faults.into_iter().map(|fault| fault.reason).collect();
            }
        } else if status.state.is_empty() && edition.state != EditionState::Planning {
            // No edition needs it any more.
            LotState::Cancelled.as_str().clone_into(&mut status.state);
        }
        Ok(status)
    }

    pub(super) async fn planned_match(&self, name: &MatchName, id: MatchId) -> Result<Match> {
        let rows = matches::range(&self.pool, id.tournament, id.number, 1).await?;
        rows.into_iter().next().ok_or_else(|| ServiceError::missing("match", name))
    }

    /// The numbers of played matches of a tournament whose results the caller may see, newest
    /// first: at most `limit`, from the match before `before` on. During a freeze, only the newest
    /// [`MAX_SEARCHED`] ones are searched.
    pub(crate) async fn newest_shown(
        &self,
        caller: &Caller,
        name: &str,
        before: Option<MatchNumber>,
        limit: u32,
    ) -> Result<Vec<MatchNumber>> {
        let tournament = self.tournament(name).await?;
        let visibility = self.visibility(&tournament, caller)?;
        let read = if visibility.frozen.is_some() { MAX_SEARCHED } else { limit };
        let newest = played_matches::newest(&self.pool, tournament.id, before, read).await?;
        let shown = self.visible_results(&visibility, tournament.id, &newest).await?;
        let newest = newest.into_iter().filter(|number| shown.contains(number));
        Ok(newest.take(limit as usize).collect())
    }

    /// The number of the edition that added a match.
    pub(crate) async fn edition_of_match(&self, name: &str) -> Result<i32> {
        let (_, id) = self.named_match(&name.parse()?).await?;
        Ok(self.adding_edition(id).await?.number)
    }

    /// The tournament of a match and the names of its bots, seat 1 first. The caller must be
    /// allowed to see who plays.
    pub(crate) async fn bots_of_match(&self, name: &str) -> Result<(String, Vec<String>)> {
        let name: MatchName = name.parse()?;
        let (tournament, id) = self.named_match(&name).await?;
        let planned = self.planned_match(&name, id).await?;
        let bots = entrants::of_seats(&self.pool, &planned.seats.0).await?;
        Ok((tournament.name, bots.into_iter().map(|bot| bot.name).collect()))
    }

    /// The names of the components of a match's scores.
    pub(crate) async fn score_columns(&self, name: &str) -> Result<Vec<String>> {
        let (_, id) = self.named_match(&name.parse()?).await?;
        self.columns_of(editions::adding(&self.pool, id).await?).await
    }

    pub(super) async fn columns_of(&self, edition: EditionId) -> Result<Vec<String>> {
        let game = editions::game(&self.pool, self.games(), edition).await?;
        Ok(game.columns.iter().map(ToString::to_string).collect())
    }

    /// The edition that added a match.
    async fn adding_edition(&self, id: MatchId) -> Result<Edition> {
        let edition = editions::adding(&self.pool, id).await?;
        let row = editions::get(&self.pool, edition).await?;
        row.ok_or_else(|| ServiceError::internal("the edition of the match is missing"))
    }

    /// Adds the reasons of forfeits that the caller may see. `bots` are those in the seats.
    async fn add_evidence(
        &self,
        id: MatchId,
        seats: &Seats,
        bots: &[EntrantInfo],
        caller: &Caller,
        status: &mut MatchStatus,
    ) -> Result<()> {
        let evidence = forfeit_evidence::of_matches(&self.pool, id.tournament, &[id.number]).await;
        for evidence in evidence? {
            let index = usize::try_from(evidence.seat - 1).unwrap_or_default();
            let bot = seats.0.get(index).and_then(|entrant| find_bot(bots, *entrant));
            let seat = status.seats.get_mut(index);
            if let (Some(bot), Some(seat)) = (bot, seat)
                && caller.may_inspect(bot.owner)
            {
                seat.evidence = Some(evidence_message(&evidence));
            }
        }
        Ok(())
    }

    /// Planned matches of an edition. Without a number, of the newest edition.
    pub(crate) async fn planned_matches(
        &self,
        caller: &Caller,
        ListMatchesRequest { tournament, edition, bot, after, limit, .. }: ListMatchesRequest,
    ) -> Result<Planned> {
        let board = v1::LeaderboardRef { tournament, edition };
        let (edition, _) = self.edition_of(Some(board), DefaultEdition::Newest, caller).await?;
        let roster = Roster::of(&self.pool, edition.id).await?;
        let entrant = match bot.as_str() {
            "" => None,
            name => Some(self.entrant(caller, edition.tournament, &roster, name).await?),
        };
        let first = MatchNumber(after.map_or(0, |after| after.saturating_add(1)).max(0));
        let _permit = self.permit(caller).await?;
        let matches = matches::planned(&self.pool, edition.scope(), first, entrant, limit).await?;
        Ok(Planned { edition, roster, matches })
    }

    /// How often each bot of an edition has each seat.
    pub(crate) async fn seat_counts(
        &self,
        caller: &Caller,
        edition: &Edition,
    ) -> Result<Vec<(Entrant, Vec<i64>)>> {
        let _permit = self.permit(caller).await?;
        Ok(matches::seat_counts(&self.pool, edition.scope()).await?)
    }
}

/// The seed of an edition, once it is published.
pub(super) fn published_seed(tournament: &Tournament, edition: i32) -> Option<Seed> {
    (tournament.state != TournamentState::Open).then(|| tournament.edition_seed(edition))
}

/// Adds the seed of a match, if the seed of its edition is published.
pub(super) fn add_seed(edition: Option<Seed>, seed_key: i64, status: &mut MatchStatus) {
    if let Some(edition) = edition {
        status.seed = deal_seed(edition, seed_key).0.to_vec();
        status.seed_key = Some(seed_key);
    }
}

/// The bot of an entrant.
pub(super) fn find_bot(bots: &[EntrantInfo], entrant: Entrant) -> Option<&EntrantInfo> {
    bots.iter().find(|bot| bot.entrant == entrant)
}

/// The seat of a bot.
fn seat(bot: Option<&EntrantInfo>) -> MatchSeat {
    MatchSeat {
        bot: bot.map(|bot| bot.name.clone()).unwrap_or_default(),
        version: bot.map_or(0, |bot| bot.version),
        owner: bot.and_then(|bot| bot.owner_name.clone()).unwrap_or_default(),
        digest: bot.map(|bot| bot.digest.clone()).unwrap_or_default(),
        ..MatchSeat::default()
    }
}

/// A played match, as a message. `find` finds the bots in its seats.
pub(super) fn played_match<'a>(
    name: &MatchName,
    find: impl Fn(Entrant) -> Option<&'a EntrantInfo>,
    played: &PlayedMatch,
) -> MatchStatus {
    let result = &played.result;
    let scored = |(index, entrant): (usize, &Entrant)| MatchSeat {
        score: played.score(index).to_vec(),
        forfeit: result.forfeit(index).map(|kind| kind.as_str().to_owned()).unwrap_or_default(),
        bad_answers: result.bad_answers(index),
        ..seat(find(*entrant))
    };
    MatchStatus {
        r#match: name.to_string(),
        state: LotState::Reported.as_str().to_owned(),
        seats: played.seats.0.iter().enumerate().map(scored).collect(),
        params: played.params.as_ref().map(ToString::to_string).unwrap_or_default(),
        transcript: result.transcript.to_vec(),
        wall_ms: result.wall_ms,
        level: played.level.clone(),
        block: Some(played.seed_key),
        board: played.board.map(i32::from),
        reported_us: played.reported_at.map(micros),
        ..MatchStatus::default()
    }
}
