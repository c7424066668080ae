//! Wrapped text. `Wrap` of `ratatui` can draw a wide character outside of the screen, which panics.

use ratatui::{
    style::Style,
    text::{Line, Span},
};
use textwrap::{Options, WrapAlgorithm, core::display_width, wrap};

/// A payload can be longer.
const MAX_LINES: usize = 40;

/// `chip` precedes the first line.
pub(super) fn paragraph(chip: Span<'static>, text: &str, width: u16, style: Style) -> Vec<Line<'static>> {
    let width = usize::from(width.max(1));
    let text: String = text.chars().take(width * MAX_LINES).collect();
    let indent = " ".repeat(display_width(&chip.content));
    let options = Options::new(width).initial_indent(&indent).wrap_algorithm(WrapAlgorithm::FirstFit);
    let mut chip = Some(chip);
    let line = |line: std::borrow::Cow<'_, str>| match chip.take() {
        Some(chip) => {
            let rest = line.get(indent.len()..).unwrap_or_default().to_owned();
            Line::from(vec![chip, Span::styled(rest, style)])
        }
        None => Line::styled(line.into_owned(), style),
    };
    wrap(&text, options).into_iter().map(line).collect()
}

pub(super) fn paragraphs<'t>(
    texts: impl IntoIterator<Item = &'t str>,
    width: u16,
    style: Style,
) -> Vec<Line<'static>> {
    texts.into_iter().flat_map(|text| paragraph(Span::raw(""), text, width, style)).collect()
}
