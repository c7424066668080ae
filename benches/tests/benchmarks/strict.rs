//! The benchmark against a strict limiter: what it asks of nginx, how it counts, and that it works.

use std::{io::Read, io::Write, net::TcpStream, time::Duration};

use crate::nginx::{Limit, Nginx, Verdict};

const STRICT: Limit = Limit { rate: 100, burst: 0 };

#[test]
fn refusals_are_counted_and_good_answers_timed() {
    let log = "10.000 200\n10.010 200\n10.019 503\n10.030 200\n11.500 503\n10.040 2";
    let verdict = Verdict::parse(log).unwrap();
    assert_eq!((verdict.good, verdict.refused, verdict.requests()), (3, 2, 5));
    assert!((verdict.good_rate - 2.0 / 0.03).abs() < 0.01, "{verdict:?}");
    assert!((verdict.refused_per_1000() - 400.0).abs() < 1e-9);

    assert_eq!(Verdict::parse("10.000 503\n"), Some(Verdict { refused: 1, ..Verdict::default() }));
    assert_eq!(Verdict::parse("10.000 404\n"), None, "that is no verdict");
}

#[test]
fn a_burst_is_asked_for_only_where_there_is_one() {
    let strict = STRICT.configuration(8080);
    assert!(strict.contains("rate=100r/s") && strict.contains("limit_req zone=all;"), "{strict}");
    let burst = Limit { burst: 1, ..STRICT }.configuration(8080);
    assert!(burst.contains("limit_req zone=all burst=1 nodelay;"), "{burst}");
}

#[test]
fn others_ask_for_no_more_than_their_share() {
    use crate::case::{Case, Who};

    for case in Case::all(false) {
        let asked = 1.0 / case.interval().as_secs_f64();
        let most = f64::from(case.limit.rate * case.share) / 100.0;
        let least = if matches!(case.who, Who::Peer(_)) { most * 0.95 } else { most * 0.999 };
        assert!((least..=most).contains(&asked), "{case:?} asks for {asked} a second");
        assert_eq!(case.jobs % u64::from(crate::case::PROCESSES), 0);
    }
}

#[test]
fn nginx_refuses_what_comes_early() {
    if Nginx::program().is_none() {
        eprintln!("skipped: nginx is not here");
        return;
    }
    // So slow that nothing comes back meanwhile.
    for burst in [0, 1] {
        let nginx = Nginx::start(Limit { rate: 1, burst }).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", nginx.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        for _ in 0..4 {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: limiter\r\n\r\n").unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        }
        let verdict = nginx.verdict(4).unwrap();
        assert_eq!((verdict.good, verdict.refused), (u64::from(burst) + 1, 3 - u64::from(burst)));
    }
}

#[test]
#[ignore = "needs cargo to build the benchmark: scripts/test runs it"]
fn the_benchmark_against_a_strict_limiter_measures() {
    // With the features of `scripts/test`, so that little is left to be built.
    let output = super::cargo()
        .args(["test", "--quiet", "--workspace", "--all-features", "--bench", "strict", "--"])
        .args(["--quick", "--ours", "--only", "burst 0 | 95 % | interval-queue by starts"])
        .output()
        .unwrap();
    let [shown, said] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{said}");
    match Nginx::program() {
        Some(_) => assert!(
            shown.contains("| 10 r/s, burst 0 | 95 % |") && shown.contains(" of 20 |"),
            "{shown}\n{said}"
        ),
        None => assert!(said.contains("nginx is not here"), "{said}"),
    }
}
