//! The picture.

use std::{collections::BTreeMap, fmt::Write, io, sync::Arc};

use inferno::flamegraph::{
    Direction, Options, TextTruncateDirection,
    color::{BackgroundColor, Color, PaletteMap},
};

use super::{Origin, Weight, fold, label, origin};
use crate::{
    escape,
    report::units,
    view::{DeviceView, ProcessView, View},
};

/// The drawing failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library that draws refused the stacks.
    #[error("the flame graph could not be drawn")]
    Draw(#[from] io::Error),
    /// The library that draws wrote no text.
    #[error("the flame graph is not text")]
    Text(#[from] std::string::FromUtf8Error),
}

const WIDTH: usize = 1200;
const FONT_SIZE: usize = 12;

/// Up to so many stacks every frame is drawn, however thin: search finds it. Beyond, a browser
/// would choke.
const DRAW_ALL: usize = 2000;
/// Thinner frames (in percent of the width) are left out then.
const LEAST_PERCENT: f64 = 0.01;

/// What [`draw`] draws.
#[derive(Debug, Default)]
pub struct Picture {
    /// Above the picture.
    pub title: String,
    /// Below the title. Printable already.
    pub subtitle: String,
    /// What the weights count.
    pub unit: &'static str,
    /// What to say where there is nothing to draw.
    pub nothing: &'static str,
    /// Folded stacks and their weights.
    pub stacks: BTreeMap<String, u64>,
    /// What to compare with: frames are coloured by how they changed, not by their origin.
    pub before: Option<BTreeMap<String, u64>>,
    /// Whose code the frames are, by label.
    pub origins: BTreeMap<String, Origin>,
}

/// The survivors of one device as a self-contained SVG that zooms and searches in a browser. With
/// nothing to draw, a picture that says so.
pub fn svg(
    view: &View,
    process: &ProcessView,
    device: &DeviceView,
    weight: Weight,
) -> Result<String, Error> {
    let stacks = fold(&device.sites, process, weight);
    let total = stacks.values().copied().fold(0u64, u64::saturating_add);
    draw(Picture {
        title: title(weight, total),
        subtitle: subtitle(view, process, device),
        unit: match weight {
            Weight::Bytes => "bytes",
            Weight::Blocks => "blocks",
            Weight::Growth => "bytes a step",
        },
        nothing: nothing(weight),
        stacks,
        before: None,
        origins: origins(process, device),
    })
}

/// Folded stacks as a self-contained SVG that zooms and searches in a browser. With nothing to
/// draw, a picture that says so.
pub fn draw(picture: Picture) -> Result<String, Error> {
    let lines = lines(&picture);
    if lines.is_empty() {
        return Ok(empty(&picture.title, &picture.subtitle, picture.nothing));
    }
    let mut palette = palette(&picture.origins);
    let mut options = Options::default();
    options.title = picture.title;
    options.subtitle = Some(picture.subtitle);
    options.count_name = picture.unit.into();
    options.name_type = "Frame:".into();
    options.font_size = FONT_SIZE;
    // The common monospaced fonts are up to 0.602 of their size wide; a little air for the rest.
    options.font_width = 0.615;
    options.direction = Direction::Inverted;
    options.text_truncate_direction = TextTruncateDirection::Right;
    let background = match picture.before {
        None => {
            options.palette_map = Some(&mut palette);
            [250, 250, 250]
        }
        // What did not change is white.
        Some(_) => [214, 217, 222],
    };
    options.bgcolors = Some(BackgroundColor::Flat(rgb(background)));
    let all = lines.len() <= DRAW_ALL;
    options.min_width = if all { 0.0 } else { LEAST_PERCENT };
    let mut out = Vec::new();
    inferno::flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut out)?;
    let svg = String::from_utf8(out)?;
    let legend: fn(usize, bool) -> String = match picture.before {
        None => legend,
        Some(_) => legend_of_changes,
    };
    Ok(with_legend(svg, all, legend))
}

/// What inferno reads; the widths are those of now, and with something to compare each line has
/// the weight before and the weight now.
fn lines(picture: &Picture) -> Vec<String> {
    let Some(before) = &picture.before else {
        return (picture.stacks.iter())
            .filter(|(_, weight)| **weight > 0)
            .map(|(stack, weight)| format!("{stack} {weight}"))
            .collect();
    };
    if picture.stacks.values().all(|weight| *weight == 0) {
        return Vec::new();
    }
    let gone = before
        .keys()
        .filter(|stack| !picture.stacks.contains_key(*stack));
    let mut lines: Vec<String> = (picture.stacks.keys().chain(gone))
        .map(|stack| {
            let was = before.get(stack).copied().unwrap_or(0);
            let is = picture.stacks.get(stack).copied().unwrap_or(0);
            format!("{stack} {was} {is}")
        })
        .collect();
    lines.sort_unstable();
    lines
}

fn title(weight: Weight, total: u64) -> String {
    match weight {
        Weight::Bytes => format!("Survivors by bytes: {}", units::bytes(total)),
        Weight::Blocks => format!("Survivors by blocks: {}", units::count(total)),
        Weight::Growth => format!("Survivors by growth: {}", units::growth(total as f64)),
    }
}

fn nothing(weight: Weight) -> &'static str {
    match weight {
        Weight::Bytes | Weight::Blocks => {
            "Nothing to draw: no allocation made since the attach is still there."
        }
        Weight::Growth => "Nothing to draw: no survivors grow.",
    }
}

/// What, where and when, at most as long as there is room for.
fn subtitle(view: &View, process: &ProcessView, device: &DeviceView) -> String {
    let info = &process.info;
    let rank = info.rank.map(|rank| format!("rank {rank}, "));
    let seconds = view.now.seconds_since(view.started);
    let when = match view.started_unix {
        0 => format!("{} after the attach", units::duration(seconds)),
        started => units::date(started.saturating_add(seconds as u64)),
    };
    let before = match device.baseline {
        0 => String::new(),
        bytes => format!("; {} from before the attach not shown", units::bytes(bytes)),
    };
    let rest = format!(
        " ({}pid {}), device {}; step {}, {when}{before}",
        rank.unwrap_or_default(),
        info.pid,
        device.device,
        units::count(process.steps.count),
    );
    let room = 150usize.saturating_sub(escape::width(&rest));
    format!("{}{rest}", escape::line(&info.command, room))
}

fn origins(process: &ProcessView, device: &DeviceView) -> BTreeMap<String, Origin> {
    let mut map = BTreeMap::new();
    let mut last = None;
    for frame in device.sites.iter().flat_map(|site| site.stack.iter()) {
        // Stacks share frames: the same one in a row is common.
        if last.is_some_and(|last| Arc::ptr_eq(last, frame)) {
            continue;
        }
        last = Some(frame);
        map.insert(label::label(frame, &process.info), origin(frame));
    }
    map
}

/// A colour for every frame by its origin, neighbours told apart by a shade that depends on the
/// name alone.
fn palette(origins: &BTreeMap<String, Origin>) -> PaletteMap {
    let mut map = PaletteMap::default();
    for (name, origin) in origins {
        let shade = shade(name);
        let color = origin.color().map(|part| part.saturating_sub(shade));
        map.insert(name.clone(), rgb(color));
    }
    // The frame below all others.
    map.insert("", rgb([222, 222, 222]));
    map.insert(label::UNKNOWN, rgb([206, 206, 206]));
    map
}

/// 0 to 23, the same for the same name everywhere (FNV-1a).
fn shade(name: &str) -> u8 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash >> 32) as u8 % 24
}

fn rgb([r, g, b]: [u8; 3]) -> Color {
    Color { r, g, b }
}

/// Adds a legend in the margin below the frames.
fn with_legend(mut svg: String, all: bool, legend: fn(usize, bool) -> String) -> String {
    let height = svg
        .split_once("viewBox=\"0 0 ")
        .and_then(|(_, rest)| rest.split_once('"'))
        .and_then(|(numbers, _)| numbers.split_once(' '))
        .and_then(|(_, height)| height.parse::<usize>().ok());
    let (Some(height), Some(end)) = (height, svg.rfind("</svg>")) else {
        return svg;
    };
    svg.insert_str(end, &legend(height.saturating_sub(6), all));
    svg
}

/// One swatch and name an origin, their baseline at `y`, and whether frames are missing.
fn legend(y: usize, all: bool) -> String {
    let mut out = String::from("<g id=\"legend\">");
    let mut x = 10;
    for origin in Origin::ALL {
        let [r, g, b] = origin.color();
        let name = origin.name();
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "<rect x=\"{x}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"rgb({r},{g},{b})\"/>\
             <text x=\"{}\" y=\"{y}\">{name}</text>",
            y.saturating_sub(9),
            x + 14,
        );
        x += 14 + name.len() * FONT_SIZE * 6 / 10 + 18;
    }
    left_out(&mut out, x, y, all);
    out.push_str("</g>");
    out
}

/// What the colours of a comparison mean.
fn legend_of_changes(y: usize, all: bool) -> String {
    let text = "red: more than before; blue: less; white: the same; width: now";
    let mut out = format!("<g id=\"legend\"><text x=\"10\" y=\"{y}\">{text}</text>");
    left_out(&mut out, 10 + text.len() * FONT_SIZE * 6 / 10 + 18, y, all);
    out.push_str("</g>");
    out
}

fn left_out(out: &mut String, x: usize, y: usize, all: bool) {
    if !all {
        let _ = write!(
            out,
            "<text x=\"{x}\" y=\"{y}\">frames below {LEAST_PERCENT} % are left out</text>"
        );
    }
}

/// A picture that says why there is none.
fn empty(title: &str, subtitle: &str, why: &str) -> String {
    let (title, subtitle, why) = (xml(title), xml(subtitle), xml(why));
    let middle = WIDTH / 2;
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n\
         <svg version=\"1.1\" width=\"{WIDTH}\" height=\"120\" viewBox=\"0 0 {WIDTH} 120\" \
         xmlns=\"http://www.w3.org/2000/svg\" font-family=\"monospace\" \
         font-size=\"{FONT_SIZE}\" text-anchor=\"middle\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"rgb(250,250,250)\"/>\n\
         <text id=\"title\" x=\"{middle}\" y=\"24\" font-size=\"17\">{title}</text>\n\
         <text id=\"subtitle\" x=\"{middle}\" y=\"48\">{subtitle}</text>\n\
         <text x=\"{middle}\" y=\"84\">{why}</text>\n\
         </svg>\n"
    )
}

/// Text within an XML element. The text is printable already.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            other => out.push(other),
        }
    }
    out
}
