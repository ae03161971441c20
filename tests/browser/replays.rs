//! Replays: stepped through, played, jumped about in and linked to, by mouse and by keyboard.

use serde_json::Value;

use crate::chrome::{Chrome, keys};
use crate::stage::{GAMES, Stage};
use crate::support::shown::shown;

/// The number of the step on the stage.
const STEP: &str = "Number(document.querySelector('.stage .step')?.dataset.step)";

/// A replay on the screen.
struct Replay<'a> {
    chrome: &'a Chrome,
    game: &'static str,
    /// Its last step.
    last: u64,
}

impl Replay<'_> {
    /// Waits until a step is on the stage, and the numbers beside it say so.
    fn at(&self, step: u64, after: &str) {
        let (game, last) = (self.game, self.last);
        let body = format!(
            "return {STEP} === {step}
                && document.querySelector('.player output').innerText === '{step} of {last}'
                && document.querySelector('.player input').value === '{step}'
                && (location.hash === '#step={step}' || location.search === '?step={step}')"
        );
        self.chrome.wait(&format!("{game}: step {step} after {after}"), &body);
    }

    fn click(&self, label: &str) {
        self.chrome.click(&format!("a[aria-label='{label}']"));
    }

    /// What is on the stage.
    fn stage(&self) -> Value {
        self.chrome.run("return document.querySelector('.stage .step').outerHTML")
    }

    fn button(&self) -> String {
        self.chrome.text("[data-play]")
    }

    fn steps_by_mouse_and_keys(&self) {
        let last = self.last;
        self.chrome.press(keys::RIGHT);
        self.at(1, "the right key");
        self.click("step on");
        self.at(2, "a click at step on");
        self.chrome.press(keys::LEFT);
        self.at(1, "the left key");
        self.click("step back");
        self.at(0, "a click at step back");
        self.chrome.press(keys::LEFT);
        self.at(0, "the left key at the beginning");
        self.chrome.press(keys::END);
        self.at(last, "the end key");
        self.chrome.press(keys::HOME);
        self.at(0, "the home key");
        self.click("last step");
        self.at(last, "a click at last step");
        self.click("first step");
        self.at(0, "a click at first step");
        // The slider takes keys of its own.
        self.chrome.run("document.querySelector('.player input').focus()");
        self.chrome.press(keys::RIGHT);
        self.at(1, "the slider");
    }

    fn plays(&self) {
        let last = self.last;
        self.chrome.call(
            "const select = document.querySelector('.player select'); select.value = argument;",
            &"25".into(),
        );
        self.chrome.run(&format!("location.hash = '#step={}'", last - 3));
        self.at(last - 3, "a link");
        self.chrome.click("[data-play]");
        self.at(last, "playing to the end");
        self.chrome.wait(
            "it stops by itself",
            "return document.querySelector('[data-play]').innerText === 'Play'",
        );
        // At the end it begins again, slowly, so that it is seen on its way; the space bar is the
        // button's wherever the focus is.
        self.chrome.call(
            "const select = document.querySelector('.player select'); select.value = argument;",
            &"1".into(),
        );
        self.chrome.run("document.activeElement.blur()");
        self.chrome.press(" ");
        self.chrome.wait(
            "it plays on from the beginning",
            &format!("return {STEP} > 1 && {STEP} < {last}"),
        );
        assert_eq!(self.button(), "Pause");
        self.chrome.press(" ");
        assert_eq!(self.button(), "Play");
    }

    /// The step at which it stands can be linked to, and is the same however it is asked for.
    fn links(&self, address: &str) {
        self.click("first step");
        self.at(0, "a click at first step");
        let middle = self.last / 2;
        self.chrome.run(&format!("location.hash = '#step={middle}'"));
        self.at(middle, "a link");
        let shown = self.stage();
        let link = self.chrome.address();
        self.chrome.open("about:blank");
        self.chrome.open(&link);
        self.at(middle, "opening the link");
        assert_eq!(self.stage(), shown, "{}", self.game);
        self.chrome.allow_scripts(false);
        self.chrome.open(&format!("{address}?step={middle}"));
        assert_eq!(self.stage(), shown, "{}", self.game);
        self.chrome.allow_scripts(true);
    }

    /// The last step shows the result that is stored.
    fn ends_with(&self, result: &Value) {
        self.chrome.press(keys::END);
        self.at(self.last, "the end key");
        let shown = self.chrome.run(
            "return [...document.querySelectorAll('.stage table.result [data-score]')]
                .map((cell) => cell.innerText.split(' ').map(Number));",
        );
        assert_eq!(shown, result["scores"], "{}", self.game);
    }
}

#[test]
fn replays_are_stepped_through_and_played() {
    let Some(chrome) = Chrome::start() else { return };
    let stage = Stage::played();
    stage.log_in(&chrome);
    for game in GAMES {
        let id = format!("{}/0", shown(&stage.up.newest(&format!("{game}-quick"))["id"]));
        let path = format!("/matches/{id}");
        stage.visit(&chrome, &path);
        let last = chrome.run("return Number(document.getElementById('replay').dataset.total) - 1");
        let replay = Replay { chrome: &chrome, game, last: last.as_u64().unwrap() };
        assert!(replay.last > 5, "{game}: {last} steps");
        replay.steps_by_mouse_and_keys();
        replay.plays();
        replay.links(&format!("{}{path}", stage.pages));
        stage.visit(&chrome, &path);
        replay.ends_with(&stage.up.json(&format!("match {id}"))[0]);
    }
}
