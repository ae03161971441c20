//! What programs read over HTTP from a running `arbiter up`: it is what the commands print, to whom
//! they print it; and what becomes of requests that mean no good.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod client;
mod export;
mod home;
mod hostile;
#[path = "../support/mod.rs"]
mod support;

use home::Home;
use serde_json::{Value, json};
use support::service::done;

/// A value of every kind of parameter, for a tournament that was played.
pub(crate) fn filled(path: &str, edition: &Value) -> String {
    path.replace("{tournament}", "cup")
        .replace("{bot}", "mine")
        .replace("{version}", "1")
        .replace("{number}", "0")
        .replace("/editions/{edition}", "/editions/1")
        .replace("{edition}", &edition.to_string())
}

/// The identity of the only edition.
fn edition(home: &Home) -> Value {
    home.json("/api/v1/tournaments/cup/editions/1")["id"].clone()
}

#[test]
fn answers_are_what_commands_print() {
    let home = Home::played();
    let cup = "/api/v1/tournaments/cup";
    let places = home.up.json("ranking cup");
    let board = home.json(&format!("{cup}/ranking"));
    assert_eq!(board["items"].as_array().unwrap().len(), places.len());
    for (place, printed) in board["items"].as_array().unwrap().iter().zip(&places) {
        for key in ["rank", "tied", "bot", "version", "matches", "mean", "interval95", "forfeits"] {
            assert_eq!(place[key], printed[key], "{key} of {printed}");
        }
        let score = printed["score"].as_array().unwrap().iter().map(ToString::to_string);
        assert_eq!(place["score"], json!(score.collect::<Vec<_>>()));
        for key in ["edition", "official", "planned", "counted", "columns"] {
            assert_eq!(board[key], printed[key], "{key}");
        }
        let bot = place["bot"].as_str().unwrap();
        let one = home.json(&format!("{cup}/bots/{bot}/place"));
        assert_eq!((&one["place"], &one["edition"]), (place, &board["edition"]));
        let history = home.json(&format!("{cup}/bots/{bot}/history"));
        assert_eq!(history["items"], json!([one]));
        let printed = done(
            &home.up.command("ranking cup --json").arg(format!("--bot={bot}")).output().unwrap(),
        );
        let met = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let met: Vec<_> = met.filter_map(|line| line.get("meeting").cloned()).collect();
        assert_eq!(home.all(&format!("{cup}/bots/{bot}/meetings"), 2), met, "{bot}");
    }
    let found = home.json(&format!("{cup}/ranking?q=EV"));
    assert_eq!((&found["bots"], &found["items"][0]["bot"]), (&json!(1), &json!("eve")));

    let printed = &home.up.json("tournament show cup")[0];
    let found = home.json(cup);
    for key in ["tournament", "game", "state", "seed_hash", "seed", "created_at", "settings"] {
        assert_eq!(found[key], printed[key], "{key}");
    }
    assert_eq!(found["official"], json!(1));
    assert_eq!(found["newest"], printed["editions"][0]);
    assert_eq!(home.json(&format!("{cup}/editions"))["items"], printed["editions"]);
    assert_eq!(home.json("/api/v1/tournaments")["items"][0]["tournament"], json!("cup"));

    for (found, printed) in home.all(&format!("{cup}/bots"), 2).iter().zip(home.up.json("bots cup"))
    {
        for key in ["bot", "owner", "house", "withdrawn", "stood_down", "reason"] {
            assert_eq!(found[key], printed[key], "{key}");
        }
        for key in ["version", "digest", "submitted_at"] {
            assert_eq!(found["newest"][key], printed[key], "{key}");
        }
        let versions =
            home.json(&format!("{cup}/bots/{}/versions", found["bot"].as_str().unwrap()));
        assert_eq!(versions["items"], json!([found["newest"]]));
    }
    let printed = &home.up.json("tournament schedule cup --certificate")[0]["certificate"];
    let found = home.json(&format!("{cup}/certificate"));
    assert_eq!((&found["proved"], &found["matches"]), (&json!(true), &printed["matches"]));
    let check = json!({"edition": 1, "matches": 20, "differences": [], "derived": 0,
        "not_derived": "the seed of cup is published when it is closed", "seed_differences": []});
    assert_eq!(home.json(&format!("{cup}/check")), check);
    home.up.close();
}

#[test]
fn pages_hold_everything_once() {
    let home = Home::played();
    let cup = "/api/v1/tournaments/cup";
    let lists = [("ranking", "bot", 5), ("bots", "bot", 5), ("matches", "match", 20)];
    for (list, key, count) in [&lists[..], &[("schedule", "match", 20)]].concat() {
        let whole = home.all(&format!("{cup}/{list}"), 1000);
        assert_eq!(whole.len(), count, "{list}");
        for limit in [1, 3, 5, 20] {
            assert_eq!(home.all(&format!("{cup}/{list}"), limit), whole, "{list} by {limit}");
        }
        let mut names: Vec<_> = whole.iter().map(|one| one[key].to_string()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "{list}: nothing twice");
    }
    let own = home.all(&format!("{cup}/matches?bot=mine"), 3);
    assert_eq!(own.len(), 8);
    let plays =
        |found: &Value| found["seats"].as_array().unwrap().iter().any(|s| s["bot"] == "mine");
    assert!(own.iter().all(plays));
    for found in home.all(&format!("{cup}/matches"), 7) {
        let name = found["match"].as_str().unwrap();
        let printed = &home.up.json(&format!("match {name}"))[0];
        let one = home.json(&format!("/api/v1/matches/{name}"));
        for key in ["match", "tournament", "params", "transcript", "wall_ms", "level"] {
            assert_eq!((&found[key], &one[key]), (&printed[key], &printed[key]), "{key}");
        }
        for (seat, found) in found["seats"].as_array().unwrap().iter().enumerate() {
            assert_eq!(found["bot"], printed["seats"][seat]["bot"]);
            assert_eq!(found["score"], printed["scores"][seat]);
            assert_eq!(found["forfeit"], printed["forfeits"][seat]);
        }
    }
    home.up.close();
}

#[test]
fn what_has_not_changed_is_not_sent_again() {
    let home = Home::played();
    let described = home.json("/api/v1/openapi.json");
    let edition = edition(&home);
    let authorization = format!("Authorization: Bearer {}", home.up.admin());
    for path in described["paths"].as_object().unwrap().keys() {
        let path = filled(path, &edition);
        let first = home.get(&path, &[&authorization]);
        assert_eq!(first.status, 200, "{path}: {}", first.text());
        assert_eq!(first.header("cache-control"), "private, no-cache", "{path}");
        let tag = first.header("etag");
        assert!(
            tag.starts_with("W/\"") && first.header("vary").contains("authorization"),
            "{path}"
        );
        let again = home.get(&path, &[&authorization, &format!("If-None-Match: \"x\", {tag}")]);
        // A forecast moves with the time, and a worker is seen again and again.
        if !path.ends_with("/estimate") && !path.ends_with("/workers") {
            assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
            assert_eq!(again.header("etag"), tag, "{path}");
        }
        let other = home.get(&path, &[&authorization, "If-None-Match: W/\"x\""]);
        assert_eq!(other.status, 200, "{path}");
    }
    let board = "/api/v1/tournaments/cup/ranking";
    let first = home.get(board, &[]);
    assert_eq!(first.header("cache-control"), "public, no-cache");
    home.up.play("cup");
    let again = home.get(board, &[&format!("If-None-Match: {}", first.header("etag"))]);
    assert_eq!(again.status, 200, "there is another official leaderboard");
    assert_eq!(again.json()["edition"], json!(2));
    home.up.close();
}

#[test]
fn everybody_is_told_what_they_may_know() {
    let home = Home::played();
    let edition = edition(&home);
    let described = home.json("/api/v1/openapi.json");
    let (admin, organiser) = (home.up.admin(), home.up.token("organiser"));
    let (stranger, worker) = (home.up.token("player"), home.up.token("worker"));
    for (path, item) in described["paths"].as_object().unwrap() {
        let open = item["get"]["security"][0] == json!({});
        let path = filled(path, &edition);
        let status = |token: &str| home.get_as(token, &path).status;
        assert_eq!(status(&admin), 200, "{path}");
        let nobody = home.get(&path, &[]);
        assert_eq!(nobody.status, if open { 200 } else { 401 }, "{path}");
        if !open {
            assert!(nobody.header("www-authenticate").starts_with("Bearer"), "{path}");
            assert!([401, 403].contains(&status(&worker)), "{path}");
        }
        for bad in ["Authorization: Bearer arb_0", "Authorization: Basic eDp5", "Authorization:"] {
            let answer = home.get(&path, &[bad]);
            assert_eq!(answer.status, 401, "{path}: {bad}");
            assert_eq!(answer.header("content-type"), "application/problem+json");
        }
    }
    for path in ["/api/v1/workers", "/api/v1/audit", "/api/v1/tournaments/cup/estimate"] {
        assert_eq!(home.get_as(&organiser, path).status, 200, "{path}");
        assert_eq!(home.get_as(&home.player, path).status, 403, "{path}");
    }
    assert_eq!(home.get_as(&organiser, "/api/v1/tokens").status, 403);
    let log = "/api/v1/tournaments/cup/bots/mine/log";
    assert_eq!(home.get_as(&home.player, log).status, 200);
    assert_eq!(home.get_as(&stranger, log).status, 403);
    let cookie = home.get(log, &[&format!("Cookie: arbiter={}", home.player)]);
    assert_eq!(cookie.status, 200, "what a browser brings is as good");
    let bots = home.get_as(&home.player, "/api/v1/tournaments/cup/bots").json();
    let own: Vec<_> =
        bots["items"].as_array().unwrap().iter().filter(|b| b["own"] == true).collect();
    assert_eq!((own.len(), &own[0]["bot"]), (1, &json!("mine")));
    let audit = home.get_as(&admin, "/api/v1/audit").json();
    let actions = audit["items"].as_array().unwrap().iter().map(|change| &change["action"]);
    assert!(actions.into_iter().any(|action| action == "tournament start"), "{audit}");
    home.up.close();
}

#[test]
fn records_are_those_of_the_command_and_end_with_the_result() {
    let home = Home::played();
    let stranger = home.up.token("player");
    for found in home.all("/api/v1/tournaments/cup/matches", 1000) {
        let name = found["match"].as_str().unwrap();
        let own = found["seats"].as_array().unwrap().iter().any(|seat| seat["bot"] == "mine");
        let path = format!("/api/v1/matches/{name}/record");
        assert_eq!(home.get_as(&stranger, &path).status, 403);
        let tokens = [Some(home.up.admin()), own.then(|| home.player.clone())];
        for token in tokens.into_iter().flatten() {
            let mut command = home.up.command(&format!("match {name} --record -"));
            let printed = done(&command.env("ARBITER_TOKEN", &token).output().unwrap());
            let answer = home.get_as(&token, &path);
            assert_eq!(answer.header("content-type"), "application/x-ndjson");
            assert_eq!(answer.text(), printed, "{name}");
            let shown = format!("Authorization: Bearer {token}");
            let packed = home.get(&path, &[&shown, "Accept-Encoding: gzip, zstd"]);
            assert_eq!(packed.header("content-encoding"), "zstd");
            assert_eq!(zstd::decode_all(&packed.body[..]).unwrap(), printed.as_bytes());
        }
        let mut next = Some(format!("/api/v1/matches/{name}/steps?limit=40"));
        let mut steps = Vec::new();
        while let Some(path) = next {
            let film = home.get_as(&home.up.admin(), &path).json();
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
    home.up.close();
}

#[test]
fn refusals_are_problem_documents() {
    let home = Home::open(1024);
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
        ("/api/v1/matches/x/y".to_owned(), 400),
        ("/api/v1/matches/1/99".to_owned(), 404),
        ("/api/v2/tournaments".to_owned(), 404),
        ("/api/".to_owned(), 404),
    ] {
        let answer = home.get(&path, &[]);
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        assert_eq!(answer.header("content-type"), "application/problem+json", "{path}");
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        let problem = answer.json();
        assert_eq!((&problem["status"], &problem["type"]), (&json!(status), &json!("about:blank")));
        assert!(problem["detail"].as_str().unwrap().len() > 10, "{problem}");
    }
    let refused = client::request(home.up.http, "POST", &format!("{cup}/ranking"), &[], b"x=y");
    assert_eq!((refused.status, refused.header("allow")), (405, "GET,HEAD"));
    assert_eq!(refused.header("content-type"), "application/problem+json");
    let options = client::request(home.up.http, "OPTIONS", &format!("{cup}/ranking"), &[], &[]);
    assert_eq!((options.status, options.header("allow")), (204, "GET,HEAD,OPTIONS"));
    let head = client::request(home.up.http, "HEAD", cup, &[], &[]);
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("etag"), home.get(cup, &[]).header("etag"));
    assert!(home.get("/api", &[]).text().contains("/api/v1/openapi.json"));
    home.up.close();
}

#[test]
fn the_description_names_what_there_is() {
    let home = Home::open(1024);
    let described = home.json("/api/v1/openapi.json");
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
    home.up.close();
}
