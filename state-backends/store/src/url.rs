//! A store's URL: scheme, place, parameters after `?`. An unused parameter is an error.

use std::{borrow::Cow, fmt, str::FromStr, time::Duration};

use interval_queue_contract::InvalidInput;
use percent_encoding::percent_decode_str;

/// A parsed URL. Neither errors nor `Debug` show a password.
#[derive(Clone)]
pub struct Url {
    scheme: String,
    place: String,
    /// Parameters not taken yet, still encoded; or the error of an invalid one.
    left: Result<Vec<(String, String)>, InvalidInput>,
    /// Names of all parameters requested, for the error of an unknown one.
    known: Vec<&'static str>,
}

impl Url {
    /// Parses a URL. `known` lists the schemes for errors.
    ///
    /// # Errors
    ///
    /// There is no scheme, or an `@` after a `?`. Parameters are checked when one is taken.
    pub fn parse(url: &str, known: &str) -> Result<Self, InvalidInput> {
        let Some((scheme, rest)) = url.split_once(':') else {
            let what = if may_hide_a_password(url) { String::new() } else { format!(" {url:?}") };
            return Err(InvalidInput::new(format!("the store{what} has no scheme: use one of {known}")));
        };
        if may_hide_a_password(scheme) {
            let text = format!("what is before the first \":\" is no scheme: use one of {known}");
            return Err(InvalidInput::new(text));
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        // Ambiguous: a guess could print a part of a password or connect to another host.
        if query.contains('@') && !scheme.ends_with("+unix") {
            let scheme = scheme.escape_debug();
            return Err(InvalidInput::new(format!(
                "the {scheme} address has an @ behind a ?: write %3F for a ? in a password or path, and %40 for an @ in a parameter"
            )));
        }
        Ok(Self { scheme: scheme.into(), place: place.into(), left: parameters(query), known: Vec::new() })
    }

    /// The part before the first colon.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The part between the colon and the `?`, still encoded. It may contain a password.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The error of an unknown scheme.
    pub fn unknown_scheme(&self, known: &str) -> InvalidInput {
        let scheme = self.scheme.escape_debug();
        InvalidInput::new(format!("unknown scheme \"{scheme}:\": use one of {known}"))
    }

    /// The place as a file path. A leading `//` is ignored: `file:///a` is `file:/a`. Errors
    /// suggest `example`.
    ///
    /// # Errors
    ///
    /// The path is missing or not UTF-8, or a `%` starts no escape.
    pub fn path(&self, example: &str) -> Result<String, InvalidInput> {
        let place = self.place.strip_prefix("//").unwrap_or(&self.place);
        let path = decoded(place, &format!("{place:?}"))?;
        if path.is_empty() {
            return Err(InvalidInput::new(format!("{}: without a path: use {example}", self.scheme)));
        }
        Ok(path.into_owned())
    }

    /// Takes a parameter, still encoded.
    ///
    /// # Errors
    ///
    /// A parameter has no value or is given twice.
    pub fn raw(&mut self, name: &'static str) -> Result<Option<String>, InvalidInput> {
        self.known.push(name);
        let left = self.left.as_mut().map_err(|error| error.clone())?;
        let index = left.iter().position(|(given, _)| given == name);
        Ok(index.map(|index| left.swap_remove(index).1))
    }

    /// Takes a parameter, decoded.
    ///
    /// # Errors
    ///
    /// As [`raw`](Self::raw), or this parameter is not UTF-8, or a `%` starts no escape.
    pub fn text(&mut self, name: &'static str) -> Result<Option<String>, InvalidInput> {
        let decode = |value: String| decoded(&value, &format!("parameter {name:?}")).map(Cow::into_owned);
        self.raw(name)?.map(decode).transpose()
    }

    /// Takes a duration with its unit.
    ///
    /// # Errors
    ///
    /// As [`text`](Self::text), or the value is not a duration.
    pub fn duration(&mut self, name: &'static str) -> Result<Option<Duration>, InvalidInput> {
        let parse = |value: &str| {
            humantime::parse_duration(value)
                .map_err(|error| format!("{error}; give a number and a unit, as in 5s or 250ms"))
        };
        self.parsed(name, parse)
    }

    /// Takes a whole number.
    ///
    /// # Errors
    ///
    /// As [`text`](Self::text), or the value is not such a number.
    pub fn count<N: FromStr>(&mut self, name: &'static str) -> Result<Option<N>, InvalidInput> {
        self.parsed(name, |value| value.parse().map_err(|_| "give a whole number".into()))
    }

    /// Takes one of several words.
    ///
    /// # Errors
    ///
    /// As [`text`](Self::text), or the value is another word.
    pub fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, InvalidInput> {
        self.parsed(name, |value| match words.iter().find(|(word, _)| *word == value) {
            Some((_, choice)) => Ok(*choice),
            None => {
                let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                Err(format!("give {}", words.join(" or ")))
            }
        })
    }

    fn parsed<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, InvalidInput> {
        let Some(value) = self.text(name)? else {
            return Ok(None);
        };
        let wrong = |error| InvalidInput::new(format!("{name}={}: {error}", value.escape_debug()));
        parse(&value).map(Some).map_err(wrong)
    }

    /// Checks that no parameter is left.
    ///
    /// # Errors
    ///
    /// A parameter was never requested. The text names it and all known ones.
    pub fn finish(self) -> Result<(), InvalidInput> {
        let left = self.left?;
        let Some((name, _)) = left.first() else {
            return Ok(());
        };
        let known = if self.known.is_empty() {
            "none are known".into()
        } else {
            format!("known are {}", self.known.join(", "))
        };
        Err(InvalidInput::new(format!("unknown parameter {name:?} of \"{}:\": {known}", self.scheme)))
    }
}

fn parameters(query: &str) -> Result<Vec<(String, String)>, InvalidInput> {
    let mut found: Vec<(String, String)> = Vec::new();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let Some((name, value)) = parameter.split_once('=') else {
            // The parameter may be the end of a password that contains `&`.
            let secret = found.iter().any(|(name, _)| name.contains("pass"));
            return Err(InvalidInput::new(if secret {
                "a parameter behind the password has no value: use name=value, and %26 for an & in a password"
                    .into()
            } else {
                format!("parameter {parameter:?} has no value: use name=value")
            }));
        };
        if found.iter().any(|(known, _)| known == name) {
            return Err(InvalidInput::new(format!("parameter {name:?} is given twice: give it once")));
        }
        found.push((name.to_owned(), value.to_owned()));
    }
    Ok(found)
}

/// Decodes `%XX`. Errors print `name`, never the text: it may be a password.
///
/// # Errors
///
/// The text is not UTF-8, or a `%` starts no escape.
pub fn decoded<'a>(part: &'a str, name: &str) -> Result<Cow<'a, str>, InvalidInput> {
    let is_escape =
        |rest: &str| matches!(rest.as_bytes(), [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
    if !part.split('%').skip(1).all(is_escape) {
        let text = format!("{name} has a % without two hexadecimal digits behind it: write %25 for a %");
        return Err(InvalidInput::new(text));
    }
    let decoded = percent_decode_str(part).decode_utf8();
    decoded.map_err(|_| InvalidInput::new(format!("{name} is not UTF-8 once its %XX are decoded")))
}

/// Whether the text looks like other programs' connection strings: `host=… password=…` or
/// `password@host`.
fn may_hide_a_password(text: &str) -> bool {
    text.contains(['=', '@'])
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Url").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}
