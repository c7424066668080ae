//! The meaning of colours. Without colours, words and signs have the same meaning.

use ratatui::style::{Color, Modifier, Style};

use crate::watch::queue_state::Tone;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    Colours,
    /// For `NO_COLOR`: only bold, dim and reversed.
    Plain,
}

impl Theme {
    pub(super) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Green: jobs start. Yellow: held back. Red: an error. No colour: nothing to do.
    pub(super) fn tone(self, tone: Tone) -> Style {
        match (self, tone) {
            (Self::Plain, _) | (_, Tone::Idle) => Style::new(),
            (_, Tone::Good) => Style::new().fg(Color::Green),
            (_, Tone::Waiting) => Style::new().fg(Color::Yellow),
            (_, Tone::Bad) => Style::new().fg(Color::Red),
        }
    }

    /// Reversed.
    pub(super) fn chip(self, tone: Tone) -> Style {
        self.tone(tone).add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }
}
