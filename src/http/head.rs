//! Access to the status and headers of a response.

use ::http::{HeaderMap, Response, StatusCode};

/// Reads the status and headers of a response. Functions implement it, e.g. for reqwest:
///
/// ```
/// use http::{HeaderMap, StatusCode};
/// use interval_queue::http::ReadHead;
///
/// fn head(response: &reqwest::Response) -> (StatusCode, &HeaderMap) {
///     (response.status(), response.headers())
/// }
/// # fn reads(_: impl ReadHead<reqwest::Response>) {}
/// reads(head);
/// ```
pub trait ReadHead<R> {
    /// The status and headers of `response`.
    fn head<'a>(&self, response: &'a R) -> (StatusCode, &'a HeaderMap);
}

/// Reads an [`http::Response`] (hyper, tonic, axum).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HttpResponse;

impl<B> ReadHead<Response<B>> for HttpResponse {
    fn head<'a>(&self, response: &'a Response<B>) -> (StatusCode, &'a HeaderMap) {
        (response.status(), response.headers())
    }
}

impl<R, F> ReadHead<R> for F
where
    F: Fn(&R) -> (StatusCode, &HeaderMap),
{
    fn head<'a>(&self, response: &'a R) -> (StatusCode, &'a HeaderMap) {
        self(response)
    }
}
