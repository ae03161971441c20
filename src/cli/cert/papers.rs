//! Certificates and keys: made, signed, kept in files, read again.
//!
//! All keys are on the curve P-256. A certificate says what it is for, and is believed for that
//! alone: one of a worker makes no coordinator.

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

/// Clocks differ: what is made now holds since a little earlier.
const SKEW: Duration = Duration::HOUR;
/// What others may do with a certificate, and with a key.
const PUBLIC: u32 = 0o644;
const SECRET: u32 = 0o600;

string_enum! {
    /// What a certificate is for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Use {
        /// Signing others.
        Authority = "authority",
        /// To be called.
        Server = "server",
        /// To call.
        Client = "client",
        /// Something else.
        Other = "other",
    }
}

impl Use {
    pub(super) fn told(self) -> &'static str {
        match self {
            Self::Authority => "the authority",
            Self::Server => "for the server",
            Self::Client => "for the client",
            Self::Other => "for something else,",
        }
    }
}

/// What a certificate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Paper {
    pub(super) purpose: Use,
    /// Whose it is.
    pub(super) name: String,
    /// What a server may be called by.
    pub(super) hosts: Vec<String>,
    pub(super) begins: OffsetDateTime,
    pub(super) ends: OffsetDateTime,
    /// SHA-256 of all of it, as others show it.
    pub(super) fingerprint: String,
}

/// A certificate with its key, both as PEM.
pub(super) struct Made {
    certificate: String,
    key: String,
    pub(super) paper: Paper,
}

/// Who signs certificates.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Until when.
    ends: OffsetDateTime,
}

/// Makes an authority.
pub(super) fn authority(name: &str, now: OffsetDateTime, valid: Duration) -> Result<Made, Failure> {
    let mut params = params(name, (now, now + valid))?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().map_err(unmade)?;
    let certificate = params.self_signed(&key).map_err(unmade)?;
    Made::new(certificate.pem(), &key)
}

/// What all certificates have.
fn params(
    name: &str,
    (now, ends): (OffsetDateTime, OffsetDateTime),
) -> Result<CertificateParams, Failure> {
    if ends <= now {
        return Err(Failure::usage("--valid: a certificate has to hold for some time"));
    }
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    (params.not_before, params.not_after) = (now - SKEW, ends);
    Ok(params)
}

impl Authority {
    /// The one in a directory.
    pub(super) fn read(directory: &Path) -> Result<Self, Failure> {
        let (certificate, key) = (directory.join("ca.pem"), directory.join("ca.key"));
        let (pem, paper) = (read(&certificate)?, Paper::read(&certificate)?);
        let unfit = |path: &Path, why: &str| {
            Failure::Usage(format!("{}: {why}; make one with arbiter cert ca", path.display()))
        };
        if paper.purpose != Use::Authority {
            return Err(unfit(&certificate, "it is the certificate of no authority"));
        }
        let pair = KeyPair::from_pem(&read(&key)?);
        let pair = pair.map_err(|error| unfit(&key, &error.to_string()))?;
        let own = parsed(&certificate, &pem, |found| {
            found.public_key().subject_public_key.data == pair.der_bytes()
        })?;
        if !own {
            return Err(unfit(&key, "it is not the key of ca.pem"));
        }
        let issuer = Issuer::from_ca_cert_pem(&pem, pair);
        let issuer = issuer.map_err(|error| unfit(&certificate, &error.to_string()))?;
        Ok(Self { issuer, ends: paper.ends })
    }

    /// Makes a certificate, which holds no longer than the authority.
    pub(super) fn sign(
        &self,
        purpose: Use,
        names: &[String],
        now: OffsetDateTime,
        valid: Duration,
    ) -> Result<Made, Failure> {
        if self.ends <= now {
            let error = "the authority has ended; make another one with arbiter cert ca --force";
            return Err(Failure::usage(error));
        }
        let mut params = params(&names[0], (now, self.ends.min(now + valid)))?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages = vec![match purpose {
            Use::Server => ExtendedKeyUsagePurpose::ServerAuth,
            _ => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        if purpose == Use::Server {
            let hosts = CertificateParams::new(names).map_err(unmade)?;
            params.subject_alt_names = hosts.subject_alt_names;
        }
        let key = KeyPair::generate().map_err(unmade)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(unmade)?;
        Made::new(certificate.pem(), &key)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
fn unmade(error: rcgen::Error) -> Failure {
    Failure::Usage(format!("cannot make the certificate: {error}"))
}

impl Made {
    fn new(certificate: String, key: &KeyPair) -> Result<Self, Failure> {
        let paper = parsed(Path::new("the certificate"), &certificate, Paper::of)?;
        Ok(Self { certificate, key: key.serialize_pem(), paper })
    }

    /// Writes both to a directory, as `STEM.pem` and `STEM.key`; not over what is there, unless
    /// that is asked for.
    pub(super) fn keep(&self, directory: &Path, stem: &str, force: bool) -> Result<(), Failure> {
        fs::create_dir_all(directory).map_err(|error| unwritten(directory, &error))?;
        let place = |suffix| directory.join(format!("{stem}.{suffix}"));
        let (certificate, key) = (place("pem"), place("key"));
        let taken = [&certificate, &key].into_iter().find(|path| path.exists());
        if let Some(taken) = taken.filter(|_| !force) {
            return Err(there(taken));
        }
        write(&key, &self.key, SECRET, force)?;
        write(&certificate, &self.certificate, PUBLIC, force)
    }
}

fn there(path: &Path) -> Failure {
    Failure::Usage(format!("{} is there already; replace it with --force", path.display()))
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::Usage(format!("cannot write {}: {error}", path.display()))
}

/// Writes a file as a whole, readable for nobody else before it is what it should be.
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

/// What is to be known of the first certificate in a text.
fn parsed<T>(
    path: &Path,
    text: &str,
    ask: impl FnOnce(&X509Certificate<'_>) -> T,
) -> Result<T, Failure> {
    let unfit = || Failure::Usage(format!("{}: it is no certificate in PEM", path.display()));
    let (_, pem) = x509_parser::pem::parse_x509_pem(text.as_bytes()).map_err(|_| unfit())?;
    pem.parse_x509().map(|certificate| ask(&certificate)).map_err(|_| unfit())
}

impl Paper {
    /// What a certificate in a file says.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        parsed(path, &read(path)?, Self::of)
    }

    fn of(found: &X509Certificate<'_>) -> Self {
        let usage = found.extended_key_usage().ok().flatten();
        let purpose = match usage.map(|usage| (usage.value.server_auth, usage.value.client_auth)) {
            _ if found.is_ca() => Use::Authority,
            Some((true, _)) => Use::Server,
            Some((_, true)) => Use::Client,
            _ => Use::Other,
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

/// A host name or an address, as people write it.
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
