//! X.509 certificates and keys: generate, sign, write and read.
//!
//! All keys use the curve P-256. A certificate is valid for one purpose only: a worker's
//! certificate cannot identify a coordinator.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::net::IpAddr;
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

use crate::failure::{Failure, without_temporary_path};

/// A new certificate is valid from this long before now, because clocks differ.
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
    let key = KeyPair::generate().map_err(signing_error)?;
    let certificate = params.self_signed(&key).map_err(signing_error)?;
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
        let invalid = |path: &Path, why: &str| {
            Failure::Usage(format!("{}: {why}; make one with arbiter cert ca", path.display()))
        };
        if info.purpose != Purpose::Authority {
            return Err(invalid(&certificate, "not the certificate of an authority"));
        }
        let pair =
            KeyPair::from_pem(&read(&key)?).map_err(|error| invalid(&key, &error.to_string()))?;
        let matches = with_certificate(&certificate, &pem, |certificate| {
            certificate.public_key().subject_public_key.data == pair.der_bytes()
        })?;
        if !matches {
            return Err(invalid(&key, "not the key of ca.pem"));
        }
        let issuer = Issuer::from_ca_cert_pem(&pem, pair)
            .map_err(|error| invalid(&certificate, &error.to_string()))?;
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
            let hosts = CertificateParams::new(names).map_err(signing_error)?;
            params.subject_alt_names = hosts.subject_alt_names;
        }
        let key = KeyPair::generate().map_err(signing_error)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(signing_error)?;
        SignedCertificate::new(certificate.pem(), &key)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
fn signing_error(error: rcgen::Error) -> Failure {
    Failure::Usage(format!("cannot make the certificate: {error}"))
}

impl SignedCertificate {
    fn new(certificate: String, key: &KeyPair) -> Result<Self, Failure> {
        let info =
            with_certificate(Path::new("the certificate"), &certificate, CertificateInfo::of)?;
        Ok(Self { certificate, key: key.serialize_pem(), info })
    }

    /// Writes both to a directory, as `STEM.pem` and `STEM.key`. Replaces existing files only with
    /// `force`.
    pub(super) fn save(&self, directory: &Path, stem: &str, force: bool) -> Result<(), Failure> {
        fs::create_dir_all(directory).map_err(|error| write_error(directory, &error))?;
        let path = |suffix| directory.join(format!("{stem}.{suffix}"));
        let certificate = path("pem");
        let key = path("key");
        let existing = [&certificate, &key].into_iter().find(|path| path.exists());
        if let Some(existing) = existing.filter(|_| !force) {
            return Err(already_exists(existing));
        }
        write(&key, &self.key, SECRET, force)?;
        write(&certificate, &self.certificate, PUBLIC, force)
    }
}

fn already_exists(path: &Path) -> Failure {
    Failure::Usage(format!("{} already exists; replace it with --force", path.display()))
}

fn write_error(path: &Path, error: &io::Error) -> Failure {
    let cause = without_temporary_path(error);
    Failure::Usage(format!("cannot write {}: {cause}", path.display()))
}

/// Writes a file atomically. Sets its mode before it appears, so other users can never read it.
fn write(path: &Path, text: &str, mode: u32, force: bool) -> Result<(), Failure> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let failed = |error: io::Error| write_error(path, &error);
    let mut file = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.as_file().set_permissions(Permissions::from_mode(mode)).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    let persisted = if force { file.persist(path) } else { file.persist_noclobber(path) };
    persisted.map(drop).map_err(|failure| match failure.error.kind() {
        io::ErrorKind::AlreadyExists => already_exists(path),
        _ => failed(failure.error),
    })
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))
}

/// Parses the first certificate in a PEM text and applies `extract` to it.
fn with_certificate<T>(
    path: &Path,
    text: &str,
    extract: impl FnOnce(&X509Certificate<'_>) -> T,
) -> Result<T, Failure> {
    let invalid = || Failure::Usage(format!("{}: not a PEM certificate", path.display()));
    let (_, pem) = x509_parser::pem::parse_x509_pem(text.as_bytes()).map_err(|_| invalid())?;
    pem.parse_x509().map(|certificate| extract(&certificate)).map_err(|_| invalid())
}

impl CertificateInfo {
    /// Reads the certificate in a file.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        with_certificate(path, &read(path)?, Self::of)
    }

    fn of(certificate: &X509Certificate<'_>) -> Self {
        let usage = certificate.extended_key_usage().ok().flatten();
        let purpose = match usage.map(|usage| (usage.value.server_auth, usage.value.client_auth)) {
            _ if certificate.is_ca() => Purpose::Authority,
            Some((true, _)) => Purpose::Server,
            Some((_, true)) => Purpose::Client,
            _ => Purpose::Other,
        };
        let common_name = certificate.subject().iter_common_name().next();
        let names = certificate
            .subject_alternative_name()
            .ok()
            .flatten()
            .map(|names| names.value.general_names.as_slice())
            .unwrap_or_default();
        let time = |timestamp: i64| {
            OffsetDateTime::from_unix_timestamp(timestamp).unwrap_or(OffsetDateTime::UNIX_EPOCH)
        };
        let hash = digest(&SHA256, certificate.as_raw());
        let bytes: Vec<_> = hash.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        Self {
            purpose,
            name: common_name.and_then(|name| name.as_str().ok()).unwrap_or_default().to_owned(),
            hosts: names.iter().filter_map(host).collect(),
            begins: time(certificate.validity().not_before.timestamp()),
            ends: time(certificate.validity().not_after.timestamp()),
            fingerprint: bytes.join(":"),
        }
    }
}

/// A host name or an address as text.
fn host(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let ipv4: Option<[u8; 4]> = (*bytes).try_into().ok();
            let ipv6: Option<[u8; 16]> = (*bytes).try_into().ok();
            let address = ipv4.map(IpAddr::from).or_else(|| ipv6.map(IpAddr::from));
            address.map(|address| address.to_string())
        }
        _ => None,
    }
}
