//! `arbiter cert …`: a private certificate authority and certificates that it signs, for mutual
//! TLS.

mod x509;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use super::time_arg::{micros, span};
use crate::failure::Failure;
use crate::output::{Output, merge, moment, moment_json, print};
use x509::{Authority, CertificateInfo, Purpose};

/// The default validity of an authority and of a certificate, as durations.
const AUTHORITY: &str = "3650d";
const CERTIFICATE: &str = "397d";
/// How long before it expires a certificate should be renewed.
const RENEWAL: Duration = Duration::days(30);

/// Make TLS certificates, signed by a private authority.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter cert ca --out certs
  arbiter cert server --ca certs --name coordinator --name 10.0.0.5
  arbiter cert worker --ca certs --name cellar
  arbiter coordinator … --tls-cert certs/coordinator.pem \\
      --tls-key certs/coordinator.key --tls-client-ca certs/ca.pem
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
    /// Make a certificate that identifies a worker.
    Worker(Client),
    /// Make a certificate that identifies a user of client commands.
    Client(Client),
    Show(Show),
}

impl Cert {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Ca(ca) => ca.run(),
            Command::Server(Server { ca, names, signing }) => {
                signing.sign(&ca, Purpose::Server, &names)
            }
            Command::Worker(client) | Command::Client(client) => {
                client.signing.sign(&client.ca, Purpose::Client, &[client.name])
            }
            Command::Show(show) => show.run(),
        }
    }
}

/// Options for writing files and printing the result.
#[derive(Debug, Args)]
struct OutputArgs {
    /// Replace existing files.
    #[arg(long)]
    force: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Make an authority: ca.pem (public) and ca.key (secret, signs certificates).
#[derive(Debug, Args)]
#[command(after_help = "Anyone with ca.key can make trusted certificates. Do not copy it to the \
    machines that use them.

Example:
  arbiter cert ca --out certs")]
struct Ca {
    /// The directory for both files; created if missing.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The name of the authority.
    #[arg(long, value_name = "NAME", default_value = "Arbiter", value_parser = name)]
    name: String,
    /// How long it is valid.
    #[arg(long, value_name = "TIME", default_value = AUTHORITY, value_parser = span)]
    valid: Duration,
    #[command(flatten)]
    output: OutputArgs,
}

/// Options for signing a certificate and writing its files.
#[derive(Debug, Args)]
struct Signing {
    /// The directory for its files; by default the authority's.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How long it is valid, at most as long as the authority.
    #[arg(long, value_name = "TIME", default_value = CERTIFICATE, value_parser = span)]
    valid: Duration,
    #[command(flatten)]
    output: OutputArgs,
}

/// Make a certificate for a coordinator.
#[derive(Debug, Args)]
#[command(
    after_help = "The first name becomes the name of its files. To renew it, run the same command \
    with --force and restart the coordinator.

Example:
  arbiter cert server --ca certs --name coordinator --name 10.0.0.5 \\
      --name localhost"
)]
struct Server {
    /// The directory with ca.pem and ca.key.
    #[arg(long, value_name = "DIR")]
    ca: PathBuf,
    /// A host name or address that clients use in URLs; may be repeated.
    #[arg(long = "name", value_name = "HOST", required = true, value_parser = host)]
    names: Vec<String>,
    #[command(flatten)]
    signing: Signing,
}

#[derive(Debug, Args)]
#[command(after_help = "To renew it, run the same command with --force.

Examples:
  arbiter cert worker --ca certs --name cellar
  arbiter cert client --ca certs --name ada --valid 90d")]
struct Client {
    /// The directory with ca.pem and ca.key.
    #[arg(long, value_name = "DIR")]
    ca: PathBuf,
    /// The name of the worker or user; also the name of the files.
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: String,
    #[command(flatten)]
    signing: Signing,
}

/// Show certificates; exit code 1 if one has expired or expires within --within.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  arbiter cert show certs/*.pem --within 30d")]
struct Show {
    /// Certificate files (PEM).
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Fail if a certificate expires within this time.
    #[arg(long, value_name = "TIME", default_value = "0d", value_parser = span)]
    within: Duration,
    /// Print one JSON object per certificate.
    #[arg(long)]
    json: bool,
}

impl Ca {
    fn run(self) -> Result<(), Failure> {
        let Self { out, name, valid, output } = self;
        let certificate = x509::authority(&name, OffsetDateTime::now_utc(), valid)?;
        certificate.save(&out, "ca", output.force)?;
        print_certificate(&output, &out, "ca", &certificate.info)
    }
}

impl Signing {
    /// Makes a certificate and its key, signed by the authority in a directory.
    fn sign(self, ca: &Path, purpose: Purpose, names: &[String]) -> Result<(), Failure> {
        let Self { out, valid, output } = self;
        let certificate =
            Authority::read(ca)?.sign(purpose, names, OffsetDateTime::now_utc(), valid)?;
        let out = out.unwrap_or_else(|| ca.to_owned());
        let stem = stem(&names[0])?;
        certificate.save(&out, &stem, output.force)?;
        print_certificate(&output, &out, &stem, &certificate.info)
    }
}

/// Prints the details of a new certificate.
fn print_certificate(
    output: &OutputArgs,
    directory: &Path,
    stem: &str,
    info: &CertificateInfo,
) -> Result<(), Failure> {
    let pem = directory.join(format!("{stem}.pem"));
    let key = directory.join(format!("{stem}.key"));
    print(|out| {
        if output.json {
            let key = json!({ "key": key.display().to_string() });
            return out.json(&merge(object(&pem, info), key));
        }
        out.line(&format!("{}, its key is {}", sentence(&pem, info), key.display()))?;
        out.line(&format!("renew it after {}", moment(micros(info.ends - RENEWAL))))?;
        out.line(&format!("SHA-256 {}", info.fingerprint))
    })
}

impl Show {
    fn run(self) -> Result<(), Failure> {
        let deadline = OffsetDateTime::now_utc() + self.within;
        let mut out = Output::new();
        let mut expiring = Vec::new();
        for file in &self.files {
            let info = CertificateInfo::read(file)?;
            if self.json {
                out.json(&object(file, &info))?;
            } else {
                out.line(&sentence(file, &info))?;
                out.line(&format!("SHA-256 {}", info.fingerprint))?;
            }
            if info.ends <= deadline {
                expiring.push(file.display().to_string());
            }
        }
        out.flush()?;
        match expiring.as_slice() {
            [] => Ok(()),
            files => Err(Failure::Negative(format!(
                "{}: expired, or expires soon; renew with arbiter cert and --force",
                files.join(", ")
            ))),
        }
    }
}

/// Describes a certificate in one line.
fn sentence(file: &Path, info: &CertificateInfo) -> String {
    let CertificateInfo { purpose, name, hosts, begins, ends, .. } = info;
    let names = if hosts.is_empty() { name.clone() } else { hosts.join(", ") };
    let begins = moment(micros(*begins));
    let ends = moment(micros(*ends));
    format!("{}: {} {names}, valid from {begins} to {ends}", file.display(), purpose.description())
}

fn object(file: &Path, info: &CertificateInfo) -> Value {
    let CertificateInfo { purpose, name, hosts, begins, ends, fingerprint } = info;
    json!({
        "file": file.display().to_string(), "purpose": purpose.as_str(), "name": name,
        "hosts": hosts, "from": moment_json(micros(*begins)), "to": moment_json(micros(*ends)),
        "sha256": fingerprint,
    })
}

/// Parses a name for a certificate.
fn name(text: &str) -> Result<String, String> {
    let is_valid = (1..=64).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    let error = || "a name has 1 to 64 characters and no control characters".to_owned();
    is_valid.then(|| text.to_owned()).ok_or_else(error)
}

/// Parses a host name or an address.
fn host(text: &str) -> Result<String, String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.*".contains(c);
    let is_valid = text.parse::<IpAddr>().is_ok()
        || ((1..=253).contains(&text.len())
            && text.chars().all(is_allowed)
            && text.split('.').all(|label| (1..=63).contains(&label.len())));
    let error = || "write a host name or an address, without https:// and port".to_owned();
    is_valid.then(|| text.to_owned()).ok_or_else(error)
}

/// The file name, without suffix, for a certificate's files.
fn stem(name: &str) -> Result<String, Failure> {
    let file_name_char = |c: char| if c.is_alphanumeric() || "-.@".contains(c) { c } else { '_' };
    let stem: String = name.chars().map(file_name_char).collect();
    if stem == "ca" || stem.starts_with('.') {
        let error = format!("--name {name}: the file name {stem} is reserved; choose another name");
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
