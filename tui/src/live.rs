//! The live view without terminal and clock: messages in, pictures out.

use std::sync::Arc;

use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use vramscope_collector::view::View;

use crate::{
    app::{App, Source},
    theme::Theme,
    update::{Message, update},
    views,
};

/// State that takes keys and views and can be drawn: what [`run`](crate::run) drives, for
/// benchmarks and for programs that have a terminal of their own. Keys that ask for something
/// outside (to leave, to write a file) do nothing here.
pub struct LiveView {
    app: App,
}

impl LiveView {
    /// Looks at `view` for the first time, on a screen of `size` columns and lines.
    pub fn new(theme: Theme, source: Source, size: (u16, u16), view: Arc<View>) -> LiveView {
        LiveView {
            app: App::new(theme, source, size, view),
        }
    }

    /// Takes a key.
    pub fn press(&mut self, key: KeyEvent) {
        // Nobody is there to do what is asked for.
        let _ = update(&mut self.app, Message::Key(key));
    }

    /// Takes a new view: filters, groups and orders what is on the screen.
    pub fn show(&mut self, view: Arc<View>) {
        let _ = update(&mut self.app, Message::View(view));
    }

    /// Draws. Changes nothing.
    pub fn draw(&self, buffer: &mut Buffer) {
        views::draw(&self.app, buffer);
    }
}
