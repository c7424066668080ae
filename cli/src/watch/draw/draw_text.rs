//! Text that fits into a number of columns.

use ratatui::{buffer::Buffer, layout::Rect, style::Style, text::Line};
use textwrap::{Options, core::display_width, wrap};

use interval_queue_documents::words::visible;

/// Cuts a text to `width` columns, with `…` at the cut.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let text = &*visible(text);
    if display_width(text) <= width {
        return text.to_owned();
    }
    let mut fitted = String::new();
    let mut used = 0;
    for c in text.chars() {
        let mut bytes = [0; 4];
        used += display_width(c.encode_utf8(&mut bytes));
        if used >= width {
            break;
        }
        fitted.push(c);
    }
    if width > 0 {
        fitted.push('…');
    }
    fitted
}

/// Pads a text on the right to exactly `width` columns.
pub(crate) fn left(text: &str, width: usize) -> String {
    let fitted = fit(text, width);
    let rest = " ".repeat(width.saturating_sub(display_width(&fitted)));
    fitted + &rest
}

/// Pads a text on the left to exactly `width` columns.
pub(crate) fn right(text: &str, width: usize) -> String {
    let fitted = fit(text, width);
    let rest = " ".repeat(width.saturating_sub(display_width(&fitted)));
    rest + &fitted
}

/// Wraps a text to `width` columns. The first line is indented. The text is cut after `most` lines.
pub(crate) fn lines(text: &str, width: usize, indent: usize, most: usize) -> Vec<String> {
    if width == 0 || most == 0 {
        return Vec::new();
    }
    let hidden = "x".repeat(indent.min(width.saturating_sub(1)));
    let text = visible(text);
    let wrapped = wrap(&text, Options::new(width).initial_indent(&hidden));
    let mut lines: Vec<String> = wrapped.iter().map(|line| line.to_string()).collect();
    if let Some(first) = lines.first_mut() {
        *first = first.split_off(hidden.len());
    }
    if lines.len() > most {
        let rest = lines[most - 1..].join(" ");
        let room = if most == 1 { width.saturating_sub(indent) } else { width };
        lines.truncate(most - 1);
        lines.push(fit(&rest, room));
    }
    lines
}

/// Writes a line at the top of an area.
pub(crate) fn put<'a>(buffer: &mut Buffer, area: Rect, line: impl Into<Line<'a>>) {
    let area = area.intersection(buffer.area);
    if area.height > 0 && area.width > 0 {
        buffer.set_line(area.x, area.y, &line.into(), area.width);
    }
}

/// Writes one sign, if it is within the area.
pub(crate) fn sign(buffer: &mut Buffer, area: Rect, x: u16, y: u16, sign: &str, style: Style) {
    let (x, y) = (area.x.saturating_add(x), area.y.saturating_add(y));
    if x < area.right()
        && y < area.bottom()
        && let Some(cell) = buffer.cell_mut((x, y))
    {
        cell.set_symbol(sign).set_style(style);
    }
}

/// The row of an area. Its height is one, or zero below the end of the area.
pub(crate) fn row(area: Rect, row: u16) -> Rect {
    Rect { y: area.y.saturating_add(row), height: u16::from(row < area.height), ..area }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_does_not_fit_is_cut_with_a_sign() {
        assert_eq!(fit("curl pid 7", 20), "curl pid 7");
        assert_eq!(fit("curl pid 7", 6), "curl …");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(fit("日本語", 1), "…");
        assert_eq!(fit("x", 0), "");
        assert_eq!(left("日", 4), "日  ");
        assert_eq!(right("7", 3), "  7");
    }

    #[test]
    fn lines_begin_behind_what_is_before_them() {
        assert_eq!(lines("one two three", 9, 4, 9), ["one", "two three"]);
        assert_eq!(lines("one two three four", 9, 4, 2), ["one", "two thre…"]);
        assert_eq!(lines("one two", 6, 3, 1), ["on…"]);
        assert_eq!(lines("averylongword", 4, 9, 3).len(), 3);
        assert!(lines("one", 0, 0, 3).is_empty());
    }
}
