//! The accessibility linter axe-core, run within the page. `scripts/prepare-browser.sh` fetches it.

use std::env;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::chrome::Chrome;

/// The build directory: this program is in `debug/deps` below it.
pub(crate) fn build_directory() -> PathBuf {
    env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned()
}

/// The linter.
#[derive(Debug)]
pub(crate) struct Axe {
    script: String,
}

impl Axe {
    /// The linter, if it was fetched. Otherwise prints that it is skipped.
    pub(crate) fn find() -> Option<Self> {
        let script = build_directory().join("axe/node_modules/axe-core/axe.min.js");
        match fs::read_to_string(&script) {
            Ok(script) => Some(Self { script }),
            Err(error) => {
                assert!(env::var_os("ARBITER_BROWSER").is_none(), "{}: {error}", script.display());
                eprintln!("skipped: axe-core is not in {} (./test fetches it)", script.display());
                None
            }
        }
    }

    /// The violations of WCAG 2.1 AA on the page, a line for each rule and element.
    pub(crate) fn violations(&self, chrome: &Chrome) -> Vec<String> {
        chrome.run(&format!("{}; window.axe = axe;", self.script));
        let violations = chrome.run_promise(
            "const found = await axe.run(document, {
                runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'],
                resultTypes: ['violations'],
            });
            return found.violations.flatMap((rule) => rule.nodes.map((node) =>
                `${rule.id}: ${node.target.join(' ')}: ${node.failureSummary.replaceAll('\\n', ' ')}`));",
        );
        let Value::Array(lines) = violations else { panic!("the linter failed: {violations}") };
        lines.iter().map(|line| line.as_str().unwrap().to_owned()).collect()
    }
}
