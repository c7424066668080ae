//! A real server that plays events, with a made-up clock and a made-up name.

use std::collections::BTreeMap;

use interval_queue_contract::{Command, QueueName, Reading};
use interval_queue_test_support::RedisServer;
use redis::{Connection, Pipeline, Value};

use super::{Event, Outcome, outcome, world::Accident};
use crate::{
    answer,
    keys::Keys,
    request,
    script::{CHANGE, READ, STEP, Script},
};

/// Takes the last two arguments for the name of the server and its time.
const STAGE: &str = "
local real = redis
local run_id, now = table.remove(ARGV), tonumber(table.remove(ARGV))
local redis = {
  call = function(verb, ...)
    if verb == 'TIME' then
      return { string.format('%.0f', math.floor(now / 1000000)), string.format('%.0f', now % 1000000) }
    end
    return real.call(verb, ...)
  end,
  pcall = function(verb, ...)
    if verb == 'INFO' then
      return 'redis_version:7\\r\\nrun_id:' .. run_id .. '\\r\\nuptime:1\\r\\n'
    end
    return real.pcall(verb, ...)
  end,
}
";
const EXPIRY: std::time::Duration = std::time::Duration::from_secs(7 * 24 * 3600);

pub(super) struct Server {
    _process: RedisServer,
    connection: Connection,
    staged: BTreeMap<*const Script, Script>,
    keys: [String; 4],
}

/// What the server said to an event, and what it then held.
pub(super) struct Answer {
    pub(super) reply: Outcome,
    pub(super) record: Outcome,
}

impl Server {
    pub(super) fn start() -> Self {
        let process = RedisServer::start();
        let mut connection = redis::Client::open(process.url()).unwrap().get_connection().unwrap();
        let mut staged = BTreeMap::new();
        for script in [&*STEP, &*CHANGE, &*READ] {
            let source: &'static str = format!("{STAGE}{}", script.source()).leak();
            let _: Value = redis::cmd("SCRIPT").arg("LOAD").arg(source).query(&mut connection).unwrap();
            staged.insert(std::ptr::from_ref(script), Script::new(source));
        }
        Self {
            _process: process,
            connection,
            staged,
            keys: Keys::new("interval-queue").of(&QueueName::new("random").unwrap()),
        }
    }

    /// Plays a sequence from nothing.
    pub(super) fn play(&mut self, events: &[Event]) -> Vec<Answer> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("FLUSHALL").ignore();
        let refused: Vec<Option<Outcome>> =
            events.iter().map(|event| self.add(&mut pipeline, event)).collect();
        let values: Vec<Value> = pipeline.query(&mut self.connection).unwrap();
        let mut values = values.into_iter();
        let mut decode = |command: &Command| outcome(answer::decode(command, values.next().unwrap()));
        let answers = events.iter().zip(refused).map(|(event, refused)| Answer {
            reply: refused.unwrap_or_else(|| decode(&event.command)),
            record: decode(&Command::Read),
        });
        answers.collect()
    }

    /// Adds an event. The answer, if it is known without asking the server.
    fn add(&self, pipeline: &mut Pipeline, event: &Event) -> Option<Outcome> {
        let copies = self.keys.each_ref().map(|key| format!("{key}:copy"));
        for (key, copy) in self.keys.iter().zip(&copies) {
            match event.before {
                Accident::Nothing => {}
                Accident::Lost => {
                    pipeline.del(key).ignore();
                }
                Accident::Copied => {
                    pipeline.del(copy).ignore();
                    pipeline.cmd("COPY").arg(key).arg(copy).ignore();
                }
                Accident::Rewound => {
                    pipeline.del(key).ignore();
                    pipeline.cmd("COPY").arg(copy).arg(key).ignore();
                }
            }
        }
        let refused = self.say(pipeline, &event.command, &event.reading);
        self.say(pipeline, &Command::Read, &event.reading);
        refused
    }

    fn say(&self, pipeline: &mut Pipeline, command: &Command, reading: &Reading) -> Option<Outcome> {
        let (script, mut args) = match request::encode(command, EXPIRY) {
            Ok(request) => request,
            Err(error) => return Some(outcome(Err(error))),
        };
        args.extend([reading.now.get().to_string(), reading.incarnation.clone()]);
        pipeline.add_command(self.staged[&std::ptr::from_ref(script)].by_hash(&self.keys, &args));
        None
    }

    /// The indexes say what the presences say.
    pub(super) fn check_indexes(&mut self, seed: u64) {
        let [header, shards, heads, leases] = &self.keys;
        let mut pipeline = redis::pipe();
        pipeline.hget(header, "running").hgetall(shards);
        pipeline.zrange_withscores(heads, 0, -1).zrange_withscores(leases, 0, -1);
        type Index = BTreeMap<String, u64>;
        let (running, shards, heads, leases): (Option<u64>, BTreeMap<String, String>, Index, Index) =
            pipeline.query(&mut self.connection).unwrap();
        let field = |line: &String, n| line.split(' ').nth(n).unwrap().parse().ok();
        let column = |n| {
            let pairs = shards.iter().filter_map(|(id, line)| Some((id.clone(), field(line, n)?)));
            pairs.collect::<Index>()
        };
        assert_eq!(heads, column(0), "heads, INTERVAL_QUEUE_SEED={seed}");
        assert_eq!(leases, column(2), "leases, INTERVAL_QUEUE_SEED={seed}");
        assert_eq!(
            running.unwrap_or(0),
            column(1).values().sum::<u64>(),
            "running, INTERVAL_QUEUE_SEED={seed}"
        );
    }
}
