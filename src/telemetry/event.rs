//! An event, as every one of this crate is told.

/// Tells an event: of whose telemetry, its level and name, what it says to people, and its fields. The level
/// is part of what is static about it, so one of two is chosen by `LEVEL if condition, else LEVEL`.
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
