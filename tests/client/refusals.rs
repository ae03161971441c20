//! How commands end if the coordinator refuses or is unreachable, or the arguments are invalid.

use std::net::TcpListener;

use arbiter_proto::v1::Token;
use serde_json::json;
use tonic::Code;

use crate::server::{Script, Server};
use crate::{board, call, fails, harmless, run, succeed};

#[test]
fn every_refusal_has_its_exit_code() {
    let refused = |code, exit, says: &[&str]| {
        let refusal = Some((code, "finals is\u{1b}[31m not right"));
        let server = Server::start(Script { refusal, ..Script::default() });
        for arguments in [&["ranking", "finals"][..], &["tournament", "show", "finals"]] {
            let output = run(&server, arguments);
            fails(&output, exit, says);
            harmless(&output.stderr);
            assert!(output.stdout.is_empty());
        }
    };
    for code in [Code::NotFound, Code::InvalidArgument, Code::AlreadyExists, Code::OutOfRange] {
        refused(code, 2, &["error: finals is", "not right"]);
    }
    for code in [Code::FailedPrecondition, Code::Aborted] {
        refused(code, 1, &["error: finals is", "not right"]);
    }
    refused(Code::Unauthenticated, 3, &["not right", "--token or ARBITER_TOKEN"]);
    refused(Code::PermissionDenied, 3, &["not right", "--token or ARBITER_TOKEN"]);
    refused(Code::Unavailable, 3, &["lost the connection", "is it running?", "--server"]);
    refused(Code::ResourceExhausted, 1, &["not right", "later"]);
    refused(Code::Unimplemented, 1, &["does not support this command", "same version"]);
    refused(Code::Internal, 1, &["the coordinator failed", "not right"]);
}

#[test]
fn an_unreachable_coordinator_is_named() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = format!("http://{unused}");
    for arguments in
        ["ranking finals", "tournament list", "bots finals", "match finals/2", "token list"]
    {
        let arguments: Vec<_> = arguments.split(' ').collect();
        let output = call(&server, &arguments).output().unwrap();
        fails(&output, 3, &[&server, "refused", "running", "--server"]);
    }
}

#[test]
fn invalid_arguments_are_explained() {
    let server = Server::start(board());
    let refuses = |arguments: &str, says: &[&str]| {
        let arguments: Vec<_> = arguments.split(' ').collect();
        fails(&run(&server, &arguments), 2, says);
    };
    refuses("ranking", &["T", "--help"]);
    refuses("ranking finals --format xml", &["xml", "table", "json", "csv"]);
    refuses("ranking finals --limit 0", &["0", "--limit"]);
    refuses("ranking finals --json --format csv", &["--json", "--format"]);
    refuses("ranking finals --server localhost:7700", &["localhost:7700", "http://HOST:PORT"]);
    refuses("ranking finals --ca /nowhere.pem", &["https:// only"]);
    refuses("ranking finals --cert a.pem", &["--key"]);
    refuses("match seven", &["seven", "TOURNAMENT/NUMBER"]);
    refuses("tournament retry 7", &["TOURNAMENT/NUMBER"]);
    refuses("tournament show", &["T", "--help"]);
    refuses("token create", &["--role"]);
    refuses("token create --role king", &["king", "organiser"]);
    refuses("token create --role player --name=", &["1 to 64 characters"]);
    let hidden = "token create --role player --name evil\u{202e}gnp";
    refuses(hidden, &["evil\\u{202e}gnp", "U+202E, its character 5"]);
    refuses("token create --role player --name 7", &["\"7\"", "add a letter"]);
    refuses("token create --role player --expires yesterday", &["yesterday", "90d"]);
    refuses("token create --role player --expires 2001-01-01T00:00:00Z", &["--expires"]);
    refuses("token rotate 3 --overlap soon", &["soon", "30min"]);
    refuses("log finals", &["BOT"]);
    assert!(server.received.lock().unwrap().calls.is_empty(), "no request is sent");
}

#[test]
fn tokens_are_shown_once_and_sent_with_every_call() {
    let token = |id, revoked| Token {
        id,
        role: "worker".into(),
        name: "cellar".into(),
        revoked,
        created_at_us: 1_000_000_000_000_000,
        expires_at_us: 1_000_000_000_000_000 * i64::from(id == 3),
        ..Token::default()
    };
    let tokens = vec![token(1, true), token(2, false), token(3, false)];
    let server = Server::start(Script { tokens, ..Script::default() });
    let authorization = || server.received.lock().unwrap().authorization.clone();
    let output = run(&server, &["token", "create", "--role", "worker", "--name", "cellar"]);
    assert_eq!(output.stdout, b"arb_secret\n", "stdout has only the token, for a shell variable");
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("token 7 for worker cellar; "));
    assert_eq!(authorization(), None);
    let arguments = ["token", "create", "--role", "admin", "--json", "--token", "mine"];
    let object = json!({"id": 7, "role": "admin", "name": "admin", "token": "arb_secret"});
    assert_eq!(crate::json(&server, &arguments), [object]);
    assert_eq!(authorization().as_deref(), Some("Bearer mine"));
    let mut listed = call(&server.url(), &["token", "list"]);
    let listed = listed.env("ARBITER_TOKEN", "theirs").output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert_eq!(listed.lines().nth(1).unwrap().split_whitespace().next_back(), Some("revoked"));
    assert!(listed.lines().nth(3).unwrap().trim_end().ends_with("expired"), "{listed}");
    assert_eq!(authorization().as_deref(), Some("Bearer theirs"));
    assert_eq!(crate::json(&server, &["token", "list", "--json"])[1]["revoked"], false);
    let rotated = run(&server, &["token", "rotate", "cellar", "--overlap", "2h"]);
    assert_eq!(rotated.stdout, b"arb_other\n");
    let stderr = String::from_utf8_lossy(&rotated.stderr);
    assert!(stderr.contains("the previous secret is valid until 2001-09-09"), "{stderr}");
    let calls = server.received.lock().unwrap().calls.clone();
    assert_eq!(calls.last().map(String::as_str), Some("rotate cellar 7200000000"));
    // A token from before the rules of names may have characters that reorder the text around it.
    let rotated = run(&server, &["token", "rotate", "evil\u{202e}gnp"]);
    let stderr = String::from_utf8_lossy(&rotated.stderr);
    assert!(stderr.contains("evil\u{fffd}gnp") && !stderr.contains('\u{202e}'), "{stderr:?}");
    assert_eq!(succeed(&server, &["token", "revoke", "2"]), "token 2 was revoked\n");
    let calls = &server.received.lock().unwrap().calls;
    assert_eq!(calls.last().map(String::as_str), Some("revoke 2"));
    let help = crate::support::succeed(&["token", "list", "--help"]);
    assert!(help.contains("ARBITER_TOKEN") && !help.contains("theirs"), "{help}");
}
