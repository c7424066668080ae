//! Tables, no wider than the terminal.

use std::io;

use rustix::termios::tcgetwinsize;
use textwrap::{Options, core::display_width, wrap};

use interval_queue_documents::words::visible;

const MIN_COLUMN_WIDTH: usize = 8;
const COLUMN_GAP: &str = "  ";

/// `usize::MAX` if stdout is no terminal.
pub(crate) fn room() -> usize {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => usize::MAX,
    }
}

/// Columns are as wide as their widest cell. If the table exceeds `room`, the widest columns shrink
/// and their cells wrap.
pub(crate) fn table<const N: usize>(headings: [&str; N], rows: &[[String; N]], room: usize) -> String {
    let headings = headings.map(str::to_owned);
    let rows: Vec<[String; N]> =
        rows.iter().map(|row| std::array::from_fn(|column| visible(&row[column]).into_owned())).collect();
    let all: Vec<_> = [&headings].into_iter().chain(&rows).collect();
    let mut widths: [usize; N] =
        std::array::from_fn(|column| all.iter().map(|row| display_width(&row[column])).max().unwrap_or(0));
    let gaps = COLUMN_GAP.len() * N.saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > room {
        match widths.iter_mut().max() {
            Some(widest) if *widest > MIN_COLUMN_WIDTH => *widest -= 1,
            _ => break,
        }
    }
    let lines = all.into_iter().flat_map(|row| lines(row, widths));
    lines.collect::<Vec<_>>().join("\n")
}

fn lines<const N: usize>(row: &[String; N], widths: [usize; N]) -> Vec<String> {
    let cells: [Vec<_>; N] = std::array::from_fn(|column| wrap(&row[column], widths[column]));
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let line = |n: usize| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| {
            let text = cell.get(n).map_or("", |text| text.as_ref());
            format!("{text}{}", " ".repeat(width.saturating_sub(display_width(text))))
        });
        padded.collect::<Vec<_>>().join(COLUMN_GAP).trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

/// Continuation lines are indented to the text.
pub(crate) fn named(name: &str, text: &str, room: usize) -> String {
    let indent = " ".repeat(9);
    let first = format!("{name:9}");
    wrap(&visible(text), Options::new(room).initial_indent(&first).subsequent_indent(&indent)).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[[&str; 2]]) -> Vec<[String; 2]> {
        rows.iter().map(|row| row.map(str::to_owned)).collect()
    }

    #[test]
    fn columns_line_up() {
        let rows = rows(&[["mail", "1s"], ["größer", "2s"], ["日本", "3s"]]);
        let text = "QUEUE   EVERY\nmail    1s\ngrößer  2s\n日本    3s";
        assert_eq!(table(["QUEUE", "EVERY"], &rows, usize::MAX), text);
    }

    #[test]
    fn cells_that_do_not_fit_wrap() {
        let rows = rows(&[["mail", "waiting for ticket 9 of shard 0123456789abcdef"], ["b", "paused"]]);
        let text = "QUEUE  STANDING\nmail   waiting for\n       ticket 9 of\n       shard\n       0123456789abc\n       def\nb      paused";
        assert_eq!(table(["QUEUE", "STANDING"], &rows, 20), text);
        assert_eq!(table(["QUEUE", "STANDING"], &rows, 200).lines().count(), 3);
        assert!(table(["QUEUE", "STANDING"], &rows, 1).lines().count() > 7, "it ends");
    }

    #[test]
    fn a_line_goes_on_below_what_it_names() {
        assert_eq!(named("next", "waiting for ticket 9", 20), "next     waiting for\n         ticket 9");
    }
}
