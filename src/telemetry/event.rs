//! The macro for all events.

/// Telemetry, level, name, text, fields. Levels are static; choose between two with
/// `LEVEL if condition, else LEVEL`.
macro_rules! emit {
    ($telemetry:expr, $level:ident if $condition:expr, else $other:ident, $($rest:tt)+) => {
        if $condition { emit!($telemetry, $level, $($rest)+) } else { emit!($telemetry, $other, $($rest)+) }
    };
    ($telemetry:expr, $level:ident, $name:literal, $text:literal $(, $($field:tt)+)?) => {
        tracing::event!(
            name: $name,
            target: $crate::telemetry::TARGET,
            tracing::Level::$level,
            queue = %$telemetry.queue,
            shard = %$telemetry.shard,
            $($($field)+,)?
            $text
        )
    };
}

pub(super) use emit;
