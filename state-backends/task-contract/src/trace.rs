//! The trace in which a task was added.

use interval_queue_contract::{InvalidInput, name};

name! {
    /// The `traceparent` of [W3C Trace Context](https://www.w3.org/TR/trace-context/): the trace and
    /// the span in which a task was added, for example
    /// `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`.
    Traceparent, check
}

fn check(text: &str) -> Result<(), InvalidInput> {
    let hex = |part: &str, long: usize| {
        part.len() == long && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let some = |part: &str| part.bytes().any(|byte| byte != b'0');
    let is_valid = match text.split('-').collect::<Vec<_>>()[..] {
        [version, trace, span, flags] => {
            hex(version, 2)
                && version != "ff"
                && hex(trace, 32)
                && some(trace)
                && hex(span, 16)
                && some(span)
                && hex(flags, 2)
        }
        _ => false,
    };
    if is_valid {
        return Ok(());
    }
    let shown: String = text.chars().take(80).collect();
    Err(InvalidInput::new(format!(
        "{shown:?} is no traceparent: an example is 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_traceparent_is_taken() {
        let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(Traceparent::new(valid).unwrap().as_str(), valid);
        for wrong in [
            "",
            "00",
            &valid.to_uppercase(),
            &format!("{valid}-00"),
            &valid.replace("4bf9", "4bg9"),
            &valid.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &valid.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &valid.replacen("00", "ff", 1),
            &valid[1..],
        ] {
            let error = Traceparent::new(wrong).unwrap_err().to_string();
            assert!(error.contains("is no traceparent: an example is 00-"), "{wrong}: {error}");
        }
    }
}
