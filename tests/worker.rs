//! `arbiter worker` as a process: it is killed, started again, and stopped.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

#[path = "../worker/tests/support/mod.rs"]
mod coordinator;
mod support;

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use arbiter_proto::v1;
use arbiter_proto::v1::coordinator_message::Payload as CoordinatorPayload;
use coordinator::{Coordinator, TestDirectory, lease, lot};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{arbiter, run};

/// A worker of `directory`.
fn start(coordinator: &Coordinator, directory: &TestDirectory) -> Child {
    let mut command = arbiter();
    command.args(["worker", "--slots", "1", "--coordinator", &coordinator.address]);
    command.arg("--spool").arg(directory.spool()).stderr(Stdio::null()).spawn().unwrap()
}

fn send_signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// A lot of gomoku in which no bot loses on time, however busy the machine is.
fn patient_lot(number: i64, bot: &[u8]) -> v1::Lot {
    let lot = lot(number, "gomoku", &[&[bot.to_vec(), bot.to_vec()]]);
    let mut settings: Value = serde_json::from_str(&lot.settings).unwrap();
    settings["params"]["move_limit"] = "1h".into();
    v1::Lot { settings: settings.to_string(), ..lot }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_survives_a_kill() {
    let mut coordinator = Coordinator::start().await;
    let directory = TestDirectory::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let center = coordinator.submit(&root.join("bots/gomoku/center"));
    let mut worker = start(&coordinator, &directory);
    let mut stream = coordinator.welcome().await;
    assert_eq!(stream.capacity().await, 1);
    stream.send(CoordinatorPayload::Lot(patient_lot(1, &center))).await;
    let report = stream.report().await;
    assert!(report.results[0].seats.iter().all(|seat| seat.forfeit == 0), "{report:?}");
    send_signal(&worker, Signal::KILL);
    worker.wait().unwrap();
    drop(stream);

    let mut worker = start(&coordinator, &directory);
    let mut stream = coordinator.welcome().await;
    assert_eq!(stream.report().await, report);
    stream.respond(report.lease, v1::ReportStatus::Accepted).await;

    // It ends when it is told to, and gives back what will not end by then.
    let silent = coordinator.submit(&directory.bot("silent", coordinator::SILENT));
    stream.send(CoordinatorPayload::Lot(patient_lot(2, &silent))).await;
    while stream.renewed_leases().await != [lease(2)] {}
    send_signal(&worker, Signal::TERM);
    send_signal(&worker, Signal::INT);
    let messages = stream.receive_all().await;
    let back =
        v1::worker_message::Payload::ReturnLeases(v1::ReturnLeases { leases: vec![lease(2)] });
    assert_eq!(messages.last(), Some(&back));
    drop(stream);
    assert_eq!(worker.wait().unwrap().code(), Some(0));
    assert_eq!(fs::read_dir(directory.spool().join("reports")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_explains_why_it_cannot_start() {
    let coordinator = Coordinator::start_for(Some("secret")).await;
    let directory = TestDirectory::new();
    let spool = directory.spool().display().to_string();
    let call = |more: &[&str]| {
        let output = run(&[&["worker", "--spool", &spool][..], more].concat());
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), stderr.lines().last().unwrap_or_default().to_owned())
    };
    let to_coordinator = ["--coordinator", &coordinator.address];
    let cases: [(&[&str], i32, &str); 8] = [
        (&[], 2, "--coordinator"),
        (&["--coordinator", "localhost:1"], 2, "write http://HOST:PORT"),
        (&[to_coordinator[0], to_coordinator[1], "--slots", "0"], 2, "use 1 to"),
        (&[to_coordinator[0], to_coordinator[1], "--drain", "soon"], 2, "--drain soon"),
        (
            &[to_coordinator[0], to_coordinator[1], "--sandbox", "on"],
            2,
            "use auto, strict, namespaces, landlock or off",
        ),
        (&[to_coordinator[0], to_coordinator[1], "--cert", "c.pem"], 2, "--key"),
        (&[to_coordinator[0], to_coordinator[1], "--ca", "c.pem"], 2, "https:// only"),
        (
            &[to_coordinator[0], to_coordinator[1], "--token", "wrong"],
            3,
            "refused this worker: no such token",
        ),
    ];
    for (arguments, code, part) in cases {
        let (exit, stderr) = call(arguments);
        assert_eq!((exit, stderr.contains(part)), (code, true), "{arguments:?}: {stderr}");
    }
    let open = arbiter_worker::spool::Spool::open(&directory.spool()).unwrap();
    let (exit, stderr) = call(&to_coordinator);
    assert_eq!((exit, stderr.contains("another worker uses")), (3, true), "{stderr}");
    drop(open);
}
