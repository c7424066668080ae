//! The part of a URL behind the `?`. A parameter that nobody takes is an error.

use interval_queue_contract::InvalidInput;

/// Parameters that have not been taken yet, still encoded.
#[derive(Debug)]
pub(crate) struct Parameters {
    left: Vec<(String, String)>,
}

impl Parameters {
    /// Takes apart what follows the scheme: the place, and the parameters behind a `?`.
    pub(crate) fn split(rest: &str) -> Result<(&str, Self), InvalidInput> {
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut left: Vec<(String, String)> = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let Some((name, value)) = parameter.split_once('=') else {
                return Err(InvalidInput::new(format!(
                    "parameter {parameter:?} has no value: use name=value"
                )));
            };
            if left.iter().any(|(known, _)| known == name) {
                return Err(InvalidInput::new(format!("parameter {name:?} is given twice: give it once")));
            }
            left.push((name.to_owned(), value.to_owned()));
        }
        Ok((place, Self { left }))
    }

    /// Fails if anything is left.
    pub(crate) fn finish(self, scheme: &str, known: &[&str]) -> Result<(), InvalidInput> {
        let Some((name, _)) = self.left.first() else {
            return Ok(());
        };
        let known = if known.is_empty() {
            "none are known".into()
        } else {
            format!("known are {}", known.join(", "))
        };
        Err(InvalidInput::new(format!("unknown parameter {name:?} of \"{scheme}\": {known}")))
    }
}

#[cfg(any(feature = "json-file", feature = "redis"))]
pub(crate) mod values {
    //! What the parameters of real places can be.

    use std::{borrow::Cow, time::Duration};

    use percent_encoding::percent_decode_str;

    use super::{InvalidInput, Parameters};

    impl Parameters {
        /// Takes a value as it stands in the URL.
        pub(crate) fn raw(&mut self, name: &str) -> Option<String> {
            let index = self.left.iter().position(|(known, _)| known == name)?;
            Some(self.left.swap_remove(index).1)
        }

        /// Takes a text.
        pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, InvalidInput> {
            self.raw(name).map(|value| decoded(&value).map(Cow::into_owned)).transpose()
        }

        /// Takes a duration with its unit.
        pub(crate) fn duration(&mut self, name: &str) -> Result<Option<Duration>, InvalidInput> {
            let parse = |value: String| {
                humantime::parse_duration(&value).map_err(|error| {
                    let advice = "give a number and a unit, as in 5s or 250ms";
                    InvalidInput::new(format!("{name}={}: {error}; {advice}", value.escape_debug()))
                })
            };
            self.text(name)?.map(parse).transpose()
        }

        /// Takes one of several words.
        #[cfg(feature = "json-file")]
        pub(crate) fn choice<T: Copy>(
            &mut self,
            name: &str,
            known: &[(&str, T)],
        ) -> Result<Option<T>, InvalidInput> {
            let Some(value) = self.text(name)? else {
                return Ok(None);
            };
            let found = known.iter().find(|(word, _)| *word == value);
            found.map(|(_, choice)| Some(*choice)).ok_or_else(|| {
                let words: Vec<_> = known.iter().map(|(word, _)| *word).collect();
                InvalidInput::new(format!("{name}={}: give {}", value.escape_debug(), words.join(" or ")))
            })
        }
    }

    /// The text that a part of a URL stands for.
    pub(crate) fn decoded(part: &str) -> Result<Cow<'_, str>, InvalidInput> {
        let decoded = percent_decode_str(part).decode_utf8();
        decoded.map_err(|_| InvalidInput::new(format!("{part:?} is not UTF-8 once its %XX are decoded")))
    }
}
