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
use coordinator::{Coordinator, Place, lease, lot};
use rustix::process::{Pid, Signal, kill_process};
use support::{arbiter, run};

/// A worker of `place`.
fn start(coordinator: &Coordinator, place: &Place) -> Child {
    let mut command = arbiter();
    command.args(["worker", "--slots", "1", "--coordinator", &coordinator.address]);
    command.arg("--spool").arg(place.spool()).stderr(Stdio::null()).spawn().unwrap()
}

fn send_signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_survives_a_kill() {
    let mut coordinator = Coordinator::start().await;
    let place = Place::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let center = coordinator.submit(&root.join("bots/gomoku/center"));
    let mut worker = start(&coordinator, &place);
    let mut line = coordinator.welcome().await;
    assert_eq!(line.room().await, 1);
    line.send(CoordinatorPayload::Lot(lot(1, "gomoku", &[&[center.clone(), center.clone()]])))
        .await;
    let report = line.report().await;
    assert!(report.results[0].seats.iter().all(|seat| seat.forfeit == 0), "{report:?}");
    send_signal(&worker, Signal::KILL);
    worker.wait().unwrap();
    drop(line);

    let mut worker = start(&coordinator, &place);
    let mut line = coordinator.welcome().await;
    assert_eq!(line.report().await, report);
    line.judge(report.lease, v1::ReportStatus::Accepted).await;

    // It ends when it is told to, and gives back what will not end by then.
    let silent = coordinator.submit(&place.bot("silent", coordinator::SILENT));
    line.send(CoordinatorPayload::Lot(lot(2, "gomoku", &[&[silent.clone(), silent.clone()]])))
        .await;
    while line.renewed().await != [lease(2)] {}
    send_signal(&worker, Signal::TERM);
    send_signal(&worker, Signal::INT);
    let rest = line.rest().await;
    let back =
        v1::worker_message::Payload::ReturnLeases(v1::ReturnLeases { leases: vec![lease(2)] });
    assert_eq!(rest.last(), Some(&back));
    drop(line);
    assert_eq!(worker.wait().unwrap().code(), Some(0));
    assert_eq!(fs::read_dir(place.spool().join("reports")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_explains_why_it_cannot_start() {
    let coordinator = Coordinator::start_for(Some("secret")).await;
    let place = Place::new();
    let spool = place.spool().display().to_string();
    let call = |more: &[&str]| {
        let output = run(&[&["worker", "--spool", &spool][..], more].concat());
        let printed = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), printed.lines().last().unwrap_or_default().to_owned())
    };
    let there = ["--coordinator", &coordinator.address];
    let cases: [(&[&str], i32, &str); 8] = [
        (&[], 2, "--coordinator"),
        (&["--coordinator", "localhost:1"], 2, "write http://HOST:PORT"),
        (&[there[0], there[1], "--slots", "0"], 2, "use 1 to"),
        (&[there[0], there[1], "--drain", "soon"], 2, "--drain soon"),
        (
            &[there[0], there[1], "--sandbox", "on"],
            2,
            "use auto, strict, namespaces, landlock or off",
        ),
        (&[there[0], there[1], "--cert", "c.pem"], 2, "--key"),
        (&[there[0], there[1], "--ca", "c.pem"], 2, "https:// only"),
        (&[there[0], there[1], "--token", "wrong"], 3, "refused this worker: no such token"),
    ];
    for (arguments, code, said) in cases {
        let (exit, printed) = call(arguments);
        assert_eq!((exit, printed.contains(said)), (code, true), "{arguments:?}: {printed}");
    }
    let open = arbiter_worker::spool::Spool::open(&place.spool()).unwrap();
    let (exit, printed) = call(&there);
    assert_eq!((exit, printed.contains("another worker uses")), (3, true), "{printed}");
    drop(open);
}
