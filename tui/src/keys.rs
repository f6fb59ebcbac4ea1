//! The one table of key bindings: it steers the program and makes the footer, the help and
//! `docs/keys.md`.

use std::fmt::Write;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Leave the live view; the traced process goes on.
    Leave,
    /// Give the terminal back to the shell until `fg`.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Show or hide the help.
    Help,
    /// One level back, or clear the filter.
    Back,
    /// Open what is selected.
    Open,
    /// Go to a view.
    Show(Screen),
    /// The next view.
    NextScreen,
    /// The view before.
    PreviousScreen,
    /// Move the selection or scroll, in rows.
    Move(i32),
    /// Move by a screenful.
    Page(i32),
    /// To the first row.
    First,
    /// To the last row.
    Last,
    /// The next order of the table.
    Sort,
    /// The other way round.
    Reverse,
    /// The next grouping.
    Group,
    /// Type a filter.
    Filter,
    /// Hold the picture; events are still counted.
    Freeze,
    /// Count survivors from here.
    Mark,
    /// Forget the mark.
    Unmark,
    /// The next process, or the one before.
    Process(i32),
    /// The next device of the process.
    Device,
    /// Tensor layer or driver layer.
    Layer,
    /// The next time window of the charts.
    Window,
    /// The neighbour of the site shown.
    Neighbour(i32),
    /// Unfold.
    Expand,
    /// Fold.
    Collapse,
    /// Unfold everything below.
    ExpandAll,
    /// Callers first or allocating lines first.
    Direction,
    /// Write a flamegraph of the survivors.
    Flamegraph,
    /// Write the report.
    Report,
    /// Ask what holds the survivors of a site.
    Holders,
    /// Move the time cursor of a recording, in hundredths of its length.
    Seek(i32),
    /// Play a recording faster or slower.
    Speed(i32),
}

/// The views with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Screen {
    /// The table of sites.
    #[default]
    Sites,
    /// Merged stacks.
    Tree,
    /// Who has the device's memory.
    Memory,
    /// Curves.
    Timeline,
    /// All processes and devices.
    Processes,
    /// What happened.
    Log,
}

impl Screen {
    /// In the order of their numbers.
    pub const ALL: [Screen; 6] = [
        Screen::Sites,
        Screen::Tree,
        Screen::Memory,
        Screen::Timeline,
        Screen::Processes,
        Screen::Log,
    ];

    /// As the tabs name it.
    pub fn name(self) -> &'static str {
        match self {
            Screen::Sites => "sites",
            Screen::Tree => "tree",
            Screen::Memory => "memory",
            Screen::Timeline => "timeline",
            Screen::Processes => "processes",
            Screen::Log => "log",
        }
    }
}

/// Where a binding holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// In every view.
    Everywhere,
    /// In one view.
    On(Screen),
    /// While one site is shown.
    Site,
}

impl Scope {
    const ALL: [Scope; 5] = [
        Scope::Everywhere,
        Scope::On(Screen::Sites),
        Scope::On(Screen::Tree),
        Scope::Site,
        Scope::On(Screen::Processes),
    ];

    /// As a heading of the help.
    pub fn title(self) -> &'static str {
        match self {
            Scope::Everywhere => "everywhere",
            Scope::On(Screen::Sites) => "sites",
            Scope::On(Screen::Tree) => "tree",
            Scope::On(Screen::Processes) => "processes",
            Scope::On(other) => other.name(),
            Scope::Site => "one site",
        }
    }
}

/// A key as the table writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character, with whatever modifier makes it.
    Char(char),
    /// A character with Ctrl.
    Ctrl(char),
    /// A key with a name.
    Named(KeyCode),
}

impl Key {
    fn matches(self, event: &KeyEvent) -> bool {
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        let plain = !event
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match self {
            Key::Char(char) => plain && event.code == KeyCode::Char(char),
            Key::Ctrl(char) => control && event.code == KeyCode::Char(char),
            Key::Named(code) => plain && event.code == code,
        }
    }

    /// As printed on a keyboard.
    pub fn label(self) -> String {
        match self {
            Key::Char(' ') => "space".into(),
            Key::Char(char) => char.into(),
            Key::Ctrl(char) => format!("ctrl-{char}"),
            Key::Named(code) => match code {
                KeyCode::Right => "→".into(),
                KeyCode::Left => "←".into(),
                KeyCode::Up => "↑".into(),
                KeyCode::Down => "↓".into(),
                KeyCode::BackTab => "shift-tab".into(),
                KeyCode::PageUp => "pgup".into(),
                KeyCode::PageDown => "pgdn".into(),
                other => format!("{other:?}").to_lowercase(),
            },
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// Where it holds.
    pub scope: Scope,
    /// Any of these keys.
    pub keys: &'static [Key],
    /// What they do.
    pub action: Action,
    /// One word for the footer; empty where it is not worth the room.
    pub hint: &'static str,
    /// A line for the help; empty where the line above speaks for this one too.
    pub help: &'static str,
}

const fn bind(
    scope: Scope,
    keys: &'static [Key],
    action: Action,
    hint: &'static str,
    help: &'static str,
) -> Binding {
    Binding {
        scope,
        keys,
        action,
        hint,
        help,
    }
}

use Action as A;
use Key::{Char, Ctrl, Named};
use Scope::{Everywhere, On, Site};

const SITES: Scope = On(Screen::Sites);
const TREE: Scope = On(Screen::Tree);
const PROCESSES: Scope = On(Screen::Processes);

/// Every binding. Within a scope the first match wins; a view's own bindings go before those that
/// hold everywhere.
#[rustfmt::skip]
pub const BINDINGS: &[Binding] = &[
    bind(SITES, &[Named(KeyCode::Enter)], A::Open, "open", "open the selected site: stack, histograms, generations, advice"),
    bind(SITES, &[Char('s')], A::Sort, "sort", "next order: growth, live, survivors, generations, age, since mark, total, name"),
    bind(SITES, &[Char('r')], A::Reverse, "", "turn the order round"),
    bind(SITES, &[Char('g')], A::Group, "group", "next grouping: line, function, module, stack"),
    bind(SITES, &[Char('h')], A::Holders, "holders", "ask the process what holds the survivors of the selected site; runs code in it, after a confirmation"),

    bind(TREE, &[Named(KeyCode::Right), Char('l')], A::Expand, "unfold", "unfold; on an unfolded row, go to its first child"),
    bind(TREE, &[Named(KeyCode::Left), Char('h')], A::Collapse, "fold", "fold; on a folded row, go to its parent"),
    bind(TREE, &[Named(KeyCode::Enter)], A::Open, "", "unfold or fold"),
    bind(TREE, &[Char('e')], A::ExpandAll, "all", "unfold everything below the selected row"),
    bind(TREE, &[Char('b')], A::Direction, "turn", "callers first (top-down) or allocating lines first (bottom-up)"),
    bind(TREE, &[Char('s')], A::Sort, "sort", "next order of children"),

    bind(Site, &[Named(KeyCode::Right), Char('n')], A::Neighbour(1), "next", "the next site of the table"),
    bind(Site, &[Named(KeyCode::Left), Char('N')], A::Neighbour(-1), "previous", "the site before"),
    bind(Site, &[Char('h')], A::Holders, "holders", "ask the process what holds its survivors; runs code in it, after a confirmation"),

    bind(PROCESSES, &[Named(KeyCode::Enter)], A::Open, "choose", "look at the selected process and device in every view"),

    bind(Everywhere, &[Char('/')], A::Filter, "filter", "keep stacks in which a frame matches a regular expression; /!regex keeps the others"),
    bind(Everywhere, &[Char('m')], A::Mark, "mark", "count survivors from now on (\"since mark\")"),
    bind(Everywhere, &[Char('M')], A::Unmark, "", "forget the mark"),
    bind(Everywhere, &[Char(' ')], A::Freeze, "freeze", "hold the picture; events are still counted. A recording: play and pause"),
    bind(Everywhere, &[Char('f')], A::Flamegraph, "flamegraph", "write a flamegraph of the survivors"),
    bind(Everywhere, &[Char('w')], A::Report, "write", "write the report"),
    bind(Everywhere, &[Char('z')], A::Window, "window", "charts over the session, the last 10 minutes, the last minute"),
    bind(Everywhere, &[Char('p')], A::Process(1), "", "next process"),
    bind(Everywhere, &[Char('P')], A::Process(-1), "", "previous process"),
    bind(Everywhere, &[Char('d')], A::Device, "", "next device of the process"),
    bind(Everywhere, &[Char('t')], A::Layer, "", "tensors (framework's blocks) or driver (what the process takes from the GPU)"),
    bind(Everywhere, &[Named(KeyCode::Down), Char('j')], A::Move(1), "", "down"),
    bind(Everywhere, &[Named(KeyCode::Up), Char('k')], A::Move(-1), "", "up"),
    bind(Everywhere, &[Named(KeyCode::PageDown)], A::Page(1), "", "a screenful down"),
    bind(Everywhere, &[Named(KeyCode::PageUp)], A::Page(-1), "", "a screenful up"),
    bind(Everywhere, &[Named(KeyCode::Home)], A::First, "", "to the first row"),
    bind(Everywhere, &[Named(KeyCode::End), Char('G')], A::Last, "", "to the last row"),
    bind(Everywhere, &[Char('1')], A::Show(Screen::Sites), "", "sites: who allocated what is still there"),
    bind(Everywhere, &[Char('2')], A::Show(Screen::Tree), "", "tree of merged stacks"),
    bind(Everywhere, &[Char('3')], A::Show(Screen::Memory), "", "memory: who has the device's memory"),
    bind(Everywhere, &[Char('4')], A::Show(Screen::Timeline), "", "timeline: curves with floor and marks"),
    bind(Everywhere, &[Char('5')], A::Show(Screen::Processes), "", "processes and devices, most unlike the others first"),
    bind(Everywhere, &[Char('6')], A::Show(Screen::Log), "", "log: what happened, and which probes are in place"),
    bind(Everywhere, &[Named(KeyCode::Tab)], A::NextScreen, "", "next view"),
    bind(Everywhere, &[Named(KeyCode::BackTab)], A::PreviousScreen, "", "previous view"),
    bind(Everywhere, &[Char(']')], A::Seek(1), "", "a recording: 1 % on"),
    bind(Everywhere, &[Char('[')], A::Seek(-1), "", "a recording: 1 % back"),
    bind(Everywhere, &[Char('}')], A::Seek(10), "", "a recording: 10 % on"),
    bind(Everywhere, &[Char('{')], A::Seek(-10), "", "a recording: 10 % back"),
    bind(Everywhere, &[Char('>')], A::Speed(1), "", "a recording: play faster"),
    bind(Everywhere, &[Char('<')], A::Speed(-1), "", "a recording: play slower"),
    bind(Everywhere, &[Named(KeyCode::Esc)], A::Back, "", "back; in the table, clear the filter"),
    bind(Everywhere, &[Char('?'), Named(KeyCode::F(1))], A::Help, "help", "this help"),
    bind(Everywhere, &[Ctrl('l')], A::Redraw, "", "draw everything anew"),
    bind(Everywhere, &[Ctrl('z')], A::Suspend, "", "back to the shell; fg returns"),
    bind(Everywhere, &[Char('q'), Ctrl('c')], A::Leave, "quit", "leave; the traced process goes on"),
];

/// What `event` asks for where `scope` is shown.
pub fn action(event: &KeyEvent, scope: Scope) -> Option<Action> {
    let own = BINDINGS.iter().filter(|binding| binding.scope == scope);
    let common = BINDINGS
        .iter()
        .filter(|binding| binding.scope == Scope::Everywhere);
    own.chain(common)
        .find(|binding| binding.keys.iter().any(|key| key.matches(event)))
        .map(|binding| binding.action)
}

/// Footer words for `scope`: key and word, the view's own first.
pub fn hints(scope: Scope) -> impl Iterator<Item = (String, &'static str)> {
    let own = BINDINGS
        .iter()
        .filter(move |binding| binding.scope == scope && scope != Scope::Everywhere);
    let common = BINDINGS
        .iter()
        .filter(|binding| binding.scope == Scope::Everywhere);
    own.chain(common)
        .filter(|binding| !binding.hint.is_empty())
        .map(|binding| {
            let label = binding.keys.first().map(|key| key.label());
            (label.unwrap_or_default(), binding.hint)
        })
}

/// The help: sections with their rows of keys and text.
pub fn sections() -> impl Iterator<Item = (Scope, Vec<(String, &'static str)>)> {
    Scope::ALL.into_iter().map(|scope| {
        let rows = BINDINGS
            .iter()
            .filter(|binding| binding.scope == scope)
            .map(|binding| (labels(binding.keys), binding.help))
            .collect();
        (scope, rows)
    })
}

/// `docs/keys.md`.
pub fn markdown() -> String {
    let mut out = String::from(
        "# Keys of the live view\n\nMade from the table in `tui/src/keys.rs`; \
         `UPDATE_DOCS=1 cargo test -p vramscope-tui --test docs` writes it anew.\n",
    );
    for (scope, rows) in sections() {
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "\n## {}\n\n| key | what it does |\n|---|---|\n",
            capital(scope.title())
        );
        for (keys, help) in rows {
            let keys = keys
                .split(' ')
                .map(|key| format!("`{}`", key.replace('|', "\\|")))
                .collect::<Vec<_>>()
                .join(" ");
            let _ = writeln!(out, "| {keys} | {} |", help.replace('|', "\\|"));
        }
    }
    out.push_str(
        "\nIn the filter line: `enter` keeps the filter, `esc` leaves it as it was, `ctrl-u` \
         empties the line.\n",
    );
    out
}

fn labels(keys: &[Key]) -> String {
    keys.iter()
        .map(|key| key.label())
        .collect::<Vec<_>>()
        .join(" ")
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things_in_one_scope() {
        for (index, binding) in BINDINGS.iter().enumerate() {
            for other in &BINDINGS[index + 1..] {
                let clash = binding.scope == other.scope
                    && binding.keys.iter().any(|key| other.keys.contains(key));
                assert!(!clash, "{binding:?} and {other:?}");
            }
        }
    }

    #[test]
    fn every_scope_is_in_the_help() {
        for binding in BINDINGS {
            assert!(Scope::ALL.contains(&binding.scope), "{binding:?}");
            assert!(!binding.help.is_empty(), "{binding:?}");
        }
    }

    #[test]
    fn modifiers_matter() {
        let c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(action(&c, Scope::Site), Some(Action::Leave));
        let c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::NONE);
        assert_eq!(action(&c, Scope::Site), None);
        let mark = KeyEvent::new(KeyCode::Char('M'), KeyModifiers::SHIFT);
        assert_eq!(action(&mark, Scope::Site), Some(Action::Unmark));
        let alt = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT);
        assert_eq!(action(&alt, Scope::Site), None);
    }
}
