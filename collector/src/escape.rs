//! Makes foreign text (paths, function names, source lines, command lines) harmless.
//!
//! Whoever runs code in the traced process chooses these texts: an escape sequence in a function
//! name must not reach the terminal, a bidirectional override must not reorder a line, and ten
//! kilobytes must not fill the screen. What is not printable is written out (`\n`, `\x1b`,
//! `\u{202e}`), so that it is seen instead of obeyed. A backslash itself stays as it is: the
//! result is for eyes, not for parsers, and escaping twice changes nothing.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Combining marks that may follow one base character before the rest is written out.
const MARKS: usize = 4;

/// What stands for the part that was cut off.
pub const ELLIPSIS: char = '…';

/// `text` with everything written out that is not printable. Idempotent.
pub fn text(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut pieces = Pieces::default();
    for char in text.chars() {
        pieces.push(char, &mut out);
    }
    Cow::Owned(out)
}

/// Like [`text`], and at most `columns` terminal columns wide: what is too long loses its end to
/// an ellipsis. Reads no more of `text` than it shows. Idempotent at one width.
pub fn line(text: &str, columns: usize) -> String {
    let mut out = String::new();
    let mut pieces = Pieces::default();
    // Where the text must end if an ellipsis has to follow.
    let mut cut = 0;
    let mut used = 0;
    for char in text.chars() {
        let before = out.len();
        pieces.push(char, &mut out);
        used += columns_of(&out[before..]);
        if used > columns {
            out.truncate(cut);
            if columns > 0 {
                out.push(ELLIPSIS);
            }
            return out;
        }
        if used < columns {
            cut = out.len();
        }
    }
    out
}

/// Like [`line()`], but what is too long loses its beginning: for paths, whose end tells most.
pub fn line_end(text: &str, columns: usize) -> String {
    // An escaped character takes at least one column, so more characters than columns cannot fit;
    // marks take none, hence the factor.
    let reach = columns.saturating_mul(MARKS + 1).saturating_add(1);
    let start = text
        .char_indices()
        .rev()
        .take(reach)
        .last()
        .map_or(0, |(index, _)| index);
    let safe = self::text(&text[start..]);
    if start == 0 && width(&safe) <= columns && columns_of(&safe) <= columns {
        return safe.into_owned();
    }
    if columns == 0 {
        return String::new();
    }
    let mut used = 0;
    let mut from = safe.len();
    for (index, char) in safe.char_indices().rev() {
        used += char.width().unwrap_or(0);
        if used >= columns {
            break;
        }
        // A mark never stands first: its base would be missing.
        if !extends(char) {
            from = index;
        }
    }
    format!("{ELLIPSIS}{}", &safe[from..])
}

/// Terminal columns that `text` takes, once it is safe.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The sum over characters: an upper bound of what any terminal makes of it.
fn columns_of(text: &str) -> usize {
    text.chars().map(|char| char.width().unwrap_or(0)).sum()
}

/// Knows how many marks the present base character carries.
#[derive(Default)]
struct Pieces {
    /// `None` before the first base.
    marks: Option<usize>,
}

impl Pieces {
    fn push(&mut self, char: char, out: &mut String) {
        if (' '..='~').contains(&char) {
            self.marks = Some(0);
            out.push(char);
        } else if !printable(char) {
            self.marks = Some(0);
            write_out(char, out);
        } else if extends(char) {
            match &mut self.marks {
                Some(marks) if *marks < MARKS => {
                    *marks += 1;
                    out.push(char);
                }
                _ => write_out(char, out),
            }
        } else {
            self.marks = Some(0);
            out.push(char);
        }
    }
}

fn write_out(char: char, out: &mut String) {
    use std::fmt::Write;
    let result = match char {
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        '\t' => write!(out, "\\t"),
        '\0'..='\u{ff}' => write!(out, "\\x{:02x}", char as u32),
        _ => write!(out, "\\u{{{:x}}}", char as u32),
    };
    debug_assert!(result.is_ok(), "writing to a string cannot fail");
}

/// Whether a character shows and obeys nobody. The standard library's own table (behind
/// `escape_debug`) knows controls, format characters, separators other than the space, private use
/// and unassigned; it lacks the letters and marks that are invisible by definition.
pub fn printable(char: char) -> bool {
    if char.is_ascii() {
        return !char.is_ascii_control();
    }
    let invisible = matches!(
        char as u32,
        0x034f | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f | 0x2800 | 0x3164 | 0xffa0
            | 0xfe00..=0xfe0f | 0xe0000..=0xe0fff
    );
    if invisible {
        return false;
    }
    // `str::escape_debug` writes out a mark only at the start, so the character goes second.
    let mut buffer = [b'a'; 5];
    let length = 1 + char.encode_utf8(&mut buffer[1..]).len();
    std::str::from_utf8(&buffer[..length])
        .is_ok_and(|pair| pair.escape_debug().nth(1) == Some(char))
}

/// Whether a printable character joins the one before it.
fn extends(char: char) -> bool {
    !char.is_ascii() && (char.width() == Some(0) || char.escape_debug().count() > 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn writes_out_what_terminals_obey() {
        assert_eq!(text("\x1b[31mred\x07"), "\\x1b[31mred\\x07");
        assert_eq!(text("a\u{9b}2J"), "a\\x9b2J");
        assert_eq!(text("user\u{202e}gpj.exe"), "user\\u{202e}gpj.exe");
        assert_eq!(text("pa\u{200b}th\u{feff}"), "pa\\u{200b}th\\u{feff}");
        assert_eq!(text("one\ntwo\tthree\r"), "one\\ntwo\\tthree\\r");
        assert_eq!(
            text("\u{e000}\u{378}\u{2028}"),
            "\\u{e000}\\u{378}\\u{2028}"
        );
        assert_eq!(text("\u{a0}\u{3164}"), "\\xa0\\u{3164}");
    }

    #[test]
    fn keeps_what_people_write() {
        for plain in [
            "modèle",
            "学習.py",
            "обучение",
            "C:\\runs\\train.py",
            "it's \"x\"",
            "🚀",
        ] {
            assert_eq!(text(plain), plain);
        }
        assert_eq!(text("e\u{301}"), "e\u{301}", "a mark on its base stays");
        assert_eq!(
            text("\u{301}e"),
            "\\u{301}e",
            "without a base it would join the neighbour"
        );
    }

    #[test]
    fn cuts_by_columns() {
        assert_eq!(line("probe_loss = model(probe)", 12), "probe_loss …");
        assert_eq!(line("probe", 5), "probe");
        assert_eq!(line("学習学習", 5), "学習…");
        assert_eq!(line("学習学習", 4), "学…");
        assert_eq!(line("abc", 0), "");
        assert_eq!(line("abc", 1), "…");
        assert_eq!(line_end("/home/mira/run/train.py", 12), "…un/train.py");
        assert_eq!(line_end("train.py", 8), "train.py");
        assert_eq!(line_end("学習学習", 4), "…習");
        assert_eq!(line_end("abc", 0), "");
    }

    fn any_text() -> impl Strategy<Value = String> {
        let special = prop::sample::select(vec![
            '\x1b',
            '\n',
            '\u{9b}',
            '\u{202e}',
            '\u{200d}',
            '\u{301}',
            '\u{fe0f}',
            '学',
            '\\',
            'a',
            '\u{1f3fd}',
            '👩',
            '\u{e0041}',
            '\u{5d0}',
            '\u{1160}',
        ]);
        prop::collection::vec(prop_oneof![special, any::<char>()], 0..60)
            .prop_map(|chars| chars.into_iter().collect())
    }

    proptest! {
        #[test]
        fn nothing_unprintable_is_left(input in any_text()) {
            let safe = text(&input);
            prop_assert!(safe.chars().all(printable));
            prop_assert!(!safe.chars().any(char::is_control));
            prop_assert_eq!(text(&safe), safe.clone());
        }

        #[test]
        fn cutting_holds_the_width(input in any_text(), columns in 0usize..30) {
            for cut in [line(&input, columns), line_end(&input, columns)] {
                prop_assert!(width(&cut) <= columns, "{:?} is {} wide", cut, width(&cut));
                prop_assert!(cut.chars().all(printable));
            }
            let once = line(&input, columns);
            prop_assert_eq!(line(&once, columns), once);
            let once = line_end(&input, columns);
            prop_assert_eq!(line_end(&once, columns), once);
        }
    }
}
