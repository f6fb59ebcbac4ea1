//! The table of sites.

use ratatui::{buffer::Buffer, layout::Rect};
use vramscope_collector::{
    escape,
    report::{headline, paths, units},
    view::Grouping,
};
use vramscope_events::{FrameKind, Layer};

use crate::{
    app::App,
    paint::Pen,
    table::{Order, Row},
    theme::Role,
};

/// Columns of numbers that fit, the most telling first.
struct Columns {
    blocks: bool,
    generations: bool,
    age: bool,
    mark: bool,
    trend: usize,
    place: usize,
    function: usize,
    source: usize,
}

const GROWTH: usize = 11;
const LIVE: usize = 9;
const BLOCKS: usize = 7;
const GENERATIONS: usize = 6;
const AGE: usize = 8;
const MARK: usize = 11;

impl Columns {
    fn fit(app: &App, width: usize) -> Columns {
        let mark = app.mark.is_some();
        let mut columns = Columns {
            blocks: width >= 56,
            generations: width >= 66,
            age: width >= 74 && !(mark && width < 90),
            mark: mark && width >= 50,
            trend: if width >= 96 { 10 } else { 0 },
            place: 0,
            function: 0,
            source: 0,
        };
        let numbers = 2
            + GROWTH
            + LIVE
            + 3
            + if columns.blocks { BLOCKS + 1 } else { 0 }
            + if columns.generations {
                GENERATIONS + 1
            } else {
                0
            }
            + if columns.age { AGE + 1 } else { 0 }
            + if columns.mark { MARK + 1 } else { 0 }
            + if columns.trend > 0 {
                columns.trend + 2
            } else {
                0
            };
        columns.share_out(app, width.saturating_sub(numbers));
        columns
    }

    /// Gives place, function and source what they need on this screen, within their shares.
    fn share_out(&mut self, app: &App, text: usize) {
        let names = app.shown_rows().map(|row| names(app, row));
        let (place, function) = names.fold((4, 8), |widest, names| {
            let width = |text: &str| escape::width(text);
            (widest.0.max(width(&names.0)), widest.1.max(width(&names.1)))
        });
        self.place = match text {
            0..26 => text,
            _ => place.min(text * 2 / 5),
        };
        let rest = text - self.place;
        let by_place = matches!(app.query.grouping, Grouping::Line | Grouping::Stack);
        if by_place && text >= 50 {
            self.function = function.min(rest / 2);
        }
        let gaps = if self.function > 0 { 2 } else { 1 };
        self.source = rest.saturating_sub(self.function + gaps);
    }
}

/// The widest that a name is measured.
const MEASURED: usize = 60;

/// What a row is called and the function it is in; safe.
fn names(app: &App, row: &Row) -> (String, String) {
    let site = app.table.head(row);
    let (Some(frame), Some(process)) = (site.own_frame(), app.process()) else {
        return (String::new(), String::new());
    };
    let function = escape::line(&frame.function, MEASURED);
    let name = match app.query.grouping {
        Grouping::Line | Grouping::Stack => paths::place(frame, &process.info, MEASURED),
        Grouping::Function => function.clone(),
        Grouping::Module => escape::line_end(paths::short(&frame.file, &process.info), MEASURED),
    };
    (name, function)
}

/// Draws the names of the columns and the rows.
pub fn draw(app: &App, buffer: &mut Buffer, area: Rect) {
    if area.is_empty() {
        return;
    }
    let columns = Columns::fit(app, usize::from(area.width));
    draw_names(app, buffer, area, &columns);
    if app.table.len() == 0 {
        draw_empty(app, buffer, area);
        return;
    }
    let selected = app.selected_row().wrapping_sub(app.first);
    for (index, row) in app.shown_rows().enumerate() {
        let line = index as u16 + 1;
        draw_row(app, buffer, area, line, row, &columns);
        if index == selected {
            Pen::new(buffer, app.theme, area, line).look(area, Role::Selected);
        }
    }
}

fn draw_names(app: &App, buffer: &mut Buffer, area: Rect, columns: &Columns) {
    let mut pen = Pen::new(buffer, app.theme, area, 0);
    let order = app.query.order;
    let mut name = |text: &str, width: usize, own: Order| {
        let arrow = match (order == own, app.query.reversed) {
            (false, _) => "",
            (true, false) => "▾",
            (true, true) => "▴",
        };
        let role = if order == own {
            Role::Strong
        } else {
            Role::Quiet
        };
        pen.right(&format!("{text}{arrow}"), width, role).skip(1);
    };
    name("GROWTH/STEP", GROWTH + 1, Order::Growth);
    name("LIVE", LIVE, Order::Live);
    if columns.mark {
        name("SINCE MARK", MARK, Order::SinceMark);
    }
    if columns.blocks {
        name("BLOCKS", BLOCKS, Order::Survivors);
    }
    if columns.generations {
        name("GENS", GENERATIONS, Order::Generations);
    }
    if columns.age {
        name("AGE", AGE, Order::Age);
    }
    if columns.trend > 0 {
        pen.skip(1)
            .left("TREND", columns.trend, Role::Quiet)
            .skip(1);
    }
    pen.skip(1);
    let what = match app.query.grouping {
        Grouping::Line => "LINE",
        Grouping::Stack => "STACK",
        Grouping::Function => "FUNCTION",
        Grouping::Module => "MODULE",
    };
    let role = if order == Order::Name {
        Role::Strong
    } else {
        Role::Quiet
    };
    pen.left(what, columns.place, role);
    if columns.function > 0 {
        pen.skip(1).left("FUNCTION", columns.function, Role::Quiet);
    }
    if columns.source > 0 {
        let text = match app.query.grouping {
            Grouping::Function | Grouping::Module => "WHERE MOST GROWS",
            _ => "SOURCE",
        };
        pen.skip(1).left(text, columns.source, Role::Quiet);
    }
    if order == Order::Total {
        pen.flush_right("by total ▾", Role::Strong);
    }
}

fn draw_row(app: &App, buffer: &mut Buffer, area: Rect, line: u16, row: &Row, columns: &Columns) {
    let culprit = app.culprits.contains(&row.group);
    let mut pen = Pen::new(buffer, app.theme, area, line);
    let loud = if culprit { Role::Alarm } else { Role::Text };
    pen.put(if culprit { "▲" } else { " " }, Role::Alarm);
    let growth = units::signed_bytes(row.growth);
    let role = if row.growth.abs() < 0.5 {
        Role::Quiet
    } else {
        loud
    };
    pen.right(&growth, GROWTH, role).skip(1);
    pen.right(&units::bytes(row.live_bytes), LIVE, Role::Text)
        .skip(1);
    if columns.mark {
        let (bytes, _) = row.since_mark;
        let role = if bytes == 0 { Role::Quiet } else { Role::Text };
        pen.right(&units::signed_bytes(bytes as f64), MARK, role)
            .skip(1);
    }
    if columns.blocks {
        pen.right(&units::short_count(row.live_blocks), BLOCKS, Role::Text)
            .skip(1);
    }
    let detail = app.details.get(&row.group);
    if columns.generations {
        let generations = detail.map_or(row.generations, |detail| detail.generations);
        pen.right(&units::short_count(generations), GENERATIONS, Role::Text)
            .skip(1);
    }
    if columns.age {
        let age = row
            .oldest
            .map(|birth| units::age(app.view.now.seconds_since(birth)));
        pen.right(age.as_deref().unwrap_or("-"), AGE, Role::Text)
            .skip(1);
    }
    if columns.trend > 0 {
        let trend = detail.map(|detail| &*detail.trend).unwrap_or_default();
        pen.skip(1)
            .sparkline(trend, columns.trend, 200, Role::Stays)
            .skip(1);
    }
    pen.skip(1);
    draw_place(app, &mut pen, row, columns, culprit);
}

fn draw_place(app: &App, pen: &mut Pen<'_>, row: &Row, columns: &Columns, culprit: bool) {
    let site = app.table.head(row);
    let (Some(frame), Some(process)) = (site.own_frame(), app.process()) else {
        let room = pen.room();
        pen.foreign("(a thread without known frames)", room, Role::Quiet);
        return;
    };
    let role = match (culprit, frame.user) {
        (true, _) => Role::Strong,
        (false, true) => Role::Code,
        (false, false) => Role::Text,
    };
    let function = if frame.function.is_empty() {
        "?"
    } else {
        &frame.function
    };
    match app.query.grouping {
        Grouping::Line | Grouping::Stack => {
            let place = paths::place(frame, &process.info, columns.place);
            pen.left(&place, columns.place, role);
            if columns.function > 0 {
                pen.skip(1).left(function, columns.function, Role::Quiet);
            }
            if columns.source > 0 {
                pen.skip(1);
                if columns.function > 0 && frame.source.is_none() {
                    let words = if site.backward() { "[backward]" } else { "" };
                    pen.foreign(words, columns.source, Role::Text);
                } else {
                    pen.foreign(
                        &headline::source_or_function(site),
                        columns.source,
                        Role::Text,
                    );
                }
            }
        }
        Grouping::Function | Grouping::Module => {
            let name = match app.query.grouping {
                Grouping::Function => function,
                _ => paths::short(&frame.file, &process.info),
            };
            if frame.kind == FrameKind::Python && app.query.grouping == Grouping::Module {
                let from = pen.room();
                pen.path(name, columns.place, role);
                let used = from - pen.room();
                pen.skip(columns.place.saturating_sub(used));
            } else {
                pen.left(name, columns.place, role);
            }
            if columns.source > 0 {
                let words = headline::site_words(site, process, columns.source);
                pen.skip(1).put(&words, Role::Quiet);
            }
        }
    }
}

fn draw_empty(app: &App, buffer: &mut Buffer, area: Rect) {
    let inner = Rect {
        y: area.y + 1,
        height: area.height - 1,
        ..area
    };
    if let Some(filter) = app
        .query
        .filter
        .as_ref()
        .filter(|_| !app.table.sites().is_empty())
    {
        let line = format!("no stack passes the filter /{}", filter.text());
        super::empty(app, buffer, inner, &[&line, "esc clears it, / changes it"]);
    } else if app.device().is_none() {
        super::empty(
            app,
            buffer,
            inner,
            &[
                "waiting for the first allocation on a GPU",
                "a step of training makes one; 6 shows which probes are in place",
            ],
        );
    } else if app.layer == Layer::Driver {
        super::empty(
            app,
            buffer,
            inner,
            &[
                "nothing was taken from the driver since the attach",
                "t goes back to the framework's blocks",
            ],
        );
    } else {
        super::empty(
            app,
            buffer,
            inner,
            &[
                "no survivor yet",
                "sites appear when the process allocates; what it had before is counted as baseline",
            ],
        );
    }
}
