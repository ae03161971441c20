//! X.509 certificates and keys: generate, sign, write and read.
//!
//! All keys use the curve P-256. A certificate is valid for one purpose only: a worker's certificate
//! cannot identify a coordinator.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use arbiter_games::string_enum;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData as _,
};
use ring::digest::{SHA256, digest};
use time::{Duration, OffsetDateTime};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::X509Certificate;

use crate::failure::Failure;

/// A new certificate is valid from a little earlier, because clocks differ.
const SKEW: Duration = Duration::HOUR;
/// File modes of certificates and of keys.
const PUBLIC: u32 = 0o644;
const SECRET: u32 = 0o600;

string_enum! {
    /// What a certificate is for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Purpose {
        /// Signs other certificates.
        Authority = "authority",
        /// Identifies a server.
        Server = "server",
        /// Identifies a client.
        Client = "client",
        /// Something else.
        Other = "other",
    }
}

impl Purpose {
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Authority => "the authority",
            Self::Server => "for the server",
            Self::Client => "for the client",
            Self::Other => "for something else,",
        }
    }
}

/// The contents of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CertificateInfo {
    pub(super) purpose: Purpose,
    /// The common name of the subject.
    pub(super) name: String,
    /// The host names and addresses of a server.
    pub(super) hosts: Vec<String>,
    pub(super) begins: OffsetDateTime,
    pub(super) ends: OffsetDateTime,
    /// SHA-256 of the DER form, in upper-case hex with colons, as other tools show it.
    pub(super) fingerprint: String,
}

/// A new certificate with its key, both as PEM.
pub(super) struct SignedCertificate {
    certificate: String,
    key: String,
    pub(super) info: CertificateInfo,
}

/// A certificate authority.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// When its certificate expires.
    ends: OffsetDateTime,
}

/// Generates a self-signed authority.
pub(super) fn authority(
    name: &str,
    now: OffsetDateTime,
    valid: Duration,
) -> Result<SignedCertificate, Failure> {
    let mut params = params(name, (now, now + valid))?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().map_err(unmade)?;
    let certificate = params.self_signed(&key).map_err(unmade)?;
    SignedCertificate::new(certificate.pem(), &key)
}

/// The parameters that all certificates share.
fn params(
    name: &str,
    (now, ends): (OffsetDateTime, OffsetDateTime),
) -> Result<CertificateParams, Failure> {
    if ends <= now {
        return Err(Failure::usage("--valid: use a positive duration, for example 90d"));
    }
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    (params.not_before, params.not_after) = (now - SKEW, ends);
    Ok(params)
}

impl Authority {
    /// Reads `ca.pem` and `ca.key` from a directory.
    pub(super) fn read(directory: &Path) -> Result<Self, Failure> {
        let certificate = directory.join("ca.pem");
        let key = directory.join("ca.key");
        let pem = read(&certificate)?;
        let info = CertificateInfo::read(&certificate)?;
        let unfit = |path: &Path, why: &str| {
            Failure::Usage(format!("{}: {why}; make one with arbiter cert ca", path.display()))
        };
        if info.purpose != Purpose::Authority {
            return Err(unfit(&certificate, "not the certificate of an authority"));
        }
        let pair = KeyPair::from_pem(&read(&key)?);
        let pair = pair.map_err(|error| unfit(&key, &error.to_string()))?;
        let matches = parsed(&certificate, &pem, |found| {
            found.public_key().subject_public_key.data == pair.der_bytes()
        })?;
        if !matches {
            return Err(unfit(&key, "not the key of ca.pem"));
        }
        let issuer = Issuer::from_ca_cert_pem(&pem, pair);
        let issuer = issuer.map_err(|error| unfit(&certificate, &error.to_string()))?;
        Ok(Self { issuer, ends: info.ends })
    }

    /// Signs a new certificate, which expires no later than the authority.
    pub(super) fn sign(
        &self,
        purpose: Purpose,
        names: &[String],
        now: OffsetDateTime,
        valid: Duration,
    ) -> Result<SignedCertificate, Failure> {
        if self.ends <= now {
            let error = "the authority has expired; make a new one with arbiter cert ca --force";
            return Err(Failure::usage(error));
        }
        let mut params = params(&names[0], (now, self.ends.min(now + valid)))?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages = vec![match purpose {
            Purpose::Server => ExtendedKeyUsagePurpose::ServerAuth,
            _ => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        if purpose == Purpose::Server {
            let hosts = CertificateParams::new(names).map_err(unmade)?;
            params.subject_alt_names = hosts.subject_alt_names;
        }
        let key = KeyPair::generate().map_err(unmade)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(unmade)?;
        SignedCertificate::new(certificate.pem(), &key)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
fn unmade(error: rcgen::Error) -> Failure {
    Failure::Usage(format!("cannot make the certificate: {error}"))
}

impl SignedCertificate {
    fn new(certificate: String, key: &KeyPair) -> Result<Self, Failure> {
        let info = parsed(Path::new("the certificate"), &certificate, CertificateInfo::of)?;
        Ok(Self { certificate, key: key.serialize_pem(), info })
    }

    /// Writes both to a directory, as `STEM.pem` and `STEM.key`. Replaces existing files only with
    /// `force`.
    pub(super) fn save(&self, directory: &Path, stem: &str, force: bool) -> Result<(), Failure> {
        fs::create_dir_all(directory).map_err(|error| unwritten(directory, &error))?;
        let place = |suffix| directory.join(format!("{stem}.{suffix}"));
        let certificate = place("pem");
        let key = place("key");
        let taken = [&certificate, &key].into_iter().find(|path| path.exists());
        if let Some(taken) = taken.filter(|_| !force) {
            return Err(there(taken));
        }
        write(&key, &self.key, SECRET, force)?;
        write(&certificate, &self.certificate, PUBLIC, force)
    }
}

fn there(path: &Path) -> Failure {
    Failure::Usage(format!("{} already exists; replace it with --force", path.display()))
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::Usage(format!("cannot write {}: {error}", path.display()))
}

/// Writes a file atomically and with the given mode: no other user can read it earlier.
fn write(path: &Path, text: &str, mode: u32, force: bool) -> Result<(), Failure> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let failed = |error: io::Error| unwritten(path, &error);
    let mut file = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.as_file().set_permissions(Permissions::from_mode(mode)).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    let kept = if force { file.persist(path) } else { file.persist_noclobber(path) };
    kept.map(drop).map_err(|kept| match kept.error.kind() {
        io::ErrorKind::AlreadyExists => there(path),
        _ => failed(kept.error),
    })
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))
}

/// Parses the first certificate in a PEM text and applies `ask` to it.
fn parsed<T>(
    path: &Path,
    text: &str,
    ask: impl FnOnce(&X509Certificate<'_>) -> T,
) -> Result<T, Failure> {
    let unfit = || Failure::Usage(format!("{}: not a PEM certificate", path.display()));
    let (_, pem) = x509_parser::pem::parse_x509_pem(text.as_bytes()).map_err(|_| unfit())?;
    pem.parse_x509().map(|certificate| ask(&certificate)).map_err(|_| unfit())
}

impl CertificateInfo {
    /// Reads the certificate in a file.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        parsed(path, &read(path)?, Self::of)
    }

    fn of(found: &X509Certificate<'_>) -> Self {
        let usage = found.extended_key_usage().ok().flatten();
        let purpose = match usage.map(|usage| (usage.value.server_auth, usage.value.client_auth)) {
            _ if found.is_ca() => Purpose::Authority,
            Some((true, _)) => Purpose::Server,
            Some((_, true)) => Purpose::Client,
            _ => Purpose::Other,
        };
        let named = found.subject().iter_common_name().next();
        let names = found.subject_alternative_name().ok().flatten();
        let names = names.map(|names| names.value.general_names.as_slice()).unwrap_or_default();
        let time = |moment: i64| {
            OffsetDateTime::from_unix_timestamp(moment).unwrap_or(OffsetDateTime::UNIX_EPOCH)
        };
        let hash = digest(&SHA256, found.as_raw());
        let bytes: Vec<_> = hash.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        Self {
            purpose,
            name: named.and_then(|name| name.as_str().ok()).unwrap_or_default().to_owned(),
            hosts: names.iter().filter_map(host).collect(),
            begins: time(found.validity().not_before.timestamp()),
            ends: time(found.validity().not_after.timestamp()),
            fingerprint: bytes.join(":"),
        }
    }
}

/// A host name or an address as text.
fn host(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let four: Option<[u8; 4]> = (*bytes).try_into().ok();
            let sixteen: Option<[u8; 16]> = (*bytes).try_into().ok();
            let four = four.map(|bytes| std::net::IpAddr::from(bytes).to_string());
            four.or_else(|| sixteen.map(|bytes| std::net::IpAddr::from(bytes).to_string()))
        }
        _ => None,
    }
}
