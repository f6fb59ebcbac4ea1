//! What every key does, from the table itself.

use vramscope_collector::{report::layout::wrap, view::MarkKind};

use crate::{app::App, chart, keys, page::Page, theme::Role};

/// The help, in two columns where there is room.
pub fn page(app: &App, width: usize) -> Page {
    let two = width >= 110;
    let column = if two { width / 2 - 1 } else { width };
    let mut own = Page::new(app.theme, column);
    let mut common = Page::new(app.theme, column);
    for (scope, rows) in keys::sections() {
        let everywhere = scope == keys::Scope::Everywhere;
        let page = if everywhere { &mut common } else { &mut own };
        page.heading(&format!(" {}", scope.title()));
        for (keys, help) in rows {
            const KEYS: usize = 15;
            let room = column.saturating_sub(KEYS + 2);
            for (index, line) in wrap(help, room, 0).into_iter().enumerate() {
                let keys = if index == 0 { keys.as_str() } else { "" };
                page.line([(format!(" {keys:<KEYS$} "), Role::Key), (line, Role::Text)]);
            }
        }
    }
    signs(app, &mut own);
    if two {
        return common.beside(own, 2);
    }
    common.append(own);
    common
}

/// What the signs of the charts mean.
fn signs(app: &App, page: &mut Page) {
    page.heading(" signs");
    for (role, words) in [
        (
            Role::Stays,
            "stays over a whole step: the floor of allocated",
        ),
        (Role::Flows, "comes and goes within a step"),
        (Role::Cached, "reserved by PyTorch, not allocated"),
        (Role::Outside, "the process's, beyond PyTorch"),
    ] {
        let sign = app.theme.fill(role).to_owned();
        page.line([
            (" ".into(), Role::Text),
            (sign, role),
            (format!("  {words}"), Role::Text),
        ]);
    }
    for kind in [
        MarkKind::OutOfMemory,
        MarkKind::CacheEmptied,
        MarkKind::Lost,
        MarkKind::GrowthBegan,
    ] {
        let (sign, role) = chart::mark_symbol(kind, app.theme);
        let words = format!("  {}", chart::mark_name(kind));
        page.line([
            (" ".into(), Role::Text),
            (sign.into(), role),
            (words, Role::Text),
        ]);
    }
    page.line([
        (" ▲".into(), Role::Alarm),
        ("  before a site: the verdict names it".into(), Role::Text),
    ]);
}

/// How far the help can be scrolled.
pub fn most_scrolled(app: &App) -> usize {
    let body = app.areas().body;
    page(app, usize::from(body.width)).most_scrolled(usize::from(body.height))
}
