//! Every store does what [`rules::apply`](interval_queue_contract::rules::apply) does.

use std::{env, time::Duration};

use interval_queue_contract::{Command, Micros};

use crate::{
    Load,
    client::{Client, Handles, unopened},
    model::{Model, Outcome, outcome, text},
    random::Random,
};

/// The environment variable with the seed of the first sequence.
const SEED: &str = "INTERVAL_QUEUE_SEED";
const SEQUENCES: u64 = 10;
const COMMANDS: u32 = 25;
const PAIRS: u32 = 9;
/// Microseconds. Some intervals pass during a sequence.
const INTERVALS: [u64; 4] = [1, 500, 999, 3_000];

/// Random commands, valid and invalid, are answered and stored exactly as by the rules, at an
/// instant between the reads before and after. Rejected commands change nothing.
///
/// The sequences follow from the environment variable `INTERVAL_QUEUE_SEED` (default 0) and the
/// store's clock.
pub async fn commands_follow_the_rules(handles: Handles) {
    for seed in seeds() {
        let mut sequence = Sequence::new(seed, handles.clone());
        for _ in 0..COMMANDS {
            sequence.pass_time().await;
            sequence.send().await;
        }
    }
}

/// Concurrent random commands are serialized in some order, each as by the rules.
///
/// The sequences follow from `INTERVAL_QUEUE_SEED` as in [`commands_follow_the_rules`].
pub async fn commands_that_meet_follow_the_rules(handles: Handles) {
    for seed in seeds() {
        let mut sequence = Sequence::new(seed, handles.clone());
        for _ in 0..PAIRS {
            sequence.send().await;
            sequence.pass_time().await;
            sequence.send_two().await;
        }
    }
}

fn seeds() -> impl Iterator<Item = u64> {
    let first = env::var(SEED).map_or(0, |seed| seed.parse().expect("INTERVAL_QUEUE_SEED is a number"));
    (first..=u64::MAX).take(SEQUENCES as usize)
}

struct Sequence {
    seed: u64,
    sent: u32,
    load: Load,
    random: Random,
    clients: [Client; 2],
    model: Model,
}

impl Sequence {
    fn new(seed: u64, handles: Handles) -> Self {
        let (one, other) = unopened(handles);
        let mut random = Random::seeded(!seed);
        let interval = Micros::new(random.pick(&INTERVALS));
        Self {
            seed,
            sent: 0,
            load: Load::new(seed).with_interval(interval),
            random,
            clients: [one, other],
            model: Model::default(),
        }
    }

    /// Usually up to four intervals, sometimes the shortest lease.
    async fn pass_time(&mut self) {
        let few = (self.load.interval() * 4).get();
        let micros = match self.random.within(0..=99) {
            0..40 => return,
            40..97 => self.random.within(0..=few),
            _ => 102_000,
        };
        tokio::time::sleep(Duration::from_micros(micros)).await;
    }

    fn any(&mut self) -> Client {
        self.clients[self.random.within(0..=1) as usize].clone()
    }

    async fn send(&mut self) {
        let sent = self.load.next_command(self.model.record.as_ref(), self.model.at);
        let came = outcome(self.any().apply(sent.command().clone()).await);
        self.judge(&[&[(sent.command(), &came)]]).await;
        if let Ok(reply) = &came {
            self.load.observe_reply(&sent, reply);
        }
    }

    async fn send_two(&mut self) {
        let sent = [(); 2].map(|()| self.load.next_command(self.model.record.as_ref(), self.model.at));
        let mut under_way = Vec::new();
        for (client, sent) in self.clients.iter().zip(&sent) {
            let (client, command) = (client.clone(), sent.command().clone());
            under_way.push(tokio::spawn(async move { outcome(client.apply(command).await) }));
        }
        let mut came = Vec::new();
        for command in under_way {
            came.push(command.await.unwrap());
        }
        let [one, other] = [0, 1].map(|n| (sent[n].command(), &came[n]));
        self.judge(&[&[one, other], &[other, one]]).await;
        for (sent, came) in sent.iter().zip(&came) {
            if let Ok(reply) = came {
                self.load.observe_reply(sent, reply);
            }
        }
    }

    /// Reads the record, which must be the result of one of these orders.
    async fn judge(&mut self, orders: &[&[(&Command, &Outcome)]]) {
        let before = self.model.clone();
        let look = self.any().read().await;
        let mut wrong = Vec::new();
        for order in orders {
            match self.model.follow(order, look.as_ref()) {
                Ok(()) => {
                    self.sent += order.len() as u32;
                    return;
                }
                Err(difference) => wrong.push(difference),
            }
        }
        let commands: Vec<&Command> = orders[0].iter().map(|(command, _)| *command).collect();
        panic!(
            "{SEED}={}, command {}: {commands:?}\non {}\n{}",
            self.seed,
            self.sent,
            text(before.record.as_ref()),
            wrong.join("\nand in the other order: ")
        );
    }
}
