//! The trace of a task, from the span in which it is added to the span of its run: by the feature
//! `opentelemetry`.

#[cfg(feature = "opentelemetry")]
use interval_queue_task_contract::Traceparent;

/// `None`: there is none, or the feature is off.
#[cfg(feature = "opentelemetry")]
pub(crate) fn current() -> Option<Traceparent> {
    use opentelemetry::{Context, trace::TraceContextExt as _};
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;

    let of_tracing = tracing::Span::current().context();
    // An application may use OpenTelemetry without `tracing`.
    let contexts = [of_tracing, Context::current()];
    let span = contexts.iter().map(|context| context.span().span_context().clone());
    let span = { span }.find(|span| span.is_valid())?;
    let (trace, id, flags) = (span.trace_id(), span.span_id(), span.trace_flags().to_u8());
    Traceparent::new(format!("00-{trace}-{id}-{flags:02x}")).ok()
}

#[cfg(feature = "opentelemetry")]
pub(crate) fn set_parent(span: &tracing::Span, trace: Option<&Traceparent>) {
    use opentelemetry::{
        Context, SpanId, TraceFlags, TraceId,
        trace::{SpanContext, TraceContextExt as _, TraceState},
    };
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;

    let Some(trace) = trace else { return };
    if let [_, trace, id, flags] = trace.as_str().split('-').collect::<Vec<_>>()[..]
        && let (Ok(trace), Ok(id)) = (TraceId::from_hex(trace), SpanId::from_hex(id))
        && let Ok(flags) = u8::from_str_radix(flags, 16)
    {
        let parent = SpanContext::new(trace, id, TraceFlags::new(flags), true, TraceState::NONE);
        // Without a layer of OpenTelemetry there is nothing to set.
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
}
