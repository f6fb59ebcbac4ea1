//! The state of the live view: what is known, what is asked, what is looked at.

use std::{path::PathBuf, sync::Arc};

use ratatui::layout::Rect;
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_collector::{
    report::headline::{self, Headline},
    view::{Class, DeviceView, ProcessView, SiteView, View},
};
use vramscope_events::{DeviceId, Layer, Pid, Time};

use crate::{
    feed::{Playback, Question},
    keys::{Scope, Screen},
    layout::{self, Areas},
    prompt::Prompt,
    table::{Mark, Query, Row, RowDetail, Table},
    theme::Theme,
    tree::Tree,
    views,
};

/// What the live view shows: for the equivalent commands and for the names of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A running process.
    Process(Pid),
    /// A recording.
    File(PathBuf),
}

/// How much of the session the charts show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Window {
    /// All of it.
    #[default]
    Session,
    /// The last ten minutes.
    TenMinutes,
    /// The last minute.
    Minute,
}

impl Window {
    /// The next smaller that is smaller than the session, and round again.
    pub fn next(self, view: &View) -> Window {
        let smaller = |window: Window| window.from(view) > view.started;
        match self {
            Window::Session if smaller(Window::TenMinutes) => Window::TenMinutes,
            Window::Session | Window::TenMinutes if smaller(Window::Minute) => Window::Minute,
            _ => Window::Session,
        }
    }

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Window::Session => "whole session",
            Window::TenMinutes => "last 10 min",
            Window::Minute => "last minute",
        }
    }

    /// Its first moment.
    pub fn from(self, view: &View) -> Time {
        let seconds = match self {
            Window::Session => return view.started,
            Window::TenMinutes => 600,
            Window::Minute => 60,
        };
        let from = view.now.0.saturating_sub(seconds * 1_000_000_000);
        Time(from).max(view.started)
    }
}

/// A line for the footer until the next key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What happened.
    pub text: String,
    /// Whether it failed.
    pub failed: bool,
}

/// One site, shown whole.
pub struct OpenSite {
    /// Its group in the table.
    pub group: u32,
    /// As last seen.
    pub site: SiteView,
    /// Whether the table still has it.
    pub live: bool,
}

/// Whether the user agrees that code runs in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Consent {
    /// Nobody has asked.
    #[default]
    NotAsked,
    /// The next key tells.
    Asked,
    /// It was given, for this session.
    Given,
}

/// Everything.
pub struct App {
    /// How things look.
    pub theme: Theme,
    /// What is watched.
    pub source: Source,
    /// The size of the terminal.
    pub size: (u16, u16),
    /// The view on the screen.
    pub view: Arc<View>,
    /// The newest view, where the one on the screen is frozen.
    pub latest: Arc<View>,
    /// Whether the picture is held.
    pub frozen: bool,
    /// Why nothing new comes.
    pub ended: Option<String>,
    /// The reach of the time cursor.
    pub span: Option<(Time, Time)>,
    /// The moment that was asked for and is not on the screen yet.
    pub wanted: Option<Time>,
    /// How a recording moves by itself.
    pub playback: Option<Playback>,
    /// What asking for holders does to the process, or why nobody can be asked.
    pub may_ask: Result<String, String>,
    /// Whether the user is being asked for consent to it; and has given it.
    pub consent: Consent,
    /// The last question about holders.
    pub question: Option<Question>,
    /// Which view is shown.
    pub screen: Screen,
    /// The site shown whole, over the view.
    pub site: Option<OpenSite>,
    /// Whether the help is shown, over everything.
    pub help: bool,
    /// The filter being typed.
    pub prompt: Option<Prompt>,
    /// What the footer says until the next key.
    pub note: Option<Note>,
    /// The process and device looked at, and whether the user chose it.
    pub chosen: Option<(Pid, DeviceId)>,
    /// See `chosen`.
    pub chosen_by_user: bool,
    /// Which layer's sites are shown.
    pub layer: Layer,
    /// What the charts cover.
    pub window: Window,
    /// What the table is asked.
    pub query: Query,
    /// The mark.
    pub mark: Option<Mark>,
    /// The table.
    pub table: Table,
    /// The group of the selected row; `None`: the first row, whichever it is.
    pub selected: Option<u32>,
    /// The first row on the screen.
    pub first: usize,
    /// Rows worked out for the screen.
    pub details: FxHashMap<u32, RowDetail>,
    /// Groups that hold a site which the verdict names.
    pub culprits: FxHashSet<u32>,
    /// What to think of each device.
    pub headlines: FxHashMap<(Pid, DeviceId), Headline>,
    /// The same while there is no device.
    pub nothing_seen: Headline,
    /// The merged stacks.
    pub tree: Tree,
    /// The first row of the tree on the screen.
    pub tree_first: usize,
    /// The selected row of the processes.
    pub process_row: usize,
    /// How far texts are scrolled: memory, timeline, log, site and help each for itself.
    pub scroll: FxHashMap<Scope, usize>,
    /// How far the help is scrolled.
    pub help_scroll: usize,
    pub(crate) table_stale: bool,
    pub(crate) tree_stale: bool,
    pub(crate) site_stale: bool,
}

impl App {
    /// Looks at `view` for the first time.
    pub fn new(theme: Theme, source: Source, size: (u16, u16), view: Arc<View>) -> App {
        let mut app = App {
            theme,
            source,
            size,
            latest: Arc::clone(&view),
            nothing_seen: headline::nothing_seen(&view),
            view,
            frozen: false,
            ended: None,
            span: None,
            wanted: None,
            playback: None,
            may_ask: Err(String::new()),
            consent: Consent::default(),
            question: None,
            screen: Screen::default(),
            site: None,
            help: false,
            prompt: None,
            note: None,
            chosen: None,
            chosen_by_user: false,
            layer: Layer::Tensor,
            window: Window::default(),
            query: Query::default(),
            mark: None,
            table: Table::default(),
            selected: None,
            first: 0,
            details: FxHashMap::default(),
            culprits: FxHashSet::default(),
            headlines: FxHashMap::default(),
            tree: Tree::default(),
            tree_first: 0,
            process_row: 0,
            scroll: FxHashMap::default(),
            help_scroll: 0,
            table_stale: true,
            tree_stale: true,
            site_stale: false,
        };
        app.look_again();
        app.settle();
        app
    }

    /// Takes in a view that is new on the screen.
    pub(crate) fn look_again(&mut self) {
        self.table_stale = true;
        self.nothing_seen = headline::nothing_seen(&self.view);
        self.headlines = self
            .devices()
            .map(|(process, device)| {
                let name = (process.info.pid, device.device);
                (name, headline::of_device(process, device))
            })
            .collect();
        self.choose_device();
    }

    /// What to think of the device looked at.
    pub fn headline(&self) -> &Headline {
        let device = self.process().zip(self.device());
        device
            .and_then(|(process, device)| self.headlines.get(&(process.info.pid, device.device)))
            .unwrap_or(&self.nothing_seen)
    }

    /// Where keys mean what they mean now.
    pub fn scope(&self) -> Scope {
        if self.site.is_some() {
            Scope::Site
        } else {
            Scope::On(self.screen)
        }
    }

    /// Who gets which lines.
    pub fn areas(&self) -> Areas {
        let screen = Rect::new(0, 0, self.size.0, self.size.1);
        let covered = self.site.is_some() || self.help;
        let strip = layout::wants_strip(self.screen, covered);
        let verdict = views::header::verdict_lines(self, usize::from(self.size.0)).len();
        layout::areas(screen, strip, verdict as u16)
    }

    /// The process looked at.
    pub fn process(&self) -> Option<&ProcessView> {
        let chosen = self.chosen.and_then(|(pid, _)| {
            let mut all = self.view.processes.iter();
            all.find(|process| process.info.pid == pid)
        });
        chosen.or_else(|| self.view.processes.first())
    }

    /// The device looked at.
    pub fn device(&self) -> Option<&DeviceView> {
        let process = self.process()?;
        let chosen = self.chosen.and_then(|(_, id)| {
            let mut all = process.devices.iter();
            all.find(|device| device.device == id)
        });
        chosen.or_else(|| process.devices.first())
    }

    /// The sites of the layer looked at.
    pub fn sites(&self) -> Arc<[SiteView]> {
        match (self.device(), self.layer) {
            (None, _) => Arc::from([]),
            (Some(device), Layer::Driver) => Arc::clone(&device.driver_sites),
            (Some(device), _) => Arc::clone(&device.sites),
        }
    }

    /// The place of the selected row.
    pub fn selected_row(&self) -> usize {
        let place = self.selected.and_then(|group| self.table.place(group));
        place.unwrap_or(0)
    }

    /// Rows of the table that fit the screen: the first line of the body names the columns.
    pub fn table_height(&self) -> usize {
        usize::from(self.areas().body.height.saturating_sub(1))
    }

    /// The rows of the table on the screen.
    pub fn shown_rows(&self) -> impl Iterator<Item = &Row> {
        let places = self.first..self.first + self.table_height();
        places.map_while(|place| self.table.row(place))
    }

    /// How far the present text is scrolled.
    pub fn scrolled(&self) -> usize {
        self.scroll.get(&self.scope()).copied().unwrap_or(0)
    }

    /// All devices of all processes.
    pub fn devices(&self) -> impl Iterator<Item = (&ProcessView, &DeviceView)> {
        let processes = self.view.processes.iter();
        processes.flat_map(|process| process.devices.iter().map(move |device| (process, device)))
    }

    /// Looks at the device in the worst state, until the user chooses. It changes only for a worse
    /// one, so the screen does not jump between equals.
    fn choose_device(&mut self) {
        if self.chosen_by_user {
            return;
        }
        let present = self.device().map_or(Severity::Unknown, severity);
        let worst = self
            .devices()
            .map(|(process, device)| (severity(device), process.info.pid, device.device))
            // The first of the worst.
            .reduce(|best, next| if next.0 > best.0 { next } else { best });
        if let Some((severity, pid, device)) = worst
            && (self.chosen.is_none() || severity > present)
            && self.chosen != Some((pid, device))
        {
            self.chosen = Some((pid, device));
            self.forget_rows();
        }
    }

    /// Another device or layer is shown: what was selected means nothing there.
    pub(crate) fn forget_rows(&mut self) {
        self.selected = None;
        self.first = 0;
        self.site = None;
        self.tree.reset();
        self.tree_first = 0;
        self.table_stale = true;
        self.tree_stale = true;
    }

    /// Brings up to date what is on the screen and only that.
    pub(crate) fn settle(&mut self) {
        let needs_table =
            self.site.is_some() || matches!(self.screen, Screen::Sites | Screen::Tree);
        if needs_table && self.table_stale {
            self.table_stale = false;
            self.tree_stale = true;
            self.site_stale = true;
            let sites = self.sites();
            self.table.refresh(&sites, &self.query, self.mark.as_ref());
            self.details.clear();
            let verdict = self.device().and_then(|device| device.verdict.as_ref());
            let named = verdict.map(|verdict| verdict.culprits.as_slice());
            self.culprits = named
                .unwrap_or_default()
                .iter()
                .filter_map(|culprit| self.table.group_of_site(culprit.site))
                .collect();
        }
        if self.screen == Screen::Tree && self.tree_stale {
            self.tree_stale = false;
            self.tree.refresh(&self.table, self.query.order);
        }
        if self.site_stale {
            self.site_stale = false;
            self.refresh_site();
        }
        let selected = self.selected_row();
        let rows = self.table.len();
        self.first = layout::first_row(self.first, selected, rows, self.table_height());
        let tree_rows = self.tree.len();
        let tree_selected = self.tree.selected();
        self.tree_first = layout::first_row(
            self.tree_first,
            tree_selected,
            tree_rows,
            self.table_height(),
        );
        if self.screen == Screen::Sites && self.site.is_none() {
            let missing: Vec<(u32, RowDetail)> = self
                .shown_rows()
                .filter(|row| !self.details.contains_key(&row.group))
                .map(|row| (row.group, self.table.detail(row)))
                .collect();
            self.details.extend(missing);
        }
    }

    fn refresh_site(&mut self) {
        let Some(open) = &mut self.site else { return };
        let row = self.table.of_group(open.group);
        let site = row.and_then(|row| self.table.site(row));
        open.live = site.is_some();
        if let Some(site) = site {
            open.site = site;
        }
    }
}

/// How bad a device's state is, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is known yet.
    Unknown,
    /// All is well, or as designed.
    Fine,
    /// It may become a problem.
    Watch,
    /// It will end in an out-of-memory error.
    Bad,
}

/// How bad the state of `device` is.
pub fn severity(device: &DeviceView) -> Severity {
    match device.verdict.as_ref().map(|verdict| verdict.class) {
        None => Severity::Unknown,
        Some(class) => class_severity(class),
    }
}

/// How bad a class is.
pub fn class_severity(class: Class) -> Severity {
    match class {
        Class::Leak | Class::OutsideFramework => Severity::Bad,
        Class::Growing | Class::Capacity | Class::Fragmentation => Severity::Watch,
        Class::WarmUp | Class::CacheGrowth | Class::Healthy => Severity::Fine,
    }
}
