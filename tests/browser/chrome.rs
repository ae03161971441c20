//! Chromium without a window, commanded over [WebDriver] through its chromedriver.
//!
//! As much of the protocol as it takes to look at pages: JSON over HTTP, and beside it the
//! browser's own commands for what the protocol has no words for (a width, a colour scheme, no
//! scripts). Each browser has a profile of its own in a directory that goes with it, and a process
//! group of its own; nothing of it outlives the test.
//!
//! [WebDriver]: https://www.w3.org/TR/webdriver2/

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::service::{SOON, wait_until};

/// What it takes, by the names that systems give it.
const PROGRAMS: [&[&str]; 2] =
    [&["chromium", "chromium-browser", "google-chrome"], &["chromedriver"]];
/// Set where tests must not be left out for want of a browser.
const REQUIRED: &str = "ARBITER_BROWSER";
/// The name under which an element stands in an answer.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// How Chromium is started: without a window, without a sandbox of its own, which not every machine
/// has (the pages are ours), and without asking anybody on the network for anything.
const ARGUMENTS: [&str; 13] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-sync",
    "--disable-extensions",
    "--disable-component-update",
    "--disable-background-networking",
    "--disable-breakpad",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
];

/// Keys that have no letter.
pub(crate) mod keys {
    pub(crate) const END: &str = "\u{e010}";
    pub(crate) const HOME: &str = "\u{e011}";
    pub(crate) const LEFT: &str = "\u{e012}";
    pub(crate) const RIGHT: &str = "\u{e014}";
    pub(crate) const TAB: &str = "\u{e004}";
    pub(crate) const ENTER: &str = "\u{e007}";
}

/// Light or dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Light,
    Dark,
}

impl Scheme {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// The programs, if they are there; otherwise says that tests are left out.
fn programs() -> Option<[PathBuf; 2]> {
    let path = env::var_os("PATH").unwrap_or_default();
    let find = |names: &[&str]| {
        let folders = env::split_paths(&path);
        let files = folders.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
        files.into_iter().find(|file| file.is_file())
    };
    let [browser, driver] = PROGRAMS.map(find);
    if let (Some(browser), Some(driver)) = (browser, driver) {
        return Some([browser, driver]);
    }
    assert!(env::var_os(REQUIRED).is_none(), "{REQUIRED} is set, and there is no browser");
    eprintln!("left out: chromium and chromedriver are not installed (./test installs them)");
    None
}

/// A browser with one tab. Dropped, it ends with everything it started.
#[derive(Debug)]
pub(crate) struct Chrome {
    driver: Child,
    address: SocketAddr,
    session: String,
    profile: TempDir,
}

impl Chrome {
    /// Starts a browser; none where there is none.
    pub(crate) fn start() -> Option<Self> {
        let [browser, driver] = programs()?;
        let profile = tempfile::tempdir().unwrap();
        #[expect(clippy::disallowed_methods, reason = "a browser is what this is about")]
        let mut driver = Command::new(driver)
            .args(["--port=0", "--log-level=SEVERE"])
            .env("HOME", profile.path())
            .env("TMPDIR", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut said = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port = said.find_map(|line| {
            line.strip_suffix('.')?.rsplit_once("successfully on port ")?.1.parse::<u16>().ok()
        });
        let address = SocketAddr::from(([127, 0, 0, 1], port.expect("chromedriver says its port")));
        let mut chrome = Self { driver, address, session: String::new(), profile };
        let data = format!("--user-data-dir={}", chrome.profile.path().join("profile").display());
        let arguments = [&ARGUMENTS[..], &[&data]].concat();
        let options = json!({"binary": browser, "args": arguments});
        let wanted = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}});
        let session = chrome.request("POST", "/session", &wanted);
        session["sessionId"].as_str().unwrap().clone_into(&mut chrome.session);
        Some(chrome)
    }

    /// Asks the driver, which must agree.
    fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        self.ask(method, path, body).unwrap_or_else(|why| panic!("{path} {body}: {why}"))
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let stream = TcpStream::connect(self.address).map_err(|error| error.to_string())?;
        stream.set_read_timeout(Some(SOON)).unwrap();
        let mut stream = BufReader::new(stream);
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        let failed = |error: std::io::Error| error.to_string();
        stream.get_mut().write_all(&[head.as_bytes(), body.as_bytes()].concat()).map_err(failed)?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).map_err(failed)?;
            match line.trim().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().unwrap();
                }
                None if line.trim().is_empty() => break,
                _ => {}
            }
        }
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer).map_err(failed)?;
        let mut answer: Value =
            serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
        let value = answer["value"].take();
        match value.get("error") {
            Some(error) => Err(format!("{error}: {}", value["message"])),
            None => Ok(value),
        }
    }

    fn post(&self, what: &str, body: &Value) -> Value {
        self.request("POST", &format!("/session/{}/{what}", self.session), body)
    }

    /// A command of the browser's own (the `DevTools` protocol).
    fn command(&self, name: &str, parameters: &Value) -> Value {
        self.post("goog/cdp/execute", &json!({"cmd": name, "params": parameters}))
    }

    /// Goes to an address, and waits until the page is loaded.
    pub(crate) fn open(&self, address: &str) {
        self.post("url", &json!({"url": address}));
    }

    /// Where the page is.
    pub(crate) fn address(&self) -> String {
        self.run("return location.href").as_str().unwrap().to_owned()
    }

    /// What a function with this body gives for this argument, `argument`, on the page.
    pub(crate) fn call(&self, body: &str, argument: &Value) -> Value {
        let script = format!("const argument = arguments[0]; {body}");
        self.post("execute/sync", &json!({"script": script, "args": [argument]}))
    }

    /// What a function with this body gives on the page.
    pub(crate) fn run(&self, body: &str) -> Value {
        self.call(body, &Value::Null)
    }

    /// What the promise comes to that a function with this body gives on the page.
    pub(crate) fn run_promise(&self, body: &str) -> Value {
        let script = format!(
            "const done = arguments[0]; (async () => {{ {body} }})().then(done, (error) => done(String(error)));"
        );
        self.post("execute/async", &json!({"script": script, "args": []}))
    }

    /// The text of the first element of a selector, as it is seen.
    pub(crate) fn text(&self, selector: &str) -> String {
        let text =
            self.call("return document.querySelector(argument)?.innerText", &selector.into());
        text.as_str().unwrap_or_else(|| panic!("no {selector} at {}", self.address())).to_owned()
    }

    /// Whether anything is there for a selector.
    pub(crate) fn has(&self, selector: &str) -> bool {
        self.call("return document.querySelector(argument) !== null", &selector.into()) == true
    }

    /// The cells of the tables' bodies for a selector, row by row.
    pub(crate) fn rows(&self, table: &str) -> Vec<Vec<String>> {
        let body = "return [...document.querySelectorAll(argument + ' > tbody > tr')]
            .map((row) => [...row.cells].map((cell) => cell.innerText.trim()));";
        serde_json::from_value(self.call(body, &table.into())).unwrap()
    }

    fn element(&self, selector: &str) -> String {
        let wanted = json!({"using": "css selector", "value": selector});
        self.post("element", &wanted)[ELEMENT].as_str().unwrap().to_owned()
    }

    /// Clicks at an element with the mouse, which must be able to get there.
    pub(crate) fn click(&self, selector: &str) {
        let element = self.element(selector);
        self.post(&format!("element/{element}/click"), &json!({}));
    }

    /// Types into an element.
    pub(crate) fn type_into(&self, selector: &str, text: &str) {
        let element = self.element(selector);
        self.post(&format!("element/{element}/value"), &json!({"text": text}));
    }

    /// Presses and releases a key, wherever the focus is.
    pub(crate) fn press(&self, key: &str) {
        let actions = ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key}));
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": actions});
        self.post("actions", &json!({"actions": [keyboard]}));
    }

    /// Waits until a function with this body gives true on the page.
    pub(crate) fn wait(&self, what: &str, body: &str) {
        wait_until(what, || self.run(body) == true);
    }

    /// Sets how wide and high the page is, in CSS pixels.
    pub(crate) fn size(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.command("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Prefers light or dark, and no movement.
    pub(crate) fn prefer(&self, scheme: Scheme) {
        let scheme = json!({"name": "prefers-color-scheme", "value": scheme.word()});
        let calm = json!({"name": "prefers-reduced-motion", "value": "reduce"});
        self.command("Emulation.setEmulatedMedia", &json!({"features": [scheme, calm]}));
    }

    /// Whether pages may run scripts of their own.
    pub(crate) fn allow_scripts(&self, allowed: bool) {
        self.command("Emulation.setScriptExecutionDisabled", &json!({"value": !allowed}));
    }

    /// A picture of the page from top to bottom, as PNG.
    pub(crate) fn picture(&self) -> Vec<u8> {
        let height = self.run("return Math.min(document.documentElement.scrollHeight, 6000)");
        let width = self.run("return document.documentElement.clientWidth");
        let clip = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1});
        let wanted = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        let picture = self.command("Page.captureScreenshot", &wanted);
        STANDARD.decode(picture["data"].as_str().unwrap()).unwrap()
    }
}

impl Drop for Chrome {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            // Whatever it says, what is left is killed.
            drop(self.ask("DELETE", &format!("/session/{}", self.session), &Value::Null));
        }
        let group = Pid::from_raw(i32::try_from(self.driver.id()).unwrap()).unwrap();
        // What has ended already cannot be killed.
        kill_process_group(group, Signal::KILL).ok();
        self.driver.wait().ok();
        for process in users_of(self.profile.path()) {
            kill_process(process, Signal::KILL).ok();
        }
        let profile = self.profile.path();
        wait_until("the browser has ended", || users_of(profile).is_empty());
    }
}

/// The processes on whose command lines a directory stands.
fn users_of(directory: &Path) -> Vec<Pid> {
    let directory = directory.to_str().unwrap().as_bytes();
    let processes = fs::read_dir("/proc").unwrap().map_while(Result::ok);
    let users = processes.filter_map(|process| {
        let pid = Pid::from_raw(process.file_name().to_str()?.parse().ok()?)?;
        let line = fs::read(process.path().join("cmdline")).ok()?;
        line.windows(directory.len()).any(|part| part == directory).then_some(pid)
    });
    users.collect()
}
