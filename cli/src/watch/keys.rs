//! What keys mean.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Go(Move),
    /// Pause the queue, or resume it.
    Pause,
    /// From the queues to the tasks, and back.
    Focus,
    /// Open the task.
    Open,
    /// Open what failed.
    Failures,
    /// Show the payload and the result of the task, or hide them.
    Bodies,
    /// Yes, do it.
    Yes,
    Help,
    /// Away from here: from the help, from a question, or from all.
    Back,
    Quit,
    /// Ctrl-Z.
    Suspend,
    /// Nothing, but for a question: no.
    Other,
}

/// A way through the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

/// What this key asks for; none if it is not pressed but released.
pub(crate) fn action(key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return Some(match key.code {
            KeyCode::Char('c') => Action::Quit,
            KeyCode::Char('z') => Action::Suspend,
            _ => Action::Other,
        });
    }
    Some(match key.code {
        KeyCode::Up | KeyCode::Char('k') => Action::Go(Move::Up),
        KeyCode::Down | KeyCode::Char('j') => Action::Go(Move::Down),
        KeyCode::PageUp => Action::Go(Move::PageUp),
        KeyCode::PageDown => Action::Go(Move::PageDown),
        KeyCode::Home | KeyCode::Char('g') => Action::Go(Move::First),
        KeyCode::End | KeyCode::Char('G') => Action::Go(Move::Last),
        KeyCode::Char('p') => Action::Pause,
        KeyCode::Tab => Action::Focus,
        KeyCode::Enter => Action::Open,
        KeyCode::Char('f') => Action::Failures,
        KeyCode::Char('b') => Action::Bodies,
        KeyCode::Char('y') => Action::Yes,
        KeyCode::Char('?' | 'h') => Action::Help,
        KeyCode::Char('q') => Action::Quit,
        KeyCode::Esc => Action::Back,
        _ => Action::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_the_help_says() {
        let key = |code| action(KeyEvent::new(code, KeyModifiers::NONE));
        assert_eq!(key(KeyCode::Char('j')), key(KeyCode::Down));
        assert_eq!(key(KeyCode::Char('q')), Some(Action::Quit));
        assert_eq!(key(KeyCode::Esc), Some(Action::Back));
        assert_eq!([KeyCode::Tab, KeyCode::Enter].map(key), [Some(Action::Focus), Some(Action::Open)]);
        assert_eq!(key(KeyCode::Char('f')), Some(Action::Failures));
        assert_eq!(key(KeyCode::Char('x')), Some(Action::Other));
        let control = |c| action(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL));
        assert_eq!(control('c'), Some(Action::Quit));
        assert_eq!(control('p'), Some(Action::Other), "no pause by accident");
    }
}
