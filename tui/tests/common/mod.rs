//! Drives the live view with keys on a terminal in memory.
#![allow(dead_code, reason = "not every test uses every helper")]

pub mod pty;

use std::{fmt::Write, io, path::PathBuf, sync::Arc, time::Duration};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{
    Terminal,
    backend::TestBackend,
    buffer::{Buffer, Cell},
    style::{Color, Modifier},
};
use vramscope_collector::view::View;
use vramscope_events::Pid;
use vramscope_tui::{Exit, Feed, Input, Inputs, Options, Source, Theme, run_on};

/// A feed that always says the same.
pub struct Fixed(pub Arc<View>);

impl Feed for Fixed {
    fn view(&mut self) -> Arc<View> {
        Arc::clone(&self.0)
    }

    fn ended(&self) -> Option<String> {
        None
    }
}

/// Keys one by one, a picture between any two; at the end a signal, which changes no picture.
pub struct Script {
    inputs: Vec<Input>,
    pause: bool,
}

impl Script {
    /// Reads keys as in `"jj<enter>/loss<enter>"`.
    pub fn new(keys: &str) -> Script {
        let mut inputs = vec![Input::Terminate(15)];
        let mut keys: Vec<Input> = parse(keys);
        keys.reverse();
        inputs.extend(keys);
        Script {
            inputs,
            pause: false,
        }
    }
}

impl Inputs for Script {
    fn next(&mut self, _timeout: Duration) -> io::Result<Option<Input>> {
        self.pause = !self.pause;
        if !self.pause {
            return Ok(None);
        }
        Ok(self.inputs.pop())
    }
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Input {
    Input::Key(KeyEvent::new(code, modifiers))
}

fn parse(mut text: &str) -> Vec<Input> {
    let mut out = Vec::new();
    while let Some(char) = text.chars().next() {
        let named = text
            .strip_prefix('<')
            .and_then(|rest| rest.split_once('>'))
            .and_then(|(name, rest)| Some((named(name)?, rest)));
        match named {
            Some((code, rest)) => {
                out.push(key(code, KeyModifiers::NONE));
                text = rest;
            }
            None => {
                out.push(key(KeyCode::Char(char), KeyModifiers::NONE));
                text = &text[char.len_utf8()..];
            }
        }
    }
    out
}

fn named(name: &str) -> Option<KeyCode> {
    Some(match name {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "end" => KeyCode::End,
        "home" => KeyCode::Home,
        "down" => KeyCode::Down,
        "up" => KeyCode::Up,
        "right" => KeyCode::Right,
        "left" => KeyCode::Left,
        "pgdn" => KeyCode::PageDown,
        "pgup" => KeyCode::PageUp,
        _ => return None,
    })
}

pub fn options(theme: Theme) -> Options {
    Options {
        source: Source::Process(Pid(4121)),
        theme,
        output_directory: PathBuf::from("/nonexistent"),
        default_signals_after: true,
    }
}

/// The picture after `keys`.
pub fn screen(view: View, keys: &str, size: (u16, u16), theme: Theme) -> Buffer {
    screen_of(&mut Fixed(Arc::new(view)), keys, size, options(theme))
}

pub fn screen_of(feed: &mut dyn Feed, keys: &str, size: (u16, u16), options: Options) -> Buffer {
    let backend = TestBackend::new(size.0, size.1);
    let mut terminal = Terminal::new(backend).expect("memory does not fail");
    let inputs = Box::new(Script::new(keys));
    let exit = run_on(&mut terminal, inputs, feed, options).expect("memory does not fail");
    assert!(matches!(exit, Exit::Left | Exit::Ended | Exit::Signal(15)));
    terminal.backend().buffer().clone()
}

/// The text of a picture.
pub fn text(buffer: &Buffer) -> String {
    let mut out = String::new();
    for row in rows(buffer) {
        let mut line = String::new();
        let mut skip = 0;
        for cell in row {
            // A wide character leaves the next cell to itself.
            if skip > 0 {
                skip -= 1;
                continue;
            }
            skip = unicode_width::UnicodeWidthStr::width(cell.symbol()).saturating_sub(1);
            line.push_str(cell.symbol());
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The text of a picture, and below it where it looks how.
pub fn with_looks(buffer: &Buffer) -> String {
    let mut out = text(buffer);
    out.push_str("---\n");
    for (number, row) in rows(buffer).enumerate() {
        let mut runs: Vec<(usize, usize, String)> = Vec::new();
        for (column, cell) in row.iter().enumerate() {
            let look = look(cell);
            match runs.last_mut() {
                Some((_, last, known)) if *last + 1 == column && *known == look => *last = column,
                _ => runs.push((column, column, look)),
            }
        }
        runs.retain(|(.., look)| !look.is_empty());
        if !runs.is_empty() {
            let runs: Vec<String> = runs
                .iter()
                .map(|(first, last, look)| format!("{first}-{last} {look}"))
                .collect();
            writeln!(out, "{number}: {}", runs.join(", ")).expect("a string takes all");
        }
    }
    out
}

fn rows(buffer: &Buffer) -> impl Iterator<Item = &[Cell]> {
    buffer.content.chunks(usize::from(buffer.area.width.max(1)))
}

fn look(cell: &Cell) -> String {
    let mut parts = Vec::new();
    if cell.fg != Color::Reset {
        parts.push(cell.fg.to_string());
    }
    if cell.bg != Color::Reset {
        parts.push(format!("on {}", cell.bg));
    }
    for (modifier, name) in [
        (Modifier::BOLD, "bold"),
        (Modifier::DIM, "dim"),
        (Modifier::REVERSED, "reversed"),
    ] {
        if cell.modifier.contains(modifier) {
            parts.push(name.to_owned());
        }
    }
    parts.join(" ")
}
