//! A file of credentials opens the door: a server with an operator, whose accounts and users are tokens that are signed one by
//! the other.

use std::path::Path;

use foresee_nats::{Auth, Server};
use nkeys::KeyPair;
use serde_json::{Value, json};

use crate::harness::Nats;
use crate::trouble::{impatient, worker};

/// Base64 as tokens have it: for addresses, without padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0_u32, |word, &byte| word << 8 | u32::from(byte));
        let word = word << (8 * (3 - three.len()));
        let digits = (0..=three.len()).map(|i| DIGITS[(word >> (18 - 6 * i)) as usize & 63]);
        text.extend(digits.map(char::from));
    }
    text
}

/// A token about someone, signed by an issuer.
fn token(issuer: &KeyPair, about: &KeyPair, claims: Value) -> String {
    let head = json!({"typ": "JWT", "alg": "ed25519-nkey"}).to_string();
    let body = json!({
        "jti": "TEST", "iat": 1_700_000_000, "iss": issuer.public_key(), "name": "test",
        "sub": about.public_key(), "nats": claims,
    });
    let text = format!("{}.{}", base64(head.as_bytes()), base64(body.to_string().as_bytes()));
    let signature = issuer.sign(text.as_bytes()).unwrap();
    format!("{text}.{}", base64(&signature))
}

fn account(is_system: bool) -> Value {
    let storage = if is_system { 0 } else { -1 };
    json!({
        "limits": {
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
            "conn": -1, "leaf": -1, "mem_storage": storage, "disk_storage": storage,
            "streams": storage, "consumer": storage,
        },
        "default_permissions": {"pub": {}, "sub": {}},
        "type": "account", "version": 2,
    })
}

/// A file of credentials of a user of an account.
fn credentials(path: &Path, issuer: &KeyPair) {
    let user = KeyPair::new_user();
    let claims = json!({
        "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1, "type": "user", "version": 2,
    });
    let token = token(issuer, &user, claims);
    let text = format!(
        "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
        user.seed().unwrap()
    );
    std::fs::write(path, text).unwrap();
}

#[test]
fn base64_is_what_others_write() {
    assert_eq!(
        ["", "f", "fo", "foo", "foob"].map(|t| base64(t.as_bytes())),
        ["", "Zg", "Zm8", "Zm9v", "Zm9vYg"]
    );
    assert_eq!(base64(&[0xfb, 0xff]), "-_8");
}

#[test]
fn a_file_of_credentials_opens_the_door() {
    let folder = tempfile::tempdir().unwrap();
    let (operator, system, ours) =
        (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_account());
    let stranger = KeyPair::new_account();
    let of_operator = token(&operator, &operator, json!({"type": "operator", "version": 2}));
    let of_system = token(&operator, &system, account(true));
    let of_ours = token(&operator, &ours, account(false));
    let nats = Nats::configured(&format!(
        "operator: {of_operator}\nsystem_account: {0}\nresolver: MEMORY\n\
         resolver_preload: {{ {0}: {of_system}, {1}: {of_ours} }}\n",
        system.public_key(),
        ours.public_key()
    ));
    let with = |name: &str, issuer: &KeyPair| {
        let path = folder.path().join(name);
        credentials(&path, issuer);
        worker(Server { auth: Auth::Credentials(path), ..impatient(nats.server()) }, folder.path())
    };
    assert_eq!(with("right.creds", &ours).err(), None);
    let error = with("wrong.creds", &stranger).unwrap_err();
    assert!(error.contains("refuses these credentials"), "{error}");
}
