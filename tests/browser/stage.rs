//! What is looked at: a running `arbiter up` in which small tournaments of all five games were
//! played. One serves all tests of this program that run at the same time.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::chrome::Chrome;
use crate::support::presets::{TIME, give_time};
use crate::support::up::Up;

/// The five games.
pub(crate) const GAMES: [&str; 5] = ["wojna", "bitwa", "tricks", "blackjack", "gomoku"];

/// Everything on one machine.
pub(crate) struct Stage {
    pub(crate) up: Up,
    /// Where the pages are, without a slash at the end.
    pub(crate) pages: String,
}

impl Stage {
    /// Everything, and no tournament.
    pub(crate) fn empty() -> Self {
        let up = Up::start(2);
        let pages = format!("http://{}", up.http);
        Self { up, pages }
    }

    /// Everything with all games played; the same one, as long as somebody has it.
    pub(crate) fn played() -> Arc<Self> {
        static SHARED: Mutex<Weak<Stage>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let stage = Arc::new(Self::empty());
            stage.play();
            *shared = Arc::downgrade(&stage);
            stage
        })
    }

    fn play(&self) {
        let presets = self.up.directory.path().join("presets");
        give_time(&presets);
        for (game, _) in TIME {
            let file = presets.join(format!("quick/{game}.toml"));
            self.up.create(&fs::read_to_string(file).unwrap());
            self.up.tell(&format!("tournament start {game}-quick"));
        }
        for game in GAMES {
            self.up.wait_for(&format!("{game}-quick"), 1);
        }
    }

    /// Goes to a page.
    pub(crate) fn visit(&self, chrome: &Chrome, path: &str) {
        chrome.open(&format!("{}{path}", self.pages));
    }

    /// Logs the administrator in, on the page for it.
    pub(crate) fn log_in(&self, chrome: &Chrome) {
        self.visit(chrome, "/login");
        chrome.type_into("#token", &self.up.admin());
        chrome.click("main form button");
        chrome.wait("the first page is shown", "return location.pathname === '/'");
    }
}
