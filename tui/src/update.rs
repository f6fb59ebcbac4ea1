//! A message and the state make the next state, and perhaps something to do outside.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use vramscope_collector::{
    report::units,
    view::{Grouping, View},
};
use vramscope_events::{Layer, Time};

use crate::{
    app::{App, Consent, Note, OpenSite},
    ask, command,
    feed::{Playback, Question},
    keys::{self, Action, Screen},
    prompt::{Edited, Prompt},
    table::{Mark, Order},
    time, views,
};

/// What comes in.
#[derive(Debug)]
pub enum Message {
    /// A key was pressed.
    Key(KeyEvent),
    /// The terminal has this size.
    Size(u16, u16),
    /// There is a new view.
    View(Arc<View>),
    /// Nothing new will come, and why.
    Ended(Option<String>),
    /// The reach of the time cursor.
    Span(Option<(Time, Time)>),
    /// How a recording moves by itself.
    Playback(Option<Playback>),
    /// What asking for holders does, or why nobody can be asked.
    MayAsk(Result<String, String>),
    /// What became of the question about holders.
    Question(Option<Question>),
    /// Something outside is done.
    Note(Note),
}

/// What is to be done outside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// End the live view.
    Leave,
    /// Stop until the shell says so.
    Suspend,
    /// Draw on an empty screen.
    Redraw,
    /// Write a flamegraph of the view on the screen.
    WriteFlamegraph,
    /// Write the report of the view on the screen.
    WriteReport,
    /// Show a recording at this moment.
    Seek(Time),
    /// Let a recording move so.
    Play(Playback),
    /// Ask what holds the survivors of the open site.
    Ask,
}

/// Takes a message.
pub fn update(app: &mut App, message: Message) -> Option<Effect> {
    let effect = match message {
        // Escape and a key that follows at once arrive as one with Alt, which means nothing here.
        Message::Key(key) if key.modifiers.contains(KeyModifiers::ALT) => {
            on_key(app, &KeyEvent::from(KeyCode::Esc));
            let modifiers = key.modifiers - KeyModifiers::ALT;
            on_key(app, &KeyEvent { modifiers, ..key })
        }
        Message::Key(key) => on_key(app, &key),
        Message::Size(columns, lines) => {
            app.size = (columns, lines);
            None
        }
        Message::View(view) => {
            let playing = app.playback.is_some_and(|playback| playback.playing);
            if playing || app.wanted == Some(view.now) {
                app.wanted = None;
            }
            app.latest = view;
            if !app.frozen {
                show_latest(app);
            }
            None
        }
        Message::Ended(why) => {
            app.ended = why;
            None
        }
        Message::Span(span) => {
            app.span = span;
            None
        }
        Message::Playback(playback) => {
            app.playback = playback;
            None
        }
        Message::MayAsk(may_ask) => {
            app.may_ask = may_ask;
            None
        }
        Message::Question(question) => {
            app.question = question;
            None
        }
        Message::Note(note) => {
            app.note = Some(note);
            None
        }
    };
    app.settle();
    effect
}

pub(crate) fn show_latest(app: &mut App) {
    app.view = Arc::clone(&app.latest);
    app.look_again();
}

fn on_key(app: &mut App, key: &KeyEvent) -> Option<Effect> {
    app.note = None;
    if app.prompt.is_some() {
        edit_filter(app, key);
        return None;
    }
    let action = keys::action(key, app.scope());
    if app.consent == Consent::Asked {
        let asks = matches!(key.code, KeyCode::Char('h' | 'y'));
        return ask::answer(app, asks);
    }
    if app.help {
        return on_help_key(app, key, action);
    }
    match action? {
        Action::Leave => return Some(Effect::Leave),
        Action::Suspend => return Some(Effect::Suspend),
        Action::Redraw => return Some(Effect::Redraw),
        Action::Flamegraph => return Some(Effect::WriteFlamegraph),
        Action::Report => return Some(Effect::WriteReport),
        Action::Seek(hundredths) => return time::seek(app, hundredths),
        Action::Help => {
            app.help = true;
            app.help_scroll = 0;
        }
        Action::Back => back(app),
        Action::Open => open(app),
        Action::Show(screen) => show(app, screen),
        Action::NextScreen => turn_screens(app, 1),
        Action::PreviousScreen => turn_screens(app, Screen::ALL.len() - 1),
        Action::Move(rows) => scroll(app, rows as isize),
        Action::Page(pages) => {
            let height = app.table_height().max(1) as isize;
            scroll(app, pages as isize * height);
        }
        Action::First => scroll(app, isize::MIN / 2),
        Action::Last => scroll(app, isize::MAX / 2),
        Action::Neighbour(rows) => neighbour(app, rows as isize),
        Action::Sort | Action::Reverse | Action::Group => reorder(app, action?),
        Action::Holders => {
            if app.site.is_none() {
                open_row(app, app.selected_row());
            }
            return ask::ask(app);
        }
        Action::Filter => {
            let present = app.query.filter.as_ref().map_or("", |filter| filter.text());
            app.prompt = Some(Prompt::new(present));
        }
        Action::Freeze => return time::freeze(app),
        Action::Speed(by) => return time::speed(app, by as isize),
        Action::Mark => mark(app),
        Action::Unmark => unmark(app),
        Action::Process(by) => next_process(app, by as isize),
        Action::Device => next_device(app),
        Action::Layer => {
            app.layer = match app.layer {
                Layer::Tensor => Layer::Driver,
                _ => Layer::Tensor,
            };
            app.forget_rows();
        }
        Action::Window => app.window = app.window.next(&app.view),
        Action::Expand => app.tree.unfold(),
        Action::Collapse => app.tree.fold(),
        Action::ExpandAll => app.tree.unfold_all(),
        Action::Direction => {
            app.tree.bottom_up = !app.tree.bottom_up;
            app.tree.reset();
            app.tree_first = 0;
            app.tree_stale = true;
        }
    }
    None
}

fn on_help_key(app: &mut App, key: &KeyEvent, action: Option<Action>) -> Option<Effect> {
    let by = match action {
        Some(Action::Help | Action::Back) => {
            app.help = false;
            return None;
        }
        // `q` closes what covers the view; ctrl-c means it.
        Some(Action::Leave) if key.code == KeyCode::Char('q') => {
            app.help = false;
            return None;
        }
        Some(Action::Leave) => return Some(Effect::Leave),
        Some(Action::Suspend) => return Some(Effect::Suspend),
        Some(Action::Redraw) => return Some(Effect::Redraw),
        Some(Action::Move(rows)) => rows as isize,
        Some(Action::Page(pages)) => pages as isize * app.table_height().max(1) as isize,
        Some(Action::First) => isize::MIN / 2,
        Some(Action::Last) => isize::MAX / 2,
        _ => return None,
    };
    let most = views::help::most_scrolled(app);
    app.help_scroll = moved(app.help_scroll, by, most);
    None
}

fn edit_filter(app: &mut App, key: &KeyEvent) {
    let Some(prompt) = &mut app.prompt else {
        return;
    };
    match prompt.edit(key) {
        Edited::Goes => {}
        Edited::Cancelled => app.prompt = None,
        Edited::Done(filter) => {
            app.prompt = None;
            app.query.filter = filter;
            app.selected = None;
            app.first = 0;
            app.table_stale = true;
            if !matches!(app.screen, Screen::Sites | Screen::Tree) || app.site.is_some() {
                show(app, Screen::Sites);
            }
        }
    }
}

fn back(app: &mut App) {
    if app.site.take().is_some() {
        return;
    }
    if app.query.filter.take().is_some() {
        app.table_stale = true;
        return;
    }
    app.screen = Screen::Sites;
}

fn show(app: &mut App, screen: Screen) {
    app.site = None;
    app.screen = screen;
}

fn turn_screens(app: &mut App, by: usize) {
    let at = Screen::ALL.iter().position(|&screen| screen == app.screen);
    let next = (at.unwrap_or(0) + by) % Screen::ALL.len();
    show(app, Screen::ALL[next]);
}

fn open(app: &mut App) {
    match app.screen {
        Screen::Sites => open_row(app, app.selected_row()),
        Screen::Tree => app.tree.toggle(),
        Screen::Processes => {
            if let Some((pid, device)) = views::processes::chosen(app) {
                app.chosen = Some((pid, device));
                app.chosen_by_user = true;
                app.forget_rows();
                show(app, Screen::Sites);
            }
        }
        Screen::Memory | Screen::Timeline | Screen::Log => {}
    }
}

fn open_row(app: &mut App, index: usize) {
    let Some(row) = app.table.row(index) else {
        return;
    };
    if let Some(site) = app.table.site(row) {
        app.selected = Some(row.group);
        app.site = Some(OpenSite {
            group: row.group,
            site,
            live: true,
        });
        app.scroll.remove(&keys::Scope::Site);
    }
}

fn neighbour(app: &mut App, by: isize) {
    let last = app.table.len().saturating_sub(1);
    open_row(app, moved(app.selected_row(), by, last));
}

fn scroll(app: &mut App, by: isize) {
    match (app.site.is_some(), app.screen) {
        (false, Screen::Sites) => {
            let last = app.table.len().saturating_sub(1);
            let row = moved(app.selected_row(), by, last);
            app.selected = app.table.row(row).map(|row| row.group);
        }
        (false, Screen::Tree) => {
            let last = app.tree.len().saturating_sub(1);
            app.tree.select(moved(app.tree.selected(), by, last));
        }
        (false, Screen::Processes) => {
            let last = app.devices().count().saturating_sub(1);
            app.process_row = moved(app.process_row, by, last);
        }
        _ => {
            let most = views::most_scrolled(app);
            let next = moved(app.scrolled(), by, most);
            app.scroll.insert(app.scope(), next);
        }
    }
}

pub(crate) fn moved(at: usize, by: isize, last: usize) -> usize {
    at.saturating_add_signed(by).min(last)
}

fn reorder(app: &mut App, action: Action) {
    match action {
        Action::Reverse => app.query.reversed = !app.query.reversed,
        Action::Group => {
            app.query.grouping = match app.query.grouping {
                Grouping::Line => Grouping::Function,
                Grouping::Function => Grouping::Module,
                Grouping::Module => Grouping::Stack,
                Grouping::Stack => Grouping::Line,
            };
            // Rows have other numbers now.
            app.selected = None;
            app.first = 0;
        }
        _ => app.query.order = next_order(app),
    }
    // The column may not fit the screen.
    let by = command::grouping_name(app.query.grouping);
    let smallest = if app.query.reversed {
        ", smallest first"
    } else {
        ""
    };
    note(
        app,
        format!("by {by}, ordered by {}{smallest}", app.query.order.name()),
    );
    app.table_stale = true;
}

fn next_order(app: &App) -> Order {
    let mut orders = Order::ALL.to_vec();
    if app.mark.is_none() {
        orders.retain(|&order| order != Order::SinceMark);
    }
    if app.screen == Screen::Tree {
        orders = vec![Order::Growth, Order::Live, Order::Survivors];
    }
    let at = orders.iter().position(|&order| order == app.query.order);
    orders[at.map_or(0, |at| (at + 1) % orders.len())]
}

fn mark(app: &mut App) {
    let step = app.process().map_or(0, |process| process.steps.count);
    let sites = app
        .devices()
        .flat_map(|(_, device)| device.sites.iter().chain(device.driver_sites.iter()));
    app.mark = Some(Mark::new(app.view.now, step, sites));
    app.query.order = Order::SinceMark;
    app.query.reversed = false;
    app.table_stale = true;
    note(
        app,
        format!(
            "marked at step {}: \"since mark\" counts survivors from here; M forgets it",
            units::count(step)
        ),
    );
}

fn unmark(app: &mut App) {
    app.mark = None;
    if app.query.order == Order::SinceMark {
        app.query.order = Order::Growth;
    }
    app.table_stale = true;
}

fn next_process(app: &mut App, by: isize) {
    let count = app.view.processes.len() as isize;
    let Some(process) = app.process() else { return };
    let at = app
        .view
        .processes
        .iter()
        .position(|other| other.info.pid == process.info.pid)
        .unwrap_or(0) as isize;
    let next = &app.view.processes[(at + by).rem_euclid(count) as usize];
    let device = next
        .devices
        .first()
        .map_or_else(Default::default, |device| device.device);
    if count == 1 {
        note(app, "there is only this process".into());
        return;
    }
    app.chosen = Some((next.info.pid, device));
    app.chosen_by_user = true;
    app.forget_rows();
}

fn next_device(app: &mut App) {
    let Some(process) = app.process() else { return };
    let pid = process.info.pid;
    let present = app.device().map(|device| device.device);
    let devices: Vec<_> = process.devices.iter().map(|device| device.device).collect();
    let at = devices.iter().position(|&device| Some(device) == present);
    let next = at.map_or(0, |at| (at + 1) % devices.len());
    match devices[..] {
        [] | [_] => note(app, "this process uses only this device so far".into()),
        _ => {
            app.chosen = Some((pid, devices[next]));
            app.chosen_by_user = true;
            app.forget_rows();
        }
    }
}

pub(crate) fn note(app: &mut App, text: String) {
    app.note = Some(Note {
        text,
        failed: false,
    });
}
