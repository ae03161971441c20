//! Statistics: what can be concluded, the same from the command, the API, the pages and the CSV
//! files, and from an independent program.

use std::process::Command;

use crate::http_client::request;
use crate::support::service::done;
use crate::support::up::Up;
use serde_json::{Value, json};

/// A complete tournament of tricks with several deals for each pair.
fn played() -> Up {
    let up = Up::start(2);
    let bots = ["house", "counter", "lowest"];
    let house = bots.map(|bot| format!("{}/bots/tricks/{bot}", env!("CARGO_MANIFEST_DIR")));
    up.create(&format!(
        "name = \"cup\"\ngame = \"tricks\"\nrerun = \"manual\"\nseed = \"statistics\"\n[schedule]\n\
         kind = \"round_robin\"\nlegs = 5\nsides = \"both\"\n[house]\nbots = {house:?}\n"
    ));
    up.play("cup");
    up
}

fn text(up: &Up, path: &str) -> String {
    let response = request(up.http, "GET", path, &[], &[]);
    assert_eq!(response.status, 200, "{path}: {}", response.text());
    response.text()
}

#[test]
fn statistics_are_the_same_everywhere_and_can_be_recomputed() {
    let up = played();
    let api: Value =
        serde_json::from_str(&text(&up, "/api/v1/tournaments/cup/statistics?pairs=true")).unwrap();
    assert_eq!(
        (&api["matches"], &api["basis"], &api["unit"]),
        (&json!(30), &json!("seeds"), &json!("match"))
    );

    // The command.
    let printed = up.json("ranking cup --stats");
    let rows = api["items"].as_array().unwrap();
    assert_eq!((rows.len(), printed.len()), (3, 3 + 3), "three bots, and three pairs");
    for (row, printed) in rows.iter().zip(&printed) {
        for key in ["rank", "bot", "mean", "interval95", "top", "rating", "matches_needed"] {
            assert_eq!(row[key], printed[key], "{key}");
        }
        assert_eq!(row["rank_set"]["best"], printed["best_rank"]);
        assert_eq!(row["rank_set"]["worst"], printed["worst_rank"]);
    }
    for (pair, printed) in api["pairs"].as_array().unwrap().iter().zip(&printed[3..]) {
        assert_eq!(*pair, printed["pair"]);
        assert!(pair["probability"].as_f64().unwrap() > 0.5, "by rank: {pair}");
    }

    // Boards have the same means, and pages draw the possible ranks.
    let board = up.json("ranking cup");
    for (row, place) in rows.iter().zip(&board) {
        assert_eq!((&row["rank"], &row["mean"]), (&place["rank"], &place["mean"]));
    }
    let page = text(&up, "/t/cup/statistics?sort=mean");
    assert_eq!(page.matches("line class=\"ranks\"").count(), 3, "{page}");
    assert!(text(&up, "/t/cup/ranking").contains("Possible ranks"));

    // An independent program computes the same from the CSV files.
    let folder = tempfile::tempdir().unwrap();
    for file in ["matches.csv", "statistics.csv"] {
        std::fs::write(folder.path().join(file), text(&up, &format!("/t/cup/{file}"))).unwrap();
    }
    let script = format!("{}/scripts/recompute-statistics.py", env!("CARGO_MANIFEST_DIR"));
    #[expect(clippy::disallowed_methods, reason = "a program of users is run")]
    let mut numpy = Command::new("python3");
    // ./test installs numpy there if the system has none.
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    numpy.env("PYTHONPATH", std::path::absolute(format!("{target}/numpy")).unwrap());
    let recomputed = done(
        &numpy
            .arg(script)
            .args(["matches.csv", "statistics.csv"])
            .current_dir(&folder)
            .output()
            .unwrap(),
    );
    assert_eq!(recomputed.lines().count(), 3, "{recomputed}");
    up.close();
}
