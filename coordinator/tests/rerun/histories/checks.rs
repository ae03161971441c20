//! Checks of editions in a history.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arbiter_coordinator::db::editions::{self, Edition};
use arbiter_coordinator::db::entrants::Roster;
use arbiter_coordinator::db::lots::LotState;
use arbiter_coordinator::db::results::{self, SeatedResult};
use arbiter_coordinator::db::{
    bots, invalidated_matches, matches, plan_histories, standings, versions,
};
use arbiter_coordinator::tournament::{TournamentFile, estimate};
use arbiter_games::Games;
use arbiter_proto::ids::{BotId, MatchNumber, TokenId};
use arbiter_ranking::Entrant;
use arbiter_schedule::CertificateBuilder;
use serde_json::json;

use super::History;
use crate::fixture::Fixture;

/// The matches of a tournament that were played more than once although they were not void.
const REPLAYED_MATCHES: &str = "
    SELECT array_agg(m.number) FROM results r JOIN matches m USING (tournament, number)
    WHERE m.tournament = $1 AND NOT EXISTS (
        SELECT FROM invalidated_matches v WHERE v.tournament = $1 AND v.number = m.number)
    GROUP BY m.seed_key, m.board, m.carried, m.params::text, m.seats,
        coalesce(initial_state(m.tournament, m.seats, m.state_from), '{}')
    HAVING count(*) > 1";

impl History<'_> {
    /// Checks the newest edition, whether it is complete or not.
    pub(super) async fn check_newest(&self) {
        let pool = &self.fixture.database.pool;
        let row = editions::get(pool, self.edition.id).await.unwrap().unwrap();
        assert_eq!(self.fixture.queue.verify_standings(row.scope()).await.unwrap(), []);
        let mut db = pool.acquire().await.unwrap();
        let mut counted = 0;
        results::each(&mut db, row.scope(), true, |_| counted += 1).await.unwrap();
        assert_eq!(row.counted, counted, "counted matches of edition {}", row.number);
        let planned = matches::planned(pool, row.scope(), MatchNumber(0), None, u32::MAX).await;
        let members: BTreeSet<_> =
            planned.unwrap().iter().map(|planned| planned.number.0).collect();
        assert_eq!(row.matches, i64::try_from(members.len()).unwrap(), "of edition {}", row.number);
        self.check_queue(&members).await;
        let void = invalidated_matches::of_edition(pool, row.scope()).await.unwrap();
        let kept: Vec<_> = void.iter().filter(|number| !self.void.contains(number)).collect();
        assert_eq!(kept, [&MatchNumber(0); 0], "edition {} kept void matches", row.number);
    }

    /// Checks that the queue has the matches of the newest edition that were not played. A match
    /// that is being played may also be one that it does not need.
    async fn check_queue(&self, members: &BTreeSet<i64>) {
        let pool = &self.fixture.database.pool;
        let id = self.edition.tournament;
        let statement = "SELECT number FROM results WHERE tournament = $1";
        let query = sqlx::query_scalar(statement).bind(id);
        let played: BTreeSet<i64> = query.fetch_all(pool).await.unwrap().into_iter().collect();
        let statement = "
            SELECT number, count::bigint, state FROM lots
            WHERE tournament = $1 AND state <> 'cancelled'";
        let query = sqlx::query_as(statement).bind(id);
        let all: Vec<(i64, i64, LotState)> = query.fetch_all(pool).await.unwrap();
        let mut reported = BTreeSet::new();
        let mut open = BTreeSet::new();
        for (first, count, state) in all {
            for number in first..first + count {
                let is_reported = matches!(state, LotState::Reported | LotState::Counted);
                let numbers = if is_reported { &mut reported } else { &mut open };
                assert!(numbers.insert(number), "match {number} is in two lots");
                let is_needed = members.contains(&number) || state == LotState::Leased;
                assert!(is_reported || is_needed, "match {number} is {state:?} and not needed");
            }
        }
        assert_eq!(reported, played, "reported and played matches");
        assert!(open.is_disjoint(&played), "open lots have played matches");
        let mut needed = members.difference(&played);
        assert_eq!(needed.find(|number| !open.contains(number)), None, "it is in no lot");
    }

    /// Checks an edition that is complete now, and all editions before it.
    pub(super) async fn check_complete(&mut self) {
        let database = Arc::clone(&self.fixture.database);
        let id = self.edition.id;
        let row = editions::get(&database.pool, id).await.unwrap().unwrap();
        let query = sqlx::query_scalar(REPLAYED_MATCHES).bind(row.tournament);
        let replayed: Vec<Vec<i64>> = query.fetch_all(&database.pool).await.unwrap();
        assert_eq!(replayed, [[0; 0]; 0], "matches were played more than once");
        for (earlier, export) in &self.complete {
            let now = self.fixture.export(*earlier).await;
            assert_same(&now, export, &format!("edition {earlier} changed: now, then"));
        }
        let mut db = database.pool.acquire().await.unwrap();
        let mut lies = 0;
        let visit = |played: &SeatedResult| lies += i32::from(self.lies.contains(&played.number));
        results::each(&mut db, row.scope(), false, visit).await.unwrap();
        drop(db);
        let export = self.fixture.export(id).await;
        if lies == 0 {
            let scratch = self.scratch(&row).await;
            let own = format!("{}\n{export}", certificate(&self.fixture, &row).await);
            let description = format!("edition {}: this tournament, another one", row.number);
            assert_same(&own, &scratch, &description);
        }
        self.complete.push((id, export));
    }

    /// The certificate and the export of a tournament that had the bots of an edition from the
    /// beginning.
    async fn scratch(&self, edition: &Edition) -> String {
        let database = &self.fixture.database;
        let name = format!("{}-{}", self.file.name, edition.number);
        let seed = Some(self.fixture.tournament.edition_seed(edition.number));
        let file = TournamentFile { name, seed, beacon: None, ..self.file.clone() };
        let mut scratch = Fixture::empty(Arc::clone(database), &file, self.case.leaves).await;
        scratch.now = self.fixture.now;
        let pool = &database.pool;
        let id = scratch.tournament.id;
        let mut db = pool.acquire().await.unwrap();
        let roster = Roster::of(&mut *db, edition.id).await.unwrap();
        let mut new_ids = HashMap::new();
        for contestant in standings::contestants(&mut db, edition.id).await.unwrap() {
            let entrant = roster.get(contestant.entrant).unwrap();
            let owner = entrant.owner.map(TokenId);
            let bot = bots::create(&mut *db, id, owner, &entrant.name, scratch.now).await.unwrap();
            new_ids.insert(entrant.bot, bot);
            let digest = entrant.digest.as_slice().try_into().unwrap();
            versions::submit(&mut *db, bot, digest, contestant.submitted_at).await.unwrap();
        }
        drop(db);
        self.copy_plan_history(edition, &scratch, new_ids).await;
        let opened = scratch.start().await;
        scratch.finish(&opened).await;
        let row = editions::get(pool, opened.id).await.unwrap().unwrap();
        format!("{}\n{}", certificate(&scratch, &row).await, scratch.export(opened.id).await)
    }

    /// Gives another tournament a cancelled edition with the plan history of an edition, so that
    /// its next edition has the same plan.
    async fn copy_plan_history(
        &self,
        edition: &Edition,
        other: &Fixture,
        mut new_ids: HashMap<BotId, BotId>,
    ) {
        let pool = &self.fixture.database.pool;
        let stored = plan_histories::of_edition(pool, edition.id).await.unwrap();
        let Some(mut history) = stored else { return };
        let id = other.tournament.id;
        let all = bots::list(pool, edition.tournament).await.unwrap();
        let mut planned = Vec::new();
        for number in history["bots"].as_array().unwrap() {
            let former = BotId(number.as_i64().unwrap().try_into().unwrap());
            if let Some(bot) =
                all.iter().find(|bot| bot.id == former && !new_ids.contains_key(&bot.id))
            {
                let owner = bot.owner.map(TokenId);
                let new = bots::create(pool, id, owner, &bot.name, other.now).await.unwrap();
                new_ids.insert(former, new);
            }
            planned.push(new_ids[&former]);
        }
        history["bots"] = json!(planned);
        let first =
            editions::create(pool, id, edition.components, false, &edition.rules, other.now)
                .await
                .unwrap();
        plan_histories::set(pool, first, &history).await.unwrap();
        assert!(editions::cancel(pool, first, other.now).await.unwrap());
    }
}

/// The certificate of an edition as text, and how often each bot has each seat.
async fn certificate(fixture: &Fixture, edition: &Edition) -> String {
    let mut db = fixture.database.pool.acquire().await.unwrap();
    let games = Games::built_in();
    let tournament = &fixture.tournament;
    let guarantees = estimate::plan_guarantees(&mut db, &games, tournament, edition.id).await;
    let guarantees = guarantees.unwrap();
    let roster = Roster::of(&mut *db, edition.id).await.unwrap();
    let seat_counts = matches::seat_counts(&mut *db, edition.scope()).await.unwrap();
    let seat_counts: BTreeMap<_, _> = seat_counts
        .into_iter()
        .map(|(entrant, seats)| (roster.get(entrant).unwrap().name.clone(), seats))
        .collect();
    // The meetings of episodes depend on results.
    let Ok(claim) = guarantees.claim else { return format!("{seat_counts:?}") };
    let field = &guarantees.field;
    let mut counter = CertificateBuilder::new(field.bots(), guarantees.seats, field.owners());
    let visit = |seats: &[i32]| {
        let place = |entrant: &i32| u16::try_from(roster.place(Entrant(*entrant)).unwrap());
        counter.add(&seats.iter().map(place).collect::<Result<Vec<_>, _>>().unwrap())
    };
    matches::each_seats(&mut *db, edition.scope(), visit).await.unwrap().unwrap();
    let certificate = counter.finish();
    assert_eq!(certificate.prove(&claim), Ok(()));
    format!("{:?} {certificate:?} {seat_counts:?}", guarantees.plan)
}

/// Compares two texts, and shows the first line that differs.
fn assert_same(one: &str, other: &str, description: &str) {
    let lines = one.lines().zip(other.lines());
    for (number, (line, other_line)) in (1..).zip(lines) {
        assert_eq!(line, other_line, "line {number} of {description}");
    }
    assert_eq!(one.lines().count(), other.lines().count(), "lines of {description}");
}
