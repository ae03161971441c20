//! The form in which Postgres stores a password: a verifier for SCRAM-SHA-256 (RFC 5802, RFC 7677).
//!
//! Postgres can make it from the password, with 4096 rounds of hashing that the client of each
//! connection repeats. The rounds protect passwords that can be guessed. The password of a cluster
//! is random, so one round is enough, and a connection takes milliseconds less.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac, pbkdf2};

/// The rounds of hashing for a random password.
pub(super) const ROUNDS: NonZeroU32 = NonZeroU32::MIN;

/// The verifier of a password, as `ALTER ROLE … PASSWORD` takes it.
pub(super) fn verifier(password: &str, salt: &[u8], rounds: NonZeroU32) -> String {
    let mut salted = [0; digest::SHA256_OUTPUT_LEN];
    let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
    pbkdf2::derive(algorithm, rounds, salt, password.as_bytes(), &mut salted);
    let key = hmac::Key::new(hmac::HMAC_SHA256, &salted);
    let client_key = hmac::sign(&key, b"Client Key");
    let stored_key = digest::digest(&digest::SHA256, client_key.as_ref());
    let server_key = hmac::sign(&key, b"Server Key");
    format!(
        "SCRAM-SHA-256${rounds}:{}${}:{}",
        STANDARD.encode(salt),
        STANDARD.encode(stored_key),
        STANDARD.encode(server_key)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, section 3: what the server signs, and its signature.
    const SIGNED: &str = "n=user,r=rOprNGfwEbeRWgbNEkqO,\
        r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,\
        c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const SIGNATURE: &str = "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

    #[test]
    fn the_verifier_signs_the_example_of_the_standard() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = verifier("pencil", &salt, NonZeroU32::new(4096).unwrap());
        let (head, server_key) = verifier.rsplit_once(':').unwrap();
        assert!(head.starts_with("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$"), "{head}");
        let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(server_key).unwrap());
        assert_eq!(STANDARD.encode(hmac::sign(&key, SIGNED.as_bytes())), SIGNATURE);
    }
}
