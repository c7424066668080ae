//! The terminal: taken for drawing, and restored whenever the program ends.

use std::{
    io::{self, Stdout},
    panic,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
};

use ratatui::{
    Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor::{Hide, Show},
        execute,
        terminal::{
            BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
            disable_raw_mode, enable_raw_mode,
        },
    },
};

use super::{
    draw::{Theme, draw},
    model::Model,
};

/// Dropping it restores the terminal.
#[derive(Debug)]
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    pub(crate) fn take() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        // The message of a panic is printed on the restored terminal.
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                give_back();
                before(info);
            }));
        });
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        let mut screen = Self { terminal };
        screen.enter()?;
        Ok(screen)
    }

    fn enter(&mut self) -> io::Result<()> {
        TERMINAL_TAKEN.store(true, Ordering::SeqCst);
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        // `Terminal::clear` asks the terminal for its cursor position, and some terminals never
        // answer.
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    /// Restores the terminal for `meanwhile`.
    pub(crate) fn without<T>(&mut self, meanwhile: impl FnOnce() -> T) -> io::Result<T> {
        give_back();
        let result = meanwhile();
        self.enter()?;
        Ok(result)
    }

    pub(crate) fn draw(&mut self, model: &mut Model, theme: Theme) -> io::Result<()> {
        // A terminal that supports it shows the whole frame at once. Others ignore it.
        execute!(io::stdout(), BeginSynchronizedUpdate)?;
        let result = self.terminal.draw(|frame| draw(frame, model, theme)).map(drop);
        execute!(io::stdout(), EndSynchronizedUpdate)?;
        result
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Restoring the terminal twice would move the cursor back over later output.
static TERMINAL_TAKEN: AtomicBool = AtomicBool::new(false);

/// Fails only if the terminal is gone.
fn give_back() {
    if !TERMINAL_TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = disable_raw_mode();
    let _ = execute!(io::stdout(), EndSynchronizedUpdate, LeaveAlternateScreen, Show);
}
