//! What all pictures share: paper, ink, type and the frame of a row of panels.

use std::io;

use plotters::{
    coord::{CoordTranslate, Shift},
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Chart<'a, 'b, C> = ChartContext<'a, SVGBackend<'b>, C>;
pub(super) type Drawn = Result<(), DrawingAreaErrorKind<io::Error>>;

/// As wide as a page of text, so that nobody's browser makes the letters smaller.
const WIDTH: u32 = 840;
/// The backend knows whole units only: pictures are drawn this much larger than they are shown.
const SCALE: f64 = 4.0;
const MARGIN: f64 = 20.0;
/// The height of the title and of the line under it.
const HEAD: f64 = 66.0;
/// Free at the lower edge.
const FOOT: f64 = 10.0;
/// The width of the column in which a panel is named.
pub(super) const NAMES: f64 = 200.0;

const PAPER: RGBColor = RGBColor(255, 255, 255);
const BORDER: RGBColor = RGBColor(208, 215, 222);
pub(super) const GRID: RGBColor = RGBColor(226, 230, 234);
pub(super) const INK: RGBColor = RGBColor(31, 35, 40);
pub(super) const FAINT: RGBColor = RGBColor(89, 99, 110);
// Okabe and Ito's colours, which people who are colour-blind can tell apart too.
pub(super) const OURS: RGBColor = RGBColor(0, 114, 178);
pub(super) const THEIRS: RGBColor = RGBColor(89, 99, 110);
pub(super) const CLOSE: RGBColor = RGBColor(213, 94, 0);
pub(super) const SERIES: [RGBColor; 5] =
    [OURS, CLOSE, RGBColor(0, 158, 115), RGBColor(204, 121, 167), RGBColor(86, 180, 233)];

/// The colour in which one says how many starts came too close.
pub(super) fn alarm(close: u64) -> RGBColor {
    if close == 0 { FAINT } else { CLOSE }
}

/// Where a text stands at its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    Left,
    Middle,
    Right,
}

/// So many units of a drawing are this many pixels of the picture.
pub(super) fn units(pixels: f64) -> i32 {
    (pixels * SCALE).round() as i32
}

pub(super) fn line(color: RGBColor, pixels: f64) -> ShapeStyle {
    ShapeStyle { color: color.to_rgba(), filled: false, stroke_width: units(pixels).unsigned_abs() }
}

/// A style for text that is centred vertically at its point.
pub(super) fn type_face(pixels: f64, color: RGBColor, bold: bool, side: Side) -> TextStyle<'static> {
    // The backend makes letters smaller than it is told by this factor.
    let size = pixels * SCALE * 1.24;
    let style = if bold { FontStyle::Bold } else { FontStyle::Normal };
    let horizontal = match side {
        Side::Left => HPos::Left,
        Side::Middle => HPos::Center,
        Side::Right => HPos::Right,
    };
    FontDesc::new(FontFamily::SansSerif, size, style).color(&color).pos(Pos::new(horizontal, VPos::Center))
}

pub(super) fn text(area: &Area<'_>, at: (f64, f64), text: &str, style: TextStyle<'static>) -> Drawn {
    area.draw(&Text::new(text.to_owned(), (units(at.0), units(at.1)), style))
}

/// Width and height of an area in pixels.
pub(super) fn size(area: &Area<'_>) -> (f64, f64) {
    let (width, height) = area.dim_in_pixel();
    (f64::from(width) / SCALE, f64::from(height) / SCALE)
}

/// A part of an area, in pixels from its upper left corner.
pub(super) fn part<'a>(area: &Area<'a>, at: (f64, f64), size: (f64, f64)) -> Area<'a> {
    area.clone().shrink((units(at.0), units(at.1)), (units(size.0), units(size.1)))
}

/// The name of a panel with some facts under it, in the column on the left.
pub(super) fn name(area: &Area<'_>, title: &str, ours: bool, facts: &[(String, RGBColor)]) -> Drawn {
    let color = if ours { OURS } else { INK };
    text(area, (0.0, 16.0), title, type_face(14.0, color, true, Side::Left))?;
    for (index, (fact, color)) in facts.iter().enumerate() {
        let below = 35.0 + 17.0 * index as f64;
        text(area, (0.0, below), fact, type_face(12.5, *color, false, Side::Left))?;
    }
    Ok(())
}

/// A text in a chart, so many pixels from a point of it.
pub(super) fn label<C: CoordTranslate<From = (f64, f64)>>(
    chart: &mut Chart<'_, '_, C>,
    at: (f64, f64),
    shift: (f64, f64),
    text: &str,
    style: TextStyle<'static>,
) -> Drawn {
    let text = Text::new(text.to_owned(), (units(shift.0), units(shift.1)), style);
    chart.draw_series([EmptyElement::at(at) + text]).map(drop)
}

/// A straight line in a chart.
pub(super) fn rule<C: CoordTranslate<From = (f64, f64)>>(
    chart: &mut Chart<'_, '_, C>,
    ends: [(f64, f64); 2],
    style: ShapeStyle,
) -> Drawn {
    chart.draw_series([PathElement::new(ends, style)]).map(drop)
}

/// Draws a picture whose body has this height, and gives its SVG.
pub(super) fn paint(
    title: &str,
    explanation: &str,
    height: f64,
    body: impl FnOnce(&Area<'_>) -> Drawn,
) -> io::Result<String> {
    let height = height + HEAD + FOOT;
    let drawn = (units(f64::from(WIDTH)).unsigned_abs(), units(height).unsigned_abs());
    let mut svg = String::new();
    let finish = || -> Drawn {
        let area = SVGBackend::with_string(&mut svg, drawn).into_drawing_area();
        area.fill(&PAPER)?;
        let corner = (drawn.0 as i32, drawn.1 as i32);
        area.draw(&Rectangle::new([(0, 0), corner], line(BORDER, 0.5)))?;
        text(&area, (MARGIN, 24.0), title, type_face(17.0, INK, true, Side::Left))?;
        text(&area, (MARGIN, 47.0), explanation, type_face(13.0, FAINT, false, Side::Left))?;
        let inner = (f64::from(WIDTH) - 2.0 * MARGIN, height - HEAD - FOOT);
        body(&part(&area, (MARGIN, HEAD), inner))?;
        area.present()
    };
    finish().map_err(|error| io::Error::other(error.to_string()))?;
    let large = format!("width=\"{}\" height=\"{}\"", drawn.0, drawn.1);
    let shown = format!("width=\"{WIDTH}\" height=\"{height}\"");
    Ok(svg
        .replacen(&large, &shown, 1)
        .replace("font-family=\"sans-serif\"", "font-family=\"Helvetica, Arial, sans-serif\""))
}
