//! A running `arbiter up` with finished small tournaments of all five games and of a game package,
//! and a small knockout and a small tournament with stages. Tests that run at the same time share
//! one server.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::chrome::Chrome;
use crate::support::presets::{TIME, give_time};
use crate::support::up::Up;

/// The five games, and a game package.
pub(crate) const GAMES: [&str; 6] = ["wojna", "bitwa", "tricks", "blackjack", "gomoku", "connect4"];

/// A tournament with a bracket.
pub(crate) const KNOCKOUT: &str = "gomoku-knockout";

/// A tournament with stages: a Swiss, then a knockout.
pub(crate) const STAGES: &str = "gomoku-stages";

/// A running `arbiter up`.
pub(crate) struct TestServer {
    pub(crate) up: Up,
    /// The base URL of the pages, without a trailing slash.
    pub(crate) pages: String,
}

impl TestServer {
    /// A server without tournaments.
    pub(crate) fn empty() -> Self {
        let up = Up::start(2);
        let pages = format!("http://{}", up.http);
        Self { up, pages }
    }

    /// The shared server with all games played.
    pub(crate) fn played() -> Arc<Self> {
        static SHARED: Mutex<Weak<TestServer>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::empty());
            server.play();
            *shared = Arc::downgrade(&server);
            server
        })
    }

    fn play(&self) {
        let presets = self.up.directory.path().join("presets");
        give_time(&presets);
        for (game, _) in TIME {
            let file = presets.join(format!("quick/{game}.toml"));
            self.up.create(&fs::read_to_string(file).unwrap());
        }
        let package = concat!(env!("CARGO_MANIFEST_DIR"), "/games/packages/connect4");
        self.up.create(&format!(
            "name = \"connect4-quick\"\ngame = \"{package}\"\n[clock]\nmargin = \"10h\"\n"
        ));
        let root = env!("CARGO_MANIFEST_DIR");
        let bots = ["house", "center", "shapes"].map(|bot| format!("{root}/bots/gomoku/{bot}"));
        self.up.create(&format!(
            "name = \"{KNOCKOUT}\"\ngame = \"gomoku\"\n[params]\nmove_limit = \"10h\"\n\
             [schedule]\nkind = \"knockout\"\nthird_place = true\n[house]\nbots = {bots:?}\n"
        ));
        self.up.create(&format!(
            "name = \"{STAGES}\"\ngame = \"gomoku\"\n[params]\nmove_limit = \"10h\"\n\
             [[stage]]\nkind = \"swiss\"\nrounds = 2\nadvance = 2\n\
             [[stage]]\nkind = \"knockout\"\n[house]\nbots = {bots:?}\n"
        ));
        let quick = GAMES.map(|game| format!("{game}-quick"));
        let all: Vec<_> = quick.iter().map(String::as_str).chain([KNOCKOUT, STAGES]).collect();
        for tournament in &all {
            self.up.succeed(&format!("tournament start {tournament}"));
        }
        for tournament in &all {
            self.up.wait_for(tournament, 1);
        }
    }

    /// Opens a page.
    pub(crate) fn visit(&self, chrome: &Chrome, path: &str) {
        chrome.open(&format!("{}{path}", self.pages));
    }

    /// Logs in as the administrator.
    pub(crate) fn log_in(&self, chrome: &Chrome) {
        self.visit(chrome, "/login");
        chrome.type_into("#token", &self.up.admin());
        chrome.click("main form button");
        chrome.wait("the first page is shown", "return location.pathname === '/'");
    }
}
