//! In which edition a version plays, in words.

use crate::v1::EntryForecast;

impl EntryForecast {
    /// The forecast in words. If [`EntryForecast::at_us`] is not 0, the text ends before the time.
    pub fn text(&self) -> String {
        let Self { edition, at_us, .. } = self;
        let plays = if self.after_trial {
            "if it passes its trial, it plays in edition"
        } else {
            "it plays in edition"
        };
        let about = |text: &str| if *at_us == 0 { String::new() } else { text.to_owned() };
        match self.state.as_str() {
            "planning" => format!("{plays} {edition}, which is being planned"),
            "running" => {
                let about = about("; it will be complete at about");
                format!("{plays} {edition}, which is running{about}")
            }
            "complete" => format!("it played in edition {edition}, which is complete"),
            "due" => format!("{plays} {edition}{}", about(", which opens at about")),
            "manual" => format!("{plays} {edition}, which an organiser starts"),
            "short" => format!("{plays} {edition}, as soon as enough bots have entered"),
            _ => format!("{plays} {edition}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_its_words() {
        let text = |state: &str, after_trial: bool, at_us: i64| {
            let state = state.to_owned();
            EntryForecast { edition: 4, state, after_trial, at_us, path: String::new() }.text()
        };
        let due = "it plays in edition 4, which opens at about";
        assert_eq!(text("due", false, 1), due);
        assert_eq!(text("due", true, 1), format!("if it passes its trial, {due}"));
        let running = "it plays in edition 4, which is running";
        assert_eq!(text("running", false, 0), running);
        let about = format!("{running}; it will be complete at about");
        assert_eq!(text("running", false, 1), about);
        assert_eq!(text("manual", false, 0), "it plays in edition 4, which an organiser starts");
        assert_eq!(text("a later state", false, 0), "it plays in edition 4");
    }
}
