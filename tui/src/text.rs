//! Characters: whether the terminal can show more than ASCII, and the last gate before it.

use ratatui::buffer::Buffer;
use vramscope_collector::escape;

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Charset {
    /// UTF-8.
    #[default]
    Unicode,
    /// Seven bits.
    Ascii,
}

impl Charset {
    /// What the locale says, by the rule of POSIX: the first of `LC_ALL`, `LC_CTYPE`, `LANG` that
    /// is set and not empty names the encoding; without any it is ASCII.
    pub fn detect(env: impl Fn(&str) -> Option<String>) -> Charset {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .filter_map(env)
            .find(|value| !value.is_empty())
            .unwrap_or_default()
            .to_ascii_lowercase();
        if locale.contains("utf-8") || locale.contains("utf8") {
            Charset::Unicode
        } else {
            Charset::Ascii
        }
    }
}

/// The last gate: whatever a view has drawn, no cell leaves with a character that a terminal might
/// obey, and on an ASCII terminal none that it cannot show.
pub fn gate(buffer: &mut Buffer, charset: Charset) {
    for cell in &mut buffer.content {
        let symbol = cell.symbol();
        match (symbol.as_bytes(), charset) {
            ([b' '..=b'~'], _) => continue,
            // Box drawing, blocks and shapes: most of what is drawn and not ASCII.
            ([0xe2, 0x94..=0x97, _], Charset::Unicode) => continue,
            _ => {}
        }
        match charset {
            Charset::Ascii => {
                let plain = symbol.chars().next().map_or(' ', ascii);
                cell.set_char(plain);
            }
            Charset::Unicode if !symbol.chars().all(escape::printable) => {
                cell.set_char('?');
            }
            Charset::Unicode => {}
        }
    }
}

/// The nearest ASCII character to one that our own drawing uses; `?` for a foreign one.
pub fn ascii(char: char) -> char {
    match char {
        ' '..='~' => char,
        '─' | '━' | '–' | '—' | '╌' | '╴' => '-',
        '│' | '┃' => '|',
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' | '╭' | '╮' | '╰' | '╯' => {
            '+'
        }
        '█' | '▇' | '▆' => '#',
        '▓' | '▅' | '▄' => '=',
        '▒' | '▃' => '-',
        '░' | '▁' | '▂' => '_',
        '▚' => '%',
        '▲' | '△' | '↑' | '▴' => '^',
        '▼' | '▽' | '▾' | '↓' => 'v',
        '▸' | '›' | '❯' | '→' | '»' => '>',
        '◂' | '‹' | '←' | '«' => '<',
        '●' | '◆' | '✖' | '✗' => 'x',
        '○' | '◇' => 'o',
        '✓' => '*',
        '·' | '…' | '•' => '.',
        '±' | 'Δ' => '~',
        '≤' => '<',
        '≥' => '>',
        '×' => 'x',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use super::*;

    fn charset(pairs: &[(&str, &str)]) -> Charset {
        Charset::detect(|name| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_locale_decides() {
        assert_eq!(charset(&[]), Charset::Ascii);
        assert_eq!(charset(&[("LANG", "C")]), Charset::Ascii);
        assert_eq!(charset(&[("LANG", "en_US.UTF-8")]), Charset::Unicode);
        assert_eq!(
            charset(&[("LANG", "en_US.UTF-8"), ("LC_ALL", "POSIX")]),
            Charset::Ascii
        );
        assert_eq!(
            charset(&[("LC_ALL", ""), ("LC_CTYPE", "de_DE.utf8")]),
            Charset::Unicode
        );
    }

    #[test]
    fn nothing_passes_the_gate() {
        let area = Rect::new(0, 0, 6, 1);
        let mut buffer = Buffer::empty(area);
        for (x, symbol) in ["\x1b", "a", "a\u{200d}", "\u{202e}", "█", "学"]
            .into_iter()
            .enumerate()
        {
            buffer[(x as u16, 0)].set_symbol(symbol);
        }
        let mut ascii = buffer.clone();
        gate(&mut buffer, Charset::Unicode);
        assert_eq!(symbols(&buffer), ["?", "a", "?", "?", "█", "学"]);
        gate(&mut ascii, Charset::Ascii);
        assert_eq!(symbols(&ascii), ["?", "a", "a", "?", "#", "?"]);
    }

    fn symbols(buffer: &Buffer) -> Vec<&str> {
        buffer.content.iter().map(|cell| cell.symbol()).collect()
    }
}
