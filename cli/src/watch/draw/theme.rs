//! The meaning of colours. Without colours, words and signs have the same meaning.

use ratatui::style::{Color, Modifier, Style};

use crate::watch::reason::Tone;

/// Whether there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    Colours,
    /// For `NO_COLOR`: only bold, dim and reversed.
    Plain,
}

/// The colours of lanes. Colours with a meaning are not used.
const LANES: [Color; 6] =
    [Color::Cyan, Color::Magenta, Color::Blue, Color::LightCyan, Color::LightMagenta, Color::LightBlue];

impl Theme {
    fn colour(self, colour: Color) -> Style {
        match self {
            Theme::Colours => Style::new().fg(colour),
            Theme::Plain => Style::new(),
        }
    }

    /// A part of a bar.
    pub(crate) fn part(self, colour: Color) -> Style {
        self.colour(colour)
    }

    /// The style of less important text.
    pub(crate) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// The style of more important text.
    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The heading of a column.
    pub(crate) fn heading(self) -> Style {
        self.dim()
    }

    /// The style of a word in the colour of its tone, reversed.
    pub(crate) fn chip(self, tone: Tone) -> Style {
        self.tone(tone).add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }

    /// Green: jobs start. Yellow: held back. Red: an error. No colour: nothing to do.
    pub(crate) fn tone(self, tone: Tone) -> Style {
        match tone {
            Tone::Good => self.colour(Color::Green),
            Tone::Idle => Style::new(),
            Tone::Waiting => self.colour(Color::Yellow),
            Tone::Bad => self.colour(Color::Red),
        }
    }

    /// The colour of a lane, for every mention of its shard.
    pub(crate) fn lane(self, number: usize) -> Style {
        self.colour(LANES[number % LANES.len()])
    }
}

/// The sign of a tone.
pub(crate) fn sign(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "●",
        Tone::Idle => "○",
        Tone::Waiting => "‖",
        Tone::Bad => "▲",
    }
}
