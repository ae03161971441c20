//! `arbiter cert …`: an authority of one's own, and certificates that it signs, for connections that
//! are encrypted and where both sides show who they are.

mod papers;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use super::moments::{micros, span};
use crate::failure::Failure;
use crate::output::{Output, merged, moment, moment_json, print};
use papers::{Authority, Paper, Use};

/// How long an authority and a certificate hold if nobody says how long.
const AUTHORITY: &str = "3650d";
const CERTIFICATE: &str = "397d";
/// How long before its end a certificate should be renewed.
const RENEWAL: Duration = Duration::days(30);

/// Make certificates for encrypted connections, signed by an authority of your own.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter cert ca --out certs
  arbiter cert server --ca certs --name coordinator --name 10.0.0.5
  arbiter cert worker --ca certs --name cellar
  arbiter coordinator … --tls-cert certs/coordinator.pem --tls-key certs/coordinator.key \\
      --tls-client-ca certs/ca.pem
  arbiter worker --coordinator https://coordinator:7700 --ca certs/ca.pem \\
      --cert certs/cellar.pem --key certs/cellar.key
  arbiter cert show certs/*.pem")]
pub(super) struct Cert {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Ca(Ca),
    Server(Server),
    /// Make a certificate with which a worker shows who it is.
    Worker(Client),
    /// Make a certificate with which somebody who gives commands shows who they are.
    Client(Client),
    Show(Show),
}

impl Cert {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Ca(ca) => ca.run(),
            Command::Server(Server { ca, names, signing }) => {
                signing.sign(&ca, Use::Server, &names)
            }
            Command::Worker(client) | Command::Client(client) => {
                client.signing.sign(&client.ca, Use::Client, &[client.name])
            }
            Command::Show(show) => show.run(),
        }
    }
}

/// How something is made.
#[derive(Debug, Args)]
struct Making {
    /// Take the place of files that are there.
    #[arg(long)]
    force: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Make an authority: ca.pem, which everybody may have, and ca.key, with which it signs.
#[derive(Debug, Args)]
#[command(after_help = "Whoever has ca.key can make certificates that are believed: keep it away \
from the machines that use
them.

Example:
  arbiter cert ca --out certs")]
struct Ca {
    /// The directory for both, which is made if it is not there.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// What it is called.
    #[arg(long, value_name = "NAME", default_value = "Arbiter", value_parser = name)]
    name: String,
    /// How long it holds.
    #[arg(long, value_name = "TIME", default_value = AUTHORITY, value_parser = span)]
    valid: Duration,
    #[command(flatten)]
    making: Making,
}

/// Where a certificate comes from and goes, and how it is made.
#[derive(Debug, Args)]
struct Signing {
    /// Where its files go; by default to the authority's.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How long it holds, but no longer than the authority.
    #[arg(long, value_name = "TIME", default_value = CERTIFICATE, value_parser = span)]
    valid: Duration,
    #[command(flatten)]
    making: Making,
}

/// Make a certificate for a coordinator.
#[derive(Debug, Args)]
#[command(
    after_help = "Its files are called after its first name. Renew it with the same command \
and --force, and restart the
coordinator.

Example:
  arbiter cert server --ca certs --name coordinator --name 10.0.0.5 --name localhost"
)]
struct Server {
    /// The directory with ca.pem and ca.key.
    #[arg(long, value_name = "DIR")]
    ca: PathBuf,
    /// What it is called by: each host name and address that stands in the URLs of its clients.
    #[arg(long = "name", value_name = "HOST", required = true, value_parser = host)]
    names: Vec<String>,
    #[command(flatten)]
    signing: Signing,
}

#[derive(Debug, Args)]
#[command(after_help = "Its files are called after it. Renew it with the same command and --force.

Examples:
  arbiter cert worker --ca certs --name cellar
  arbiter cert client --ca certs --name ada --valid 90d")]
struct Client {
    /// The directory with ca.pem and ca.key.
    #[arg(long, value_name = "DIR")]
    ca: PathBuf,
    /// Whose it is.
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: String,
    #[command(flatten)]
    signing: Signing,
}

/// Show what certificates say; exit code 1 if one of them has ended or ends soon.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  arbiter cert show certs/*.pem --within 30d")]
struct Show {
    /// Files with a certificate, as PEM.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// What soon is.
    #[arg(long, value_name = "TIME", default_value = "0d", value_parser = span)]
    within: Duration,
    /// Print one JSON object a certificate.
    #[arg(long)]
    json: bool,
}

impl Ca {
    fn run(self) -> Result<(), Failure> {
        let Self { out, name, valid, making } = self;
        let made = papers::authority(&name, OffsetDateTime::now_utc(), valid)?;
        made.keep(&out, "ca", making.force)?;
        tell(&making, &out, "ca", &made.paper)
    }
}

impl Signing {
    /// Makes a certificate and its key, signed by the authority in a directory.
    fn sign(self, ca: &Path, purpose: Use, names: &[String]) -> Result<(), Failure> {
        let Self { out, valid, making } = self;
        let made = Authority::read(ca)?.sign(purpose, names, OffsetDateTime::now_utc(), valid)?;
        let (out, stem) = (out.unwrap_or_else(|| ca.to_owned()), stem(&names[0])?);
        made.keep(&out, &stem, making.force)?;
        tell(&making, &out, &stem, &made.paper)
    }
}

/// Says what was made.
fn tell(making: &Making, at: &Path, stem: &str, paper: &Paper) -> Result<(), Failure> {
    let (pem, key) = (at.join(format!("{stem}.pem")), at.join(format!("{stem}.key")));
    print(|out| {
        if making.json {
            let key = json!({ "key": key.display().to_string() });
            return out.json(&merged(object(&pem, paper), key));
        }
        out.line(&format!("{}, its key is {}", sentence(&pem, paper), key.display()))?;
        out.line(&format!("renew it from {} on", moment(micros(paper.ends - RENEWAL))))?;
        out.line(&format!("SHA-256 {}", paper.fingerprint))
    })
}

impl Show {
    fn run(self) -> Result<(), Failure> {
        let soon = OffsetDateTime::now_utc() + self.within;
        let mut out = Output::new();
        let mut ending = Vec::new();
        for file in &self.files {
            let paper = Paper::read(file)?;
            if self.json {
                out.json(&object(file, &paper))?;
            } else {
                out.line(&sentence(file, &paper))?;
                out.line(&format!("SHA-256 {}", paper.fingerprint))?;
            }
            if paper.ends <= soon {
                ending.push(file.display().to_string());
            }
        }
        out.flush()?;
        match ending.as_slice() {
            [] => Ok(()),
            files => Err(Failure::Negative(format!(
                "{} ended or will soon; make it again with arbiter cert and --force",
                files.join(", ")
            ))),
        }
    }
}

/// What a certificate is, for people.
fn sentence(file: &Path, paper: &Paper) -> String {
    let Paper { purpose, name, hosts, begins, ends, .. } = paper;
    let names = if hosts.is_empty() { name.clone() } else { hosts.join(", ") };
    let (begins, ends) = (moment(micros(*begins)), moment(micros(*ends)));
    format!("{}: {} {names}, valid from {begins} to {ends}", file.display(), purpose.told())
}

fn object(file: &Path, paper: &Paper) -> Value {
    let Paper { purpose, name, hosts, begins, ends, fingerprint } = paper;
    json!({
        "file": file.display().to_string(), "purpose": purpose.as_str(), "name": name,
        "hosts": hosts, "from": moment_json(micros(*begins)), "to": moment_json(micros(*ends)),
        "sha256": fingerprint,
    })
}

/// A name that can stand in a certificate.
fn name(text: &str) -> Result<String, String> {
    let fits = (1..=64).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    let unfit = || "a name has 1 to 64 characters, none of them a control".to_owned();
    fits.then(|| text.to_owned()).ok_or_else(unfit)
}

/// A host name or an address.
fn host(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.*".contains(c);
    let fits = text.parse::<IpAddr>().is_ok()
        || ((1..=253).contains(&text.len())
            && text.chars().all(plain)
            && text.split('.').all(|label| (1..=63).contains(&label.len())));
    let unfit = || "write a host name or an address, without https:// and port".to_owned();
    fits.then(|| text.to_owned()).ok_or_else(unfit)
}

/// What the files of somebody are called.
fn stem(name: &str) -> Result<String, Failure> {
    let plain = |c: char| if c.is_alphanumeric() || "-.@".contains(c) { c } else { '_' };
    let stem: String = name.chars().map(plain).collect();
    if stem == "ca" || stem.starts_with('.') {
        let error = format!("--name {name}: its files would be called {stem}; choose another");
        return Err(Failure::Usage(error));
    }
    Ok(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_hosts_and_files() {
        for good in ["coordinator", "a.example", "*.example", "10.0.0.5", "::1"] {
            assert!(host(good).is_ok(), "{good}");
        }
        for bad in ["", "https://x", "x:7700", "a..b", "a b", &"x".repeat(64)] {
            assert!(host(bad).is_err(), "{bad}");
        }
        assert_eq!(stem("*.example").unwrap(), "_.example");
        assert_eq!(stem("../etc").unwrap_err().message().split(':').next(), Some("--name ../etc"));
        assert_eq!(stem("Ada Lovelace/x").unwrap(), "Ada_Lovelace_x");
        assert!(stem("ca").is_err());
    }
}
