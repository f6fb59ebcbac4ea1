//! Text in columns: wrapping, padding, colour.

use crate::escape;

/// Whether to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// Plain text.
    #[default]
    Never,
    /// ANSI colours, for a terminal.
    Ansi,
}

/// What a piece of text is, which says how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Something is wrong.
    Bad,
    /// Worth watching.
    Watch,
    /// All is well.
    Good,
    /// Look here.
    Strong,
    /// Beside the point.
    Faint,
    /// As it is.
    Plain,
}

impl Color {
    /// `text` in the look of `tone`. Measure before: the codes take no columns.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let code = match (self, tone) {
            (Color::Never, _) | (_, Tone::Plain) => return text.to_owned(),
            (_, Tone::Bad) => "1;31",
            (_, Tone::Watch) => "1;33",
            (_, Tone::Good) => "1;32",
            (_, Tone::Strong) => "1",
            (_, Tone::Faint) => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// `text` (safe already) in lines of at most `width` columns, broken between words; a word that is
/// longer is broken where it must be. Lines after the first begin with `indent` spaces.
pub fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let width = width.max(indent + 8);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    let mut empty = true;
    for mut word in words(text) {
        loop {
            let gap = usize::from(!empty);
            let columns = escape::width(word);
            if used + gap + columns <= width {
                line.extend(std::iter::repeat_n(' ', gap));
                line.push_str(word);
                used += gap + columns;
                empty = false;
                break;
            }
            if empty {
                let at = fitting(word, width - used);
                line.push_str(&word[..at]);
                word = &word[at..];
            }
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            used = indent;
            empty = true;
            if word.is_empty() {
                break;
            }
        }
    }
    if !empty {
        lines.push(line);
    }
    lines
}

/// The words of `text`; a number and its unit are one.
fn words(text: &str) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::new();
    let mut last_start = 0;
    let mut at = 0;
    for word in text.split(' ') {
        let start = at;
        at += word.len() + 1;
        if word.is_empty() {
            continue;
        }
        let unit = word.trim_end_matches([',', ';', '.', ')', ':']);
        let is_unit = UNITS.contains(&unit.split('/').next().unwrap_or(unit));
        match out.last_mut() {
            Some(last) if is_unit && last.ends_with(|c: char| c.is_ascii_digit()) => {
                *last = &text[last_start..start + word.len()];
            }
            _ => {
                last_start = start;
                out.push(word);
            }
        }
    }
    out
}

/// What is never parted from the number before it.
const UNITS: [&str; 13] = [
    "B", "KB", "MB", "GB", "TB", "PB", "EB", "%", "ms", "s", "min", "h", "d",
];

/// The length of the longest beginning of `word` that fits, at least one character.
fn fitting(word: &str, columns: usize) -> usize {
    let ends = word
        .char_indices()
        .map(|(index, char)| index + char.len_utf8());
    let mut best = 0;
    for end in ends {
        if best > 0 && escape::width(&word[..end]) > columns {
            break;
        }
        best = end;
    }
    best
}

/// `text` with spaces after it up to `columns`.
pub fn left(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(escape::width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// `text` with spaces before it up to `columns`.
pub fn right(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(escape::width(text));
    format!("{}{text}", " ".repeat(missing))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn breaks_between_words() {
        assert_eq!(
            wrap("the floor is flat over 1,442 steps", 20, 2),
            ["the floor is flat", "  over 1,442 steps"]
        );
        assert_eq!(wrap("abcdefghijklmnop", 10, 2), ["abcdefghij", "  klmnop"]);
        assert!(wrap("", 10, 2).is_empty());
        assert_eq!(
            wrap("reserved 73.6 GB, at +1.0 MB/step", 17, 0),
            ["reserved 73.6 GB,", "at +1.0 MB/step"]
        );
        assert_eq!(wrap("reserved 73.6 GB", 14, 0), ["reserved", "73.6 GB"]);
    }

    proptest! {
        #[test]
        fn holds_the_width_and_loses_no_word(
            words in prop::collection::vec("[a-z学]{1,30}", 0..12),
            width in 12usize..40,
        ) {
            let lines = wrap(&words.join(" "), width, 3);
            for line in &lines {
                prop_assert!(escape::width(line) <= width);
            }
            let left: String = lines.concat().split_whitespace().collect();
            prop_assert_eq!(left, words.concat());
        }
    }
}
