//! The part of a URL behind the `?`. A parameter that nobody takes is an error.

use interval_queue_contract::InvalidInput;

/// Parameters that have not been taken yet, still encoded.
pub(super) struct Parameters {
    left: Vec<(String, String)>,
}

impl Parameters {
    /// Takes apart what follows the scheme: the place, and the parameters behind a `?`.
    pub(super) fn split(rest: &str) -> Result<(&str, Self), InvalidInput> {
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut left: Vec<(String, String)> = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let Some((name, value)) = parameter.split_once('=') else {
                // It may be the end of a password with an & in it.
                if left.iter().any(|(name, _)| name.contains("pass")) {
                    let text = "a parameter behind the password has no value: use name=value, and %26 for an & in a password";
                    return Err(InvalidInput::new(text));
                }
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
    pub(super) fn finish(self, scheme: &str, known: &[&str]) -> Result<(), InvalidInput> {
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

#[cfg(any(feature = "json-file", feature = "redis", feature = "postgres", feature = "sqlite"))]
pub(super) mod values {
    //! What the parameters of real places can be.

    use std::{borrow::Cow, time::Duration};

    use percent_encoding::percent_decode_str;

    use super::{InvalidInput, Parameters};

    impl Parameters {
        /// Takes a value as it stands in the URL.
        pub(in super::super) fn raw(&mut self, name: &str) -> Option<String> {
            let index = self.left.iter().position(|(known, _)| known == name)?;
            Some(self.left.swap_remove(index).1)
        }

        /// Takes a text.
        pub(in super::super) fn text(&mut self, name: &str) -> Result<Option<String>, InvalidInput> {
            self.raw(name).map(|value| decoded(&value).map(Cow::into_owned)).transpose()
        }

        /// Takes a duration with its unit.
        pub(in super::super) fn duration(&mut self, name: &str) -> Result<Option<Duration>, InvalidInput> {
            let parse = |value: String| {
                humantime::parse_duration(&value).map_err(|error| {
                    let advice = "give a number and a unit, as in 5s or 250ms";
                    InvalidInput::new(format!("{name}={}: {error}; {advice}", value.escape_debug()))
                })
            };
            self.text(name)?.map(parse).transpose()
        }

        /// Takes a number.
        #[cfg(feature = "postgres")]
        pub(in super::super) fn count(&mut self, name: &str) -> Result<Option<usize>, InvalidInput> {
            let parse = |value: String| {
                let refused =
                    || InvalidInput::new(format!("{name}={}: give a whole number", value.escape_debug()));
                value.parse().map_err(|_| refused())
            };
            self.text(name)?.map(parse).transpose()
        }

        /// Takes one of several words.
        #[cfg(any(feature = "json-file", feature = "postgres", feature = "sqlite"))]
        pub(in super::super) fn choice<T: Copy>(
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
    pub(in super::super) fn decoded(part: &str) -> Result<Cow<'_, str>, InvalidInput> {
        let decoded = percent_decode_str(part).decode_utf8();
        decoded.map_err(|_| InvalidInput::new(format!("{part:?} is not UTF-8 once its %XX are decoded")))
    }

    /// The path of a file: `//` before it is usual and means nothing, so `file:///a` is `file:/a`.
    #[cfg(any(feature = "json-file", feature = "sqlite"))]
    pub(in super::super) fn path(place: &str) -> Result<String, InvalidInput> {
        decoded(place.strip_prefix("//").unwrap_or(place)).map(Cow::into_owned)
    }

    /// Refuses an @ behind a ?: a guess could show a piece of a password, or talk to another host.
    #[cfg(any(feature = "redis", feature = "postgres"))]
    pub(in super::super) fn no_at_in_query(what: &str, rest: &str) -> Result<(), InvalidInput> {
        if rest.split_once('?').is_some_and(|(_, query)| query.contains('@')) {
            return Err(InvalidInput::new(format!(
                "the {what} address has an @ behind a ?: write %3F for a ? in a password and %40 for an @ in a parameter"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
#[cfg(any(feature = "json-file", feature = "sqlite"))]
mod tests {
    use super::values::path;

    #[test]
    fn two_slashes_before_a_path_mean_nothing() {
        for (place, is) in [
            ("pace.db", "pace.db"),
            ("//pace.db", "pace.db"),
            ("./a/pace.db", "./a/pace.db"),
            ("/var/pace.db", "/var/pace.db"),
            ("///var/pace.db", "/var/pace.db"),
            ("///a%20b%3F%26%40%25", "/a b?&@%"),
            ("//", ""),
        ] {
            assert_eq!(path(place).unwrap(), is, "{place}");
        }
        assert!(path("//%ff").is_err());
    }
}
