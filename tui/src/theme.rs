//! Roles and their looks. Words keep to the 16 colours that every terminal lets its user choose;
//! areas take calmer ones where there are 256. Nothing is told by colour alone.

use ratatui::style::{Color, Modifier, Style};

use crate::text::Charset;

/// What a piece of the screen is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Plain text.
    Text,
    /// What the eye should find.
    Strong,
    /// What it may skip.
    Quiet,
    /// Headings.
    Title,
    /// Names of keys.
    Key,
    /// The user's own code.
    Code,
    /// Trouble.
    Alarm,
    /// Trouble may come.
    Warn,
    /// All is well.
    Good,
    /// The row under the cursor.
    Selected,
    /// Charts: bytes that stay over a whole step (the floor).
    Stays,
    /// Charts: bytes that come and go within a step.
    Flows,
    /// Charts: reserved and not allocated.
    Cached,
    /// Charts: the process's bytes that the framework does not manage.
    Outside,
}

/// Which colours to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Palette {
    /// None, only bold, dim and reversed.
    Mono,
    /// Colours that read well on a dark ground.
    #[default]
    Dark,
    /// Colours that read well on a light ground.
    Light,
}

impl Palette {
    /// What the environment asks for: `NO_COLOR` (<https://no-color.org>: set and not empty),
    /// `TERM=dumb`, and `COLORFGBG`, whose last field is the ground (0–6 and 8 are dark).
    pub fn detect(env: impl Fn(&str) -> Option<String>) -> Palette {
        let colourless = env("NO_COLOR").is_some_and(|value| !value.is_empty())
            || env("TERM").is_some_and(|term| term == "dumb" || term.starts_with("vt1"));
        if colourless {
            return Palette::Mono;
        }
        let ground = env("COLORFGBG").and_then(|value| {
            value
                .rsplit(';')
                .next()
                .and_then(|last| last.parse::<u8>().ok())
        });
        match ground {
            Some(7 | 9..=15) => Palette::Light,
            _ => Palette::Dark,
        }
    }
}

/// How many colours the terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Depth {
    /// The 16 that its user chose.
    Sixteen,
    /// These and 240 fixed ones.
    #[default]
    Many,
}

impl Depth {
    /// What the environment says: `COLORTERM` set, or a `TERM` that names 256 colours.
    pub fn detect(env: impl Fn(&str) -> Option<String>) -> Depth {
        let many = env("COLORTERM").is_some_and(|value| !value.is_empty())
            || env("TERM").is_some_and(|term| term.contains("256") || term.contains("direct"));
        if many { Depth::Many } else { Depth::Sixteen }
    }
}

/// How things look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Theme {
    /// Colours.
    pub palette: Palette,
    /// How many of them.
    pub depth: Depth,
    /// Characters.
    pub charset: Charset,
}

impl Theme {
    /// The look of `role`.
    pub fn style(self, role: Role) -> Style {
        let plain = Style::new();
        let style = match role {
            Role::Text | Role::Code | Role::Stays | Role::Flows | Role::Cached | Role::Outside => {
                plain
            }
            Role::Strong | Role::Title | Role::Key | Role::Alarm | Role::Warn => {
                plain.add_modifier(Modifier::BOLD)
            }
            Role::Good => plain,
            Role::Quiet => plain.add_modifier(Modifier::DIM),
            // The colours of what is below would look like patches.
            Role::Selected => plain
                .fg(Color::Reset)
                .bg(Color::Reset)
                .add_modifier(Modifier::REVERSED)
                .remove_modifier(Modifier::DIM),
        };
        match self.colour(role) {
            Some(colour) => style.fg(colour),
            None => style,
        }
    }

    /// The colour of `role`; `None` for the terminal's own.
    pub fn colour(self, role: Role) -> Option<Color> {
        let many = self.depth == Depth::Many;
        let (dark, light) = match role {
            Role::Text | Role::Strong | Role::Quiet | Role::Title | Role::Selected => return None,
            Role::Key | Role::Code if many => (Color::Indexed(110), Color::Indexed(25)),
            Role::Key | Role::Code => (Color::Cyan, Color::Blue),
            Role::Alarm => (Color::LightRed, Color::Red),
            Role::Warn => (Color::Yellow, Color::Magenta),
            Role::Good => (Color::Green, Color::Green),
            // Steel blue, a greyish green, grey, mauve.
            Role::Stays if many => (Color::Indexed(67), Color::Indexed(67)),
            Role::Flows if many => (Color::Indexed(109), Color::Indexed(110)),
            Role::Cached if many => (Color::Indexed(240), Color::Indexed(250)),
            Role::Outside if many => (Color::Indexed(139), Color::Indexed(139)),
            Role::Stays => (Color::Blue, Color::Blue),
            Role::Flows => (Color::Cyan, Color::Cyan),
            Role::Cached => (Color::DarkGray, Color::Gray),
            Role::Outside => (Color::Magenta, Color::Magenta),
        };
        match self.palette {
            Palette::Mono => None,
            Palette::Dark => Some(dark),
            Palette::Light => Some(light),
        }
    }

    /// The character that fills `role`'s share of a chart where colour does not tell it.
    pub fn fill(self, role: Role) -> &'static str {
        let coloured = self.palette != Palette::Mono;
        match (self.charset, role) {
            (Charset::Unicode, Role::Stays) => "█",
            (Charset::Unicode, Role::Flows) => {
                if coloured {
                    "█"
                } else {
                    "▒"
                }
            }
            (Charset::Unicode, Role::Cached) => {
                if coloured {
                    "█"
                } else {
                    "░"
                }
            }
            (Charset::Unicode, Role::Outside) => {
                if coloured {
                    "█"
                } else {
                    "▚"
                }
            }
            (Charset::Unicode, _) => "·",
            (Charset::Ascii, Role::Stays) => "#",
            (Charset::Ascii, Role::Flows) => "=",
            (Charset::Ascii, Role::Cached) => "-",
            (Charset::Ascii, Role::Outside) => "%",
            (Charset::Ascii, _) => ".",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn palette(pairs: &[(&str, &str)]) -> Palette {
        Palette::detect(|name| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_decides() {
        assert_eq!(palette(&[]), Palette::Dark);
        assert_eq!(palette(&[("NO_COLOR", "")]), Palette::Dark);
        assert_eq!(palette(&[("NO_COLOR", "1")]), Palette::Mono);
        assert_eq!(palette(&[("TERM", "dumb")]), Palette::Mono);
        assert_eq!(palette(&[("COLORFGBG", "15;0")]), Palette::Dark);
        assert_eq!(palette(&[("COLORFGBG", "0;default;15")]), Palette::Light);
    }
}
