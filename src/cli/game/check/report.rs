//! The report of a check: one line, and its problem if it found one.

use serde_json::{Value, json};

use super::Stage;
use super::problem::Problem;
use crate::failure::Failure;
use crate::output::{Output, merge};

/// What a check found.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) stage: Stage,
    /// What was checked, in words, and as members of a JSON object.
    pub(super) result: Result<(String, Value), Problem>,
}

impl Report {
    /// Prints the report. `repeat` is the command that repeats the check.
    pub(super) fn print(&self, out: &mut Output, json: bool, repeat: &str) -> Result<(), Failure> {
        if json {
            return out.json(&self.object(repeat));
        }
        let stage = self.stage.as_str();
        match &self.result {
            Ok((text, _)) => out.line(&format!("{stage:<11}  ok      {text}")),
            Err(Problem { cause, place, question, answer }) => {
                let place = place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
                out.line(&format!("{stage:<11}  FAILED  {place}{cause}"))?;
                let rest = [("asked", question), ("answered", answer)];
                for (what, line) in rest {
                    if let Some(line) = line {
                        out.line(&format!("{:>21}{what}: {line}", ""))?;
                    }
                }
                out.line(&format!("{:>21}repeat: {repeat}", ""))
            }
        }
    }

    fn object(&self, repeat: &str) -> Value {
        let check = self.stage.as_str();
        match &self.result {
            Ok((text, members)) => {
                merge(json!({"check": check, "ok": true, "text": text}), members.clone())
            }
            Err(Problem { cause, place, question, answer }) => {
                json!({"check": check, "ok": false, "problem": cause, "match": place,
                    "asked": question, "answered": answer, "repeat": repeat})
            }
        }
    }
}
