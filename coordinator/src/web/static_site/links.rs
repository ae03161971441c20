//! Links in texts of a tournament, such as its description: paths of the server become those of the
//! site. Without this, a browser would look for them on the server that has the copy.

use std::collections::HashSet;
use std::hash::BuildHasher;

use arbiter_proto::ids::MatchNumber;

use super::paths;

/// The pages of a site that a text can link to, besides those that every site has.
#[derive(Clone, Debug, Default)]
pub struct LinkedPages {
    /// The edition that the site shows.
    pub edition: i32,
    /// The editions with a leaderboard.
    pub rankings: Vec<i32>,
    /// The numbers of the matches with a replay.
    pub replays: HashSet<MatchNumber>,
}

impl LinkedPages {
    /// The pages of a site that shows this edition.
    pub fn new<S: BuildHasher>(
        edition: i32,
        rankings: &[i32],
        replays: &HashSet<MatchNumber, S>,
    ) -> Self {
        let replays = replays.iter().copied().collect();
        Self { edition, rankings: rankings.to_vec(), replays }
    }

    /// The path in the site, from its folder, of what the server has at `target`. `None` if the
    /// site does not have it, such as a list of the matches of one bot.
    pub(super) fn find(
        &self,
        tournament: &str,
        target: &str,
        has_statistics: bool,
    ) -> Option<String> {
        let (address, fragment) = target.split_once('#').unwrap_or((target, ""));
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let below = path.strip_prefix("/t/")?.strip_prefix(tournament)?;
        if !below.is_empty() && !below.starts_with('/') {
            return None;
        }
        let value = |key: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
        };
        let is_filtered = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .any(|(name, value)| name != "edition" && !value.is_empty());
        let edition = match value("edition") {
            Some(number) => number.parse().ok()?,
            None => self.edition,
        };
        let below = below.trim_matches('/');
        if let "" | "ranking" = below {
            let is_front = edition == self.edition;
            let is_there = self.rankings.contains(&edition);
            return if is_front {
                Some(paths::INDEX.to_owned())
            } else {
                is_there.then(|| paths::ranking(edition))
            };
        }
        if let Some(number) = below.strip_prefix("matches/") {
            let number = MatchNumber(number.trim_end_matches("/embed").parse().ok()?);
            let step = fragment.strip_prefix("step=").or(value("step"));
            let step = step.map(|step| format!("#step={step}")).unwrap_or_default();
            let is_there = self.replays.contains(&number);
            return is_there.then(|| format!("{}{step}", paths::replay(number.0)));
        }
        let page = match below {
            "about" => paths::ABOUT,
            "bots" => paths::BOTS,
            "how-to-play" => paths::HOW_TO_PLAY,
            "matrix" => paths::HEAD_TO_HEAD,
            "matches" | "matches.csv" if is_filtered => return None,
            "matches" => paths::FIRST_MATCHES,
            "statistics" if has_statistics => paths::STATISTICS,
            "statistics.csv" if !has_statistics => return None,
            "bots.csv" | "matches.csv" | "ranking.csv" | "statistics.csv" => {
                return (edition == self.edition)
                    .then(|| format!("{}/{below}", paths::DATA_FOLDER));
            }
            _ => return None,
        };
        (edition == self.edition).then(|| page.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_the_page_of_the_site_or_nowhere() {
        let replays = HashSet::from([MatchNumber(7)]);
        let pages = LinkedPages::new(3, &[2, 3], &replays);
        let expected = [
            ("/t/cup", Some("index.html")),
            ("/t/cup/#top", Some("index.html")),
            ("/t/cup/ranking?edition=3", Some("index.html")),
            ("/t/cup/ranking?q=a&edition=2", Some("rankings/edition-2.html")),
            ("/t/cup/ranking?edition=1", None),
            ("/t/cup/matrix", Some("head-to-head.html")),
            ("/t/cup/matrix?edition=2", None),
            ("/t/cup/matches", Some("matches/page-1.html")),
            ("/t/cup/matches?edition=3&bot=", Some("matches/page-1.html")),
            ("/t/cup/matches?bot=ada", None),
            ("/t/cup/matches.csv?bot=ada", None),
            ("/t/cup/matches/7", Some("replays/7.html")),
            ("/t/cup/matches/7?step=12#replay", Some("replays/7.html#step=12")),
            ("/t/cup/matches/8", None),
            ("/t/cup/matches/x", None),
            ("/t/cup/bots/ada", None),
            ("/t/cup/statistics", None),
            ("/t/cup/statistics.csv", None),
            ("/t/cup/ranking.csv", Some("data/ranking.csv")),
            ("/t/cup2", None),
            ("/t/other/bots", None),
            ("/login", None),
            ("/", None),
        ];
        for (target, path) in expected {
            assert_eq!(pages.find("cup", target, false).as_deref(), path, "{target}");
        }
        for (target, path) in [
            ("/t/cup/statistics", Some("statistics.html")),
            ("/t/cup/statistics.csv", Some("data/statistics.csv")),
            ("/t/cup/statistics.csv?edition=3", Some("data/statistics.csv")),
            ("/t/cup/statistics.csv?edition=2", None),
        ] {
            assert_eq!(pages.find("cup", target, true).as_deref(), path, "{target}");
        }
    }
}
