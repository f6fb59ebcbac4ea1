//! What the user typed after `/`.

use regex::{Regex, RegexBuilder};
use vramscope_collector::view::FrameView;

/// Compiled size at which a pattern is refused: a slip such as `.{9}{9}{9}{9}` must not take the
/// screen away.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// Keeps the stacks in which a frame matches, or, negated, those in which none does.
#[derive(Clone, Debug)]
pub struct Filter {
    text: String,
    negated: bool,
    regex: Regex,
}

impl Filter {
    /// Reads `text`: a regular expression, case ignored unless it has a capital letter, after `!`
    /// negated. `Ok(None)` for an empty one.
    ///
    /// # Errors
    ///
    /// A line that says what is wrong with the expression.
    pub fn parse(text: &str) -> Result<Option<Filter>, String> {
        let (negated, pattern) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if pattern.is_empty() {
            return Ok(None);
        }
        let regex = RegexBuilder::new(pattern)
            .case_insensitive(!pattern.chars().any(char::is_uppercase))
            .size_limit(MAX_COMPILED_BYTES)
            .build()
            .map_err(|error| last_line(&error))?;
        Ok(Some(Filter {
            text: text.to_owned(),
            negated,
            regex,
        }))
    }

    /// As typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a stack with these frames stays. File, function, source line and `file:line` are
    /// looked at.
    pub fn keeps<'a>(&self, stack: impl IntoIterator<Item = &'a FrameView>) -> bool {
        let mut place = String::new();
        let found = stack.into_iter().any(|frame| {
            use std::fmt::Write;
            place.clear();
            // Writing to a string cannot fail.
            let _ = write!(place, "{}:{}", frame.file, frame.line);
            self.regex.is_match(&place)
                || self.regex.is_match(&frame.function)
                || frame
                    .source
                    .as_deref()
                    .is_some_and(|source| self.regex.is_match(source))
        });
        found != self.negated
    }
}

/// The regex crate draws a picture of the pattern first; its last line is the reason.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use vramscope_events::FrameKind;

    use super::*;

    fn frame(file: &str, function: &str, line: u32) -> FrameView {
        FrameView {
            kind: FrameKind::Python,
            file: Arc::from(file),
            function: Arc::from(function),
            line,
            user: true,
            source: Some(Arc::from("out = model(batch)")),
        }
    }

    #[test]
    fn any_frame_counts() {
        let stack = [
            frame("model.py", "forward", 7),
            frame("train.py", "main", 40),
        ];
        let keeps = |text: &str| {
            let filter = Filter::parse(text).expect("valid").expect("not empty");
            filter.keeps(&stack)
        };
        assert!(keeps("TRAIN".to_lowercase().as_str()));
        assert!(keeps("train.py:40"));
        assert!(!keeps("train.py:4$"));
        assert!(keeps("forw"));
        assert!(!keeps("Forw"), "a capital letter makes it exact");
        assert!(keeps("model\\(batch"));
        assert!(!keeps("!model"));
        assert!(keeps("!optim"));
    }

    #[test]
    fn wrong_patterns_are_explained() {
        assert!(Filter::parse("").expect("fine").is_none());
        assert!(Filter::parse("!").expect("fine").is_none());
        let error = Filter::parse("a(").expect_err("unclosed");
        assert!(error.contains("unclosed group"), "{error}");
        assert!(Filter::parse(".{999}{999}{99}").is_err());
    }
}
