//! Figures are shown so that people can read them.

use crate::figures::{figure, interval, median, percent};

#[test]
fn three_digits_count() {
    let shown = [0.0, 0.000_01, 0.011_9, 0.5, 1.119, 98.74, 118.4, 1_661.2, -0.25].map(figure);
    assert_eq!(shown, ["0", "0", "0.0119", "0.500", "1.12", "98.7", "118", "1,661", "−0.250"]);
}

#[test]
fn a_share_near_the_whole_is_exact() {
    let shown = [0.6021, 0.9874, 0.99986, 1.0, 1.001].map(percent);
    assert_eq!(shown, ["60.2", "98.7", "99.99", "100.00", "100.10"]);
}

#[test]
fn an_interval_is_a_round_number() {
    assert_eq!([20, 10_000, 1_500, 2_000_000].map(interval), ["20 µs", "10 ms", "1,500 µs", "2 s"]);
}

#[test]
fn a_median_is_in_the_middle() {
    assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
    assert_eq!(median([]), None);
}
