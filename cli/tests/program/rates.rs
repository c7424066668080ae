//! Limits as services publish them, against a server that counts.

use std::{
    io::ErrorKind,
    net::TcpListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::json;

use crate::{
    each::start,
    place_tests::{Backend, on_each_state},
    process::{Stopwatch, text, wait_until},
};

on_each_state!(a_published_limit_is_kept_against_a_server_that_counts, rates_are_told_and_changed);

/// A hundred a second with bursts of 5, and no more than 80 in two seconds.
const PUBLISHED: [&str; 6] = ["--rate", "100/s", "--burst", "5", "--rate", "80/2s"];

/// Counts who calls, and when.
struct Server {
    port: u16,
    calls: Arc<Mutex<Vec<Duration>>>,
    over: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let (calls, over) = (Arc::<Mutex<Vec<Duration>>>::default(), Arc::<AtomicBool>::default());
        let port = listener.local_addr().unwrap().port();
        let listening = {
            let (calls, over, clock) = (calls.clone(), over.clone(), Stopwatch::start());
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    match listener.accept() {
                        Ok(_) => calls.lock().unwrap().push(clock.elapsed()),
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {
                            thread::sleep(Duration::from_millis(1))
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        };
        Self { port, calls, over, listening: Some(listening) }
    }

    fn calls(&self) -> Vec<Duration> {
        self.calls.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.listening.take().map(JoinHandle::join);
    }
}

fn a_published_limit_is_kept_against_a_server_that_counts(place: &mut Backend) {
    let server = Server::start();
    place.ok(&[&["run"][..], &PUBLISHED, &["--", "true"]].concat());
    place.ok(&["pause"]);
    let items: String = (0..40).map(|n| format!("{n}\n")).collect();
    let call = format!(": > /dev/tcp/127.0.0.1/{}", server.port);
    let args = [&PUBLISHED[..], &["--", "bash", "-c", &call]].concat();
    let processes = [(); 3].map(|()| start(place, items.as_bytes(), &args));
    wait_until("all wait", || place.waiting() == 3);
    place.ok(&["resume"]);
    for process in processes {
        let output = process.finish();
        assert!(output.status.success(), "{output:?}");
        assert!(text(&output.stderr).contains("40 items: 40 done;"), "{output:?}");
    }
    wait_until("all calls are counted", || server.calls().len() == 120);
    let calls = server.calls();
    // Calls come later than their slots, one more than the other: so much of each window is left to that. Without
    // the quota all would come within 1.2 seconds.
    let slack = Duration::from_millis(300);
    let window = Duration::from_secs(2) - slack;
    let fullest = calls
        .iter()
        .map(|first| calls.iter().filter(|call| (*first..*first + window).contains(call)).count());
    assert!(fullest.max().unwrap() <= 80, "{calls:?}");
    // 8 at once and one every 27.8 ms, counted from the first that could start; none comes before its slot.
    assert!(calls[119] - calls[0] + slack >= Duration::from_micros(27_778) * 111, "{calls:?}");
}

fn rates_are_told_and_changed(place: &mut Backend) {
    place.ok(&["run", "--rate", "5/s", "--burst", "20", "--rate", "10000/day", "--", "true"]);
    let status = place.status();
    let told = |rate: usize| [&status["rates"][rate]["interval_us"], &status["rates"][rate]["burst"]];
    assert_eq!(told(0), [&json!(200_000), &json!(20)]);
    assert_eq!(told(1), [&json!(9_600_000), &json!(1_000)]);
    let says = "one start every 200ms (5 per second), up to 20 at once; and every 9s 600ms (6.25 per minute), up to 1,000 at once";
    assert!(place.ok(&["status"]).contains(says), "{}", place.ok(&["status"]));
    // The rest of the burst is there.
    for _ in 0..19 {
        assert_eq!(place.status()["free_in_us"], 0);
        place.ok(&["run", "--", "true"]);
    }
    let said = place.ok(&["set", "--every", "1h"]);
    assert!(said.contains("one start every 1h (1 per hour), any number running"), "{said}");
    assert_eq!(place.status()["rates"].as_array().unwrap().len(), 1);
    // One that another one implies is told, and left out.
    let output = place.run(&["set", "--rate", "1/min", "--rate", "5/s", "--burst", "20"]);
    assert!(output.status.success(), "{output:?}");
    let has_no_effect =
        "the rate of one every 200ms with bursts of 20 has no effect: one every 60s is stricter";
    assert!(text(&output.stderr).contains(has_no_effect), "{output:?}");
}
