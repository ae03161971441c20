//! Headless Chromium, controlled over [WebDriver] by chromedriver.
//!
//! Implements the part of the protocol that the tests need (JSON over HTTP), and `DevTools`
//! commands for features that `WebDriver` lacks: page width, colour scheme, disabled scripts. Each
//! browser has its own temporary profile and process group, so nothing outlives the test.
//!
//! [WebDriver]: https://www.w3.org/TR/webdriver2/

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::iter;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::service::{TIMEOUT, wait_until};

/// The names of the browser and of its driver on various systems.
const PROGRAMS: [&[&str]; 2] =
    [&["chromium", "chromium-browser", "google-chrome"], &["chromedriver"]];
/// If set, a missing browser is an error.
const REQUIRED: &str = "ARBITER_BROWSER";
/// How often the driver is started until it finds a free port.
const STARTS: usize = 10;
/// How long an answer of the driver may take. The driver itself gives up a script after
/// [`TIMEOUT`] and the load of a page after 300 s, the default of `WebDriver`. Its answer then
/// says what took so long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(310);
/// The key of an element reference in a response.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// Chromium's options: headless, without its sandbox (not every machine supports it, and the pages
/// are trusted), and without background network requests.
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

/// Special keys.
pub(crate) mod keys {
    pub(crate) const SHIFT: &str = "\u{e008}";
    pub(crate) const PAGE_UP: &str = "\u{e00e}";
    pub(crate) const PAGE_DOWN: &str = "\u{e00f}";
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
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// The paths of the browser and its driver. Prints that the tests are skipped if one is missing.
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
    assert!(env::var_os(REQUIRED).is_none(), "{REQUIRED} is set, but no browser is installed");
    eprintln!("skipped: chromium and chromedriver are not installed (./test installs them)");
    None
}

/// Starts the driver on a free port. It takes a free port on IPv4 and then the same port on IPv6,
/// and exits if another program has taken that one in between: then it is started again.
fn start_driver(program: &Path, home: &Path) -> (Child, SocketAddr) {
    let mut output = String::new();
    for _ in 0..STARTS {
        #[expect(clippy::disallowed_methods, reason = "the test needs a browser")]
        let mut driver = Command::new(program)
            .args(["--port=0", "--log-level=SEVERE"])
            .env("HOME", home)
            .env("TMPDIR", home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .process_group(0)
            .spawn()
            .unwrap();
        let lines = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
        for line in lines {
            if let Some(port) = port_of(&line) {
                return (driver, SocketAddr::from(([127, 0, 0, 1], port)));
            }
            output.push_str(&line);
            output.push('\n');
        }
        driver.wait().unwrap();
    }
    panic!("chromedriver exited {STARTS} times without a port:\n{output}");
}

/// The port in the driver's line `ChromeDriver was started successfully on port 40001.`
fn port_of(line: &str) -> Option<u16> {
    line.strip_suffix('.')?.rsplit_once("successfully on port ")?.1.parse().ok()
}

/// A browser with one tab. Dropping it ends all its processes.
#[derive(Debug)]
pub(crate) struct Chrome {
    driver: Child,
    address: SocketAddr,
    session: String,
    profile: TempDir,
}

impl Chrome {
    /// Starts a browser; `None` if none is installed.
    pub(crate) fn start() -> Option<Self> {
        let [browser, driver] = programs()?;
        let profile = tempfile::tempdir().unwrap();
        let (driver, address) = start_driver(&driver, profile.path());
        let mut chrome = Self { driver, address, session: String::new(), profile };
        let data = format!("--user-data-dir={}", chrome.profile.path().join("profile").display());
        let arguments = [&ARGUMENTS[..], &[&data]].concat();
        let options = json!({"binary": browser, "args": arguments});
        // A busy machine may need more than the driver's 30 s for a script.
        let limit = u64::try_from(TIMEOUT.as_millis()).unwrap();
        let timeouts = json!({"script": limit});
        let wanted = json!({"goog:chromeOptions": options, "timeouts": timeouts});
        let request = json!({"capabilities": {"alwaysMatch": wanted}});
        let session = chrome.request("POST", "/session", &request);
        session["sessionId"].as_str().unwrap().clone_into(&mut chrome.session);
        Some(chrome)
    }

    /// Sends a command to the driver; panics on an error.
    fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        self.try_request(method, path, body)
            .unwrap_or_else(|error| panic!("{path} {body}: {error}"))
    }

    fn try_request(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let stream = TcpStream::connect(self.address).map_err(|error| error.to_string())?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).unwrap();
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
        let mut response = vec![0; length];
        stream.read_exact(&mut response).map_err(failed)?;
        let mut response: Value =
            serde_json::from_slice(&response).map_err(|error| error.to_string())?;
        let value = response["value"].take();
        match value.get("error") {
            Some(error) => Err(format!("{error}: {}", value["message"])),
            None => Ok(value),
        }
    }

    fn post(&self, what: &str, body: &Value) -> Value {
        self.request("POST", &format!("/session/{}/{what}", self.session), body)
    }

    /// A `DevTools` command.
    fn command(&self, name: &str, parameters: &Value) -> Value {
        self.post("goog/cdp/execute", &json!({"cmd": name, "params": parameters}))
    }

    /// Opens a URL and waits until the page is loaded.
    pub(crate) fn open(&self, address: &str) {
        self.post("url", &json!({"url": address}));
    }

    /// The URL of the page.
    pub(crate) fn address(&self) -> String {
        self.run("return location.href").as_str().unwrap().to_owned()
    }

    /// Runs a function body on the page with `argument` and returns its result.
    pub(crate) fn call(&self, body: &str, argument: &Value) -> Value {
        let script = format!("const argument = arguments[0]; {body}");
        self.post("execute/sync", &json!({"script": script, "args": [argument]}))
    }

    /// Runs a function body on the page and returns its result.
    pub(crate) fn run(&self, body: &str) -> Value {
        self.call(body, &Value::Null)
    }

    /// Runs the body of an async function on the page and returns its result.
    pub(crate) fn run_promise(&self, body: &str) -> Value {
        let script = format!(
            "const done = arguments[0]; (async () => {{ {body} }})().then(done, (error) => done(String(error)));"
        );
        self.post("execute/async", &json!({"script": script, "args": []}))
    }

    /// The visible text of the first element of a selector.
    pub(crate) fn text(&self, selector: &str) -> String {
        let text =
            self.call("return document.querySelector(argument)?.innerText", &selector.into());
        text.as_str().unwrap_or_else(|| panic!("no {selector} at {}", self.address())).to_owned()
    }

    /// Whether an element matches a selector.
    pub(crate) fn has(&self, selector: &str) -> bool {
        self.call("return document.querySelector(argument) !== null", &selector.into()) == true
    }

    /// The text of the body cells of the tables of a selector, row by row.
    pub(crate) fn rows(&self, table: &str) -> Vec<Vec<String>> {
        let body = "return [...document.querySelectorAll(argument + ' > tbody > tr')]
            .map((row) => [...row.cells].map((cell) => cell.innerText.trim()));";
        serde_json::from_value(self.call(body, &table.into())).unwrap()
    }

    fn element(&self, selector: &str) -> String {
        let request = json!({"using": "css selector", "value": selector});
        self.post("element", &request)[ELEMENT].as_str().unwrap().to_owned()
    }

    /// Clicks an element, which must be visible.
    pub(crate) fn click(&self, selector: &str) {
        let element = self.element(selector);
        self.post(&format!("element/{element}/click"), &json!({}));
    }

    /// Types into an element.
    pub(crate) fn type_into(&self, selector: &str, text: &str) {
        let element = self.element(selector);
        self.post(&format!("element/{element}/value"), &json!({"text": text}));
    }

    /// Presses and releases a key.
    pub(crate) fn press(&self, key: &str) {
        self.press_all(&[key]);
    }

    /// Presses keys, each while those before are down, and releases all.
    pub(crate) fn press_all(&self, keys: &[&str]) {
        self.press_times(keys, 1);
    }

    /// Does what [`Self::press_all`] does this many times.
    pub(crate) fn press_times(&self, keys: &[&str], times: usize) {
        let action = |kind: &str, key: &&str| json!({"type": kind, "value": key});
        let down = keys.iter().map(|key| action("keyDown", key));
        let up = keys.iter().rev().map(|key| action("keyUp", key));
        let press: Vec<_> = down.chain(up).collect();
        let actions: Vec<_> = iter::repeat_n(press, times).flatten().collect();
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": actions});
        self.post("actions", &json!({"actions": [keyboard]}));
    }

    /// Waits until a function body returns true on the page.
    pub(crate) fn wait(&self, what: &str, body: &str) {
        wait_until(what, || self.run(body) == true);
    }

    /// Runs the next commands in the first frame of the page, or in the page again.
    pub(crate) fn enter_frame(&self, inside: bool) {
        let frame = if inside { json!(0) } else { Value::Null };
        self.post("frame", &json!({"id": frame}));
    }

    /// Cuts the network off, or restores it.
    pub(crate) fn go_offline(&self, offline: bool) {
        let rates = json!({"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1});
        self.command("Network.enable", &json!({}));
        self.command("Network.emulateNetworkConditions", &rates);
    }

    /// Sets the size of the page, in CSS pixels.
    pub(crate) fn size(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.command("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Sets the preferred colour scheme, and reduced motion.
    pub(crate) fn prefer(&self, scheme: Scheme) {
        let scheme = json!({"name": "prefers-color-scheme", "value": scheme.as_str()});
        let reduced_motion = json!({"name": "prefers-reduced-motion", "value": "reduce"});
        self.command("Emulation.setEmulatedMedia", &json!({"features": [scheme, reduced_motion]}));
    }

    /// Makes the clock of the next pages wrong by this time, in milliseconds. A page changes it
    /// with `window.clockError`.
    pub(crate) fn set_clock_error(&self, millis: i64) {
        let script = format!(
            "window.clockError = {millis}; const now = Date.now;
            Date.now = () => now() + window.clockError;"
        );
        self.command("Page.addScriptToEvaluateOnNewDocument", &json!({"source": script}));
    }

    /// Enables or disables the scripts of pages.
    pub(crate) fn allow_scripts(&self, allowed: bool) {
        self.command("Emulation.setScriptExecutionDisabled", &json!({"value": !allowed}));
    }

    /// A screenshot of the whole page, as PNG.
    pub(crate) fn screenshot(&self) -> Vec<u8> {
        let height = self.run("return Math.min(document.documentElement.scrollHeight, 6000)");
        let width = self.run("return document.documentElement.clientWidth");
        let clip = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1});
        let request = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        let screenshot = self.command("Page.captureScreenshot", &request);
        STANDARD.decode(screenshot["data"].as_str().unwrap()).unwrap()
    }
}

impl Drop for Chrome {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            // An error does not matter: the processes are killed below.
            drop(self.try_request("DELETE", &format!("/session/{}", self.session), &Value::Null));
        }
        let group = Pid::from_raw(i32::try_from(self.driver.id()).unwrap()).unwrap();
        // Killing fails if the process has already ended.
        kill_process_group(group, Signal::KILL).ok();
        self.driver.wait().ok();
        for process in users_of(self.profile.path()) {
            kill_process(process, Signal::KILL).ok();
        }
        let profile = self.profile.path();
        wait_until("the browser has ended", || users_of(profile).is_empty());
    }
}

/// The processes whose command lines contain a directory.
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
