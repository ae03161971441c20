//! CSV exports contain the same data as the JSON API.

use serde_json::Value;

use crate::support::service::done;
use crate::test_server::TestServer;

/// The rows of a CSV file without quoted cells, as pairs of column name and value.
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

/// A JSON value as a CSV cell; text that could be a formula is escaped.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.starts_with('-') => format!("'{text}"),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap().to_string(),
        other => other.to_string(),
    }
}

/// The matches of a query are the same as CSV and in the API.
fn check_matches(server: &TestServer, query: &str) {
    let response = server.get(&format!("/t/cup/matches.csv{query}"), &[]);
    let matches = server.all(&format!("/api/v1/tournaments/cup/matches{query}"), 1000);
    let table = rows(&response.text());
    assert_eq!(table.len(), 2 * matches.len());
    for (pair, entry) in table.chunks(2).zip(&matches) {
        for (seat, row) in pair.iter().enumerate() {
            let seated = &entry["seats"][seat];
            for (key, expected) in [
                ("match", &entry["match"]),
                ("seed_key", &entry["seed_key"]),
                ("board", &entry["board"]),
                ("owner", &seated["owner"]),
                ("bot", &seated["bot"]),
                ("version", &seated["version"]),
                ("points", &seated["score"][0]),
                ("forfeit", &seated["forfeit"]),
                ("bad_answers", &seated["bad_answers"]),
                ("wall_ms", &entry["wall_ms"]),
                ("level", &entry["level"]),
                ("transcript", &entry["transcript"]),
                ("edition", &entry["edition"]),
                ("stage", &entry["stage"]),
                ("round", &entry["round"]),
                ("params", &entry["params"]),
                ("digest", &seated["digest"]),
                ("reported_at", &entry["reported_at"]),
                ("state", &entry["state"]),
            ] {
                assert_eq!(cell(row, key), shown(expected), "{key}");
            }
            assert_eq!(cell(row, "seat"), (seat + 1).to_string());
            assert_eq!(format!("cup/{}", cell(row, "number")), cell(row, "match"));
        }
    }
}

#[test]
fn csv_files_contain_the_same_data_as_the_api() {
    let server = TestServer::played();
    let statistics = server.all("/api/v1/tournaments/cup/statistics", 1000);
    let table = rows(&server.get("/t/cup/statistics.csv", &[]).text());
    assert_eq!(table.len(), statistics.len());
    for (row, bot) in table.iter().zip(&statistics) {
        for key in ["rank", "bot", "matches", "distinct_matches", "no_interval"] {
            assert_eq!(cell(row, key), shown(&bot[key]), "{key}");
        }
        // Reading JSON may change the last digit.
        for key in ["mean", "interval95", "rating"] {
            let expected = bot[key].as_f64().unwrap();
            assert!((cell(row, key).parse::<f64>().unwrap() - expected).abs() < 1e-9, "{key}");
        }
    }
    let response = server.get("/t/cup/ranking.csv", &[]);
    assert!(response.header("content-type").starts_with("text/csv"), "{:?}", response.headers);
    assert!(response.header("content-disposition").contains("cup-1-ranking.csv"));
    let places = server.all("/api/v1/tournaments/cup/ranking", 1000);
    let table = rows(&response.text());
    assert_eq!(table.len(), places.len());
    for (row, place) in table.iter().zip(&places) {
        for key in ["rank", "tied", "bot", "version", "matches", "mean"] {
            assert_eq!(cell(row, key), shown(&place[key]), "{key}");
        }
        assert_eq!(cell(row, "points"), shown(&place["score"][0]));
        assert_eq!(cell(row, "owner"), shown(&place["owner"]));
        assert_eq!(cell(row, "owner").is_empty(), place["house"] == true);
        for kind in ["clock", "illegal", "gone", "flood"] {
            assert_eq!(cell(row, kind), shown(&place["forfeits"][kind]), "{kind}");
        }
    }
    assert!(table.iter().any(|row| cell(row, "bot") == "'-1-1"), "the name is escaped");
    let stdout = done(&server.up.command("ranking cup --format csv").output().unwrap());
    assert_eq!(response.text().replace("'-1-1", "-1-1"), stdout, "same as the command's output");

    for query in ["", "?bot=mine", "?bot=mine&opponent=ada", "?bot=eve&forfeit=true&version=1"] {
        check_matches(&server, query);
    }
    for (page, file) in [("ranking", "ranking.csv"), ("matches", "matches.csv")] {
        let page = server.get(&format!("/t/cup/{page}"), &[]).text();
        assert!(page.contains(&format!("href=\"/t/cup/{file}?")), "{page}");
    }
    assert_eq!(server.get("/t/none/ranking.csv", &[]).status, 404);
    assert_eq!(server.get("/t/cup/matches.csv?bot=nobody", &[]).status, 404);
    server.up.close();
}
