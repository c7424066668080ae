//! The macro for all events.

/// Logs an event: telemetry, level, name, text, fields. Levels are static; choose between two with
/// `LEVEL if condition, else LEVEL`.
macro_rules! tell {
    ($told:expr, $level:ident if $condition:expr, else $other:ident, $($rest:tt)+) => {
        if $condition { tell!($told, $level, $($rest)+) } else { tell!($told, $other, $($rest)+) }
    };
    ($told:expr, $level:ident, $name:literal, $text:literal $(, $($field:tt)+)?) => {
        tracing::event!(
            name: $name,
            target: $crate::telemetry::TARGET,
            tracing::Level::$level,
            queue = %$told.queue,
            shard = %$told.shard,
            $($($field)+,)?
            $text
        )
    };
}

pub(super) use tell;
