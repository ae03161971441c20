//! The paths of the files of a static site, from its folder.

use arbiter_proto::ids::MatchName;
use arbiter_proto::v1::MatchStatus;

/// The first page.
pub const INDEX: &str = "index.html";
/// The list of bots.
pub const BOTS: &str = "bots.html";
/// The statistics.
pub const STATISTICS: &str = "statistics.html";
/// The head-to-head results.
pub const HEAD_TO_HEAD: &str = "head-to-head.html";
/// The first page of matches.
pub const FIRST_MATCHES: &str = "matches/page-1.html";
/// How to write a bot.
pub const HOW_TO_PLAY: &str = "how-to-play.html";
/// The settings, the seed and the certificate.
pub const ABOUT: &str = "about.html";
/// The links to the files with data.
pub const DATA: &str = "data.html";
/// The style sheet.
pub const STYLE: &str = "assets/arbiter.css";
/// The icon.
pub const ICON: &str = "assets/arbiter.svg";
/// The folder with data.
pub const DATA_FOLDER: &str = "data";

/// The leaderboard of an edition.
pub fn ranking(edition: i32) -> String {
    format!("rankings/edition-{edition}.html")
}

/// A page of matches, from 1.
pub fn matches(page: usize) -> String {
    format!("matches/page-{page}.html")
}

/// The replay of a match with this number.
pub fn replay(number: i64) -> String {
    format!("replays/{number}.html")
}

/// The number of a match.
pub fn match_number(status: &MatchStatus) -> i64 {
    status.r#match.parse::<MatchName>().map_or(0, |name| name.number.0)
}

/// The way from a file up to the folder of the site.
pub fn up(path: &str) -> String {
    "../".repeat(path.matches('/').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_up_leads_to_the_folder_of_the_site() {
        assert_eq!((up(INDEX), up(FIRST_MATCHES)), (String::new(), "../".to_owned()));
        assert_eq!(matches(1), FIRST_MATCHES);
    }
}
