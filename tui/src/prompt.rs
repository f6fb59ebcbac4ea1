//! The line in which a filter is typed.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::table::Filter;

/// More than anybody types; a pasted file does not become a filter.
const MAX_CHARS: usize = 200;

/// Text, cursor, and what is wrong with it.
#[derive(Clone, Debug, Default)]
pub struct Prompt {
    before: String,
    after: String,
    /// Why this is no filter.
    pub error: Option<String>,
}

/// What a key did.
#[derive(Debug)]
pub enum Edited {
    /// The line changed, or nothing did.
    Goes,
    /// The line holds: use this filter.
    Done(Option<Filter>),
    /// Leave everything as it was.
    Cancelled,
}

impl Prompt {
    /// Starts with `text`, the cursor at its end.
    pub fn new(text: &str) -> Prompt {
        Prompt {
            before: text.to_owned(),
            ..Prompt::default()
        }
    }

    /// The text before and after the cursor.
    pub fn parts(&self) -> (&str, &str) {
        (&self.before, &self.after)
    }

    /// Takes a key.
    pub fn edit(&mut self, key: &KeyEvent) -> Edited {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Edited::Cancelled,
            KeyCode::Char('c' | 'g') if control => return Edited::Cancelled,
            KeyCode::Enter => {
                return match Filter::parse(&self.text()) {
                    Ok(filter) => Edited::Done(filter),
                    Err(error) => {
                        self.error = Some(error);
                        Edited::Goes
                    }
                };
            }
            KeyCode::Char('u') if control => {
                self.before.clear();
                self.after.clear();
            }
            KeyCode::Char('w') if control => {
                let kept = self.before.trim_end();
                let kept = kept.trim_end_matches(|char: char| !char.is_whitespace());
                self.before.truncate(kept.len());
            }
            KeyCode::Backspace => drop(self.before.pop()),
            KeyCode::Delete => {
                self.after = self.after.chars().skip(1).collect();
            }
            KeyCode::Left => {
                if let Some(char) = self.before.pop() {
                    self.after.insert(0, char);
                }
            }
            KeyCode::Right => {
                let mut rest = self.after.chars();
                self.before.extend(rest.next());
                self.after = rest.collect();
            }
            KeyCode::Home => {
                self.after.insert_str(0, &self.before);
                self.before.clear();
            }
            KeyCode::End => {
                self.before.push_str(&self.after);
                self.after.clear();
            }
            KeyCode::Char(char) if !control && self.text().chars().count() < MAX_CHARS => {
                self.before.push(char);
            }
            _ => return Edited::Goes,
        }
        self.error = Filter::parse(&self.text()).err();
        Edited::Goes
    }

    fn text(&self) -> String {
        format!("{}{}", self.before, self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(prompt: &mut Prompt, code: KeyCode) -> Edited {
        prompt.edit(&KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn edits_like_a_line() {
        let mut prompt = Prompt::new("tran");
        press(&mut prompt, KeyCode::Left);
        press(&mut prompt, KeyCode::Char('i'));
        press(&mut prompt, KeyCode::End);
        press(&mut prompt, KeyCode::Char('é'));
        assert_eq!(prompt.parts(), ("trainé", ""));
        press(&mut prompt, KeyCode::Backspace);
        press(&mut prompt, KeyCode::Home);
        press(&mut prompt, KeyCode::Delete);
        assert_eq!(prompt.parts(), ("", "rain"));
        let done = press(&mut prompt, KeyCode::Enter);
        assert!(matches!(done, Edited::Done(Some(filter)) if filter.text() == "rain"));
    }

    #[test]
    fn says_what_is_wrong_and_stays() {
        let mut prompt = Prompt::new("");
        press(&mut prompt, KeyCode::Char('('));
        assert!(prompt.error.is_some());
        assert!(matches!(press(&mut prompt, KeyCode::Enter), Edited::Goes));
        press(&mut prompt, KeyCode::Char(')'));
        assert!(prompt.error.is_none());
    }
}
