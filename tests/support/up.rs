//! A running `arbiter up`, and the administrator's commands for it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use rustix::process::Pid;
use serde_json::Value;
use tempfile::TempDir;

use super::models;
use super::service::{Service, done, free_address, wait_until};
use super::{Bots, arbiter};

/// A running `arbiter up`. Dropping it stops it, its database and its bots.
pub(crate) struct Up {
    running: Service,
    /// The gRPC address.
    pub(crate) grpc: SocketAddr,
    /// The HTTP address.
    pub(crate) http: SocketAddr,
    /// The bots that play in it.
    pub(crate) bots: Bots,
    pub(crate) directory: TempDir,
}

impl Up {
    /// Starts it with this many slots, without a sandbox for its bots.
    pub(crate) fn start(slots: u32) -> Self {
        Self::run(arbiter(), slots, "off")
    }

    /// Starts it with this many slots, and the best sandbox of this machine.
    pub(crate) fn start_sandboxed(slots: u32) -> Self {
        Self::run(arbiter(), slots, "auto")
    }

    /// Starts it with one slot, without a sandbox for its bots, and with this environment variable.
    pub(crate) fn start_with(name: &str, value: &str) -> Self {
        let mut command = arbiter();
        command.env(name, value);
        Self::run(command, 1, "off")
    }

    /// Starts it with one slot, this sandbox and this directory for temporary files. Freed memory
    /// is returned to the system at once, so that its memory use can be measured.
    pub(crate) fn start_in(sandbox: &str, temporary: &Path) -> Self {
        let mut command = arbiter();
        command.env("TMPDIR", temporary).env("MALLOC_ARENA_MAX", "1");
        command.env("MALLOC_TRIM_THRESHOLD_", "65536").env("MALLOC_MMAP_THRESHOLD_", "65536");
        Self::run(command, 1, sandbox)
    }

    /// Starts it with one slot, without a sandbox for its bots, and with this limit of open files.
    pub(crate) fn start_with_files(files: u32) -> Self {
        let program = arbiter();
        let mut command = Command::new("sh");
        command.current_dir(program.get_current_dir().unwrap());
        command.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &files.to_string()]);
        command.arg(program.get_program());
        Self::run(command, 1, "off")
    }

    fn run(mut command: Command, slots: u32, sandbox: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let grpc = free_address();
        command.args(["up", "--grpc", &grpc.to_string(), "--http", "127.0.0.1:0"]);
        command.args(["--slots", &slots.to_string(), "--sandbox", sandbox, "--data"]);
        let data = directory.path().join("data");
        // `up` uses a directory that has files only if an earlier `up` left its lock there.
        fs::create_dir(&data).unwrap();
        fs::write(data.join("lock"), "").unwrap();
        models::copy_cluster_to(&data.join("postgres"));
        command.arg(data);
        let mut running = Service::start(&mut command, &directory.path().join("log"));
        running.wait_for_log("serving at");
        let log = running.log();
        let http = log.split("pages at http://").nth(1).unwrap().split(';').next().unwrap();
        let http = http.parse().unwrap();
        Self { running, grpc, http, bots: Bots::new(), directory }
    }

    /// The administrator's token.
    pub(crate) fn admin(&self) -> String {
        let file = self.directory.path().join("data/admin.token");
        fs::read_to_string(file).unwrap().trim().to_owned()
    }

    /// A new token for a role, with more options: `player --name ada`.
    pub(crate) fn token(&self, whose: &str) -> String {
        self.succeed(&format!("token create --role {whose}")).trim().to_owned()
    }

    /// A command of the administrator.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = arbiter();
        command.args(words.split(' ')).env("ARBITER_SERVER", format!("http://{}", self.grpc));
        command.env("ARBITER_TOKEN", self.admin());
        command
    }

    /// Runs a command of the administrator, which must succeed, and returns its output.
    pub(crate) fn succeed(&self, words: &str) -> String {
        done(&self.command(words).output().unwrap())
    }

    /// The JSON lines that a command prints.
    pub(crate) fn json(&self, words: &str) -> Vec<Value> {
        let stdout = self.succeed(&format!("{words} --json"));
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The response to a GET request of the administrator.
    pub(crate) fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.http).unwrap();
        let token = self.admin();
        write!(stream, "GET {path} HTTP/1.0\r\nAuthorization: Bearer {token}\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    /// Creates a tournament with this file.
    pub(crate) fn create(&self, file: &str) {
        let path = self.bots.file("tournament.toml", file);
        done(&self.command("tournament create").arg(path).output().unwrap());
    }

    /// Creates `cup`, a small tournament of gomoku, with more lines at the start of its file. `ada`
    /// and `bob` play, `eve` exits in the middle of each match.
    pub(crate) fn create_cup(&self, more: &str) {
        let house = [
            self.bots.built_rascal("ada", "honest", 0, "stderr = true\n"),
            self.bots.built_rascal("bob", "honest", 0, ""),
            self.bots.built_rascal("eve", "exit", 2, ""),
        ];
        self.create(&format!(
            "name = \"cup\"\ngame = \"gomoku\"\n{more}[schedule]\nkind = \"round_robin\"\n\
             sides = \"both\"\n[house]\nbots = {house:?}\n"
        ));
    }

    /// The newest edition.
    pub(crate) fn newest(&self, tournament: &str) -> Value {
        self.json(&format!("tournament show {tournament}"))[0]["editions"][0].clone()
    }

    /// Waits until the edition of this number is complete.
    pub(crate) fn wait_for(&self, tournament: &str, edition: u64) {
        wait_until(&format!("{tournament} is played"), || {
            let newest = self.newest(tournament);
            newest["edition"].as_u64() >= Some(edition) && newest["state"] == "complete"
        });
    }

    /// Plays one more edition to its end.
    pub(crate) fn play(&self, tournament: &str) {
        let before = self.newest(tournament)["edition"].as_u64().unwrap_or(0);
        self.succeed(&format!("tournament start {tournament}"));
        self.wait_for(tournament, before + 1);
    }

    /// The process id of its newest worker.
    pub(crate) fn worker(&self) -> Pid {
        let log = self.running.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut processes = lines.filter_map(|line| line["fields"]["process"].as_i64());
        let last = processes.next_back().expect("it says which process its worker is");
        Pid::from_raw(last.try_into().unwrap()).unwrap()
    }

    /// The process id of its coordinator, which is that of `up`.
    pub(crate) fn coordinator(&self) -> Pid {
        Pid::from_raw(self.running.pid()).unwrap()
    }

    /// The log of `up` and its worker.
    pub(crate) fn log(&self) -> String {
        self.running.log()
    }

    /// Kills it without a warning.
    pub(crate) fn kill(&mut self) {
        self.running.kill();
    }

    /// Stops it, and expects exit code 0.
    pub(crate) fn close(mut self) {
        assert_eq!(self.running.stop(), Some(0), "{}", self.running.log());
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.running.log());
        }
        // Asked to end, it ends its database and its bots as well.
        self.running.leave();
    }
}
