//! Comma-separated values: the same as the JSON beside them.

use serde_json::Value;

use crate::home::Home;
use crate::support::service::done;

/// The rows of a file without a comma within a cell, each by the names of its columns.
fn rows(text: &str) -> Vec<Vec<(String, String)>> {
    let mut lines = text.split_terminator("\r\n");
    let header: Vec<_> = lines.next().unwrap().split(',').map(str::to_owned).collect();
    let rows = lines.map(|line| {
        let cells: Vec<_> = line.split(',').map(str::to_owned).collect();
        assert_eq!(cells.len(), header.len(), "{line}");
        header.iter().cloned().zip(cells).collect()
    });
    rows.collect()
}

fn cell<'a>(row: &'a [(String, String)], name: &str) -> &'a str {
    &row.iter().find(|(column, _)| column == name).unwrap_or_else(|| panic!("no {name}")).1
}

/// A value as a cell shows it; a name that could be a formula is marked.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.starts_with('-') => format!("'{text}"),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap().to_string(),
        other => other.to_string(),
    }
}

#[test]
fn files_say_what_the_interface_says() {
    let home = Home::played();
    let answer = home.get("/t/cup/ranking.csv", &[]);
    assert!(answer.header("content-type").starts_with("text/csv"), "{:?}", answer.headers);
    assert!(answer.header("content-disposition").contains("cup-1-ranking.csv"));
    let places = home.all("/api/v1/tournaments/cup/ranking", 1000);
    let found = rows(&answer.text());
    assert_eq!(found.len(), places.len());
    for (row, place) in found.iter().zip(&places) {
        for key in ["rank", "tied", "bot", "version", "matches", "mean", "interval95"] {
            assert_eq!(cell(row, key), shown(&place[key]), "{key}");
        }
        assert_eq!(cell(row, "points"), shown(&place["score"][0]));
        for kind in ["clock", "illegal", "gone", "flood"] {
            assert_eq!(cell(row, kind), shown(&place["forfeits"][kind]), "{kind}");
        }
    }
    assert!(found.iter().any(|row| cell(row, "bot") == "'-1-1"), "it is no formula");
    let printed = done(&home.up.command("ranking cup --format csv").output().unwrap());
    assert_eq!(answer.text().replace("'-1-1", "-1-1"), printed, "as the command prints it");

    for query in ["", "?bot=mine"] {
        let answer = home.get(&format!("/t/cup/matches.csv{query}"), &[]);
        let matches = home.all(&format!("/api/v1/tournaments/cup/matches{query}"), 1000);
        let found = rows(&answer.text());
        assert_eq!(found.len(), 2 * matches.len());
        for (pair, due) in found.chunks(2).zip(&matches) {
            for (seat, row) in pair.iter().enumerate() {
                let seated = &due["seats"][seat];
                for (key, due) in [
                    ("match", &due["match"]),
                    ("bot", &seated["bot"]),
                    ("version", &seated["version"]),
                    ("points", &seated["score"][0]),
                    ("forfeit", &seated["forfeit"]),
                    ("bad_answers", &seated["bad_answers"]),
                    ("wall_ms", &due["wall_ms"]),
                    ("level", &due["level"]),
                    ("transcript", &due["transcript"]),
                ] {
                    assert_eq!(cell(row, key), shown(due), "{key}");
                }
                assert_eq!(cell(row, "seat"), (seat + 1).to_string());
            }
        }
    }
    for (page, file) in [("ranking", "ranking.csv"), ("matches", "matches.csv")] {
        let page = home.get(&format!("/t/cup/{page}"), &[]).text();
        assert!(page.contains(&format!("href=\"/t/cup/{file}?")), "{page}");
    }
    assert_eq!(home.get("/t/none/ranking.csv", &[]).status, 404);
    assert_eq!(home.get("/t/cup/matches.csv?bot=nobody", &[]).status, 404);
    home.up.close();
}
