//! Game packages that a worker cannot load.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use arbiter_proto::settings::{GamePackage, HexDigest};
use arbiter_proto::v1;
use arbiter_proto::v1::coordinator_message::Payload as CoordinatorPayload;
use serde_json::{Value, json};

use crate::archive;
use crate::support::{Coordinator, TestDirectory, lease, lot};

/// The descriptor of a shipped package.
fn rps_descriptor() -> String {
    let game = Path::new(env!("CARGO_MANIFEST_DIR")).join("../games/packages/rps/game.toml");
    fs::read_to_string(game).unwrap()
}

/// A lot of rps, whose package has this bundle.
fn package_lot(number: i64, bundle: &[u8]) -> CoordinatorPayload {
    let bundle = HexDigest(blake3::Hash::from_slice(bundle).unwrap());
    let package = GamePackage { bundle, digest: bundle, descriptor: rps_descriptor() };
    let mut message = lot(number, "rps", &[&[vec![1; 32], vec![2; 32]]]);
    let mut settings: Value = serde_json::from_str(&message.settings).unwrap();
    settings["package"] = json!(package);
    message.settings = settings.to_string();
    CoordinatorPayload::Lot(message)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_that_cannot_be_loaded_is_a_fault_of_the_rules_and_pauses_no_slot() {
    let mut coordinator = Coordinator::start().await;
    let directory = TestDirectory::new();
    let bundle = coordinator.serve(b"no package");
    let worker = directory.work(&coordinator, 1);
    let mut stream = coordinator.welcome().await;
    stream.capacity().await;
    for number in [1, 2] {
        stream.send(package_lot(number, &bundle)).await;
        let fault = stream.fault().await;
        assert_eq!(fault.lease, Some(lease(number)));
        assert_eq!(fault.kind(), v1::FaultKind::Rules, "{fault:?}");
        assert!(fault.reason.starts_with("the rules failed: game package: "), "{fault:?}");
        assert_eq!(stream.capacity().await, 1, "the slot is idle");
    }
    assert_eq!(coordinator.fetch_count(&bundle), 1, "the worker remembers it");
    worker.kill(&directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_one_machine_lacks_is_no_fault_of_the_rules() {
    let mut coordinator = Coordinator::start().await;
    let directory = TestDirectory::new();
    let shipped = rps_descriptor();
    let lacking = shipped.replace("\"node\"", "\"no-such-interpreter\"");
    assert_ne!(shipped, lacking);
    let bundle = coordinator.serve(&archive(&[("game.toml", &lacking), ("rules.js", "")]));
    let worker = directory.work(&coordinator, 1);
    let mut stream = coordinator.welcome().await;
    stream.capacity().await;
    for number in [1, 2] {
        stream.send(package_lot(number, &bundle)).await;
        let fault = stream.fault().await;
        assert_eq!(fault.kind(), v1::FaultKind::Inputs, "{fault:?}");
        let cause = "its program `no-such-interpreter` is not on the PATH; install it";
        assert!(fault.reason.contains(cause), "{fault:?}");
        assert_eq!(stream.capacity().await, 1, "after a pause");
    }
    assert_eq!(coordinator.fetch_count(&bundle), 2, "it may be installed meanwhile");
    worker.kill(&directory).await;
}
