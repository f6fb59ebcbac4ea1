//! Merged stacks.

use ratatui::{buffer::Buffer, layout::Rect};
use vramscope_collector::report::{paths, units};
use vramscope_events::FrameKind;

use crate::{app::App, paint::Pen, table::Order, theme::Role, tree::Node};

/// Draws the names of the columns and the rows.
pub fn draw(app: &App, buffer: &mut Buffer, area: Rect) {
    if area.is_empty() {
        return;
    }
    let wide = area.width >= 70;
    let mut pen = Pen::new(buffer, app.theme, area, 0);
    let order = app.query.order;
    let role = |own: bool| if own { Role::Strong } else { Role::Quiet };
    let growth = !matches!(order, Order::Live | Order::Survivors);
    let arrow = |own: bool| if own { "▾" } else { "" };
    pen.right(&format!("GROWTH/STEP{}", arrow(growth)), 12, role(growth))
        .skip(1);
    let live = order == Order::Live;
    pen.right(&format!("LIVE{}", arrow(live)), 9, role(live))
        .skip(1);
    if wide {
        let blocks = order == Order::Survivors;
        pen.right(&format!("BLOCKS{}", arrow(blocks)), 7, role(blocks))
            .skip(1);
        pen.left("", 9, Role::Text);
    }
    let direction = match app.tree.bottom_up {
        false => "CALLERS FIRST",
        true => "ALLOCATING LINES FIRST",
    };
    pen.put(" ", Role::Text).put(direction, Role::Quiet);
    if app.tree.len() == 0 {
        let inner = Rect {
            y: area.y + 1,
            height: area.height - 1,
            ..area
        };
        super::empty(
            app,
            buffer,
            inner,
            &[
                "no stack yet",
                "stacks appear when the process allocates, and pass the filter",
            ],
        );
        return;
    }
    let whole = app.tree.whole();
    let height = app.table_height();
    let selected = app.tree.selected();
    for index in app.tree_first..app.tree_first + height {
        let Some(node) = app.tree.row(index) else {
            break;
        };
        let line = (index - app.tree_first) as u16 + 1;
        draw_row(app, buffer, area, line, node, whole, wide);
        if index == selected {
            Pen::new(buffer, app.theme, area, line).look(area, Role::Selected);
        }
    }
}

fn draw_row(
    app: &App,
    buffer: &mut Buffer,
    area: Rect,
    line: u16,
    node: &Node,
    whole: f64,
    wide: bool,
) {
    let mut pen = Pen::new(buffer, app.theme, area, line);
    let still = node.growth.abs() < 0.5;
    let role = if still { Role::Quiet } else { Role::Text };
    pen.right(&units::signed_bytes(node.growth), 12, role)
        .skip(1);
    pen.right(&units::bytes(node.live_bytes), 9, Role::Text)
        .skip(1);
    if wide {
        pen.right(&units::short_count(node.live_blocks), 7, Role::Text)
            .skip(1);
        let part = if whole > 0.0 {
            app.tree.weight(node) / whole
        } else {
            0.0
        };
        pen.bar(part, 8, Role::Stays).skip(1);
    }
    pen.put(" ", Role::Text);
    // Deep stacks must not push their names off the screen.
    let room = pen.room();
    pen.skip(node.depth.min(room * 2 / 5));
    let sign = match (node.has_children, app.tree.is_unfolded(node)) {
        (false, _) => "  ",
        (true, true) => "▾ ",
        (true, false) => "▸ ",
    };
    pen.put(sign, Role::Key);
    let Some(frame) = &node.frame else {
        pen.put("(threads without known frames)", Role::Quiet);
        return;
    };
    if frame.kind == FrameKind::Backward {
        pen.put("[backward]", Role::Quiet);
        return;
    }
    let role = if frame.user { Role::Code } else { Role::Text };
    let place = match app.process() {
        Some(process) => paths::place(frame, &process.info, pen.room().min(40)),
        None => String::new(),
    };
    pen.put(&place, role).put(" ", Role::Text);
    let room = pen.room();
    let text = match &frame.source {
        Some(source) if frame.user && room > 30 => source,
        _ => &frame.function,
    };
    pen.foreign(text, room, Role::Quiet);
}
