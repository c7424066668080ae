//! A panel: a table under a title. A table that does not fit has a scroll bar.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Margin, Rect},
    style::Style,
    text::Line,
    widgets::{Block, Borders, Row, Scrollbar, ScrollbarOrientation, ScrollbarState, Table, TableState},
};

use super::theme::Theme;

/// The title and the headings.
const FRAME_LINES: u16 = 2;
/// With less room a panel shows nothing.
const MIN_LINES: u16 = 3;
/// Each panel gets as many lines before another one gets more.
const FAIR_LINES: u16 = 4;
/// Two panels are side by side from this width on.
const MIN_COLUMNS_OF_TWO: u16 = 76;

pub(super) type Column = (&'static str, Constraint);

#[derive(Debug)]
pub(super) struct Panel {
    pub(super) title: &'static str,
    /// At the right of the title.
    pub(super) note: String,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row<'static>>,
    pub(super) position: TableState,
}

impl Panel {
    pub(super) fn new(
        title: &'static str,
        note: impl Into<String>,
        columns: &[Column],
        rows: Vec<Row<'static>>,
    ) -> Self {
        Self { title, note: note.into(), columns: columns.to_vec(), rows, position: TableState::new() }
    }

    pub(super) fn wanted(&self) -> u16 {
        FRAME_LINES.saturating_add(u16::try_from(self.rows.len()).unwrap_or(u16::MAX))
    }

    /// Rows in view at this height.
    pub(super) fn page(height: u16) -> usize {
        height.saturating_sub(FRAME_LINES).into()
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: Theme) {
        if area.height < MIN_LINES {
            return;
        }
        let rows = self.rows.len();
        let (headings, widths): (Vec<_>, Vec<_>) = self.columns.iter().copied().unzip();
        let block = Block::new()
            .borders(Borders::TOP)
            .border_style(theme.dim())
            .title_style(Style::reset())
            .title(Line::styled(format!(" {} ", self.title), theme.strong()))
            .title(Line::styled(format!(" {} ", self.note), theme.dim()).right_aligned());
        let table = Table::new(std::mem::take(&mut self.rows), widths)
            .header(Row::new(headings).style(theme.dim()))
            .column_spacing(2)
            .row_highlight_style(theme.strong())
            .highlight_symbol("▌ ")
            .block(block);
        frame.render_stateful_widget(table, area, &mut self.position);
        let page = Self::page(area.height);
        if rows > page {
            let mut state = ScrollbarState::new(rows - page + 1)
                .position(self.position.offset())
                .viewport_content_length(page);
            let bar = Scrollbar::new(ScrollbarOrientation::VerticalRight).style(theme.dim());
            let area = area.inner(Margin { horizontal: 0, vertical: 1 });
            frame.render_stateful_widget(bar, area, &mut state);
        }
    }
}

/// Up to two panels per band, one on a narrow screen.
pub(super) fn draw_bands(
    frame: &mut Frame<'_>,
    area: Rect,
    bands: Vec<[Option<&mut Panel>; 2]>,
    theme: Theme,
) {
    let mut shown: Vec<Vec<&mut Panel>> = Vec::new();
    for band in bands {
        let panels: Vec<_> = band.into_iter().flatten().collect();
        if area.width >= MIN_COLUMNS_OF_TWO {
            shown.push(panels);
        } else {
            shown.extend(panels.into_iter().map(|panel| vec![panel]));
        }
    }
    shown.retain(|band| !band.is_empty());
    let wanted: Vec<u16> =
        shown.iter().map(|band| band.iter().map(|panel| panel.wanted()).max().unwrap_or(0)).collect();
    let areas = Layout::vertical(heights(&wanted, area.height)).split(area);
    for (band, area) in shown.into_iter().zip(areas.iter()) {
        let columns = Layout::horizontal(band.iter().map(|_| Constraint::Fill(1))).spacing(2).split(*area);
        for (panel, area) in band.into_iter().zip(columns.iter()) {
            panel.draw(frame, *area, theme);
        }
    }
}

/// First a fair part for each in order, then the rest.
fn heights(wanted: &[u16], room: u16) -> Vec<u16> {
    let mut heights = vec![0; wanted.len()];
    let mut rest = room;
    for most in [FAIR_LINES, u16::MAX] {
        for (height, wanted) in heights.iter_mut().zip(wanted) {
            let more = (*wanted).min(most).saturating_sub(*height).min(rest);
            *height += more;
            rest -= more;
        }
    }
    heights
}
