//! The JSON API of a running `arbiter up`: it returns the same data as the commands, with the same
//! access rules, and survives hostile requests.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod csv_export;
mod data_archive;
mod hostile_requests;
mod http_client;
mod match_filters;
mod pandas;
mod site;
mod statistics;
#[path = "../support/mod.rs"]
mod support;
mod test_server;

use arbiter_proto::state_words::{MATCH_STATES, VERSION_STATES};
use serde_json::{Value, json};
use support::service::done;
use test_server::TestServer;

/// Fills in the parameters of a path, for a tournament that was played. Only a knockout has rounds
/// and a bracket ([`TestServer::play_knockout`]).
pub(crate) fn filled(path: &str) -> String {
    let has_rounds = path.ends_with("/bracket") || path.ends_with("/rounds");
    let tournament = if has_rounds { "finals" } else { "cup" };
    path.replace("{tournament}", tournament)
        .replace("{bot}", "mine")
        .replace("{version}", "1")
        .replace("{number}", "0")
        .replace("{edition}", "1")
}

/// The path of a match in the API.
fn match_path(name: &str) -> String {
    let (tournament, number) = name.split_once('/').unwrap();
    format!("/api/v1/tournaments/{tournament}/matches/{number}")
}

#[test]
fn the_api_returns_the_same_data_as_commands() {
    let server = TestServer::played();
    let cup = "/api/v1/tournaments/cup";
    let places = server.up.json("ranking cup");
    let board = server.json(&format!("{cup}/ranking"));
    assert_eq!(board["items"].as_array().unwrap().len(), places.len());
    for (place, printed) in board["items"].as_array().unwrap().iter().zip(&places) {
        for key in ["rank", "tied", "bot", "version", "matches", "mean", "forfeits"] {
            assert_eq!(place[key], printed[key], "{key} of {printed}");
        }
        let score = printed["score"].as_array().unwrap().iter().map(ToString::to_string);
        assert_eq!(place["score"], json!(score.collect::<Vec<_>>()));
        for key in ["edition", "official", "planned", "counted", "columns"] {
            assert_eq!(board[key], printed[key], "{key}");
        }
        let bot = place["bot"].as_str().unwrap();
        let one = server.json(&format!("{cup}/bots/{bot}/standing"));
        assert_eq!((&one["standing"], &one["edition"]), (place, &board["edition"]));
        let history = server.json(&format!("{cup}/bots/{bot}/history"));
        assert_eq!(history["items"], json!([one]));
        let stdout = done(
            &server.up.command("ranking cup --json").arg(format!("--bot={bot}")).output().unwrap(),
        );
        let met = stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let met: Vec<_> = met.filter_map(|line| line.get("meeting").cloned()).collect();
        assert_eq!(server.all(&format!("{cup}/bots/{bot}/head-to-head"), 2), met, "{bot}");
    }
    let matching = server.json(&format!("{cup}/ranking?q=EV"));
    assert_eq!((&matching["bots"], &matching["items"][0]["bot"]), (&json!(1), &json!("eve")));

    let expected = &server.up.json("tournament show cup")[0];
    let tournament = server.json(cup);
    for key in ["tournament", "game", "state", "seed_hash", "seed", "created_at", "settings"] {
        assert_eq!(tournament[key], expected[key], "{key}");
    }
    assert_eq!(tournament["official"], json!(1));
    assert_eq!(tournament["newest"], expected["editions"][0]);
    assert_eq!(server.json(&format!("{cup}/editions"))["items"], expected["editions"]);
    assert_eq!(server.json("/api/v1/tournaments")["items"][0]["tournament"], json!("cup"));

    for (bot, expected) in
        server.all(&format!("{cup}/bots"), 2).iter().zip(server.up.json("bots cup"))
    {
        for key in ["bot", "owner", "house", "withdrawn", "suspended", "reason"] {
            assert_eq!(bot[key], expected[key], "{key}");
        }
        for key in ["version", "digest", "submitted_at"] {
            assert_eq!(bot["newest"][key], expected[key], "{key}");
        }
        let versions =
            server.json(&format!("{cup}/bots/{}/versions", bot["bot"].as_str().unwrap()));
        assert_eq!(versions["items"], json!([bot["newest"]]));
    }
    let expected = &server.up.json("tournament schedule cup --certificate")[0]["certificate"];
    let certificate = server.json(&format!("{cup}/certificate"));
    assert_eq!(
        (&certificate["verified"], &certificate["matches"]),
        (&json!(true), &expected["matches"])
    );
    let check = json!({"edition": 1, "matches": 20, "differences": [], "derived": 0,
        "not_derived": "the seed of cup is published when it is closed", "seed_differences": []});
    assert_eq!(server.json(&format!("{cup}/check")), check);
    server.up.close();
}

#[test]
fn pages_contain_every_item_exactly_once() {
    let server = TestServer::played();
    let cup = "/api/v1/tournaments/cup";
    let lists = [("ranking", "bot", 5), ("bots", "bot", 5), ("matches", "match", 20)];
    for (list, key, count) in [&lists[..], &[("schedule", "match", 20)]].concat() {
        let whole = server.all(&format!("{cup}/{list}"), 1000);
        assert_eq!(whole.len(), count, "{list}");
        for limit in [1, 3, 5, 20] {
            assert_eq!(server.all(&format!("{cup}/{list}"), limit), whole, "{list} by {limit}");
        }
        let mut names: Vec<_> = whole.iter().map(|one| one[key].to_string()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "{list}: nothing twice");
    }
    let matches_of_mine = server.all(&format!("{cup}/matches?bot=mine"), 3);
    assert_eq!(matches_of_mine.len(), 8);
    let plays = |entry: &Value| {
        entry["seats"].as_array().unwrap().iter().any(|s| s["bot"] == "player/mine")
    };
    assert!(matches_of_mine.iter().all(plays));
    for found in server.all(&format!("{cup}/matches"), 7) {
        let name = found["match"].as_str().unwrap();
        let expected = &server.up.json(&format!("match {name}"))[0];
        let one = server.json(&match_path(name));
        for key in ["match", "tournament", "params", "transcript", "wall_ms", "level"] {
            assert_eq!((&found[key], &one[key]), (&expected[key], &expected[key]), "{key}");
        }
        for (seat, found) in found["seats"].as_array().unwrap().iter().enumerate() {
            assert_eq!(found["bot"], expected["seats"][seat]["bot"]);
            assert_eq!(found["score"], expected["scores"][seat]);
            assert_eq!(found["forfeit"], expected["forfeits"][seat]);
        }
    }
    server.up.close();
}

#[test]
fn unchanged_resources_return_not_modified() {
    let server = TestServer::played();
    server.play_knockout();
    let described = server.json("/api/v1/openapi.json");
    let authorization = format!("Authorization: Bearer {}", server.up.admin());
    for path in described["paths"].as_object().unwrap().keys() {
        let path = filled(path);
        let first = server.get(&path, &[&authorization]);
        assert_eq!(first.status, 200, "{path}: {}", first.text());
        assert_eq!(first.header("cache-control"), "private, no-cache", "{path}");
        let tag = first.header("etag");
        assert!(
            tag.starts_with("W/\"") && first.header("vary").contains("authorization"),
            "{path}"
        );
        let again = server.get(&path, &[&authorization, &format!("If-None-Match: \"x\", {tag}")]);
        // Estimates and the last-seen times of workers change all the time.
        if !path.ends_with("/estimate") && !path.ends_with("/workers") {
            assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
            assert_eq!(again.header("etag"), tag, "{path}");
        }
        let other = server.get(&path, &[&authorization, "If-None-Match: W/\"x\""]);
        assert_eq!(other.status, 200, "{path}");
    }
    let board = "/api/v1/tournaments/cup/ranking";
    let first = server.get(board, &[]);
    assert_eq!(first.header("cache-control"), "public, no-cache");
    server.up.play("cup");
    let again = server.get(board, &[&format!("If-None-Match: {}", first.header("etag"))]);
    assert_eq!(again.status, 200, "there is another official leaderboard");
    assert_eq!(again.json()["edition"], json!(2));
    server.up.close();
}

#[test]
fn access_depends_on_the_role() {
    let server = TestServer::played();
    server.play_knockout();
    let described = server.json("/api/v1/openapi.json");
    let admin = server.up.admin();
    let organiser = server.up.token("organiser");
    let stranger = server.up.token("player");
    let worker = server.up.token("worker");
    for (number, (path, item)) in described["paths"].as_object().unwrap().iter().enumerate() {
        let open = item["get"]["security"][0] == json!({});
        let path = filled(path);
        let status = |token: &str| server.get_as(token, &path).status;
        assert_eq!(status(&admin), 200, "{path}");
        let anonymous = server.get(&path, &[]);
        assert_eq!(anonymous.status, if open { 200 } else { 401 }, "{path}");
        if !open {
            assert!(anonymous.header("www-authenticate").starts_with("Bearer"), "{path}");
            assert!([401, 403].contains(&status(&worker)), "{path}");
        }
        let bad = ["Authorization: Basic eDp5", "Authorization:", "Authorization: Bearer arb_0"];
        // An address may send 30 invalid tokens at once.
        for bad in &bad[..if number < 20 { 3 } else { 2 }] {
            let response = server.get(&path, &[bad]);
            assert_eq!(response.status, 401, "{path}: {bad}");
            assert_eq!(response.header("content-type"), "application/problem+json");
        }
    }
    for path in ["/api/v1/workers", "/api/v1/audit", "/api/v1/tournaments/cup/estimate"] {
        assert_eq!(server.get_as(&organiser, path).status, 200, "{path}");
        assert_eq!(server.get_as(&server.player, path).status, 403, "{path}");
    }
    assert_eq!(server.get_as(&organiser, "/api/v1/tokens").status, 403);
    let log = "/api/v1/tournaments/cup/bots/mine/log";
    assert_eq!(server.get_as(&server.player, log).status, 200);
    assert_eq!(server.get_as(&stranger, log).status, 403);
    let cookie = server.get(log, &[&format!("Cookie: arbiter={}", server.player)]);
    assert_eq!(cookie.status, 200, "the cookie works like the token");
    let bots = server.get_as(&server.player, "/api/v1/tournaments/cup/bots").json();
    let own_bots: Vec<_> =
        bots["items"].as_array().unwrap().iter().filter(|b| b["owned_by_caller"] == true).collect();
    assert_eq!((own_bots.len(), &own_bots[0]["bot"]), (1, &json!("player/mine")));
    let audit = server.get_as(&admin, "/api/v1/audit").json();
    let actions = audit["items"].as_array().unwrap().iter().map(|change| &change["action"]);
    assert!(actions.into_iter().any(|action| action == "tournament start"), "{audit}");
    server.up.close();
}

#[test]
fn records_equal_those_of_the_command_and_end_with_the_result() {
    let server = TestServer::played();
    let stranger = server.up.token("player");
    for found in server.all("/api/v1/tournaments/cup/matches", 1000) {
        let name = found["match"].as_str().unwrap();
        let is_own =
            found["seats"].as_array().unwrap().iter().any(|seat| seat["bot"] == "player/mine");
        let path = format!("{}/record", match_path(name));
        // Everyone sees the record, and no standard error of the bots of others.
        let public = server.get_as(&stranger, &path).text();
        assert_eq!(public, server.get(&path, &[]).text(), "{name}");
        assert!(public.contains("\"over\":true") && !public.contains("\"stderr\":"), "{public}");
        let tokens = [Some(server.up.admin()), is_own.then(|| server.player.clone())];
        for token in tokens.into_iter().flatten() {
            let mut command = server.up.command(&format!("match {name} --record -"));
            let stdout = done(&command.env("ARBITER_TOKEN", &token).output().unwrap());
            let response = server.get_as(&token, &path);
            assert_eq!(response.header("content-type"), "application/x-ndjson");
            assert_eq!(response.text(), stdout, "{name}");
            let authorization = format!("Authorization: Bearer {token}");
            let packed = server.get(&path, &[&authorization, "Accept-Encoding: gzip, zstd"]);
            assert_eq!(packed.header("content-encoding"), "zstd");
            assert_eq!(zstd::decode_all(&packed.body[..]).unwrap(), stdout.as_bytes());
        }
        let mut next = Some(format!("{}/steps?limit=40", match_path(name)));
        let mut steps = Vec::new();
        while let Some(path) = next {
            let film = server.get_as(&server.up.admin(), &path).json();
            steps.extend(film["items"].as_array().unwrap().clone());
            next = film["next"].as_str().map(str::to_owned);
            assert!(next.is_some() || film["total"] == steps.len(), "{film}");
        }
        let numbers: Vec<_> = steps.iter().map(|step| step["step"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (0..steps.len() as u64).collect::<Vec<_>>());
        let result = steps.last().unwrap()["result"].as_array().unwrap().clone();
        for (seat, result) in result.iter().enumerate() {
            assert_eq!(result["score"], found["seats"][seat]["score"]);
            assert_eq!(result["forfeit"], found["seats"][seat]["forfeit"]);
        }
    }
    server.up.close();
}

#[test]
fn errors_are_problem_documents() {
    let server = TestServer::open(1024);
    let cup = "/api/v1/tournaments/cup";
    for (path, status) in [
        (format!("{cup}/ranking"), 409),
        (format!("{cup}/matches"), 409),
        (format!("{cup}/editions/1"), 404),
        (format!("{cup}/bots/nobody"), 404),
        (format!("{cup}/ranking?limit=0"), 400),
        (format!("{cup}/ranking?limit=1001"), 400),
        (format!("{cup}/ranking?offset=-1"), 400),
        (format!("{cup}/ranking?edition="), 400),
        (format!("{cup}/ranking?edition=99999999999"), 400),
        (format!("{cup}/ranking?tournament=other"), 400),
        (format!("{cup}/ranking?unknown=1"), 400),
        (format!("{cup}/ranking?q=a&q=b"), 400),
        (format!("{cup}/nothing"), 404),
        ("/api/v1/tournaments/none".to_owned(), 404),
        ("/api/v1/tournaments/%00".to_owned(), 400),
        ("/api/v1/tournaments/%ff".to_owned(), 400),
        (format!("{cup}/matches/y"), 400),
        (format!("{cup}/matches/99"), 404),
        ("/api/v1/tournaments/none/matches/0".to_owned(), 404),
        ("/api/v2/tournaments".to_owned(), 404),
        ("/api/".to_owned(), 404),
    ] {
        let response = server.get(&path, &[]);
        assert_eq!(response.status, status, "{path}: {}", response.text());
        assert_eq!(response.header("content-type"), "application/problem+json", "{path}");
        assert_eq!(response.header("cache-control"), "no-store", "{path}");
        let problem = response.json();
        assert_eq!((&problem["status"], &problem["type"]), (&json!(status), &json!("about:blank")));
        assert!(problem["detail"].as_str().unwrap().len() > 10, "{problem}");
    }
    let refused =
        http_client::request(server.up.http, "POST", &format!("{cup}/ranking"), &[], b"x=y");
    assert_eq!((refused.status, refused.header("allow")), (405, "GET,HEAD"));
    assert_eq!(refused.header("content-type"), "application/problem+json");
    let options =
        http_client::request(server.up.http, "OPTIONS", &format!("{cup}/ranking"), &[], &[]);
    assert_eq!((options.status, options.header("allow")), (204, "GET,HEAD,OPTIONS"));
    let head = http_client::request(server.up.http, "HEAD", cup, &[], &[]);
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("etag"), server.get(cup, &[]).header("etag"));
    assert!(server.get("/api", &[]).text().contains("/api/v1/openapi.json"));
    server.up.close();
}

#[test]
fn the_openapi_document_is_complete() {
    let server = TestServer::open(1024);
    let described = server.json("/api/v1/openapi.json");
    assert_eq!(described["openapi"], "3.1.0");
    let text = described.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(described.pointer(pointer).is_some(), "{pointer}");
    }
    for (path, item) in described["paths"].as_object().unwrap() {
        let operation = &item["get"];
        assert!(operation["summary"].as_str().unwrap().len() > 5, "{path}");
        let parameters = operation["parameters"].as_array().unwrap();
        let in_path: Vec<_> = parameters.iter().filter(|one| one["in"] == "path").collect();
        assert_eq!(in_path.len(), path.matches('{').count(), "{path}");
        for parameter in parameters {
            assert!(parameter["schema"]["type"].is_string(), "{path}: {parameter}");
            assert!(!parameter["description"].as_str().unwrap().is_empty(), "{path}: {parameter}");
        }
    }
    let guide = include_str!("../../docs/api.md");
    for (schema, states) in [("Match", &MATCH_STATES[..]), ("Version", &VERSION_STATES[..])] {
        let state = &described["components"]["schemas"][schema]["properties"]["state"];
        for (_, shown) in states {
            let word = format!("`{shown}`");
            assert!(state["description"].as_str().unwrap().contains(&word), "{word}: {state}");
            assert!(guide.contains(&word), "docs/api.md: {word}");
        }
    }
    server.up.close();
}
