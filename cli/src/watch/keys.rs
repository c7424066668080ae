//! The meaning of keys.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Go(Move),
    /// Pause the queue, or resume it.
    Pause,
    /// Move the focus from the queues to the tasks, or back.
    Focus,
    /// Open the marked task.
    Open,
    /// Open the failures.
    Failures,
    /// Show or hide the payload and the result of the task.
    Bodies,
    /// Confirm the change.
    Yes,
    Help,
    /// Close the help, a question, a page or the program.
    Back,
    Quit,
    /// Ctrl-Z.
    Suspend,
    /// No action. Rejects a question.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

/// `None`: the key was released, not pressed.
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
