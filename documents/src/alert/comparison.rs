//! The comparisons of alerts.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    More,
    AtLeast,
    Less,
    AtMost,
    Equal,
    NotEqual,
}

impl Comparison {
    const ALL: [Self; 6] = [Self::More, Self::AtLeast, Self::Less, Self::AtMost, Self::Equal, Self::NotEqual];

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = if text == "==" { "=" } else { text };
        let error = || format!("{text:?} is no comparison: give >, >=, <, <=, = or !=");
        Self::ALL.into_iter().find(|by| by.as_str() == text).ok_or_else(error)
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::More => ">",
            Self::AtLeast => ">=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Equal => "=",
            Self::NotEqual => "!=",
        }
    }

    pub(super) fn holds(self, value: u64, limit: u64) -> bool {
        match self {
            Self::More => value > limit,
            Self::AtLeast => value >= limit,
            Self::Less => value < limit,
            Self::AtMost => value <= limit,
            Self::Equal => value == limit,
            Self::NotEqual => value != limit,
        }
    }
}
