//! TLS as operators set it up: a coordinator with a certificate, workers and clients that trust its
//! authority, and those that are refused.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod support;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use arbiter_coordinator::postgres::Durability;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use support::arbiter;
use support::service::{Database, Service, done, free_address};
use tempfile::TempDir;

/// The use of a certificate.
#[derive(Clone, Copy)]
enum Use {
    Server,
    Client,
}

/// A directory of certificates and keys.
struct Papers(TempDir);

/// A certificate authority.
struct Authority(Issuer<'static, KeyPair>);

impl Papers {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The path of one of them.
    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// A new authority, whose certificate is `NAME.pem`.
    fn authority(&self, name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        fs::write(self.path(&format!("{name}.pem")), pem).unwrap();
        Authority(Issuer::new(params, key))
    }

    /// A certificate for `host`, `NAME.pem`, with its key, `NAME.key`; valid until the end of
    /// `year`.
    fn sign(&self, authority: &Authority, name: &str, host: &str, purpose: Use, year: i32) {
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        params.extended_key_usages = vec![match purpose {
            Use::Server => ExtendedKeyUsagePurpose::ServerAuth,
            Use::Client => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 12, 31);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &authority.0).unwrap();
        fs::write(self.path(&format!("{name}.pem")), certificate.pem()).unwrap();
        fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    /// The arguments of a coordinator with a certificate of this name.
    fn serving(&self, name: &str) -> [String; 4] {
        let cert = self.path(&format!("{name}.pem"));
        let key = self.path(&format!("{name}.key"));
        ["--tls-cert".into(), cert, "--tls-key".into(), key]
    }

    /// The arguments of a client with a certificate of this name.
    fn showing(&self, name: &str) -> [String; 4] {
        let cert = self.path(&format!("{name}.pem"));
        let key = self.path(&format!("{name}.key"));
        ["--cert".into(), cert, "--key".into(), key]
    }

    /// The arguments of a client that trusts this authority.
    fn trusting(&self, authority: &str) -> [String; 2] {
        ["--ca".into(), self.path(&format!("{authority}.pem"))]
    }
}

/// A coordinator of a database, and tokens for it.
struct Site<'a> {
    papers: &'a Papers,
    port: u16,
    admin: String,
    worker: String,
    name: &'static str,
    coordinator: Service,
}

impl<'a> Site<'a> {
    /// Starts a coordinator with the certificate of this name.
    fn start(database: &Database, papers: &'a Papers, name: &'static str, more: &[&str]) -> Self {
        let admin = database.token("admin");
        let worker = database.token("worker");
        // Clients call it `localhost`. Only this program takes ports there outside the ephemeral
        // range.
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_address().port()));
        let mut command = database.coordinator(address);
        command.args(papers.serving(name)).args(more);
        let log = papers.path(&format!("coordinator-{}.log", address.port()));
        let mut coordinator = Service::start(&mut command, Path::new(&log));
        coordinator.wait_for_log("serving");
        Self { papers, port: address.port(), admin, worker, name, coordinator }
    }

    fn url(&self, place: &str) -> String {
        format!("{place}:{}", self.port)
    }

    /// A command of an administrator.
    fn command(&self, place: &str, words: &[&str], papers: &[String]) -> Command {
        let mut command = arbiter();
        command.args(words).args(papers);
        command.env("ARBITER_SERVER", self.url(place)).env("ARBITER_TOKEN", &self.admin);
        command
    }

    /// A worker.
    fn worker(&self, place: &str, papers: &[String]) -> Service {
        let mut command = arbiter();
        command.args(["worker", "--slots", "1", "--spool"]);
        command.arg(self.papers.path(&format!("spool-{}", self.port))).args(papers);
        command.env("ARBITER_SERVER", self.url(place)).env("ARBITER_TOKEN", &self.worker);
        let log = self.papers.path(&format!("worker-{}.log", self.port));
        // What it said before, to another place, is of no interest.
        drop(fs::remove_file(&log));
        Service::start(&mut command, Path::new(&log))
    }

    /// Expects that neither clients nor workers connect to `place`.
    fn turns_away(&self, place: &str, papers: &[String], says: &[&str]) {
        let output = self.command(place, &["tournament", "list"], papers).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{}: {message}", self.name);
        assert_eq!(message.lines().count(), 1, "{message}");
        let mut worker = self.worker(place, papers);
        assert_eq!(worker.wait(), Some(3), "{}: {}", self.name, worker.log());
        let log = worker.log();
        let last = log.lines().last().unwrap();
        for part in says.iter().copied().chain([self.url(place).as_str()]) {
            assert!(message.contains(part), "{message:?} lacks {part:?}");
            assert!(last.contains(part), "{last:?} lacks {part:?}");
        }
    }

    fn stop(mut self) {
        assert_eq!(self.coordinator.stop(), Some(0), "{}", self.coordinator.log());
    }
}

const HERE: &str = "https://localhost";

/// A tournament of one match.
const TOURNAMENT: &str = r#"
name = "open"
game = "tricks"
seed = "encrypted"

[params]
tables = 2
move_limit = "60s"

[clock]
startup = "60s"

[submissions]
preflight = false
"#;

#[test]
fn valid_certificates_are_accepted() {
    let papers = Papers::new();
    let database = Database::start(Durability::Unsynced);
    let servers = papers.authority("servers");
    let clients = papers.authority("clients");
    papers.sign(&servers, "server", "localhost", Use::Server, 2999);
    papers.sign(&clients, "client", "ada", Use::Client, 2999);
    let authority = papers.path("clients.pem");
    let site = Site::start(&database, &papers, "server", &["--tls-client-ca", &authority]);
    let credentials = [&papers.trusting("servers")[..], &papers.showing("client")].concat();
    let client = |words: &[&str]| done(&site.command(HERE, words, &credentials).output().unwrap());
    let file = papers.path("open.toml");
    fs::write(&file, TOURNAMENT).unwrap();
    client(&["tournament", "create", &file]);
    for bot in ["bots/tricks/counter", "bots/tricks/lowest"] {
        client(&["submit", "open", bot]);
    }
    client(&["tournament", "start", "open"]);
    let mut worker = site.worker(HERE, &credentials);
    assert!(client(&["tournament", "watch", "open"]).contains("complete"));
    assert_eq!(worker.stop(), Some(0), "{}", worker.log());
    site.stop();
}

/// Certificates made as in the handbook.
#[test]
fn certificates_of_arbiter_cert_are_accepted_by_both_sides() {
    let papers = Papers::new();
    let database = Database::start(Durability::Unsynced);
    let at = |folder: &str| papers.path(folder);
    let cert = |words: &[&str]| {
        let mut command = arbiter();
        command.arg("cert").args(words);
        command
    };
    let make = |words: &[&str]| done(&cert(words).output().unwrap());
    let directory = papers.0.path().to_str().unwrap();
    make(&["ca", "--out", directory]);
    let stdout = make(&["server", "--ca", directory, "--name", "localhost", "--name", "127.0.0.1"]);
    assert!(stdout.contains("for the server localhost, 127.0.0.1, valid from"), "{stdout}");
    assert!(stdout.contains("renew it after") && stdout.contains("SHA-256 "), "{stdout}");
    make(&["worker", "--ca", directory, "--name", "cellar"]);
    make(&["client", "--ca", directory, "--name", "ada", "--valid", "90d"]);
    let foreign = at("foreign");
    make(&["ca", "--out", &foreign]);
    make(&["worker", "--ca", &foreign, "--name", "stranger", "--out", directory]);
    for name in ["ca", "localhost", "cellar", "ada"] {
        let mode = fs::metadata(at(&format!("{name}.key"))).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }

    let authority = at("ca.pem");
    let site = Site::start(&database, &papers, "localhost", &["--tls-client-ca", &authority]);
    for place in [HERE, "https://127.0.0.1"] {
        let credentials = [&papers.trusting("ca")[..], &papers.showing("ada")].concat();
        done(&site.command(place, &["tournament", "list"], &credentials).output().unwrap());
        let credentials = [&papers.trusting("ca")[..], &papers.showing("cellar")].concat();
        let mut worker = site.worker(place, &credentials);
        worker.wait_for_log("connected");
        assert_eq!(worker.stop(), Some(0), "{}", worker.log());
    }
    let credentials = [&papers.trusting("ca")[..], &papers.showing("stranger")].concat();
    site.turns_away(HERE, &credentials, &["does not accept the certificate given with --cert"]);
    site.stop();

    let before = fs::read(at("cellar.key")).unwrap();
    fails(
        &mut cert(&["worker", "--ca", directory, "--name", "cellar"]),
        2,
        &["cellar.", "--force"],
    );
    fails(&mut cert(&["ca", "--out", directory]), 2, &["ca.", "--force"]);
    assert_eq!(fs::read(at("cellar.key")).unwrap(), before);
    make(&["worker", "--ca", directory, "--name", "cellar", "--force", "--valid", "10d"]);
    assert_ne!(fs::read(at("cellar.key")).unwrap(), before);
    let show = |within: &str| cert(&["show", &at("cellar.pem"), "--within", within, "--json"]);
    let certificate: serde_json::Value =
        serde_json::from_str(&done(&show("9d").output().unwrap())).unwrap();
    assert_eq!(
        (&certificate["purpose"], &certificate["name"]),
        (&"client".into(), &"cellar".into())
    );
    fails(&mut show("11d"), 1, &["cellar.pem", "--force"]);
    fs::copy(at("foreign/ca.key"), at("ca.key")).unwrap();
    let mixed = &mut cert(&["client", "--ca", directory, "--name", "eve"]);
    fails(mixed, 2, &["ca.key", "not the key of ca.pem"]);
    fails(&mut cert(&["client", "--ca", &at("nowhere"), "--name", "eve"]), 2, &["nowhere/ca.pem"]);
    fails(
        &mut cert(&["server", "--ca", directory, "--name", "https://x"]),
        2,
        &["without https://"],
    );
}

#[test]
fn servers_with_invalid_certificates_are_not_trusted() {
    let papers = Papers::new();
    let database = Database::start(Durability::Unsynced);
    let ours = papers.authority("ours");
    papers.authority("theirs");
    papers.sign(&ours, "server", "localhost", Use::Server, 2999);
    papers.sign(&ours, "expired", "localhost", Use::Server, 2020);
    let trusting = papers.trusting("ours");
    let strange = papers.trusting("theirs");

    let site = Site::start(&database, &papers, "server", &[]);
    let unknown = ["invalid peer certificate: UnknownIssuer", "--ca"];
    site.turns_away(HERE, &strange, &unknown);
    // The system's authorities do not know it either.
    site.turns_away(HERE, &[], &unknown);
    let wrong = ["not valid for name", "127.0.0.1", "use a name that is in"];
    site.turns_away("https://127.0.0.1", &trusting, &wrong);
    site.turns_away("http://localhost", &[], &["write https:// if it has a certificate"]);
    site.stop();

    let site = Site::start(&database, &papers, "expired", &[]);
    site.turns_away(HERE, &trusting, &["certificate expired", "renew"]);
    site.stop();
}

#[test]
fn clients_with_invalid_certificates_are_refused() {
    let papers = Papers::new();
    let database = Database::start(Durability::Unsynced);
    let ours = papers.authority("ours");
    let theirs = papers.authority("theirs");
    papers.sign(&ours, "server", "localhost", Use::Server, 2999);
    papers.sign(&ours, "expired", "ada", Use::Client, 2020);
    papers.sign(&theirs, "stranger", "eve", Use::Client, 2999);
    let authority = papers.path("ours.pem");
    let site = Site::start(&database, &papers, "server", &["--tls-client-ca", &authority]);
    let trusting = papers.trusting("ours");
    site.turns_away(HERE, &trusting, &["give a certificate", "--cert and --key"]);
    // One for a server does not make a client.
    for name in ["expired", "stranger", "server"] {
        let credentials = [&trusting[..], &papers.showing(name)].concat();
        site.turns_away(HERE, &credentials, &["does not accept the certificate given with --cert"]);
    }
    site.stop();
}

#[test]
fn https_to_a_server_without_tls_is_explained() {
    let papers = Papers::new();
    let database = Database::start(Durability::Unsynced);
    papers.authority("ours");
    let address = free_address();
    let log = papers.path("plain.log");
    let mut plain = Service::start(&mut database.coordinator(address), Path::new(&log));
    plain.wait_for_log("serving");
    let mut command = arbiter();
    command.args(["tournament", "list", "--server", &format!("https://{address}")]);
    fails(command.args(papers.trusting("ours")), 3, &["it does not use TLS: write http://"]);
    assert_eq!(plain.stop(), Some(0));
}

#[test]
fn unreadable_certificates_are_explained() {
    let papers = Papers::new();
    let database = Database::start(Durability::Unsynced);
    let ours = papers.authority("ours");
    papers.sign(&ours, "server", "localhost", Use::Server, 2999);
    papers.sign(&ours, "other", "localhost", Use::Server, 2999);
    fs::write(papers.path("garbage.pem"), "garbage").unwrap();
    let serve = |certificate: &str, key: &str, more: &[&str], code: i32, says: &[&str]| {
        let mut command = database.coordinator(free_address());
        command.args(["--tls-cert", &papers.path(certificate)]);
        if !key.is_empty() {
            command.args(["--tls-key", &papers.path(key)]);
        }
        fails(command.args(more), code, says);
    };
    serve("server.pem", "", &[], 2, &["--tls-key"]);
    serve("nowhere.pem", "server.key", &[], 3, &["nowhere.pem", "No such file"]);
    serve("server.pem", "other.key", &[], 3, &["server.pem", "other.key"]);
    serve("garbage.pem", "server.key", &[], 3, &["garbage.pem", "no CERTIFICATE", "PEM"]);
    serve("server.pem", "garbage.pem", &[], 3, &["garbage.pem", "no PRIVATE KEY", "PEM"]);
    let clients = ["--tls-client-ca", &papers.path("garbage.pem")];
    serve("server.pem", "server.key", &clients, 3, &["garbage.pem", "PEM"]);

    let list = |arguments: &[&str], says: &[&str]| {
        let mut command = arbiter();
        command.args(["tournament", "list", "--server", HERE]).args(arguments);
        fails(&mut command, 2, says);
    };
    list(&["--ca", &papers.path("nowhere.pem")], &["nowhere.pem", "No such file"]);
    list(&["--ca", &papers.path("garbage.pem")], &["garbage.pem", "PEM"]);
    let garbage = &papers.path("garbage.pem");
    list(&["--cert", garbage, "--key", &papers.path("other.key")], &["garbage.pem", "PEM"]);
    list(&["--cert", garbage], &["--key"]);
}

/// Expects exit code `code` and a last line that contains all of `says`.
fn fails(command: &mut Command, code: i32, says: &[&str]) {
    let Output { status, stderr, .. } = command.output().unwrap();
    let message = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(code), "{message}");
    let last = message.lines().last().unwrap();
    for part in says {
        assert!(last.contains(part), "{last:?} lacks {part:?}");
    }
}
