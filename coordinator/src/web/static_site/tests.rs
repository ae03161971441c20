use arbiter_proto::v1::RankSet;

use super::*;

/// A tournament of the game of a file.
fn tournament_of(text: &str) -> Tournament {
    let file = TournamentFile::parse(&Games::built_in(), text).unwrap();
    Tournament {
        name: file.name.clone(),
        game: file.game().name.to_string(),
        settings: file.to_json().to_string(),
        ..Tournament::default()
    }
}

fn site_of(text: &str) -> StaticSite {
    StaticSite::new(&Games::built_in(), tournament_of(text), &[], true)
}

#[test]
fn how_to_play_begins_with_the_conditions_of_the_tournament() {
    let site = site_of("name = \"cup\"\ngame = \"gomoku\"\n[params]\nmove_limit = \"2s\"\n");
    let page = site.how_to_play("A reply may take 500 ms.", &LinkedPages::default());
    for text in [
        "<h2>Conditions in this tournament</h2>",
        "<code>move_limit = 2s</code>",
        "with its default parameters and schedule",
        "<a href=\"about.html\">the page Seed and settings</a>, those apply.",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains("Languages"), "a site knows no workers: {page}");
    let package = site.how_to_play("", &LinkedPages::default());
    let guide = "Gomoku is a game package. Its guide for bot authors is in the package file, \
                 see <a href=\"data.html\">Data</a>.";
    assert!(package.contains(guide), "{package}");
    assert!(!package.contains("The text below"), "{package}");
}

#[test]
fn games_have_their_titles_and_means_are_per_match_or_episode() {
    for (game, title, heading) in [
        ("gomoku", "Gomoku", "Mean per\u{a0}match"),
        ("blackjack", "Blackjack", "Mean per\u{a0}episode"),
    ] {
        let site = site_of(&format!("name = \"cup\"\ngame = \"{game}\"\n"));
        let index = site.index(&GetRankingResponse::default(), &LinkedPages::default());
        assert!(index.contains(&format!("A tournament of {title}. ")), "{index}");
        assert!(index.contains(&format!(">{heading}</th>")), "{index}");
    }
    let unit = "episode".to_owned();
    let all = GetStatisticsResponse { unit, ..GetStatisticsResponse::default() };
    let page = site_of("name = \"cup\"\ngame = \"blackjack\"\n").statistics(&all);
    assert!(page.contains(">Mean per\u{a0}episode</th>"), "{page}");
}

#[test]
fn shared_ranks_are_marked_as_on_the_server() {
    let place =
        |bot: &str, rank, tied| Standing { bot: bot.to_owned(), rank, tied, ..Standing::default() };
    let standings = vec![place("ada", 1, false), place("bob", 2, true), place("eve", 2, true)];
    let ranking = GetRankingResponse { standings, ..GetRankingResponse::default() };
    let page = site_of("name = \"cup\"\ngame = \"gomoku\"\n").ranking(&ranking);
    assert!(page.contains(">1<") && !page.contains("2="), "{page}");
    assert_eq!(page.matches(">=2<").count(), 2, "{page}");
}

#[test]
fn the_list_of_matches_says_how_many_replays_are_missing() {
    let site = site_of("name = \"cup\"\ngame = \"gomoku\"\n");
    let list = [(MatchStatus::default(), false)];
    let page_with =
        |replays| site.matches(1, &list, &[], ReplayCount { replays, matches: 6 }, false);
    for (replays, text) in [
        (0, "<p>This site contains no replays.</p>"),
        (1, "<p>This site contains the replay of 1 of 6 matches.</p>"),
        (2, "<p>This site contains the replays of 2 of 6 matches.</p>"),
    ] {
        let page = page_with(replays);
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page_with(6).contains("This site contains"));
}

#[test]
fn every_page_of_a_frozen_tournament_tells_since_when_it_is_frozen() {
    let notice = "frozen since 2027-03-01 12:00:00 UTC until the tournament is over";
    let frozen = Tournament {
        name: "cup".to_owned(),
        state: "open".to_owned(),
        freeze_notice: notice.to_owned(),
        closes_at_us: Some(1_803_902_400_000_000),
        ..Tournament::default()
    };
    let ranking = GetRankingResponse::default();
    let pages = |tournament: &Tournament| {
        let site = StaticSite::new(&Games::built_in(), tournament.clone(), &[], true);
        [
            site.index(&ranking, &LinkedPages::default()),
            site.ranking(&ranking),
            site.bots([]),
            site.statistics(&GetStatisticsResponse::default()),
            site.head_to_head(&ranking, &Meetings::default()),
            site.matches(1, &[], &[], ReplayCount { replays: 0, matches: 0 }, false),
            site.how_to_play("", &LinkedPages::default()),
            site.data(&[]),
        ]
    };
    for page in pages(&frozen) {
        let shown = format!("<strong>Leaderboards are {notice}.</strong> This site was exported");
        assert!(page.contains(&shown), "{page}");
    }
    let [index, ..] = pages(&frozen);
    for text in [
        "the last edition that was complete before the freeze is official",
        "At the time of export it was open, and entry had closed at <time",
    ] {
        assert!(index.contains(text), "{index}");
    }
    assert!(!index.contains("The last complete edition is official"), "{index}");
    let over = Tournament { state: "closed".to_owned(), freeze_notice: String::new(), ..frozen };
    for page in pages(&over) {
        assert!(!page.contains("frozen") && !page.contains("At the time of export"), "{page}");
    }
}

#[test]
fn a_bot_without_matches_has_no_figures_but_a_reason() {
    let new = BotStatistics {
        bot: "new".to_owned(),
        rank: 2,
        no_interval: "no_matches".to_owned(),
        ..BotStatistics::default()
    };
    let played = BotStatistics {
        bot: "old".to_owned(),
        rank: 1,
        matches: 4,
        mean: -1.5,
        margin: Some(0.25),
        rank_set: Some(RankSet { best: 1, worst: 1 }),
        rating: Some(1499.6),
        rating_margin: Some(20.4),
        ..BotStatistics::default()
    };
    let tournament = Tournament { name: "cup".to_owned(), ..Tournament::default() };
    let site = StaticSite::new(&Games::built_in(), tournament, &[], true);
    let statistics = vec![played, new];
    let all = GetStatisticsResponse { statistics, ..GetStatisticsResponse::default() };
    let page = site.statistics(&all);
    let cells =
        |texts: [&str; 4]| texts.map(|text| format!("<td class=\"number\">{text}</td>")).concat();
    for figures in [["4", "−1.500 ± 0.250", "1", "1500 ± 20"], ["0", "–", "–", "–"]] {
        assert!(page.contains(&cells(figures)), "{figures:?}: {page}");
    }
    assert!(page.contains("A bot without counted matches has no mean yet."), "{page}");
    let of_intervals = "Each interval of a mean or rating (±) contains the true value with";
    assert!(page.contains(of_intervals), "{page}");
    let by_schedule = GetStatisticsResponse { ranks_by_schedule: true, ..all };
    assert!(!site.statistics(&by_schedule).contains(">Possible ranks<"), "they are dashes only");
    let without = site.statistics(&GetStatisticsResponse::default());
    assert!(!without.contains("interval"), "{without}");
}
