//! A coordinator that is killed while it opens an edition leaves nothing half.

use arbiter_coordinator::tournament::{IfRunning, OpenRequest, open_edition};
use arbiter_games::{gomoku, tricks};
use sqlx::{AssertSqlSafe, PgPool};

use crate::fixture::Change::Submit;
use crate::fixture::{Fixture, Leaves, tournament_file};
use crate::support::kill_at_table;

/// The tables that an opening writes. Each is locked in turn, so that the opening stops there.
const TABLES: [&str; 8] =
    ["editions", "entrants", "matches", "lots", "lot_order", "absences", "standings", "progress"];

/// The contents of all these tables.
async fn contents(pool: &PgPool) -> Vec<String> {
    let mut all = Vec::new();
    for table in TABLES {
        let statement = format!("SELECT {table}::text FROM {table} ORDER BY 1");
        let rows: Vec<String> =
            sqlx::query_scalar(AssertSqlSafe(statement)).fetch_all(pool).await.unwrap();
        all.extend(rows.into_iter().map(|row| format!("{table}: {row}")));
    }
    all
}

#[tokio::test]
async fn an_opening_that_is_killed_anywhere_leaves_nothing_half() {
    for (game, leaves) in [(tricks::game(), Leaves::Nothing), (gomoku::game(), Leaves::Notes)] {
        let cup = tournament_file(&game, "");
        let mut fixture = Fixture::new(&cup, 6, leaves).await;
        let first = fixture.start().await;
        let lots = fixture.lease(&first, 4).await;
        fixture.play(&lots).await;
        fixture.maintain(&first).await;
        let changes = [Submit(3, 2)];
        fixture.change(changes[0]).await;
        let pool = fixture.database.pool.clone();
        let before = contents(&pool).await;
        let mut killed = 0;
        for table in TABLES {
            if game == tricks::game() && table == "lot_order" {
                continue;
            }
            let request = OpenRequest::new(fixture.tournament.id, IfRunning::Replace);
            let opening = open_edition::open(&fixture.queue, request, fixture.now);
            let result = kill_at_table(&pool, table, opening).await;
            assert!(result.is_err(), "{game}: {table}");
            assert_eq!(contents(&pool).await, before, "{game}: {table}");
            killed += 1;
        }
        assert!(killed >= TABLES.len() - 1);
        let second = fixture.start().await;
        fixture.finish(&second).await;
        let scratch = Fixture::from_scratch(&cup, 6, leaves, &changes).await;
        assert_eq!(fixture.export(second.id).await, scratch, "{game}");
    }
}
